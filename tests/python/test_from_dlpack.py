# SPDX-License-Identifier: Apache-2.0
"""from_dlpack: arrays of other libraries are proved, then owned; refused ones stay their own."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import itertools
import types
import weakref
from collections.abc import Callable
from typing import Any

import dpctl
import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from capsules import (
    IS_COPIED,
    IS_SUBBYTE_TYPE_PADDED,
    LEGACY,
    READ_ONLY,
    VERSIONED,
    ForeignArray,
    ForeignTensor,
    OldArray,
    name_of,
    new_capsule,
)
from dpctl import memory as dpctl_memory
from hypothesis import given
from hypothesis import strategies as st
from memory_sources import TypedArray, address_of, allocate
from refusals import refused, wrong_argument
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, to_dlpack_tensor, validate
from usm_dlpack._producers import _read_signature


def values(tensor: DLPackTensor) -> Any:
    """Return a tensor's elements on the host."""
    return np.from_dlpack(tensor, device="cpu")


def same_view(first: DLPackTensor, second: DLPackTensor) -> bool:
    """Whether two tensors describe the same elements in the same order."""
    names = ["data", "shape", "strides", "dtype", "usm_type", "device", "readonly", "nbytes"]
    return all(getattr(first, name) == getattr(second, name) for name in names)


@pytest.fixture(params=[False, True], ids=["versioned", "legacy"])
def foreign(request: pytest.FixtureRequest, memory: Any) -> ForeignTensor:
    """Return a valid tensor of another library over ``memory``, in each of the two structs."""
    return ForeignTensor(address_of(memory), legacy=request.param)


@pytest.fixture
def versioned(memory: Any) -> ForeignTensor:
    """Return a valid versioned tensor of another library over ``memory``."""
    return ForeignTensor(address_of(memory))


def spoiled(foreign: ForeignTensor, **fields: Any) -> ForeignArray:
    """Return an array with some fields of its DLTensor changed."""
    for name, value in fields.items():
        setattr(foreign.tensor, name, value)
    return ForeignArray(foreign)


# --- round trips


def test_our_own_tensor_comes_back_as_the_same_view(usm_type: str, queue: Any) -> None:
    owner = allocate(usm_type, 48, queue)
    tensor = to_dlpack_tensor(owner, shape=(3, 4), dtype="f4", strides=(1, 3))
    assert same_view(from_dlpack(tensor), tensor)


def test_a_read_only_tensor_stays_read_only(memory: Any) -> None:
    tensor = to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))
    assert from_dlpack(from_dlpack(tensor)).readonly is True


@given(
    dims=st.lists(st.tuples(st.integers(0, 4), st.integers(-6, 6)), min_size=0, max_size=8),
    dtype=st.sampled_from(["u1", "i2", "f4", "f8", "c8", "c16", "?", "bfloat16", (2, 16, 4)]),
)
def test_views_of_any_rank_come_back_unchanged(
    queue: Any, dims: list[tuple[int, int]], dtype: Any
) -> None:
    owner = allocate("shared", 1 << 14, queue)
    shape, strides = [extent for extent, _ in dims], [stride for _, stride in dims]
    tensor = to_dlpack_tensor(owner, shape=shape, strides=strides, dtype=dtype, byte_offset=1 << 13)
    assert same_view(from_dlpack(tensor), tensor)
    assert same_view(from_dlpack(OldArray(tensor.__dlpack__())), tensor)


def test_tvm_ffi_takes_a_tensor_without_a_copy_and_gives_it_back(usm_type: str, queue: Any) -> None:
    owner = allocate(usm_type, 48, queue)
    tensor = to_dlpack_tensor(owner, shape=(3, 4), dtype="f4")
    consumed = tvm_ffi.from_dlpack(tensor)
    assert consumed.data_ptr() == tensor.data
    assert (tuple(consumed.shape), tuple(consumed.strides)) == ((3, 4), (4, 1))
    assert consumed.__dlpack_device__() == (14, 0)
    assert same_view(from_dlpack(consumed), tensor)


@pytest.mark.parametrize(
    "dtype", ["i1", "u2", "i8", "f2", "f8", "c8", "?", "bfloat16", "float8_e4m3fn"]
)
def test_tvm_ffi_gives_dtypes_back(memory: Any, dtype: str) -> None:
    tensor = to_dlpack_tensor(memory, dtype=dtype)
    assert from_dlpack(tvm_ffi.from_dlpack(tensor)).dtype == tensor.dtype


def test_kernels_on_either_side_of_tvm_ffi_see_each_others_writes(
    queue: Any, run_kernel: Callable[[str, Any, int], None]
) -> None:
    produced = allocate("device", 96, queue)
    run_kernel("fill", produced, 24)
    expected = 1.5 * np.arange(24, dtype=np.float32)
    consumed = tvm_ffi.from_dlpack(to_dlpack_tensor(produced, shape=(4, 6), dtype="f4"))
    back = from_dlpack(consumed)
    assert np.array_equal(values(back).ravel(), expected)

    run_kernel("negate", dpctl_memory.as_usm_memory(back), 24)
    seen = np.empty(24, np.float32)
    queue.memcpy(seen, produced, 96)
    assert np.array_equal(seen, -expected)

    run_kernel("negate", produced, 24)
    assert np.array_equal(values(from_dlpack(consumed)).ravel(), expected)


