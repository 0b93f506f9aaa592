# SPDX-License-Identifier: Apache-2.0
"""Adapters of the conformance suite: this package, and libraries that it exchanges arrays with.

Each is imported only where it is asked for: no environment has all of them.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import usm_dlpack
from memory_sources import KINDS, TypedArray, address_of, kept, new_queue
from pending_work import PendingFill
from usm_dlpack_conformance import Adapter, NotSupportedError
from usm_dlpack_conformance.cases import span


def memory_of(data: bytes, kind: str, queue: Any) -> Any:
    """Return memory of dpctl that holds the bytes."""
    memory = KINDS[kind](max(1, len(data)), queue=new_queue() if queue is None else queue)
    if data:
        memory.copy_from_host(np.frombuffer(data, np.uint8))
    return memory


class UsmLibrary(Adapter):
    """A library whose queues are those of dpctl, and whose arrays are views of dpctl's memory."""

    def view(
        self, memory: Any, shape: Any, dtype: str, strides: Any, offset: int, queue: Any
    ) -> Any:
        """Return an array over a memory; its first element is at an offset in elements."""
        raise NotImplementedError

    def make(
        self,
        data: bytes,
        shape: Sequence[int],
        dtype: str = "float32",
        strides: Sequence[int] | None = None,
        kind: str = "device",
        queue: Any = None,
    ) -> Any:
        offset = 0 if strides is None else span(shape, strides)[0]
        return self.view(memory_of(data, kind, queue), shape, dtype, strides, offset, queue)

    def queues(self) -> Sequence[Any]:
        return [new_queue(device) for device in dpctl.get_devices()]

    def allocate(self, data: bytes, kind: str = "device", queue: Any = None) -> tuple[Any, int]:
        memory = memory_of(data, kind, queue)
        return memory, address_of(memory)

    def queue_of_other_context(self) -> Any:
        device = usm_dlpack.root_device(0)
        return kept(dpctl.SyclQueue(dpctl.SyclContext([device]), device))

    def queue_of_sub_device(self) -> Any:
        try:
            part, *_ = usm_dlpack.root_device(0).create_sub_devices(partition=1)
        except dpctl.SyclSubDeviceCreationError as error:
            raise NotSupportedError("the device has no sub-devices") from error
        return kept(dpctl.SyclQueue(part))

    def read_behind(self, queue: Any, address: int, nbytes: int) -> bytes:
        target = dpctl.memory.MemoryUSMHost(nbytes, queue=queue)
        source = dpctl.memory.as_usm_memory(Interface(address, nbytes, queue))
        queue.memcpy_async(target, source, nbytes).wait()
        return bytes(target.copy_to_host())


class Interface:
    """Bytes of USM by `__sycl_usm_array_interface__`."""

    def __init__(self, address: int, nbytes: int, queue: Any) -> None:
        self.__sycl_usm_array_interface__ = {
            "data": (address, False),
            "shape": (nbytes,),
            "strides": None,
            "typestr": "|u1",
            "version": 1,
            "syclobj": queue,
        }


class Ours(UsmLibrary):
    """`usm_dlpack.DLPackTensor`."""

    dtypes = (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )

    def view(
        self, memory: Any, shape: Any, dtype: str, strides: Any, offset: int, queue: Any
    ) -> Any:
        return usm_dlpack.to_dlpack_tensor(
            memory,
            shape=shape,
            dtype=dtype,
            strides=strides,
            byte_offset=offset * np.dtype(dtype).itemsize,
            queue=queue,
        )

    def consume(self, x: Any, **keywords: Any) -> Any:
        return usm_dlpack.from_dlpack(x, **keywords)

    def to_bytes(self, array: Any) -> bytes:
        return bytes(array.numpy().tobytes())

    def address(self, array: Any) -> int:
        return int(array.data)

    def is_readonly(self, array: Any) -> bool:
        return bool(array.readonly)

    def make_readonly(self, array: Any) -> Any:
        read_only = TypedArray(array, **array.__sycl_usm_array_interface__)
        read_only.interface["data"] = (array.data, True)
        return usm_dlpack.to_dlpack_tensor(read_only)

    def write_pending(self, array: Any, data: bytes) -> Callable[[], None]:
        (value,) = set(np.frombuffer(data, np.int32))
        queue = array.sycl_queue
        memory = dpctl.memory.as_usm_memory(Interface(array.data, len(data), queue))
        pending = PendingFill(queue, into=memory, value=int(value))
        return pending.open


