# SPDX-License-Identifier: Apache-2.0
"""to_dlpack_tensor: what USM becomes a tensor, and what the tensor says."""

import gc
import weakref
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from capsules import IS_SUBBYTE_TYPE_PADDED, ForeignArray, ForeignTensor, content_of
from dpctl import memory as dpctl_memory
from memory_sources import TypedArray, address_of, allocate
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate

# --- what a tensor says


def test_memory_is_bytes_if_nothing_else_is_said(usm_type, queue):
    owner = allocate(usm_type, 48, queue)
    plain = to_dlpack_tensor(owner)
    assert (plain.shape, plain.strides, plain.dtype) == ((48,), (1,), np.dtype("uint8"))
    assert plain.device == plain.__dlpack_device__() == (14, 0)
    again = dpctl_memory.as_usm_memory(to_dlpack_tensor(owner, shape=6, byte_offset=8))
    assert again.get_usm_type() == usm_type
    assert bytes(again.copy_to_host()) == bytes(range(8, 14))


def test_repr_names_what_matters(memory):
    tensor = to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
    name = tensor.sycl_device.name.strip()
    assert repr(tensor) == (
        "DLPackTensor(shape=(3, 4), strides=(4, 1), dtype=float32, usm_type='device', "
        f"device=(14, 0), name={name!r}, sycl_queue='out of order', nbytes=48, byte_extent=48)"
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


def test_the_class_has_no_subclasses():
    with pytest.raises(TypeError):
        type("Derived", (DLPackTensor,), {})


@pytest.mark.parametrize("act", [np.asarray, np.sum, lambda t: t == np.zeros(3)])
def test_numpy_gets_no_values_without_being_asked(tensor, act):
    with wrong_argument(TypeError, "DLPackTensor", "found one that needs a NumPy array; copy"):
        act(tensor)


def test_a_tensor_is_no_sequence(tensor):
    assert not isinstance(tensor, Iterable | Sized | Sequence)
    with pytest.raises(TypeError, match="not iterable"):
        list(tensor)


# --- shapes, strides and offsets within 48 bytes


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


# --- arrays with an interface of their own


@pytest.mark.parametrize("readonly", [True, False])
def test_the_read_only_flag_is_the_arrays_but_memory_of_dpctl_is_writable(memory, readonly):
    source = TypedArray(memory, data=(address_of(memory), readonly))
    for changes in ({}, {"shape": 4, "dtype": "i2"}):
        tensor = to_dlpack_tensor(source, **changes)
        assert tensor.readonly is readonly
        assert tensor.__sycl_usm_array_interface__["data"][1] is readonly
    assert memory.__sycl_usm_array_interface__["data"][1] is True
    assert to_dlpack_tensor(memory).readonly is False


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


EMPTYING = """
from dpctl.memory import MemoryUSMShared
from memory_sources import TypedArray
from usm_dlpack import to_dlpack_tensor

class Emptying:
    def __init__(self, answer):
        self.answer = answer

    def __index__(self):
        source.interface.clear()
        return self.answer

for field, value in {
    "version": Emptying(2),
    "data": (Emptying(8), [0] * 9),
    "shape": Emptying(1),
    "strides": (Emptying(1), "a"),
    "offset": Emptying("no int"),
}.items():
    source = TypedArray(MemoryUSMShared(64), **{field: value})
    try:
        to_dlpack_tensor(source)
    except ValueError as error:
        print(str(error).partition("found ")[2].partition(";")[0])
"""


def test_a_value_of_an_interface_may_remove_the_others(succeed):
    """What is removed is overwritten."""
    assert succeed(EMPTYING, PYTHONMALLOC="debug").splitlines() == [
        "the version an object of type Emptying",
        "no 'shape'",
        "no 'typestr'",
        "the strides an object of type tuple",
        "the offset an object of type Emptying",
    ]


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