def test_what_tvm_ffi_holds_keeps_the_memory_alive(memory: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    consumed = tvm_ffi.from_dlpack(to_dlpack_tensor(owner))
    del owner
    gc.collect()
    assert gone() is not None
    back = from_dlpack(consumed)
    del consumed
    gc.collect()
    assert gone() is not None
    assert back.data == address_of(memory)
    del back
    gc.collect()
    assert gone() is None


# --- what is taken from a capsule


def test_a_valid_tensor_is_taken_as_it_is(foreign: ForeignTensor, memory: Any) -> None:
    tensor = from_dlpack(ForeignArray(foreign))
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((3, 4), (4, 1), np.dtype("f4"))
    assert (tensor.data, tensor.device) == (address_of(memory), (14, 0))
    assert (tensor.usm_type, tensor.readonly) == ("device", False)


def test_null_strides_are_compact_ones(foreign: ForeignTensor) -> None:
    assert from_dlpack(spoiled(foreign, strides=None)).strides == (4, 1)


def test_byte_offset_is_added(foreign: ForeignTensor, memory: Any) -> None:
    foreign.tensor.shape[0] = 2
    tensor = from_dlpack(spoiled(foreign, byte_offset=16))
    assert tensor.data == address_of(memory) + 16
    assert values(tensor).view(np.uint8).ravel().tolist() == list(range(16, 48))


def test_negative_strides_reach_back_from_the_first_element(
    foreign: ForeignTensor, memory: Any
) -> None:
    foreign.tensor.strides = foreign.array((-4, -1))
    tensor = from_dlpack(spoiled(foreign, byte_offset=44))
    assert (tensor.strides, tensor.data) == ((-4, -1), address_of(memory) + 44)
    assert values(tensor).ravel().view(np.uint8).tolist()[:4] == [44, 45, 46, 47]


def test_a_scalar_needs_no_shape_and_no_strides(foreign: ForeignTensor) -> None:
    tensor = from_dlpack(spoiled(foreign, ndim=0, shape=None, strides=None))
    assert (tensor.shape, tensor.strides, tensor.size, tensor.nbytes) == ((), (), 1, 4)


@pytest.mark.parametrize("data", ["null", "live"])
def test_an_empty_tensor_may_have_null_data(foreign: ForeignTensor, memory: Any, data: str) -> None:
    foreign.tensor.shape[0] = 0
    address = None if data == "null" else address_of(memory)
    tensor = from_dlpack(spoiled(foreign, data=address))
    assert (tensor.shape, tensor.size, tensor.data) == ((0, 4), 0, address or 0)
    assert same_view(from_dlpack(tensor), tensor)


@pytest.mark.parametrize("minor", [0, 1, 2, 4, 99])
def test_another_minor_version_is_taken(versioned: ForeignTensor, minor: int) -> None:
    versioned.managed.minor = minor
    assert from_dlpack(ForeignArray(versioned)).shape == (3, 4)


@pytest.mark.parametrize("flags", [0, READ_ONLY, IS_COPIED, READ_ONLY | IS_COPIED])
def test_known_flags_are_taken(versioned: ForeignTensor, flags: int) -> None:
    versioned.managed.flags = flags
    assert from_dlpack(ForeignArray(versioned)).readonly is bool(flags & READ_ONLY)


@pytest.mark.parametrize(
    ("flags", "extent", "nbytes"), [(0, 96, 48), (IS_SUBBYTE_TYPE_PADDED, 48, 48)]
)
def test_padding_of_small_elements_decides_their_size(
    unpooled: Any, flags: int, extent: int, nbytes: int
) -> None:
    fitting = ForeignTensor(address_of(unpooled), shape=(extent,), dtype=(17, 4, 1))
    fitting.managed.flags = flags
    tensor = from_dlpack(ForeignArray(fitting))
    assert (tensor.dtype, tensor.nbytes) == ("float4_e2m1fn", nbytes)
    assert from_dlpack(tensor).nbytes == nbytes
    too_long = ForeignTensor(address_of(unpooled), shape=(extent + 1,), dtype=(17, 4, 1))
    too_long.managed.flags = flags
    with refused("out_of_bounds", "shape"):
        from_dlpack(ForeignArray(too_long))


def test_dtypes_of_ml_dtypes_are_recognised(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), shape=(24,), dtype=(4, 16, 1))
    assert from_dlpack(ForeignArray(foreign)).dtype == np.dtype(ml_dtypes.bfloat16)


def test_padding_of_an_extent_of_one_may_have_any_stride(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), shape=(1, 12), strides=(2**63 - 1, 1))
    assert from_dlpack(ForeignArray(foreign)).strides == (2**63 - 1, 1)


# --- who runs the deleter, and when


def test_an_accepted_tensor_runs_the_deleter_once_when_it_dies(foreign: ForeignTensor) -> None:
    tensor = from_dlpack(ForeignArray(foreign))
    gc.collect()
    assert foreign.deletions == 0
    again = from_dlpack(tensor)
    del tensor
    gc.collect()
    assert foreign.deletions == 0
    del again
    gc.collect()
    assert foreign.deletions == 1


