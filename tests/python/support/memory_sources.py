# SPDX-License-Identifier: Apache-2.0
"""Real USM, bare and behind ``__sycl_usm_array_interface__``, and what is known of its bounds."""

import weakref
from typing import Any

import dpctl
import numpy as np
from dpctl import memory
from usm_dlpack import DLPackTensor, root_device, to_dlpack_tensor

# SYCL's pool on Level Zero makes no allocation of so many bytes: the driver forgets it when freed.
UNPOOLED = 5 << 20

KINDS = {
    "device": memory.MemoryUSMDevice,
    "shared": memory.MemoryUSMShared,
    "host": memory.MemoryUSMHost,
}


def allocate(usm_type: str, nbytes: int, queue: Any) -> Any:
    """Return dpctl memory that holds the bytes 0, 1, 2 and so on."""
    made = KINDS[usm_type](nbytes, queue=queue)
    made.copy_from_host(np.arange(nbytes, dtype=np.uint8))
    return made


_queues: list[Any] = []


def kept(queue: Any) -> Any:
    """Keep a queue for the life of the process, and return it.

    A queue that is dropped right after its work may be destroyed by the work itself, on a thread of
    the OpenCL CPU driver, which then waits for itself and runs nothing else.
    """
    _queues.append(queue)
    return queue


def new_queue(device: Any = None, *, in_order: bool = False) -> Any:
    """Return a new queue of a root device, by default 0, kept for the life of the process."""
    device = root_device(0) if device is None else device
    return kept(dpctl.SyclQueue(device, property="in_order" if in_order else "default"))


def address_of(owner: Any) -> int:
    return int(owner.__sycl_usm_array_interface__["data"][0])


class Carrier:
    """An object of another library, which gives a capsule of the queue or context in it."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def _get_capsule(self) -> Any:
        return self.wrapped._get_capsule()


class TypedArray:
    """An array over dpctl memory: float32, compact, unless a test changes the interface."""

    def __init__(self, memory: Any, **changes: Any) -> None:
        self.memory = memory
        self.interface = dict(memory.__sycl_usm_array_interface__)
        address = self.interface["data"][0]
        elements = memory.nbytes // 4
        self.interface |= {"data": (address, False), "shape": (elements,), "typestr": "<f4"}
        self.interface |= changes
        self.tensor: Any = None

    @property
    def __sycl_usm_array_interface__(self) -> Any:
        return self.interface


def owned(memory: Any, **keywords: Any) -> tuple[DLPackTensor, weakref.ref[TypedArray]]:
    """Return a tensor of an array that it alone keeps, and a weak reference to the array."""
    array = TypedArray(memory)
    return to_dlpack_tensor(array, **keywords), weakref.ref(array)


def check_bounds(proof: Any, owner: Any) -> None:
    """Require what a proof says of a memory's bounds: on Level Zero only those of a block."""
    address, nbytes = address_of(owner), int(owner.nbytes)
    if proof.root_device.backend == dpctl.backend_type.level_zero:
        assert proof.bounds == "block"
        assert proof.base <= address
        assert address + nbytes <= proof.base + proof.size
    else:
        assert (proof.bounds, proof.base, proof.size) == ("allocation", address, nbytes)
