# SPDX-License-Identifier: Apache-2.0
"""to_dlpack_tensor: what USM becomes a tensor, what the tensor says, and what is refused."""

import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import partial
from types import SimpleNamespace
from typing import Any

import dpctl
import ml_dtypes
import numpy as np
import pytest
import usm_dlpack
from capsules import (
    FLOAT8,
    IS_SUBBYTE_TYPE_PADDED,
    ForeignArray,
    ForeignTensor,
    content_of,
    new_capsule,
)
from dpctl import memory as dpctl_memory
from memory_sources import Carrier, TypedArray, address_of, allocate, kept
from refusals import refused, stopped, wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, root_device, to_dlpack_tensor, validate

# --- what a tensor says


def test_a_tensor_says_what_was_asked_for(usm_type, queue):
    owner = allocate(usm_type, 48, queue)
    tensor = to_dlpack_tensor(owner, shape=(3, 4), dtype=np.float32)
    assert (tensor.shape, tensor.strides, tensor.ndim) == ((3, 4), (4, 1), 2)
    assert (tensor.size, tensor.nbytes, tensor.dtype) == (12, 48, np.dtype("float32"))
    assert (tensor.readonly, tensor.usm_type, tensor.data) == (False, usm_type, address_of(owner))
    assert tensor.device == tensor.__dlpack_device__() == (14, 0)
    assert (tensor.sycl_device, tensor.sycl_context) == (queue.sycl_device, queue.sycl_context)
    plain = to_dlpack_tensor(owner)
    assert (plain.shape, plain.strides, plain.dtype) == ((48,), (1,), np.dtype("uint8"))
    again = dpctl_memory.as_usm_memory(to_dlpack_tensor(owner, shape=6, byte_offset=8))
    assert again.get_usm_type() == usm_type
    assert bytes(again.copy_to_host()) == bytes(range(8, 14))


def test_repr_names_what_matters(memory):
    tensor = to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
    name = tensor.sycl_device.name.strip()
    assert repr(tensor) == (
        "DLPackTensor(shape=(3, 4), strides=(4, 1), dtype=float32, usm_type='device', "
        f"device=(14, 0), name={name!r}, nbytes=48, byte_extent=48)"
    )
    read_only = to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))
    assert repr(read_only).endswith("byte_extent=48, read-only)")
    assert repr(validate(read_only)).endswith(", read-only)")


def test_array_interface_says_what_the_tensor_says(memory, queue):
    tensor = to_dlpack_tensor(memory, shape=(2, 3), strides=(-3, 2), dtype="i4", byte_offset=12)
    interface = tensor.__sycl_usm_array_interface__
    assert interface.pop("syclobj") == queue
    assert interface == {
        "data": (address_of(memory) + 12, False),
        "shape": (2, 3),
        "strides": (-3, 2),
        "typestr": "<i4",
        "offset": 0,
        "version": 1,
    }


@pytest.mark.parametrize("arguments", [(), (1,)], ids=str)
def test_the_class_makes_no_tensors_by_itself(arguments):
    with wrong_argument(TypeError, "DLPackTensor", "use to_dlpack_tensor, from_dlpack or empty"):
        DLPackTensor(*arguments)


def test_the_class_has_no_subclasses():
    with pytest.raises(TypeError):
        type("Derived", (DLPackTensor,), {})


@pytest.mark.parametrize("act", [pickle.dumps, copy.copy, copy.deepcopy])
def test_no_other_process_gets_a_tensor(memory, act):
    with wrong_argument(TypeError, "DLPackTensor", "memory that belongs to this process"):
        act(to_dlpack_tensor(memory))


@pytest.mark.parametrize("act", [np.asarray, np.sum, lambda t: t == np.zeros(3)])
def test_numpy_gets_no_values_without_being_asked(tensor, act):
    with wrong_argument(TypeError, "DLPackTensor", "found one that needs a NumPy array; copy"):
        act(tensor)


def test_a_tensor_is_no_sequence(tensor):
    assert not isinstance(tensor, Iterable | Sized | Sequence)
    with pytest.raises(TypeError, match="not iterable"):
        list(tensor)


def test_a_dtype_without_a_type_string_has_no_array_interface(memory):
    tensor = to_dlpack_tensor(memory, dtype="bfloat16")
    with wrong_argument(AttributeError, INTERFACE, "found bfloat16"):
        assert tensor.__sycl_usm_array_interface__


