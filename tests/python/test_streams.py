# SPDX-License-Identifier: Apache-2.0
"""`stream` and the queue of a tensor: who is ordered behind whom, shown with work in flight."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import dpctl
import numpy as np
import pytest
from c_exchange_api import ExchangeAPI, Table
from capsules import (
    LEGACY,
    NEWEST,
    ForeignArray,
    ForeignTensor,
    OldArray,
    Ordering,
    bytes_on_host,
    content_of,
    dpctl_queue,
    name_of,
    new_capsule,
    package_queue,
)
from dpctl import memory as dpctl_memory
from memory_sources import Carrier, TypedArray, address_of, allocate, new_queue
from pending_work import (
    COUNT,
    VALUES,
    ZEROS,
    PendingFill,
    Reader,
    Waiting,
    answer_behind,
    check_order,
    is_complete,
)
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor

HOST = (1, 0)

Start = Callable[..., PendingFill]


@pytest.fixture
def pending(start: Start) -> PendingFill:
    """Return work in an out-of-order queue, behind a gate."""
    return start(new_queue())


def tensor_of(pending: PendingFill) -> DLPackTensor:
    """Return a tensor of the memory that is being filled, which knows the queue."""
    return to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue)


# --- work in flight: with the hand-over and without


def test_the_consumer_waits_for_the_producer_and_the_export_for_nobody(producer, consumer, start):
    pending = start(producer)
    tensor = tensor_of(pending)
    capsule = tensor.__dlpack__(stream=consumer, max_version=NEWEST)
    assert content_of(capsule).dl_tensor.data == tensor.data
    check_order(consumer, pending)


class Derived(dpctl.SyclQueue):
    """A queue of somebody's own class."""


class Lazy:
    def __init__(self, **attributes: Callable[[], Any]) -> None:
        self.attributes = attributes

    def __getattr__(self, name: str) -> Any:
        if name not in self.attributes:
            raise AttributeError(name)
        return self.attributes[name]()


def stream_of(sycl_queue: Any) -> Any:
    return SimpleNamespace(sycl_queue=sycl_queue)


