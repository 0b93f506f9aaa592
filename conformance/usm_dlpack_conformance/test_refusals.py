# SPDX-License-Identifier: Apache-2.0
"""What a consumer must not take: each case in a process of its own, since a library may crash."""

import ctypes
import gc
import math
from typing import Any

import pytest

from .adapter import NotSupportedError
from .cases import (
    ARRAY_API,
    DLPACK,
    GUIDE,
    PYTHON,
    VALUES,
    convention,
    each,
    refused,
    spec,
)
from .dlpack import USED, VERSIONED, Foreign, Producer, content_of, foreign_of, integers, take

pytestmark = pytest.mark.alone


def check_refused(adapter: Any, foreign: Foreign, values: bytes | None = None) -> None:
    """Require a refusal, or, where values are given, an array of these values."""
    try:
        array = take(adapter, foreign)
    except Exception:
        return
    assert values is not None, "it was taken"
    try:
        found = adapter.to_bytes(array)
    except Exception as error:
        raise NotSupportedError("what it took cannot be read") from error
    assert found == values


@each(
    "name",
    (spec("refuse.used", PYTHON, "A capsule that was consumed owns nothing."), USED[VERSIONED]),
    (spec("refuse.other-name", PYTHON, "Another capsule holds another struct."), b"some_tensor"),
    (spec("refuse.no-capsule", PYTHON, "__dlpack__ returns a capsule."), None),
)
def test_what_is_no_fresh_capsule_is_refused(adapter, name):
    class Other(Producer):
        def __dlpack__(self, **keywords: Any) -> Any:
            self.capsule = 7 if name is None else self.foreign.capsule(name)
            return self.capsule

    with refused():
        adapter.consume(Other(foreign_of(adapter)))


@each(
    "field, value",
    (
        convention("refuse.device-type", DLPACK, "Metal's memory has other addresses."),
        "device_type",
        8,
    ),
    (convention("refuse.device-id", GUIDE, "No root device has this id."), "device_id", 99),
    (convention("refuse.negative-device-id", GUIDE, "An id is a position."), "device_id", -1),
    (convention("refuse.null", DLPACK, "Only an empty tensor has null data."), "data", None),
    (convention("refuse.negative-rank", DLPACK, "A rank is a number of dimensions."), "ndim", -1),
    (convention("refuse.null-shape", DLPACK, "Only rank 0 has no shape."), "shape", None),
)
def test_a_tensor_of_a_wrong_field_is_refused(adapter, field, value):
    foreign = foreign_of(adapter)
    setattr(foreign.tensor, field, value)
    check_refused(adapter, foreign)


@each(
    "shape",
    (convention("refuse.negative-extent", DLPACK, "An extent counts elements."), (-3, 4)),
    (convention("refuse.overflow", DLPACK, "A size beyond 64 bits is no size."), (2**32, 2**32)),
    (convention("refuse.bounds", GUIDE, "Every element must be in the allocation."), (2**24, 4)),
)
def test_a_tensor_of_a_wrong_shape_is_refused(adapter, shape):
    check_refused(adapter, foreign_of(adapter, shape=shape))


@convention("refuse.other-device", GUIDE, "The id must be that of the memory's device.")
def test_the_id_of_another_device_is_refused(adapter):
    if len(adapter.queues()) < 2:
        raise NotSupportedError("there is one root device")
    foreign = foreign_of(adapter)
    foreign.tensor.device_id = 1
    check_refused(adapter, foreign)


@spec("refuse.major", DLPACK, "Of another major version only the deleter may be used.")
def test_another_major_version_is_refused(adapter):
    foreign = foreign_of(adapter)
    foreign.managed.major = 2
    foreign.tensor.ndim = 1 << 20
    with refused():
        take(adapter, foreign)
    gc.collect()
    assert foreign.deletions == 1


@convention("refuse.not-usm", GUIDE, "The default context must know the pointer.")
def test_memory_of_the_host_is_no_usm(adapter):
    foreign = foreign_of(adapter)
    buffer = ctypes.create_string_buffer(4096)
    foreign.tensor.data = ctypes.addressof(buffer)
    check_refused(adapter, foreign)


@convention("refuse.context", GUIDE, "The default context must know the pointer.")
def test_memory_of_another_context_is_refused(adapter):
    queue = adapter.queue_of_other_context()
    foreign = foreign_of(adapter)
    foreign.owner, foreign.tensor.data = adapter.allocate(VALUES.tobytes(), adapter.kinds[0], queue)
    check_refused(adapter, foreign, VALUES.tobytes())


@convention("refuse.misaligned", DLPACK, "An element must be aligned, or be read as it is.")
def test_a_misaligned_tensor_has_its_values_or_is_refused(adapter):
    foreign = foreign_of(adapter, shape=(2,))
    foreign.tensor.byte_offset = 1
    check_refused(adapter, foreign, VALUES.tobytes()[1:9])


@convention("refuse.lanes", DLPACK, "A vector is not a scalar.")
def test_a_vector_is_not_read_as_a_scalar(adapter):
    foreign = foreign_of(adapter, shape=(3,))
    foreign.tensor.lanes = 4
    try:
        array = take(adapter, foreign)
    except Exception:
        return
    if not hasattr(array, "__dlpack__"):
        raise NotSupportedError("its arrays have no __dlpack__")
    try:
        seen = content_of(array.__dlpack__(max_version=(1, 1))).dl_tensor
    except Exception:
        return
    assert math.prod(integers(seen.shape, seen.ndim)) * seen.lanes == VALUES.size


@spec("refuse.producers-error", ARRAY_API, "What a producer raises tells the user why.")
def test_the_error_of_a_producer_comes_out(adapter):
    class Fails(Producer):
        def __dlpack__(self, **keywords: Any) -> Any:
            raise BufferError("not exported")

    with refused(BufferError):
        adapter.consume(Fails(foreign_of(adapter)))
