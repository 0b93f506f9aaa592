# SPDX-License-Identifier: Apache-2.0
"""The table of order: who made the memory, who uses it next, on which queue, to read or to write.

dpnp and a tensor share twelve elements. dpnp's last operation on them waits for an event that a
timer completes (the gate). The next use must come after that operation: it waits, or its work is
queued behind it. A use that does neither runs before the gate opens, and gives wrong values. The
control shows that: it uses the memory without this package.
"""

import functools
import signal
from collections.abc import Callable, Iterator
from typing import Any

import dpnp
import extension_under_test
import numpy as np
import pytest
from capsules import NEWEST, OldArray
from dpctl import memory
from dpctl.utils import SequentialOrderManager
from memory_sources import address_of, new_queue
from pending_work import COUNT, PendingFill, Reader
from usm_dlpack import DLPackTensor, empty, from_dlpack, to_dlpack_tensor

DELAY = 0.05  # seconds until the gate opens
BEFORE, ADDED, WRITTEN = 1.0, 2.0, 7.0


def both_kinds() -> dict[str, Any]:
    return {"in order": new_queue(in_order=True), "out of order": new_queue()}


TENSOR_QUEUES, CONSUMERS = both_kinds(), both_kinds()
# "cached" is dpctl's queue of the device, which dpnp uses if it is given none.
DPNP_QUEUES = {"cached": dpnp.empty(1).sycl_queue} | both_kinds()
# For the gates, and for uses without this package.
GATES, UNORDERED = new_queue(), new_queue()


@functools.cache
def extension() -> Any:
    return extension_under_test.load()


def host_values(value: float = BEFORE) -> Any:
    return np.full(COUNT, value, "f4")


def read(source: Any, queue: Any = UNORDERED) -> Any:
    """Return what a kernel and a copy on a queue read."""
    readers = [Reader(queue, source, copies=copies) for copies in (False, True)]
    return np.array([reader.seen for reader in readers], np.int32).view("f4")


def write(target: Any, queue: Any = UNORDERED) -> None:
    values = memory.MemoryUSMHost(4 * COUNT, queue=queue)
    np.frombuffer(values, "f4")[:] = WRITTEN
    queue.memcpy_async(target, values, 4 * COUNT).wait()


class Shared:
    """Memory that dpnp and a tensor share, and the object of an extension that owns it, if any."""

    def __init__(self, array: Any, tensor: DLPackTensor, owner: Any = None) -> None:
        self.array, self.tensor, self.owner = array, tensor, owner
        self.memory = array.get_array().usm_data  # the array interface might wait
        assert tensor.data == address_of(self.memory)
        # dpnp itself waits when it adds a number, or an array of twelve (by oneMKL).
        self.one = dpnp.full(1, 1, dtype="f4", sycl_queue=array.sycl_queue)
        self.field = extension().Field(tensor)  # a class that keeps the tensor
        self.field.scale(1.0)  # builds the kernel

    def finish(self) -> None:
        SequentialOrderManager[self.array.sycl_queue].wait()
        for queue in (TENSOR_QUEUES | CONSUMERS).values():
            queue.wait()

    def result(self) -> Any:
        self.finish()
        return read(self.memory)


OPERATIONS: dict[str, Callable[[Shared], Any]] = {
    "dpnp writes": lambda shared: shared.array.__iadd__(shared.one),
    "dpnp reads": lambda shared: shared.array + shared.one,
}


@pytest.fixture
def hold() -> Iterator[Callable[..., Any]]:
    """Return a function that starts an operation of dpnp behind a gate, and returns its result."""
    gates: list[PendingFill] = []

    def start(shared: Shared, operation: str = "dpnp writes", delay: float = DELAY) -> Any:
        OPERATIONS[operation](shared)  # the first time is slow
        shared.array[...] = BEFORE
        shared.finish()
        gates.append(PendingFill(GATES))
        event = gates[-1].event
        SequentialOrderManager[shared.array.sycl_queue].add_event_pair(event, event)
        result = OPERATIONS[operation](shared)
        assert gates[-1].is_pending
        gates[-1].open_later(delay)
        return result

    yield start
    for gate in gates:
        gate.end()
    signal.alarm(0)  # of `PendingFill`


# --- who made it