FORMS: dict[str, Callable[[Any], Any]] = {
    "a subclass": lambda queue: Derived(queue._get_capsule()),
    "a capsule": lambda queue: queue._get_capsule(),
    "an object with _get_capsule": Carrier,
    "sycl_queue, a queue": stream_of,
    "sycl_queue, a capsule": lambda queue: stream_of(queue._get_capsule()),
    "sycl_queue, an address": lambda queue: stream_of(queue.addressof_ref()),
    "an address": lambda queue: queue.addressof_ref(),
    "memory with a queue": lambda queue: dpctl_memory.MemoryUSMHost(4, queue=queue),
    "a tensor with a queue": lambda queue: to_dlpack_tensor(
        dpctl_memory.MemoryUSMHost(4), queue=queue
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_queue_is_handed_over_in_a_legacy_capsule_too(form, pending):
    consumer = new_queue(in_order=True)
    stream = FORMS[form](consumer)
    tensor = tensor_of(pending)
    capsule = tensor.__dlpack__(stream=stream, dl_device=(14, 0), copy=False)
    assert name_of(capsule) == LEGACY
    with wrong_argument(ValueError, "stream", "found a queue"):  # which orders no work of the host
        tensor.__dlpack__(stream=stream, dl_device=HOST)
    check_order(consumer, pending)


def test_with_minus_one_the_consumer_sees_unfinished_values(consumer, pending):
    tensor_of(pending).__dlpack__(stream=-1, max_version=NEWEST)
    assert Reader(consumer, pending.memory).seen == ZEROS
    assert pending.is_pending


SAYING_NOTHING: dict[str, Callable[[DLPackTensor], Any]] = {
    "no keyword": lambda tensor: tensor.__dlpack__(),
    "stream=None": lambda tensor: tensor.__dlpack__(stream=None, max_version=NEWEST),
    "the own device": lambda tensor: tensor.__dlpack__(dl_device=tensor.device, copy=False),
    "the array interface": lambda tensor: tensor.__sycl_usm_array_interface__,
    "dpctl.memory": dpctl_memory.as_usm_memory,
    "wait": lambda tensor: tensor.wait(),
}


@pytest.mark.parametrize("way", SAYING_NOTHING)
def test_a_consumer_that_says_nothing_of_queues_gets_finished_values(way, producer, start):
    pending = start(producer)
    answer_behind(pending, partial(SAYING_NOTHING[way], tensor_of(pending)))
    assert Reader(new_queue(in_order=True), pending.memory).seen == VALUES


@pytest.mark.parametrize("way", ["no keyword", "wait"])
def test_the_wait_needs_no_gil_for_the_host_tasks_of_dpctl(way, producer, start):
    """Such a task, one after each kernel, takes it."""
    pending = start(producer)
    last = pending.keep_alive()
    answer_behind(pending, partial(SAYING_NOTHING[way], tensor_of(pending)))
    assert is_complete(last)


@pytest.mark.parametrize("which", [package_queue, dpctl_queue], ids=["the package's", "dpctl's"])
def test_a_tensor_that_knows_no_queue_waits_for_those_of_the_package_and_of_dpctl(which, start):
    memory = allocate("device", 4 * COUNT, new_queue())
    tensor = to_dlpack_tensor(TypedArray(memory, syclobj=memory.sycl_context))
    assert tensor.sycl_queue == package_queue()
    answer_behind(start(which()), tensor.wait)


def test_a_tensor_that_knows_no_queue_waits_for_no_other(pending):
    memory = TypedArray(pending.memory, syclobj=pending.queue.sycl_context)
    to_dlpack_tensor(memory).wait()
    assert pending.is_pending


@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "out of order, by a kernel"])
def test_one_queue_is_ordered_behind_itself(in_order, start):
    queue = new_queue(in_order=in_order)
    pending = start(queue)
    tensor_of(pending).__dlpack__(stream=queue)
    check_order(queue, pending)


def test_the_producer_does_not_wait_for_the_consumer(producer, memory, start):
    consumer = new_queue(in_order=True)
    busy = start(consumer)
    to_dlpack_tensor(memory, queue=producer).__dlpack__(stream=consumer)
    assert Reader(producer, memory).seen != ZEROS
    assert busy.is_pending


def test_a_queue_of_another_context_makes_the_host_wait(producer, foreign_queue, start):
    pending = start(producer, "host")
    tensor = tensor_of(pending)
    answer_behind(pending, lambda: tensor.__dlpack__(stream=foreign_queue))
    assert not pending.is_pending
    assert np.frombuffer(pending.memory, np.int32).tolist() == VALUES


def test_a_tensor_waits_for_a_consumer_of_another_context(foreign_queue, start, queue):
    tensor = to_dlpack_tensor(allocate("host", 48, queue))
    tensor.__dlpack__(stream=foreign_queue)
    pending = start(foreign_queue)
    assert answer_behind(pending, tensor.wait) is None


@pytest.mark.parametrize(
    ("keyword", "value"), [("max_version", 1), ("copy", "x"), ("dl_device", (8, 0))]
)
def test_a_refused_export_hands_nothing_over(consumer, pending, keyword, value):
    tensor = tensor_of(pending)
    with refused("request_unsupported", keyword):
        tensor.__dlpack__(**({"stream": consumer} | {keyword: value}))
    assert Reader(consumer, pending.memory).seen == ZEROS
    assert pending.is_pending


# --- behind a host task, by which dpctl and dpnp keep arrays alive


HANDING: dict[str, Callable[[Any, Any], Any]] = {
    "__dlpack__": lambda x, queue: tensor_of(x).__dlpack__(stream=queue, max_version=NEWEST),
    "from_dlpack of ours": lambda x, queue: from_dlpack(tensor_of(x), device=queue),
    "from_dlpack": lambda x, queue: from_dlpack(Producer(x.memory, x.queue), device=queue),
}


