# SPDX-License-Identifier: Apache-2.0
"""The memory that invalid uses on one root device share."""

from __future__ import annotations

from typing import Any

import dpctl.memory
import usm_dlpack

memory = dpctl.memory.MemoryUSMDevice(48)
tensor = usm_dlpack.to_dlpack_tensor(memory)  # 48 elements of uint8


class Interface:
    """An object over memory that changes some fields of its __sycl_usm_array_interface__."""

    def __init__(self, memory: Any, **changes: Any) -> None:
        self.memory = memory
        self.__sycl_usm_array_interface__ = {**memory.__sycl_usm_array_interface__, **changes}