class RefusesStreams:
    """A producer that knows no queue and accepts no stream."""

    def __init__(self, array: Any, error: type[Exception] = ValueError) -> None:
        self.array, self.error = array, error
        self.__dlpack_device__ = array.__dlpack_device__

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        if stream is not None:
            raise self.error("stream: expected None")
        return self.array.__dlpack__(**keywords)


def imported(x: Any, queue: Any) -> DLPackTensor:
    return from_dlpack(x, device=queue)


def of_dpnp(share: Callable[[Any, Any], DLPackTensor], queue: Any, dpnp_queue: Any) -> Shared:
    array = dpnp.full(COUNT, BEFORE, dtype="f4", sycl_queue=dpnp_queue)
    return Shared(array, share(array, queue))


def given_to_dpnp(make: Callable[[Any], DLPackTensor], queue: Any, _dpnp_queue: Any) -> Shared:
    tensor = make(queue)
    return Shared(dpnp.from_dlpack(tensor), tensor)


def of_an_owner(queue: Any, _dpnp_queue: Any = None) -> Shared:
    owner = extension().SelfOwned(queue, COUNT)
    return Shared(dpnp.from_dlpack(owner.values), owner.values, owner)


MAKERS: dict[str, Callable[[Any, Any], Shared]] = {
    "from_dlpack": functools.partial(of_dpnp, imported),
    "to_dlpack_tensor": functools.partial(of_dpnp, lambda x, q: to_dlpack_tensor(x, queue=q)),
    "refuses streams": functools.partial(of_dpnp, lambda x, q: imported(RefusesStreams(x), q)),
    "tensor": functools.partial(given_to_dpnp, lambda q: imported(host_values(), q or (14, 0))),
    "result": functools.partial(given_to_dpnp, lambda q: extension().zeros(q, COUNT)),
    "class": of_an_owner,
}
# The maker, the tensor's queue, and the queue of dpnp's array.
ROWS = [
    *(("from_dlpack", kind, on) for kind in ("none named", *TENSOR_QUEUES) for on in DPNP_QUEUES),
    *((maker, kind, "cached") for maker in list(MAKERS)[1:] for kind in TENSOR_QUEUES),
    ("tensor", "none named", "cached"),
]


@pytest.fixture(params=ROWS, ids=", ".join)
def shared(request: pytest.FixtureRequest) -> Shared:
    maker, kind, on = request.param
    return MAKERS[maker](TENSOR_QUEUES.get(kind), DPNP_QUEUES[on])


# --- who uses it next

Use = Callable[[Shared], Any]
Raw = Callable[..., Any]  # `read` or `write`


HAND_OVERS: dict[str, Callable[[Any, Any], Any]] = {
    "stream": lambda x, queue: x.__dlpack__(stream=queue, max_version=NEWEST),
    "device": imported,
}


def by_consumers(use: Raw) -> dict[str, Use]:
    """Return uses on a queue to which the tensor is handed over."""

    def use_on(shared: Shared, name: str, queue: Any) -> Any:
        _alive = HAND_OVERS[name](shared.tensor, queue)
        return use(shared.memory, queue)

    return {
        f"{name}, {kind}": functools.partial(use_on, name=name, queue=queue)
        for name in HAND_OVERS
        for kind, queue in CONSUMERS.items()
    }


def after(call: Callable[[DLPackTensor], Any], use: Raw) -> Use:
    """Return a use without this package, after a call that waits."""
    return lambda shared: (call(shared.tensor), use(shared.memory))[1]


def copy_of(x: DLPackTensor) -> Any:
    target = empty(x.shape, x.dtype)
    target.copy_from(x)
    return target.numpy()


def scaled_by_field(shared: Shared) -> Any:
    shared.field.scale(2.0)
    return shared.result() / 2


def read_in_section(x: DLPackTensor, queue: Any) -> Any:
    return extension().copied_behind(queue, x).numpy()


def write_in_section(x: DLPackTensor, queue: Any) -> None:
    values = from_dlpack(host_values(WRITTEN), device=queue)
    extension().copy_into_behind(queue, values, x, [], True)
    queue.wait()


