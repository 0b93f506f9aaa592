# SPDX-License-Identifier: Apache-2.0
"""Adapters of the conformance suite: this package, and libraries that it exchanges arrays with.

Each is imported only where it is asked for: no environment has all of them. Those of other
libraries say what they are known to fail, and why, as docs/consumers.md says it.
"""

import importlib
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

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

    # How docs/consumers.md names it, its distribution, and how a user passes it a tensor `x`.
    title = ""
    distribution = ""
    call = ""
    # The cases that it is known to fail, by the reason.
    fails: ClassVar[Mapping[str, Sequence[str]]] = {}

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

    def write_pending(self, array: Any, data: bytes) -> Callable[[], None]:
        (value,) = set(np.frombuffer(data, np.int32))
        queue = array.sycl_queue
        memory = dpctl.memory.as_usm_memory(Interface(self.address(array), len(data), queue))
        pending = PendingFill(queue, into=memory, value=int(value))
        return pending.open

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


UNCHECKED = (
    "It does not check these fields. Tensors of this package are right; check those of others by "
    "`usm_dlpack.validate`."
)


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


class OfNanobind(Ours):
    """What functions of an extension by nanobind return: each array is an `owned_view`."""

    module = extension_under_test.NAME

    def make(self, *arguments: Any, **keywords: Any) -> Any:
        extension = extension_under_test.load(self.module)
        return extension.any_given_back(super().make(*arguments, **keywords))


class OfPybind11(OfNanobind):
    """The same by pybind11."""

    module = "pybind11_under_test_module"


