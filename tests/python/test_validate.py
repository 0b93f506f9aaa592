# SPDX-License-Identifier: Apache-2.0
"""validate: what is proved of arrays and capsules, and what a consumer may require."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import dpctl
import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
import usm_dlpack
from capsules import (
    IS_COPIED,
    READ_ONLY,
    ForeignArray,
    ForeignTensor,
    OldArray,
    consume,
    name_of,
    new_capsule,
)
from memory_sources import UNPOOLED, TypedArray, address_of, allocate
from proved_bounds import check_bounds
from refusals import refused, wrong_argument
from usm_dlpack import UsmAllocation, to_dlpack_tensor, validate


def test_everything_that_was_proved_is_said(usm_type: str, queue: Any) -> None:
    owner = allocate(usm_type, 64, queue)
    tensor = to_dlpack_tensor(owner, shape=(2, 3), strides=(-6, 2), dtype="f4", byte_offset=32)
    proof = validate(tensor)
    assert isinstance(proof, UsmAllocation)
    assert proof.data == address_of(owner) + 32
    assert proof.usm_type == usm_type
    assert proof.device_id == 0
    assert proof.sycl_device == queue.sycl_device
    assert proof.root_device == queue.sycl_device
    assert proof.sycl_context == queue.sycl_context
    assert isinstance(proof.sycl_device, dpctl.SyclDevice)
    assert isinstance(proof.root_device, dpctl.SyclDevice)
    assert isinstance(proof.sycl_context, dpctl.SyclContext)
    assert proof.readonly is False
    assert proof.nbytes == (6 + 4 + 1) * 4
    assert proof.overlapping is False
    check_bounds(proof, owner, first=8)
    assert proof.device_proof == ("none" if usm_type == "host" else "backend")


@pytest.mark.parametrize("legacy", [False, True])
def test_arrays_of_other_libraries_are_proved(memory: Any, legacy: bool) -> None:
    foreign = ForeignTensor(address_of(memory), legacy=legacy)
    array = ForeignArray(foreign)
    assert validate(array).base == address_of(memory)
    assert array.asked == [{"max_version": (1, 3)}]
    del array
    assert foreign.deletions == 1
    assert validate(tvm_ffi.from_dlpack(to_dlpack_tensor(memory))).base == address_of(memory)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_capsule_is_never_consumed(memory: Any, legacy: bool) -> None:
    foreign = ForeignTensor(address_of(memory), legacy=legacy)
    capsule = foreign.capsule()
    for _ in range(3):
        assert validate(capsule).data == address_of(memory)
        assert name_of(capsule) == foreign.name
    foreign.tensor.device_id = 9
    with refused("device_id_out_of_range", "device.device_id", found="9"):
        validate(capsule)
    assert name_of(capsule) == foreign.name
    assert foreign.deletions == 0
    del capsule
    gc.collect()  # the refusal above holds the frames that it came through
    assert foreign.deletions == 1


def test_a_capsule_that_is_not_fresh_is_refused(memory: Any) -> None:
    capsule = to_dlpack_tensor(memory).__dlpack__()
    consume(capsule)
    with refused("capsule_unusable", "capsule", found='one named "used_dltensor"'):
        validate(capsule)
    with refused("capsule_unusable", "capsule", found='one named "other"'):
        validate(new_capsule(64, b"other"))
    with refused("capsule_unusable", "capsule", found="one without a name"):
        validate(new_capsule(64, None))


def test_a_type_that_is_only_called_like_a_capsule_is_refused() -> None:
    impostor = type("PyCapsule", (), {})()
    with wrong_argument(TypeError, "x", "found an object of type PyCapsule"):
        validate(impostor)


@pytest.mark.parametrize("x", [None, 5, "abc", object(), [1, 2]])
def test_an_object_without_the_protocol_is_a_type_error(x: Any) -> None:
    with wrong_argument(TypeError, "x", "expected an array with __dlpack__"):
        validate(x)


def test_a_numpy_array_is_refused() -> None:
    with refused("device_type_unsupported", "device.device_type", found="kDLCPU (1)"):
        validate(np.zeros(3))


def test_the_read_only_flag_is_said_and_may_be_refused(memory: Any) -> None:
    tensor = to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))
    assert validate(tensor).readonly is True
    assert validate(tensor, readonly=True).readonly is True
    with refused("read_only", "flags", expected="writable", found="read-only memory"):
        validate(tensor, readonly=False)
    assert validate(to_dlpack_tensor(memory), readonly=False).readonly is False
    assert validate(to_dlpack_tensor(memory), readonly=True).readonly is False


@pytest.mark.parametrize(("flags", "readonly"), [(READ_ONLY, True), (IS_COPIED, False), (0, False)])
def test_flags_of_a_capsule_are_read(memory: Any, flags: int, readonly: bool) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.flags = flags
    assert validate(foreign.capsule()).readonly is readonly


@pytest.mark.parametrize(
    "accepted", [["device"], ("host", "device"), {"shared", "device"}, "device"]
)
def test_an_accepted_kind_is_taken(memory: Any, accepted: Any) -> None:
    assert validate(to_dlpack_tensor(memory), usm_types=accepted).usm_type == "device"


def test_each_kind_is_refused_unless_it_is_accepted(usm_type: str, queue: Any) -> None:
    tensor = to_dlpack_tensor(allocate(usm_type, 48, queue))
    others = [kind for kind in ("device", "shared", "host") if kind != usm_type]
    for accepted in ([], others, others[:1], others[1]):
        with refused("usm_type_not_accepted", "data", found=f"{usm_type} USM"):
            validate(tensor, usm_types=accepted)


def test_nothing_is_taken_where_nothing_is_accepted(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    with refused("usm_type_not_accepted", "data", expected="no USM"):
        validate(tensor, usm_types=())
    with refused("backend_not_accepted", "device.device_id", expected="a device of no backend"):
        validate(tensor, backends=())


def test_the_backend_may_be_required(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    here = tensor.sycl_device.backend.name
    (other,) = {"opencl", "level_zero"} - {here}
    for accepted in (here, [here], ("level_zero", "opencl"), None):
        assert validate(tensor, backends=accepted).device_id == 0
    for wrong in (other, ["cuda", "hip", "native_cpu"], []):
        with refused(
            "backend_not_accepted", "device.device_id", found=f"device 0 of the backend {here}"
        ):
            validate(tensor, backends=wrong)


@pytest.mark.parametrize("name", ["Device", "gpu", "", "unknown", "device ", "usm"])
def test_a_kind_that_does_not_exist_is_a_value_error(memory: Any, name: str) -> None:
    tensor = to_dlpack_tensor(memory)
    for names in (name, ["device", name]):
        with wrong_argument(ValueError, "usm_types", "expected host or device or shared"):
            validate(tensor, usm_types=names)


@pytest.mark.parametrize("name", ["Level_Zero", "level_zero:gpu", "all", "ext_oneapi_cuda", ""])
def test_a_backend_that_does_not_exist_is_a_value_error(memory: Any, name: str) -> None:
    with wrong_argument(ValueError, "backends", "expected opencl or level_zero"):
        validate(to_dlpack_tensor(memory), backends=[name])


@pytest.mark.parametrize("names", [5, [5], [None], ["device", b"host"], object(), 1.5])
def test_names_that_are_no_strings_are_a_type_error(memory: Any, names: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    with wrong_argument(TypeError, "usm_types", "expected a sequence of str"):
        validate(tensor, usm_types=names)
    with wrong_argument(TypeError, "backends", "expected a sequence of str"):
        validate(tensor, backends=names)


def test_no_usm_types_at_all_is_a_type_error(memory: Any) -> None:
    with wrong_argument(TypeError, "usm_types"):
        validate(to_dlpack_tensor(memory), usm_types=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "strides", "overlapping"),
    [
        ((3, 4), (4, 1), False),
        ((3, 4), (1, 3), False),
        ((3, 4), (-4, -1), False),
        ((2, 3), (6, 2), False),
        ((3, 4), (0, 1), True),
        ((3, 4), (1, 1), True),
        ((1, 4), (0, 1), False),
        ((0, 4), (0, 0), False),
        ((), (), False),
    ],
)
def test_elements_that_may_share_bytes_are_said(
    queue: Any, shape: Any, strides: Any, overlapping: bool
) -> None:
    memory = allocate("device", 128, queue)
    tensor = to_dlpack_tensor(memory, shape=shape, strides=strides, dtype="f4", byte_offset=64)
    assert validate(tensor).overlapping is overlapping


def test_what_is_required_is_looked_at_after_what_is_broken(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), shape=(-1, 4))
    with refused("shape_negative", "shape[0]"):
        validate(foreign.capsule(), ndim=1, dtype="int8", device=(14, 9))
    whole = ForeignTensor(address_of(memory)).capsule()
    with refused("dtype_mismatch", "dtype"):
        validate(whole, usm_types="host", ndim=1, dtype="int8", device=(14, 9))
    with refused("rank_mismatch", "ndim"):
        validate(whole, usm_types="host", ndim=1, device=(14, 9))
    with refused("device_not_accepted", "device.device_id"):
        validate(whole, usm_types="host", device=(14, 9))


def test_an_empty_array_has_nothing_to_prove(memory: Any) -> None:
    proof = validate(to_dlpack_tensor(memory, shape=(0,), byte_offset=4))
    assert (proof.bounds, proof.nbytes, proof.base, proof.size) == ("none", 0, 0, 0)
    assert (proof.data, proof.usm_type) == (address_of(memory) + 4, "device")
    foreign = ForeignTensor(0, shape=(0, 4))
    nowhere = validate(foreign.capsule())
    assert (nowhere.data, nowhere.usm_type, nowhere.device_id) == (0, "unknown", 0)
    assert nowhere.device_proof == "none"


def test_freed_memory_is_not_remembered(queue: Any) -> None:
    owner = allocate("device", UNPOOLED, queue)
    foreign = ForeignTensor(address_of(owner))
    holder = OldArray(foreign.capsule())
    assert validate(holder.answer).base == address_of(owner)
    del owner
    with refused("pointer_unknown", "data", binding=True):
        validate(holder.answer)


def test_a_proof_keeps_nothing_alive(memory: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    tensor = to_dlpack_tensor(owner)
    proof = validate(tensor)
    del owner, tensor
    gc.collect()
    assert gone() is None
    assert proof.data == address_of(memory)


def test_proofs_are_made_by_validate_only_and_do_not_change(memory: Any) -> None:
    with pytest.raises(TypeError):
        UsmAllocation()
    with pytest.raises(TypeError):
        type("Derived", (UsmAllocation,), {})
    proof = validate(to_dlpack_tensor(memory))
    names = [name for name in dir(UsmAllocation) if not name.startswith("_")]
    assert len(names) >= 13
    for name in names:
        with pytest.raises(AttributeError):
            setattr(proof, name, getattr(proof, name))


def test_positional_and_unknown_arguments_are_type_errors(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    with pytest.raises(TypeError):
        validate(tensor, "device")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        usm_dlpack.validate(x=tensor)  # type: ignore[call-arg]


def test_what_is_asked_for_and_there_is_taken(memory: Any, queue: Any) -> None:
    tensor = to_dlpack_tensor(memory, shape=(2, 3), dtype="f4")
    device = queue.sycl_device
    for named in (device, (14, 0), device.get_filter_string()):
        assert validate(
            tensor, dtype=np.float32, ndim=2, readonly=False, overlapping=False, device=named
        )
    lanes = to_dlpack_tensor(memory, shape=(2,), dtype=(2, 32, 4))
    assert validate(lanes, dtype=(2, 32, 4), readonly=True, overlapping=True)


@pytest.mark.parametrize(
    ("wanted", "code", "field", "expected", "found"),
    [
        ({"dtype": "f8"}, "dtype_mismatch", "dtype", "float64", "float32"),
        ({"dtype": (2, 32, 2)}, "dtype_mismatch", "dtype", "lanes 2", "lanes 1"),
        ({"dtype": "bfloat16"}, "dtype_mismatch", "dtype", "bfloat16", "float32"),
        ({"ndim": 1}, "rank_mismatch", "ndim", "1 dimensions", "2"),
        ({"device": (14, 1)}, "device_not_accepted", "device.device_id", "1", "0"),
        ({"overlapping": False}, "overlapping", "strides", "do not overlap", "do not prove"),
    ],
)
def test_what_is_asked_for_and_not_there_is_refused(
    memory: Any, wanted: dict[str, Any], code: str, field: str, expected: str, found: str
) -> None:
    tensor = to_dlpack_tensor(memory, shape=(2, 3), dtype="f4", strides=(0, 1))
    capsule = tensor.__dlpack__(max_version=(1, 3))
    for array in (tensor, capsule):
        with refused(code, field, expected=expected, found=found):
            validate(array, **wanted)
    assert name_of(capsule) == b"dltensor_versioned"


@pytest.mark.parametrize(
    ("wanted", "kind", "field"),
    [
        ({"ndim": "2"}, TypeError, "ndim"),
        ({"ndim": 2**31}, ValueError, "ndim"),
        ({"ndim": 10**5000}, ValueError, "ndim"),
        ({"dtype": "nonsense"}, TypeError, "dtype"),
        ({"dtype": "i4,,"}, TypeError, "dtype"),
        ({"device": (1, 0)}, ValueError, "device"),
        ({"device": (14,)}, ValueError, "device"),
        ({"device": (14, 2**40)}, ValueError, "device"),
        ({"device": "gpu:9"}, ValueError, "device"),
        ({"device": 0}, TypeError, "device"),
    ],
)
def test_a_requirement_that_makes_no_sense_is_a_wrong_argument(
    memory: Any, wanted: dict[str, Any], kind: type[Exception], field: str
) -> None:
    with wrong_argument(kind, field):
        validate(to_dlpack_tensor(memory), **wanted)


def test_a_type_of_ml_dtypes_means_a_byte_for_each_element(memory: Any) -> None:
    packed = to_dlpack_tensor(memory, dtype="int4", shape=(8,))
    padded = to_dlpack_tensor(memory, dtype=ml_dtypes.int4, shape=(8,))
    validate(packed, dtype="int4")
    validate(packed, dtype=(0, 4, 1))
    for dtype in (ml_dtypes.int4, "int4", (0, 4, 1), padded.dtype):
        validate(padded, dtype=dtype)
    with refused("dtype_mismatch", "dtype"):
        validate(packed, dtype=ml_dtypes.int4)
    with refused("dtype_mismatch", "dtype"):
        validate(padded, dtype=ml_dtypes.uint4)


@pytest.mark.parametrize("keyword", ["readonly", "overlapping"])
@pytest.mark.parametrize("value", [0, 1, "no", np.False_, ()])
def test_a_flag_that_is_no_bool_is_a_type_error(memory: Any, keyword: str, value: Any) -> None:
    with wrong_argument(TypeError, keyword):
        validate(to_dlpack_tensor(memory), **{keyword: value})


def test_repr_says_what_was_proved(unpooled: Any) -> None:
    proof = validate(to_dlpack_tensor(unpooled, shape=12, dtype="f4"))
    assert repr(proof) == (
        "UsmAllocation(usm_type='shared', device_id=0, nbytes=48, size=48, bounds='allocation', "
        "device_proof='backend')"
    )
