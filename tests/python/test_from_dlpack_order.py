# SPDX-License-Identifier: Apache-2.0
"""from_dlpack with `order`: "C" copies what is not in C order, and only that."""

from typing import Any

import numpy as np
import pytest
from capsules import IS_COPIED, ForeignArray, ForeignTensor, OldArray, compact_strides
from memory_sources import address_of, allocate
from refusals import refused, wrong_argument
from usm_dlpack import from_dlpack, to_dlpack_tensor, validate

HERE = (14, 0)
# Shape, strides in elements, and the first element, of 24 int16; and whether it is in C order.
VIEWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, bool]] = {
    "C": ((2, 3, 4), (12, 4, 1), 0, True),
    "a part": ((2, 4), (4, 1), 5, True),
    "one element": ((1, 1), (-7, 100), 3, True),
    "extents of 1": ((1, 3, 1, 4), (-5, 4, 0, 1), 0, True),
    "an extent of 1 of Fortran": ((3, 1), (1, 3), 0, True),
    "empty": ((2, 0, 3), (-1, 7, 5), 0, True),
    "no dimensions": ((), (), 2, True),
    "Fortran": ((4, 6), (1, 4), 0, False),
    "a column": ((4,), (6,), 1, False),
    "gaps between rows": ((3, 2), (6, 1), 0, False),
    "reversed": ((4, 6), (-6, -1), 23, False),
    "broadcast": ((3, 4), (0, 1), 0, False),
    "an extent of 1 and gaps": ((3, 1), (2, 1), 0, False),
}


@pytest.mark.parametrize("name", VIEWS)
def test_c_order_copies_what_has_other_strides(name: str, usm_type: str, queue: Any) -> None:
    shape, strides, first, is_c = VIEWS[name]
    owner = allocate(usm_type, 48, queue)
    view = to_dlpack_tensor(owner, shape=shape, strides=strides, dtype="i2", byte_offset=2 * first)
    for x in (view, OldArray(view.__dlpack__())):
        if is_c:
            made = from_dlpack(x, order="C", copy=False)
            assert made.data == view.data
        else:
            with refused("copy_needed", "strides", expected="C order", remedy="copy=None"):
                from_dlpack(x, order="C", copy=False)
            made = from_dlpack(x, order="C")
            assert made.data != view.data
        counted = [max(extent, 1) for extent in shape]
        assert (made.shape, made.strides) == (shape, compact_strides(counted))
        assert made.usm_type == view.usm_type
        assert made.numpy().tobytes() == view.numpy().tobytes()
        assert validate(made, overlapping=False).nbytes == view.nbytes


def test_extents_of_an_empty_array_may_have_any_product(memory: Any) -> None:
    huge = to_dlpack_tensor(memory, shape=(0, 2**62, 2**62), strides=(1, 2**62, 1), dtype="i2")
    assert from_dlpack(huge, order="C", copy=False).shape == huge.shape


def test_a_refused_capsule_stays_its_producers(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), strides=(1, 3))
    array = ForeignArray(foreign)
    with refused("copy_needed", "strides"):
        from_dlpack(array, order="C", copy=False)
    assert foreign.deletions == 0
    from_dlpack(array, order="C")
    assert foreign.deletions == 2


def test_every_copy_is_in_c_order(queue: Any) -> None:
    values = np.asfortranarray(np.arange(24, dtype=np.float32).reshape(1, 4, 6))
    owner = allocate("device", 96, queue)
    fortran = to_dlpack_tensor(owner, shape=(1, 4, 6), strides=(99, 1, 4), dtype="f4")
    for x, keywords in (
        (values, {"device": HERE}),
        (fortran, {"copy": True, "device": HERE}),
        (fortran, {"usm_type": "shared"}),
    ):
        made = from_dlpack(x, order="C", **keywords)
        assert made.strides == (24, 6, 1)
        seen = x if x is values else fortran.numpy()
        assert made.numpy().tobytes() == seen.tobytes()
    odd = to_dlpack_tensor(owner, shape=(1, 3, 1, 4), strides=(99, 4, 7, 1), dtype="i2")
    assert from_dlpack(odd, usm_type="host", order="C").strides == (12, 4, 4, 1)
    assert from_dlpack(values, device=HERE).strides[1:] == (1, 4)


def test_a_copy_of_the_producer_in_another_order_is_copied_again(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), strides=(1, 3))
    foreign.managed.flags = IS_COPIED
    made = from_dlpack(ForeignArray(foreign), copy=True, order="C")
    assert made.strides == (4, 1)
    assert made.data != address_of(memory)


def test_null_strides_are_c_order(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.strides = None
    made = from_dlpack(ForeignArray(foreign), order="C", copy=False)
    assert (made.data, made.strides) == (address_of(memory), (4, 1))


@pytest.mark.parametrize("order", ["F", "c", b"C", 1, np.array(["C", "C"])], ids=str)
def test_other_orders_are_refused(order: Any) -> None:
    with wrong_argument(ValueError, "order", 'expected None or "C"'):
        from_dlpack(object(), order=order)
