# SPDX-License-Identifier: Apache-2.0
"""A NVIDIA GPU by SYCL's backend cuda: its memory goes to CUDA's libraries and comes from them.

Nothing here waits by a clock: work is held back on the GPU by a gate that the test opens.
"""

import ctypes
import gc
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import dpctl
import extension_under_test
import guide
import numpy as np
import pytest
from capsules import NEWEST, content_of
from dpctl.memory import as_usm_memory
from libraries import (
    COUNT,
    HERE,
    LEGACY,
    PER_THREAD,
    ByMethod,
    Cupy,
    Gate,
    Numba,
    Torch,
    call,
    make_room_for_streams,
)
from memory_sources import KINDS, TypedArray, allocate, new_queue
from pending_work import PendingFill, Waiting, answer_behind
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, device_id, empty, from_dlpack, to_dlpack_tensor, validate

SEVENS, ZEROS = [7] * COUNT, [0] * COUNT
WITH_DLPACK = [made for made in HERE if made is not Numba]
WITH_STREAMS = [made for made in HERE if made in (Torch, Cupy)]


@pytest.fixture(params=WITH_DLPACK, ids=lambda made: made.name)
def library(request: pytest.FixtureRequest) -> Any:
    return request.param()


@pytest.fixture(params=WITH_STREAMS, ids=lambda made: made.name)
def streamed(request: pytest.FixtureRequest) -> Any:
    """Return a library whose streams can be chosen, with its kernels loaded."""
    made = request.param()
    array, other = made.zeros(), made.zeros()
    made.fill(array, 1)
    made.copy(other, array)
    made.values(other)
    from_dlpack(array)  # makes the queue and the stream of the package
    return made


@pytest.fixture(params=[True, False], ids=["in order", "out of order"])
def queue(request: pytest.FixtureRequest) -> Any:
    return new_queue(in_order=request.param)


@pytest.fixture
def gates() -> Iterator[list[Gate]]:
    """Return a list of gates, which are opened at the end whatever happens.

    No garbage is collected meanwhile: to free memory, CUDA waits for all work.
    """
    made: list[Gate] = []
    gc.collect()
    gc.disable()
    yield made
    for gate in made:
        gate.open()
    gc.enable()


class Reading:
    """Host memory to which a queue copies the elements of a tensor, without waiting for its queue.

    It is made before a gate is closed, because CUDA may wait for all work when it allocates memory
    or makes the stream of a queue.
    """

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self._seen = KINDS["host"](4 * COUNT, queue=queue)
        queue.memcpy_async(self._seen, KINDS["device"](4 * COUNT, queue=queue), 4 * COUNT).wait()

    def begin(self, tensor: DLPackTensor, queue: Any = None) -> None:
        """Submit the copy, to another queue if one is named."""
        queue = self.queue if queue is None else queue
        context = queue.sycl_context
        bare = SimpleNamespace(
            __sycl_usm_array_interface__={
                "data": (tensor.data, False),
                "shape": (tensor.nbytes,),
                "typestr": "|u1",
                "version": 1,
                "syclobj": context,
            }
        )
        self._event = queue.memcpy_async(self._seen, as_usm_memory(bare), 4 * COUNT)

    @property
    def is_pending(self) -> bool:
        return bool(self._event.execution_status != dpctl.event_status_type.complete)

    @property
    def values(self) -> Any:
        """What was copied; waits for it."""
        self._event.wait()
        return np.frombuffer(self._seen, np.int32).tolist()


def current_context() -> Any:
    current = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(current))
    return current.value


# --- Memory both ways -----------------------------------------------------------------------------


@pytest.mark.parametrize("usm_type", KINDS)
def test_a_library_of_cuda_shares_usm_of_each_kind(library: Any, usm_type: str) -> None:
    memory = allocate(usm_type, 4 * COUNT, new_queue())
    tensor = to_dlpack_tensor(memory, dtype="i4")
    view = tensor.cuda_view()
    assert view.__dlpack_device__() == (2, 0)
    seen = library.from_dlpack(view)
    assert library.address(seen) == tensor.data
    assert library.values(seen) == tensor.numpy().tolist()
    tensor.copy_from(np.arange(COUNT, dtype="i4") + 100)
    assert library.values(seen) == list(range(100, 100 + COUNT))


def test_the_view_and_the_capsule_keep_the_memory(library: Any) -> None:
    array = TypedArray(allocate("device", 4 * COUNT, new_queue()), typestr="<i4")
    gone = weakref.ref(array)
    view = to_dlpack_tensor(array).cuda_view()
    del array
    seen = library.from_dlpack(view)
    del view
    gc.collect()
    assert gone() is not None
    assert len(library.values(seen)) == COUNT
    del seen
    gc.collect()
    assert gone() is None


