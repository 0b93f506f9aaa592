# SPDX-License-Identifier: Apache-2.0
"""to_dlpack_tensor: what USM becomes a tensor, what the tensor says, and what is refused."""

from __future__ import annotations

import copy
import ctypes
import gc
import itertools
import pickle
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import dpctl
import ml_dtypes
import numpy as np
import pytest
import usm_dlpack
from capsules import FLOAT8, ForeignArray, ForeignTensor, content_of, integers
from dpctl import memory as dpctl_memory
from hypothesis import given
from hypothesis import strategies as st
from memory_sources import UNPOOLED, Carrier, TypedArray, address_of, allocate, kept
from refusals import refused, wrong_argument
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, to_dlpack_tensor
from usm_dlpack._dtypes import name_of, read_dtype


def exported(tensor: DLPackTensor) -> Any:
    """Return the DLTensor that a consumer gets; its memory is the process's."""
    capsule = tensor.__dlpack__(max_version=(1, 3))
    content = content_of(capsule)
    content.owner = capsule
    return content.dl_tensor


# --- what a tensor says


def test_a_tensor_says_what_was_asked_for(usm_type: str, queue: Any) -> None:
    owner = allocate(usm_type, 48, queue)
    tensor = to_dlpack_tensor(owner, shape=(3, 4), dtype=np.float32)
    assert tensor.shape == (3, 4)
    assert tensor.strides == (4, 1)
    assert tensor.ndim == 2
    assert tensor.size == 12
    assert tensor.nbytes == 48
    assert tensor.dtype == np.dtype("float32")
    assert isinstance(tensor.dtype, np.dtype)
    assert tensor.readonly is False
    assert tensor.usm_type == usm_type
    assert tensor.device == (14, 0)
    assert tensor.data == address_of(owner)
    assert tensor.sycl_device == queue.sycl_device
    assert tensor.sycl_context == queue.sycl_context
    assert isinstance(tensor.sycl_device, dpctl.SyclDevice)
    assert isinstance(tensor.sycl_context, dpctl.SyclContext)
    assert tensor.__dlpack_device__() == (14, 0)


def test_without_keywords_the_tensor_is_the_memory_as_bytes(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((48,), (1,), np.dtype("uint8"))
    assert tensor.data == address_of(memory)


def test_repr_names_what_matters(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
    name = tensor.sycl_device.name.strip()
    assert repr(tensor) == (
        "DLPackTensor(shape=(3, 4), strides=(4, 1), dtype=float32, usm_type='device', "
        f"device=(14, 0), name={name!r}, nbytes=48, byte_extent=48)"
    )
    assert repr(to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))).endswith(
        "byte_extent=48, read-only)"
    )


def test_a_tensor_is_a_memory_of_dpctl_again(usm_type: str, queue: Any) -> None:
    owner = allocate(usm_type, 48, queue)
    tensor = to_dlpack_tensor(owner, shape=6, dtype="int32", byte_offset=8)
    again = dpctl_memory.as_usm_memory(tensor)
    assert again.get_usm_type() == usm_type
    assert bytes(again.copy_to_host()) == bytes(range(8, 32))


def test_array_interface_says_what_the_tensor_says(memory: Any, queue: Any) -> None:
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


def test_a_tensor_of_a_tensor_is_the_same_view(memory: Any) -> None:
    first = to_dlpack_tensor(memory, shape=(2, 3), strides=(-3, 1), dtype="i4", byte_offset=12)
    second = to_dlpack_tensor(first)
    assert (second.data, second.shape, second.strides) == (first.data, (2, 3), (-3, 1))
    assert second.dtype == first.dtype


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float4_e2m1fn"])
def test_a_dtype_without_type_string_has_no_array_interface(memory: Any, name: str) -> None:
    tensor = to_dlpack_tensor(memory, dtype=name)
    assert not hasattr(tensor, "__sycl_usm_array_interface__")
    with pytest.raises(AttributeError, match=f"found {name}; exchange the array through DLPack"):
        tensor.__sycl_usm_array_interface__  # noqa: B018