def test_an_accepted_capsule_is_renamed_and_owns_nothing(foreign: ForeignTensor) -> None:
    capsule = foreign.capsule()
    tensor = from_dlpack(OldArray(capsule))
    assert name_of(capsule) == b"used_" + foreign.name
    del capsule
    assert foreign.deletions == 0
    assert tensor.shape == (3, 4)
    del tensor
    assert foreign.deletions == 1


def test_a_refused_capsule_stays_fresh_and_its_own(foreign: ForeignTensor) -> None:
    foreign.tensor.device_id = 99
    capsule = foreign.capsule()
    for _ in range(2):
        with refused("device_id_out_of_range", "device.device_id"):
            from_dlpack(OldArray(capsule))
        assert name_of(capsule) == foreign.name
        assert foreign.deletions == 0
    foreign.tensor.device_id = 0
    tensor = from_dlpack(OldArray(capsule))
    assert foreign.deletions == 0
    del tensor
    assert foreign.deletions == 1
    del capsule
    assert foreign.deletions == 1


def test_a_refused_capsule_that_nobody_keeps_runs_the_deleter_once(foreign: ForeignTensor) -> None:
    with refused("device_id_out_of_range", "device.device_id"):
        from_dlpack(spoiled(foreign, device_id=99))
    gc.collect()
    assert foreign.deletions == 1


def test_a_null_deleter_is_left_uncalled(foreign: ForeignTensor) -> None:
    foreign.managed.deleter = None
    tensor = from_dlpack(ForeignArray(foreign))
    exported = tensor.__dlpack__()
    del tensor
    del exported
    gc.collect()
    assert foreign.deletions == 0


def test_another_major_version_is_refused_and_nothing_else_is_read(
    versioned: ForeignTensor,
) -> None:
    versioned.managed.major = 2
    versioned.managed.flags = 2**63
    versioned.tensor.device_type, versioned.tensor.ndim = 2, -1
    with refused("version_unsupported", "version.major", expected="1", found="2", remedy="(1, 3)"):
        from_dlpack(ForeignArray(versioned))
    gc.collect()
    assert versioned.deletions == 1


# --- what is refused, one spoiled field at a time

REFUSALS: list[tuple[str, str, dict[str, Any], str, bool]] = [
    ("device_type_unsupported", "device.device_type", {"device_type": 1}, "kDLCPU (1)", False),
    ("device_type_unsupported", "device.device_type", {"device_type": 2}, "kDLCUDA (2)", False),
    ("device_type_unsupported", "device.device_type", {"device_type": 0}, "unknown (0)", False),
    ("device_type_unsupported", "device.device_type", {"device_type": -1}, "unknown (-1)", False),
    ("device_type_unsupported", "device.device_type", {"device_type": 5}, "unknown (5)", False),
    ("device_type_unsupported", "device.device_type", {"device_type": 18}, "kDLTrn (18)", False),
    ("device_type_unsupported", "device.device_type", {"device_type": 19}, "unknown (19)", False),
    ("device_id_out_of_range", "device.device_id", {"device_id": 99}, "99", False),
    ("device_id_out_of_range", "device.device_id", {"device_id": -1}, "-1", False),
    ("device_id_out_of_range", "device.device_id", {"device_id": 2**31 - 1}, "2147483647", False),
    ("ndim_out_of_range", "ndim", {"ndim": -1}, "-1", False),
    ("ndim_out_of_range", "ndim", {"ndim": -(2**31)}, "-2147483648", False),
    ("shape_null", "shape", {"shape": None}, "null with ndim 2", False),
    ("dtype_unsupported", "dtype", {"lanes": 0}, "lanes 0", False),
    ("dtype_unsupported", "dtype", {"bits": 0}, "bits 0", False),
    ("dtype_unsupported", "dtype", {"code": 18}, "code 18", False),
    ("dtype_unsupported", "dtype", {"code": 4}, "bits 32", False),
    ("dtype_unsupported", "dtype", {"code": 17}, "bits 32", False),
    ("dtype_unsupported", "dtype", {"bits": 12}, "bits 12", False),
    ("data_null", "data", {"data": None}, "null", False),
    ("span_overflow", "strides", {"byte_offset": 2**64 - 16}, "beyond it", False),
    ("data_misaligned", "byte_offset", {"byte_offset": 2}, "2 bytes past", False),
    ("data_misaligned", "byte_offset", {"byte_offset": 7}, "3 bytes past", False),
    ("out_of_bounds", "shape", {"byte_offset": 4}, "bytes 4 to 51", False),
    ("out_of_bounds", "shape", {"bits": 64}, "bytes 0 to 95", False),
    ("out_of_bounds", "shape", {"lanes": 2}, "bytes 0 to 95", False),
    ("pointer_unknown", "data", {"byte_offset": 48}, "unknown to it", True),
    ("pointer_unknown", "data", {"byte_offset": 2**40}, "unknown to it", True),
    ("pointer_unknown", "data", {"data": 16}, "unknown to it", True),
]


