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


@pytest.mark.parametrize("variable", ["ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK"])
def test_a_variable_that_may_hide_tiles_is_shown(variable: str) -> None:
    value = "level_zero:0.*" if variable == "ONEAPI_DEVICE_SELECTOR" else "0.1"
    found = json.loads(program("--json", **{variable: value}))
    assert found["variables"][variable] == value
    assert found["problems"] == []