def test_attributes_cannot_be_set(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    names = [name for name in dir(DLPackTensor) if not name.startswith("_")]
    assert len(names) >= 12
    for name in names:
        with pytest.raises(AttributeError):
            setattr(tensor, name, getattr(tensor, name))
    with pytest.raises(AttributeError):
        tensor.another = 1  # type: ignore[attr-defined]


def test_the_class_makes_no_tensors_by_itself() -> None:
    with pytest.raises(TypeError):
        DLPackTensor()
    with pytest.raises(TypeError):
        type("Derived", (DLPackTensor,), {})


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_refused_in_words(memory: Any, protocol: int) -> None:
    with wrong_argument(TypeError, "DLPackTensor", "belongs to this process"):
        pickle.dumps(to_dlpack_tensor(memory), protocol)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copying_is_refused_in_words(memory: Any, duplicate: Callable[[Any], Any]) -> None:
    with wrong_argument(TypeError, "DLPackTensor", "copy it with from_dlpack(x, copy=True)"):
        duplicate(to_dlpack_tensor(memory))


NO_SHAPES = ["", b"", {}, set()]


@pytest.mark.parametrize("nothing", NO_SHAPES, ids=lambda nothing: type(nothing).__name__)
def test_what_numpy_takes_for_no_shape_is_none(memory: Any, nothing: Any) -> None:
    for keywords in ({"shape": nothing}, {"shape": 4, "strides": nothing}):
        with wrong_argument(TypeError, list(keywords)[-1], "expected a sequence of integers"):
            to_dlpack_tensor(memory, **keywords)
    with wrong_argument(ValueError, "__sycl_usm_array_interface__", "expected a sequence of"):
        to_dlpack_tensor(TypedArray(memory, shape=nothing))


@pytest.mark.parametrize(
    "shape",
    [[], (), range(0), iter(()), np.zeros(0, int), 4, [2, 2], iter([2, 2]), np.array([4])],
    ids=str,
)
def test_sequences_of_integers_are_shapes(memory: Any, shape: Any) -> None:
    assert to_dlpack_tensor(memory, shape=shape).size in (1, 4)


# --- shapes, strides and offsets within 48 bytes


@pytest.mark.parametrize(
    ("dtype", "shape", "strides", "byte_offset", "seen"),
    [
        ("f4", (12,), None, 0, (1,)),
        ("f4", 12, None, 0, (1,)),
        ("f4", np.int64(12), None, 0, (1,)),
        ("f4", [3, 4], None, 0, (4, 1)),
        ("f4", (3, 4), (1, 3), 0, (1, 3)),
        ("f4", (3, 4), [4, 1], 0, (4, 1)),
        ("f4", (12,), (-1,), 44, (-1,)),
        ("f4", (3, 4), (-4, -1), 44, (-4, -1)),
        ("f4", (3, 4), (-4, 1), 32, (-4, 1)),
        ("f4", (6,), (2,), 0, (2,)),
        ("f4", (6,), (2,), 4, (2,)),
        ("f4", (1000, 12), (0, 1), 0, (0, 1)),
        ("u1", (2**62,), (0,), 47, (0,)),
        ("f4", (), None, 44, ()),
        ("f4", (1,), (2**63 - 1,), 0, (2**63 - 1,)),
        ("f4", (1,), (-(2**63),), 0, (-(2**63),)),
        ("f4", (1, 12), (-7, 1), 0, (-7, 1)),
        ("f8", (3,), (2,), 0, (2,)),
        ("c16", (3,), None, 0, (1,)),
        ("c8", (5,), None, 4, (1,)),
        ("?", (48,), None, 0, (1,)),
        ("i2", (2, 3, 4), None, 0, (12, 4, 1)),
        ("i1", (2, 2, 2, 2, 3), None, 0, (24, 12, 6, 3, 1)),
    ],
)
def test_a_view_within_its_memory_is_taken(
    memory: Any, dtype: str, shape: Any, strides: Any, byte_offset: int, seen: tuple[int, ...]
) -> None:
    tensor = to_dlpack_tensor(
        memory, shape=shape, dtype=dtype, strides=strides, byte_offset=byte_offset
    )
    extents = (int(shape),) if np.ndim(shape) == 0 else tuple(shape)
    assert (tensor.shape, tensor.strides) == (extents, seen)
    assert tensor.data == address_of(memory) + byte_offset
    assert tensor.ndim == len(extents)
    inside = exported(tensor)
    below = -sum(min(0, (n - 1) * step) for n, step in zip(extents, seen, strict=True))
    assert inside.byte_offset == below * np.dtype(dtype).itemsize
    assert inside.data + inside.byte_offset == tensor.data
    assert (inside.device_type, inside.device_id, inside.ndim) == (14, 0, len(extents))
    if extents:
        assert integers(inside.shape, inside.ndim) == extents
        assert integers(inside.strides, inside.ndim) == seen


@pytest.mark.parametrize(
    ("shape", "strides", "size"),
    [
        ((0,), (1,), 0),
        ((3, 0), (1, 1), 0),
        ((0, 2**62), (2**62, 1), 0),
        ((2**62, 0, 2**62), (2**62, 2**62, 1), 0),
    ],
)
@pytest.mark.parametrize("byte_offset", [0, 44, 48])
def test_an_empty_view_keeps_shape_and_pointer(
    unpooled: Any, shape: tuple[int, ...], strides: tuple[int, ...], size: int, byte_offset: int
) -> None:
    tensor = to_dlpack_tensor(unpooled, shape=shape, dtype="f4", byte_offset=byte_offset)
    assert (tensor.shape, tensor.strides, tensor.size) == (shape, strides, size)
    assert (tensor.nbytes, tensor.data) == (0, address_of(unpooled) + byte_offset)
    assert tensor.usm_type == ("shared" if byte_offset < 48 else "unknown")


@pytest.mark.parametrize("byte_offset", [-1, 49, 2**40])
def test_an_empty_view_beyond_the_memory_is_refused(memory: Any, byte_offset: int) -> None:
    with refused(
        "out_of_bounds", "byte_offset", expected="the 48 bytes", found=f"at byte {byte_offset}"
    ):
        to_dlpack_tensor(memory, shape=0, byte_offset=byte_offset)


def test_size_and_nbytes_saturate_for_a_huge_broadcast(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory, shape=(2**62, 2**62), strides=(0, 0))
    assert tensor.size == 2**63 - 1
    assert tensor.nbytes == 2**63 - 1
    assert to_dlpack_tensor(memory, shape=(2**62, 2**62, 0), strides=(0, 0, 0)).size == 0


@pytest.mark.parametrize(
    ("dtype", "shape", "strides", "byte_offset", "first", "last"),
    [
        ("f4", (13,), None, 0, 0, 51),
        ("f4", (4, 4), None, 0, 0, 63),
        ("f4", (12,), None, 4, 4, 51),
        ("f4", (12,), (-1,), 40, -4, 43),
        ("f4", (2,), (12,), 0, 0, 51),
        ("f4", (2,), (-1,), 0, -4, 3),
        ("u1", (49,), None, 0, 0, 48),
        ("u1", (2,), (2**54,), 0, 0, 2**54),
        ("u1", (2**54,), None, 0, 0, 2**54 - 1),
        ("c16", (4,), None, 0, 0, 63),
        ((2, 32, 4), (4,), None, 0, 0, 63),
        ((17, 4, 1), (97,), None, 0, 0, 48),
    ],
)
def test_a_view_that_reaches_out_of_its_memory_is_refused(
    memory: Any, dtype: Any, shape: Any, strides: Any, byte_offset: int, first: int, last: int
) -> None:
    found = f"bytes {first} to {last}"
    with refused("out_of_bounds", "shape", expected="the 48 bytes", found=found):
        to_dlpack_tensor(memory, shape=shape, dtype=dtype, strides=strides, byte_offset=byte_offset)


@pytest.mark.parametrize(
    ("dtype", "shape", "strides"),
    [
        ("f4", (2**62,), None),
        ("f4", (2**63 - 1,), None),
        ("u1", (2**40, 2**40), None),
        ("u1", (2**63 - 1, 2), None),
        ("f4", (2,), (2**63 - 1,)),
        ("f4", (2,), (-(2**63),)),
        ("u1", (2,), (-(2**63),)),
        ("u1", (3,), (2**62,)),
        ("u1", (3,), (-(2**62) - 1,)),
        ("u1", (2**62, 2**62, 3), (1, 1, 1)),
        ("c16", (2**60,), None),
    ],
)
def test_a_span_beyond_the_address_space_is_refused(
    memory: Any, dtype: str, shape: Any, strides: Any
) -> None:
    with refused("span_overflow", "strides", expected="the address space"):
        to_dlpack_tensor(memory, shape=shape, dtype=dtype, strides=strides)


@pytest.mark.parametrize("byte_offset", [48, 52, -4, 2**40, 2**54, -(2**16)])
def test_an_offset_out_of_the_memory_is_refused(memory: Any, byte_offset: int) -> None:
    with pytest.raises(ConversionError) as caught:
        to_dlpack_tensor(memory, shape=1, dtype="f4", byte_offset=byte_offset)
    assert (caught.value.code, caught.value.field) == ("out_of_bounds", "byte_offset")
    assert caught.value.expected == "a first element within the 48 bytes of the object"
    assert caught.value.found == f"one at byte {byte_offset}"


def test_the_offset_of_an_interface_out_of_its_memory_is_refused(memory: Any) -> None:
    source = TypedArray(memory, offset=2**38)
    with refused("out_of_bounds", "byte_offset", found=f"one at byte {2**40}", remedy="offset in"):
        to_dlpack_tensor(source)


def test_an_offset_out_of_memory_in_another_context_is_refused_for_the_context(
    foreign_queue: Any,
) -> None:
    owner = allocate("device", 48, foreign_queue)
    with refused("context_not_default", "context", binding=True):
        to_dlpack_tensor(owner, shape=1, byte_offset=2**40)


def test_an_offset_into_memory_of_another_owner_is_refused(queue: Any) -> None:
    owner, other = allocate("device", 48, queue), allocate("device", 48, queue)
    distance = address_of(other) - address_of(owner)
    with refused("out_of_bounds", "byte_offset", found=f"one at byte {distance}"):
        to_dlpack_tensor(owner, shape=4, byte_offset=distance)


def test_an_interface_whose_offset_leads_to_another_allocation_is_refused(queue: Any) -> None:
    # On Level Zero only what SYCL does not pool is known to be an allocation of its own.
    owner, other = allocate("shared", 48, queue), allocate("shared", 48, queue)
    distance = address_of(other) - address_of(owner)
    source = TypedArray(owner, shape=(4,), typestr="|u1", offset=distance)
    with refused(
        "out_of_bounds", "byte_offset", expected="the object's address", found=f"{distance} from"
    ):
        to_dlpack_tensor(source)


# --- the bytes behind an object


class Array:
    """A part of memory, that says of which memory under some name, or does not."""

    def __init__(self, memory: Any, begin: int, end: int, **said: Any) -> None:
        address = address_of(memory)
        self.__sycl_usm_array_interface__ = dict(memory.__sycl_usm_array_interface__) | {
            "data": (address, False),
            "shape": (end - begin,),
            "offset": begin,
        }
        self.__dict__ |= said


def test_a_view_over_the_memory_of_a_neighbour_is_refused(usm_type: str, queue: Any) -> None:
    # Small allocations of one kind may stand beside each other in the pool of SYCL.
    kept_apart = [allocate(usm_type, 1000, queue) for _ in range(2)]
    with refused(
        "out_of_bounds", "shape", expected="the 1000 bytes of the object", found="bytes 0 to 63999"
    ):
        to_dlpack_tensor(kept_apart[0], shape=16_000, dtype="float32")


def test_a_view_beyond_a_tensor_is_refused_though_its_memory_goes_on(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory, shape=(2, 3), strides=(-8, 2), byte_offset=12)
    with refused(
        "out_of_bounds", "shape", expected="the 13 bytes of the object", found="bytes 8 to 13"
    ):
        to_dlpack_tensor(tensor, shape=6)
    with refused("out_of_bounds", "byte_offset", found="one at byte 13"):
        to_dlpack_tensor(tensor, shape=1, byte_offset=5)
    with refused("out_of_bounds", "byte_offset", found="one at byte -1"):
        to_dlpack_tensor(tensor, shape=0, byte_offset=-9)
    whole = to_dlpack_tensor(tensor, shape=13, byte_offset=-8)
    assert (whole.data, whole.nbytes) == (address_of(memory) + 4, 13)
    end = to_dlpack_tensor(tensor, shape=0, byte_offset=5)
    assert end.data == address_of(memory) + 17


def test_a_view_beyond_packed_elements_is_refused(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory, shape=5, dtype="int4")
    assert to_dlpack_tensor(tensor, shape=3, dtype="u1").nbytes == 3
    with refused("out_of_bounds", "shape", expected="the 3 bytes of the object"):
        to_dlpack_tensor(tensor, shape=4, dtype="u1")


@pytest.mark.parametrize("said", [{}, {"usm_data": None}, {"base": 7, "data": "text"}])
def test_an_array_that_names_no_memory_is_its_own_bytes(memory: Any, said: dict[str, Any]) -> None:
    array = Array(memory, 8, 24, **said)
    assert to_dlpack_tensor(array, shape=4, dtype="f4").data == address_of(memory) + 8
    with refused("out_of_bounds", "shape", expected="the 16 bytes of", found="bytes 0 to 16"):
        to_dlpack_tensor(array, shape=17)
    with refused("out_of_bounds", "byte_offset", found="one at byte -8"):
        to_dlpack_tensor(array, shape=1, byte_offset=-8)


@pytest.mark.parametrize("name", ["usm_data", "base", "data"])
def test_an_array_is_as_large_as_the_memory_that_it_names(memory: Any, name: str) -> None:
    array = Array(memory, 8, 24, **{name: memory})
    assert to_dlpack_tensor(array).nbytes == 16
    whole = to_dlpack_tensor(array, shape=48, byte_offset=-8)
    assert (whole.data, whole.nbytes) == (address_of(memory), 48)
    with refused("out_of_bounds", "shape", expected="the 48 bytes of", found="bytes 8 to 48"):
        to_dlpack_tensor(array, shape=41)


def test_a_chain_of_views_leads_to_the_memory(memory: Any) -> None:
    array = Array(memory, 0, 48, usm_data=memory)
    for end in (40, 32, 32, 16):
        array = Array(memory, 8, end, base=array)
    assert to_dlpack_tensor(array, shape=40).nbytes == 40
    tensor = to_dlpack_tensor(memory, shape=20, byte_offset=4)
    view = Array(memory, 8, 16, base=tensor)
    with refused("out_of_bounds", "shape", expected="the 20 bytes of", found="bytes 4 to 20"):
        to_dlpack_tensor(view, shape=17)


def test_views_that_name_each_other_as_their_memory_are_their_own_bytes(memory: Any) -> None:
    one = Array(memory, 0, 8)
    other = Array(memory, 0, 8, base=one)
    one.__dict__["base"] = other
    with refused("out_of_bounds", "shape", expected="the 8 bytes of the object"):
        to_dlpack_tensor(one, shape=9)


def test_memory_without_the_bytes_of_the_array_is_not_believed(memory: Any, queue: Any) -> None:
    other = allocate("device", 4096, queue)
    for named in (other, Array(memory, 16, 48), object()):
        array = Array(memory, 8, 16, usm_data=named)
        with refused("out_of_bounds", "shape", expected="the 8 bytes of the object"):
            to_dlpack_tensor(array, shape=9)


def test_an_array_that_reaches_out_of_the_memory_that_it_names_is_refused(memory: Any) -> None:
    array = Array(memory, 8, 24, usm_data=Array(memory, 0, 15))
    with refused("out_of_bounds", "shape", expected="the 15 bytes of", found="bytes 8 to 23"):
        to_dlpack_tensor(array)


def test_a_library_whose_properties_fail_is_no_obstacle(memory: Any) -> None:
    class Failing(Array):
        @property
        def base(self) -> Any:
            raise RuntimeError("no base")

    assert to_dlpack_tensor(Failing(memory, 8, 16, usm_data=memory), shape=40).nbytes == 40
    with refused("out_of_bounds", "shape", expected="the 8 bytes of the object"):
        to_dlpack_tensor(Failing(memory, 8, 16), shape=40)


def test_memory_made_of_memory_is_viewed_wholly(memory: Any) -> None:
    again = dpctl_memory.MemoryUSMDevice(memory)
    assert to_dlpack_tensor(again, shape=12, dtype="f4").nbytes == 48
    part = dpctl_memory.as_usm_memory(to_dlpack_tensor(memory, shape=12, byte_offset=4))
    assert to_dlpack_tensor(part, shape=3, dtype="f4").data == address_of(memory) + 4
    with refused("out_of_bounds", "shape", expected="the 12 bytes of the object"):
        to_dlpack_tensor(part, shape=13)


def test_memory_that_says_too_much_is_refused_by_the_backend(unpooled: Any) -> None:
    liar = Array(unpooled, 0, 2**34)
    array = Array(unpooled, 0, 16, usm_data=liar)
    with refused("out_of_bounds", "shape", expected="allocation"):
        to_dlpack_tensor(array, shape=2**34)


def test_the_context_is_refused_before_the_bounds(foreign_queue: Any) -> None:
    owner = allocate("device", 48, foreign_queue)
    with refused("context_not_default", "context", binding=True):
        to_dlpack_tensor(owner, shape=49)


def test_unknown_memory_is_refused_before_the_bounds(queue: Any) -> None:
    host = np.zeros(48, np.uint8)
    interface = dict(allocate("device", 48, queue).__sycl_usm_array_interface__)
    interface["data"] = (host.ctypes.data, False)

    class OnHost:
        __sycl_usm_array_interface__ = interface

    with refused("pointer_unknown", "data", binding=True):
        to_dlpack_tensor(OnHost(), shape=49)


def test_the_queue_is_refused_before_the_bounds(memory: Any, foreign_queue: Any) -> None:
    with refused("context_not_default", "queue", binding=True):
        to_dlpack_tensor(memory, shape=49, queue=foreign_queue)


@pytest.mark.parametrize("byte_offset", [2**63, 2**64 - 1])
def test_an_offset_that_leaves_the_address_space_with_the_view_is_refused(
    memory: Any, byte_offset: int
) -> None:
    with pytest.raises((ConversionError, ValueError)):
        to_dlpack_tensor(memory, shape=8, byte_offset=byte_offset)


@pytest.mark.parametrize("address", [2**64, 2**70, -1, -(2**70)])
def test_an_offset_to_no_address_is_refused(memory: Any, address: int) -> None:
    with wrong_argument(ValueError, "byte_offset"):
        to_dlpack_tensor(memory, shape=1, byte_offset=address - address_of(memory))


@pytest.mark.parametrize("byte_offset", [1, 2, 3, 6])
def test_a_misaligned_view_is_refused(memory: Any, byte_offset: int) -> None:
    found = f"{byte_offset % 4} bytes past"
    with refused("data_misaligned", "byte_offset", expected="aligned to 4 bytes", found=found):
        to_dlpack_tensor(memory, shape=1, dtype="f4", byte_offset=byte_offset)


@pytest.mark.parametrize(
    ("field", "keywords"),
    [
        ("shape[0]", {"shape": -1}),
        ("shape[1]", {"shape": (2, -3)}),
        ("shape[0]", {"shape": 2**63}),
        ("shape[1]", {"shape": (1, 2**64)}),
        ("shape[0]", {"shape": -(2**63)}),
        ("strides[0]", {"shape": 1, "strides": (2**63,)}),
        ("strides[1]", {"shape": (1, 1), "strides": (1, -(2**63) - 1)}),
        ("strides", {"shape": (3, 4), "strides": (1,)}),
        ("strides", {"shape": (3,), "strides": (4, 1)}),
        ("strides", {"shape": (), "strides": (1,)}),
        ("strides", {"strides": (1, 1)}),
        ("shape", {"strides": (1,), "dtype": "f4"}),
        ("shape", {"strides": (1,), "byte_offset": 4}),
        ("byte_offset", {"byte_offset": 49}),
        ("shape", {"byte_offset": 2, "dtype": "f4"}),
        ("shape", {"byte_offset": 8, "dtype": "c16"}),
    ],
)
def test_an_argument_that_contradicts_is_a_value_error(
    memory: Any, field: str, keywords: dict[str, Any]
) -> None:
    with wrong_argument(ValueError, field):
        to_dlpack_tensor(memory, **keywords)


@pytest.mark.parametrize(
    ("field", "keywords"),
    [
        ("shape", {"shape": 1.5}),
        ("shape", {"shape": (1.0,)}),
        ("shape", {"shape": "3"}),
        ("shape", {"shape": ("3",)}),
        ("shape", {"shape": (None,)}),
        ("shape", {"shape": ((3,),)}),
        ("shape", {"shape": object()}),
        ("strides", {"shape": 1, "strides": (0.5,)}),
        ("strides", {"shape": 1, "strides": "1"}),
        ("queue", {"queue": 5}),
        ("queue", {"queue": object()}),
    ],
)
def test_an_argument_of_the_wrong_type_is_a_type_error(
    memory: Any, field: str, keywords: dict[str, Any]
) -> None:
    with wrong_argument(TypeError, field):
        to_dlpack_tensor(memory, **keywords)


@pytest.mark.parametrize("byte_offset", [1.0, "1", None, (1,)])
def test_a_byte_offset_that_is_no_integer_is_a_type_error(memory: Any, byte_offset: Any) -> None:
    with pytest.raises(TypeError, match="expected an int"):
        to_dlpack_tensor(memory, byte_offset=byte_offset)


def spanned(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, offset: int
) -> tuple[int, int]:
    """Return the first byte of a view that is not empty, and the one past its last."""
    corners = [
        sum(index)
        for index in itertools.product(
            *({0, (extent - 1) * stride} for extent, stride in zip(shape, strides, strict=True))
        )
    ]
    return offset + min(corners) * itemsize, offset + (max(corners) + 1) * itemsize


@given(
    dims=st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), max_size=4),
    dtype=st.sampled_from(["u1", "i2", "f4", "f8", "c8", "c16"]),
    element=st.integers(-2, 48),
)
def test_exactly_the_views_within_the_memory_are_taken(
    memory: Any, dims: list[tuple[int, int]], dtype: str, element: int
) -> None:
    shape, strides = [extent for extent, _ in dims], [stride for _, stride in dims]
    itemsize = np.dtype(dtype).itemsize
    offset = element * (itemsize // 2 if dtype.startswith("c") else itemsize)
    begin, end = spanned(shape, strides, itemsize, offset)
    arguments: dict[str, Any] = {"shape": shape, "strides": strides, "dtype": dtype}
    arguments["byte_offset"] = offset
    if (begin < 0 or end > 48) if 0 not in shape else not 0 <= offset <= 48:
        with pytest.raises(ConversionError) as caught:
            to_dlpack_tensor(memory, **arguments)
        assert caught.value.code == "out_of_bounds"
    else:
        tensor = to_dlpack_tensor(memory, **arguments)
        assert (tensor.shape, tensor.strides) == (tuple(shape), tuple(strides))
        assert tensor.data == address_of(memory) + offset
        assert tensor.size == np.prod(shape, dtype=int)


# --- dtypes

DTYPES: list[tuple[Any, tuple[int, int, int], Any]] = [
    *((f"int{b}", (0, b, 1), np.dtype(f"int{b}")) for b in (8, 16, 32, 64)),
    *((f"uint{b}", (1, b, 1), np.dtype(f"uint{b}")) for b in (8, 16, 32, 64)),
    *((f"float{b}", (2, b, 1), np.dtype(f"float{b}")) for b in (16, 32, 64)),
    ("complex64", (5, 64, 1), np.dtype("complex64")),
    ("complex128", (5, 128, 1), np.dtype("complex128")),
    ("bool", (6, 8, 1), np.dtype(bool)),
    (bool, (6, 8, 1), np.dtype(bool)),
    (int, (0, 64, 1), np.dtype("int64")),
    (float, (2, 64, 1), np.dtype("float64")),
    (np.float16, (2, 16, 1), np.dtype("float16")),
    (np.dtype("<i4"), (0, 32, 1), np.dtype("int32")),
    ("=u2", (1, 16, 1), np.dtype("uint16")),
    (ml_dtypes.bfloat16, (4, 16, 1), np.dtype(ml_dtypes.bfloat16)),
    (np.dtype(ml_dtypes.float8_e4m3fn), (10, 8, 1), np.dtype(ml_dtypes.float8_e4m3fn)),
    ("bfloat16", (4, 16, 1), np.dtype(ml_dtypes.bfloat16)),
    *((name, (code, 8, 1), np.dtype(getattr(ml_dtypes, name))) for name, code in FLOAT8.items()),
    ("float6_e2m3fn", (15, 6, 1), "float6_e2m3fn"),
    ("float6_e3m2fn", (16, 6, 1), "float6_e3m2fn"),
    ("float4_e2m1fn", (17, 4, 1), "float4_e2m1fn"),
    ((2, 32, 4), (2, 32, 4), "float32x4"),
    ((0, 4, 1), (0, 4, 1), "int4"),
    ((1, 128, 1), (1, 128, 1), "uint128"),
    ((2, 128, 1), (2, 128, 1), "float128"),
    ((3, 64, 1), (3, 64, 1), "code3bits64"),
    ((4, 16, 2), (4, 16, 2), "bfloat16x2"),
]


@pytest.mark.parametrize(("given_as", "dlpack", "seen"), DTYPES)
def test_a_dtype_reaches_the_capsule_and_comes_back(
    memory: Any, given_as: Any, dlpack: tuple[int, int, int], seen: Any
) -> None:
    tensor = to_dlpack_tensor(memory, dtype=given_as)
    assert tensor.dtype == seen
    assert type(tensor.dtype) is type(seen)
    inside = exported(tensor)
    assert (inside.code, inside.bits, inside.lanes) == dlpack
    assert tensor.shape == (48 * 8 // (dlpack[1] * dlpack[2]),)
    assert tensor.nbytes == 48


@pytest.mark.parametrize(
    "dtype",
    [
        ">f4",
        ">i8",
        np.dtype("int32").newbyteorder("S"),
        "O",
        "S4",
        "U2",
        "M8[s]",
        "m8[ns]",
        "V8",
        "f4,f4",
        "i4,,",
        "(2,2)f4",
        np.dtype([("x", "f4")]),
        [("x", "f4"), ("x", "f4")],
        {"names": ["x"]},
        np.longdouble,
        np.clongdouble,
        ml_dtypes.bcomplex32,
        "float4",
        "bf16",
        "",
        5,
        object(),
        (2, 32),
        (2, 32, 0),
        (-1, 32, 1),
        (2, 256, 1),
        (2, 32, 65536),
        (2.0, 32, 1),
    ],
)
def test_a_dtype_that_dlpack_has_not_is_a_type_error(memory: Any, dtype: Any) -> None:
    with wrong_argument(TypeError, "dtype"):
        to_dlpack_tensor(memory, dtype=dtype)


@pytest.mark.parametrize(
    "dtype", [(18, 8, 1), (99, 8, 1), (4, 32, 1), (6, 1, 1), (10, 16, 1), (2, 12, 1), (5, 24, 1)]
)
def test_a_dtype_that_dlpack_does_not_define_is_refused(
    memory: Any, dtype: tuple[int, int, int]
) -> None:
    code, bits, lanes = dtype
    found = f"code {code}, bits {bits}, lanes {lanes}"
    with refused("dtype_unsupported", "dtype", expected="DLPack 1.3", found=found):
        to_dlpack_tensor(memory, shape=1, dtype=dtype)


# --- arrays with an interface of their own


def test_offset_and_strides_of_the_interface_are_in_elements(memory: Any) -> None:
    source = TypedArray(memory, shape=(2, 2), strides=(-6, 2), offset=7)
    tensor = to_dlpack_tensor(source)
    assert tensor.data == address_of(memory) + 28
    assert (tensor.shape, tensor.strides) == ((2, 2), (-6, 2))
    seen = np.from_dlpack(tensor, device="cpu").view(np.uint32)
    whole = np.arange(48, dtype=np.uint8).view(np.uint32)
    assert seen.tolist() == [[whole[7], whole[9]], [whole[1], whole[3]]]


def test_no_strides_in_the_interface_are_compact_ones(memory: Any) -> None:
    tensor = to_dlpack_tensor(TypedArray(memory, shape=(2, 3), strides=None, offset=2))
    assert (tensor.strides, tensor.data) == ((3, 1), address_of(memory) + 8)


@pytest.mark.parametrize("readonly", [True, False])
def test_the_read_only_flag_of_an_array_is_kept(memory: Any, readonly: bool) -> None:
    source = TypedArray(memory, data=(address_of(memory), readonly))
    for tensor in (to_dlpack_tensor(source), to_dlpack_tensor(source, shape=4, dtype="i2")):
        assert tensor.readonly is readonly
        assert tensor.__sycl_usm_array_interface__["data"][1] is readonly


def test_dpctl_memory_is_writable_though_its_flag_says_otherwise(memory: Any) -> None:
    assert memory.__sycl_usm_array_interface__["data"][1] is True
    assert to_dlpack_tensor(memory).readonly is False


class Capsuled:
    """An object whose capsule is something else."""

    def __init__(self, capsule: Any) -> None:
        self._get_capsule = lambda: capsule


class Text(str):
    """A str of somebody's own class."""


PLACES: dict[str, Callable[[Any], Any]] = {
    "queue": lambda queue: queue,
    "context": lambda queue: queue.sycl_context,
    "queue capsule": lambda queue: queue._get_capsule(),
    "context capsule": lambda queue: queue.sycl_context._get_capsule(),
    "filter string": lambda queue: queue.sycl_device.get_filter_string(),
    "filter string of another class": lambda queue: Text(queue.sycl_device.get_filter_string()),
    "carrier of a queue": Carrier,
    "carrier of a context": lambda queue: Carrier(queue.sycl_context),
}


@pytest.mark.parametrize("place", PLACES)
def test_syclobj_may_be_each_of_the_kinds_that_dpctl_takes(
    memory: Any, queue: Any, place: str
) -> None:
    syclobj = PLACES[place](queue)
    source = TypedArray(memory, syclobj=syclobj)
    for _ in range(2):  # capsules are not consumed
        assert to_dlpack_tensor(source).data == address_of(memory)


def test_the_queue_of_a_carrier_is_the_tensors(memory: Any, queue: Any) -> None:
    assert to_dlpack_tensor(TypedArray(memory, syclobj=Carrier(queue))).sycl_queue == queue
    with wrong_argument(TypeError, "syclobj", "str"):
        to_dlpack_tensor(TypedArray(memory, syclobj=Carrier(Capsuled("no capsule"))))


def test_a_consumed_capsule_is_no_syclobj(memory: Any, queue: Any) -> None:
    capsule = queue._get_capsule()
    dpctl.SyclQueue(capsule)
    with wrong_argument(TypeError, "syclobj", "PyCapsule"):
        to_dlpack_tensor(TypedArray(memory, syclobj=capsule))


NAMED = [
    *("float32x4", "bfloat16x2", "boolx4", "int4x2", "uint1x8", "float4_e2m1fnx2"),
    *("float128", "int128", "uint128", "code3bits64", "complex32", "float8_e4m3"),
]


@pytest.mark.parametrize("name", NAMED)
def test_the_name_of_a_dtype_is_taken_for_it(memory: Any, name: str) -> None:
    tensor = to_dlpack_tensor(memory, dtype=name)
    assert tensor.dtype == name
    assert tensor.nbytes == 48
    usm_dlpack.validate(tensor, dtype=tensor.dtype)
    described = exported(tensor)
    parts = (described.code, described.bits, described.lanes)
    usm_dlpack.validate(tensor, dtype=parts)


def test_names_mean_the_same_whatever_numpy_knows() -> None:
    codes = {"int": 0, "uint": 1, "float": 2, "complex": 5}
    widths = {"int": (1, 2, 4, 8, 64, 128), "uint": (1, 8, 32), "float": (16, 64, 128)}
    for kind, code in codes.items():
        for bits in widths.get(kind, (32, 64, 128, 256 - 8)):
            for lanes in (1, 2, 16):
                name = name_of(code, bits, lanes)
                assert read_dtype(name) == (code, bits, lanes, False), name
    assert read_dtype("int") == (0, 64, 1, False)  # NumPy's
    for name in ("float4", "float0", "complex256", "x4", "float32x0", "int8x65536", "code3"):
        with wrong_argument(TypeError, "dtype"):
            read_dtype(name)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.int16])
