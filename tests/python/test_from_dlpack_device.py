# SPDX-License-Identifier: Apache-2.0
"""from_dlpack with `device`, `copy`, `usm_type`: host arrays, other kinds, other root devices."""

from __future__ import annotations

import enum
import gc
import json
import math
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clean_environment
import dpctl
import ml_dtypes
import numpy as np
import pytest
from capsules import (
    IS_COPIED,
    IS_SUBBYTE_TYPE_PADDED,
    ForeignArray,
    ForeignTensor,
    OldArray,
    content_of,
    name_of,
)
from memory_sources import UNPOOLED, TypedArray, address_of, allocate, new_queue
from refusals import refused, wrong_argument
from usm_dlpack import from_dlpack, root_device, to_dlpack_tensor, validate

NEWEST = (1, 3)
HERE = (14, 0)


class DeviceType(enum.Enum):
    """What the array API calls a device type, which need be no int."""

    CPU = 1
    ONE_API = 14
    NONE = "none"


DEVICES: dict[str, Callable[[], Any]] = {
    "a pair": lambda: HERE,
    "a pair of NumPy's integers": lambda: (np.int32(14), np.int64(0)),
    "a pair of a member of an enumeration": lambda: (DeviceType.ONE_API, 0),
    "a device": lambda: root_device(0),
    "an opencl sub-device": lambda: root_device(0).create_sub_devices(partition=1)[1],
    "a filter string": lambda: root_device(0).get_filter_string(),
    "a queue": lambda: new_queue(root_device(0)),
    "an in-order queue": lambda: new_queue(root_device(0), in_order=True),
}

# --- host arrays: NumPy