class OfNanobind(Ours):
    """What functions of an extension by nanobind return: each array is an `owned_view`."""

    module = extension_under_test.NAME

    def make(self, *arguments: Any, **keywords: Any) -> Any:
        extension = extension_under_test.load(self.module)
        return extension.any_given_back(super().make(*arguments, **keywords))


class OfPybind11(OfNanobind):
    """The same by pybind11."""

    module = "pybind11_under_test_module"


class NumPy(Adapter):
    """NumPy, which takes memory of the host."""

    device_type = 1
    dtypes = Ours.dtypes

    def consume(self, x: Any, device: Any = None, **keywords: Any) -> Any:
        return np.from_dlpack(x, device=None if device is None else "cpu", **keywords)

    def to_bytes(self, array: Any) -> bytes:
        return bytes(array.tobytes())

    def address(self, array: Any) -> int:
        return int(array.ctypes.data)

    def is_readonly(self, array: Any) -> bool:
        return not array.flags.writeable


class TvmFfi(UsmLibrary):
    """tvm-ffi, which describes USM and allocates none: it exports what it took from ours."""

    dtypes = Ours.dtypes

    def __init__(self) -> None:
        self.library = importlib.import_module("tvm_ffi")

    def make(self, *arguments: Any, **keywords: Any) -> Any:
        return self.library.from_dlpack(Ours().make(*arguments, **keywords))

    def consume(self, x: Any, **keywords: Any) -> Any:
        if keywords:
            raise NotSupportedError("its from_dlpack has no keywords device and copy")
        return self.library.from_dlpack(x)

    def to_bytes(self, array: Any) -> bytes:
        return bytes(usm_dlpack.from_dlpack(array).numpy().tobytes())

    def address(self, array: Any) -> int:
        return int(array.data_ptr())


class UsmNdarray(UsmLibrary):
    """dpctl.tensor, and dpnp.tensor that took it over, in environments of their own."""

    module = "dpctl.tensor"
    dtypes = Ours.dtypes

    def __init__(self) -> None:
        self.library = importlib.import_module(self.module)

    def view(
        self, memory: Any, shape: Any, dtype: str, strides: Any, offset: int, queue: Any
    ) -> Any:
        return self.library.usm_ndarray(
            tuple(shape), dtype, None if strides is None else tuple(strides), memory, offset
        )

    def consume(self, x: Any, **keywords: Any) -> Any:
        return self.library.from_dlpack(x, **keywords)

    def to_bytes(self, array: Any) -> bytes:
        return bytes(self.library.asnumpy(array).tobytes())

    def address(self, array: Any) -> int:
        return int(array._pointer)

    def is_readonly(self, array: Any) -> bool:
        return not array.flags.writable

    def make_readonly(self, array: Any) -> Any:
        array.flags["W"] = False
        return array


class DpnpTensor(UsmNdarray):
    """dpnp.tensor."""

    module = "dpnp.tensor"


class Dpnp(DpnpTensor):
    """dpnp's arrays, which hold one of dpnp.tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.dpnp = importlib.import_module("dpnp")

    def make(self, *arguments: Any, **keywords: Any) -> Any:
        return self.dpnp.ndarray._create_from_usm_ndarray(super().make(*arguments, **keywords))

    def consume(self, x: Any, **keywords: Any) -> Any:
        return self.dpnp.from_dlpack(x, **keywords)

    def to_bytes(self, array: Any) -> bytes:
        return super().to_bytes(array.get_array())

    def address(self, array: Any) -> int:
        return super().address(array.get_array())

    def is_readonly(self, array: Any) -> bool:
        return super().is_readonly(array.get_array())