def test_another_byte_order_is_refused(memory: Any, dtype: Any) -> None:
    swapped = np.dtype(dtype).newbyteorder(">")
    with wrong_argument(TypeError, "dtype", "native byte order"):
        to_dlpack_tensor(memory, dtype=swapped)


@pytest.mark.parametrize(
    ("dtype", "changes", "shape", "strides", "found"),
    [
        ("bfloat16", {"shape": (4, 6)}, (4, 6), (6, 1), "bfloat16"),
        ("float32x4", {"shape": (3,), "strides": (1,)}, (3,), (1,), "float32x4"),
        ("bfloat16", {"dtype": "uint8"}, (48,), (1,), "uint8"),
        ("bfloat16", {"byte_offset": 4}, (22,), (1,), "bfloat16"),
        ("int4", {"byte_offset": 8}, (80,), (1,), "int4"),
        (ml_dtypes.int4, {"shape": (2, 24)}, (2, 24), (24, 1), "int4"),
    ],
)
def test_a_tensor_of_any_dtype_is_read_anew(
    memory: Any, dtype: Any, changes: Any, shape: Any, strides: Any, found: str
) -> None:
    owner = TypedArray(memory)
    tensor = to_dlpack_tensor(owner, dtype=dtype)
    again = to_dlpack_tensor(tensor, **changes)
    assert (again.shape, again.strides, str(again.dtype)) == (shape, strides, found)
    assert again.data == tensor.data + changes.get("byte_offset", 0)
    padded = content_of(tensor.__dlpack__(max_version=(1, 3))).flags & 4
    flags = content_of(again.__dlpack__(max_version=(1, 3))).flags
    assert flags & 4 == (0 if "dtype" in changes else padded)
    gone = [weakref.ref(tensor), weakref.ref(owner)]
    del tensor, owner
    assert gone[0]() is None  # the new one keeps the memory, and not the tensor
    assert gone[1]() is not None
    del again
    assert gone[1]() is None