@pytest.mark.parametrize("name", DEVICES)
def test_every_name_of_a_device_brings_a_host_array_there(name: str) -> None:
    device = DEVICES[name]()
    made = from_dlpack(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    assert (made.device, made.usm_type, made.shape) == (HERE, "device", (3, 4))
    assert made.sycl_queue == (device if isinstance(device, dpctl.SyclQueue) else None)
    assert np.array_equal(made.numpy(), np.arange(12).reshape(3, 4))


class Untouched:
    """An array that must not be asked for anything."""

    def __dlpack__(self, **keywords: Any) -> Any:
        raise AssertionError

    def __dlpack_device__(self) -> Any:
        raise AssertionError


@pytest.mark.parametrize("of", ["the device", "an opencl sub-device"])
@pytest.mark.parametrize(
    "keywords", [{}, {"copy": True}, {"copy": False}, {"usm_type": "shared"}], ids=str
)
def test_a_queue_of_another_context_is_refused_before_anything_is_asked(
    foreign_queue: Any, memory: Any, of: str, keywords: dict[str, Any]
) -> None:
    wrong = foreign_queue if of == "the device" else dpctl.SyclQueue(DEVICES[of]())
    ours = to_dlpack_tensor(memory)
    numbers = np.zeros(3, ml_dtypes.bfloat16)
    for x in (Untouched(), np.zeros(3), numbers, ours, to_dlpack_tensor(memory, shape=0)):
        with refused(
            "context_not_default",
            "queue",
            expected="one of the default context of its platform",
            found="one of another context",
            remedy="pass a queue made from a root device alone",
            binding=True,
        ):
            from_dlpack(x, device=wrong, **keywords)


BASE = np.arange(-60, 60, dtype=np.int32).reshape(4, 5, 6)
READ_ONLY_VIEW = BASE[1:].view()
READ_ONLY_VIEW.flags.writeable = False
VIEWS: dict[str, Any] = {
    "compact": BASE,
    "with gaps": BASE[::2, 1::2, ::3],
    "with gaps in the middle": BASE[:, ::4],
    "reversed": BASE[::-1, ::-1, ::-1],
    "transposed": BASE.T,
    "Fortran": np.asfortranarray(BASE),
    "broadcast in one dimension": np.broadcast_to(BASE[0, 0], (3, 6)),
    "a scalar inside": BASE[2, 3, 4, ...],
    "empty inside": BASE[:, 2:2],
    "read-only": READ_ONLY_VIEW,
    "a diagonal": np.lib.stride_tricks.as_strided(BASE, (4,), (4 * 31,)),
    "a sliding window": np.lib.stride_tricks.sliding_window_view(BASE[0, 0], 3),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_of_the_host_arrives(name: str, usm_type: str) -> None:
    view = VIEWS[name]
    made = from_dlpack(view, device=HERE, usm_type=usm_type)
    assert (made.shape, made.dtype, made.nbytes) == (view.shape, view.dtype, view.nbytes)
    assert made.readonly is False
    assert made.byte_extent == view.nbytes  # an element of its own for each index
    assert validate(made, overlapping=False).usm_type in (usm_type, "unknown")
    assert np.array_equal(made.numpy(), view)


def test_a_compact_array_keeps_its_strides_and_one_with_gaps_becomes_compact() -> None:
    fortran = from_dlpack(VIEWS["Fortran"], device=HERE)
    assert fortran.strides == (1, 4, 20)
    permuted = from_dlpack(BASE.transpose(1, 2, 0), device=HERE)
    assert permuted.strides == (6, 1, 30)
    assert from_dlpack(VIEWS["reversed"], device=HERE).strides == (30, 6, 1)
    assert from_dlpack(VIEWS["with gaps"], device=HERE).strides == (4, 2, 1)


@pytest.mark.parametrize(
    ("shape", "strides", "compact"),
    [
        ((1,), (-5,), (1,)),
        ((3, 1, 2), (2, -(2**40), 1), (2, 2, 1)),
        ((3, 0, 2), (-(2**61), 5, -1), (2, 2, 1)),
    ],
    ids=str,
)
def test_a_copy_has_no_negative_stride_of_a_dimension_without_neighbours(
    shape: tuple[int, ...], strides: tuple[int, ...], compact: tuple[int, ...], queue: Any
) -> None:
    source = allocate("device", 48, queue)
    tensor = to_dlpack_tensor(source, shape=shape, dtype="i4", strides=strides)
    made = from_dlpack(tensor, copy=True)
    assert made.strides == compact
    assert np.array_equal(made.numpy(), tensor.numpy())
    on_host = content_of(tensor.__dlpack__(dl_device=(1, 0), max_version=NEWEST)).dl_tensor
    assert tuple(on_host.strides[: len(shape)]) == compact


def test_overlapping_usm_is_copied_to_an_element_for_each_index(usm_type: str, queue: Any) -> None:
    source = allocate(usm_type, 16, queue)
    broadcast = to_dlpack_tensor(source, shape=(3, 4), dtype="i4", strides=(0, 1))
    values = broadcast.numpy()
    for made in (
        from_dlpack(broadcast, copy=True),
        from_dlpack(broadcast, usm_type="shared" if usm_type == "device" else "device"),
        from_dlpack(OldArray(broadcast.__dlpack__(copy=True, max_version=NEWEST))),
    ):
        assert (made.strides, made.byte_extent) == ((4, 1), 48)
        assert np.array_equal(made.numpy(), values)
    on_host = np.from_dlpack(broadcast, device="cpu", copy=True)
    assert on_host.strides == (16, 4)
    on_host[0, 0] = -1
    assert np.array_equal(on_host[1:], values[1:])


@pytest.mark.parametrize(
    ("shape", "strides", "start"),
    [((3, 4), (0, 1), 0), ((2, 3), (3, 2), 0), ((4,), (-1,), 2)],
    ids=["broadcast", "gaps", "reversed"],
)
def test_packed_elements_are_copied_bit_by_bit(
    shape: tuple[int, ...], strides: tuple[int, ...], start: int, usm_type: str, queue: Any
) -> None:
    source = allocate(usm_type, 8, queue)
    packed = [byte >> shift & 15 for byte in range(8) for shift in (0, 4)]
    tensor = to_dlpack_tensor(
        source, shape=shape, dtype=(1, 4, 1), strides=strides, byte_offset=start
    )
    made = from_dlpack(tensor, copy=True)
    count = math.prod(shape)
    assert made.byte_extent == made.nbytes == (count + 1) // 2
    host = to_dlpack_tensor(made, shape=made.nbytes, dtype="u1").numpy()
    found = [byte >> shift & 15 for byte in host.tolist() for shift in (0, 4)][:count]
    places = [sum(i * s for i, s in zip(at, strides, strict=True)) for at in np.ndindex(shape)]
    assert found == [packed[2 * start + place] for place in places]


@pytest.mark.parametrize(
    ("shape", "nbytes"),
    [((2**20, 2**20, 64), str(2**46)), ((2**31, 2**30, 2), "more than 1152921504606846975")],
)
def test_a_copy_that_cannot_be_allocated_says_its_bytes(
    shape: tuple[int, ...], nbytes: str, usm_type: str, queue: Any
) -> None:
    one = np.broadcast_to(np.int8(7), shape)
    same = to_dlpack_tensor(allocate("device", 4, queue), shape=shape, dtype="i1", strides=(0,) * 3)
    for copy in (
        lambda: from_dlpack(one, device=HERE, usm_type=usm_type),
        lambda: from_dlpack(same, copy=True, usm_type=usm_type),
        lambda: same.__dlpack__(dl_device=(1, 0)),
    ):
        with refused(
            *("copy_needed", "copy"),
            expected=f"memory for a copy of {nbytes} bytes",
            found="none",
        ):
            copy()


def test_a_copy_is_the_tensors_own(usm_type: str) -> None:
    values = np.arange(12, dtype=np.float32)
    made = from_dlpack(values, device=HERE, usm_type=usm_type)
    gone = weakref.ref(values)
    values[:] = 0
    del values
    gc.collect()
    assert gone() is None
    assert made.numpy().tolist() == list(range(12))
    assert content_of(made.__dlpack__(max_version=NEWEST)).flags == 0


def test_the_memory_of_a_copy_goes_with_the_tensor() -> None:
    made = from_dlpack(np.zeros(UNPOOLED, np.uint8), device=HERE)
    there = ForeignTensor(made.data, shape=(12,), dtype=(2, 64, 1))
    assert validate(there.capsule()).base == made.data
    del made
    gc.collect()
    with refused("pointer_unknown", "data", binding=True):
        validate(there.capsule())


def test_a_host_array_cannot_come_without_a_copy_or_without_a_device() -> None:
    values = np.zeros(3)
    with refused("copy_needed", "copy", expected="an array in host memory", found="False"):
        from_dlpack(values, device=HERE, copy=False)
    for keywords in ({}, {"copy": True}):
        with refused("device_type_unsupported", "device.device_type", remedy="device="):
            from_dlpack(values, **keywords)


# --- host arrays: other producers


@pytest.mark.parametrize("legacy", [False, True])
def test_a_host_array_of_a_foreign_producer_is_copied_and_let_go(legacy: bool) -> None:
    values = np.arange(12, dtype=np.float32)
    foreign = ForeignTensor(values.ctypes.data, legacy=legacy)
    foreign.tensor.device_type, foreign.tensor.strides = 1, None
    for array in (ForeignArray(foreign, device=(1, 0)), OldArray(foreign.capsule())):
        made = from_dlpack(array, device=HERE)
        assert np.array_equal(made.numpy(), values.reshape(3, 4))
    gc.collect()
    assert foreign.deletions == 2


def test_a_byte_offset_and_negative_strides_of_the_host_are_followed() -> None:
    values = np.arange(12, dtype=np.float32)
    foreign = ForeignTensor(values.ctypes.data, shape=(3,), strides=(-2,))
    foreign.tensor.device_type, foreign.tensor.byte_offset = 1, 40
    made = from_dlpack(ForeignArray(foreign, device=(1, 0)), device=HERE)
    assert made.numpy().tolist() == [10, 8, 6]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("ndim", -1, "ndim_out_of_range"),
        ("byte_offset", 2, "data_misaligned"),
    ],
)
def test_a_broken_host_array_is_refused_and_stays_its_producers(
    field: str, value: Any, code: str
) -> None:
    foreign = ForeignTensor(np.zeros(12, np.float32).ctypes.data)
    foreign.tensor.device_type = 1
    setattr(foreign.tensor, field, value)
    array = OldArray(foreign.capsule())
    with pytest.raises(BufferError) as caught:
        from_dlpack(array, device=HERE)
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert foreign.deletions == 0
    del array, caught
    gc.collect()
    assert foreign.deletions == 1