def test_strides_and_read_only_memory_reach_cupy() -> None:
    if Cupy not in HERE:
        return
    cupy = Cupy()
    memory = allocate("device", 96, new_queue())
    tensor = to_dlpack_tensor(memory, shape=(3, 4), strides=(-8, 2), dtype="i4", byte_offset=64)
    assert cupy.from_dlpack(tensor.cuda_view()).get().tolist() == tensor.numpy().tolist()
    assert cupy.by_interface(tensor.cuda_view()).get().tolist() == tensor.numpy().tolist()
    read_only = to_dlpack_tensor(TypedArray(memory, data=(tensor.data - 64, True)))
    assert read_only.cuda_view().__cuda_array_interface__["data"][1] is True
    with refused("read_only", "flags"):
        read_only.cuda_view().__dlpack__()


def test_negative_strides_of_cupy_are_refused() -> None:
    """CuPy divides them as if they were unsigned (14.2.0)."""
    if Cupy not in HERE:
        return
    with refused("out_of_range", "strides"):
        from_dlpack(Cupy().zeros()[::-1])


def test_an_array_of_cuda_is_shared_and_proved(library: Any) -> None:
    array = library.zeros()
    tensor = from_dlpack(array)
    assert (tensor.data, tensor.usm_type, tensor.device) == (
        library.address(array),
        "device",
        (14, 0),
    )
    proof = validate(array)
    assert (proof.device_proof, proof.usm_type, proof.device_id) == ("backend", "device", 0)
    assert proof.bounds in ("allocation", "block")
    assert proof.base <= tensor.data
    assert tensor.data + tensor.nbytes <= proof.base + proof.size
    assert tensor.numpy().tolist() == ZEROS
    tensor.copy_from(np.arange(COUNT, dtype="i4"))
    assert library.values(array) == list(range(COUNT))


def test_a_place_of_cuda_is_its_gpu(library: Any) -> None:
    array = library.zeros()
    places = [(2, 0), array, to_dlpack_tensor(allocate("host", 4, new_queue())).cuda_view()]
    for place in places:
        assert device_id(place) == 0
        assert from_dlpack(np.arange(3), device=place).device == (14, 0)
    for number in (1, 63, -1):
        with wrong_argument(ValueError, "device", f"found (2, {number})"):
            device_id((2, number))


def test_a_tensor_that_came_from_cuda_goes_back(library: Any) -> None:
    array = library.zeros()
    back = library.from_dlpack(from_dlpack(array).cuda_view())
    assert library.address(back) == library.address(array)


def test_the_capsule_by_dl_device_and_by_the_view_are_the_same() -> None:
    tensor = to_dlpack_tensor(allocate("shared", 48, new_queue()), dtype="f4", byte_offset=8)
    for version in (None, NEWEST):
        for capsule in (
            tensor.__dlpack__(dl_device=(2, 0), max_version=version),
            tensor.cuda_view().__dlpack__(max_version=version),
            tensor.cuda_view().__dlpack__(dl_device=(2, 0), max_version=version, stream=-1),
        ):
            content = content_of(capsule)
            described = getattr(content, "dl_tensor", content)
            assert (described.device_type, described.device_id) == (2, 0)
            assert (described.data, described.byte_offset) == (tensor.data, 0)


def test_a_copy_for_cuda_is_of_the_same_kind(library: Any) -> None:
    tensor = to_dlpack_tensor(allocate("shared", 4 * COUNT, new_queue()), dtype="i4")
    view = tensor.cuda_view()

    class Copying:
        def __dlpack__(self, **keywords: Any) -> Any:
            return view.__dlpack__(**{**keywords, "copy": True})

        def __dlpack_device__(self) -> Any:
            return view.__dlpack_device__()

    copied = library.from_dlpack(Copying())
    assert library.address(copied) != tensor.data
    assert library.values(copied) == tensor.numpy().tolist()


def test_other_gpus_and_streams_are_refused() -> None:
    tensor = to_dlpack_tensor(allocate("device", 48, new_queue()), dtype="f4")
    with refused("request_unsupported", "dl_device", found="(2, 63)"):
        tensor.__dlpack__(dl_device=(2, 63))
    for stream in (True, -2, 3, 1 << 64, "1", new_queue(), 1.5):
        with wrong_argument(ValueError, "stream", "CUDA stream"):
            tensor.cuda_view().__dlpack__(stream=stream)


