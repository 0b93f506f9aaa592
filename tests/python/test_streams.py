# SPDX-License-Identifier: Apache-2.0
"""`stream` and the queue of a tensor: who is ordered behind whom, shown with work in flight."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dpctl
import numpy as np
import pytest
from capsules import (
    IS_COPIED,
    LEGACY,
    VERSIONED,
    ForeignArray,
    ForeignTensor,
    OldArray,
    content_of,
    integers,
    name_of,
    new_capsule,
)
from dpctl import memory as dpctl_memory
from hypothesis import given
from hypothesis import strategies as st
from memory_sources import Carrier, TypedArray, address_of, allocate, new_queue
from pending_work import COUNT, VALUES, ZEROS, Copier, PendingFill, Reader, is_complete
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, root_device, to_dlpack_tensor

NEWEST = (1, 3)
HOST = (1, 0)

Start = Callable[..., PendingFill]


def queue_of_the_device(in_order: bool = True) -> Any:
    """Return a new queue of root device 0 in its default context."""
    return new_queue(root_device(0), in_order=in_order)


@pytest.fixture(params=[True, False], ids=["in order", "out of order"])
def producer(request: pytest.FixtureRequest) -> Any:
    """Return a producer's queue, of each kind in turn."""
    return queue_of_the_device(request.param)


@pytest.fixture(params=[True, False], ids=["to in order", "to out of order behind a kernel"])
def consumer(request: pytest.FixtureRequest) -> Any:
    """Return a consumer's queue, of each kind in turn.

    The hand-over to an out-of-order queue waits for host tasks, and where there are no kernels all
    pending work is behind one.
    """
    return queue_of_the_device(request.param)


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts work behind a gate, which is open at the end of the test."""
    started: list[PendingFill] = []

    def begin(queue: Any, usm: str = "device") -> PendingFill:
        started.append(PendingFill(queue, usm))
        return started[-1]

    yield begin
    for pending in started:
        pending.end()
        pending.queue.wait()


def tensor_of(pending: PendingFill) -> DLPackTensor:
    """Return a tensor of the memory that is being filled, which knows the queue."""
    return to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue)


@pytest.fixture
def tensor(memory: Any, queue: Any) -> DLPackTensor:
    """Return a tensor that knows a queue without work."""
    return to_dlpack_tensor(memory, shape=(3, 4), dtype="f4", queue=queue)


class Derived(dpctl.SyclQueue):
    """A queue of somebody's own class."""


class Stream:
    """A stream of another library, with its queue as an attribute."""

    def __init__(self, sycl_queue: Any) -> None:
        self.sycl_queue = sycl_queue


class FailingCarrier(Stream):
    """A stream whose capsule cannot be had, but whose queue can."""

    def _get_capsule(self) -> Any:
        raise RuntimeError("no capsule")


class Address(int):
    """An integer of somebody's own class."""


FORMS: dict[str, Callable[[Any], Any]] = {
    "a queue": lambda queue: queue,
    "another object of the queue": lambda queue: dpctl.SyclQueue(queue._get_capsule()),
    "a subclass": lambda queue: Derived(queue._get_capsule()),
    "a capsule": lambda queue: queue._get_capsule(),
    "an object with _get_capsule": Carrier,
    "sycl_queue, a queue": Stream,
    "sycl_queue, a capsule": lambda queue: Stream(queue._get_capsule()),
    "sycl_queue, an address": lambda queue: Stream(queue.addressof_ref()),
    "sycl_queue behind a _get_capsule that fails": FailingCarrier,
    "an address": lambda queue: queue.addressof_ref(),
    "an address of its own class": lambda queue: Address(queue.addressof_ref()),
    "memory with a queue": lambda queue: dpctl_memory.MemoryUSMHost(4, queue=queue),
}


# --- work in flight: with the hand-over and without


@pytest.mark.parametrize("form", FORMS)
def test_the_consumer_waits_for_the_producer_and_the_export_for_nobody(
    form: str, producer: Any, consumer: Any, start: Start
) -> None:
    pending = start(producer)
    tensor = tensor_of(pending)
    capsule = tensor.__dlpack__(stream=FORMS[form](consumer), max_version=NEWEST)
    assert pending.is_pending
    assert content_of(capsule).dl_tensor.data == tensor.data
    reader = Reader(consumer, pending.memory)
    assert reader.is_held
    assert pending.is_pending
    pending.open()
    assert reader.seen == VALUES


@pytest.mark.parametrize("stream", [None, -1])
def test_without_the_hand_over_the_consumer_sees_unfinished_values(
    stream: Any, producer: Any, consumer: Any, start: Start
) -> None:
    pending = start(producer)
    tensor_of(pending).__dlpack__(stream=stream, max_version=NEWEST)
    assert Reader(consumer, pending.memory).seen == ZEROS
    assert pending.is_pending