def test_a_host_producer_is_given_no_queue() -> None:
    values = np.arange(12, dtype=np.float32)
    foreign = ForeignTensor(values.ctypes.data)
    foreign.tensor.device_type = 1
    array = ForeignArray(foreign, device=(1, 0))
    queue = new_queue(root_device(0))
    assert from_dlpack(array, device=queue).sycl_queue == queue
    assert array.asked == [{"max_version": NEWEST}]


def test_other_devices_stay_refused(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.device_type = 2
    for device in ((2, 0), HERE):
        with refused("device_type_unsupported", "device.device_type", found="kDLCUDA (2)"):
            from_dlpack(ForeignArray(foreign, device=device), device=HERE)


# --- USM


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("copy", [None, False])
def test_usm_that_is_there_is_taken_as_it_is(name: str, copy: bool | None, queue: Any) -> None:
    tensor = to_dlpack_tensor(allocate("shared", 48, queue), shape=(4, 3), dtype="f4")
    for x in (tensor, OldArray(tensor.__dlpack__())):
        made = from_dlpack(x, device=DEVICES[name](), copy=copy, usm_type="shared")
        assert (made.data, made.usm_type, made.strides) == (tensor.data, "shared", (3, 1))


@pytest.mark.parametrize("wanted", ["host", "device", "shared"])
@pytest.mark.parametrize("device", [None, HERE])
def test_usm_of_another_kind_is_copied(wanted: str, device: Any, usm_type: str, queue: Any) -> None:
    owner = allocate(usm_type, 48, queue)
    tensor = to_dlpack_tensor(owner, shape=(3, 2), strides=(-4, 2), dtype="f4", byte_offset=32)
    expected = np.frombuffer(bytes(range(48)), np.float32).reshape(3, 4)[::-1, ::2]
    made = from_dlpack(tensor, device=device, usm_type=wanted)
    assert made.usm_type == wanted
    assert (made.data == tensor.data) is (wanted == usm_type)
    assert made.numpy().tobytes() == expected.tobytes()
    if wanted != usm_type:
        with refused("copy_needed", "copy", expected="another device or USM kind", found="False"):
            from_dlpack(tensor, device=device, usm_type=wanted, copy=False)


def test_a_copy_of_read_only_memory_may_be_written(memory: Any) -> None:
    tensor = to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))
    assert from_dlpack(tensor, usm_type="device").readonly
    assert not from_dlpack(tensor, usm_type="host").readonly
    assert not from_dlpack(tensor, copy=True).readonly