@pytest.mark.parametrize("way", HANDING)
def test_a_hand_over_behind_a_host_task_returns_at_once(way, producer, start):
    consumer = new_queue(in_order=True)
    pending = start(producer)
    last = pending.keep_alive()
    handing = Waiting(lambda: HANDING[way](pending, consumer))
    assert not handing.is_waiting()
    assert not is_complete(last)
    copier = Reader(consumer, pending.memory, copies=True)
    assert pending.is_pending
    pending.open()
    assert copier.seen == VALUES
    assert is_complete(last)


@pytest.mark.parametrize("way", HANDING)
def test_a_hand_over_to_an_out_of_order_queue_waits_for_a_host_task(way, producer, start):
    """There `queue::memcpy` would overtake a barrier that waits for one (DPC++ 2026.2)."""
    consumer = new_queue()
    pending = start(producer)
    last = pending.keep_alive()
    answer_behind(pending, lambda: HANDING[way](pending, consumer))
    assert is_complete(last)
    assert Reader(consumer, pending.memory, copies=True).seen == VALUES


# --- the host, and copies


def on_host(capsule: Any) -> list[int]:
    return np.frombuffer(bytes_on_host(capsule), np.int32).tolist()


def now(tensor: Any) -> list[int]:
    """Return the int32 in a tensor as they are now: nothing that it knows of is pending."""
    values: list[int] = from_dlpack(OldArray(tensor.__dlpack__(stream=-1))).numpy().tolist()
    return values


def copied(tensor: Any, stream: Any = None) -> list[int]:
    return now(from_dlpack(OldArray(tensor.__dlpack__(copy=True, stream=stream))))


def with_gaps(tensor: DLPackTensor) -> DLPackTensor:
    """Return a tensor of every third of the int32, backwards."""
    return to_dlpack_tensor(tensor, shape=(4,), strides=(-3,), byte_offset=44)


WAITING: dict[str, Callable[[DLPackTensor], list[int]]] = {
    "numpy()": lambda tensor: tensor.numpy().tolist(),
    "the host": lambda tensor: on_host(tensor.__dlpack__(dl_device=HOST)),
    "a copy for the host whatever is pending": lambda tensor: on_host(
        tensor.__dlpack__(dl_device=HOST, copy=True, stream=-1)
    ),
    "a copy in a capsule": copied,
    "a copy in a capsule for a queue": lambda tensor: copied(tensor, stream=new_queue()),
    "numpy() of a view with gaps": lambda tensor: with_gaps(tensor).numpy().tolist() * 3,
    "a copy of a view with gaps": lambda tensor: now(from_dlpack(with_gaps(tensor), copy=True)) * 3,
}


@pytest.mark.parametrize("usm", ["device", "shared"])
@pytest.mark.parametrize("way", WAITING)
def test_what_the_host_gets_waits_for_pending_work(way, usm, start):
    pending = start(new_queue(in_order=usm == "device"), usm)
    tensor = tensor_of(pending)
    assert answer_behind(pending, lambda: WAITING[way](tensor)) == VALUES


@pytest.mark.parametrize("usm", ["host", "shared"])
def test_minus_one_lets_the_host_look_at_unfinished_values(usm, start):
    pending = start(new_queue(in_order=True), usm)
    capsule = tensor_of(pending).__dlpack__(dl_device=HOST, stream=-1)
    assert on_host(capsule) == ZEROS
    assert pending.is_pending
    pending.end()
    assert on_host(capsule) == VALUES


# --- the queues of others that use the memory


def exported(x: Any) -> Any:
    """Give a tensor to a consumer that names no queue, as dpnp does, and return where it works."""
    x.__dlpack__(max_version=NEWEST)
    return dpctl_queue()


def seen_by_dpctl(x: Any) -> Any:
    dpctl_memory.as_usm_memory(x)
    return dpctl_queue()