@pytest.mark.parametrize(("code", "field", "fields", "found", "binding"), REFUSALS)
@pytest.mark.parametrize("legacy", [False, True])
def test_a_spoiled_field_is_refused_by_its_rule(
    unpooled: Any,
    legacy: bool,
    code: str,
    field: str,
    fields: dict[str, Any],
    found: str,
    binding: bool,
) -> None:
    foreign = ForeignTensor(address_of(unpooled), legacy=legacy)
    with refused(code, field, found=found, binding=binding):
        from_dlpack(spoiled(foreign, **fields))
    gc.collect()
    assert foreign.deletions == 1


def test_what_is_expected_is_named(versioned: ForeignTensor) -> None:
    with refused("device_type_unsupported", "device.device_type", expected="kDLOneAPI (14)"):
        from_dlpack(spoiled(versioned, device_type=2))
    with refused(
        "device_id_out_of_range",
        "device.device_id",
        expected="from 0 to 0 (root devices in this process)",
        remedy="check ONEAPI_DEVICE_SELECTOR",
    ):
        from_dlpack(spoiled(versioned, device_type=14, device_id=1))
    with refused(
        "pointer_unknown",
        "data",
        expected="USM of the default context of device 0",
        remedy="a queue made from the device alone",
        binding=True,
    ):
        from_dlpack(spoiled(versioned, device_id=0, data=64))


@pytest.mark.parametrize(
    ("shape", "strides", "code", "field"),
    [
        ((-1, 4), (4, 1), "shape_negative", "shape[0]"),
        ((3, -4), (4, 1), "shape_negative", "shape[1]"),
        ((-(2**63), 0), (4, 1), "shape_negative", "shape[0]"),
        ((3, 4), (-4, 1), "out_of_bounds", "shape"),
        ((3, 4), (5, 1), "out_of_bounds", "shape"),
        ((2**61, 1), (1, 1), "span_overflow", "strides"),
        ((2**32, 2**32), (2**32, 1), "span_overflow", "strides"),
        ((2, 1), (-(2**63), 1), "span_overflow", "strides"),
        ((2**63 - 1, 2**63 - 1), (2**63 - 1, 2**63 - 1), "span_overflow", "strides"),
    ],
)
def test_shapes_and_strides_that_do_not_fit_are_refused(
    unpooled: Any, shape: tuple[int, ...], strides: tuple[int, ...], code: str, field: str
) -> None:
    foreign = ForeignTensor(address_of(unpooled), shape=shape, strides=strides)
    with refused(code, field):
        from_dlpack(ForeignArray(foreign))


def test_null_strides_of_a_shape_too_large_are_refused(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), shape=(2**40, 2**40))
    with refused("span_overflow", "strides"):
        from_dlpack(spoiled(foreign, strides=None))


@pytest.mark.parametrize("flags", [8, 16, 1 << 63, 2**64 - 1])
def test_unknown_flags_are_refused(versioned: ForeignTensor, flags: int) -> None:
    versioned.managed.flags = flags
    with refused("flags_unknown", "flags", found=str(flags & ~7)):
        from_dlpack(ForeignArray(versioned))


def test_memory_of_another_context_is_unknown_to_the_default_one_on_opencl(
    foreign_queue: Any,
) -> None:
    """Level Zero's driver answers for all contexts of a platform."""
    hidden = allocate("device", 48, foreign_queue)
    with refused("pointer_unknown", "data", expected="default context of device 0", binding=True):
        from_dlpack(ForeignArray(ForeignTensor(address_of(hidden))))


def test_memory_of_another_context_is_refused_where_its_array_says_the_queue(
    foreign_queue: Any, usm_type: str
) -> None:
    """By the driver, which does not know it, or where that knows all contexts, by the queue."""

    class Working(ForeignArray):
        sycl_queue = foreign_queue

    hidden = allocate(usm_type, 48, foreign_queue)
    code, field = ("context_not_default", "context")
    if foreign_queue.backend == dpctl.backend_type.opencl:
        code, field = ("pointer_unknown", "data")
    for keywords in ({}, {"copy": True}, {"device": (14, 0)}):
        array = Working(ForeignTensor(address_of(hidden)))
        with refused(code, field, expected="the default context", binding=True):
            from_dlpack(array, **keywords)
        assert array.foreign.deletions == 0


# --- producers old and new


@pytest.mark.parametrize("legacy", [False, True])
def test_a_new_producer_is_asked_for_the_newest_version(memory: Any, legacy: bool) -> None:
    array = ForeignArray(ForeignTensor(address_of(memory), legacy=legacy))
    from_dlpack(array)
    assert array.asked == [{"max_version": (1, 3)}]