def test_a_producer_that_copies_when_asked_is_not_copied_again(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.flags = IS_COPIED
    array = ForeignArray(foreign)
    assert from_dlpack(array, copy=True).data == address_of(memory)
    foreign.managed.flags = 0
    assert from_dlpack(array, copy=True).data != address_of(memory)


def test_a_copy_of_the_producer_whose_elements_overlap_is_copied_again(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), strides=(0, 1))
    foreign.managed.flags = IS_COPIED  # as of dpctl's and dpnp's copies of a broadcast
    array = ForeignArray(foreign)
    made = from_dlpack(array, copy=True)
    assert made.data != address_of(memory)
    assert (made.strides, made.byte_extent) == ((4, 1), 48)
    assert made.numpy().tobytes() == bytes(range(16)) * 3
    assert from_dlpack(array).data == address_of(memory)


@pytest.mark.parametrize("device_type", [1, 14])
@pytest.mark.parametrize("device", ["the device", "a queue"])
def test_what_the_producer_refuses_to_copy_is_copied_here(
    device_type: int, device: str, memory: Any, queue: Any
) -> None:
    host = np.frombuffer(bytes(range(48)), np.float32).copy()
    foreign = ForeignTensor(host.ctypes.data if device_type == 1 else address_of(memory))
    foreign.tensor.device_type = device_type

    class NoCopies(ForeignArray):
        def __dlpack__(self, **keywords: Any) -> Any:
            capsule = super().__dlpack__(**keywords)
            if keywords.get("copy"):
                raise BufferError("copy not yet supported")  # as tvm-ffi does
            return capsule

    array = NoCopies(foreign, (device_type, 0))
    made = from_dlpack(array, device=queue if device == "a queue" else HERE, copy=True)
    assert [asked.get("copy") for asked in array.asked] == [True, None]
    assert made.data not in (address_of(memory), host.ctypes.data)
    assert made.numpy().tobytes() == bytes(range(48))


