# SPDX-License-Identifier: Apache-2.0
"""Two cards of two tiles, each tile a root device (FLAT): four ids on one platform."""

from __future__ import annotations

from typing import Any

import dpctl
import numpy as np
import pytest
import usm_dlpack
from refusals import refused
from simulated import offered, usm
from usm_dlpack import from_dlpack, to_dlpack_tensor, validate


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


@pytest.mark.parametrize("kind", ["device", "shared"])
def test_copies_reach_the_other_tile_of_a_card_and_those_of_another(
    devices: list[Any], kind: str
) -> None:
    # The tiles of a card are peers: one call copies. Those of two cards are none.
    assert devices[0].can_access_peer(devices[1])
    assert not devices[0].can_access_peer(devices[2])
    values = np.arange(1000, dtype=np.float32)
    source = from_dlpack(values, device=(14, 0), usm_type=kind)
    for device_id in (1, 2, 3):
        there = from_dlpack(source, device=(14, device_id))
        assert (there.device, there.usm_type) == ((14, device_id), kind)
        assert np.array_equal(np.from_dlpack(there, device="cpu"), values)