# Where a consumer works, and what it got.
LENDING: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "to a consumer without a queue": lambda x: (exported(x), None),
    "a capsule of it, to a consumer without a queue": lambda x: (
        exported(from_dlpack(x.__dlpack__(max_version=NEWEST))),
        None,
    ),
    "a view of it, to a consumer without a queue": lambda x: (exported(with_gaps(x)), None),
    "to a consumer with a queue": lambda x: (
        queue := new_queue(),
        x.__dlpack__(stream=queue, max_version=NEWEST),
    ),
    "as a tensor with a queue": lambda x: (queue := new_queue(), from_dlpack(x, device=queue)),
    "as a view with a queue": lambda x: (
        queue := new_queue(),
        to_dlpack_tensor(x, shape=12, queue=queue),
    ),
}
MADE: dict[str, Callable[[], DLPackTensor]] = {
    "a copy": lambda: from_dlpack(np.zeros(COUNT, np.int32), device=new_queue(in_order=True)),
    "a copy without a queue": lambda: from_dlpack(np.zeros(COUNT, np.int32), device=(14, 0)),
    "memory of another library": lambda: to_dlpack_tensor(
        allocate("device", 4 * COUNT, new_queue()), dtype="i4", queue=new_queue(in_order=True)
    ),
}


def fill(start: Start, x: DLPackTensor, queue: Any) -> PendingFill:
    """Start work on a tensor's memory of which the tensor is told nothing."""
    described = {"data": (x.data, False), "shape": x.shape, "typestr": "<i4", "version": 1}
    array = SimpleNamespace(__sycl_usm_array_interface__=described | {"syclobj": queue})
    return start(queue, into=dpctl_memory.as_usm_memory(array))


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("lending", LENDING)
def test_a_tensor_waits_for_whom_it_was_given_to(lending, made, start):
    x = MADE[made]()
    queue, taken = LENDING[lending](x)
    pending = fill(start, x, queue)
    del taken  # work that was submitted before is waited for
    assert answer_behind(pending, x.numpy).tolist() == VALUES
    assert x.numpy().tolist() == VALUES


def test_a_copy_knows_the_queue_that_it_was_made_for_as_long_as_it_lives(consumer, start):
    copied = from_dlpack(OldArray(MADE["a copy"]().__dlpack__(copy=True, stream=consumer)))
    copied.wait()
    pending = fill(start, copied, consumer)
    assert answer_behind(pending, copied.numpy).tolist() == VALUES


def test_a_copy_waits_for_no_work_that_the_c_exchange_api_is_behind(start):
    pending = start(new_queue(in_order=True))
    borrowed = tensor_of(pending)
    ExchangeAPI(DLPackTensor).borrow(borrowed)
    made = from_dlpack(np.arange(3), device=(14, 0))
    assert pending.is_pending
    pending.end()  # before it goes: freeing its memory waits for its queue
    assert made.numpy().tolist() == [0, 1, 2]


def test_what_a_named_consumer_submits_after_its_capsule_went_is_not_known(start):
    x = MADE["a copy"]()
    queue = new_queue()
    taken = x.__dlpack__(stream=queue)
    del taken
    x.wait()
    pending = fill(start, x, queue)
    assert x.numpy().tolist() == ZEROS
    assert pending.is_pending
    pending.end()  # before `x` goes: freeing its memory waits for all kernels


def test_consumers_come_and_go_behind_held_work_without_waiting_and_in_order(start):
    """At most eight rows are kept whose holder is gone; the newest comes behind the oldest."""
    x = MADE["a copy"]()
    queues = [new_queue(in_order=True) for _ in range(20)]
    pending = fill(start, x, queues[0])
    for queue in queues:
        taken = x.__dlpack__(stream=queue)
        del taken
    assert pending.is_pending
    reader = Reader(queues[-1], pending.memory)  # kept: freeing its memory would wait
    assert reader.is_held
    assert answer_behind(pending, x.numpy).tolist() == VALUES
    assert reader.seen == VALUES


def test_a_tensor_without_a_queue_waits_for_dpctl_which_saw_its_interface(start):
    x = MADE["a copy without a queue"]()
    pending = fill(start, x, seen_by_dpctl(x))
    assert answer_behind(pending, x.numpy).tolist() == VALUES