def test_what_the_producer_refuses_with_and_without_a_copy_is_its_own_refusal() -> None:
    asked = []

    class Refusing:
        def __dlpack__(self, *, max_version: Any = None, copy: Any = None) -> Any:
            asked.append(copy)
            raise BufferError("not to be shared")

    for copy in (True, False):
        with pytest.raises(BufferError, match="not to be shared"):
            from_dlpack(Refusing(), copy=copy)
    assert asked == [True, None, False]


# --- wrong arguments


@pytest.mark.parametrize(
    ("kind", "keyword", "value"),
    [
        *((ValueError, "device", value) for value in ((14,), (2, 0), (), "cpu:99", "cpu\0x")),
        *((ValueError, "device", (kind, 0)) for kind in ("14", 14.0, None, DeviceType.NONE)),
        *((ValueError, "device", (14, number)) for number in (2**31, -(2**31) - 1)),
        *((TypeError, "device", (14, number)) for number in (0.0, "0", None)),
        *((TypeError, "device", value) for value in (0, True, [14, 0], dpctl.SyclDevice)),
        *((TypeError, "copy", value) for value in (2, "yes", np.int64(1), ())),
        *((ValueError, "usm_type", value) for value in ("", "Device", "unknown")),
        *((TypeError, "usm_type", value) for value in (1, b"host")),
    ],
    ids=str,
)
def test_a_keyword_that_makes_no_sense_is_a_wrong_argument(
    kind: type[Exception], keyword: str, value: Any
) -> None:
    keywords: dict[str, Any] = {keyword: value}
    for x in (np.zeros(3), object()):
        with wrong_argument(kind, keyword):
            from_dlpack(x, **keywords)


@pytest.mark.parametrize(
    ("device", "remedy"),
    [(0, "pass (14, 0)"), (True, "pass (14, device_id)"), (np.int64(0), "pass (14, 0)")],
)
def test_an_id_alone_is_told_the_pair_that_it_may_mean(
    memory: Any, device: Any, remedy: str
) -> None:
    for call in (from_dlpack, validate):
        with wrong_argument(TypeError, "device", f"found {device!r}; {remedy}"):
            call(to_dlpack_tensor(memory), device=device)


@pytest.mark.parametrize("device", [(1, 0), (DeviceType.CPU, 0)])
def test_the_host_is_no_device_of_a_tensor(memory: Any, device: Any) -> None:
    with refused("request_unsupported", "device", expected="a root device", remedy="numpy()"):
        from_dlpack(to_dlpack_tensor(memory), device=device)


