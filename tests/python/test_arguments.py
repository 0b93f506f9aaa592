# SPDX-License-Identifier: Apache-2.0
"""The spellings of arguments: what each of them means, and which are wrong arguments.

The sentences of the refusals are in refusals.txt, and the places that keywords take in
test_places.py.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from capsules import FLOAT8, content_of, new_capsule
from memory_sources import Carrier, TypedArray
from place_cases import DeviceType
from refusals import wrong_argument
from usm_dlpack import empty, from_dlpack, root_device, to_dlpack_tensor, validate

INTERFACE = "__sycl_usm_array_interface__"
Call = Callable[[Any, Any], Any]  # of memory and a value


def shaped(memory: Any, shape: Any) -> Any:
    return to_dlpack_tensor(memory, shape=shape, dtype="f4")


def strided(memory: Any, strides: Any) -> Any:
    return to_dlpack_tensor(memory, shape=(3, 4), strides=strides, dtype="f4")


def shifted(memory: Any, byte_offset: Any) -> Any:
    return to_dlpack_tensor(memory, byte_offset=byte_offset, dtype="f4")


def of_dtype(memory: Any, dtype: Any) -> Any:
    return to_dlpack_tensor(memory, dtype=dtype)


def copied(memory: Any, copy: Any) -> Any:
    return from_dlpack(to_dlpack_tensor(memory), copy=copy)


def of_kind(memory: Any, usm_type: Any) -> Any:
    return from_dlpack(to_dlpack_tensor(memory), usm_type=usm_type)


def ordered(memory: Any, order: Any) -> Any:
    return from_dlpack(to_dlpack_tensor(memory, shape=(3, 4), strides=(1, 3)), order=order)


def placed(memory: Any, device: Any) -> Any:
    return from_dlpack(to_dlpack_tensor(memory), device=device)


def requiring(keyword: str) -> Call:
    return lambda memory, value: validate(shaped(memory, (3, 4)), **{keyword: value})


def with_field(field: str) -> Call:
    return lambda memory, value: to_dlpack_tensor(TypedArray(memory, **{field: value}))


# A function, an attribute of its result, and for each value of it the spellings that mean it.
MEANINGS: list[tuple[Call, str, dict[Any, list[Any]]]] = [
    (
        shaped,
        "shape",
        {
            (12,): [12, np.int64(12), [12], (12,), np.array([12]), -1, None],
            (3, 4): [(3, 4), [3, 4], (3, -1), (np.int8(-1), 4)],
            (2, 2, 1, 3): [(-1, 2, 1, 3)],
            (): [(), []],
        },
    ),
    (strided, "strides", {(1, 3): [(1, 3), [1, 3], np.array([1, 3])], (4, 1): [None]}),
    (shifted, "shape", {(12,): [0], (10,): [8, np.int8(8)]}),
    (lambda memory, dtype: empty(3, dtype), "nbytes", {2: ["int4", (0, 4, 1)], 48: ["float32x4"]}),
    (
        requiring("usm_types"),
        "usm_type",
        {"device": ["device", ("host", "device"), ["device"], {"device"}]},
    ),
    (
        requiring("backends"),
        "device_id",
        {0: [None, ("level_zero", "opencl", "cuda"), ["opencl", "level_zero", "cuda", "hip"]]},
    ),
    (requiring("ndim"), "nbytes", {48: [2, np.int8(2), None]}),
    (requiring("dtype"), "nbytes", {48: ["float32", "<f4", np.float32, (2, 32, 1), None]}),
    (requiring("readonly"), "readonly", {False: [False, True, np.False_]}),
    (requiring("overlapping"), "overlapping", {False: [False, True, np.True_]}),
]


@pytest.mark.parametrize(
    ("call", "attribute", "meaning", "value"),
    [
        (call, attribute, meaning, value)
        for call, attribute, meanings in MEANINGS
        for meaning, values in meanings.items()
        for value in values
    ],
)
def test_a_spelling_means(call, attribute, meaning, value, memory):
    assert getattr(call(memory, value), attribute) == meaning


def test_an_extent_of_minus_one_counts_the_elements_of_the_object(memory):
    three = to_dlpack_tensor(memory, shape=3, dtype="int4")  # in two bytes, which hold four
    assert to_dlpack_tensor(three, shape=(1, -1)).shape == (1, 3)
    none = to_dlpack_tensor(memory, shape=(0, 5))
    assert to_dlpack_tensor(none, shape=(3, -1)).shape == (3, 0)
    huge = to_dlpack_tensor(memory, shape=(2**62, 2**62, 0), strides=(0, 0, 0))
    assert to_dlpack_tensor(huge, shape=(-1, 2**62)).shape == (0, 2**62)
    assert to_dlpack_tensor(memory, shape=(-1, 3), dtype="u2").shape == (8, 3)
    assert to_dlpack_tensor(memory, shape=-1, dtype="int4").shape == (96,)
    assert to_dlpack_tensor(memory, shape=(-1, 2), dtype="f4", byte_offset=8).shape == (5, 2)


# --- dtypes: what is passed, (code, bits, lanes), and what the tensor shows

KINDS = [
    ("int", 0, (1, 4, 64, 128)),
    ("uint", 1, (1, 8, 32)),
    ("float", 2, (16, 64, 128)),
    ("complex", 5, (32, 64, 128, 192)),
]
DTYPES: list[tuple[Any, tuple[int, int, int], Any]] = [
    (bool, (6, 8, 1), np.dtype(bool)),
    (int, (0, 64, 1), np.dtype("int64")),
    (np.float16, (2, 16, 1), np.dtype("float16")),
    (np.dtype("<i4"), (0, 32, 1), np.dtype("int32")),
    (ml_dtypes.bfloat16, (4, 16, 1), np.dtype(ml_dtypes.bfloat16)),
    *((name, (code, 8, 1), np.dtype(getattr(ml_dtypes, name))) for name, code in FLOAT8.items()),
    ((2, 32, 4), (2, 32, 4), "float32x4"),
    ((3, 64, 1), (3, 64, 1), "code3bits64"),
    ((np.uint8(2), np.uint8(32), np.uint16(1)), (2, 32, 1), np.dtype("float32")),
    *(
        (f"{kind}{bits}{lanes}", (code, bits, int(lanes[1:] or 1)), None)
        for kind, code, widths in KINDS
        for bits in widths
        for lanes in ("", "x2", "x16")
    ),
]


@pytest.mark.parametrize(("given_as", "dlpack", "seen"), DTYPES)
def test_a_dtype_reaches_the_capsule_and_comes_back(memory, given_as, dlpack, seen):
    tensor = to_dlpack_tensor(memory, shape=0, dtype=given_as)
    if seen is None:  # a name means the same, whatever NumPy knows
        assert str(tensor.dtype) == given_as
    else:
        assert (tensor.dtype, type(tensor.dtype)) == (seen, type(seen))
    inside = content_of(tensor.__dlpack__()).dl_tensor
    assert (inside.code, inside.bits, inside.lanes) == dlpack


def test_a_type_of_ml_dtypes_means_a_byte_for_each_element(memory):
    padded = to_dlpack_tensor(memory, dtype=ml_dtypes.int4, shape=8)
    packed = to_dlpack_tensor(memory, dtype="int4", shape=8)
    for dtype in ("int4", (0, 4, 1)):  # of either
        assert validate(packed, dtype=dtype).nbytes == 4
        assert validate(padded, dtype=dtype).nbytes == 8
    for dtype in (ml_dtypes.int4, np.dtype(ml_dtypes.int4)):
        assert validate(padded, dtype=dtype).nbytes == 8
        assert empty(3, dtype).nbytes == 3


# --- wrong arguments


class Shown:
    """An object whose text ends before its end, for C."""

    def __repr__(self) -> str:
        return "a\0b"


NO_PAIRS = [(14,), (14, 0, 0), (), ("14", 0), (14.0, 0), (None, 0), (2**31, 0)]
NO_PAIRS += [(DeviceType.NONE, 0)] + [(14, x) for x in (2**31, -(2**31) - 1, 0.0, "0", None, False)]
BIG_ENDIAN = np.dtype(ml_dtypes.bfloat16).newbyteorder(">")
NO_CAPSULE = Carrier(SimpleNamespace(_get_capsule=lambda: "text"))
NO_DTYPES = [
    *(">f4", BIG_ENDIAN, "O", "f4,f4", "(2,2)f4", {"names": ["x"]}, np.longdouble),
    *(ml_dtypes.bcomplex32, "bf16", 5, (2, 32), (256, 8, 1), (2, 256, 1), (2.0, 32, 1)),
    *("float4", "float0", "complex256", "x4", "float32x0", "float32x1", "float32x04", "<"),
    *("int8x65536", "code3", "code3bits064", "float032", "int8 ", "float32x", "i4,,"),
]
# A function, the field that its refusal names, the class, and values that it does not take.
WRONG: list[tuple[Call, str, type[Exception], list[Any]]] = [
    (shaped, "shape", TypeError, [b"3", bytearray(1), frozenset(), Shown(), True, (True, 2), "3"]),
    (shaped, "shape", ValueError, [(-1, -1), (5, -1), (0, -1), (2**62, 2**62, -1)]),
    (shaped, "shape[0]", ValueError, [2**63, (-2, -1)]),
    (lambda memory, shape: empty(shape), "shape", TypeError, ["3", None, True]),
    (lambda memory, shape: empty(shape), "shape[1]", ValueError, [(2, -1)]),
    (strided, "strides", TypeError, [(0.5, 1), (True, 1), 1.0]),
    (strided, "strides", ValueError, [1, (1, 1, 1)]),
    (strided, "strides[1]", ValueError, [(1, -(2**63) - 1)]),
    (shifted, "byte_offset", TypeError, [1.0, True, "1"]),
    (shifted, "byte_offset", ValueError, [2, 64, 2**70]),
    (of_dtype, "dtype", TypeError, NO_DTYPES),
    (lambda memory, dtype: empty(3, dtype), "dtype", TypeError, [None, object, 4]),
    (copied, "copy", TypeError, [0, 1, "yes", np.int64(1), ()]),
    (of_kind, "usm_type", ValueError, ["", "Device", "unknown"]),
    (of_kind, "usm_type", TypeError, [1, b"host"]),
    (ordered, "order", ValueError, ["F", "c"]),
    (ordered, "order", TypeError, [b"C", 1, np.array(["C", "C"])]),
    (placed, "device", ValueError, [*NO_PAIRS, (2, 63), (10, 0), "cpu:99"]),
    (
        requiring("usm_types"),
        "usm_types",
        ValueError,
        ["Device", "", "\ud800", "host\0", ["unknown"]],
    ),
    (requiring("usm_types"), "usm_types", TypeError, [None, 5, [b"host"]]),
    (requiring("backends"), "backends", ValueError, [["opencl", "level_zero:gpu"]]),
    (requiring("backends"), "backends", TypeError, [[None]]),
    (requiring("ndim"), "ndim", TypeError, ["2"]),
    (requiring("dtype"), "dtype", TypeError, ["i4,,"]),
    (requiring("readonly"), "readonly", TypeError, ["no"]),
    (requiring("overlapping"), "overlapping", TypeError, ["no"]),
    (
        lambda memory, obj: to_dlpack_tensor(obj),
        "obj",
        TypeError,
        [None, TypedArray, SimpleNamespace(**{INTERFACE: 5}), np.zeros(3), [1.0], 2**40],
    ),
    (
        with_field("data"),
        INTERFACE,
        ValueError,
        [None, (1.5, False), (2**64, False), (8, np.ones(2))],
    ),
    (with_field("shape"), "shape[0]", ValueError, [(-2, 2), (2**70,)]),
    (with_field("strides"), INTERFACE, ValueError, ["ab", (1, 2)]),
    (with_field("strides"), "strides[0]", ValueError, [(2**70,)]),
    (with_field("typestr"), INTERFACE, ValueError, [">f4", "<i3"]),
    (with_field("offset"), INTERFACE, ValueError, [1.5, -(2**62), 2**70]),
    (with_field("version"), INTERFACE, ValueError, [2, np.ones(2, int)]),
    (with_field("syclobj"), "syclobj", TypeError, [b"cpu", NO_CAPSULE, new_capsule(64, b"x")]),
]


@pytest.mark.parametrize(
    ("call", "field", "kind", "value"),
    [(call, field, kind, value) for call, field, kind, values in WRONG for value in values],
)
def test_a_wrong_argument_is_refused_by_its_name(call, field, kind, value, memory):
    with wrong_argument(kind, field):
        call(memory, value)


@pytest.mark.parametrize("key", ["data", "shape", "typestr", "syclobj", "version"])
def test_an_interface_without_a_field_is_refused_by_name(key, memory):
    source = TypedArray(memory)
    del source.interface[key]
    with wrong_argument(ValueError, INTERFACE, f"found no '{key}'; "):
        to_dlpack_tensor(source)


def test_arguments_are_read_before_the_array(memory):
    for keywords in ({"copy": 1}, {"usm_type": "usm"}, {"order": "F"}, {"device": 0}):
        with pytest.raises((TypeError, ValueError), match=f"^{next(iter(keywords))}: "):
            from_dlpack(object(), **keywords)


@pytest.mark.parametrize(
    "call",
    [
        lambda tensor, n: to_dlpack_tensor(tensor, shape=n),
        lambda tensor, n: to_dlpack_tensor(tensor, shape=[n]),
        lambda tensor, n: to_dlpack_tensor(tensor, byte_offset=n),
        lambda tensor, n: from_dlpack(tensor, device=(14, n)),
        lambda tensor, n: from_dlpack(tensor, device=(n, 0)),
        lambda tensor, n: validate(tensor, ndim=n),
        lambda tensor, n: root_device(n),
    ],
)
def test_an_error_of_an_integer_is_raised(call, tensor):
    class Index:
        def __index__(self) -> int:
            raise OSError("not today")

    with pytest.raises(OSError, match="not today"):
        call(tensor, Index())