# --- Order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", ["new", LEGACY, PER_THREAD], ids=str)
def test_a_queue_waits_for_the_stream_of_a_producer(
    streamed: Any, queue: Any, chosen: Any, gates: list[Gate]
) -> None:
    stream = streamed.new_stream() if chosen == "new" else chosen
    array = streamed.zeros()
    control, unnamed = (Reading(new_queue(in_order=True)) for _ in range(2))
    named = Reading(queue)
    streamed.values(array)
    with streamed.on(stream):
        gates.append(Gate(stream))
        streamed.fill(array, 7)
        own, ours = from_dlpack(array), from_dlpack(array, device=queue)
    assert ours.sycl_queue == queue
    # Nobody ordered this queue. It comes first, because copies share the engines of the GPU.
    control.begin(own)
    assert control.values == ZEROS
    unnamed.begin(own, own.sycl_queue)
    named.begin(ours)
    assert unnamed.is_pending
    assert named.is_pending
    gates[-1].open()
    assert (unnamed.values, named.values) == (SEVENS, SEVENS)


@pytest.mark.parametrize("bare", [False, True], ids=["array", "capsule"])
def test_a_queue_is_behind_the_default_stream_of_a_producer_that_takes_no_stream(
    streamed: Any, queue: Any, gates: list[Gate], bare: bool
) -> None:
    array, reading = streamed.zeros(), Reading(queue)
    streamed.values(array)

    class Old:
        def __dlpack__(self) -> Any:
            return array.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return array.__dlpack_device__()

    with streamed.on(LEGACY):
        gates.append(Gate(LEGACY))
        streamed.fill(array, 7)
        ours = from_dlpack(array.__dlpack__() if bare else Old(), device=queue)
    reading.begin(ours)
    assert reading.is_pending
    gates[-1].open()
    assert reading.values == SEVENS


def test_a_view_of_an_extension_has_a_queue_behind_the_stream(
    streamed: Any, gates: list[Gate]
) -> None:
    extension = extension_under_test.load()
    array, stream = streamed.zeros("float32"), streamed.new_stream()
    control, reading = (Reading(new_queue(in_order=True)) for _ in range(2))
    for value in (1, 0):  # loads the kernel, which would wait for the gate
        streamed.fill(array, value)
    streamed.values(array)
    with streamed.on(stream):
        gates.append(Gate(stream))
        streamed.fill(array, 7)
        back = extension.given_back(array)
    assert back.data == streamed.address(array)
    control.begin(back)
    assert control.values == ZEROS
    reading.begin(back, back.sycl_queue)
    assert reading.is_pending
    gates[-1].open()
    assert np.array(reading.values, np.int32).view(np.float32).tolist() == SEVENS


class Pending:
    """A tensor of zeros whose queue writes sevens once a gate is opened."""

    def __init__(self, library: Any, queue: Any, gates: list[Gate]) -> None:
        holding = library.zeros()
        library.values(holding)
        memory = allocate("device", 4 * COUNT, queue)
        memory.copy_from_host(np.zeros(4 * COUNT, np.uint8))
        self.values = KINDS["host"](4 * COUNT, queue=queue)
        np.frombuffer(self.values, np.int32)[:] = 7
        closed = library.new_stream()
        self.gate = Gate(closed)
        gates.append(self.gate)
        with library.on(closed):
            library.fill(holding, 1)
            # Later work of the queue waits for the gate. Dropping this would wait for the queue.
            self._kept = from_dlpack(holding, device=queue)
        self.event = queue.memcpy_async(memory, self.values, 4 * COUNT)
        self.tensor = to_dlpack_tensor(memory, dtype="i4", queue=queue)

    @property
    def is_pending(self) -> bool:
        return bool(self.event.execution_status != dpctl.event_status_type.complete)