def test_an_array_may_name_its_device_by_a_member_of_an_enumeration(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    assert from_dlpack(ForeignArray(foreign, device=(DeviceType.ONE_API, 0))).device == HERE


@pytest.mark.parametrize("number", [1, -1, 2**31 - 1])
def test_an_id_of_no_device_is_refused_for_host_and_usm(number: int, memory: Any) -> None:
    for x in (np.zeros(3), to_dlpack_tensor(memory)):
        with refused("device_id_out_of_range", "device.device_id", found=str(number)):
            from_dlpack(x, device=(14, number))


@pytest.mark.parametrize("copy", [False, 0, np.False_, True, 1, np.True_])
def test_a_copy_may_be_asked_for_by_a_bool_of_python_or_numpy(copy: Any, memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    assert (from_dlpack(tensor, copy=copy).data != tensor.data) is bool(copy)


# --- dtypes beyond NumPy's own, in both directions

ML_DTYPES = [
    "bfloat16", "float8_e4m3fn", "float8_e8m0fnu", "float6_e2m3fn", "float4_e2m1fn", "int4",
    "complex32",
]  # fmt: skip


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "complex32"])
def test_dtypes_of_ml_dtypes_come_from_other_libraries(name: str, memory: Any) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    here = content_of(to_dlpack_tensor(memory, dtype=dtype).__dlpack__()).dl_tensor
    tags = (here.code, here.bits, here.lanes)
    values = np.frombuffer(bytes(range(48)), dtype)
    for device_type, address in ((1, values.ctypes.data), (14, address_of(memory))):
        foreign = ForeignTensor(address, shape=(values.size,), dtype=tags)
        foreign.tensor.device_type = device_type
        for copy in (None, True):
            made = from_dlpack(ForeignArray(foreign, (device_type, 0)), device=HERE, copy=copy)
            assert (made.dtype, made.numpy().dtype) == (dtype, dtype)
            assert made.numpy().tobytes() == bytes(range(48))


@pytest.mark.parametrize("name", ["float6_e2m3fn", "int4", "uint2"])
def test_padded_elements_go_to_numpy_one_to_a_byte(name: str, queue: Any) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    owner = allocate("device", 48, queue)
    tensor = to_dlpack_tensor(owner, shape=(4, 6), strides=(12, 2), dtype=dtype)
    expected = np.arange(48, dtype=np.uint8).reshape(4, 12)[:, ::2]
    for made in (tensor, from_dlpack(tensor, copy=True)):
        assert (made.dtype, made.nbytes) == (dtype, 24)
        flags = content_of(made.__dlpack__(max_version=NEWEST)).flags
        assert flags == IS_SUBBYTE_TYPE_PADDED
        assert made.numpy().dtype == dtype
        assert made.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["int4", (2, 32, 4)], ids=str)
def test_numpy_is_refused_for_dtypes_that_it_lacks(dtype: Any, queue: Any) -> None:
    tensor = to_dlpack_tensor(allocate("host", 96, queue), dtype=dtype)
    with refused("dtype_unsupported", "dtype", found=str(tensor.dtype)):
        tensor.numpy()
    copied = from_dlpack(tensor, copy=True)
    assert (copied.dtype, copied.nbytes) == (tensor.dtype, tensor.nbytes)
    given = copied.__dlpack__(dl_device=(1, 0), max_version=NEWEST)
    assert content_of(given).dl_tensor.bits == content_of(tensor.__dlpack__()).dl_tensor.bits


def test_numpy_gives_a_new_compact_array_that_may_be_written(memory: Any) -> None:
    tensor = to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))
    array = tensor.numpy()
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert array.base is None
    array[:] = 0
    assert bytes(memory.copy_to_host()) == bytes(range(48))


# --- several root devices, in a process of their own


@pytest.mark.parametrize("legacy", [False, True])
def test_a_copy_that_cannot_be_made_leaves_the_capsule_fresh(legacy: bool) -> None:
    values = np.zeros(12, np.float32)
    foreign = ForeignTensor(values.ctypes.data, shape=(2**43,), legacy=legacy)
    foreign.tensor.device_type = 1
    capsule = foreign.capsule()
    with refused("copy_needed", "copy", expected=f"a copy of {2**45} bytes", found="none"):
        from_dlpack(OldArray(capsule), device=(14, 0))
    assert name_of(capsule) == foreign.name
    assert foreign.deletions == 0
    foreign.tensor.shape = foreign.array((12,))
    assert from_dlpack(OldArray(capsule), device=(14, 0)).numpy().tolist() == [0] * 12
    assert foreign.deletions == 1