READS: dict[str, Use] = {
    "numpy": lambda shared: shared.tensor.numpy(),
    "numpy.from_dlpack": lambda shared: np.from_dlpack(shared.tensor, device="cpu"),
    "wait": after(lambda x: x.wait(), read),
    "copy=True": lambda shared: from_dlpack(shared.tensor, copy=True).numpy(),
    "exported copy": lambda shared: from_dlpack(
        OldArray(shared.tensor.__dlpack__(copy=True, max_version=NEWEST))
    ).numpy(),
    "copy_from": lambda shared: copy_of(shared.tensor),
    "dpctl.memory": lambda shared: read(memory.as_usm_memory(shared.tensor)),
    "dpnp.asarray": lambda shared: dpnp.asnumpy(dpnp.asarray(shared.tensor)),
    "dpnp.from_dlpack": lambda shared: dpnp.asnumpy(dpnp.from_dlpack(shared.tensor)),
    "plain view": after(lambda x: extension().rank_one(x), read),
    "section": lambda shared: read_in_section(shared.tensor, shared.tensor.sycl_queue),
    "other section": lambda shared: read_in_section(shared.tensor, CONSUMERS["in order"]),
    "class that keeps the tensor": scaled_by_field,
    **by_consumers(read),
}
WRITES: dict[str, Use] = {
    "copy_from": lambda shared: shared.tensor.copy_from(host_values(WRITTEN)),
    "wait": after(lambda x: x.wait(), write),
    "dpctl.memory": lambda shared: write(memory.as_usm_memory(shared.tensor)),
    "plain view": after(lambda x: extension().rank_one(x), write),
    "section": lambda shared: write_in_section(shared.tensor, shared.tensor.sycl_queue),
    "other section": lambda shared: write_in_section(shared.tensor, CONSUMERS["in order"]),
    **by_consumers(write),
}


@pytest.mark.parametrize("use", READS)
def test_a_read_sees_what_dpnp_wrote(use, shared, hold):
    hold(shared)
    values = READS[use](shared)
    shared.finish()
    assert (values == ADDED).all()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("use", WRITES)
def test_a_write_comes_after_what_dpnp_does(use, operation, shared, hold):
    result = hold(shared, operation)
    WRITES[use](shared)
    assert (shared.result() == WRITTEN).all()
    assert result is shared.array or (dpnp.asnumpy(result) == ADDED).all()


@pytest.mark.parametrize("on", DPNP_QUEUES)
def test_without_this_package_a_use_is_too_early(on, hold):
    shared = of_dpnp(imported, None, DPNP_QUEUES[on])
    hold(shared, delay=1.0)
    assert (read(shared.memory) == BEFORE).all()
    write(shared.memory)
    assert (shared.result() == WRITTEN + 1).all()


@pytest.mark.parametrize("kind", TENSOR_QUEUES)
def test_the_next_step_of_a_class_that_keeps_its_array_sees_what_dpnp_wrote(kind, hold):
    shared = of_an_owner(TENSOR_QUEUES[kind])
    shared.owner.scale(1.0)
    hold(shared)
    shared.owner.scale(2.0)
    shared.array += shared.one
    assert (dpnp.asnumpy(shared.array) == 2 * ADDED + 1).all()


@pytest.mark.parametrize("on", DPNP_QUEUES)
def test_from_dpnp_to_functions_and_back_without_naming_a_queue(on, hold):
    shared, total = of_dpnp(imported, None, DPNP_QUEUES[on]), dpnp.zeros(COUNT, dtype="f4")
    extension().axpy(0.0, shared.array, total)  # builds the kernel
    hold(shared)
    extension().axpy(2.0, shared.array, total)
    total += BEFORE
    extension().Field(total).scale(2.0)
    assert (dpnp.asnumpy(total) == 2 * (2 * ADDED + BEFORE)).all()


@pytest.mark.parametrize("kind", TENSOR_QUEUES)
@pytest.mark.parametrize("copy", [None, False])
@pytest.mark.parametrize("of", ["array", "tensor"])  # of dpnp on the cached queue, or of ours
@pytest.mark.parametrize("error", [ValueError, BufferError, NotImplementedError])
def test_a_producer_that_refuses_streams_shares_its_memory_in_order(error, of, copy, kind, hold):
    shared = of_dpnp(imported, None, DPNP_QUEUES["cached" if of == "array" else "out of order"])
    queue = TENSOR_QUEUES[kind]
    hold(shared)
    x = from_dlpack(RefusesStreams(getattr(shared, of), error), device=queue, copy=copy)
    assert (x.data, x.sycl_queue) == (shared.tensor.data, queue)
    assert (read(shared.memory, queue) == ADDED).all()
