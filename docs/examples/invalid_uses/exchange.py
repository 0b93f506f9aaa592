# SPDX-License-Identifier: Apache-2.0
"""Invalid uses of ``from_dlpack``, ``validate`` and ``__dlpack__`` on one root device.

Each function is one use, and raises what its page in docs/errors says.
"""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path
from typing import Any

import dpctl
import dpctl.memory
import numpy as np
import usm_dlpack


class Interface:
    """An object that offers memory by dpctl's array interface, some fields of it changed."""

    def __init__(self, memory: Any, **changes: Any) -> None:
        self.memory = memory
        self.__sycl_usm_array_interface__ = {**memory.__sycl_usm_array_interface__, **changes}


def host_array_as_usm() -> None:
    """Take an array in host memory without saying where it is to be copied."""
    # [begin host_array_as_usm]
    usm_dlpack.from_dlpack(np.zeros(3))
    # [end host_array_as_usm]


def array_of_another_device_type() -> None:
    """Take an array that says itself that it is on a CUDA device."""

    # [begin array_of_another_device_type]
    class CudaArray:
        def __dlpack__(self, **keywords: Any) -> Any:
            raise AssertionError("never asked")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    usm_dlpack.from_dlpack(CudaArray())
    # [end array_of_another_device_type]


def device_that_is_no_pair() -> None:
    """Take an array whose ``__dlpack_device__`` does not answer as DLPack wants it."""

    # [begin device_that_is_no_pair]
    class CarelessArray:
        def __dlpack__(self, **keywords: Any) -> Any:
            raise AssertionError("never asked")

        def __dlpack_device__(self) -> Any:
            return "xpu:0"

    usm_dlpack.from_dlpack(CarelessArray())
    # [end device_that_is_no_pair]


def memory_that_must_not_be_written() -> None:
    """Ask for writable memory of an array that is read-only."""
    # [begin memory_that_must_not_be_written]
    memory = dpctl.memory.MemoryUSMDevice(48)
    array = Interface(memory, data=(memory._pointer, True))  # True: read-only
    tensor = usm_dlpack.to_dlpack_tensor(array)
    usm_dlpack.validate(tensor, readonly=False)
    # [end memory_that_must_not_be_written]


def read_only_memory_in_a_legacy_capsule() -> None:
    """Export read-only memory to a consumer from before DLPack 1.0."""
    # [begin read_only_memory_in_a_legacy_capsule]
    memory = dpctl.memory.MemoryUSMDevice(48)
    array = Interface(memory, data=(memory._pointer, True))  # True: read-only
    tensor = usm_dlpack.to_dlpack_tensor(array)
    tensor.__dlpack__()  # no max_version: a legacy capsule
    # [end read_only_memory_in_a_legacy_capsule]


def padded_elements_in_a_legacy_capsule() -> None:
    """Export elements of four bits, each in a byte, to a consumer from before DLPack 1.0."""
    # [begin padded_elements_in_a_legacy_capsule]
    import ml_dtypes

    memory = dpctl.memory.MemoryUSMDevice(48)
    tensor = usm_dlpack.to_dlpack_tensor(memory, dtype=ml_dtypes.int4)
    tensor.__dlpack__()  # no max_version: a legacy capsule
    # [end padded_elements_in_a_legacy_capsule]


def another_dtype_than_asked_for() -> None:
    """Require a dtype that the array does not have."""
    # [begin another_dtype_than_asked_for]
    memory = dpctl.memory.MemoryUSMDevice(48)
    tensor = usm_dlpack.to_dlpack_tensor(memory, dtype="int32")
    usm_dlpack.validate(tensor, dtype="float32")
    # [end another_dtype_than_asked_for]


def another_ndim_than_asked_for() -> None:
    """Require a number of dimensions that the array does not have."""
    # [begin another_ndim_than_asked_for]
    memory = dpctl.memory.MemoryUSMDevice(48)
    tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
    usm_dlpack.validate(tensor, ndim=1)
    # [end another_ndim_than_asked_for]