USES: dict[str, Callable[[Any], Any]] = SAYING_NOTHING | {
    "the host": WAITING["the host"],
    "a copy": lambda x: from_dlpack(x, copy=True),
    "a copy in a capsule": lambda x: x.__dlpack__(copy=True),
    "copy_from": lambda x: x.copy_from(np.ones(COUNT, np.int32)),
    "copy_from, of USM": lambda x: x.copy_from(MADE["a copy"]()),
    "copy_from, as values": lambda x: MADE["a copy"]().copy_from(x),
    "host_view": lambda x: x.host_view(),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_waits_for_a_consumer_without_a_queue(use, queue, start):
    x = from_dlpack(np.zeros(COUNT, np.int32), device=queue, usm_type="shared")
    answer_behind(fill(start, x, exported(x)), partial(USES[use], x))


def test_a_tensor_does_not_know_who_was_given_another_one_of_its_bytes(start):
    memory = allocate("device", 4 * COUNT, new_queue())
    x, other = (to_dlpack_tensor(memory, dtype="i4", queue=new_queue()) for _ in range(2))
    queue = new_queue()
    taken = other.__dlpack__(stream=queue)
    pending = start(queue, into=memory)
    x.wait()
    assert pending.is_pending
    del taken


@pytest.mark.parametrize("made", MADE)
def test_a_consumer_with_a_queue_comes_behind_one_without(made, consumer, start):
    x = MADE[made]()
    pending = fill(start, x, exported(x))
    x.__dlpack__(stream=consumer)
    check_order(consumer, pending)


def test_a_tensor_with_a_queue_comes_behind_a_consumer_without(consumer, start):
    x = MADE["a copy"]()
    pending = fill(start, x, exported(x))
    assert from_dlpack(x, device=consumer).data == x.data
    check_order(consumer, pending)


# --- what is no stream


def test_what_ends_the_program_is_no_refusal(tensor):
    def stop():
        raise KeyboardInterrupt

    for attributes in (
        {"_get_capsule": stop},
        {"_get_capsule": lambda: stop},
        {"_get_capsule": lambda: lambda: None, "sycl_queue": stop},
    ):
        with pytest.raises(KeyboardInterrupt):
            tensor.__dlpack__(stream=Lazy(**attributes))


NO_STREAMS: dict[str, Callable[[Any], Any]] = {
    **{str(number): lambda _, number=number: number for number in (0, 1, 2, -2, 4097, 2**64)},
    "a bool": lambda queue: True,
    "NumPy's integer": lambda queue: np.int64(-1),
    "a context": lambda queue: queue.sycl_context,
    "a capsule of a context": lambda queue: queue.sycl_context._get_capsule(),
    "a consumed capsule": lambda queue: new_capsule(64, b"used_SyclQueueRef"),
    "_get_capsule that fails": lambda queue: Lazy(_get_capsule=lambda: 1 / 0),
    "_get_capsule that fails when called": lambda queue: Lazy(_get_capsule=lambda: lambda: 1 / 0),
    "sycl_queue that fails": lambda queue: Lazy(sycl_queue=lambda: 1 / 0),
    "_get_capsule, no function": lambda queue: Lazy(_get_capsule=lambda: 5),
    "_get_capsule, an address": lambda queue: Lazy(_get_capsule=lambda: queue.addressof_ref),
    "sycl_queue, None": lambda queue: stream_of(None),
    "an address one off": lambda queue: queue.addressof_ref() + 1,
    "an array": lambda queue: np.zeros(2),
    "an address as a float": lambda queue: float(queue.addressof_ref()),
}


@pytest.mark.parametrize("device", [None, HOST], ids=str)
@pytest.mark.parametrize("name", NO_STREAMS)
def test_what_is_no_queue_is_a_value_error(name, device, queue, tensor):
    stream = NO_STREAMS[name](queue)
    with wrong_argument(ValueError, "stream", "None, -1, a place that knows a queue, or the"):
        tensor.__dlpack__(stream=stream, dl_device=device)
    assert tensor.__dlpack__(stream=queue) is not None


# --- the queue that a tensor knows


class Producer:
    """An array of another library whose queue is a property; it takes no `stream`."""

    def __init__(self, memory: Any, sycl_queue: Any) -> None:
        self.foreign = ForeignTensor(address_of(memory), shape=(COUNT,), dtype=(0, 32, 1))
        self._sycl_queue = sycl_queue

    @property
    def sycl_queue(self) -> Any:
        return self._sycl_queue

    def __dlpack__(self, *, max_version: Any = None) -> Any:
        return self.foreign.capsule()


def proxy(memory: Any, queue: Any) -> Any:
    """Return an array whose type says nothing: all that it has is given by `__getattr__`."""
    own = Producer(memory, queue)
    return Lazy(__dlpack__=lambda: own.__dlpack__, sycl_queue=lambda: own.sycl_queue)


class Instance:
    """An array of another library whose queue stands in the object, not in its type."""

    def __init__(self, memory: Any, queue: Any) -> None:
        self.sycl_queue = queue
        self.give = Producer(memory, queue).__dlpack__

    def __dlpack__(self, *, max_version: Any = None) -> Any:
        return self.give()


def tabled(memory: Any, queue: Any) -> Any:
    """Return an array that says its queue in the table of its type, as PyTorch's tensors do."""
    table = Table(ForeignTensor(address_of(memory), shape=(COUNT,), dtype=(0, 32, 1)))
    table.stream = queue.addressof_ref() if queue else None
    array = table.array()
    array.table = table
    return array


def ours(memory: Any, queue: Any) -> Any:
    source = memory if queue else TypedArray(memory, syclobj=memory.sycl_queue.sycl_context)
    return to_dlpack_tensor(source, dtype="i4", queue=queue)


KINDS = [ours, tabled, Producer, Instance, proxy]
of_each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@of_each_kind
def test_an_import_for_a_queue_is_ordered_behind_the_queue_of_the_producer(kind, consumer, pending):
    taken = from_dlpack(kind(pending.memory, pending.queue), device=consumer)
    assert taken.sycl_queue == consumer
    check_order(consumer, pending)


@of_each_kind
@pytest.mark.parametrize("keywords", [{"copy": True}, {"usm_type": "host"}], ids=str)
def test_a_copy_waits_for_the_queue_of_the_producer(kind, producer, keywords, start):
    pending = start(producer)
    array = kind(pending.memory, producer)
    copied = answer_behind(pending, partial(from_dlpack, array, **keywords))
    assert copied.numpy().tolist() == VALUES


@of_each_kind
def test_a_copy_for_a_queue_waits_for_the_queue_of_the_producer(kind, producer, consumer, start):
    pending = start(producer)
    array = kind(pending.memory, producer)
    copied = answer_behind(pending, lambda: from_dlpack(array, copy=True, device=consumer))
    assert copied.numpy().tolist() == VALUES


def in_a_capsule(memory: Any, queue: None) -> Any:
    return ForeignTensor(address_of(memory), shape=(COUNT,), dtype=(0, 32, 1)).capsule()


SAYING_NO_QUEUE = pytest.mark.parametrize(
    "kind", [*KINDS, in_a_capsule], ids=lambda kind: kind.__name__
)
TAKING: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda array: from_dlpack(array).numpy(),
    "a copy": lambda array: from_dlpack(array, copy=True).numpy(),
    "a copy for a queue": lambda array: from_dlpack(array, copy=True, device=new_queue()).numpy(),
}