@pytest.mark.parametrize("dtype", ["f4", "float32x2"])
def test_the_flag_of_padding_says_nothing_of_whole_bytes(memory: Any, dtype: str) -> None:
    width = 4 if dtype == "f4" else 8
    lanes = width // 4
    foreign = ForeignTensor(address_of(memory), shape=(48 // width,), dtype=(2, 32, lanes))
    foreign.managed.flags = 4
    tensor = from_dlpack(ForeignArray(foreign))
    again = to_dlpack_tensor(tensor, byte_offset=8)
    assert (again.shape, again.data) == (((48 - 8) // width,), address_of(memory) + 8)
    assert to_dlpack_tensor(tensor, dtype="u2").shape == (24,)


def test_a_tensor_that_is_read_anew_keeps_its_queue_and_its_readonly(memory: Any) -> None:
    known = kept(dpctl.SyclQueue(usm_dlpack.root_device(0)))
    source = TypedArray(memory, data=(address_of(memory), True), syclobj=known)
    tensor = to_dlpack_tensor(to_dlpack_tensor(source), dtype="bfloat16")
    again = to_dlpack_tensor(tensor, shape=(2, 3))
    assert (again.sycl_queue, again.readonly) == (known, True)


def test_a_negative_extent_is_refused_before_a_dtype_is_looked_at(memory: Any) -> None:
    with wrong_argument(ValueError, "shape[0]", "-2"):
        to_dlpack_tensor(TypedArray(memory, shape=(-2, 2)), dtype="i2")


def test_another_dtype_of_the_same_size_keeps_shape_and_strides(memory: Any) -> None:
    source = TypedArray(memory, shape=(3, 2), strides=(4, 2))
    tensor = to_dlpack_tensor(source, dtype="int32")
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((3, 2), (4, 2), np.dtype("int32"))


@pytest.mark.parametrize(("shape", "strides"), [((2, 3), None), ((2, 3), (3, 1)), ((6, 1), (1, 9))])
def test_another_size_of_a_compact_array_is_one_dimension(
    memory: Any, shape: Any, strides: Any
) -> None:
    source = TypedArray(memory, shape=shape, strides=strides, offset=2)
    tensor = to_dlpack_tensor(source, dtype="u2")
    assert (tensor.shape, tensor.data) == ((12,), address_of(memory) + 8)
    shifted = to_dlpack_tensor(source, byte_offset=4)
    assert (shifted.shape, shifted.data) == ((5,), address_of(memory) + 12)


def test_another_size_of_an_array_with_gaps_needs_a_shape(memory: Any) -> None:
    source = TypedArray(memory, shape=(3, 2), strides=(4, 1))
    with wrong_argument(ValueError, "shape", "not compact"):
        to_dlpack_tensor(source, dtype="u2")
    assert to_dlpack_tensor(source, dtype="u2", shape=20).shape == (20,)


def test_new_strides_alone_read_the_same_shape(memory: Any) -> None:
    source = TypedArray(memory, shape=(3, 4))
    assert to_dlpack_tensor(source, strides=(1, 3)).strides == (1, 3)


@pytest.mark.parametrize("keywords", [{}, {"dtype": "f8"}, {"copy": True}, {"copy": False}])
def test_numpy_makes_no_array_of_a_tensor_by_itself(memory: Any, keywords: dict[str, Any]) -> None:
    tensor = to_dlpack_tensor(memory, shape=(3, 4), dtype="f4")
    with pytest.raises(TypeError, match=r"^DLPackTensor: expected .*, found NumPy.*; .*numpy\(\)"):
        np.array(tensor, **keywords)
    assert np.from_dlpack(tensor, device="cpu").shape == tensor.numpy().shape == (3, 4)


def test_an_interface_that_lies_about_its_shape_is_refused(unpooled: Any) -> None:
    with refused("out_of_bounds", "shape", expected="48 bytes", found="bytes 0 to 51"):
        to_dlpack_tensor(TypedArray(unpooled, shape=(13,)))
    with refused("out_of_bounds", "shape", expected="48 bytes", found="bytes 4 to 51"):
        to_dlpack_tensor(TypedArray(unpooled, offset=1))


@pytest.mark.parametrize("key", ["data", "shape", "typestr", "syclobj"])
def test_an_interface_without_a_field_is_refused_by_name(memory: Any, key: str) -> None:
    source = TypedArray(memory)
    del source.interface[key]
    with wrong_argument(ValueError, "__sycl_usm_array_interface__", f"none of '{key}'"):
        to_dlpack_tensor(source)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data", None),
        ("data", 5),
        ("data", (1, 2, 3)),
        ("data", ("0", False)),
        ("data", (1.5, False)),
        ("data", (-8, False)),
        ("data", (2**64, False)),
        ("data", (2**80, False)),
        ("data", (8, np.zeros(2))),
        ("shape", None),
        ("shape", 1.5),
        ("shape", ("a",)),
        ("strides", "ab"),
        ("strides", (1, 2)),
        ("strides", ()),
        ("typestr", None),
        ("typestr", 4),
        ("typestr", b"<f4"),
        ("typestr", ">f4"),
        ("typestr", "<f16"),
        ("typestr", "|O8"),
        ("typestr", "f4,f4"),
        ("typestr", "no such"),
        ("typestr", "i4,,"),
        ("offset", 1.5),
        ("offset", "1"),
    ],
)
def test_a_field_of_nonsense_is_refused(memory: Any, key: str, value: Any) -> None:
    with wrong_argument(ValueError, "__sycl_usm_array_interface__"):
        to_dlpack_tensor(TypedArray(memory, **{key: value}))


@pytest.mark.parametrize(
    ("key", "value"),
    [("data", None), ("data", 8), ("data", (None, False)), ("offset", None), ("offset", 2**70)],
)
def test_a_field_of_nonsense_is_named(memory: Any, key: str, value: Any) -> None:
    with wrong_argument(ValueError, "__sycl_usm_array_interface__", f"found the {key} {value}"):
        to_dlpack_tensor(TypedArray(memory, **{key: value}))


@pytest.mark.parametrize("version", [0, 2, -1, None, "1", (1,), 2**40])
def test_another_version_of_the_interface_is_refused_as_dpctl_refuses_it(
    memory: Any, version: Any
) -> None:
    array = TypedArray(memory, version=version)
    found = f"version 1 and syclobj as dpctl documents them, found the version {version!r}"
    with wrong_argument(ValueError, "__sycl_usm_array_interface__", found):
        to_dlpack_tensor(array)
    with pytest.raises((ValueError, TypeError, OverflowError)):
        dpctl_memory.as_usm_memory(array)


def test_an_interface_without_a_version_is_refused_as_dpctl_refuses_it(memory: Any) -> None:
    array = TypedArray(memory)
    del array.interface["version"]
    with wrong_argument(ValueError, "__sycl_usm_array_interface__", "found none of 'version'"):
        to_dlpack_tensor(array)
    with pytest.raises(ValueError, match="version"):
        dpctl_memory.as_usm_memory(array)


@pytest.mark.parametrize("number", [10**5000, -(10**5000)], ids=["high", "low"])
@pytest.mark.parametrize("keyword", ["shape", "strides", "byte_offset"])
def test_a_number_of_more_digits_than_python_writes_is_out_of_range(
    memory: Any, keyword: str, number: int
) -> None:
    keywords: dict[str, Any] = {keyword: number if keyword == "byte_offset" else (number,)}
    if keyword == "strides":
        keywords["shape"] = (1,)
    field = keyword if keyword == "byte_offset" else f"{keyword}[0]"
    if keyword == "byte_offset" and number < 0:
        field = "shape[0]"  # of all bytes behind it
    with wrong_argument(ValueError, field, "of 1661"):
        to_dlpack_tensor(memory, **keywords)
    if keyword == "byte_offset":
        with wrong_argument(ValueError, "byte_offset", "an int of 1661"):
            to_dlpack_tensor(memory, shape=1, byte_offset=number)
    with wrong_argument(ValueError, "__sycl_usm_array_interface__", "of 1661"):
        to_dlpack_tensor(TypedArray(memory, data=(number, False)))


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("shape[0]", {"shape": (-1,)}),
        ("shape[0]", {"shape": (2**70,)}),
        ("strides[0]", {"strides": (2**70,)}),
        ("__sycl_usm_array_interface__", {"offset": 2**70}),
        ("__sycl_usm_array_interface__", {"offset": -(2**62)}),
        ("syclobj", {"syclobj": "no:such:9"}),
        ("syclobj", {"syclobj": ""}),
    ],
)
def test_a_value_out_of_range_in_the_interface_is_refused(
    memory: Any, field: str, changes: dict[str, Any]
) -> None:
    with wrong_argument(ValueError, field):
        to_dlpack_tensor(TypedArray(memory, **changes))