# --- shapes, strides and offsets within 48 bytes


@pytest.mark.parametrize("shape", [12, np.int64(12), [12], np.array([12])], ids=repr)
def test_an_extent_may_be_an_int_or_any_sequence(memory, shape):
    tensor = to_dlpack_tensor(memory, shape=shape, dtype="f4")
    assert (tensor.shape, tensor.strides) == ((12,), (1,))


@pytest.mark.parametrize(
    ("shape", "expected", "keywords"),
    [
        (-1, (12,), {}),
        ((3, -1), (3, 4), {}),
        ((-1, 2, 1, 3), (2, 2, 1, 3), {}),
        ((-1, 2), (5, 2), {"byte_offset": 8}),
        ((-1, 3), (8, 3), {"dtype": "u2"}),
        (-1, (96,), {"dtype": "int4"}),
    ],
)
def test_an_extent_of_minus_one_is_computed(memory, shape, expected, keywords):
    tensor = to_dlpack_tensor(memory, shape=shape, **({"dtype": "f4"} | keywords))
    assert tensor.shape == expected


def test_an_extent_of_minus_one_counts_the_elements_of_the_object(memory):
    three = to_dlpack_tensor(memory, shape=3, dtype="int4")  # in two bytes, which hold four
    assert to_dlpack_tensor(three, shape=(1, -1)).shape == (1, 3)
    none = to_dlpack_tensor(memory, shape=(0, 5))
    assert to_dlpack_tensor(none, shape=(3, -1)).shape == (3, 0)
    huge = to_dlpack_tensor(memory, shape=(2**62, 2**62, 0), strides=(0, 0, 0))
    assert to_dlpack_tensor(huge, shape=(-1, 2**62)).shape == (0, 2**62)


def test_extents_and_strides_may_be_lists(memory):
    fortran = to_dlpack_tensor(memory, shape=[3, 4], strides=[1, 3], dtype="f4")
    assert (fortran.shape, fortran.strides) == ((3, 4), (1, 3))
    # A complex number is aligned as its parts.
    parts = to_dlpack_tensor(memory, shape=5, dtype="c8", byte_offset=4)
    assert parts.data == address_of(memory) + 4


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
    ids=["shape", "a list", "byte_offset", "device_id", "device_type", "ndim", "root_device"],
)  # fmt: skip
def test_an_error_of_an_integer_is_raised(call, tensor):
    class Index:
        def __index__(self) -> int:
            raise OSError("not today")

    with pytest.raises(OSError, match="not today"):
        call(tensor, Index())


def test_an_empty_view_keeps_shape_and_pointer(unpooled):
    shape = (2**62, 0, 2**62)
    at_the_end = to_dlpack_tensor(unpooled, shape=shape, dtype="f4", byte_offset=48)
    assert (at_the_end.shape, at_the_end.strides) == (shape, (2**62, 2**62, 1))
    assert at_the_end.data == address_of(unpooled) + 48
    nowhere = to_dlpack_tensor(TypedArray(unpooled, data=(0, False), shape=(3, 0)))
    assert (nowhere.data, nowhere.shape, nowhere.usm_type) == (0, (3, 0), "unknown")


def test_size_and_nbytes_saturate_for_a_huge_broadcast(memory):
    tensor = to_dlpack_tensor(memory, shape=(2**62, 2**62), strides=(0, 0))
    assert tensor.size == 2**63 - 1
    assert tensor.nbytes == 2**63 - 1
    assert to_dlpack_tensor(memory, shape=(2**62, 2**62, 0), strides=(0, 0, 0)).size == 0


class Shown:
    """An object whose text ends before its end, for C."""

    def __repr__(self) -> str:
        return "a\0b"