@SAYING_NO_QUEUE
@pytest.mark.parametrize("way", TAKING)
def test_an_array_that_says_no_queue_is_taken_to_be_on_that_of_dpctl(kind, way, start):
    memory = allocate("device", 4 * COUNT, new_queue())
    pending = start(dpctl_queue(), into=memory)
    taken = answer_behind(pending, lambda: TAKING[way](kind(memory, None)))
    assert taken.tolist() == VALUES


@pytest.mark.parametrize("way", TAKING)
def test_an_array_that_says_no_queue_may_order_that_of_dpctl_behind_its_own(way, producer, start):
    memory = allocate("device", 4 * COUNT, producer)
    foreign = ForeignTensor(address_of(memory), shape=(COUNT,), dtype=(0, 32, 1))
    pending = start(producer, into=memory)
    taken = answer_behind(pending, lambda: TAKING[way](Ordering(foreign, producer)))
    assert taken.tolist() == VALUES


@of_each_kind
def test_values_that_say_no_queue_are_taken_to_be_on_that_of_dpctl(kind, start):
    memory = allocate("device", 4 * COUNT, new_queue())
    x = MADE["a copy"]()
    pending = start(dpctl_queue(), into=memory)
    answer_behind(pending, lambda: x.copy_from(kind(memory, None)))
    assert x.numpy().tolist() == VALUES


