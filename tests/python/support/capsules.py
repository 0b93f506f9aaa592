# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules as another library makes them, field by field, and what stands in a capsule.

`ForeignTensor` is the one builder: it is valid, and a test spoils one field of ``managed`` or
``tensor`` before it takes the capsule. It counts the calls of its deleter.
"""

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import dpctl
import usm_dlpack

READ_ONLY, IS_COPIED, IS_SUBBYTE_TYPE_PADDED = 1, 2, 4
NEWEST = (1, 3)  # version of DLPack
VERSIONED, LEGACY = b"dltensor_versioned", b"dltensor"
_USED: dict[Any, bytes] = {VERSIONED: b"used_dltensor_versioned", LEGACY: b"used_dltensor"}
# The codes of the dtypes of 8 bits that are named by code alone.
_NAMES = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
FLOAT8 = {f"float8_{name}": code for code, name in enumerate(_NAMES, 7)}


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class DLManagedTensor(ctypes.Structure):
    """``DLManagedTensor`` of dlpack.h, from before 1.0."""

    _fields_ = (
        ("dl_tensor", DLTensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


# Of a deleter or destructor. A capsule comes as an address: a reference would revive it.
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of Python's C interface, called with the GIL held."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new = _function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_get_name = _function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_set_name = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
get_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_name_at = _function("PyCapsule_GetName", ctypes.c_char_p, ctypes.c_void_p)

# Structs and callbacks stay as long as the process: a capsule may outlive its test.
_kept: list[Any] = []


def forget_kept() -> None:
    """Let structs and callbacks go; the caller knows that no capsule or owner of one is left."""
    _kept.clear()


def new_capsule(address: int, name: bytes | None, destructor: Any = None) -> Any:
    """Return a capsule; its name stays as long as the process."""
    _kept.append(name)
    return _new(address, name, ctypes.cast(destructor, ctypes.c_void_p) if destructor else None)


def name_of(capsule: Any) -> bytes | None:
    name: bytes | None = _get_name(capsule)
    return name


def content_of(capsule: Any) -> Any:
    """Return the managed tensor in a capsule, as a struct in place, which keeps the capsule."""
    name = name_of(capsule)
    assert name is not None
    kind = DLManagedTensorVersioned if name.endswith(b"_versioned") else DLManagedTensor
    content = kind.from_address(get_pointer(capsule, name))
    content.capsule = capsule
    return content


def consume(capsule: Any) -> Any:
    """Take what a capsule owns, as a consumer in C does: the caller runs the deleter."""
    content = content_of(capsule)
    _set_name(capsule, _USED[name_of(capsule)])
    return content


def call_deleter(managed: Any) -> None:
    """Run a managed tensor's deleter, without the GIL, as a thread of C code would."""
    _Callback(managed.deleter)(ctypes.addressof(managed))


def integers(pointer: Any, count: int) -> tuple[int, ...]:
    return tuple(int(value) for value in pointer[:count])


def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[r + 1 :]) for r in range(len(shape)))


def bytes_on_host(capsule: Any) -> bytes:
    """Return the bytes of a compact tensor in a capsule for the host."""
    inside = content_of(capsule).dl_tensor
    assert (inside.device_type, inside.device_id, inside.byte_offset) == (1, 0, 0)
    shape = integers(inside.shape, inside.ndim)
    assert integers(inside.strides, inside.ndim) == compact_strides(shape)
    return ctypes.string_at(inside.data, math.prod(shape) * inside.bits // 8)


class ForeignTensor:
    """A managed tensor of another library: 12 float32 at an address, compact, on device 0."""

    def __init__(
        self,
        data: int,
        *,
        shape: Sequence[int] = (3, 4),
        strides: Sequence[int] | None = None,
        dtype: tuple[int, int, int] = (2, 32, 1),
        legacy: bool = False,
    ) -> None:
        self.managed: Any = DLManagedTensor() if legacy else DLManagedTensorVersioned()
        self.name = LEGACY if legacy else VERSIONED
        self.deletions = 0
        if not legacy:
            self.managed.major, self.managed.minor = 1, 3
        self._deleter = _Callback(self._delete)
        self._destructor = _Callback(self._destroy)
        self.managed.deleter = ctypes.cast(self._deleter, ctypes.c_void_p)
        tensor = self.tensor
        tensor.data = data
        tensor.device_type = 14
        tensor.code, tensor.bits, tensor.lanes = dtype
        tensor.ndim = len(shape)
        tensor.shape = self.array(shape)
        tensor.strides = self.array(compact_strides(shape) if strides is None else strides)
        _kept.append(self)

    @property
    def tensor(self) -> Any:
        return self.managed.dl_tensor

    def array(self, values: Sequence[int]) -> Any:
        """Return an array for ``shape`` or ``strides`` that lives as long as the process."""
        array = (ctypes.c_int64 * len(values))(*values)
        _kept.append(array)
        return array

    def capsule(self) -> Any:
        """Return a fresh capsule, whose death runs the deleter if nobody consumed it."""
        return new_capsule(ctypes.addressof(self.managed), self.name, self._destructor)

    def _delete(self, address: int) -> None:
        assert address == ctypes.addressof(self.managed)
        self.deletions += 1

    def _destroy(self, capsule: int) -> None:
        if _name_at(capsule) == self.name and self.managed.deleter:
            call_deleter(self.managed)


class ForeignArray:
    """An array of another library, up to date with DLPack, whose tensor a test has spoiled."""

    def __init__(self, foreign: ForeignTensor, device: Any = (14, 0)) -> None:
        self.foreign = foreign
        self.device = device
        self.asked: list[dict[str, Any]] = []
        # Held, so that the capsule does not die while an exception is on its way: a destructor in
        # Python could not run then.
        self.given: Any = None

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        self.asked.append({name: value for name, value in asked.items() if value is not None})
        capsule = self.given = self.foreign.capsule()
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.device


class Ordering(ForeignArray):
    """An array that says no queue, and orders the consumer's behind its own, as dpnp's do."""

    def __init__(self, foreign: ForeignTensor, queue: Any) -> None:
        super().__init__(foreign)
        self.queue = queue

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        if stream is not None and stream != self.queue:
            stream.submit_barrier([self.queue.submit_barrier()])
        return super().__dlpack__(**keywords)


def dpctl_queue() -> Any:
    """Return the queue on which dpctl and dpnp put memory that they take without a queue."""
    return dpctl.get_device_cached_queue(dpctl.SyclDevice())


@functools.cache  # a tensor that goes waits for its queue
def package_queue(device_id: int = 0) -> Any:
    """Return the package's queue of a root device, which tensors have that know no other."""
    return usm_dlpack.empty(1, device=(14, device_id)).sycl_queue


class OldArray:
    """An array from before all keywords, which answers with whatever a test gave it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __dlpack__(self) -> Any:
        return self.answer


class Calling:
    """An array whose ``__dlpack__`` runs something first."""

    def __init__(self, tensor: Any, act: Callable[[], object]) -> None:
        self.tensor = tensor
        self.act = act

    def __dlpack__(self, **keywords: Any) -> Any:
        self.act()
        return self.tensor.__dlpack__(**keywords)
