# SPDX-License-Identifier: Apache-2.0
"""Invalid uses in a process that has two root devices, on a platform each.

Each function is one use, and raises what its page in docs/errors says.
"""

from __future__ import annotations

import dpctl
import dpctl.memory
import usm_dlpack


def queue_on_another_device() -> None:
    """Name a queue on another root device than the memory's."""
    # [begin queue_on_another_device]
    first, second = dpctl.get_devices()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(first))
    usm_dlpack.to_dlpack_tensor(memory, queue=dpctl.SyclQueue(second))
    # [end queue_on_another_device]


def another_device_without_a_copy() -> None:
    """Forbid the copy that the way to another root device is."""
    # [begin another_device_without_a_copy]
    first, second = dpctl.get_devices()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(first))
    tensor = usm_dlpack.to_dlpack_tensor(memory)
    tensor.__dlpack__(dl_device=(14, usm_dlpack.device_id(second)), copy=False)
    # [end another_device_without_a_copy]
