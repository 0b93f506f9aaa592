# SPDX-License-Identifier: Apache-2.0
"""Two root devices of two tiles each: ids are of the roots, proofs name the tile."""

from __future__ import annotations

import json
from typing import Any

import dpctl
import pytest
import usm_dlpack
from refusals import refused
from simulated import offered, output_of, usm
from usm_dlpack import to_dlpack_tensor, validate


def tiles_of(root: Any) -> list[Any]:
    return list(root.create_sub_devices(partition="next_partitionable"))


def test_a_tile_has_the_id_of_its_root(devices: list[Any]) -> None:
    assert [usm_dlpack.device_id(device) for device in devices] == [0, 1]
    for device_id, root in enumerate(devices):
        assert [usm_dlpack.device_id(tile) for tile in tiles_of(root)] == [device_id] * 2


@pytest.mark.parametrize(("device_id", "number"), [(0, 1), (1, 0)])
def test_memory_of_a_tile_is_proved_to_be_of_the_tile(
    devices: list[Any], device_id: int, number: int, usm_type: str
) -> None:
    root = devices[device_id]
    tile = tiles_of(root)[number]
    memory = usm(usm_type, 1000, dpctl.SyclQueue(dpctl.SyclQueue(root).sycl_context, tile))
    tensor = to_dlpack_tensor(memory)
    proof = validate(tensor)
    assert proof.usm_type == usm_type
    if usm_type != "host":
        assert tensor.__dlpack_device__() == (14, device_id)
        assert proof.sycl_device == tile
        assert proof.root_device == root
        with refused("device_mismatch", "device.device_id", binding=True):
            validate(offered(memory._pointer, 1 - device_id))


def test_a_queue_of_dpctl_on_a_tile_has_a_context_of_its_own(devices: list[Any]) -> None:
    memory = usm("device", 1000, dpctl.SyclQueue(tiles_of(devices[0])[0]))
    with refused("context_not_default", "context", binding=True):
        to_dlpack_tensor(memory)


def devices_program(*arguments: str, **variables: str) -> str:
    """Return what ``python -m usm_dlpack devices`` prints under some variables."""
    code = "import runpy; runpy.run_module('usm_dlpack', run_name='__main__', alter_sys=True)"
    return output_of(code, "devices", *arguments, **variables)


@pytest.mark.parametrize("selector", ["level_zero:0.*", "level_zero:*;level_zero:0.*"])
def test_of_listed_sub_devices_no_id_without_the_selector_is_told(selector: str) -> None:
    told = json.loads(devices_program("--json", ONEAPI_DEVICE_SELECTOR=selector))
    assert told["selector"]["failure"].startswith("it names sub-devices")
    assert told["selector"]["hidden"] == []
    assert {device["device_id_without_selector"] for device in told["devices"]} == {None}


@pytest.mark.parametrize("mask", ["0.1", "0,1.0"])
def test_what_a_mask_of_tiles_hides_is_not_guessed(mask: str) -> None:
    told = json.loads(devices_program("--json", ZE_AFFINITY_MASK=mask))
    (other,) = told["selector"]["others"]
    assert other == {"name": "ZE_AFFINITY_MASK", "value": mask, "hides": None}
    printed = devices_program(ZE_AFFINITY_MASK=mask)
    assert f"ZE_AFFINITY_MASK={mask} names sub-devices: what it hides" in printed
    assert "every root device is listed" not in printed


def test_a_mask_of_root_devices_hides_the_others() -> None:
    told = json.loads(devices_program("--json", ZE_AFFINITY_MASK="1"))
    (other,) = told["selector"]["others"]
    assert other == {"name": "ZE_AFFINITY_MASK", "value": "1", "hides": 1}


def test_a_selector_of_root_devices_says_which_are_hidden() -> None:
    told = json.loads(devices_program("--json", ONEAPI_DEVICE_SELECTOR="level_zero:1"))
    (device,) = told["devices"]
    first = len(told["selector"]["hidden"]) - 1  # other backends' devices may stand before
    assert device["device_id_without_selector"] == first + 1
    assert told["selector"]["hidden"][first]["backend"] == "level_zero"
