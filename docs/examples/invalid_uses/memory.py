# SPDX-License-Identifier: Apache-2.0
"""Invalid uses of ``to_dlpack_tensor``: memory that is no USM, or not where or as large as said.

Each function is one use, and raises what its page in docs/errors says.
"""

from __future__ import annotations

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


def null_data() -> None:
    """Describe elements at address 0."""
    # [begin null_data]
    memory = dpctl.memory.MemoryUSMDevice(48)
    array = Interface(memory, data=(0, False))
    usm_dlpack.to_dlpack_tensor(array, dtype="float32")
    # [end null_data]


def memory_that_is_no_usm() -> None:
    """Describe memory of NumPy as if it were USM."""
    # [begin memory_that_is_no_usm]
    values = np.zeros(48, np.uint8)
    memory = dpctl.memory.MemoryUSMDevice(48)
    array = Interface(memory, data=(values.ctypes.data, False))
    usm_dlpack.to_dlpack_tensor(array)
    # [end memory_that_is_no_usm]


def queue_of_another_context() -> None:
    """Name a queue whose context the memory is not of."""
    # [begin queue_of_another_context]
    device = dpctl.SyclDevice()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(device))
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)  # in a context of its own
    usm_dlpack.to_dlpack_tensor(memory, queue=queue)
    # [end queue_of_another_context]


def context_of_ones_own() -> None:
    """Allocate in a context that no consumer can find."""
    # [begin context_of_ones_own]
    device = dpctl.SyclDevice()
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)  # in a context of its own
    memory = dpctl.memory.MemoryUSMDevice(48, queue=queue)
    usm_dlpack.to_dlpack_tensor(memory)
    # [end context_of_ones_own]


def queue_on_a_sub_device() -> None:
    """Allocate with a queue on a sub-device, which has a context of its own."""
    # [begin queue_on_a_sub_device]
    part = dpctl.SyclDevice().create_sub_devices(partition=1)[0]
    memory = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(part))
    usm_dlpack.to_dlpack_tensor(memory)
    # [end queue_on_a_sub_device]


def shape_larger_than_the_memory() -> None:
    """Describe more elements than the memory has."""
    # [begin shape_larger_than_the_memory]
    memory = dpctl.memory.MemoryUSMDevice(48)  # 12 elements of float32
    usm_dlpack.to_dlpack_tensor(memory, shape=(4, 4), dtype="float32")
    # [end shape_larger_than_the_memory]


def shape_larger_than_the_object() -> None:
    """Reach beyond a part of the memory, into the rest of it."""
    # [begin shape_larger_than_the_object]
    memory = dpctl.memory.MemoryUSMDevice(96)
    half = usm_dlpack.to_dlpack_tensor(memory, shape=12, dtype="float32")
    usm_dlpack.to_dlpack_tensor(half, shape=24)
    # [end shape_larger_than_the_object]


def offset_behind_the_memory() -> None:
    """Begin a view behind the last byte of its memory."""
    # [begin offset_behind_the_memory]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, shape=4, dtype="float32", byte_offset=48)
    # [end offset_behind_the_memory]


def offset_in_an_interface() -> None:
    """Begin an array in another allocation than that of the address it names."""
    # [begin offset_in_an_interface]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(Interface(memory, offset=2**40))
    # [end offset_in_an_interface]


def misaligned_offset() -> None:
    """Let elements of four bytes begin at an address that is no multiple of four."""
    # [begin misaligned_offset]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, shape=4, dtype="float32", byte_offset=2)
    # [end misaligned_offset]


def stride_beyond_all_memory() -> None:
    """Let two elements be further apart than memory is large."""
    # [begin stride_beyond_all_memory]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, shape=(2,), strides=(2**62,), dtype="float32")
    # [end stride_beyond_all_memory]


def dtype_of_no_dlpack() -> None:
    """Name a type code that DLPack 1.3 does not have."""
    # [begin dtype_of_no_dlpack]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, dtype=(18, 8, 1))
    # [end dtype_of_no_dlpack]


def values_of_a_dtype_without_numpy() -> None:
    """Ask for the values of elements that NumPy does not have."""
    # [begin values_of_a_dtype_without_numpy]
    memory = dpctl.memory.MemoryUSMDevice(48)
    tensor = usm_dlpack.to_dlpack_tensor(memory, dtype=(2, 32, 4))  # four lanes
    tensor.numpy()
    # [end values_of_a_dtype_without_numpy]