def broadcast_that_is_to_be_written() -> None:
    """Require elements that do not overlap of a broadcast array."""
    # [begin broadcast_that_is_to_be_written]
    memory = dpctl.memory.MemoryUSMDevice(48)
    tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), strides=(0, 1), dtype="float32")
    usm_dlpack.validate(tensor, overlapping=False)
    # [end broadcast_that_is_to_be_written]


def another_device_than_asked_for() -> None:
    """Require a root device that the array is not on."""
    # [begin another_device_than_asked_for]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))  # on device 0
    usm_dlpack.validate(tensor, device=(14, 1))
    # [end another_device_than_asked_for]


def id_that_no_device_has() -> None:
    """Ask for a root device that the process does not have."""
    # [begin id_that_no_device_has]
    usm_dlpack.root_device(7)
    # [end id_that_no_device_has]


def id_that_is_no_int32() -> None:
    """Ask for an id that DLPack has no room for."""
    # [begin id_that_is_no_int32]
    usm_dlpack.root_device(2**31)
    # [end id_that_is_no_int32]


def another_backend_than_asked_for() -> None:
    """Require a backend that the array's device is not of."""
    # [begin another_backend_than_asked_for]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.validate(tensor, backends="level_zero")
    # [end another_backend_than_asked_for]


def another_usm_type_than_asked_for() -> None:
    """Require a USM kind that the memory is not of."""
    # [begin another_usm_type_than_asked_for]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMHost(48))
    usm_dlpack.validate(tensor, usm_types=("device", "shared"))
    # [end another_usm_type_than_asked_for]


def capsule_that_was_consumed() -> None:
    """Take a capsule a second time."""

    # [begin capsule_that_was_consumed]
    class OneCapsule:
        def __init__(self, tensor: usm_dlpack.DLPackTensor) -> None:
            self.capsule = tensor.__dlpack__()

        def __dlpack__(self) -> Any:
            return self.capsule

    array = OneCapsule(usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48)))
    first = usm_dlpack.from_dlpack(array)  # consumes the capsule
    assert first.nbytes == 48
    usm_dlpack.from_dlpack(array)
    # [end capsule_that_was_consumed]


def object_that_is_no_capsule() -> None:
    """Take what a producer hands over that is no capsule."""

    # [begin object_that_is_no_capsule]
    class NoCapsule:
        def __dlpack__(self) -> Any:
            return 14

    usm_dlpack.from_dlpack(NoCapsule())
    # [end object_that_is_no_capsule]


def exchange_api_that_fails_in_silence() -> None:
    """Take an array whose C exchange API fails and does not say why."""
    # [begin exchange_api_that_fails_in_silence]
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
    # [end exchange_api_that_fails_in_silence]


class LazyArray:
    """An array whose elements may be conjugated or negated when they are read, as PyTorch's are."""

    def __init__(self, memory: Any, *, conjugate: bool = False, negative: bool = False) -> None:
        self.__sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__
        self.conjugate, self.negative = conjugate, negative

    def __dlpack__(self, **keywords: Any) -> Any:
        """Hand over the memory: not reached."""
        raise AssertionError("never asked")

    def is_conj(self) -> bool:
        """Return whether the elements are the conjugates of those in memory."""
        return self.conjugate

    def is_neg(self) -> bool:
        """Return whether the elements are the negatives of those in memory."""
        return self.negative


def conjugates_that_are_not_computed() -> None:
    """Take an array whose elements are the conjugates of those in its memory."""
    memory = dpctl.memory.MemoryUSMShared(16)
    # [begin conjugates_that_are_not_computed]
    usm_dlpack.from_dlpack(LazyArray(memory, conjugate=True))  # as torch.conj(z) is
    # [end conjugates_that_are_not_computed]


def negatives_that_are_not_computed() -> None:
    """Take an array whose elements are the negatives of those in its memory."""
    memory = dpctl.memory.MemoryUSMShared(16)
    # [begin negatives_that_are_not_computed]
    usm_dlpack.from_dlpack(LazyArray(memory, negative=True))  # as torch.conj(z).imag is
    # [end negatives_that_are_not_computed]