FIRST, VIEW = ("out_of_bounds", "byte_offset"), ("out_of_bounds", "shape")
SHAPE, STRIDES = (ValueError, "shape"), (ValueError, "strides")
REFUSALS: list[tuple[Any, str, str, dict[str, Any]]] = [
    (*FIRST, "one at byte -1", {"shape": 0, "byte_offset": -1}),
    (*FIRST, f"one at byte {2**54}", {"shape": 1, "byte_offset": 2**54}),
    (*VIEW, "52 bytes from byte 0", {"shape": 13}),
    (*VIEW, "49 bytes from byte 0", {"shape": 97, "dtype": (17, 4, 1)}),
    ("out_of_range", "strides", "beyond", {"shape": 2, "strides": (-(2**63),)}),
    (ValueError, "shape[0]", "", {"shape": 2**63}),
    (ValueError, "shape[1]", "-2", {"shape": (-1, -2)}),
    (*SHAPE, "since strides are given, found (-1, 2);", {"shape": (-1, 2), "strides": (2, 1)}),
    (*SHAPE, "(-1, -1)", {"shape": (-1, -1)}),
    (*SHAPE, "(5, -1)", {"shape": (5, -1)}),
    (*SHAPE, "(0, -1)", {"shape": (0, -1)}),
    (*SHAPE, f"({2**62}, {2**62}, -1)", {"shape": (2**62, 2**62, -1)}),
    (ValueError, "strides[0]", "", {"shape": 1, "strides": (2**63,)}),
    (ValueError, "strides[1]", "", {"shape": (1, 1), "strides": (1, -(2**63) - 1)}),
    (*STRIDES, "", {"strides": (1, 1), "dtype": None}),
    (*STRIDES, "pass shape", {"strides": (1,)}),
    (*STRIDES, "pass shape", {"strides": (1,), "byte_offset": 4, "dtype": None}),
    (ValueError, "byte_offset", "float32 (32 bits) from byte 2 on, found 46", {"byte_offset": 2}),
    (ValueError, "byte_offset", "found 41 bytes;", {"byte_offset": 7, "shape": (2, -1)}),
    (ValueError, "dtype", "float32x5 (160 bits) from byte 0 on", {"dtype": "float32x5"}),
    (ValueError, "byte_offset", "expected at most 48,", {"byte_offset": 64}),
    *((TypeError, "shape", "", {"shape": shape}) for shape in (b"3", bytearray(1), frozenset())),
    (TypeError, "shape", "an object of type Shown;", {"shape": Shown()}),
    (TypeError, "strides", "", {"shape": 1, "strides": (0.5,)}),
    (TypeError, "byte_offset", "", {"byte_offset": 1.0}),
    *((TypeError, "shape", "found", {"shape": shape}) for shape in (True, (True, 2))),
    (TypeError, "strides", "(True,)", {"shape": 2, "strides": (True,)}),
    (TypeError, "byte_offset", "True", {"byte_offset": True}),
]


@pytest.mark.parametrize(("rule", "field", "found", "keywords"), REFUSALS)
def test_keywords_of_a_view_that_cannot_be_are_refused(memory, rule, field, found, keywords):
    with stopped(rule, field, found):
        to_dlpack_tensor(memory, **({"dtype": "float32"} | keywords))


def test_a_view_that_begins_below_address_0_is_refused(memory):
    below = -address_of(memory) - 4  # may be beyond int64
    with stopped(ValueError, "byte_offset", f"found {below};"):
        to_dlpack_tensor(memory, dtype="float32", shape=1, byte_offset=below)


def test_an_interface_whose_offset_leads_to_another_allocation_is_refused(queue):
    # On Level Zero only what SYCL does not pool is known to be an allocation of its own.
    owner, other = allocate("shared", 48, queue), allocate("shared", 48, queue)
    distance = address_of(other) - address_of(owner)
    source = TypedArray(owner, shape=(4,), typestr="|u1", offset=distance)
    with refused(*FIRST, expected="the object's address", found=f"{distance} from"):
        to_dlpack_tensor(source)


# --- the bytes of an object


def part(memory: Any, begin: int, end: int, **said: Any) -> TypedArray:
    """Return an array over some bytes of a memory; a keyword names what it is a part of."""
    array = TypedArray(memory, shape=(end - begin,), typestr="|u1", offset=begin)
    vars(array).update(said)
    return array


