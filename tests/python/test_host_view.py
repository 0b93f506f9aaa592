# SPDX-License-Identifier: Apache-2.0
"""DLPackTensor.host_view: CPU libraries see host and shared USM without a copy."""

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from capsules import LEGACY, NEWEST, content_of, name_of
from memory_sources import TypedArray, address_of, allocate, new_queue
from refusals import refused
from usm_dlpack import from_dlpack, to_dlpack_tensor


@pytest.fixture(params=["shared", "host"])
def readable(request: pytest.FixtureRequest, queue: Any) -> Any:
    """Return 48 bytes of USM that the host can read, with each kind in turn."""
    return allocate(request.param, 48, queue)


def test_numpy_sees_the_memory_and_writes_it(readable):
    tensor = to_dlpack_tensor(readable, shape=(3, 2), strides=(-4, 2), dtype="f4", byte_offset=32)
    view = tensor.host_view()
    expected = np.arange(48, dtype=np.uint8).view(np.float32).reshape(3, 4)[::-1, ::2]
    for seen in (np.asarray(view), np.from_dlpack(view), np.array(view, copy=False)):
        assert seen.ctypes.data == tensor.data
        assert (seen.dtype, seen.strides) == (np.dtype("f4"), (-16, 8))
        assert np.array_equal(seen, expected)
        seen[1, 1] = expected[1, 1] = expected[1, 1] + 1
        assert tensor.numpy()[1, 1] == seen[1, 1]


@pytest.mark.parametrize("free", [2**62, 2**63 - 1, -(2**63)])
def test_numpy_takes_the_free_stride_of_one_element(free, readable):
    tensor = to_dlpack_tensor(readable, shape=(1, 3), strides=(free, 4), dtype="i4")
    for seen in (np.asarray(tensor.host_view()), np.from_dlpack(tensor.host_view())):
        assert np.array_equal(seen, tensor.numpy())


def test_the_capsule_is_of_the_host_and_takes_keywords(readable):
    view = to_dlpack_tensor(readable).host_view()
    assert view.__dlpack_device__() == (1, 0)
    assert name_of(view.__dlpack__()) == LEGACY
    here = content_of(view.__dlpack__(max_version=NEWEST, dl_device=(1, 0), copy=False)).dl_tensor
    assert (here.device_type, here.device_id, here.data) == (1, 0, address_of(readable))
    copied = content_of(view.__dlpack__(max_version=NEWEST, copy=True)).dl_tensor
    assert (copied.device_type, copied.data != here.data) == (1, True)
    there = content_of(view.__dlpack__(max_version=NEWEST, dl_device=(14, 0))).dl_tensor
    assert (there.device_type, there.data) == (14, address_of(readable))
    with pytest.raises(ValueError, match="stream"):
        view.__dlpack__(stream=new_queue())
    assert from_dlpack(view, device=(14, 0)).numpy().tobytes() == bytes(range(48))


@pytest.mark.parametrize("see", [np.asarray, np.from_dlpack, lambda view: view], ids=str)
def test_whoever_sees_the_memory_keeps_it(see, queue):
    owner = TypedArray(allocate("shared", 48, queue))
    gone = weakref.ref(owner)
    seen = see(to_dlpack_tensor(owner).host_view())
    del owner
    gc.collect()
    assert gone() is not None
    del seen
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "complex32", "int4", "float32x4"])
def test_a_dtype_that_numpy_lacks_goes_through_dlpack_alone(name, readable):
    tensor = to_dlpack_tensor(readable, dtype=name)
    view = tensor.host_view()
    assert content_of(view.__dlpack__()).dl_tensor.data == tensor.data
    assert not hasattr(view, "__array_interface__")
    with refused("dtype_unsupported", "dtype", found=name, remedy="__dlpack__"):
        np.asarray(view)
    padded = to_dlpack_tensor(readable, dtype=ml_dtypes.int4).host_view()
    assert not hasattr(padded, "__array_interface__")
