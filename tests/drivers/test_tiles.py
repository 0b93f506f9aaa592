# SPDX-License-Identifier: Apache-2.0
"""Two root devices of two tiles each, by dpctl and by ``python -m usm_dlpack``.

test_level_zero.cpp has what is proved of their memory.
"""

import json
from typing import Any

import dpctl
import pytest
from offers import output_of, usm
from refusals import refused
from usm_dlpack import to_dlpack_tensor


def test_a_queue_of_dpctl_on_a_tile_has_a_context_of_its_own(devices: list[Any]) -> None:
    tile = devices[0].create_sub_devices(partition="next_partitionable")[0]
    memory = usm("device", 1000, dpctl.SyclQueue(tile))
    with refused("context_not_default", "context"):
        to_dlpack_tensor(memory)


def program(*arguments: str, **variables: str) -> str:
    code = "import runpy; runpy.run_module('usm_dlpack', run_name='__main__', alter_sys=True)"
    return output_of(code, *arguments, **variables)


def test_the_demonstration_needs_no_kernel() -> None:
    printed = program()
    assert "ok  a copy from the host filled device USM" in printed
    assert printed.endswith("All of this happened on this machine.\n")


@pytest.mark.parametrize("selector", ["level_zero:0.*", "level_zero:*;level_zero:0.*"])
def test_of_listed_sub_devices_no_id_without_the_selector_is_told(selector: str) -> None:
    told = json.loads(program("devices", "--json", ONEAPI_DEVICE_SELECTOR=selector))
    assert told["selector"]["failure"].startswith("it names sub-devices")
    assert told["selector"]["hidden"] == []
    assert {device["device_id_without_selector"] for device in told["devices"]} == {None}


@pytest.mark.parametrize("mask", ["0.1", "0,1.0"])
def test_what_a_mask_of_tiles_hides_is_not_guessed(mask: str) -> None:
    told = json.loads(program("devices", "--json", ZE_AFFINITY_MASK=mask))
    (other,) = told["selector"]["others"]
    assert other == {"name": "ZE_AFFINITY_MASK", "value": mask, "hides": None}
    printed = program("devices", ZE_AFFINITY_MASK=mask)
    assert f"ZE_AFFINITY_MASK={mask} names sub-devices: what it hides" in printed
    assert "every root device is listed" not in printed


def test_a_mask_of_root_devices_hides_the_others() -> None:
    told = json.loads(program("devices", "--json", ZE_AFFINITY_MASK="1"))
    (other,) = told["selector"]["others"]
    assert other == {"name": "ZE_AFFINITY_MASK", "value": "1", "hides": 1}


def test_a_selector_of_root_devices_says_which_are_hidden() -> None:
    told = json.loads(program("devices", "--json", ONEAPI_DEVICE_SELECTOR="level_zero:1"))
    (device,) = told["devices"]
    first = len(told["selector"]["hidden"]) - 1  # other backends' devices may stand before
    assert device["device_id_without_selector"] == first + 1
    assert told["selector"]["hidden"][first]["backend"] == "level_zero"