# A source, and the first and last byte that a view of it may have, counted from the source's first.
BYTES_OF: dict[str, tuple[Callable[[Any], Any], int, int]] = {
    "memory": (lambda memory: memory, 0, 47),
    "a part": (lambda memory: part(memory, 8, 24, usm_data=memory, base=memory), 0, 15),
    "a tensor": (
        lambda memory: to_dlpack_tensor(memory, shape=(2, 3), strides=(-8, 2), byte_offset=12),
        -8, 4,
    ),
    "packed elements": (lambda memory: to_dlpack_tensor(memory, shape=5, dtype="int4"), 0, 2),
    "memory of a tensor": (
        lambda x: dpctl_memory.as_usm_memory(to_dlpack_tensor(x, shape=12)), 0, 11,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES_OF)
def test_a_view_stays_within_the_bytes_of_its_object(memory, name):
    build, first, last = BYTES_OF[name]
    source = build(memory)
    nbytes = last - first + 1
    read = partial(to_dlpack_tensor, source, dtype="u1", strides=1)
    whole = read(shape=nbytes, byte_offset=first)
    assert whole.nbytes == nbytes
    end = read(shape=0, byte_offset=last + 1)
    assert end.data == whole.data + nbytes
    expected = f"the {nbytes} bytes of the object"
    for offset, shape in ((first - 1, 1), (last + 1, 1), (first - 1, 0), (last + 2, 0)):
        with refused("out_of_bounds", "byte_offset", expected=expected):
            read(shape=shape, byte_offset=offset)
    with refused("out_of_bounds", "shape", expected=expected, found=f"of {nbytes + 1} bytes"):
        read(shape=nbytes + 1, byte_offset=first)
    with refused("out_of_bounds", "shape", expected=expected, found="2 bytes from byte -1"):
        read(shape=2, strides=(-1,), byte_offset=first)


def test_an_array_without_elements_has_no_bytes(memory):
    empty = TypedArray(memory, shape=(0, 2), strides=(2, 1))
    assert to_dlpack_tensor(empty).shape == (0, 2)
    with refused("out_of_bounds", "byte_offset", expected="the 0 bytes of the object"):
        to_dlpack_tensor(empty, shape=1)


def test_an_array_that_says_too_much_is_refused_by_the_backend(unpooled):
    with refused("out_of_bounds", "shape", expected=f"the {unpooled.nbytes} bytes of"):
        to_dlpack_tensor(part(unpooled, 0, 2**34))


@pytest.mark.parametrize("beyond", [{}, {"shape": 49}, {"shape": 1, "byte_offset": 2**40}], ids=str)
def test_context_pointer_and_queue_are_refused_before_the_bounds(memory, foreign_queue, beyond):
    with refused("context_not_default", "context"):
        to_dlpack_tensor(allocate("device", 48, foreign_queue), dtype="u1", **beyond)
    host = np.zeros(48, np.uint8)
    with refused("pointer_unknown", "data"):
        to_dlpack_tensor(TypedArray(memory, data=(host.ctypes.data, False)), dtype="u1", **beyond)
    with refused("context_not_default", "queue"):
        to_dlpack_tensor(memory, dtype="u1", queue=foreign_queue, **beyond)
    with refused("context_not_default", "queue"):
        to_dlpack_tensor(memory, shape=0, queue=foreign_queue)


# --- dtypes

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
    ("int4", (0, 4, 1), "int4"),
]


@pytest.mark.parametrize(("given_as", "dlpack", "seen"), DTYPES)
def test_a_dtype_reaches_the_capsule_and_comes_back(memory, given_as, dlpack, seen):
    tensor = to_dlpack_tensor(memory, dtype=given_as)
    assert tensor.dtype == seen
    assert type(tensor.dtype) is type(seen)
    inside = content_of(tensor.__dlpack__()).dl_tensor
    assert (inside.code, inside.bits, inside.lanes) == dlpack


BIG_ENDIAN = np.dtype(ml_dtypes.bfloat16).newbyteorder(">")
OF_NUMPY = [">f4", BIG_ENDIAN, "O", "f4,f4", "(2,2)f4", {"names": ["x"]}, np.longdouble]
OTHERS = [ml_dtypes.bcomplex32, "bf16", 5, (2, 32), (256, 8, 1), (2, 256, 1), (2.0, 32, 1)]


@pytest.mark.parametrize("dtype", OF_NUMPY + OTHERS, ids=str)
def test_a_dtype_that_dlpack_has_not_is_a_type_error(memory, dtype):
    with wrong_argument(TypeError, "dtype", "C's long double" if dtype is np.longdouble else ""):
        to_dlpack_tensor(memory, dtype=dtype)


# --- arrays with an interface of their own


