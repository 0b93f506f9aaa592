# SPDX-License-Identifier: Apache-2.0
"""The structs of dlpack.h and Python's capsules, by ctypes: read, and made as a producer does."""

import ctypes
from collections.abc import Sequence
from typing import Any

from .adapter import NotSupportedError
from .cases import VALUES, compact_strides

READ_ONLY, IS_COPIED = 1, 2
KNOWN_FLAGS = 7
CPU, ONEAPI = 1, 14  # kDLCPU, kDLOneAPI
VERSIONED, LEGACY = b"dltensor_versioned", b"dltensor"
USED = {VERSIONED: b"used_dltensor_versioned", LEGACY: b"used_dltensor"}
# Code and bits of NumPy's dtypes.
DTYPES = {
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits) for bits in (16, 32, 64)},
    **{f"complex{bits}": (5, bits) for bits in (64, 128)},
    "bool": (6, 8),
}


class DLTensor(ctypes.Structure):
    """``DLTensor``."""

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
    """``DLManagedTensor``, of before version 1.0."""

    _fields_ = (
        ("dl_tensor", DLTensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class DLManagedTensorVersioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    )


# Of a deleter or a destructor. A capsule comes as an address: a reference would revive it.
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of Python's C interface, called with the GIL held."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new = _function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_get_name = _function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_set_name = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_get_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_name_at = _function("PyCapsule_GetName", ctypes.c_char_p, ctypes.c_void_p)


def _keep(x: Any) -> None:
    """Keep structs, callbacks and names for good: a capsule may outlive even the interpreter."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


def new_capsule(address: int, name: bytes | None, destructor: Any = None) -> Any:
    """Return a capsule; its name stays as long as the process."""
    _keep(name)
    return _new(address, name, ctypes.cast(destructor, ctypes.c_void_p) if destructor else None)


def name_of(capsule: Any) -> bytes | None:
    """Return a capsule's name."""
    name: bytes | None = _get_name(capsule)
    return name


def pointer_of(capsule: Any) -> int:
    """Return what a capsule points to."""
    return int(_get_pointer(capsule, _get_name(capsule)))


def content_of(capsule: Any) -> Any:
    """Return the managed tensor in a capsule, as a struct in place, which keeps the capsule."""
    name = name_of(capsule)
    assert name in (*USED, *USED.values()), f"a capsule of the name {name!r}"
    kind = DLManagedTensorVersioned if name.endswith(b"_versioned") else DLManagedTensor
    content = kind.from_address(pointer_of(capsule))
    content.capsule = capsule
    return content


def consume(capsule: Any) -> Any:
    """Take what a capsule owns, as a consumer in C does: the caller runs the deleter."""
    content = content_of(capsule)
    _set_name(capsule, USED[_get_name(capsule)])
    return content


def call_deleter(managed: Any) -> None:
    """Run a managed tensor's deleter, if there is one, without the GIL as C code would."""
    if managed.deleter:
        _Callback(managed.deleter)(ctypes.addressof(managed))


def integers(pointer: Any, count: int) -> tuple[int, ...]:
    """Return the extents or strides of a tensor."""
    return tuple(int(value) for value in pointer[:count])


def first_element(tensor: Any) -> int:
    """Return the address of a tensor's first element."""
    return int(tensor.data or 0) + int(tensor.byte_offset)


class Foreign:
    """A managed tensor of another library, valid until a case spoils a field of ``tensor``.

    It keeps the owner of its memory, and counts the calls of its deleter.
    """

    def __init__(
        self,
        address: int,
        shape: Sequence[int],
        dtype: str = "float32",
        strides: Sequence[int] | None = None,
        device: tuple[int, int] = (ONEAPI, 0),
        legacy: bool = False,
        owner: Any = None,
    ) -> None:
        self.address, self.device, self.owner = address, device, owner
        self.managed: Any = DLManagedTensor() if legacy else DLManagedTensorVersioned()
        self.name = LEGACY if legacy else VERSIONED
        self.deletions = 0
        self._counting = self
        self._twin: Foreign | None = None
        if not legacy:
            self.managed.major, self.managed.minor = 1, 1
        self._callbacks = _Callback(self._delete), _Callback(self._destroy)
        self.managed.deleter = ctypes.cast(self._callbacks[0], ctypes.c_void_p)
        tensor = self.tensor = self.managed.dl_tensor
        tensor.data = address
        tensor.device_type, tensor.device_id = device
        tensor.code, tensor.bits = DTYPES[dtype]
        tensor.lanes = 1
        tensor.ndim = len(shape)
        tensor.shape = self.array(shape)
        tensor.strides = self.array(compact_strides(shape) if strides is None else strides)
        for kept in (self, self.managed, self.tensor, *self._callbacks):
            _keep(kept)

    def array(self, values: Sequence[int]) -> Any:
        """Return an array for ``shape`` or ``strides`` that lives as long as the process."""
        array = (ctypes.c_int64 * max(1, len(values)))(*values)
        _keep(array)
        return array

    def capsule(self, name: bytes | None = None) -> Any:
        """Return a fresh capsule, whose death runs the deleter if nobody consumed it."""
        return new_capsule(ctypes.addressof(self.managed), name or self.name, self._callbacks[1])

    def legacy_twin(self) -> "Foreign":
        """Return the same tensor in a legacy struct, whose deleter counts here."""
        if self._twin is not None:
            return self._twin
        twin = Foreign(self.address, (), legacy=True, owner=self.owner)
        ctypes.pointer(twin.tensor)[0] = self.tensor
        if not self.managed.deleter:
            twin.managed.deleter = None
        twin._counting = self
        self._twin = twin
        return twin

    def _delete(self, address: int) -> None:
        self._counting.deletions += 1

    def _destroy(self, capsule: int) -> None:
        if _name_at(capsule) not in USED.values():
            call_deleter(self.managed)


class Producer:
    """An array of another library over a `Foreign`, which never copies.

    It keeps the last capsule, its first name, and the keywords of each call. A consumer that names
    no version gets a legacy capsule, if that can say the same.
    """

    def __init__(self, foreign: Foreign) -> None:
        self.foreign = foreign
        self.capsule: Any = None
        self.name: bytes | None = None
        self.calls: list[dict[str, Any]] = []

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        """Return a capsule, of the consumer's version."""
        self.calls.append(
            {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        )
        given = self.foreign
        if max_version is None and given.name == VERSIONED:
            if given.managed.flags or given.managed.major != 1:
                raise NotSupportedError("it asks for no versioned capsule")
            given = given.legacy_twin()
        self.name = given.name
        self.capsule = given.capsule()
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of the tensor."""
        return self.foreign.tensor.device_type, self.foreign.tensor.device_id


class OldProducer(Producer):
    """An array from before the keywords."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        """Return a capsule."""
        return super().__dlpack__()


def foreign_of(adapter: Any, values: Any = VALUES, queue: Any = None, **keywords: Any) -> Foreign:
    """Return a tensor of another library, which keeps its memory."""
    data = values.tobytes()
    owner, address = adapter.allocate(data + bytes(-len(data) % 4), adapter.kinds[0], queue)
    keywords.setdefault("shape", values.shape)
    keywords.setdefault("dtype", values.dtype.name)
    return Foreign(address, owner=owner, **keywords)


def take(adapter: Any, foreign: Foreign, kind: type = Producer, **keywords: Any) -> Any:
    """Return what a library takes of a tensor, from a producer of a class."""
    return adapter.consume(kind(foreign), **keywords)


_Managed = ctypes.POINTER(DLManagedTensorVersioned)
_Out = ctypes.POINTER(ctypes.c_void_p)
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
# All are called with the GIL held. Objects go in as objects, and come out as addresses.
_Allocate = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(_Managed), ctypes.c_void_p, SetError
)
_FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Managed))
_ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _Out)
_Borrow = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
_Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, _Out)


class DLPackExchangeAPI(ctypes.Structure):
    """``DLPackExchangeAPI``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", ctypes.c_void_p),
        ("managed_tensor_allocator", _Allocate),
        ("managed_tensor_from_py_object_no_sync", _FromObject),
        ("managed_tensor_to_py_object_no_sync", _ToObject),
        ("dltensor_from_py_object_no_sync", _Borrow),
        ("current_work_stream", _Stream),
    )


class ExchangeAPI:
    """The table of a type. A function that fails raises what it has set as the Python error."""

    def __init__(self, kind: Any) -> None:
        self.table = DLPackExchangeAPI.from_address(pointer_of(kind.__dlpack_c_exchange_api__))

    def export(self, array: Any) -> Any:
        """Return a managed tensor, whose deleter the caller runs, as a struct in place."""
        out = _Managed()
        assert self.table.managed_tensor_from_py_object_no_sync(array, out) == 0
        return out.contents

    def take(self, managed: Any) -> Any:
        """Return the object of a managed tensor, which is stolen."""
        out = ctypes.c_void_p()
        address = ctypes.addressof(managed)
        assert self.table.managed_tensor_to_py_object_no_sync(address, out) == 0
        taken = ctypes.cast(out, ctypes.py_object).value
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(taken))  # the reference that came out
        return taken

    def borrow(self, array: Any) -> Any:
        """Return a ``DLTensor`` that is valid while the array is as it is."""
        if not ctypes.cast(self.table.dltensor_from_py_object_no_sync, ctypes.c_void_p):
            raise NotSupportedError("its table has no function that borrows")
        described = DLTensor()
        assert self.table.dltensor_from_py_object_no_sync(array, described) == 0
        return described

    def allocate(self, prototype: DLTensor) -> Any:
        """Return a managed tensor of new memory, whose deleter the caller runs."""
        errors: list[str] = []
        set_error = SetError(
            lambda context, kind, text: errors.append(
                f"{kind.decode()}: {text.decode()}" if context == 77 else "another context"
            )
        )
        out = _Managed()
        if self.table.managed_tensor_allocator(prototype, out, 77, set_error) != 0:
            assert len(errors) == 1, "the caller's function was not called once"
            assert errors != ["another context"]
            raise BufferError(*errors)
        assert not errors
        return out.contents

    def stream(self, device_id: int, device_type: int = ONEAPI) -> int | None:
        """Return the address of the queue that the library works on."""
        out = ctypes.c_void_p()
        assert self.table.current_work_stream(device_type, device_id, out) == 0
        return out.value