@pytest.mark.parametrize("syclobj", [None, 5, b"cpu", object(), dpctl.SyclQueue])
def test_a_syclobj_of_another_type_is_a_type_error(memory: Any, syclobj: Any) -> None:
    with wrong_argument(TypeError, "syclobj"):
        to_dlpack_tensor(TypedArray(memory, syclobj=syclobj))


@pytest.mark.parametrize("obj", [None, 5, b"abc", np.zeros(3), object(), TypedArray])
def test_an_object_without_usm_is_a_type_error(obj: Any) -> None:
    with wrong_argument(TypeError, "obj", "__sycl_usm_array_interface__"):
        to_dlpack_tensor(obj)


@pytest.mark.parametrize("interface", [None, [], ("data", 1), 5])
def test_an_interface_that_is_no_dictionary_is_a_type_error(memory: Any, interface: Any) -> None:
    source = TypedArray(memory)
    source.interface = interface
    with wrong_argument(TypeError, "obj"):
        to_dlpack_tensor(source)


@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyboardInterrupt, TypeError])
def test_an_error_of_the_interface_itself_reaches_the_caller(error: type[BaseException]) -> None:
    class Raising:
        @property
        def __sycl_usm_array_interface__(self) -> Any:
            raise error("by the object")

    with pytest.raises(error, match="by the object"):
        to_dlpack_tensor(Raising())


