# SPDX-License-Identifier: Apache-2.0
"""Every way to take an array of another library: by one proof; a refused array is not consumed."""

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import dpctl
import extension_under_test
import pytest
from capsules import ForeignArray, ForeignTensor, name_of
from memory_sources import address_of, allocate
from refusals import refused
from usm_dlpack import from_dlpack, validate

WAYS: dict[str, Callable[..., Any]] = {
    "from_dlpack": from_dlpack,
    "from_dlpack with a copy": partial(from_dlpack, copy=True),
    "from_dlpack for a device": partial(from_dlpack, device=(14, 0), copy=False),
    "validate": validate,
    "a view of an extension": lambda x: extension_under_test.load().rank_one(x),
    "an owned view of an extension": lambda x: extension_under_test.load().to_owned(x),
}
every_way = pytest.mark.parametrize("take", WAYS.values(), ids=WAYS)

# Code, field and what is found in twelve float32 of which some fields are spoiled.
REFUSALS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("device_type_unsupported", "device.device_type", "kDLMetal (8)", {"device_type": 8}),
    ("no_device", "device.device_id", "99", {"device_id": 99}),
    ("invalid_tensor", "shape[0]", "-4", {"shape": (-4,)}),
    ("out_of_bounds", "shape", "52 bytes from byte 0", {"shape": (13,)}),
    ("pointer_unknown", "data", "unknown to it", {"byte_offset": 48}),
]
# Of which nothing else is read.
ANOTHER_MAJOR = {"major": 2, "flags": 2**63, "device_type": 8, "ndim": -1}


@every_way
@pytest.mark.parametrize(
    ("legacy", "code", "field", "found", "fields"),
    [
        *((legacy, *refusal) for legacy in (False, True) for refusal in REFUSALS),
        (False, "version_unsupported", "version.major", "2", ANOTHER_MAJOR),
    ],
)
def test_a_spoiled_tensor_is_refused_and_stays_its_producers(
    unpooled, take, legacy, code, field, found, fields
):
    foreign = ForeignTensor(address_of(unpooled), shape=(12,), legacy=legacy)
    for name, value in fields.items():
        place = foreign.managed if name in ("major", "flags") else foreign.tensor
        setattr(place, name, foreign.array(value) if isinstance(value, tuple) else value)
    array = ForeignArray(foreign)
    with refused(code, field, found=found):
        take(array)
    assert (name_of(array.given), foreign.deletions) == (foreign.name, 0)
    array.given = None
    gc.collect()
    assert foreign.deletions == 1


@every_way
def test_memory_of_another_context_is_refused_where_its_array_says_the_queue(
    foreign_queue, usm_type, take
):
    """By the driver, which does not know it, or where that knows all contexts, by the queue."""
    hidden = allocate(usm_type, 48, foreign_queue)
    foreign = ForeignTensor(address_of(hidden), shape=(12,))
    array: Any = ForeignArray(foreign)
    array.sycl_queue = foreign_queue
    code, field = ("context_not_default", "context")
    if foreign_queue.backend == dpctl.backend_type.opencl:
        code, field = ("pointer_unknown", "data")
    with refused(code, field, expected="the default context"):
        take(array)
    assert foreign.deletions == 0
