# SPDX-License-Identifier: Apache-2.0
"""ONEAPI_DEVICE_SELECTOR in the forms of its documentation: ids are positions in SYCL's list."""

import os

import pytest
from offers import output_of

SELECTORS = {
    "tiles": {
        "*:*": 3,
        "*:gpu": 2,
        "level_zero:1,0": 2,
        "opencl:*;level_zero:0": 2,
        "!level_zero:gpu": 1,
        "level_zero:*.*": 4,
        "level_zero:0,1.0": 2,
    },
    "together": {
        "*:*": 3,
        "opencl:*;level_zero:0": 3,
        "!level_zero:gpu": 2,
    },
    "pocl-beside": {
        "*:*": 4,
        "opencl:2,1": 2,
        "opencl:1": 1,
    },
}[os.environ["DRIVER_CONFIGURATION"]]


@pytest.mark.parametrize("selector", SELECTORS)
def test_ids_are_the_positions_among_the_devices_that_are_left(selector: str) -> None:
    printed = output_of(
        """
        import dpctl, usm_dlpack
        from offers import usm
        devices = dpctl.get_devices()
        for number, device in enumerate(devices):
            assert usm_dlpack.device_id(device) == number
            assert usm_dlpack.root_device(number) == device
            tensor = usm_dlpack.to_dlpack_tensor(usm("device", 1000, dpctl.SyclQueue(device)))
            assert tensor.__dlpack_device__() == (14, number)
            assert usm_dlpack.validate(tensor).sycl_device == device
        print(len(devices))
        """,
        ONEAPI_DEVICE_SELECTOR=selector,
    )
    assert int(printed) == SELECTORS[selector]