@SAYING_NO_QUEUE
def test_a_queue_is_ordered_behind_that_of_dpctl_for_an_array_that_says_none(kind, consumer, start):
    memory = allocate("device", 4 * COUNT, new_queue())
    pending = start(dpctl_queue(), into=memory)
    x = from_dlpack(kind(memory, None), device=consumer)
    check_order(consumer, pending)
    assert x.sycl_queue == consumer


def test_a_copy_of_a_bare_capsule_waits_for_the_queue_that_it_is_for(pending):
    capsule = to_dlpack_tensor(pending.memory, dtype="i4").__dlpack__(stream=-1)
    queue = pending.queue
    copied = answer_behind(pending, lambda: from_dlpack(capsule, copy=True, device=queue))
    assert copied.numpy().tolist() == VALUES


@of_each_kind
def test_a_tensor_knows_the_queue_of_its_producer_or_the_one_that_it_is_for(kind, memory):
    own, asked = new_queue(in_order=True), new_queue(in_order=True)
    no_queue = kind(memory, None)
    assert from_dlpack(no_queue).sycl_queue == package_queue()
    x = kind(memory, own)  # of the same type as the one that said none
    assert from_dlpack(x).sycl_queue == from_dlpack(x, device=(14, 0)).sycl_queue == own
    assert from_dlpack(x, device=asked).sycl_queue == asked
    assert from_dlpack(x, device=asked, copy=True).sycl_queue == asked
    for keywords in ({"copy": True}, {"usm_type": "host"}):  # copies on the same device
        assert from_dlpack(x, **keywords).sycl_queue == own


def test_a_tensor_knows_the_queue_that_it_was_made_with_or_that_its_object_names(queue, memory):
    own = new_queue(in_order=True)
    assert to_dlpack_tensor(memory, queue=own).sycl_queue == own
    known = to_dlpack_tensor(memory).sycl_queue
    assert known == memory.sycl_queue == queue
    assert type(known) is dpctl.SyclQueue
    context, derived = queue.sycl_context, Derived(queue._get_capsule())
    for place in (queue, queue._get_capsule(), derived, Carrier(queue)):
        source = TypedArray(memory, syclobj=place)
        for _ in range(2):  # capsules are not consumed
            assert to_dlpack_tensor(source).sycl_queue == queue
    device = queue.sycl_device.get_filter_string()
    for place in (context, context._get_capsule(), Carrier(context), device):
        source = TypedArray(memory, syclobj=place)
        for _ in range(2):
            assert to_dlpack_tensor(source).sycl_queue == package_queue()
    for place in (own._get_capsule(), Carrier(own), own.addressof_ref()):
        assert from_dlpack(Producer(memory, place)).sycl_queue == own
    assert from_dlpack(Producer(memory, None)).sycl_queue == package_queue()
    for unknown in (5, context, context._get_capsule(), Carrier(context), "cpu", True):
        with wrong_argument(ValueError, "sycl_queue"):
            from_dlpack(Producer(memory, unknown))
    assert from_dlpack(np.zeros(3), device=own).sycl_queue == own