def test_a_copy_is_refused_where_it_was_forbidden(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.flags = IS_COPIED
    array = ForeignArray(foreign)
    with refused("copy_needed", "copy", expected="copy=False", found="a copy"):
        from_dlpack(array, copy=False)
    assert name_of(array.given) == b"dltensor_versioned"
    assert from_dlpack(array).shape == (3, 4)


@pytest.mark.parametrize("copy", [True, False])
def test_copy_is_passed_to_a_producer_that_takes_it(versioned: ForeignTensor, copy: bool) -> None:
    array = ForeignArray(versioned)
    from_dlpack(array, copy=copy)
    assert array.asked == [{"max_version": (1, 3), "copy": copy}]


def test_a_producer_without_keywords_is_called_without(foreign: ForeignTensor) -> None:
    assert from_dlpack(OldArray(foreign.capsule())).shape == (3, 4)
    assert from_dlpack(OldArray(foreign.capsule()), copy=False).shape == (3, 4)
    taken = from_dlpack(OldArray(foreign.capsule()))
    copied = from_dlpack(OldArray(foreign.capsule()), copy=True)
    assert copied.data != taken.data
    assert copied.numpy().tobytes() == taken.numpy().tobytes()


def test_a_producer_that_takes_a_stream_only_is_called_without(foreign: ForeignTensor) -> None:
    class Old:
        def __dlpack__(self, stream: Any = None) -> Any:
            assert stream is None
            return foreign.capsule()

    assert from_dlpack(Old()).shape == (3, 4)


def test_a_producer_of_any_keywords_gets_the_version(foreign: ForeignTensor) -> None:
    asked: list[dict[str, Any]] = []

    class Open:
        def __dlpack__(self, **keywords: Any) -> Any:
            asked.append(keywords)
            return foreign.capsule()

    from_dlpack(Open())
    from_dlpack(Open(), copy=True)
    assert asked == [{"max_version": (1, 3)}, {"max_version": (1, 3), "copy": True}]


def test_a_producer_of_the_version_alone_is_not_asked_for_a_copy(foreign: ForeignTensor) -> None:
    class Between:
        def __dlpack__(self, *, max_version: Any = None) -> Any:
            assert max_version == (1, 3)
            return foreign.capsule()

    assert from_dlpack(Between()).shape == (3, 4)
    assert from_dlpack(Between(), copy=True).data != from_dlpack(Between()).data


@pytest.mark.parametrize(
    "error", [TypeError, BufferError, ValueError, RuntimeError, MemoryError, KeyboardInterrupt]
)
def test_an_error_of_the_producer_reaches_the_caller_after_one_call(
    error: type[BaseException],
) -> None:
    calls = 0

    class Raising:
        def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
            nonlocal calls
            calls += 1
            raise error("unexpected keyword argument 'max_version'")

    with pytest.raises(error, match="unexpected keyword") as caught:
        from_dlpack(Raising())
    assert type(caught.value) is error
    assert calls == 1


@pytest.mark.parametrize("answer", [None, 5, b"dltensor", "dltensor", object(), (), np.zeros(2)])
def test_an_answer_that_is_no_capsule_is_refused(answer: Any) -> None:
    with refused("capsule_unusable", "capsule", found=f"of type {type(answer).__name__}"):
        from_dlpack(OldArray(answer))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (None, "one without a name"),
        (b"", 'one named ""'),
        (b"used_dltensor", 'one named "used_dltensor"'),
        (b"used_dltensor_versioned", 'one named "used_dltensor_versioned"'),
        (b"dltensor_versione", 'one named "dltensor_versione"'),
        (b"DLTENSOR", 'one named "DLTENSOR"'),
        (b"SyclQueueRef", 'one named "SyclQueueRef"'),
        (b"\xff\xfe", r'one named "\xff\xfe"'),
    ],
)
def test_a_capsule_of_another_name_is_refused(name: bytes | None, found: str) -> None:
    capsule = new_capsule(64, name)
    with refused("capsule_unusable", "capsule", expected="a fresh one", found=found):
        from_dlpack(OldArray(capsule))
    assert name_of(capsule) == name


def test_a_capsule_is_taken_once(versioned: ForeignTensor) -> None:
    array = OldArray(versioned.capsule())
    tensor = from_dlpack(array)
    found = 'one named "used_dltensor_versioned"'
    with refused("capsule_unusable", "capsule", found=found, remedy="ask the producer for a new"):
        from_dlpack(array)
    del tensor
    assert versioned.deletions == 1


def test_a_device_of_another_type_is_refused_before_the_export(versioned: ForeignTensor) -> None:
    array = ForeignArray(versioned, device=(2, 0))
    with refused("device_type_unsupported", "device.device_type", found="kDLCUDA (2)"):
        from_dlpack(array)
    assert array.asked == []


def test_a_numpy_array_is_refused_with_a_remedy() -> None:
    with refused(
        "device_type_unsupported",
        "device.device_type",
        expected="kDLOneAPI (14)",
        found="kDLCPU (1)",
        remedy="move the array to a SYCL device first",
    ):
        from_dlpack(np.zeros(3))


def test_the_capsule_decides_over_a_lying_device(versioned: ForeignTensor) -> None:
    assert from_dlpack(ForeignArray(versioned, device=(14, 7))).device == (14, 0)
    with refused("device_type_unsupported", "device.device_type", found="kDLCPU (1)"):
        from_dlpack(spoiled(versioned, device_type=1))


NONSENSE = [None, 5, "ab", (), (14,), (14, 0, 0), ("14", "0"), (14.0, 0), (2**40, 0), (14, 2**31)]


@pytest.mark.parametrize("device", NONSENSE)
def test_a_device_of_nonsense_is_refused(versioned: ForeignTensor, device: Any) -> None:
    array = ForeignArray(versioned, device=device)
    for asked in (None, (14, 0)):
        with refused(
            "device_type_unsupported",
            "__dlpack_device__",
            expected="a tuple (device_type, device_id) of int32_t",
            found=repr(device),
        ):
            from_dlpack(array, device=asked)
    assert array.asked == []


