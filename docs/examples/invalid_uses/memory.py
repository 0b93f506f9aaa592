# SPDX-License-Identifier: Apache-2.0
"""Invalid uses of ``to_dlpack_tensor``: memory that is no USM, or not where or as large as said."""

from __future__ import annotations

import dpctl
import dpctl.memory
import numpy as np
import usm_dlpack
from on_device import Interface, memory


def null_data() -> None:
    array = Interface(memory, data=(0, False))
    usm_dlpack.to_dlpack_tensor(array, dtype="float32")


def memory_that_is_no_usm() -> None:
    values = np.zeros(48, np.uint8)
    array = Interface(memory, data=(values.ctypes.data, False))
    usm_dlpack.to_dlpack_tensor(array)


def queue_of_another_context() -> None:
    device = dpctl.SyclDevice()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(device))
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)  # in a context of its own
    usm_dlpack.to_dlpack_tensor(memory, queue=queue)


def context_of_your_own() -> None:
    device = dpctl.SyclDevice()
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)  # in a context of its own
    memory = dpctl.memory.MemoryUSMDevice(48, queue=queue)
    usm_dlpack.to_dlpack_tensor(memory)


def shape_larger_than_the_memory() -> None:
    usm_dlpack.to_dlpack_tensor(memory, shape=(4, 4), dtype="float32")  # 64 bytes


def offset_behind_the_memory() -> None:
    usm_dlpack.to_dlpack_tensor(memory, shape=4, dtype="float32", byte_offset=48)


def offset_in_an_interface() -> None:
    usm_dlpack.to_dlpack_tensor(Interface(memory, offset=2**40))


def misaligned_offset() -> None:
    usm_dlpack.to_dlpack_tensor(memory, shape=4, dtype="float32", byte_offset=2)


def stride_beyond_all_memory() -> None:
    usm_dlpack.to_dlpack_tensor(memory, shape=(2,), strides=(2**62,), dtype="float32")


def dtype_of_no_dlpack() -> None:
    usm_dlpack.to_dlpack_tensor(memory, dtype=(18, 8, 1))


def values_of_a_dtype_without_numpy() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(memory, dtype=(2, 32, 4))  # four lanes
    tensor.numpy()