def host_array_without_a_copy() -> None:
    """Forbid the copy that the way from host memory to USM is."""
    # [begin host_array_without_a_copy]
    usm_dlpack.from_dlpack(np.zeros(3), device=(14, 0), copy=False)
    # [end host_array_without_a_copy]


def another_usm_type_without_a_copy() -> None:
    """Forbid the copy that another USM kind is."""
    # [begin another_usm_type_without_a_copy]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.from_dlpack(tensor, usm_type="shared", copy=False)
    # [end another_usm_type_without_a_copy]


def device_usm_on_the_host_without_a_copy() -> None:
    """Forbid the copy that the way from device USM to the host is."""
    # [begin device_usm_on_the_host_without_a_copy]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    np.from_dlpack(tensor, device="cpu", copy=False)
    # [end device_usm_on_the_host_without_a_copy]


def copy_of_the_producer() -> None:
    """Forbid copies of a producer that makes one."""

    # [begin copy_of_the_producer]
    class Copying:
        def __init__(self, tensor: usm_dlpack.DLPackTensor) -> None:
            self.tensor = tensor

        def __dlpack__(self, *, max_version: Any = None) -> Any:  # takes no copy=False
            return self.tensor.__dlpack__(max_version=max_version, copy=True)

    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.from_dlpack(Copying(tensor), copy=False)
    # [end copy_of_the_producer]


def copy_without_memory() -> None:
    """Ask for a copy that there is no memory for."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    # [begin copy_without_memory]
    memory = dpctl.memory.MemoryUSMDevice(1 << 28)
    tensor = usm_dlpack.to_dlpack_tensor(memory)
    pages = int(Path("/proc/self/statm").read_text().split()[0])  # that the process has now
    limit = pages * resource.getpagesize() + (1 << 26)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        tensor.__dlpack__(dl_device=(1, 0))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    # [end copy_without_memory]


def version_that_is_no_pair() -> None:
    """Name the newest DLPack version by something else than a pair."""
    # [begin version_that_is_no_pair]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    tensor.__dlpack__(max_version="1.0")
    # [end version_that_is_no_pair]


def export_to_another_device_type() -> None:
    """Ask for a copy on a device that is no SYCL device."""
    # [begin export_to_another_device_type]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    tensor.__dlpack__(dl_device=(2, 0))
    # [end export_to_another_device_type]


def export_to_a_list() -> None:
    """Name the device of an export by a list."""
    # [begin export_to_a_list]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    tensor.__dlpack__(dl_device=[14, 0])
    # [end export_to_a_list]


def copy_that_is_no_bool() -> None:
    """Answer the question of a copy with something else than yes or no."""
    # [begin copy_that_is_no_bool]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    tensor.__dlpack__(copy="if needed")
    # [end copy_that_is_no_bool]


def import_to_the_host() -> None:
    """Ask for a DLPackTensor in host memory, which is none."""
    # [begin import_to_the_host]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.from_dlpack(tensor, device=(1, 0))
    # [end import_to_the_host]


def tensor_that_the_collector_cleared() -> None:
    """Export a tensor of which the garbage collector has taken the memory."""
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    # [begin tensor_that_the_collector_cleared]
    # What the garbage collector calls for a tensor in a cycle that nobody else refers to; a
    # finalizer in the same cycle may still see the tensor after it.
    tp_clear = ctypes.pythonapi.PyType_GetSlot
    tp_clear.restype, tp_clear.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    clear = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(tp_clear(type(tensor), 51))
    clear(tensor)
    tensor.__dlpack__()
    # [end tensor_that_the_collector_cleared]


def tensor_that_was_not_made() -> None:
    """Export an object of the class that no function made."""
    # [begin tensor_that_was_not_made]
    tensor = usm_dlpack.DLPackTensor.__new__(usm_dlpack.DLPackTensor)
    tensor.__dlpack__()
    # [end tensor_that_was_not_made]