def test_a_tensor_that_knows_no_queue_hands_nothing_over(
    producer: Any, consumer: Any, start: Start
) -> None:
    pending = start(producer)
    foreign = ForeignTensor(address_of(pending.memory), shape=(COUNT,), dtype=(0, 32, 1))
    tensor = from_dlpack(OldArray(foreign.capsule()))
    assert tensor.sycl_queue is None
    tensor.__dlpack__(stream=consumer)
    assert Reader(consumer, pending.memory).seen == ZEROS
    assert pending.is_pending


def test_a_legacy_capsule_is_handed_over_too(producer: Any, consumer: Any, start: Start) -> None:
    pending = start(producer)
    capsule = tensor_of(pending).__dlpack__(stream=consumer, dl_device=(14, 0), copy=False)
    assert name_of(capsule) == LEGACY
    reader = Reader(consumer, pending.memory)
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "out of order, by a kernel"])
def test_one_queue_is_ordered_behind_itself(in_order: bool, start: Start) -> None:
    queue = queue_of_the_device(in_order)
    pending = start(queue)
    tensor_of(pending).__dlpack__(stream=queue)
    assert pending.is_pending
    reader = Reader(queue, pending.memory)
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


def test_the_producer_does_not_wait_for_the_consumer(
    producer: Any, memory: Any, start: Start
) -> None:
    consumer = queue_of_the_device()
    busy = start(consumer)
    to_dlpack_tensor(memory, queue=producer).__dlpack__(stream=consumer)
    assert Reader(producer, memory).seen != ZEROS
    assert busy.is_pending


TRACED = """
import os, dpctl, dpctl.memory, usm_dlpack
device = usm_dlpack.root_device(0)
queues = [dpctl.SyclQueue(device, property="in_order") for _ in range(2)]
queues += [dpctl.SyclQueue(device) for _ in range(2)]
queues.append(dpctl.SyclQueue(dpctl.SyclContext([device]), device))
for number, producer in enumerate(queues[:4]):
    memory = dpctl.memory.MemoryUSMDevice(64, queue=producer)
    memory.copy_from_host(bytearray(64))
    tensor = usm_dlpack.to_dlpack_tensor(memory, queue=producer)
    for other, consumer in enumerate([None, -1, *queues]):
        os.write(1, f"begin {number} {other}\\n".encode())
        tensor.__dlpack__(stream=consumer)
        os.write(1, b"end\\n")
"""


def test_the_runtime_gets_as_few_commands_as_the_order_needs(new_process: Any) -> None:
    # By the runtime's own trace of its calls into the backend.
    done = new_process(TRACED, SYCL_UR_TRACE="2")
    assert done.returncode == 0
    got: dict[tuple[int, int], list[str]] = {}
    calls: list[str] = []
    for line in done.stdout.splitlines():
        if line.startswith("begin "):
            number, other = map(int, line.split()[1:])
            calls = got[number, other] = []
        elif line == "end":
            calls = []
        elif line.strip().startswith(("<--- urE", "<--- urQueueFinish")):
            calls.append(line.split("<--- ", 1)[1].split("(", 1)[0])
    barrier, wait = "urEnqueueEventsWaitWithBarrierExt", "urQueueFinish"
    submitted = {
        key: [call for call in names if call.startswith(("urEnqueue", "urEventWait", wait))]
        for key, names in got.items()
    }
    for number, in_order in enumerate([True, True, False, False]):
        assert submitted[number, 0] == submitted[number, 1] == []
        for other, to_in_order in enumerate([True, True, False, False]):
            same = [] if in_order else [barrier]
            to_other = [barrier, "urEnqueueEventsWait", barrier] if to_in_order else [barrier] * 2
            assert submitted[number, other + 2] == (same if other == number else to_other)
        assert submitted[number, 6] == [wait]