class Unordered:
    """An array of a tensor's memory whose export orders nothing."""

    def __init__(self, tensor: DLPackTensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.tensor.cuda_view().__dlpack__(**{**keywords, "stream": -1})

    def __dlpack_device__(self) -> Any:
        return self.tensor.cuda_view().__dlpack_device__()


@pytest.mark.parametrize("chosen", ["new", LEGACY, PER_THREAD], ids=str)
def test_the_stream_of_a_consumer_waits_for_the_queue(
    streamed: Any, queue: Any, chosen: Any, gates: list[Gate]
) -> None:
    out, unordered = streamed.zeros(), streamed.zeros()
    stream = streamed.new_stream() if chosen == "new" else chosen
    free = streamed.new_stream()
    pending = Pending(streamed, queue, gates)
    with streamed.on(stream):
        streamed.copy(out, streamed.from_dlpack(pending.tensor.cuda_view()))
    with streamed.on(free):  # a control: these values are not finished
        streamed.copy(unordered, streamed.from_dlpack(Unordered(pending.tensor)))
    call("cuStreamSynchronize", ctypes.c_void_p(free))
    assert pending.is_pending
    pending.gate.open()
    assert streamed.values(out) == SEVENS
    assert streamed.values(unordered) == ZEROS


def test_the_stream_that_the_array_interface_names_waits_for_the_queue(
    streamed: Any, queue: Any, gates: list[Gate]
) -> None:
    out = streamed.zeros()
    pending = Pending(streamed, queue, gates)
    view = pending.tensor.cuda_view()
    interface = view.__cuda_array_interface__
    assert (interface["version"], interface["stream"]) == (3, LEGACY)
    assert (interface["shape"], interface["typestr"]) == ((COUNT,), "<i4")
    with streamed.on(LEGACY):
        if isinstance(streamed, Cupy):  # the host waits for the stream
            waiting = Waiting(lambda: streamed.by_interface(view))
            assert waiting.is_waiting()
            pending.gate.open()
            seen = waiting.end()
        else:
            seen = streamed.by_interface(view)
        streamed.copy(out, seen)
        assert pending.is_pending or isinstance(streamed, Cupy)
    pending.gate.open()
    assert streamed.values(out) == SEVENS
    memory = allocate("device", 48, new_queue())
    idle = to_dlpack_tensor(TypedArray(memory, syclobj=queue.sycl_context))
    assert idle.cuda_view().__cuda_array_interface__["stream"] == 1  # CUDA's legacy default


def test_the_host_waits_for_a_host_task(streamed: Any) -> None:
    pending = PendingFill(new_queue())
    tensor = to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue)
    seen = answer_behind(pending, lambda: streamed.from_dlpack(tensor.cuda_view()))
    assert streamed.values(seen) == SEVENS


def test_values_are_right_behind_work_of_jax() -> None:
    """JAX chooses its streams itself, so its work cannot be held back; here it is long."""
    jax = next((made() for made in HERE if made.name == "jax"), None)
    if jax is None:
        return
    numpy = jax.jax.numpy

    @jax.jax.jit
    def work(x: Any) -> Any:
        for _ in range(20):
            x = x @ x / numpy.float32(2048)
        return x

    start = numpy.ones((2048, 2048), dtype="float32")
    work(start).block_until_ready()
    for device in (None, new_queue(), new_queue(in_order=True)):
        tensor = from_dlpack(work(start), device=device)
        assert float(tensor.numpy().min()) == 1.0


def test_the_code_of_the_page_is_right() -> None:
    if Torch not in HERE:
        return
    (program,) = guide.programs_of("how-to/cuda")
    names: dict[str, Any] = {}
    exec(program.code, names)
    assert names["usm_for_torch"](new_queue()).shape == (12,)
    assert names["usm_of_torch"](new_queue()).tolist() == list(range(12))


CALLS: dict[str, Callable[[SimpleNamespace], Any]] = {
    "empty": lambda made: empty((3,), "f4", device=made.queue),
    "to_dlpack_tensor": lambda made: to_dlpack_tensor(made.memory, queue=made.queue),
    "validate": lambda made: validate(made.array),
    "device_id": lambda made: device_id(made.array),
    "copy_from": lambda made: made.tensor.copy_from(np.arange(COUNT, dtype="i4")),
    "numpy": lambda made: made.tensor.numpy(),
    "a copy": lambda made: from_dlpack(made.tensor, copy=True),
    "a host copy": lambda made: from_dlpack(np.arange(3), device=made.queue),
    "wait": lambda made: made.tensor.wait(),
    "an import's end": lambda made: made.dropped.pop(),
    "a tensor's end": lambda made: made.allocated.pop(),
}


@pytest.fixture
def made(streamed: Any) -> SimpleNamespace:
    """Return what `CALLS` use."""
    queue = new_queue()
    array, memory = streamed.zeros(), allocate("device", 4 * COUNT, queue)
    return SimpleNamespace(
        queue=queue,
        array=array,
        memory=memory,
        tensor=to_dlpack_tensor(memory, dtype="i4", queue=queue),
        dropped=[from_dlpack(streamed.zeros(), device=queue)],
        allocated=[empty((3,), "f4", device=queue)],
    )


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("mode", [0, 1, 2], ids=["global", "thread_local", "relaxed"])
def test_a_call_does_not_end_the_recording_of_a_graph(
    streamed: Any, made: SimpleNamespace, mode: int, name: str
) -> None:
    stream, graph = streamed.new_stream(), ctypes.c_void_p()
    call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), mode)
    try:
        CALLS[name](made)
    finally:
        call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
    assert graph.value is not None