# --- memory of no or of another context


def test_memory_of_another_context_is_refused(usm_type: str, foreign_queue: Any) -> None:
    with refused(
        "context_not_default",
        "context",
        expected="the default context of the platform",
        found="another one, of 1 device(s)",
        remedy="allocate with a queue made from a root device alone",
        binding=True,
    ):
        to_dlpack_tensor(allocate(usm_type, 48, foreign_queue))


def test_memory_of_an_opencl_sub_device_is_refused_for_its_context(queue: Any) -> None:
    part = queue.sycl_device.create_sub_devices(partition=1)[0]
    with refused("context_not_default", "context", binding=True):
        to_dlpack_tensor(allocate("device", 48, kept(dpctl.SyclQueue(part))))


def test_memory_that_the_named_context_does_not_know_is_refused_on_opencl(
    memory: Any, queue: Any, foreign_queue: Any
) -> None:
    """Level Zero's driver answers for all contexts of a platform."""
    hidden = TypedArray(allocate("device", 48, foreign_queue), syclobj=queue)
    with refused("pointer_unknown", "data", expected="the given context", binding=True):
        to_dlpack_tensor(hidden)
    with refused("pointer_unknown", "data", expected="the given context", binding=True):
        to_dlpack_tensor(TypedArray(memory, syclobj=foreign_queue))


