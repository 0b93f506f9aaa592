# SPDX-License-Identifier: Apache-2.0
"""Invalid uses of ``from_dlpack``, ``validate`` and ``__dlpack__`` on one root device."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path
from typing import Any

import dpctl
import dpctl.memory
import numpy as np
import usm_dlpack
from on_device import Interface, memory, tensor


def host_array_as_usm() -> None:
    usm_dlpack.from_dlpack(np.zeros(3))


def array_of_another_device_type() -> None:
    class CudaArray:
        def __dlpack__(self, **keywords: Any) -> Any:
            raise AssertionError("never asked")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    usm_dlpack.from_dlpack(CudaArray())


def device_that_is_no_pair() -> None:
    class CarelessArray:
        def __dlpack__(self, **keywords: Any) -> Any:
            raise AssertionError("never asked")

        def __dlpack_device__(self) -> Any:
            return "xpu:0"

    usm_dlpack.from_dlpack(CarelessArray())


def memory_that_must_not_be_written() -> None:
    array = Interface(memory, data=(memory._pointer, True))  # True: read-only
    tensor = usm_dlpack.to_dlpack_tensor(array)
    usm_dlpack.validate(tensor, readonly=False)


def read_only_memory_in_a_legacy_capsule() -> None:
    array = Interface(memory, data=(memory._pointer, True))  # True: read-only
    tensor = usm_dlpack.to_dlpack_tensor(array)
    tensor.__dlpack__()  # no max_version: a legacy capsule


def padded_elements_in_a_legacy_capsule() -> None:
    import ml_dtypes

    tensor = usm_dlpack.to_dlpack_tensor(memory, dtype=ml_dtypes.int4)
    tensor.__dlpack__()  # no max_version: a legacy capsule


def another_dtype_than_asked_for() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(memory, dtype="int32")
    usm_dlpack.validate(tensor, dtype="float32")


def another_ndim_than_asked_for() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
    usm_dlpack.validate(tensor, ndim=1)


def broadcast_that_is_to_be_written() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), strides=(0, 1), dtype="float32")
    usm_dlpack.validate(tensor, overlapping=False)


def another_device_than_asked_for() -> None:
    usm_dlpack.validate(tensor, device=(14, 1))  # it is on device 0


def id_that_no_device_has() -> None:
    usm_dlpack.root_device(7)


def id_that_is_no_int32() -> None:
    usm_dlpack.root_device(2**31)


def another_backend_than_asked_for() -> None:
    usm_dlpack.validate(tensor, backends="level_zero")


def another_usm_type_than_asked_for() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMHost(48))
    usm_dlpack.validate(tensor, usm_types=("device", "shared"))


def host_view_of_device_usm() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    tensor.host_view()


def values_that_are_not_on_the_host() -> None:
    tensor.copy_from(tensor)


def values_of_another_shape() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
    tensor.copy_from(np.zeros((4, 3), dtype="float32"))


def capsule_that_was_consumed() -> None:
    class OneCapsule:
        def __init__(self, tensor: usm_dlpack.DLPackTensor) -> None:
            self.capsule = tensor.__dlpack__()

        def __dlpack__(self) -> Any:
            return self.capsule

    array = OneCapsule(tensor)
    usm_dlpack.from_dlpack(array)  # consumes the capsule
    usm_dlpack.from_dlpack(array)


def exchange_api_that_fails_in_silence() -> None:
    # DLPackExchangeAPI: version 1.3, no older one, and five functions of which two are asked.
    fail = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda _, out: -1)
    failing = ctypes.cast(fail, ctypes.c_void_p).value
    table = (ctypes.c_void_p * 7)(1 | 3 << 32, None, None, failing, None, None, failing)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p

    class SilentArray:
        __dlpack_c_exchange_api__ = new_capsule(table, b"dlpack_exchange_api", None)

        def __dlpack__(self) -> Any:
            raise AssertionError("never asked")

    usm_dlpack.from_dlpack(SilentArray())


class LazyArray:
    """An array whose elements are conjugated or negated when read, as PyTorch's may be."""

    def __init__(self, memory: Any, *, conjugate: bool = False, negative: bool = False) -> None:
        self.__sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__
        self.conjugate, self.negative = conjugate, negative

    def __dlpack__(self, **keywords: Any) -> Any:
        raise AssertionError("never asked")

    def is_conj(self) -> bool:
        return self.conjugate

    def is_neg(self) -> bool:
        return self.negative


def conjugates_that_are_not_computed() -> None:
    memory = dpctl.memory.MemoryUSMShared(16)
    usm_dlpack.from_dlpack(LazyArray(memory, conjugate=True))  # as torch.conj(z) is


def negatives_that_are_not_computed() -> None:
    memory = dpctl.memory.MemoryUSMShared(16)
    usm_dlpack.from_dlpack(LazyArray(memory, negative=True))  # as torch.conj(z).imag is


def host_array_without_a_copy() -> None:
    usm_dlpack.from_dlpack(np.zeros(3), device=(14, 0), copy=False)


def another_usm_type_without_a_copy() -> None:
    usm_dlpack.from_dlpack(tensor, usm_type="shared", copy=False)


def another_order_without_a_copy() -> None:
    transposed = usm_dlpack.to_dlpack_tensor(memory, shape=(4, 3), strides=(1, 4), dtype="float32")
    usm_dlpack.from_dlpack(transposed, order="C", copy=False)


def device_usm_on_the_host_without_a_copy() -> None:
    np.from_dlpack(tensor, device="cpu", copy=False)


def copy_without_memory() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    memory = dpctl.memory.MemoryUSMDevice(1 << 28)
    tensor = usm_dlpack.to_dlpack_tensor(memory)
    pages = int(Path("/proc/self/statm").read_text().split()[0])  # that the process has now
    limit = pages * resource.getpagesize() + (1 << 26)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        tensor.__dlpack__(dl_device=(1, 0))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def version_that_is_no_pair() -> None:
    tensor.__dlpack__(max_version="1.0")


def export_to_another_device_type() -> None:
    tensor.__dlpack__(dl_device=(2, 0))


def export_to_a_list() -> None:
    tensor.__dlpack__(dl_device=[14, 0])


def copy_that_is_no_bool() -> None:
    tensor.__dlpack__(copy="if needed")


def import_to_the_host() -> None:
    usm_dlpack.from_dlpack(tensor, device=(1, 0))


def tensor_that_the_collector_cleared() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(memory)
    # What the garbage collector calls for a tensor in a cycle; a finalizer may see it afterwards.
    tp_clear = ctypes.pythonapi.PyType_GetSlot
    tp_clear.restype, tp_clear.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    clear = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(tp_clear(type(tensor), 51))
    clear(tensor)
    tensor.__dlpack__()


def tensor_that_was_not_made() -> None:
    tensor = usm_dlpack.DLPackTensor.__new__(usm_dlpack.DLPackTensor)
    tensor.__dlpack__()
