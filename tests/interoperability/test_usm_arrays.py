# SPDX-License-Identifier: Apache-2.0
"""dpctl.tensor, dpnp and dpnp.tensor, which took over dpctl.tensor: exchanges in both directions.

USM kinds, element types, devices and views by DLPack are those of docs/consumers.md, which
`consumer_matrix.py` tries; keywords, capsules and refusals are those of the peers' own tests, which
`peers_own_tests.py` runs.
"""

import gc
import sys
import weakref
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import clean_environment
import dpctl.memory
import numpy as np
import pytest
import usm_dlpack
from consumer_cases import CASES, GRID
from consumers import address_of
from memory_sources import TypedArray, kept

NAMES = ("dpctl.tensor",) if find_spec("dpctl.tensor") else ("dpnp", "dpnp.tensor")
# dpctl.tensor announces that it moves to dpnp.
pytestmark = pytest.mark.filterwarnings("ignore:dpctl.tensor is deprecated:DeprecationWarning")
TAKE = pytest.mark.parametrize("take", [usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor])


@pytest.fixture(params=NAMES)
def xp(request: pytest.FixtureRequest) -> Any:
    return import_module(request.param)


def test_both_write_to_one_memory(xp: Any) -> None:
    ours = usm_dlpack.from_dlpack(GRID, device=(14, 0))
    theirs = xp.from_dlpack(ours)
    assert type(theirs) is type(xp.ones(1))
    assert (theirs.sycl_device, theirs.sycl_context) == (ours.sycl_device, ours.sycl_context)
    theirs += 100
    theirs.sycl_queue.wait()
    assert (ours.numpy() == GRID + 100).all()
    back = usm_dlpack.from_dlpack(theirs)
    assert (back.device, back.readonly) == (theirs.__dlpack_device__(), False)
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


@pytest.mark.parametrize("case", [c for c in CASES if c.view], ids=lambda case: case.name)
def test_their_view_is_ours_by_its_array_interface(xp: Any, case: Any) -> None:
    theirs = case.view(xp, xp.asarray(GRID))
    ours = usm_dlpack.to_dlpack_tensor(theirs)
    assert ours.data == address_of(theirs)
    assert (ours.numpy() == case.seen).all()
    assert address_of(xp.from_dlpack(ours)) == ours.data


@TAKE
def test_their_empty_slice_behind_the_last_element_is_taken(xp: Any, take: Any) -> None:
    assert take(xp.asarray(GRID)[4:]).shape == (0, 6)


def test_our_memory_lives_as_long_as_their_view(xp: Any) -> None:
    memory = usm_dlpack.from_dlpack(GRID, device=(14, 0))
    owner = TypedArray(memory, shape=GRID.shape, typestr="<i4")
    gone = weakref.ref(owner)
    theirs = xp.from_dlpack(usm_dlpack.to_dlpack_tensor(owner))[1:]
    del owner
    gc.collect()
    assert (xp.asnumpy(theirs) == GRID[1:]).all()
    assert gone() is not None
    del theirs
    gc.collect()
    assert gone() is None


@TAKE
def test_their_memory_lives_as_long_as_our_tensor(xp: Any, take: Any) -> None:
    class Memory(dpctl.memory.MemoryUSMDevice):
        """Memory that can be referred to weakly."""

    memory = Memory(GRID.nbytes)
    memory.copy_from_host(GRID.reshape(-1).view("u1"))
    gone = weakref.ref(memory)
    ours = take(type(xp.ones(1))(GRID.shape, dtype="i4", buffer=memory))
    del memory
    gc.collect()
    assert (ours.numpy() == GRID).all()
    assert gone() is not None
    del ours
    gc.collect()
    assert gone() is None


def test_their_array_of_a_foreign_context_or_a_sub_device_comes_through_the_host(xp: Any) -> None:
    root = usm_dlpack.root_device(0)
    part, *_ = root.create_sub_devices(partition=1)
    of_own_context = dpctl.SyclQueue(dpctl.SyclContext([root]), root)
    for queue in (of_own_context, dpctl.SyclQueue(part)):
        theirs = xp.asarray(GRID, sycl_queue=kept(queue))
        for view in (theirs, theirs[::-1, 1::2], theirs[2:2]):
            made = usm_dlpack.from_dlpack(view, device=(14, 0), order="C")
            assert np.array_equal(made.numpy(), xp.asnumpy(view))


def test_their_0d_array_is_exported_readonly_by_dpnp_alone(xp: Any) -> None:
    # A defect of dpnp, which docs/how-to/dpctl.md names; the array interface tells the truth.
    theirs = xp.asarray(2.5)
    assert theirs.flags.writable
    assert usm_dlpack.from_dlpack(theirs).readonly == ("dpnp" in xp.__name__)
    assert not usm_dlpack.to_dlpack_tensor(theirs).readonly


def test_their_asarray_shares_our_memory_but_that_of_dpnp_copies(xp: Any) -> None:
    ours = usm_dlpack.to_dlpack_tensor(xp.arange(8))
    shares = xp.__name__ != "dpnp"
    assert (address_of(xp.asarray(ours)) == ours.data) == shares
    if shares:
        assert address_of(xp.asarray(ours, copy=False)) == ours.data
    else:
        with pytest.raises(ValueError, match="copy=False"):
            xp.asarray(ours, copy=False)
    with pytest.raises(ValueError, match="accommodate"):  # the interface's negative strides
        xp.asarray(usm_dlpack.from_dlpack(xp.arange(8)[::-1]))


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