@pytest.mark.parametrize("name", ML_DTYPES)
@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1, 1::2], np.s_[1, 2, ...]])
def test_numpy_arrays_of_ml_dtypes_come_and_go_as_the_same_bits(name: str, view: Any) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = np.arange(24 * dtype.itemsize, dtype=np.uint8) % 4
    values = np.ndarray((4, 6), dtype, bits.tobytes())[view]
    made = from_dlpack(values, device=(14, 0))
    back = made.numpy()
    assert (made.dtype, back.dtype, back.shape) == (dtype, dtype, values.shape)
    assert back.tobytes() == values.tobytes()
    again = from_dlpack(made)
    assert (again.dtype, again.numpy().tobytes()) == (dtype, values.tobytes())


def test_numpy_arrays_of_another_byte_order_are_refused() -> None:
    swapped = np.array([1, 2, 3], np.dtype(ml_dtypes.bfloat16).newbyteorder(">"))
    with refused("dtype_unsupported", "dtype", expected="native byte order", remedy="convert"):
        from_dlpack(swapped, device=HERE)


def test_numpy_arrays_of_ml_dtypes_are_copied_for_a_queue_and_not_without_a_device() -> None:
    values = np.array([1, 2, 3], ml_dtypes.int4)
    asked = new_queue(root_device(0))
    made = from_dlpack(values, device=asked)
    assert (made.sycl_queue, made.numpy().tolist()) == (asked, [1, 2, 3])
    with pytest.raises(BufferError):  # NumPy's own
        from_dlpack(values)


# Host USM is of a whole platform, and all simulated devices are of one.
OF_A_ROOT = ["device", "shared"] if clean_environment.IS_SIMULATED else ["device", "shared", "host"]

BEGIN = """
import json, sys
sys.path.insert(0, {tests!r})
import dpctl, dpctl.memory, numpy as np, usm_dlpack
from capsules import content_of
from memory_sources import new_queue
from usm_dlpack import ConversionError, from_dlpack, to_dlpack_tensor, validate
KINDS = {{"device": dpctl.memory.MemoryUSMDevice, "shared": dpctl.memory.MemoryUSMShared,
         "host": dpctl.memory.MemoryUSMHost}}
devices = dpctl.get_devices()
OF_A_ROOT = {of_a_root}
values = np.arange(24, dtype=np.float32).reshape(4, 6)

def make(number, kind):
    memory = KINDS[kind](96, queue=new_queue(devices[number]))
    memory.copy_from_host(values.view(np.uint8).ravel())
    return to_dlpack_tensor(memory, shape=(4, 6), dtype="f4")

def refusal(action):
    try:
        action()
    except ConversionError as error:
        return [error.code, error.field, error.found]

class Old:
    def __init__(self, capsule):
        self.capsule = capsule
    def __dlpack__(self):
        return self.capsule
answer = []
"""


@pytest.fixture(scope="session")
def with_two_devices(
    succeed: Callable[..., str], several_devices: Callable[..., Any], project_root: Path
) -> Callable[[str], Any]:
    """Return a function that runs code with two root devices, and gives the ``answer``."""

    def run(code: str) -> Any:
        tests = str(project_root / "tests" / "python")
        begin = BEGIN.format(tests=tests, of_a_root=OF_A_ROOT)
        whole = f"{begin}\n{code}\nprint(json.dumps(answer))\n"
        return json.loads(succeed(whole, **several_devices(2)))

    return run


