# SPDX-License-Identifier: Apache-2.0
"""Two cards of two tiles, each tile a root device (FLAT): four ids on one platform."""

from __future__ import annotations

from typing import Any

import dpctl
import pytest
import usm_dlpack
from refusals import refused
from simulated import offered, usm
from usm_dlpack import to_dlpack_tensor, validate


def test_each_tile_has_an_id(devices: list[Any]) -> None:
    assert len({device.sycl_platform for device in devices}) == 1
    assert [usm_dlpack.device_id(device) for device in devices] == [0, 1, 2, 3]
    assert all(device.parent_device is None for device in devices)


@pytest.mark.parametrize("kind", ["device", "shared"])
@pytest.mark.parametrize("device_id", range(4))
def test_memory_goes_with_its_own_tile_alone(devices: list[Any], device_id: int, kind: str) -> None:
    memory = usm(kind, 1000, dpctl.SyclQueue(devices[device_id]))
    tensor = to_dlpack_tensor(memory)
    assert tensor.__dlpack_device__() == (14, device_id)
    assert validate(tensor).sycl_device == devices[device_id]
    for other in {0, 1, 2, 3} - {device_id}:
        with refused("device_mismatch", "device.device_id", binding=True):
            validate(offered(memory._pointer, other))