def test_offset_and_strides_of_the_interface_are_in_elements(memory):
    source = TypedArray(memory, shape=(2, 2), strides=(-6, 2), offset=7)
    tensor = to_dlpack_tensor(source)
    assert tensor.data == address_of(memory) + 28
    assert (tensor.shape, tensor.strides) == ((2, 2), (-6, 2))
    seen = np.from_dlpack(tensor, device="cpu").view(np.uint32)
    whole = np.arange(48, dtype=np.uint8).view(np.uint32)
    assert seen.tolist() == [[whole[7], whole[9]], [whole[1], whole[3]]]


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("changes", [{}, {"shape": 4, "dtype": "i2"}], ids=str)
def test_the_read_only_flag_is_the_arrays(memory, readonly, changes):
    source = TypedArray(memory, data=(address_of(memory), readonly))
    tensor = to_dlpack_tensor(source, **changes)
    assert tensor.readonly is readonly
    assert tensor.__sycl_usm_array_interface__["data"][1] is readonly


def test_dpctl_memory_is_writable(memory):
    assert memory.__sycl_usm_array_interface__["data"][1] is True
    assert to_dlpack_tensor(memory).readonly is False


@pytest.mark.parametrize("lanes", [1, 2, 16])
@pytest.mark.parametrize(
    ("kind", "code", "bits"),
    [*(("int", 0, bits) for bits in (1, 4, 64, 128)), *(("uint", 1, bits) for bits in (1, 8, 32)),
     *(("float", 2, bits) for bits in (16, 64, 128)),
     *(("complex", 5, bits) for bits in (32, 64, 128, 192))],
)  # fmt: skip
def test_a_name_means_the_same_whatever_numpy_knows(memory, kind, code, bits, lanes):
    name = f"{kind}{bits}" if lanes == 1 else f"{kind}{bits}x{lanes}"
    read = to_dlpack_tensor(memory, shape=0, dtype=name)
    assert str(read.dtype) == str(
        to_dlpack_tensor(memory, shape=0, dtype=(code, bits, lanes)).dtype
    )
    assert str(read.dtype) == name
    inside = content_of(read.__dlpack__()).dl_tensor
    assert (inside.code, inside.bits, inside.lanes) == (code, bits, lanes)


@pytest.mark.parametrize(
    "name", ["float4", "float0", "complex256", "x4", "float32x0", "float32x1", "float32x04",
             "int8x65536", "code3", "code3bits064", "float032", "int8 ", "float32x", "<"]
)  # fmt: skip
def test_a_name_of_no_dtype_is_refused(memory, name):
    with wrong_argument(TypeError, "dtype"):
        to_dlpack_tensor(memory, dtype=name)


# Keywords of a tensor or array, keywords by which it is read anew, and what comes of them.
ANEW: list[tuple[dict[str, Any], dict[str, Any], tuple[int, ...], tuple[int, ...], str]] = [
    ({"dtype": "bfloat16"}, {"shape": (4, 6)}, (4, 6), (6, 1), "bfloat16"),
    ({"dtype": "float32x4"}, {"shape": (3,), "strides": (1,)}, (3,), (1,), "float32x4"),
    ({"dtype": "bfloat16"}, {"dtype": "uint8"}, (48,), (1,), "uint8"),
    ({"dtype": "int4"}, {"byte_offset": 8}, (80,), (1,), "int4"),
    ({"dtype": ml_dtypes.int4}, {"shape": (2, 24)}, (2, 24), (24, 1), "int4"),
    ({"dtype": "float4_e2m1fn", "shape": 3}, {"dtype": "uint8"}, (2,), (1,), "uint8"),
    ({"shape": (3, 2), "strides": (4, 2)}, {"dtype": "i4"}, (3, 2), (4, 2), "int32"),
    ({"shape": (2, 3), "strides": (3, 1)}, {"dtype": "u2"}, (12,), (1,), "uint16"),
    ({"shape": (6, 1), "strides": (1, 9)}, {"byte_offset": 4}, (5,), (1,), "float32"),
    ({"shape": (0, 2), "strides": (7, 3)}, {"dtype": "uint8"}, (0,), (1,), "uint8"),
    ({"shape": (3, 2), "strides": (4, 1)}, {"shape": 10, "strides": 1}, (10,), (1,), "float32"),
    ({"shape": (3, 4)}, {"strides": (1, 3)}, (3, 4), (1, 3), "float32"),
    ({"shape": (3, 4), "strides": (1, 3)}, {}, (3, 4), (1, 3), "float32"),
]