def test_arrays_are_copied_between_root_devices_of_each_kind(
    with_two_devices: Callable[[str], Any],
) -> None:
    found = with_two_devices("""
for start, end in ((0, 1), (1, 0)):
    queue = new_queue(devices[end])
    for kind in OF_A_ROOT:
        tensor = make(start, kind)
        for wanted in (None, *KINDS):
            for device in ((14, end), devices[end], queue, devices[end].get_filter_string()):
                made = from_dlpack(tensor, device=device, usm_type=wanted)
                assert (made.device, made.sycl_device) == ((14, end), devices[end])
                assert made.usm_type == (wanted or kind)
                assert validate(made).device_id == end
                assert np.array_equal(made.numpy(), values)
                assert made.sycl_queue == (queue if device is queue else None)
            assert from_dlpack(values[::-1], device=(14, end), usm_type=wanted).device == (14, end)
        code = refusal(lambda: from_dlpack(tensor, device=(14, end), copy=False))
        answer.append([start, kind, *code])
""")
    assert found == [
        [start, kind, "copy_needed", "copy", "False"] for start in (0, 1) for kind in OF_A_ROOT
    ]


def test_dl_device_of_another_root_device_is_a_copy_there(
    with_two_devices: Callable[[str], Any],
) -> None:
    found = with_two_devices("""
for start, end in ((0, 1), (1, 0)):
    for kind in OF_A_ROOT:
        tensor = make(start, kind)
        for copy in (None, True):
            capsule = tensor.__dlpack__(dl_device=(14, end), max_version=(1, 3), copy=copy)
            inside = content_of(capsule)
            proof = validate(capsule)
            made = from_dlpack(Old(capsule))
            assert np.array_equal(made.numpy(), values)
            assert made.sycl_device == devices[end]
            answer.append([inside.flags, inside.dl_tensor.device_id == end, proof.usm_type == kind])
        legacy = tensor.__dlpack__(dl_device=(14, end), stream=new_queue(devices[end]))
        assert np.array_equal(from_dlpack(Old(legacy)).numpy(), values)
        same = tensor.__dlpack__(dl_device=(14, start), max_version=(1, 3))
        assert content_of(same).flags == 0
        refused = refusal(lambda: tensor.__dlpack__(dl_device=(14, end), copy=False))
        assert refused == ["copy_needed", "copy", "False"]
        assert refusal(lambda: tensor.__dlpack__(dl_device=(14, 2)))[0] == "device_id_out_of_range"
""")
    assert found == [[IS_COPIED, True, True]] * 4 * len(OF_A_ROOT)


def test_views_with_gaps_and_empty_ones_are_copied_between_root_devices(
    with_two_devices: Callable[[str], Any],
) -> None:
    found = with_two_devices("""
for kind in KINDS:
    tensor = make(0, kind)
    whole = to_dlpack_tensor(dpctl.memory.as_usm_memory(tensor), shape=(2, 3), strides=(-12, 2),
                             dtype="f4", byte_offset=48)
    made = from_dlpack(whole, device=(14, 1))
    answer.append([made.strides, made.numpy().tolist() == values[2::-2, ::2].tolist()])
    read_only = to_dlpack_tensor(dpctl.memory.as_usm_memory(tensor), shape=(0, 3), dtype="f4")
    assert from_dlpack(read_only, device=(14, 1)).shape == (0, 3)
    assert from_dlpack(read_only, device=(14, 1)).device == (14, 1)
""")
    assert found == [[[3, 1], True]] * 3


def test_pending_work_is_waited_for_before_a_copy_to_another_root_device(
    with_two_devices: Callable[[str], Any],
) -> None:
    found = with_two_devices("""
import threading
from pending_work import PendingFill, VALUES
for start, end in ((0, 1), (1, 0)):
    for kind in KINDS:
        pending = PendingFill(new_queue(devices[start]), kind)
        tensor = to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue)
        taken = []
        queue = new_queue(devices[end])
        copy = lambda: taken.append(from_dlpack(tensor, device=queue).numpy().tolist())
        thread = threading.Thread(target=copy)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive() and pending.is_pending
        pending.end()
        thread.join()
        answer.append(taken == [VALUES])
""")
    assert found == [True] * 6