class Waiting:
    """A call in a thread of its own, which is expected to wait."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.answer: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self.answer = call()
        except BaseException as error:
            self.error = error

    def is_waiting(self) -> bool:
        """Return whether the call goes on for a while: one that does not wait has returned."""
        self._thread.join(0.2)
        return self._thread.is_alive()

    def end(self) -> Any:
        """Return the answer of the call."""
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.answer


def test_a_queue_of_another_context_makes_the_host_wait(
    producer: Any, foreign_queue: Any, start: Start
) -> None:
    pending = start(producer, "host")
    tensor = tensor_of(pending)
    export = Waiting(lambda: tensor.__dlpack__(stream=foreign_queue, max_version=NEWEST))
    assert export.is_waiting()
    assert pending.is_pending
    pending.open()
    assert name_of(export.end()) == VERSIONED
    assert not pending.is_pending
    assert np.frombuffer(pending.memory, np.int32).tolist() == VALUES


# --- behind a host task, by which dpctl and dpnp keep arrays alive


HANDING: dict[str, Callable[[Any, Any], Any]] = {
    "__dlpack__": lambda x, queue: tensor_of(x).__dlpack__(stream=queue, max_version=NEWEST),
    "from_dlpack of ours": lambda x, queue: from_dlpack(tensor_of(x), device=queue),
    "from_dlpack": lambda x, queue: from_dlpack(Producer(x.memory, x.queue), device=queue),
}


@pytest.mark.parametrize("way", HANDING)
@pytest.mark.parametrize("reading", [Reader, Copier], ids=["kernel", "memcpy"])
def test_a_hand_over_behind_a_host_task_returns_at_once(
    reading: Any, way: str, producer: Any, start: Start
) -> None:
    consumer = queue_of_the_device(in_order=True)
    pending = start(producer)
    last = pending.keep_alive()
    handing = Waiting(lambda: HANDING[way](pending, consumer))
    returned = not handing.is_waiting()
    still_pending = pending.is_pending and not is_complete(last)
    if returned:
        reader = reading(consumer, pending.memory)
    pending.open()
    handing.end()
    assert (returned, still_pending) == (True, True)
    assert reader.seen == VALUES
    assert is_complete(last)


@pytest.mark.parametrize("reading", [Reader, Copier], ids=["kernel", "memcpy"])
def test_a_hand_over_to_an_out_of_order_queue_waits_for_a_host_task(
    reading: Any, producer: Any, start: Start
) -> None:
    """There `queue::memcpy` would overtake a barrier that waits for one (DPC++ 2026.2)."""
    consumer = queue_of_the_device(in_order=False)
    pending = start(producer)
    last = pending.keep_alive()
    handing = Waiting(lambda: HANDING["__dlpack__"](pending, consumer))
    assert handing.is_waiting()
    assert pending.is_pending
    pending.open()
    handing.end()
    assert is_complete(last)
    assert reading(consumer, pending.memory).seen == VALUES


@pytest.mark.parametrize("reading", [Reader, Copier], ids=["kernel", "memcpy"])
def test_without_the_hand_over_a_host_task_orders_nothing(
    reading: Any, producer: Any, consumer: Any, start: Start
) -> None:
    pending = start(producer)
    pending.keep_alive()
    tensor_of(pending).__dlpack__(stream=-1)
    assert reading(consumer, pending.memory).seen == ZEROS
    assert pending.is_pending


# --- the host, and copies


def on_host(capsule: Any) -> list[int]:
    """Return the int32 in a capsule for the host."""
    inside = content_of(capsule).dl_tensor
    assert (inside.device_type, inside.device_id) == HOST
    (count,) = integers(inside.shape, 1)
    return np.frombuffer(ctypes.string_at(inside.data, 4 * count), np.int32).tolist()


WAITING: dict[str, Callable[[DLPackTensor], list[int]]] = {
    "numpy()": lambda tensor: tensor.numpy().tolist(),
    "the host": lambda tensor: on_host(tensor.__dlpack__(dl_device=HOST)),
    "a copy for the host": lambda tensor: on_host(tensor.__dlpack__(dl_device=HOST, copy=True)),
    "a copy for the host whatever is pending": lambda tensor: on_host(
        tensor.__dlpack__(dl_device=HOST, copy=True, stream=-1)
    ),
    "NumPy": lambda tensor: np.from_dlpack(tensor, device="cpu").tolist(),
    "a copy in a capsule": lambda tensor: numpy_without_queue(
        tensor.__dlpack__(copy=True, max_version=NEWEST)
    ),
    "a copy in a capsule whatever is pending": lambda tensor: numpy_without_queue(
        tensor.__dlpack__(copy=True, max_version=NEWEST, stream=-1)
    ),
    "a copy in a capsule for a queue": lambda tensor: numpy_without_queue(
        tensor.__dlpack__(copy=True, max_version=NEWEST, stream=queue_of_the_device())
    ),
    "a copy": lambda tensor: from_dlpack(tensor, copy=True).numpy().tolist(),
    "a copy of another kind": lambda tensor: (
        from_dlpack(tensor, usm_type="host" if tensor.usm_type != "host" else "device")
        .numpy()
        .tolist()
    ),
    "a copy with another queue": lambda tensor: (
        from_dlpack(tensor, device=queue_of_the_device(), copy=True).numpy().tolist()
    ),
}


def numpy_without_queue(capsule: Any) -> list[int]:
    """Return the int32 in a capsule as they are now: nothing is known to be pending."""
    tensor = from_dlpack(OldArray(capsule))
    assert tensor.sycl_queue is None
    values: list[int] = tensor.numpy().tolist()
    return values


@pytest.mark.parametrize("usm", ["device", "shared"])
@pytest.mark.parametrize("way", WAITING)
def test_what_the_host_gets_waits_for_pending_work(
    way: str, usm: str, producer: Any, start: Start
) -> None:
    pending = start(producer, usm)
    tensor = tensor_of(pending)
    taking = Waiting(lambda: WAITING[way](tensor))
    assert taking.is_waiting()
    assert pending.is_pending
    pending.open()
    assert taking.end() == VALUES


@pytest.mark.parametrize("copy", [False, True])
def test_a_view_with_gaps_waits_too(copy: bool, producer: Any, start: Start, usm_type: str) -> None:
    pending = start(producer, usm_type)
    view = to_dlpack_tensor(
        pending.memory, shape=(4,), strides=(-3,), dtype="i4", byte_offset=44, queue=producer
    )
    taking = Waiting(lambda: from_dlpack(view, copy=True).numpy() if copy else view.numpy())
    assert taking.is_waiting()
    pending.open()
    assert taking.end().tolist() == VALUES[:4]


@pytest.mark.parametrize("usm", ["host", "shared"])
def test_minus_one_lets_the_host_look_at_unfinished_values(
    usm: str, producer: Any, start: Start
) -> None:
    pending = start(producer, usm)
    capsule = tensor_of(pending).__dlpack__(dl_device=HOST, stream=-1)
    assert on_host(capsule) == ZEROS
    assert pending.is_pending
    pending.end()
    assert on_host(capsule) == VALUES


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("copy", [None, True, False])
def test_no_queue_can_order_what_the_host_does(
    form: str, copy: bool | None, queue: Any, tensor: DLPackTensor
) -> None:
    stream = FORMS[form](queue)
    for version in (None, NEWEST):
        with wrong_argument(ValueError, "stream", "found a queue"):
            tensor.__dlpack__(stream=stream, dl_device=HOST, copy=copy, max_version=version)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", [None, NEWEST])
@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("device", [None, (14, 0)])
def test_every_form_goes_with_every_other_keyword(
    form: str, version: Any, copy: bool | None, device: Any, queue: Any, tensor: DLPackTensor
) -> None:
    capsule = tensor.__dlpack__(
        stream=FORMS[form](queue), max_version=version, copy=copy, dl_device=device
    )
    assert name_of(capsule) == (LEGACY if version is None else VERSIONED)
    assert (content_of(capsule).dl_tensor.data == tensor.data) is (copy is not True)
    if version is not None:
        assert content_of(capsule).flags == (IS_COPIED if copy else 0)


def test_a_capsule_of_a_queue_is_read_and_not_consumed(tensor: DLPackTensor, queue: Any) -> None:
    capsule = queue._get_capsule()
    for _ in range(3):
        tensor.__dlpack__(stream=capsule)
        assert name_of(capsule) == b"SyclQueueRef"
    assert dpctl.SyclQueue(capsule) == queue
    assert name_of(capsule) == b"used_SyclQueueRef"
    with wrong_argument(ValueError, "stream", "PyCapsule"):
        tensor.__dlpack__(stream=capsule)


def test_the_queue_is_not_needed_after_the_export(start: Start) -> None:
    pending = start(queue_of_the_device())
    tensor = tensor_of(pending)
    first = queue_of_the_device()
    capsule = first._get_capsule()
    tensor.__dlpack__(stream=first)
    reader = Reader(first, pending.memory)
    del first, capsule
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


# --- what is no stream


class Bad:
    """An object whose attributes do what a test says."""

    def __init__(self, **attributes: Callable[[], Any]) -> None:
        self.attributes = attributes

    def __getattr__(self, name: str) -> Any:
        if name not in self.attributes:
            raise AttributeError(name)
        return self.attributes[name]()


def raising(error: BaseException) -> Callable[[], Any]:
    """Return a function that raises."""

    def fail() -> Any:
        raise error

    return fail


ERRORS = [
    AttributeError("x"), TypeError("x"), ValueError("x"), KeyError("x"), RuntimeError("x"),
    OSError("x"), MemoryError("x"), RecursionError("x"), StopIteration("x"), BufferError("x"),
    NotImplementedError("x"), UnicodeDecodeError("utf-8", b"", 0, 1, "x"), ImportError("x"),
]  # fmt: skip
PASSING = [KeyboardInterrupt("x"), SystemExit("x"), GeneratorExit("x")]


def bad_objects(error: BaseException) -> list[Any]:
    """Return objects that raise wherever they are asked for a queue."""
    return [
        Bad(_get_capsule=raising(error)),
        Bad(_get_capsule=lambda: raising(error)),
        Bad(sycl_queue=raising(error)),
        Bad(_get_capsule=lambda: lambda: None, sycl_queue=raising(error)),
    ]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_whatever_an_object_raises_it_is_no_stream(tensor: DLPackTensor, error: Any) -> None:
    for stream in bad_objects(error):
        with wrong_argument(ValueError, "stream", "found "):
            tensor.__dlpack__(stream=stream)


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_what_ends_the_program_passes_through(tensor: DLPackTensor, error: Any) -> None:
    for stream in bad_objects(error):
        with pytest.raises(type(error)) as caught:
            tensor.__dlpack__(stream=stream)
        assert caught.value is error


NO_STREAMS: dict[str, Callable[[Any], Any]] = {
    "the class": lambda queue: dpctl.SyclQueue,
    "a device": lambda queue: queue.sycl_device,
    "a context": lambda queue: queue.sycl_context,
    "an event": lambda queue: dpctl.SyclEvent(),
    "a platform": lambda queue: queue.sycl_device.sycl_platform,
    "a capsule of a context": lambda queue: queue.sycl_context._get_capsule(),
    "a capsule without a name": lambda queue: new_capsule(64, None),
    "a consumed capsule": lambda queue: new_capsule(64, b"used_SyclQueueRef"),
    "a DLPack capsule": lambda queue: new_capsule(64, LEGACY),
    "_get_capsule, no function": lambda queue: Bad(_get_capsule=lambda: 5),
    "_get_capsule, None": lambda queue: Bad(_get_capsule=lambda: lambda: None),
    "_get_capsule, an address": lambda queue: Bad(_get_capsule=lambda: queue.addressof_ref),
    "_get_capsule, a context's": lambda queue: Bad(
        _get_capsule=lambda: queue.sycl_context._get_capsule
    ),
    "_get_capsule, a carrier": lambda queue: Bad(_get_capsule=lambda: lambda: Carrier(queue)),
    "sycl_queue, None": lambda queue: Stream(None),
    "sycl_queue, a bool": lambda queue: Stream(True),
    "sycl_queue, zero": lambda queue: Stream(0),
    "sycl_queue, minus one": lambda queue: Stream(-1),
    "sycl_queue, a text": lambda queue: Stream("queue"),
    "sycl_queue, a float": lambda queue: Stream(1.0),
    "sycl_queue, a stream": lambda queue: Stream(Stream(queue)),
    "sycl_queue, a context": lambda queue: Stream(queue.sycl_context),
    "sycl_queue, too large": lambda queue: Stream(2**64),
    "an address one off": lambda queue: queue.addressof_ref() + 1,
    "an address four off": lambda queue: queue.addressof_ref() + 4,
    "an address as a float": lambda queue: float(queue.addressof_ref()),
    "an address as a text": lambda queue: str(queue.addressof_ref()),
    "an address of NumPy's": lambda queue: np.uint64(queue.addressof_ref()),
    "a list of queues": lambda queue: [queue],
    "a tensor": lambda queue: to_dlpack_tensor(
        TypedArray(allocate("host", 8, queue), syclobj=queue.sycl_context)
    ),
}


@pytest.mark.parametrize("name", NO_STREAMS)
@pytest.mark.parametrize("device", [None, HOST])
def test_what_is_no_queue_is_a_value_error(
    name: str, device: Any, queue: Any, tensor: DLPackTensor
) -> None:
    stream = NO_STREAMS[name](queue)
    with wrong_argument(ValueError, "stream", "-1, a dpctl.SyclQueue, a capsule"):
        tensor.__dlpack__(stream=stream, dl_device=device)
    assert tensor.__dlpack__(stream=queue) is not None


def test_a_tensor_with_a_queue_names_it_as_any_object_with_sycl_queue(
    memory: Any, producer: Any, start: Start
) -> None:
    tensor = to_dlpack_tensor(memory, queue=queue_of_the_device())
    pending = start(producer)
    tensor_of(pending).__dlpack__(stream=tensor)
    reader = Reader(tensor.sycl_queue, pending.memory)
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


@given(stream=st.integers(-(2**65), 4095) | st.integers(2**47, 2**65) | st.integers().map(abs))
def test_no_number_that_is_no_address_is_followed(queue: Any, stream: int) -> None:
    tensor = to_dlpack_tensor(allocate("host", 8, queue))
    if stream == -1:
        tensor.__dlpack__(stream=stream)
    elif not 4096 <= stream < 2**47:
        with wrong_argument(ValueError, "stream"):
            tensor.__dlpack__(stream=stream)


def test_a_refused_export_hands_nothing_over(producer: Any, consumer: Any, start: Start) -> None:
    pending = start(producer)
    tensor = tensor_of(pending)
    with refused("request_unsupported", "max_version"):
        tensor.__dlpack__(stream=consumer, max_version=1)
    with refused("request_unsupported", "copy"):
        tensor.__dlpack__(stream=consumer, copy="x")
    with refused("request_unsupported", "dl_device"):
        tensor.__dlpack__(stream=consumer, dl_device=(2, 0))
    assert Reader(consumer, pending.memory).seen == ZEROS
    assert pending.is_pending


# --- the queue that a tensor knows


def test_a_tensor_knows_the_queue_that_it_was_made_with(memory: Any) -> None:
    queue = queue_of_the_device()
    assert to_dlpack_tensor(memory, queue=queue).sycl_queue == queue
    assert memory.sycl_queue != queue


def test_a_tensor_knows_the_queue_of_its_memory(queue: Any, memory: Any) -> None:
    known = to_dlpack_tensor(memory).sycl_queue
    assert known == memory.sycl_queue == queue
    assert type(known) is dpctl.SyclQueue


def test_a_tensor_knows_the_queue_in_the_interface_of_its_object(queue: Any, memory: Any) -> None:
    for place in (queue, queue._get_capsule(), Derived(queue._get_capsule())):
        assert to_dlpack_tensor(TypedArray(memory, syclobj=place)).sycl_queue == queue
    device = queue.sycl_device.get_filter_string()
    for place in (queue.sycl_context, queue.sycl_context._get_capsule(), device):
        assert to_dlpack_tensor(TypedArray(memory, syclobj=place)).sycl_queue is None


class Producer:
    """An array of another library whose queue is an attribute; it takes no `stream`."""

    def __init__(self, memory: Any, sycl_queue: Any) -> None:
        self.memory = memory
        self._sycl_queue = sycl_queue

    @property
    def sycl_queue(self) -> Any:
        """Return what the test set, or raise it."""
        if isinstance(self._sycl_queue, BaseException):
            raise self._sycl_queue
        return self._sycl_queue

    def __dlpack__(self, *, max_version: Any = None) -> Any:
        """Return a capsule of twelve int32."""
        foreign = ForeignTensor(address_of(self.memory), shape=(COUNT,), dtype=(0, 32, 1))
        return foreign.capsule()


class StreamProducer(Producer):
    """A producer that takes a `stream` and remembers it; it hands nothing over."""

    def __init__(self, memory: Any, sycl_queue: Any) -> None:
        super().__init__(memory, sycl_queue)
        self.asked: list[Any] = []

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        """Return a capsule of twelve int32."""
        self.asked.append(stream)
        return super().__dlpack__(max_version=max_version)


def test_a_tensor_knows_the_queue_of_its_producer(queue: Any, memory: Any) -> None:
    own = queue_of_the_device()
    assert from_dlpack(Producer(memory, own)).sycl_queue == own
    assert from_dlpack(Producer(memory, own._get_capsule())).sycl_queue == own
    for nothing in (None, 5, queue.sycl_context, AttributeError("none")):
        assert from_dlpack(Producer(memory, nothing)).sycl_queue is None


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt("x")])
def test_what_the_queue_of_a_producer_raises_reaches_the_caller(memory: Any, error: Any) -> None:
    with pytest.raises(type(error)) as caught:
        from_dlpack(Producer(memory, error))
    assert caught.value is error


def test_a_tensor_knows_the_queue_that_it_was_imported_for(memory: Any) -> None:
    own, asked = queue_of_the_device(), queue_of_the_device()
    for x in (to_dlpack_tensor(memory, queue=own), Producer(memory, own)):
        assert from_dlpack(x).sycl_queue == own
        assert from_dlpack(x, device=(14, 0)).sycl_queue == own
        assert from_dlpack(x, device=asked).sycl_queue == asked
        assert from_dlpack(x, device=asked, copy=True).sycl_queue == asked
        assert from_dlpack(x, copy=True).sycl_queue is None
    assert from_dlpack(np.zeros(3), device=asked).sycl_queue == asked
    assert from_dlpack(np.zeros(3), device=(14, 0)).sycl_queue is None


def test_a_tensor_of_a_capsule_alone_knows_no_queue(memory: Any, queue: Any) -> None:
    tensor = to_dlpack_tensor(memory, queue=queue)
    assert from_dlpack(OldArray(tensor.__dlpack__())).sycl_queue is None


# --- from_dlpack orders its queue behind the producer


def test_an_import_for_a_queue_is_ordered_behind_our_own_tensor(
    producer: Any, consumer: Any, start: Start
) -> None:
    pending = start(producer)
    taken = from_dlpack(tensor_of(pending), device=consumer)
    assert pending.is_pending
    reader = Reader(consumer, dpctl_memory.as_usm_memory(taken))
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


def test_an_import_for_a_queue_is_ordered_behind_the_queue_of_a_producer(
    producer: Any, consumer: Any, start: Start
) -> None:
    pending = start(producer)
    from_dlpack(Producer(pending.memory, producer), device=consumer)
    assert pending.is_pending
    reader = Reader(consumer, pending.memory)
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


def test_an_import_for_a_queue_is_ordered_behind_a_producer_without_a_signature(
    producer: Any, consumer: Any, start: Start
) -> None:
    """Nothing says which keywords it takes, and it takes none."""

    class Compiled(Producer):
        def __dlpack__(self) -> Any:  # type: ignore[override]
            return super().__dlpack__()

    Compiled.__dlpack__.__signature__ = 5  # type: ignore[attr-defined]
    pending = start(producer)
    from_dlpack(Compiled(pending.memory, producer), device=consumer)
    reader = Reader(consumer, pending.memory)
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


class Instance:
    """An array of another library whose queue stands in the object, not in its type."""

    def __init__(self, memory: Any, queue: Any) -> None:
        self.producer = Producer(memory, None)
        self.sycl_queue = queue

    def __dlpack__(self, *, max_version: Any = None) -> Any:
        """Return a capsule of twelve int32."""
        return self.producer.__dlpack__(max_version=max_version)


class Forwarding:
    """An array that gives everything but its `__dlpack__` by `__getattr__`."""

    def __init__(self, memory: Any, queue: Any) -> None:
        self.producer = Producer(memory, queue)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.producer, name)

    def __dlpack__(self, *, max_version: Any = None) -> Any:
        """Return a capsule of twelve int32."""
        return self.producer.__dlpack__(max_version=max_version)


class Proxy:
    """An object whose type says nothing: all that it has is given by `__getattr__`."""

    def __init__(self, memory: Any, queue: Any) -> None:
        self.producer = Producer(memory, queue)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.producer, name)


class StreamInstance(Instance):
    """The same of an array that takes a `stream`, which nobody passes."""

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        """Return a capsule of twelve int32."""
        return super().__dlpack__(max_version=max_version)


OBJECTS = [Instance, Forwarding, Proxy, StreamInstance]
of_its_object = pytest.mark.parametrize("kind", OBJECTS, ids=lambda kind: kind.__name__)


@of_its_object
def test_a_queue_that_an_object_says_and_its_type_does_not_is_known(
    kind: Any, memory: Any, producer: Any
) -> None:
    assert from_dlpack(kind(memory, producer)).sycl_queue == producer
    assert from_dlpack(kind(memory, None)).sycl_queue is None
    # Of the same type, asked after the one that said none.
    assert from_dlpack(kind(memory, producer), device=(14, 0)).sycl_queue == producer


@pytest.mark.parametrize("kind", OBJECTS[:3], ids=lambda kind: kind.__name__)
def test_an_import_for_a_queue_is_ordered_behind_the_queue_that_an_object_says(
    kind: Any, producer: Any, consumer: Any, start: Start
) -> None:
    pending = start(producer)
    from_dlpack(kind(pending.memory, producer), device=consumer)
    assert pending.is_pending
    reader = Reader(consumer, pending.memory)
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


@of_its_object
def test_a_copy_waits_for_the_queue_that_an_object_says(
    kind: Any, producer: Any, consumer: Any, start: Start
) -> None:
    ways = [
        lambda array: from_dlpack(array, copy=True).numpy().tolist(),
        lambda array: from_dlpack(array, usm_type="host").numpy().tolist(),
    ]
    if kind is not StreamInstance:  # to which a queue is handed over instead
        ways.append(lambda array: from_dlpack(array, device=consumer, copy=True).numpy().tolist())
    for way in ways:  # one at a time: an out-of-order queue may hold up one waiting thread only
        pending = start(producer)
        copying = Waiting(functools.partial(way, kind(pending.memory, producer)))
        assert copying.is_waiting()
        assert pending.is_pending
        pending.open()
        assert copying.end() == VALUES


@pytest.mark.parametrize("kind", [Forwarding, Proxy])
@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt("x")])
def test_what_an_object_raises_for_its_queue_reaches_the_caller(
    memory: Any, error: Any, kind: Callable[[Any, Any], Any]
) -> None:
    with pytest.raises(type(error)) as caught:
        from_dlpack(kind(memory, error))
    assert caught.value is error


def test_a_producer_that_takes_a_stream_is_given_the_queue_itself(memory: Any, queue: Any) -> None:
    x = StreamProducer(memory, queue)
    asked = queue_of_the_device()
    assert from_dlpack(x, device=asked).sycl_queue == asked
    assert from_dlpack(x).sycl_queue == queue
    assert from_dlpack(x, device=(14, 0)).sycl_queue == queue
    assert x.asked == [asked, None, None]
    assert x.asked[0] is asked


def test_copies_wait_for_the_queue_of_a_producer(producer: Any, start: Start) -> None:
    pending = start(producer)
    copying = Waiting(lambda: from_dlpack(Producer(pending.memory, producer), copy=True).numpy())
    assert copying.is_waiting()
    pending.open()
    assert copying.end().tolist() == VALUES


def test_a_tensor_is_exported_behind_the_queue_that_it_was_imported_for(
    consumer: Any, start: Start
) -> None:
    mine = queue_of_the_device()
    pending = start(mine)
    taken = from_dlpack(Producer(pending.memory, None), device=mine)
    taken.__dlpack__(stream=consumer)
    reader = Reader(consumer, pending.memory)
    assert reader.is_held
    pending.open()
    assert reader.seen == VALUES


def test_the_interface_names_the_queue_that_a_tensor_knows(memory: Any, queue: Any) -> None:
    tensor = to_dlpack_tensor(memory, queue=queue)
    assert tensor.__sycl_usm_array_interface__["syclobj"] == queue


def test_the_interface_names_no_queue_of_another_context_on_opencl(
    foreign_queue: Any, memory: Any, queue: Any
) -> None:
    """On Level Zero an array that says such a queue is refused."""
    outside = from_dlpack(Producer(memory, foreign_queue))
    assert outside.sycl_queue == foreign_queue
    assert outside.__sycl_usm_array_interface__["syclobj"] == queue.sycl_context
    assert dpctl_memory.as_usm_memory(outside)._pointer == address_of(memory)


# --- copies wait for what they copy, and for nothing else


def test_a_copy_that_waits_holds_up_no_other_copy(start: Start, producer: Any) -> None:
    pending = start(producer)
    waiting: list[Any] = []
    held = tensor_of(pending)
    thread = threading.Thread(target=lambda: waiting.append(held.numpy().tolist()), daemon=True)
    thread.start()
    other = to_dlpack_tensor(allocate("device", 48, queue_of_the_device()), dtype="u1")
    for _ in range(3):
        assert other.numpy().tolist() == list(range(48))
        assert from_dlpack(np.arange(3), device=(14, 0)).numpy().tolist() == [0, 1, 2]
        assert from_dlpack(other, copy=True).numpy().tolist() == list(range(48))
    assert pending.is_pending
    assert not waiting
    pending.open()
    thread.join()
    assert waiting == [VALUES]


def test_a_copy_for_a_queue_waits_for_no_other_work_of_it(start: Start, consumer: Any) -> None:
    pending = start(consumer)
    owner = allocate("device", 48, queue_of_the_device())
    source = TypedArray(owner, syclobj=consumer.sycl_context)
    finished = to_dlpack_tensor(source, dtype="u1")
    assert finished.sycl_queue is None
    made = from_dlpack(np.arange(3), device=consumer)
    copied = from_dlpack(finished, copy=True, device=consumer)
    moved = from_dlpack(finished, usm_type="shared", device=consumer)
    assert pending.is_pending
    assert made.sycl_queue == copied.sycl_queue == moved.sycl_queue == consumer
    pending.open()
    assert made.numpy().tolist() == [0, 1, 2]
    assert copied.numpy().tolist() == moved.numpy().tolist() == list(range(48))


def test_a_copy_of_an_array_that_was_given_the_queue_waits_for_it(
    start: Start, consumer: Any
) -> None:
    """The producer has put its work into the queue before it returned."""
    pending = start(consumer)

    class Ordered(ForeignArray):
        def __dlpack__(self, *, stream: Any, max_version: Any = None) -> Any:
            assert stream is consumer
            return self.foreign.capsule()

    foreign = ForeignTensor(address_of(pending.memory), shape=(COUNT,), dtype=(0, 32, 1))
    made: list[Any] = []

    def take() -> None:
        made.append(from_dlpack(Ordered(foreign), usm_type="shared", device=consumer).numpy())

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    pending.open()
    thread.join()
    assert made[0].tolist() == VALUES