def test_memory_that_is_no_usm_is_refused(memory: Any) -> None:
    heap = ctypes.create_string_buffer(4096)
    array = np.zeros(4096, np.uint8)
    function = ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p).value
    for address in (ctypes.addressof(heap), array.ctypes.data, function, id(heap), 16, 2**64 - 64):
        assert address is not None
        aligned = address // 16 * 16
        with refused("pointer_unknown", "data", found="unknown to it", binding=True):
            to_dlpack_tensor(TypedArray(memory, data=(aligned, False), shape=(4,)))


def test_freed_memory_is_refused(usm_type: str, queue: Any, memory: Any) -> None:
    freed = allocate(usm_type, UNPOOLED, queue)
    address = address_of(freed)
    source = TypedArray(memory, data=(address, False))
    assert to_dlpack_tensor(TypedArray(freed)).data == address
    del freed
    gc.collect()
    with refused("pointer_unknown", "data", binding=True):
        to_dlpack_tensor(source)


def test_null_is_refused_unless_there_are_no_elements(memory: Any) -> None:
    with refused("data_null", "data", found="null"):
        to_dlpack_tensor(TypedArray(memory, data=(0, False)))
    empty = to_dlpack_tensor(TypedArray(memory, data=(0, False), shape=(3, 0)))
    assert (empty.data, empty.shape, empty.usm_type) == (0, (3, 0), "unknown")


