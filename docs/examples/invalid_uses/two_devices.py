# SPDX-License-Identifier: Apache-2.0
"""Invalid uses in a process that has two root devices, on a platform each."""

import dpctl
import dpctl.memory
import usm_dlpack


def queue_on_another_device() -> None:
    first, second = dpctl.get_devices()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(first))
    usm_dlpack.to_dlpack_tensor(memory, queue=dpctl.SyclQueue(second))


def another_device_without_a_copy() -> None:
    first, second = dpctl.get_devices()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(first))
    tensor = usm_dlpack.to_dlpack_tensor(memory)
    tensor.__dlpack__(dl_device=(14, usm_dlpack.device_id(second)), copy=False)
