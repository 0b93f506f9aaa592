# SPDX-License-Identifier: Apache-2.0
"""The side of the exchange that is not the peer's: USM, kernels on it, producers and capsules."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import dpctl
import dpctl.memory
import dpctl.program
import numpy as np
import usm_dlpack

USM_TYPES = ("device", "host", "shared")

_ALLOCATE = {
    "device": dpctl.memory.MemoryUSMDevice,
    "host": dpctl.memory.MemoryUSMHost,
    "shared": dpctl.memory.MemoryUSMShared,
}

_KERNELS = """
kernel void count(global int *x) { x[get_global_id(0)] = get_global_id(0); }
kernel void triple(global int *x) { x[get_global_id(0)] *= 3; }
"""


@cache
def default_queue() -> dpctl.SyclQueue:
    """Return one queue of the default device, in its default context."""
    return dpctl.SyclQueue()


def foreign_queue() -> dpctl.SyclQueue:
    """Return a queue of the default device in a context that is not the default one."""
    device = default_queue().sycl_device
    return dpctl.SyclQueue(dpctl.SyclContext([device]), device)


def allocate(values: np.ndarray, usm_type: str = "device", queue: Any = None) -> Any:
    """Return USM that holds the bytes of an array."""
    memory = _ALLOCATE[usm_type](values.nbytes, queue=queue or default_queue())
    memory.copy_from_host(np.ascontiguousarray(values).reshape(-1).view("u1"))
    return memory


def make_tensor(values: np.ndarray, usm_type: str = "device") -> usm_dlpack.DLPackTensor:
    """Return a compact tensor with these values."""
    memory = allocate(values, usm_type)
    return usm_dlpack.to_dlpack_tensor(memory, shape=values.shape, dtype=values.dtype)


def make_view(base: np.ndarray, view: np.ndarray) -> usm_dlpack.DLPackTensor:
    """Return a tensor that sees of USM what ``view`` sees of ``base``."""
    return usm_dlpack.to_dlpack_tensor(
        allocate(base),
        shape=view.shape,
        dtype=view.dtype,
        strides=[step // view.itemsize for step in view.strides],
        byte_offset=view.ctypes.data - base.ctypes.data,
    )


def read(tensor: Any) -> np.ndarray:
    """Return the values of a tensor of this package."""
    return np.from_dlpack(tensor, device="cpu")


def write(tensor: usm_dlpack.DLPackTensor, values: np.ndarray) -> None:
    """Write values to the memory of a compact tensor."""
    memory = dpctl.memory.as_usm_memory(tensor)
    memory.copy_from_host(np.ascontiguousarray(values).reshape(-1).view("u1"))


@cache
def _program() -> Any:
    return dpctl.program.create_program_from_source(default_queue(), _KERNELS)


def launch(kernel: str, memory: Any, count: int) -> None:
    """Run ``count`` (x[i] = i) or ``triple`` (x[i] *= 3) on 32-bit integers, and wait for it."""
    found = _program().get_sycl_kernel(kernel)
    default_queue().submit(found, [memory], [count]).wait()


class HeldCapsule:
    """A producer that hands out one capsule, whatever it is asked for."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 14, described(self.capsule).device_id


class OldProducer:
    """A producer from before DLPack 1.0, whose ``__dlpack__`` has no other keyword."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class MemoryOwner:
    """What owns memory, and can be referred to weakly, which dpctl's memory cannot."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        # dpctl calls all of its memory read-only.
        interface = {**memory.__sycl_usm_array_interface__, "data": (memory._pointer, False)}
        self.__sycl_usm_array_interface__ = interface


class Described(ctypes.Structure):
    """``DLTensor`` of dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype = ctypes.c_char_p
_name_of.argtypes = [ctypes.py_object]


def name_of(capsule: Any) -> str:
    """Return a capsule's name."""
    return str(_name_of(capsule), "ascii")


def described(capsule: Any) -> Described:
    """Return the tensor in a capsule; it may be changed there."""
    name = name_of(capsule)
    # In front of it the versioned struct has version, manager_ctx, deleter and flags.
    before = 32 if name.endswith("versioned") else 0
    return Described.from_address(_pointer_of(capsule, name.encode()) + before)