def test_an_endless_answer_to_the_device_question_is_refused(versioned: ForeignTensor) -> None:
    endless: Any = itertools.count(14)
    with refused("device_type_unsupported", "__dlpack_device__", found="count("):
        from_dlpack(ForeignArray(versioned, device=endless))


def test_an_error_of_the_device_question_reaches_the_caller() -> None:
    class Raising:
        def __dlpack__(self) -> Any:
            raise AssertionError

        def __dlpack_device__(self) -> Any:
            raise OSError("lost")

    with pytest.raises(OSError, match="lost"):
        from_dlpack(Raising())


# --- where __dlpack__ is, and what it takes


@pytest.mark.parametrize("keywords", [{}, {"device": (14, 0)}, {"copy": False}], ids=str)
def test_an_object_may_have_the_protocol_itself(memory: Any, keywords: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    holder = types.SimpleNamespace(
        __dlpack__=tensor.__dlpack__, __dlpack_device__=tensor.__dlpack_device__
    )
    proxy = weakref.proxy(tensor)
    for x in (holder, proxy):
        assert same_view(from_dlpack(x, **keywords), tensor)
        assert validate(x).data == tensor.data


def test_what_an_object_itself_has_is_not_remembered_of_its_type(versioned: ForeignTensor) -> None:
    class Plain:
        pass

    plain: Any = Plain()
    plain.__dlpack__ = versioned.capsule
    assert from_dlpack(plain).shape == (3, 4)
    with wrong_argument(TypeError, "x", "found an object of type Plain"):
        from_dlpack(Plain())


def test_a_host_array_may_have_the_protocol_itself() -> None:
    array = np.arange(3.0)
    holder = types.SimpleNamespace(
        __dlpack__=array.__dlpack__, __dlpack_device__=array.__dlpack_device__
    )
    assert from_dlpack(holder, device=(14, 0)).numpy().tolist() == [0.0, 1.0, 2.0]
    with refused("device_type_unsupported", "device.device_type", found="kDLCPU (1)"):
        from_dlpack(holder)


class HasDlpack(type):
    """A metaclass whose instances, which are classes, are arrays."""

    def __dlpack__(cls, **_: Any) -> Any:
        return cls.given()  # type: ignore[attr-defined]


class OfMetaclass(metaclass=HasDlpack):
    """Its instances are no arrays."""

    given: Any = None


def test_the_protocol_of_a_metaclass_is_that_of_the_class(
    versioned: ForeignTensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OfMetaclass, "given", versioned.capsule)
    for call in (from_dlpack, validate):
        with wrong_argument(TypeError, "x", "found an object of type OfMetaclass"):
            call(OfMetaclass())
    assert from_dlpack(OfMetaclass).shape == (3, 4)


@pytest.mark.parametrize("kind", [DLPackTensor, np.ndarray, OldArray])
def test_a_class_is_no_array_of_its_instances(kind: type) -> None:
    with wrong_argument(TypeError, "x", f"found an object of type {type(kind).__name__}"):
        from_dlpack(kind)


def test_a_property_may_give_a_function_that_takes_no_keywords(foreign: ForeignTensor) -> None:
    class Array:
        @property
        def __dlpack__(self) -> Any:
            return foreign.capsule  # takes no keyword

    assert from_dlpack(Array()).shape == (3, 4)
    assert from_dlpack(Array(), copy=True).shape == (3, 4)


def test_what_a_property_raises_reaches_the_caller() -> None:
    class Array:
        @property
        def __dlpack__(self) -> Any:
            raise OSError("lost")

    for call in (from_dlpack, validate):
        with pytest.raises(OSError, match="lost"):
            call(Array())


def test_a_decorator_takes_the_keywords_that_it_passes_on(foreign: ForeignTensor) -> None:
    def without_keywords(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def narrow(self: Any) -> Any:
            return function(self)

        return narrow

    class Array:
        @without_keywords
        def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
            assert max_version is None
            return foreign.capsule()

    assert from_dlpack(Array()).shape == (3, 4)
    assert from_dlpack(Array(), copy=True).shape == (3, 4)


class PyMethodDef(ctypes.Structure):
    """``PyMethodDef`` of Python's C API."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_METH_VARARGS, _METH_KEYWORDS, _METH_NOARGS = 1, 2, 4
_new_method = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.POINTER(PyMethodDef))(
    ("PyDescr_NewMethod", ctypes.pythonapi)
)


@pytest.mark.parametrize(
    "doc", [None, b"Return a capsule (a legacy one, no copy).", b"Return a capsule; see stream."]
)
def test_compiled_code_without_a_signature_may_take_no_keywords(
    foreign: ForeignTensor, doc: bytes | None
) -> None:
    class Array:
        pass

    @ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    def function(_self: Any, _nothing: int | None) -> Any:
        return foreign.capsule()

    address = ctypes.cast(function, ctypes.c_void_p).value
    definition = PyMethodDef(b"__dlpack__", address, _METH_NOARGS, doc)
    Array.__dlpack__ = _new_method(Array, definition)  # type: ignore[attr-defined]
    assert from_dlpack(Array()).shape == (3, 4)
    assert from_dlpack(Array(), copy=True).shape == (3, 4)
    assert validate(Array()).nbytes == 48


def compiled_array(foreign: ForeignTensor, doc: bytes | None) -> tuple[Any, list[set[str]]]:
    """Return an array of a type with a compiled ``__dlpack__``, and what its calls will pass."""
    calls: list[set[str]] = []

    @ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
    def function(_self: Any, _positional: Any, keywords: int | None) -> Any:
        calls.append(set(ctypes.cast(keywords, ctypes.py_object).value) if keywords else set())
        return foreign.capsule()

    address = ctypes.cast(function, ctypes.c_void_p).value
    definition = PyMethodDef(b"__dlpack__", address, _METH_VARARGS | _METH_KEYWORDS, doc)

    class Array:
        kept = (function, definition)

    Array.__dlpack__ = _new_method(Array, definition)  # type: ignore[attr-defined]
    return Array(), calls


COMPILED = {
    "nothing": (None, {"max_version"}),
    "prose": (b"Return a capsule (copy, stream).\nA dl_device may copy.", {"max_version"}),
    "prose behind its own name": (b"__dlpack__ takes stream and copy.", {"max_version"}),
    "a text signature": (
        b"__dlpack__($self, /, *, stream=None)\n--\n\nMay perform a copy.",
        {"stream"},
    ),
    "pybind11": (
        b"__dlpack__(self: m.A, *, stream: object = None) -> capsule\n\nMay perform a copy.\n",
        {"stream"},
    ),
    "Cython": (
        b"A.__dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None)\nCopies.",
        {"stream", "max_version", "copy"},
    ),
    "types and defaults": (
        b"__dlpack__(self, stream: F[[int, copy], None] = f(1, copy, ')') = {1, copy}, "
        b"max_version: tuple[int, int] | None = (1, 0)) -> ndarray[]",
        {"stream", "max_version"},
    ),
    "overloads": (
        b"__dlpack__(*args, **kwargs)\nOverloaded function.\n\n1. __dlpack__(self, copy: bool)",
        {"max_version"},
    ),
    "by position": (b"__dlpack__(self, copy, /, *, max_version=None)", {"max_version"}),
    "no keyword": (b"__dlpack__(self) -> capsule\n\nTakes no max_version.", set()),
    "a line that is cut off": (b"__dlpack__(self, stream, copy,\n max_version)", {"max_version"}),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_takes_the_keywords_of_its_signature_and_not_of_its_prose(
    foreign: ForeignTensor, queue: Any, name: str
) -> None:
    doc, expected = COMPILED[name]
    array, calls = compiled_array(foreign, doc)
    made = from_dlpack(array, device=queue, copy=True)
    assert calls == [expected]
    assert made.data != foreign.tensor.data  # whoever was not asked for the copy has made none
    assert values(made).tobytes() == values(from_dlpack(array)).tobytes()
    assert calls[1] == expected & {"max_version"}


def test_the_methods_of_libraries_take_the_keywords_of_their_signatures() -> None:
    every = frozenset({"stream", "max_version", "dl_device", "copy"})
    # of NumPy, in __text_signature__; of nanobind, in __nb_signature__
    assert _read_signature(np.ndarray.__dlpack__) == every
    assert _read_signature(DLPackTensor.__dlpack__) == every


class RaisingSignature:
    """Code whose signature cannot be read, as of a proxy that answers every name."""

    @property
    def __signature__(self) -> Any:
        raise RuntimeError


@pytest.mark.parametrize(
    ("doc", "overloads"),
    [
        (5, None),
        (b"__dlpack__(self, copy)", None),
        (None, 5),
        (None, ((5, None),)),
        (None, ((),)),
        (None, (5,)),
    ],
    ids=str,
)
def test_what_is_no_text_of_a_signature_says_nothing(
    foreign: ForeignTensor, queue: Any, doc: Any, overloads: Any
) -> None:
    calls = []

    class Method(RaisingSignature):
        __doc__ = doc
        __nb_signature__ = overloads

        def __call__(self, **keywords: Any) -> Any:
            calls.append(set(keywords))
            return foreign.capsule()

    made = from_dlpack(types.SimpleNamespace(__dlpack__=Method()), device=queue, copy=True)
    assert calls == [{"max_version"}]
    assert made.data != foreign.tensor.data


@pytest.mark.parametrize("method", [None, 5, ()])
def test_what_cannot_be_called_is_no_protocol(method: Any) -> None:
    class Array:
        __dlpack__ = method

    for x in (Array(), types.SimpleNamespace(__dlpack__=method)):
        for call in (from_dlpack, validate):
            with wrong_argument(TypeError, "x", f"found an object of type {type(x).__name__}"):
                call(x)


# --- what has none


def test_a_tensor_that_was_never_made_is_refused() -> None:
    raw = DLPackTensor.__new__(DLPackTensor)
    calls: list[Callable[[], Any]] = [
        lambda: from_dlpack(raw),
        lambda: from_dlpack(raw, device=(14, 0)),
        lambda: from_dlpack(raw, copy=True),
        lambda: validate(raw),
        lambda: to_dlpack_tensor(raw),
    ]
    for call in calls:
        with refused("tensor_released", "data", found="one that was not initialised"):
            call()


@pytest.mark.parametrize("x", [None, 5, "abc", object(), [1, 2], memoryview(b"ab")])
def test_an_object_without_the_protocol_is_a_type_error(x: Any) -> None:
    with wrong_argument(TypeError, "x", "expected an array with __dlpack__"):
        from_dlpack(x)


def test_memory_and_bare_capsules_are_type_errors(memory: Any, versioned: ForeignTensor) -> None:
    with wrong_argument(TypeError, "x", "use to_dlpack_tensor for memory"):
        from_dlpack(memory)
    capsule = versioned.capsule()
    with wrong_argument(TypeError, "x", "found an object of type PyCapsule"):
        from_dlpack(capsule)
    assert name_of(capsule) == VERSIONED


# --- keywords


def test_the_arrays_own_device_may_be_asked_for(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    assert same_view(from_dlpack(tensor, device=(14, 0)), tensor)
    assert same_view(from_dlpack(tensor, device=tensor.__dlpack_device__()), tensor)


def test_the_host_is_no_device_of_a_tensor(memory: Any) -> None:
    with refused("request_unsupported", "device", found="(1, 0)", remedy="numpy()"):
        from_dlpack(to_dlpack_tensor(memory), device=(1, 0))


@pytest.mark.parametrize(
    ("device", "kind"),
    [("cpu:9", ValueError), (0, TypeError), (1.5, TypeError), ([14, 0], TypeError)],
)
def test_what_names_no_device_is_a_wrong_argument(
    memory: Any, device: Any, kind: type[Exception]
) -> None:
    with wrong_argument(kind, "device"):
        from_dlpack(to_dlpack_tensor(memory), device=device)


@pytest.mark.parametrize(
    ("device", "remedy"),
    [
        (0, "pass (14, 0)"),
        (True, "pass (14, device_id)"),
        (False, "pass (14, device_id)"),
        (-1, "pass (14, device_id)"),
        (2**31, "pass (14, device_id)"),
        (1.5, "pass (14, device_id)"),
        ([14, 0], "pass (14, device_id)"),
        (b"cpu", "pass (14, device_id)"),
    ],
)
def test_what_is_no_device_is_told_the_pair_that_it_may_mean(
    memory: Any, device: Any, remedy: str
) -> None:
    with wrong_argument(TypeError, "device", f"found {device!r}; {remedy}"):
        from_dlpack(to_dlpack_tensor(memory), device=device)


def test_an_id_of_no_device_is_refused(memory: Any) -> None:
    with refused("device_id_out_of_range", "device.device_id", found="1"):
        from_dlpack(to_dlpack_tensor(memory), device=(14, 1))


def test_a_device_may_be_asked_of_an_array_that_names_none(foreign: ForeignTensor) -> None:
    assert from_dlpack(OldArray(foreign.capsule()), device=(14, 0)).device == (14, 0)


def test_a_copy_of_our_tensor_is_other_memory_of_its_kind(usm_type: str, queue: Any) -> None:
    owner = allocate(usm_type, 48, queue)
    tensor = to_dlpack_tensor(owner, shape=(3, 4), dtype="f4", strides=(1, 3))
    copied = from_dlpack(tensor, copy=True)
    assert copied.data != tensor.data
    assert (copied.usm_type, copied.strides) == (usm_type, (1, 3))
    assert values(copied).tobytes() == values(tensor).tobytes()
    assert from_dlpack(tensor, copy=False).data == tensor.data


def test_positional_and_unknown_arguments_are_type_errors(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    with pytest.raises(TypeError):
        from_dlpack(tensor, None)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        from_dlpack(tensor, stream=None)  # type: ignore[call-arg]


def test_legacy_and_versioned_capsules_have_their_names(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    assert name_of(tensor.__dlpack__()) == LEGACY
    assert name_of(tensor.__dlpack__(max_version=(1, 0))) == VERSIONED


@given(
    fields=st.fixed_dictionaries(
        {},
        optional={
            "device_type": st.integers(-(2**31), 2**31 - 1),
            "device_id": st.integers(-(2**31), 2**31 - 1),
            "ndim": st.integers(-(2**31), 2),
            "code": st.integers(0, 255),
            "bits": st.integers(0, 255),
            "lanes": st.integers(0, 65535),
            "byte_offset": st.integers(0, 2**64 - 1),
            "data": st.integers(0, 2**64 - 1),
            "strides": st.none(),
        },
    ),
    shape=st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2) | st.just((3, 4)),
    strides=st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2) | st.just((4, 1)),
)
def test_no_description_is_taken_that_leaves_the_memory(
    memory: Any, fields: dict[str, Any], shape: tuple[int, int], strides: tuple[int, int]
) -> None:
    foreign = ForeignTensor(address_of(memory), shape=shape, strides=strides)
    with contextlib.suppress(ConversionError):
        tensor = from_dlpack(spoiled(foreign, **fields))
        assert tensor.size == 0 or 0 <= tensor.data - address_of(memory) < 48
        assert foreign.deletions == 0
        del tensor
    assert foreign.deletions == 1
