# SPDX-License-Identifier: Apache-2.0
"""The side of the exchange that is not the peer's: USM, kernels on it, and who owns it."""

from __future__ import annotations

from functools import cache
from typing import Any

import dpctl
import dpctl.memory
import dpctl.program
import numpy as np
import usm_dlpack

_ALLOCATE = {
    "device": dpctl.memory.MemoryUSMDevice,
    "host": dpctl.memory.MemoryUSMHost,
    "shared": dpctl.memory.MemoryUSMShared,
}


@cache
def queue_of(device_id: int) -> dpctl.SyclQueue:
    """Return one queue of a root device, in its default context."""
    return dpctl.SyclQueue(usm_dlpack.root_device(device_id))


def write(memory: Any, values: np.ndarray) -> None:
    """Write values to USM."""
    memory.copy_from_host(np.ascontiguousarray(values).reshape(-1).view("u1"))


def allocate(values: np.ndarray, usm_type: str = "device", queue: Any = None) -> Any:
    """Return USM that holds the bytes of an array."""
    memory = _ALLOCATE[usm_type](values.nbytes, queue=queue or queue_of(0))
    write(memory, values)
    return memory


def triple(memory: Any, count: int) -> None:
    """Multiply 32-bit integers by 3 in a kernel, and wait for it."""
    source = "kernel void triple(global int *x) { x[get_global_id(0)] *= 3; }"
    program = dpctl.program.create_program_from_source(queue_of(0), source)
    queue_of(0).submit(program.get_sycl_kernel("triple"), [memory], [count]).wait()


class MemoryOwner:
    """What owns memory, and can be referred to weakly, which dpctl's memory cannot."""

    def __init__(self, memory: Any, readonly: bool = False) -> None:
        self.memory = memory
        # dpctl calls all of its memory read-only.
        interface = memory.__sycl_usm_array_interface__
        self.__sycl_usm_array_interface__ = interface | {"data": (memory._pointer, readonly)}
