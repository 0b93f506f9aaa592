# SPDX-License-Identifier: Apache-2.0
"""DLPack's C exchange API as a consumer in C calls it: the table of a type, and its functions."""

import ctypes
from typing import Any

from capsules import ForeignArray, ForeignTensor, new_capsule
from dpctl.memory import MemoryUSMHost
from memory_sources import new_queue
from usm_dlpack import root_device, to_dlpack_tensor
from usm_dlpack_conformance import dlpack
from usm_dlpack_conformance.dlpack import DLPackExchangeAPI


def capsule_of(table: DLPackExchangeAPI) -> Any:
    return new_capsule(ctypes.addressof(table), b"dlpack_exchange_api")


class ExchangeAPI(dlpack.ExchangeAPI):
    """The table of a type, with the queue that it names."""

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
        self.struct = DLPackExchangeAPI(1, 3)
        functions = {
            "managed_tensor_from_py_object_no_sync": self._export,
            "current_work_stream": self._stream,
        }
        for name, function in functions.items():
            kind = type(getattr(self.struct, name))
            setattr(self.struct, name, kind(function))

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