@pytest.mark.parametrize(("first", "changes", "shape", "strides", "dtype"), ANEW)
def test_a_tensor_is_read_anew(memory, first, changes, shape, strides, dtype):
    tensor = to_dlpack_tensor(TypedArray(memory), **first)
    again = to_dlpack_tensor(tensor, **changes)
    assert (again.shape, again.strides, str(again.dtype)) == (shape, strides, dtype)
    assert again.data == tensor.data + changes.get("byte_offset", 0)
    flags = [content_of(x.__dlpack__(max_version=(1, 3))).flags for x in (tensor, again)]
    assert flags[1] == (0 if "dtype" in changes else flags[0])
    if "dtype" not in first:
        array = TypedArray(memory, **({"strides": None} | first))
        of_array = to_dlpack_tensor(array, **changes)
        assert (of_array.shape, of_array.strides, of_array.data) == (shape, strides, again.data)


def test_the_flag_of_padding_says_nothing_of_whole_bytes(memory):
    foreign = ForeignTensor(address_of(memory), shape=(6,), dtype=(2, 32, 2))
    foreign.managed.flags = IS_SUBBYTE_TYPE_PADDED
    tensor = from_dlpack(ForeignArray(foreign))
    assert to_dlpack_tensor(tensor, byte_offset=8).shape == (5,)
    assert to_dlpack_tensor(tensor, dtype="u2").shape == (24,)


def test_a_tensor_that_is_read_anew_keeps_its_queue_and_its_readonly(memory):
    known = kept(dpctl.SyclQueue(usm_dlpack.root_device(0)))
    source = TypedArray(memory, data=(address_of(memory), True), syclobj=known)
    tensor = to_dlpack_tensor(to_dlpack_tensor(source), dtype="bfloat16")
    again = to_dlpack_tensor(tensor, shape=(2, 3))
    assert (again.sycl_queue, again.readonly) == (known, True)


def test_numpy_makes_no_array_of_a_tensor_by_itself(memory):
    with pytest.raises(TypeError, match=r"^DLPackTensor: .*; .*numpy\(\), or .*host_view"):
        np.array(to_dlpack_tensor(memory))


@pytest.mark.parametrize("key", ["data", "shape", "typestr", "syclobj", "version"])
def test_an_interface_without_a_field_is_refused_by_name(memory, key):
    source = TypedArray(memory)
    del source.interface[key]
    with wrong_argument(ValueError, INTERFACE, f"no '{key}'"):
        to_dlpack_tensor(source)


INTERFACE = "__sycl_usm_array_interface__"
FIELDS: list[tuple[Any, str, str, dict[str, Any]]] = [
    (*VIEW, "48 bytes from byte 4", {"offset": 1}),
    ("pointer_unknown", "data", "unknown to it", {"data": (2**64 - 64, False)}),
    (ValueError, INTERFACE, "", {"data": None}),
    (ValueError, INTERFACE, "", {"data": (1.5, False)}),
    (ValueError, INTERFACE, "", {"data": (2**64, False)}),
    (ValueError, INTERFACE, "", {"data": (8, np.zeros(2))}),
    (ValueError, INTERFACE, "", {"shape": ("a",)}),
    (ValueError, INTERFACE, "", {"strides": "ab"}),
    (ValueError, INTERFACE, "", {"strides": (1, 2)}),
    (ValueError, INTERFACE, "", {"typestr": ">f4"}),
    (ValueError, INTERFACE, "", {"typestr": "<i3"}),
    (ValueError, INTERFACE, "", {"offset": 1.5}),
    (ValueError, INTERFACE, "", {"offset": -(2**62)}),
    (ValueError, INTERFACE, f"the offset {2**70};", {"offset": 2**70}),
    (ValueError, INTERFACE, "found the version 2;", {"version": 2}),
    (ValueError, INTERFACE, "found the version array([1, 1]);", {"version": np.ones(2, int)}),
    (ValueError, "shape[0]", "", {"shape": (-2, 2)}),
    (ValueError, "shape[0]", "", {"shape": (2**70,)}),
    (ValueError, "strides[0]", "", {"strides": (2**70,)}),
    (ValueError, "syclobj", "found 'opencl:fpga'", {"syclobj": "opencl:fpga"}),
    (TypeError, "syclobj", "", {"syclobj": b"cpu"}),
    (TypeError, "syclobj", "", {"syclobj": Carrier(SimpleNamespace(_get_capsule=lambda: "text"))}),
    (TypeError, "syclobj", "", {"syclobj": new_capsule(64, b"used_SyclQueueRef")}),
]


@pytest.mark.parametrize(("rule", "field", "found", "changes"), FIELDS)
def test_a_field_of_an_interface_that_lies_or_is_nonsense_is_refused(
    unpooled, rule, field, found, changes
):
    with stopped(rule, field, found):
        to_dlpack_tensor(TypedArray(unpooled, **changes))