def test_a_queue_on_the_memorys_device_is_taken(memory: Any, queue: Any) -> None:
    another = dpctl.SyclQueue(queue.sycl_device, property="in_order")
    for place in (queue, another, queue._get_capsule()):
        assert to_dlpack_tensor(memory, queue=place).device == (14, 0)


def refuse_queue(memory: Any, wrong: Any) -> None:
    """Require that a queue is refused for its context."""
    for shape in (12, 0):
        with refused(
            "context_not_default",
            "queue",
            expected="one of the default context of its platform",
            found="one of another context",
            binding=True,
        ):
            to_dlpack_tensor(memory, shape=shape, queue=wrong)


def test_a_queue_of_another_context_is_refused(memory: Any, foreign_queue: Any) -> None:
    refuse_queue(memory, foreign_queue)


def test_a_queue_of_an_opencl_sub_device_is_refused(memory: Any, queue: Any) -> None:
    part = queue.sycl_device.create_sub_devices(partition=1)[0]
    refuse_queue(memory, dpctl.SyclQueue(part))


# --- lifetime


def test_a_tensor_keeps_its_owner_alive(memory: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    tensor = to_dlpack_tensor(owner)
    del owner
    gc.collect()
    assert gone() is not None
    assert tensor.data == address_of(memory)
    del tensor
    assert gone() is None


def test_a_refused_owner_is_not_kept(unpooled: Any) -> None:
    owner = TypedArray(unpooled, shape=(13,))
    gone = weakref.ref(owner)
    with refused("out_of_bounds", "shape"):
        to_dlpack_tensor(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_a_cycle_through_the_owner_is_collected(memory: Any) -> None:
    owner = TypedArray(memory)
    owner.tensor = to_dlpack_tensor(owner)
    gone, tensor_gone = weakref.ref(owner), weakref.ref(owner.tensor)
    assert gc.is_tracked(owner.tensor)
    assert owner in gc.get_referents(owner.tensor)
    del owner
    gc.collect()
    assert gone() is None
    assert tensor_gone() is None


def test_a_tensor_can_be_referred_to_weakly(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    called: list[Any] = []
    reference = weakref.ref(tensor, called.append)
    assert reference() is tensor
    del tensor
    assert reference() is None
    assert called == [reference]


def test_a_tensor_that_the_collector_has_cleared_describes_nothing(memory: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    tensor = to_dlpack_tensor(owner)
    slot = ctypes.pythonapi.PyType_GetSlot
    slot.restype, slot.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    py_tp_clear = 51
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(slot(DLPackTensor, py_tp_clear))(tensor)
    del owner
    assert gone() is None
    with refused("tensor_released", "data", found="collected"):
        tensor.__dlpack__()
    with refused("tensor_released", "data"):
        tensor.__sycl_usm_array_interface__  # noqa: B018
    with refused("tensor_released", "data"):
        usm_dlpack.from_dlpack(tensor)


@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_packed_elements_read_as_bytes_are_all_the_bytes_that_they_touch(
    memory: Any, count: int, size: int
) -> None:
    packed = to_dlpack_tensor(memory, shape=count, dtype="float4_e2m1fn")
    assert to_dlpack_tensor(packed, dtype="uint8").shape == (size,)
