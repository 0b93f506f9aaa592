# SPDX-License-Identifier: Apache-2.0
"""dpctl.tensor, dpnp and dpnp.tensor: what only their arrays and the package's show together.

Views, element types, owners and keywords are those of the conformance suite: with them, and with
what passes between them and this package, `test_conformance_of_peers.py` runs it.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import clean_environment
import dpctl
import numpy as np
import pytest
import usm_dlpack
from memory_sources import kept

GRID = np.arange(24, dtype="i4").reshape(4, 6)
NAMES = ("dpctl.tensor",) if find_spec("dpctl.tensor") else ("dpnp", "dpnp.tensor")
# dpctl.tensor announces that it moves to dpnp.
pytestmark = pytest.mark.filterwarnings("ignore:dpctl.tensor is deprecated:DeprecationWarning")


@pytest.fixture(params=NAMES)
def xp(request: pytest.FixtureRequest) -> Any:
    return import_module(request.param)


def test_both_write_to_one_memory(xp: Any) -> None:
    ours = usm_dlpack.from_dlpack(GRID, device=(14, 0))
    theirs = xp.from_dlpack(ours)
    assert (theirs.sycl_device, theirs.sycl_context) == (ours.sycl_device, ours.sycl_context)
    theirs += 100
    assert (ours.numpy() == GRID + 100).all()
    back = usm_dlpack.from_dlpack(theirs)
    assert usm_dlpack.validate(theirs).bounds == "allocation"
    back.copy_from(3 * GRID)
    assert (xp.asnumpy(theirs) == 3 * GRID).all()


def test_their_array_and_its_device_are_places(xp: Any) -> None:
    theirs = xp.asarray(GRID)
    for place in (theirs, theirs.device):
        ours = usm_dlpack.from_dlpack(GRID, device=place)
        assert ours.sycl_queue == theirs.sycl_queue
        assert usm_dlpack.device_id(place) == usm_dlpack.validate(ours, device=place).device_id == 0
        assert usm_dlpack.to_dlpack_tensor(theirs, queue=place).sycl_queue == theirs.sycl_queue
        ours.copy_from(2 * GRID, queue=place)
        ours.__dlpack__(stream=place)
    assert (xp.asnumpy(xp.from_dlpack(ours)) == 2 * GRID).all()


@pytest.mark.parametrize("take", [usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor])
def test_their_view_is_the_same_memory(xp: Any, take: Any) -> None:
    for part in (np.s_[1::2, ::3], np.s_[::-1, 1::2], np.s_[4:]):
        ours = take(xp.asarray(GRID)[part])
        assert np.array_equal(ours.numpy(), GRID[part])
        assert np.array_equal(xp.asnumpy(xp.from_dlpack(ours)), GRID[part])


def test_their_array_of_a_foreign_context_or_a_sub_device_comes_through_the_host(xp: Any) -> None:
    root = usm_dlpack.root_device(0)
    part, *_ = root.create_sub_devices(partition=1)
    of_own_context = dpctl.SyclQueue(dpctl.SyclContext([root]), root)
    for queue in (of_own_context, dpctl.SyclQueue(part)):
        theirs = xp.asarray(GRID, sycl_queue=kept(queue))
        for view in (theirs, theirs[::-1, 1::2], theirs[2:2]):
            made = usm_dlpack.from_dlpack(view, device=(14, 0), order="C")
            assert np.array_equal(made.numpy(), xp.asnumpy(view))


def test_their_asarray_shares_our_memory_but_that_of_dpnp_copies(xp: Any) -> None:
    ours = usm_dlpack.to_dlpack_tensor(xp.arange(8))
    theirs = xp.asarray(ours)
    theirs += 1
    assert (ours.numpy()[0] == 1) == (xp.__name__ != "dpnp")


@pytest.mark.parametrize("order", ["{0}, usm_dlpack", "usm_dlpack, {0}"])
@pytest.mark.parametrize("name", NAMES)
def test_both_find_one_runtime_and_device_in_either_order(name: str, order: str) -> None:
    code = (
        f"import {order.format(name)}, pathlib, re\n"
        f"print(usm_dlpack.validate({name}.ones(3)).device_id)\n"
        "mapped = pathlib.Path('/proc/self/maps').read_text()\n"
        "print(len(set(re.findall(r'\\S*/libsycl\\.so\\S*', mapped))))\n"
    )
    quiet = "-Wignore:dpctl.tensor is deprecated:DeprecationWarning"
    done = clean_environment.run(sys.executable, quiet, "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n1\n", "")
