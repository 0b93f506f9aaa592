# SPDX-License-Identifier: Apache-2.0
"""DLPack's C exchange API as a consumer in C calls it: the table of a type, and its functions."""

import ctypes
from collections.abc import Callable
from typing import Any

from capsules import (
    DLManagedTensorVersioned,
    DLTensor,
    ForeignArray,
    ForeignTensor,
    get_pointer,
    new_capsule,
)
from dpctl.memory import MemoryUSMHost
from memory_sources import new_queue
from usm_dlpack import root_device, to_dlpack_tensor

_Pointer = ctypes.c_void_p
_Out = ctypes.POINTER(ctypes.c_void_p)
_Managed = ctypes.POINTER(DLManagedTensorVersioned)
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
# All are called with the GIL held. Objects go in as objects, and come out as addresses.
_Allocate = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(_Managed), _Pointer, SetError
)
_FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Managed))
_ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, _Pointer, _Out)
_Borrow = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
_Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, _Out)


class DLPackExchangeAPI(ctypes.Structure):
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


def table_of(export: Callable[..., int], stream: Callable[..., int]) -> DLPackExchangeAPI:
    """Return a table of the two functions that are asked for."""
    made = DLPackExchangeAPI(1, 3)
    made.managed_tensor_from_py_object_no_sync = _FromObject(export)
    made.current_work_stream = _Stream(stream)
    return made


def capsule_of(table: DLPackExchangeAPI) -> Any:
    return new_capsule(ctypes.addressof(table), b"dlpack_exchange_api")


class ExchangeAPI:
    """The table of a type. A function that fails raises what it has set as the Python error."""

    def __init__(self, kind: type) -> None:
        capsule = kind.__dlpack_c_exchange_api__
        self.table = DLPackExchangeAPI.from_address(get_pointer(capsule, b"dlpack_exchange_api"))

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
            raise BufferError(*errors)
        return out.contents

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
        made = ctypes.cast(out, ctypes.py_object).value
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))  # the reference that came out
        return made

    def borrow(self, array: Any) -> Any:
        """Return a ``DLTensor`` that lives as long as the array."""
        described = DLTensor()
        assert self.table.dltensor_from_py_object_no_sync(array, described) == 0
        return described

    def stream(self, device_id: int, device_type: int = 14) -> int | None:
        """Return the address of the queue that the library works on."""
        out = ctypes.c_void_p()
        assert self.table.current_work_stream(device_type, device_id, out) == 0
        return out.value

    def queue(self, device_id: int = 0) -> Any:
        address = self.stream(device_id)
        assert address is not None
        capsule = new_capsule(address, b"SyclQueueRef")
        memory = MemoryUSMHost(4, queue=new_queue(root_device(device_id)))
        return to_dlpack_tensor(memory, queue=capsule).sycl_queue


class Table:
    """The table of a type that a test makes: it answers what the test sets, and notes the calls."""

    def __init__(self, foreign: ForeignTensor) -> None:
        self.foreign = foreign
        self.status, self.stream_status = 0, 0
        self.gives = True
        self.stream: int | None = None
        self.calls: list[str] = []
        self.struct = table_of(self._export, self._stream)

    def _export(self, _: Any, out: Any) -> int:
        self.calls.append("export")
        if self.gives:
            out[0] = ctypes.pointer(self.foreign.managed)
        return self.status

    def _stream(self, device_type: int, device_id: int, out: Any) -> int:
        self.calls.append(f"stream {device_type} {device_id}")
        out[0] = self.stream
        return self.stream_status

    def array(self, capsule: Any = None, **members: Any) -> Any:
        """Return an object of a new type that offers the table, and `__dlpack__` besides."""
        members["__dlpack_c_exchange_api__"] = capsule or capsule_of(self.struct)
        return type("Offering", (ForeignArray,), members)(self.foreign)