@pytest.mark.parametrize("mode", [0, 1, 2], ids=["global", "thread_local", "relaxed"])
def test_a_stream_that_records_a_graph_is_refused_and_records_on(
    streamed: Any, made: SimpleNamespace, mode: int
) -> None:
    stream, found = streamed.new_stream(), "one that records a CUDA graph"
    made.tensor.cuda_view().__dlpack__(stream=stream)
    call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), mode)
    try:
        with streamed.on(stream):
            with refused("runtime_error", "stream", found=found):
                made.tensor.cuda_view().__dlpack__(stream=stream)
            for _ in range(3):
                with refused("runtime_error", "stream", found=found):
                    from_dlpack(ByMethod(made.array), device=made.queue)
            streamed.fill(made.array, 7)
    finally:
        call("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(ctypes.c_void_p()))
    made.tensor.cuda_view().__dlpack__(stream=stream)
    assert from_dlpack(ByMethod(made.array), device=made.queue).numpy().tolist() == ZEROS


def test_an_import_waits_for_its_own_producer_alone(streamed: Any, gates: list[Gate]) -> None:
    """Eight producers that wait are not before one that does not."""
    idle, reading, free = streamed.zeros(), Reading(new_queue(in_order=True)), streamed.new_stream()
    producers = []
    for _ in range(8):
        array, queue = streamed.zeros(), new_queue(in_order=True)
        streamed.values(array)
        Reading(queue)  # makes the streams of the queue
        producers.append((array, queue, streamed.new_stream()))
    make_room_for_streams.cache_clear()
    kept = []
    for array, queue, stream in producers:
        with streamed.on(stream):
            gates.append(Gate(stream))
            kept.append(from_dlpack(ByMethod(array), device=queue))
    with streamed.on(free):
        reading.begin(from_dlpack(ByMethod(idle), device=reading.queue))
    assert reading.values == ZEROS
    for gate in gates:
        gate.open()


def test_memory_that_a_queue_uses_is_not_given_back(streamed: Any, gates: list[Gate]) -> None:
    array, stream, queue = streamed.zeros(), streamed.new_stream(), new_queue(in_order=True)
    Reading(queue)
    streamed.values(array)
    with streamed.on(stream):
        gates.append(Gate(stream))
        streamed.fill(array, 7)
        tensors = [from_dlpack(array, device=queue)]
    waiting = Waiting(tensors.clear)
    assert waiting.is_waiting()
    gates[-1].open()
    waiting.end()


def test_numba_takes_the_interface() -> None:
    if Numba not in HERE:
        return
    numba = Numba()
    tensor = to_dlpack_tensor(allocate("device", 4 * COUNT, new_queue()), dtype="i4")
    seen = numba.by_interface(tensor.cuda_view())
    assert numba.address(seen) == tensor.data
    tensor.copy_from(np.arange(COUNT, dtype="i4"))
    assert numba.values(seen) == list(range(COUNT))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_keeps_the_current_context(made: SimpleNamespace, name: str) -> None:
    primary = current_context()
    call("cuCtxSetCurrent", None)
    try:
        CALLS[name](made)
        assert current_context() is None
    finally:
        call("cuCtxSetCurrent", ctypes.c_void_p(primary))


def test_the_current_context_is_as_it_was(streamed: Any, queue: Any) -> None:
    array = streamed.zeros()
    tensor = to_dlpack_tensor(allocate("device", 48, queue), dtype="f4", queue=queue)
    view, capsule = tensor.cuda_view(), from_dlpack(array).cuda_view().__dlpack__()
    primary = current_context()

    class Made:
        def __dlpack__(self, **keywords: Any) -> Any:
            return capsule

        def __dlpack_device__(self) -> Any:
            return (2, 0)

    call("cuCtxSetCurrent", None)
    try:
        view.__dlpack__(stream=PER_THREAD)
        assert current_context() is None
        assert view.__cuda_array_interface__["stream"] == LEGACY
        assert current_context() is None
        taken = from_dlpack(Made(), device=queue)
        assert current_context() is None
    finally:
        call("cuCtxSetCurrent", ctypes.c_void_p(primary))
    assert taken.data == streamed.address(array)
