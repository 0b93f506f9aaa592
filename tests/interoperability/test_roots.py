# SPDX-License-Identifier: Apache-2.0
"""dpctl.tensor, dpnp and dpnp.tensor on three root devices of one platform and context: PoCL's.

run.py runs this on the driver. If one of the first two tests fails because a peer names the right
device, correct docs/comparison.md.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import dpctl
import numpy as np
import pytest
import usm_dlpack
from consumers import address_of
from refusals import refused

NAMES = ("dpctl.tensor",) if find_spec("dpctl.tensor") else ("dpnp", "dpnp.tensor")
# dpctl.tensor announces that it moves to dpnp.
pytestmark = pytest.mark.filterwarnings("ignore:dpctl.tensor is deprecated:DeprecationWarning")
VALUES = np.arange(6, dtype="f4")


@pytest.fixture(params=NAMES)
def xp(request: pytest.FixtureRequest) -> Any:
    return import_module(request.param)


@pytest.fixture(params=[1, 2])
def device_id(request: pytest.FixtureRequest) -> int:
    """Return the id of a device that is not the first one."""
    assert {d.sycl_platform.name for d in dpctl.get_devices()} == {"Portable Computing Language"}
    return int(request.param)


@pytest.fixture(params=["device", "shared"])
def theirs(xp: Any, device_id: int, request: pytest.FixtureRequest) -> Any:
    """Return their array on the device, which says so."""
    device = usm_dlpack.root_device(device_id)
    made = xp.asarray(VALUES, device=device, usm_type=request.param)
    assert (made.sycl_device, made.__dlpack_device__()) == (device, (14, device_id))
    return made


def check_wrong(taken: Any, address: int, device_id: int) -> None:
    """Require an array of the memory that names the first device, and how ours treats it."""
    assert address_of(taken) == address
    assert taken.sycl_device == usm_dlpack.root_device(0)
    assert taken.__dlpack_device__() == (14, 0)
    for take in (usm_dlpack.validate, usm_dlpack.from_dlpack):
        with refused("device_mismatch", "device.device_id", expected=f"{device_id} (", found="0"):
            take(taken)
    assert usm_dlpack.to_dlpack_tensor(taken).device == (14, device_id)


def test_their_from_dlpack_of_theirs_names_the_wrong_device(
    xp: Any, theirs: Any, device_id: int
) -> None:
    check_wrong(xp.from_dlpack(theirs), address_of(theirs), device_id)


def test_their_from_dlpack_of_ours_names_the_wrong_device(
    xp: Any, theirs: Any, device_id: int
) -> None:
    ours = usm_dlpack.from_dlpack(theirs)
    check_wrong(xp.from_dlpack(ours), ours.data, device_id)


def test_ours_names_the_device_of_their_array(theirs: Any, device_id: int) -> None:
    for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor):
        ours = take(theirs)
        assert (ours.data, ours.device) == (address_of(theirs), (14, device_id))
        assert np.array_equal(ours.numpy(), VALUES)
    proof = usm_dlpack.validate(theirs)
    assert (proof.device_id, proof.device_proof) == (device_id, "backend")