class OnHost(UsmLibrary):
    """A library for memory of the host, which takes our views of host and shared USM."""

    kinds = ("shared", "host")
    dtypes = Ours.dtypes
    module = "numpy"
    imports = "from_dlpack"

    def __init__(self) -> None:
        self.library = importlib.import_module(self.module)

    def make(self, *arguments: Any, **keywords: Any) -> Any:
        raise NotSupportedError("its arrays are on the host")

    def consume(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        if device is not None:
            raise NotSupportedError("its arrays are on the host")
        take = operator.attrgetter(self.imports)(self.library)
        view = usm_dlpack.from_dlpack(x).host_view()
        return take(view) if copy is None else take(view, copy=copy)

    def to_numpy(self, array: Any) -> np.ndarray:
        return np.from_dlpack(array)

    def to_bytes(self, array: Any) -> bytes:
        return self.to_numpy(array).tobytes()

    def address(self, array: Any) -> int:
        return int(self.to_numpy(array).ctypes.data)

    def is_readonly(self, array: Any) -> bool:
        return not self.to_numpy(array).flags.writeable


class NumPy(OnHost):
    title, distribution = "NumPy", "numpy"
    call = "numpy.from_dlpack(x.host_view())"

    def to_numpy(self, array: Any) -> np.ndarray:
        return array


class PyTorch(OnHost):
    title, distribution, module = "PyTorch for CPUs", "torch", "torch"
    call = "torch.from_dlpack(x.host_view())"
    fails: ClassVar = {
        "It can write to a read-only tensor: copy it first.": ["take.read-only"],
        "Negative strides end the process: copy the tensor first.": ["take.reversed"],
    }


class Jax(OnHost):
    title, distribution, module = "JAX for CPUs", "jax", "jax"
    call = "jax.dlpack.from_dlpack(x.host_view())"
    imports = "dlpack.from_dlpack"
    fails: ClassVar = {
        "It imports only compact and transposed tensors: copy others first.": [
            *("take.strided", "take.reversed", "take.broadcast"),
        ],
        "It copies memory that is not aligned to 64 bytes.": ["take.byte-offset"],
        "`copy=True` does not copy: call `jax.numpy.array` on the result.": ["take.copy"],
        "It imports no read-only tensor: copy it first.": ["take.read-only"],
        "JAX writes to no array.": ["take.writable"],
    }

    def __init__(self) -> None:
        super().__init__()
        self.library.config.update("jax_enable_x64", True)


class ArrayApiStrict(OnHost):
    title, distribution, module = "array-api-strict", "array-api-strict", "array_api_strict"
    call = "array_api_strict.from_dlpack(x.host_view())"
    dtypes = tuple(name for name in Ours.dtypes if name != "float16")


class PyArrow(OnHost):
    title, distribution, module = "pyarrow", "pyarrow", "pyarrow"
    call = "pyarrow.Tensor.from_dlpack(x.host_view())"
    imports = "Tensor.from_dlpack"
    fails: ClassVar = {"It has no negative strides: copy the tensor first.": ["take.reversed"]}
    dtypes = tuple(n for n in Ours.dtypes if n != "bool" and not n.startswith("complex"))

    def to_numpy(self, array: Any) -> np.ndarray:
        return array.to_numpy()


class TvmFfi(UsmLibrary):
    """tvm-ffi, which describes USM and allocates none: it exports what it took from ours."""

    title, distribution = "tvm-ffi", "apache-tvm-ffi"
    call = "tvm_ffi.from_dlpack(x)"
    dtypes = Ours.dtypes
    fails: ClassVar = {
        UNCHECKED: [
            *("refuse.bounds", "refuse.device-id", "refuse.device-type", "refuse.negative-extent"),
            *("refuse.negative-device-id", "refuse.negative-rank", "refuse.not-usm"),
            *("refuse.null", "refuse.null-shape", "refuse.overflow"),
        ],
        "It exports no copies, and nothing to the host: export `from_dlpack(a)` of this package.": [
            *("keywords.copy", "keywords.copy-values", "keywords.host", "keywords.host-flag"),
            "keywords.host-views",
        ],
        "It ignores `stream`: call `x.wait()` first.": ["stream.nonsense"],
        "Its `from_dlpack` names no version, so a producer without the C exchange API gives it a "
        "legacy capsule, or refuses.": ["take.max-version"],
        "Its `__dlpack__(max_version=(0, 8))` raises an AttributeError: leave `max_version` out.": [
            "capsule.old-version"
        ],
    }

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

    def write_pending(self, array: Any, data: bytes) -> Callable[[], None]:
        raise NotSupportedError("its arrays have no queue")


class DpctlTensor(UsmLibrary):
    """dpctl.tensor, and dpnp.tensor that took it over, in environments of their own."""

    title, distribution = "dpctl.tensor", "dpctl"
    call = "dpctl.tensor.from_dlpack(x)"
    dtypes = Ours.dtypes
    fails: ClassVar = {
        UNCHECKED: [
            *("refuse.bounds", "refuse.negative-extent", "refuse.negative-rank", "refuse.overflow"),
        ],
        "The process ends where a field is null: no tensor of this package has that.": [
            *("refuse.null-shape", "release.null-deleter"),
        ],
        "An empty tensor whose data is null is a TypeError: those that this package makes have an "
        "address.": ["take.empty-null"],
        "Its legacy capsule of a read-only array does not say so: pass the array itself.": [
            "capsule.read-only-legacy"
        ],
        "It does not wait for work that you submitted to the array's queue, nor does what it "
        "imports: call `a.sycl_queue.wait()` before you pass the array on.": [
            *("order.none", "order.import"),
        ],
        "`__dlpack__(stream=-1)` is a TypeError.": ["stream.minus-one", "order.minus-one"],
    }

    def __init__(self) -> None:
        self.library = importlib.import_module(self.call.rpartition(".")[0])
        self.tensor = importlib.import_module(f"{self.distribution}.tensor")

    def view(
        self, memory: Any, shape: Any, dtype: str, strides: Any, offset: int, queue: Any
    ) -> Any:
        return self.tensor.usm_ndarray(
            tuple(shape), dtype, None if strides is None else tuple(strides), memory, offset
        )

    def consume(self, x: Any, **keywords: Any) -> Any:
        return self.library.from_dlpack(x, **keywords)

    def to_bytes(self, array: Any) -> bytes:
        array.sycl_queue.wait()
        return bytes(self.library.asnumpy(array).tobytes())

    def address(self, array: Any) -> int:
        return int(array._pointer)

    def is_readonly(self, array: Any) -> bool:
        return not array.flags.writable

    def make_readonly(self, array: Any) -> Any:
        array.flags["W"] = False
        return array


class DpnpTensor(DpctlTensor):
    title, distribution = "dpnp.tensor", "dpnp"
    call = "dpnp.tensor.from_dlpack(x)"
    fails: ClassVar = DpctlTensor.fails | {
        "Null strides of C order, as before DLPack 1.2, end the process: ours are never null.": [
            "take.null-strides"
        ],
        "It exports an array without dimensions as read-only: use `to_dlpack_tensor(a)`.": [
            "capsule.writable"
        ],
    }


class Dpnp(DpnpTensor):
    """dpnp's arrays, which hold one of dpnp.tensor."""

    title = "dpnp"
    call = "dpnp.from_dlpack(x)"

    def view(self, *arguments: Any) -> Any:
        return self.library.ndarray._create_from_usm_ndarray(super().view(*arguments))

    def address(self, array: Any) -> int:
        return super().address(array.get_array())


class OursOfDpctlTensor(Ours):
    """Tensors of what dpctl.tensor made."""

    peer: type[DpctlTensor] = DpctlTensor

    def make(self, *arguments: Any, **keywords: Any) -> Any:
        return usm_dlpack.from_dlpack(self.peer().make(*arguments, **keywords))


class OursOfDpnp(OursOfDpctlTensor):
    """Tensors of what dpnp made."""

    peer = Dpnp


class OfOurs(DpctlTensor):
    """Arrays of a library, of tensors of this package."""

    def make(self, *arguments: Any, **keywords: Any) -> Any:
        return super().consume(Ours().make(*arguments, **keywords))

    def consume(self, x: Any, **keywords: Any) -> Any:
        return super().consume(usm_dlpack.from_dlpack(x), **keywords)


class DpctlTensorOfOurs(OfOurs):
    pass


class DpnpOfOurs(OfOurs, Dpnp):
    pass


_FAILED_OF_OURS = {
    *("capsule.read-only-legacy", "order.minus-one", "order.none", "stream.minus-one"),
    "take.empty-null",
}
# What is exchanged with ours in the environments that have these libraries, and fails there.
EXCHANGES: dict[str, dict[str, set[str]]] = {
    "dpctl-tensor": {"OursOfDpctlTensor": set(), "DpctlTensorOfOurs": _FAILED_OF_OURS},
    "dpnp": {
        "OursOfDpnp": {"capsule.writable"},
        "DpnpOfOurs": {*_FAILED_OF_OURS, "capsule.writable"},
    },
}