def test_the_interface_names_no_queue_of_another_context_on_opencl(foreign_queue, memory):
    """On Level Zero an array that says such a queue is refused."""
    outside = from_dlpack(Producer(memory, foreign_queue))
    assert outside.sycl_queue == foreign_queue
    # Copies of another view of the memory wait for the same work.
    assert to_dlpack_tensor(outside, shape=12).sycl_queue == foreign_queue
    assert outside.__sycl_usm_array_interface__["syclobj"] == dpctl_queue()
    assert dpctl_memory.as_usm_memory(outside)._pointer == address_of(memory)


# --- copies wait for what they copy, and for nothing else


def test_a_copy_that_waits_holds_up_no_other_copy(start, producer):
    pending = start(producer)
    held = tensor_of(pending)
    waiting = Waiting(lambda: held.numpy().tolist())
    other = to_dlpack_tensor(allocate("device", 48, new_queue(in_order=True)), dtype="u1")
    for _ in range(3):
        assert other.numpy().tolist() == list(range(48))
        assert from_dlpack(np.arange(3), device=(14, 0)).numpy().tolist() == [0, 1, 2]
        assert from_dlpack(other, copy=True).numpy().tolist() == list(range(48))
    assert pending.is_pending
    assert waiting.is_waiting()
    pending.open()
    assert waiting.end() == VALUES


def test_a_copy_for_a_queue_waits_for_no_other_work_of_it(start, consumer):
    pending = start(consumer)
    owner = allocate("device", 48, new_queue(in_order=True))
    source = TypedArray(owner, syclobj=consumer.sycl_context)
    finished = to_dlpack_tensor(source, dtype="u1")
    assert finished.sycl_queue == package_queue()
    made = from_dlpack(np.arange(3), device=consumer)
    of_capsule = from_dlpack(np.arange(3).__dlpack__(), device=consumer)
    copied = from_dlpack(finished, copy=True, device=consumer)
    moved = from_dlpack(finished, usm_type="shared", device=consumer)
    assert pending.is_pending
    assert made.sycl_queue == copied.sycl_queue == moved.sycl_queue == consumer
    pending.open()
    assert made.numpy().tolist() == of_capsule.numpy().tolist() == [0, 1, 2]
    assert copied.numpy().tolist() == moved.numpy().tolist() == list(range(48))


@pytest.mark.parametrize("give", [ForeignArray, ForeignTensor.capsule], ids=["array", "capsule"])
def test_a_copy_of_an_array_that_was_given_the_queue_waits_for_it(start, consumer, give):
    """The producer has put its work into the queue before it returned, or gave the capsule."""
    pending = start(consumer)
    x = give(Producer(pending.memory, None).foreign)
    taken = answer_behind(pending, partial(from_dlpack, x, usm_type="shared", device=consumer))
    assert taken.numpy().tolist() == VALUES


@pytest.mark.parametrize("version", [None, NEWEST])
@pytest.mark.parametrize("given", [True, False], ids=["a queue", "-1"])
def test_a_capsule_of_a_tensor_is_of_the_queue_that_its_export_was_given(
    start, consumer, version, given
):
    pending = start(new_queue())
    stream, known = (consumer, consumer) if given else (-1, pending.queue)
    export = partial(tensor_of(pending).__dlpack__, stream=stream, max_version=version)
    assert from_dlpack(export()).sycl_queue == known
    other = new_queue(in_order=True)
    assert from_dlpack(export(), device=other).sycl_queue == other
    check_order(other, pending)


def test_a_capsule_for_a_queue_of_another_context_is_of_the_tensors_own(foreign_queue, tensor):
    taken = from_dlpack(tensor.__dlpack__(stream=foreign_queue))
    assert taken.sycl_queue == tensor.sycl_queue


def test_a_capsule_that_is_taken_for_a_queue_is_of_that_queue(start, consumer):
    pending = start(consumer)
    taken = from_dlpack(Producer(pending.memory, None).foreign.capsule(), device=consumer)
    assert taken.sycl_queue == consumer
    assert pending.is_pending
    assert answer_behind(pending, taken.numpy).tolist() == VALUES
