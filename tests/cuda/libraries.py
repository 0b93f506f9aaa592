# SPDX-License-Identifier: Apache-2.0
"""The libraries of CUDA that are installed here, by what the tests do with them."""

import ctypes
import functools
import importlib
import importlib.metadata
import importlib.util
import warnings
from typing import Any

COUNT = 12
# The legacy default stream, and that of the thread.
LEGACY, PER_THREAD = 1, 2
# By handle. They are kept, because a stream that is dropped is destroyed.
_streams: dict[int, Any] = {}


class Torch:
    """PyTorch."""

    name = "torch"

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.version = self.torch.__version__

    def zeros(self, dtype: str = "int32") -> Any:
        return self.torch.zeros(COUNT, dtype=getattr(self.torch, dtype), device="cuda:0")

    def new_stream(self) -> int:
        made = self.torch.cuda.Stream(0)
        _streams[made.cuda_stream] = made
        return int(made.cuda_stream)

    def on(self, stream: int) -> Any:
        made = self.torch.cuda
        external = made.ExternalStream(stream, device=0)
        return made.stream(made.default_stream(0) if stream == LEGACY else external)

    def fill(self, array: Any, value: int) -> None:
        array.fill_(value)

    def copy(self, out: Any, array: Any) -> None:
        out.copy_(array)

    def values(self, array: Any) -> Any:
        self.torch.cuda.synchronize()
        return array.cpu().tolist()

    def from_dlpack(self, x: Any) -> Any:
        return self.torch.from_dlpack(x)

    def by_interface(self, x: Any) -> Any:
        return self.torch.as_tensor(x, device="cuda:0")

    def address(self, array: Any) -> int:
        return int(array.data_ptr())


class Cupy:
    """CuPy."""

    name = "cupy"

    def __init__(self) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        self.version = self.cupy.__version__

    def zeros(self, dtype: str = "int32") -> Any:
        return self.cupy.zeros(COUNT, dtype=dtype)

    def new_stream(self) -> int:
        made = self.cupy.cuda.Stream(non_blocking=True)
        _streams[made.ptr] = made
        return int(made.ptr)

    def on(self, stream: int) -> Any:
        made = self.cupy.cuda.Stream
        known = {LEGACY: made.null, PER_THREAD: made.ptds}
        return known.get(stream) or _streams[stream]

    def fill(self, array: Any, value: int) -> None:
        array.fill(value)

    def copy(self, out: Any, array: Any) -> None:
        self.cupy.copyto(out, array)

    def values(self, array: Any) -> Any:
        self.cupy.cuda.Device().synchronize()
        return array.get().tolist()

    def from_dlpack(self, x: Any) -> Any:
        return self.cupy.from_dlpack(x)

    def by_interface(self, x: Any) -> Any:
        return self.cupy.asarray(x)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)


class Jax:
    """JAX, which works on streams of its own."""

    name = "jax"

    def __init__(self) -> None:
        self.jax: Any = importlib.import_module("jax")
        self.version = self.jax.__version__

    def zeros(self, dtype: str = "int32") -> Any:
        return self.jax.numpy.zeros(COUNT, dtype=dtype)

    def values(self, array: Any) -> Any:
        return self.jax.device_get(array + 0).tolist()  # the values of an array are remembered

    def from_dlpack(self, x: Any) -> Any:
        return self.jax.dlpack.from_dlpack(x)

    def address(self, array: Any) -> int:
        return int(array.unsafe_buffer_pointer())


class Numba:
    """Numba, which takes no DLPack."""

    name = "numba_cuda"

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # It makes a `timedelta64` of no unit, which NumPy 2.5 deprecates.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.cuda: Any = importlib.import_module("numba.cuda")
        self.version = importlib.metadata.version("numba-cuda")

    def values(self, array: Any) -> Any:
        return array.copy_to_host().tolist()

    def by_interface(self, x: Any) -> Any:
        return self.cuda.as_cuda_array(x)

    def address(self, array: Any) -> int:
        return int(array.__cuda_array_interface__["data"][0])


class ByMethod:
    """An array that has no C exchange API."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


CLASSES = (Torch, Cupy, Jax, Numba)
HERE = [made for made in CLASSES if importlib.util.find_spec(made.name)]
MISSING = [made.name for made in CLASSES if made not in HERE]


def call(name: str, *arguments: Any) -> None:
    """Call a function of CUDA's driver, which must succeed."""
    assert getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments) == 0


@functools.cache
def make_room_for_streams() -> None:
    """Let the driver have room for all streams that an out-of-order queue makes later.

    To make a stream, CUDA may wait for the work of the GPU.
    """
    kernels_and_barriers, copies, non_blocking = 128, 64, 1
    streams = [ctypes.c_void_p() for _ in range(kernels_and_barriers + copies)]
    for stream in streams:
        call("cuStreamCreate", ctypes.byref(stream), non_blocking)
    for stream in streams:
        call("cuStreamDestroy_v2", stream)


class Gate:
    """Holds back what is submitted to a stream from now on, until it is opened.

    The GPU waits until a number in pinned memory is not 0. No thread of the host waits.
    """

    def __init__(self, stream: int) -> None:
        make_room_for_streams()
        address = ctypes.c_void_p()
        call("cuMemAllocHost_v2", ctypes.byref(address), ctypes.c_size_t(4))
        self._number = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint32))
        self._number[0] = 0
        at_least = 0
        call("cuStreamWaitValue32_v2", ctypes.c_void_p(stream), address, 1, at_least)

    def open(self) -> None:
        self._number[0] = 1