EMPTIED = """
import dpctl.memory
from memory_sources import TypedArray
from usm_dlpack import to_dlpack_tensor

class Emptying:
    def empty(self, *_):
        source.interface.clear()
        return {answer}

    {method} = empty

array = TypedArray(dpctl.memory.MemoryUSMShared(64))
array.interface[{field!r}] = {value}
source = array
try:
    to_dlpack_tensor(array)
except ValueError as error:
    print(str(error).partition("found ")[2].partition(";")[0])
"""


@pytest.mark.parametrize(
    ("field", "value", "method", "answer", "found"),
    [
        ("version", "Emptying()", "__index__", "2", "the version an object of type Emptying"),
        ("data", "(Emptying(), [0] * 9)", "__index__", "8", "no 'shape'"),
        ("shape", "Emptying()", "__index__", "1", "no 'typestr'"),
        ("strides", "(Emptying(), 'a')", "__index__", "1", "the strides an object of type tuple"),
        ("offset", "Emptying()", "__index__", "'no int'", "an object of type Emptying"),
    ],
)
def test_a_value_of_an_interface_may_remove_the_others(
    succeed, field, value, method, answer, found
):
    """What is removed is overwritten."""
    code = EMPTIED.format(field=field, value=value, method=method, answer=answer)
    assert found in succeed(code, PYTHONMALLOC="debug")


@pytest.mark.parametrize("strides", [(1, 3), (4, 1), (0, 1)], ids=str)
@pytest.mark.parametrize(
    "keywords",
    [{"shape": (2, 3)}, {"shape": (2, -1)}, {"dtype": "u1"}, {"byte_offset": 4}],
    ids=str,
)
def test_an_array_in_another_order_is_read_anew_only_with_strides(memory, strides, keywords):
    array = TypedArray(memory, shape=(3, 2), strides=strides)
    for obj in (array, to_dlpack_tensor(array)):
        with wrong_argument(ValueError, "strides", "not in C order without gaps, found none"):
            to_dlpack_tensor(obj, **keywords)
    copy = from_dlpack(to_dlpack_tensor(array), order="C")
    assert to_dlpack_tensor(copy, **keywords).data == copy.data + keywords.get("byte_offset", 0)


@pytest.mark.parametrize(
    ("obj", "remedy"),
    [
        (np.zeros(3), "use from_dlpack(x, device=(14, 0)), which also takes host memory"),
        (
            [1.0],
            "pass dpctl.memory or a dpnp array, or copy with from_dlpack(numpy.asarray(x), "
            "device=(14, 0))",
        ),
        (2**40, "for memory at an address, make such an object"),
        *(
            (obj, "pass dpctl.memory or a dpnp array")
            for obj in (None, TypedArray, SimpleNamespace(__sycl_usm_array_interface__=5))
        ),
    ],
    ids=str,
)
def test_an_object_without_usm_is_a_type_error(obj, remedy):
    name = type(obj).__name__
    with wrong_argument(TypeError, "obj", f"{INTERFACE}, found one of type {name}; {remedy}"):
        to_dlpack_tensor(obj)


@pytest.mark.parametrize("error", [TypeError, KeyboardInterrupt])
def test_an_error_of_the_interface_itself_reaches_the_caller(error):
    class Raising:
        @property
        def __sycl_usm_array_interface__(self):
            raise error("by the object")

    with pytest.raises(error, match="by the object"):
        to_dlpack_tensor(Raising())


# --- memory of no or of another context


def test_memory_that_the_named_context_does_not_know_is_refused_on_opencl(
    memory, queue, foreign_queue
):
    """Level Zero's driver answers for all contexts of a platform."""
    hidden = TypedArray(allocate("device", 48, foreign_queue), syclobj=queue)
    with refused("pointer_unknown", "data", expected="the given context"):
        to_dlpack_tensor(hidden)
    with refused("pointer_unknown", "data", expected="the given context"):
        to_dlpack_tensor(TypedArray(memory, syclobj=foreign_queue))


# --- lifetime


def test_a_refused_owner_is_not_kept(unpooled):
    owner = TypedArray(unpooled, shape=(13,))
    gone = weakref.ref(owner)
    with refused("out_of_bounds", "shape"):
        to_dlpack_tensor(owner)
    del owner
    gc.collect()
    assert gone() is None
