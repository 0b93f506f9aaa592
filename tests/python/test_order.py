# SPDX-License-Identifier: Apache-2.0
"""Order: who uses an array next comes after the work that is pending on its memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import order_table as table
import pytest
from c_exchange_api import ExchangeAPI
from capsules import NEWEST, ForeignArray, ForeignTensor, OldArray, package_queue
from dpctl.memory import as_usm_memory
from memory_sources import TypedArray, allocate, new_queue
from pending_work import (
    COUNT,
    LATE,
    ZEROS,
    PendingFill,
    Reader,
    Waiting,
    answer_at_once,
    answer_behind,
    check_order,
)
from refusals import refused
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, to_dlpack_tensor


def tensor_of(pending: PendingFill) -> DLPackTensor:
    return to_dlpack_tensor(pending.memory, dtype="f4", queue=pending.queue)


@pytest.mark.parametrize(("maker", "kind", "use"), table.cells(table.MAKERS, table.uses_of))
def test_a_use_waits_for_pending_work(maker, kind, use, start):
    table.check_use(maker, kind, use, start)


def of_kinds(maker: table.Maker, with_host_task: bool) -> table.Maker:
    kinds = (kind for kind in maker.kinds if (kind in table.WITH_HOST_TASK) == with_host_task)
    return maker._replace(kinds=tuple(kinds))


HANDED = {
    name: of_kinds(maker, False)
    for name, maker in table.MAKERS.items()
    if name != "library that orders streams"  # see test_producers.py
}
BEHIND_TASK = {name: of_kinds(maker, True) for name, maker in table.MAKERS.items()}
OF_C = {name: maker for name, maker in table.MAKERS.items() if maker.gives == "tensor"}


@pytest.mark.parametrize(
    ("maker", "kind", "hand", "to"), table.cells(HANDED, table.hands_of, table.CONSUMERS)
)
def test_a_queue_comes_behind_pending_work(maker, kind, hand, to, start):
    consumer = table.QUEUES[to.removesuffix(", by a kernel")]()
    table.check_hand(maker, kind, hand, consumer, start)


@pytest.mark.parametrize(
    ("maker", "kind", "hand", "to"), table.cells(BEHIND_TASK, table.hands_of, table.NAMED)
)
def test_a_queue_comes_behind_a_pending_host_task(maker, kind, hand, to, start):
    table.check_hand(maker, kind, hand, table.QUEUES[to](), start)


@pytest.mark.parametrize(("maker", "kind", "hand"), table.cells(OF_C, lambda _: table.HANDS_IN_C))
def test_the_queue_of_the_c_exchange_api_comes_behind_pending_work(maker, kind, hand, start):
    table.check_hand(maker, kind, hand, package_queue(), start)


# --- the host waits between two contexts


def test_a_hand_over_to_another_context_waits(producer, foreign_queue, start):
    pending = start(producer, "host")
    x = tensor_of(pending)
    answer_behind(pending, lambda: x.__dlpack__(stream=foreign_queue))
    assert table.bits(np.frombuffer(pending.memory, "f4")) == pending.values


@pytest.mark.parametrize("use", ["numpy", "stream", "copy_from it"])
def test_a_use_waits_for_a_consumer_of_another_context(use, foreign_queue, start):
    x = to_dlpack_tensor(allocate("host", 4 * COUNT, new_queue()), dtype="f4")
    _taken = x.__dlpack__(stream=foreign_queue)
    pending = start(foreign_queue)
    call = table.USES["tensor"].get(use) or (lambda x: table.HANDS["tensor"][use](x, new_queue()))
    answer_behind(pending, lambda: call(x))


def test_an_array_waits_for_a_consumer_of_what_an_extension_made_of_its_capsule(start):
    x, consumer = from_dlpack(np.zeros(COUNT, np.float32), device=new_queue()), new_queue()
    made = table.extension("nanobind").given_back(OldArray(x.__dlpack__()))
    _taken = made.__dlpack__(stream=consumer, max_version=NEWEST)
    pending = start(consumer)
    answer_behind(pending, x.wait)


def test_the_queue_that_takes_a_capsule_waits_for_other_consumers_pending_work(consumer, start):
    x = to_dlpack_tensor(allocate("device", 4 * COUNT, new_queue()), dtype="f4", queue=new_queue())
    x.copy_from(np.zeros(COUNT, np.float32))
    taken = from_dlpack(x, device=new_queue())
    pending = start(taken.sycl_queue, into=as_usm_memory(x))
    _made = from_dlpack(x.__dlpack__(stream=-1, max_version=NEWEST), device=consumer)
    check_order(consumer, pending)


# --- who does not wait


Held = tuple[Any, ...]  # pending work, and what must be kept until its end


def with_minus_one(start: table.Start) -> Held:
    pending = start(new_queue())
    x = tensor_of(pending)
    x.__dlpack__(stream=-1, max_version=NEWEST)
    assert from_dlpack(x.__dlpack__(stream=-1)).sycl_queue == pending.queue
    return (pending,)


def shared_for_nobody(start: table.Start) -> Held:
    pending = start(new_queue())
    from_dlpack(tensor_of(pending))
    from_dlpack(table.by_property(pending.memory, pending.queue))
    return (pending,)


def owned_views(start: table.Start) -> Held:
    """Pass views that leave their own queue to a section."""
    pending = start(new_queue())
    x = tensor_of(pending)
    for binding in ("nanobind", "pybind11"):
        assert table.extension(binding).given_back(x).sycl_queue == pending.queue
    return (pending,)


def refused_arguments(start: table.Start) -> Held:
    pending = start(new_queue())
    x = tensor_of(pending)
    for binding in ("nanobind", "pybind11"):
        for other in ({"dtype": "i4"}, {"shape": (6,), "strides": (2,)}):
            with pytest.raises((TypeError, ConversionError)):
                table.extension(binding).rank_one(to_dlpack_tensor(x, **({"dtype": "f4"} | other)))
    assert table.extension("nanobind").is_row(x)
    return (pending,)


def refused_exports(start: table.Start) -> Held:
    pending, consumer = start(new_queue()), new_queue(in_order=True)
    for keywords in ({"max_version": 1}, {"copy": "x"}, {"dl_device": (8, 0)}):
        with refused("request_unsupported", *keywords):
            tensor_of(pending).__dlpack__(stream=consumer, **keywords)
    assert Reader(consumer, pending.memory).seen == ZEROS
    return (pending,)


def another_queue_of_the_context(start: table.Start) -> Held:
    pending = start(new_queue())
    to_dlpack_tensor(TypedArray(pending.memory, syclobj=pending.queue.sycl_context)).wait()
    return (pending,)


def the_producer(start: table.Start) -> Held:
    """Require that a producer does not wait for its consumers."""
    producer, consumer = new_queue(), new_queue(in_order=True)
    busy = start(consumer)
    memory = allocate("device", 4 * COUNT, producer)
    to_dlpack_tensor(memory, queue=producer).__dlpack__(stream=consumer)
    assert Reader(producer, memory).seen != ZEROS
    return (busy,)


def other_tensors(start: table.Start) -> Held:
    """Wait for tensors that do not know to whom another one of their bytes was given."""
    pending = start(new_queue())
    array = TypedArray(pending.memory, syclobj=pending.queue.sycl_context)
    x, other = (to_dlpack_tensor(array, queue=new_queue()) for _ in range(2))
    taken = other.__dlpack__(stream=pending.queue)
    x.wait()
    return pending, taken


def consumers_that_are_gone(start: table.Start) -> Held:
    """Submit after the capsule went, which is not known."""
    x, queue = table.zeros(new_queue()), new_queue()
    x.__dlpack__(stream=queue)
    x.wait()
    pending = table.start_on(start, x, queue)
    assert table.bits(x.numpy()) == ZEROS
    return pending, x


def copies_for_a_queue(start: table.Start) -> Held:
    """Make copies, which wait for what they copy and for no other work of their queue."""
    consumer = new_queue(in_order=True)
    pending = start(consumer)
    owner = allocate("device", 48, new_queue())
    finished = to_dlpack_tensor(TypedArray(owner, syclobj=consumer.sycl_context))
    made = (
        from_dlpack(finished.numpy(), device=consumer),
        from_dlpack(finished.numpy().__dlpack__(), device=consumer),
        from_dlpack(finished, copy=True, device=consumer),
        from_dlpack(finished, usm_type="shared", device=consumer),
    )
    for copied in made:
        assert copied.sycl_queue == consumer
    return pending, made


def copies_behind_the_c_exchange_api(start: table.Start) -> Held:
    pending = start(new_queue())
    ExchangeAPI(DLPackTensor).borrow(tensor_of(pending))
    return pending, from_dlpack(np.arange(3), device=table.HERE)


NOT_WAITING: tuple[Callable[[table.Start], Held], ...] = (
    *(with_minus_one, shared_for_nobody, owned_views),
    *(refused_arguments, refused_exports, another_queue_of_the_context, the_producer),
    *(other_tensors, consumers_that_are_gone, copies_for_a_queue),
    copies_behind_the_c_exchange_api,
)


@pytest.mark.parametrize("act", NOT_WAITING, ids=lambda act: act.__name__)
def test_nobody_else_waits(act, start):
    def start_until_late(*arguments: Any, **keywords: Any) -> PendingFill:
        pending = start(*arguments, **keywords)
        pending.open_later(LATE)
        return pending

    pending, *_kept = act(start_until_late)
    assert pending.is_pending
    assert Reader(new_queue(), pending.memory).seen == ZEROS
    pending.end()  # before what is kept goes: freeing memory waits for its queues


@pytest.mark.parametrize("usm", ["host", "shared"])
def test_with_minus_one_the_host_sees_pending_work_end(usm, start):
    pending = start(new_queue(), usm)
    capsule = tensor_of(pending).__dlpack__(dl_device=table.HOST, stream=-1)
    assert table.bits(table.on_host(capsule)) == ZEROS
    assert pending.is_pending
    pending.end()
    assert table.bits(table.on_host(capsule)) == pending.values


@pytest.mark.parametrize("usm", ["host", "shared"])
def test_a_view_for_the_host_waits_for_pending_work(usm, start):
    pending = start(new_queue(), usm)
    view = answer_behind(pending, tensor_of(pending).host_view)
    assert table.bits(np.asarray(view)) == pending.values


# --- queues that are given, and their lists


@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "out of order, by a kernel"])
def test_a_queue_comes_behind_its_own_pending_work(in_order, start):
    queue = new_queue(in_order=in_order)
    pending = start(queue)
    tensor_of(pending).__dlpack__(stream=queue)
    check_order(queue, pending)


@pytest.mark.parametrize("lend", ["by stream", "as a view"])
def test_consumers_come_and_go_behind_pending_work_in_order(lend, start):
    """At most eight rows are kept whose holder is gone; the tenth queue comes behind the first."""
    x = table.zeros(new_queue(in_order=True))
    queues = [new_queue(in_order=True) for _ in range(19)]  # the last comes behind the tenth
    pending = table.start_on(start, x, queues[0])
    for queue in queues:
        answer_at_once(pending, lambda queue=queue: table.LENDS[lend](x, queue))
    reader = Reader(queues[-1], pending.memory)  # kept: freeing its memory would wait
    assert reader.is_held
    assert table.bits(answer_behind(pending, x.numpy)) == reader.seen == pending.values


def test_copy_from_waits_for_the_queue_that_it_is_given(start):
    pending = start(new_queue())
    x = to_dlpack_tensor(TypedArray(pending.memory, syclobj=pending.queue.sycl_context))
    values = np.full(COUNT, table.WRITTEN, "f4")
    answer_behind(pending, lambda: x.copy_from(values, queue=pending.queue))
    assert np.array_equal(x.numpy(), values)


def test_copy_from_waits_before_it_reads_values_in_the_same_memory(start):
    pending = start(new_queue(), "shared")
    seen = np.frombuffer(pending.memory, np.float32)
    answer_behind(pending, lambda: tensor_of(pending).copy_from(seen[::-1]))
    assert table.bits(seen) == pending.values


@pytest.mark.parametrize("give", [ForeignArray, ForeignTensor.capsule], ids=["array", "capsule"])
def test_a_copy_waits_for_the_queue_that_it_is_for(give, consumer, start):
    """The producer put its work into the queue before it returned, or gave the capsule."""
    pending = start(consumer)
    x = give(table.foreign(pending.memory))
    taken = answer_behind(pending, lambda: from_dlpack(x, usm_type="shared", device=consumer))
    assert table.bits(taken.numpy()) == pending.values


@pytest.mark.parametrize("stream", ["a queue", -1])
@pytest.mark.parametrize("version", [None, NEWEST])
def test_a_capsule_is_of_the_queue_that_its_export_was_given(stream, version, start):
    pending, given = start(new_queue()), new_queue(in_order=True)
    stream, known = (given, given) if stream == "a queue" else (stream, pending.queue)
    export = tensor_of(pending).__dlpack__
    taken = from_dlpack(export(stream=stream, max_version=version))
    assert taken.sycl_queue == known
    answer_behind(pending, taken.numpy)


def test_the_end_of_a_section_waits_for_pending_work(producer, start):
    """So what the caller does next with its arrays comes after the function."""
    pending = start(new_queue())
    x, out = table.zeros(producer), table.zeros(producer)
    function = table.extension("nanobind").copy_into_behind
    answer_behind(pending, lambda: function(producer, x, out, [pending.event], True))


def test_a_copy_that_waits_holds_up_no_other_copy(producer, start):
    pending = start(producer)
    waiting = Waiting(tensor_of(pending).numpy)
    other = to_dlpack_tensor(allocate("device", 48, new_queue(in_order=True)))
    for _ in range(3):
        assert other.numpy().tobytes() == bytes(range(48))
        assert from_dlpack(np.arange(3), device=table.HERE).numpy().tolist() == [0, 1, 2]
        assert from_dlpack(other, copy=True).numpy().tobytes() == bytes(range(48))
    assert pending.is_pending
    assert waiting.is_waiting()
    pending.open()
    assert table.bits(waiting.end()) == pending.values
