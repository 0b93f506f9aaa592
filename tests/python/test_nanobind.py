# SPDX-License-Identifier: Apache-2.0
"""Functions of a nanobind extension take and return views of USM and SYCL objects."""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import pickle
import re
import shlex
import subprocess
import types
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import tvm_ffi
import usm_dlpack
from c_exchange_api import DLPackExchangeAPI, ExchangeAPI
from capsules import (
    IS_COPIED,
    VERSIONED,
    ForeignArray,
    ForeignTensor,
    OldArray,
    name_of,
    new_capsule,
)
from counted_deleters import CountedDeleters
from dpctl import memory as usm
from memory_sources import TypedArray, address_of, allocate
from pending_work import FINISHED, PendingFill
from refusals import check_refusal, refused
from test_types import checked_by
from threads_at_once import THREADS, at_once
from usm_dlpack import ArgumentError, ConversionError, from_dlpack, to_dlpack_tensor
from usm_dlpack._producers import _read_signature


@pytest.fixture(scope="module")
def ext() -> Any:
    """Return the extension."""
    return extension_under_test.load()


@pytest.fixture
def floats(queue: Any) -> Any:
    """Return twelve float32 in device USM."""
    return to_dlpack_tensor(usm.MemoryUSMDevice(48, queue=queue), dtype="float32")


@pytest.fixture
def shared(queue: Any) -> Any:
    """Return the float32 0, 1, 2 and 3 in shared USM."""
    return shared_floats(queue, [0, 1, 2, 3])


def shared_floats(queue: Any, values: Any) -> Any:
    """Return float32 in shared USM."""
    memory = usm.MemoryUSMShared(4 * len(values), queue=queue)
    memory.copy_from_host(np.array(values, np.float32).view(np.uint8))
    return to_dlpack_tensor(memory, dtype="float32")


def refused_call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> ArgumentError:
    """Return the error of a call that no overload takes."""
    with pytest.raises(ArgumentError) as caught:
        function(*arguments, **keywords)
    assert isinstance(caught.value, TypeError)
    return caught.value


# --- What is an array -----------------------------------------------------------------------------


def test_a_tensor_of_this_package_is_a_view(ext: Any, floats: Any) -> None:
    assert ext.rank_one(floats) == (floats.data, (12,), (1,))


def test_memory_of_dpctl_is_a_view_of_bytes(ext: Any, memory: Any) -> None:
    assert ext.small_index(memory) == (address_of(memory), (48,), (1,))


def test_an_array_that_says_only_its_interface_is_a_view(ext: Any, memory: Any) -> None:
    array = TypedArray(memory, shape=(3, 4))
    assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1))


def test_an_array_with_the_exchange_api_is_a_view(ext: Any, floats: Any) -> None:
    assert ext.rank_one(tvm_ffi.from_dlpack(floats)) == (floats.data, (12,), (1,))


def test_an_array_of_nanobind_is_a_view(ext: Any, floats: Any) -> None:
    matrix = to_dlpack_tensor(floats, shape=(3, 4))
    assert ext.rank_two_const(ext.to_ndarray(matrix)) == (floats.data, (3, 4), (4, 1))


def test_types_of_nanobind_take_the_keywords_of_their_signatures(ext: Any, queue: Any) -> None:
    for kind, keyword in ((ext.TakerOfStreams, "stream"), (ext.TakerOfVersions, "max_version")):
        assert _read_signature(kind.__dlpack__) == {keyword}
        for wanted in ({}, {"copy": True}):
            made = from_dlpack(kind(), device=queue, **wanted)
            assert made.numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("legacy", [True, False])
def test_a_foreign_capsule_lives_as_long_as_the_call(ext: Any, memory: Any, legacy: bool) -> None:
    foreign = ForeignTensor(address_of(memory), legacy=legacy)
    array = ForeignArray(foreign)
    assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1))
    assert foreign.deletions == 0
    array.given = None
    assert foreign.deletions == 1


def test_an_array_is_asked_for_the_newest_version_and_nothing_else(ext: Any, memory: Any) -> None:
    array = ForeignArray(ForeignTensor(address_of(memory)))
    ext.rank_two_const(array)
    assert array.asked == [{"max_version": (1, 3)}]


def test_an_array_from_before_all_keywords_is_a_view(ext: Any, memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), legacy=True)
    assert ext.rank_two_const(OldArray(foreign.capsule()))[1] == (3, 4)


@pytest.mark.parametrize("thing", [None, 1, "x", object(), [1.0], int, ForeignArray])
def test_what_is_no_array_is_no_argument(ext: Any, thing: Any) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.rank_one(thing)


class Proxy:
    """An object that forwards what it is asked for, by a function, and counts it."""

    def __init__(self, forward: Callable[[str], Any]) -> None:
        self.forward = forward
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name == "asked" or not name.startswith("__dlpack"):
            raise AttributeError(name)
        self.asked.append(name)
        return self.forward(name)


def test_an_array_may_have_the_protocol_by_itself_alone(ext: Any, floats: Any) -> None:
    holder = types.SimpleNamespace(
        __dlpack__=floats.__dlpack__, __dlpack_device__=floats.__dlpack_device__
    )
    proxy = Proxy(lambda name: getattr(floats, name))
    for array in (holder, proxy):
        assert from_dlpack(array).data == floats.data
        assert ext.rank_one(array) == ext.to_owned(array) == (floats.data, (12,), (1,))
        assert ext.kind_of(array) == "device"
        assert ext.kind_of_all([array, floats]) == "device"
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.rank_one(types.SimpleNamespace(__dlpack__=None))


def test_objects_of_other_overloads_are_not_asked_for_the_protocol(ext: Any, floats: Any) -> None:
    def make(base: type) -> Any:
        asked: list[str] = []

        class Asked(base):  # type: ignore[misc]
            def __getattribute__(self, name: str) -> Any:
                asked.append(name)
                raise KeyError(name)

        return Asked, asked

    for base in (int, str, bytes, list, tuple, dict, BaseException, type):
        kind, asked = make(base)
        thing = kind("Made", (), {}) if base is type else kind()
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ext.rank_one(thing)
        assert "__dlpack__" not in asked


def test_what_an_attribute_raises_makes_no_array_unless_it_is_an_interrupt(ext: Any) -> None:
    def fail(error: type[BaseException]) -> Any:
        raise error

    for error in (AttributeError, KeyError, RuntimeError, RecursionError):
        proxy = Proxy(lambda _, error=error: fail(error))
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ext.rank_one(proxy)
        assert proxy.asked == ["__dlpack__"]
    with pytest.raises(KeyboardInterrupt):
        ext.rank_one(Proxy(lambda _: fail(KeyboardInterrupt)))


def test_an_object_that_has_every_attribute_is_no_array(ext: Any) -> None:
    called: list[Any] = []
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.rank_one(Proxy(lambda _: lambda **keywords: called.append(keywords)))
    assert called == []


def test_a_capsule_is_no_array(ext: Any, floats: Any) -> None:
    capsule = floats.__dlpack__(max_version=(1, 3))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.rank_one(capsule)
    with pytest.raises(TypeError, match="x: expected an array with __dlpack__"):
        from_dlpack(capsule)
    assert name_of(capsule) == VERSIONED


def test_what_an_array_raises_is_raised(ext: Any) -> None:
    class Failing:
        def __dlpack__(self, **_: Any) -> Any:
            raise KeyError("mine")

        def __dlpack_device__(self) -> Any:
            return (14, 0)

    with pytest.raises(KeyError, match="mine"):
        ext.rank_one(Failing())
    with pytest.raises(KeyError, match="mine"):
        ext.unexplained(Failing())


def test_a_capsule_that_is_none_is_refused(ext: Any) -> None:
    with refused("capsule_unusable", "capsule"):
        ext.rank_one(OldArray("no capsule"))


# --- What a view's type asks ----------------------------------------------------------------------


def test_strides_reach_the_layout(ext: Any, floats: Any) -> None:
    columns = to_dlpack_tensor(floats, shape=(3, 4), strides=(1, 3))
    assert ext.left(columns) == (floats.data, (3, 4), (1, 3))
    back = to_dlpack_tensor(floats, shape=(3, 4), strides=(-4, 1), byte_offset=32)
    # The handle of this layout is the lowest address.
    assert ext.relaxed(back) == (floats.data, (3, 4), (-4, 1))


def test_rank_zero_is_a_view(ext: Any, memory: Any) -> None:
    assert ext.scalar(to_dlpack_tensor(memory, shape=(), dtype="float64"))[1:] == ((), ())


def test_an_empty_array_is_a_view(ext: Any, memory: Any) -> None:
    assert ext.rank_one(to_dlpack_tensor(memory, shape=(0,), dtype="float32"))[1] == (0,)


@pytest.mark.parametrize(
    ("function", "shape", "strides", "dtype"),
    [
        ("rank_one", (12,), None, "int32"),
        ("rank_one", (3, 4), None, "float32"),
        ("rank_one", (3,), (2,), "float32"),
        ("left", (3, 4), None, "float32"),
        ("static_extent", (3, 4), None, "float32"),
    ],
)
def test_another_type_of_view_is_for_the_next_overload(
    ext: Any, memory: Any, function: str, shape: Any, strides: Any, dtype: str
) -> None:
    array = to_dlpack_tensor(memory, shape=shape, strides=strides, dtype=dtype)
    with pytest.raises(TypeError, match="incompatible function arguments") as caught:
        getattr(ext, function)(array)
    assert type(caught.value) is TypeError


def test_an_index_type_that_is_too_small_is_for_the_next_overload(ext: Any, queue: Any) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.small_index(usm.MemoryUSMDevice(128, queue=queue))


def test_overloads_are_chosen_by_dtype(ext: Any, queue: Any, memory: Any) -> None:
    assert ext.fill(queue, to_dlpack_tensor(memory, dtype="float32"), 2) == "float32"
    assert np.all(to_dlpack_tensor(memory, dtype="float32").numpy() == 2)
    assert ext.fill(queue, to_dlpack_tensor(memory, dtype="int32"), 3) == "int32"
    assert np.all(to_dlpack_tensor(memory, dtype="int32").numpy() == 3)


# --- What is always raised ------------------------------------------------------------------------


def test_host_memory_is_refused(ext: Any) -> None:
    with refused("device_type_unsupported", "device.device_type", found="kDLCPU (1)"):
        ext.rank_one(np.zeros(3, np.float32))


def test_host_memory_of_another_dtype_is_for_the_next_overload(ext: Any) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.rank_one(np.zeros(3))


def test_another_device_id_is_refused(ext: Any, memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), shape=(12,))
    foreign.tensor.device_id = 7
    array = ForeignArray(foreign)
    with refused("device_id_out_of_range", "device.device_id", found="7"):
        ext.rank_one(array)


def test_memory_of_another_context_is_refused(ext: Any, foreign_queue: Any) -> None:
    array = TypedArray(allocate("device", 48, foreign_queue))
    with refused("context_not_default", "context", binding=True):
        ext.rank_one(array)


def test_memory_of_another_context_is_refused_where_its_array_says_the_queue(
    ext: Any, foreign_queue: Any
) -> None:
    """By the driver, which does not know it, or where that knows all contexts, by the queue."""

    class Working(ForeignArray):
        sycl_queue = foreign_queue

    hidden = allocate("device", 48, foreign_queue)
    code, field = ("context_not_default", "context")
    if foreign_queue.backend == dpctl.backend_type.opencl:
        code, field = ("pointer_unknown", "data")
    for take in (ext.rank_one, ext.to_owned):
        array = Working(ForeignTensor(address_of(hidden), shape=(12,)))
        with refused(code, field, expected="the default context", binding=True):
            take(array)


def test_an_export_that_fails_is_tried_by_the_interface(ext: Any, memory: Any) -> None:
    class Refusing(TypedArray):
        def __dlpack__(self, **_: Any) -> Any:
            raise ValueError("no")

    assert ext.rank_one(Refusing(memory)) == (address_of(memory), (12,), (1,))


def test_another_kind_is_refused(ext: Any, shared: Any, floats: Any) -> None:
    with refused("usm_type_not_accepted", "data", expected="device", found="shared"):
        ext.device_only(shared)
    array = ForeignArray(ForeignTensor(shared.data, shape=(4,)))
    with refused("usm_type_not_accepted", "data", expected="device", found="shared"):
        ext.device_only(array)
    assert ext.device_only(floats)[0] == floats.data


def test_an_empty_array_of_another_kind_is_a_view(ext: Any, shared: Any) -> None:
    empty = to_dlpack_tensor(shared, shape=(0,))
    assert empty.usm_type == "shared"
    foreign = ForeignArray(ForeignTensor(shared.data, shape=(0,)))
    for array in (empty, foreign):
        assert ext.device_only(array) == (shared.data, (0,), (1,))
    assert ext.device_given_back(empty).usm_type == "shared"


def test_a_view_that_reaches_out_is_refused(ext: Any, unpooled: Any) -> None:
    array = ForeignArray(ForeignTensor(address_of(unpooled), shape=(13,)))
    with refused("out_of_bounds", "shape", found="bytes 0 to 51"):
        ext.rank_one(array)


def test_a_read_only_array_needs_const_elements(ext: Any, queue: Any) -> None:
    constant = ext.readonly_result(queue, ext.Counter())
    with refused("read_only", "flags"):
        ext.rank_one(constant)
    assert ext.maybe(constant) == 3
    foreign = ForeignTensor(constant.data, shape=(3,))
    foreign.managed.flags = 1
    array = ForeignArray(foreign)
    with refused("read_only", "flags"):
        ext.rank_one(array)
    assert ext.maybe(array) == 3


def test_a_copy_that_an_extension_keeps_is_none_for_who_gets_it_next(ext: Any, queue: Any) -> None:
    floats = shared_floats(queue, [5, 6, 7])
    foreign = ForeignTensor(floats.data, shape=(3,))
    foreign.managed.flags = IS_COPIED
    ext.keep(ForeignArray(foreign))
    assert ext.kept_flags() == 0
    ext.drop_on_a_thread()


def test_what_is_always_raised_ends_the_search_for_an_overload(ext: Any, queue: Any) -> None:
    with refused("device_type_unsupported", "device.device_type"):
        ext.fill(queue, np.zeros(3, np.float32), 1)


def test_another_argument_that_does_not_fit_comes_first(ext: Any) -> None:
    with pytest.raises(ArgumentError):
        ext.fill("no queue", np.zeros(3, np.float32), 1)


@pytest.mark.parametrize("legacy", [True, False])
def test_a_refused_array_keeps_its_memory(ext: Any, unpooled: Any, legacy: bool) -> None:
    foreign = ForeignTensor(address_of(unpooled), shape=(13,), legacy=legacy)
    array = ForeignArray(foreign)
    with refused("out_of_bounds", "shape"):
        ext.rank_one(array)
    assert name_of(array.given) == foreign.name
    assert foreign.deletions == 0
    array.given = None
    assert foreign.deletions == 1


def test_a_tensor_of_another_major_version_is_only_deleted(ext: Any, memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.major = 2
    array = ForeignArray(foreign)
    with refused("version_unsupported", "version.major"):
        ext.rank_one(array)
    array.given = None
    assert foreign.deletions == 1


# --- The last overload ----------------------------------------------------------------------------


def test_the_last_overload_says_why(ext: Any, queue: Any, memory: Any) -> None:
    array = to_dlpack_tensor(memory, dtype="float64")
    error = refused_call(ext.fill, queue, array, 1)
    first, second = error.reasons
    check_refusal(first, "dtype_mismatch", "dtype", expected="float32", found="float64")
    check_refusal(second, "dtype_mismatch", "dtype", expected="int32", found="float64")
    assert str(error) == f"fill: argument 2: {first}\nfill: argument 2: {second}"
    assert (error.code, error.field, error.expected) == (first.code, first.field, first.expected)


def test_the_last_overload_names_keywords(ext: Any, queue: Any, floats: Any) -> None:
    error = refused_call(ext.fill, queue, value=1, x=to_dlpack_tensor(floats, shape=(3, 4)))
    assert str(error).startswith("fill: argument x: ndim: expected 1 for the view's rank, found 2")
    assert [reason.code for reason in error.reasons] == ["rank_mismatch", "dtype_mismatch"]


def test_the_last_overload_has_no_reason_of_an_argument_that_is_no_view(
    ext: Any, floats: Any
) -> None:
    error = refused_call(ext.fill, "q", floats, value=1)
    assert error.reasons == ()
    assert str(error) == (
        "fill: expected arguments of one of its signatures, "
        "found (str, DLPackTensor, value=int); see help(fill)"
    )


def test_an_argument_that_an_overload_took_is_not_blamed(
    ext: Any, queue: Any, floats: Any, shared: Any
) -> None:
    assert refused_call(ext.fill, queue, floats, "x").reasons == ()
    assert refused_call(ext.fill, queue, value="x", x=floats).reasons == ()
    assert (ext.kind_of(floats), ext.kind_of(shared)) == ("device", "shared")
    assert str(refused_call(ext.kind_of, shared, "x")) == (
        "kind_of: expected arguments of one of its signatures, "
        "found (DLPackTensor, str); see help(kind_of)"
    )
    # In two places: one of them may be the fault.
    assert len(refused_call(ext.fill, queue, floats, floats).reasons) == 1
    assert len(refused_call(ext.fill, queue, floats, [floats]).reasons) == 1


def test_an_array_in_a_container_that_an_overload_took_is_not_blamed(
    ext: Any, floats: Any, shared: Any, memory: Any
) -> None:
    class Sequence:
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> Any:
            return [shared][index]

    integers = to_dlpack_tensor(memory, dtype="int32")
    assert (ext.kind_of_all([floats]), ext.kind_of_all((shared,))) == ("device", "shared")
    assert refused_call(ext.kind_of_all, [shared], "x").reasons == ()
    assert refused_call(ext.kind_of_all, arrays=(shared,), n="x").reasons == ()
    assert refused_call(ext.kind_of_all, Sequence(), "x").reasons == ()
    assert ext.count_variants([floats, integers]) == 2
    assert str(refused_call(ext.count_variants, [floats, integers], "x")) == (
        "count_variants: expected arguments of one of its signatures, "
        "found (list, str); see help(count_variants)"
    )
    # What takes one element of a list takes each.
    assert refused_call(ext.count_variants, [integers, integers], "x").reasons == ()
    # An element that none took is the fault, and no other.
    doubles = to_dlpack_tensor(memory, dtype="float64")
    error = refused_call(ext.count_variants, [integers, doubles])
    assert [reason.found.split()[0] for reason in error.reasons] == ["float64", "float64"]
    with refused("device_type_unsupported", "device.device_type"):
        ext.kind_of_all([shared, np.zeros(3, np.float32)])
    # In two places of a tuple, or in two arguments: one of them may be the fault.
    assert len(refused_call(ext.pair_of, (floats, floats)).reasons) == 1
    numbers = [integers]
    for other in (integers, [integers], numbers):
        (reason,) = refused_call(ext.count_variants, numbers, other).reasons
        check_refusal(reason, "dtype_mismatch", "dtype", expected="float32", found="int32")


def test_an_interrupt_is_raised_also_where_the_array_is_taken_after_it(
    ext: Any, shared: Any
) -> None:
    def interrupt_once() -> None:
        array.act = int
        raise KeyboardInterrupt

    array = Calling(shared, interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        ext.kind_of(array, "x")


def test_reasons_are_those_of_the_call(ext: Any, queue: Any, floats: Any, memory: Any) -> None:
    wrong = to_dlpack_tensor(memory, dtype="float64")
    refused_call(ext.fill, queue, wrong, 1)
    with pytest.raises(TypeError, match="incompatible"):
        ext.rank_one(wrong)
    # The same object, refused for another reason than before.
    assert refused_call(ext.fill, None, wrong, 1).reasons == ()
    assert ext.fill(queue, floats, 1) == "float32"


def test_implicit_conversions_come_before_the_last_overload(
    ext: Any, queue: Any, floats: Any
) -> None:
    assert ext.fill(queue, floats, True) == "float32"  # an int for a float


def test_a_method_has_a_last_overload(ext: Any, shared: Any, memory: Any) -> None:
    sums = ext.RowSums()
    sums.add(shared)
    assert sums.total == 6
    error = refused_call(sums.add, to_dlpack_tensor(memory, dtype="int8"))
    assert str(error).startswith("add: argument 1: dtype: expected float32")
    with refused("usm_type_not_accepted", "data"):
        sums.add(to_dlpack_tensor(memory, dtype="float32"))


def test_a_static_method_has_a_last_overload(ext: Any, shared: Any, memory: Any) -> None:
    assert ext.RowSums.of(shared) == ext.RowSums().of(shared) == 6
    for function in (ext.RowSums.of, ext.RowSums().of):
        error = refused_call(function, to_dlpack_tensor(memory, dtype="int8"))
        assert str(error).startswith("of: argument 1: dtype: expected float32")
    assert "of(*, _: typing.NoReturn)" in ext.RowSums.of.__doc__


def test_reasons_reach_out_of_containers_in_containers(ext: Any, memory: Any) -> None:
    good, bad = (to_dlpack_tensor(memory, dtype=dtype) for dtype in ("float32", "int32"))

    def first_line(*arguments: Any) -> str:
        error = refused_call(ext.explained_nested, *arguments)
        assert {reason.code for reason in error.reasons} == {"dtype_mismatch"}
        return str(error).split(": expected")[0]

    assert ext.explained_nested([[good], []], {"a": good}) == 3
    assert first_line([[good], [good, bad]]) == "explained_nested: argument 1: dtype"
    assert first_line(([good], (bad,))) == "explained_nested: argument 1: dtype"
    assert first_line([], {"a": good, "b": bad}) == "explained_nested: argument 2: dtype"
    assert first_line([[bad]], {"b": bad}) == "explained_nested: argument 1 or 2: dtype"
    endless: list[Any] = [[bad]]
    endless.append(endless)
    assert first_line(endless) == "explained_nested: argument 1: dtype"


def test_a_reason_without_a_place_is_told(ext: Any, memory: Any) -> None:
    class Numbers:
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> Any:
            if index == 0:
                return [to_dlpack_tensor(memory, dtype="int32")]
            raise IndexError

    error = refused_call(ext.explained_nested, Numbers())
    assert str(error).startswith("explained_nested: an argument: dtype: expected float32")


def test_an_argument_error_is_pickled(ext: Any, queue: Any, memory: Any) -> None:
    error = refused_call(ext.fill, queue, to_dlpack_tensor(memory, dtype="float64"), 1)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ArgumentError
    assert str(again) == str(error)
    assert [str(reason) for reason in again.reasons] == [str(reason) for reason in error.reasons]


class Calling:
    """An array whose ``__dlpack__`` runs something first."""

    def __init__(self, tensor: Any, act: Callable[[], object]) -> None:
        self.tensor = tensor
        self.act = act

    def __dlpack__(self, **keywords: Any) -> Any:
        """Act, then hand out the tensor."""
        self.act()
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        """Return the tensor's device."""
        return self.tensor.__dlpack_device__()

    @property
    def sycl_queue(self) -> Any:
        """The tensor's queue."""
        return self.tensor.sycl_queue


def test_a_list_that_calls_again_while_reasons_are_read(ext: Any, memory: Any) -> None:
    bad = to_dlpack_tensor(memory, dtype="int32")
    read = 0

    class CallingList(list[Any]):
        def __iter__(self) -> Any:
            nonlocal read
            read += 1
            if read == 3:
                refused_call(ext.explained_elements, [bad])
            return super().__iter__()

    error = refused_call(ext.explained_elements, CallingList([bad]))
    assert [reason.code for reason in error.reasons] == ["dtype_mismatch"]


def test_reasons_of_a_call_within_another_are_its_own(ext: Any, queue: Any, memory: Any) -> None:
    inner: list[ArgumentError] = []
    whole, half, number = (to_dlpack_tensor(memory, dtype=d) for d in ("f8", "f2", "f4"))

    def act() -> None:
        if not inner and array.tensor is whole:
            array.tensor = half
            inner.append(refused_call(ext.explained_elements, [array, 3]))
            array.tensor = number

    array = Calling(whole, act)
    ext.fill(queue, array, 1)
    (reason,) = inner[0].reasons
    check_refusal(reason, "dtype_mismatch", "dtype", found="float16")


def test_an_array_that_drops_itself_lives_as_long_as_it_is_asked(ext: Any, shared: Any) -> None:
    arrays: list[Any] = []
    arrays.append(Calling(shared, arrays.clear))
    assert ext.first_elements(arrays) == [0.0]


def test_an_interrupt_is_no_reason(ext: Any, queue: Any, shared: Any) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    array = Calling(shared, interrupt)
    for call in (
        lambda: ext.rank_one(array),
        lambda: ext.fill(queue, array, "x"),
        lambda: ext.explained_elements([array]),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()


def test_one_object_in_two_places_is_blamed_once(ext: Any, memory: Any) -> None:
    bad = to_dlpack_tensor(memory, dtype="float64")
    error = refused_call(ext.fill, bad, bad, 1)
    assert error.reasons == ()  # the first parameter, a queue, refused it before
    error = refused_call(ext.explained_elements, [bad, bad])
    assert [reason.code for reason in error.reasons] == ["dtype_mismatch"]


def test_a_capsule_that_its_producer_keeps_is_taken_for_the_call(ext: Any, shared: Any) -> None:
    foreign = ForeignTensor(shared.data, shape=(4,))
    array = OldArray(foreign.capsule())
    names: list[Any] = []

    def steal() -> None:
        names.append(name_of(array.answer))
        with refused("capsule_unusable", "capsule"):
            from_dlpack(array)

    assert ext.first_elements([array, Calling(shared, steal)]) == [0.0, 0.0]
    assert names == [b"used_dltensor_versioned"]
    assert name_of(array.answer) == VERSIONED
    ext.keep(array)
    with refused("capsule_unusable", "capsule"):
        from_dlpack(array)
    ext.drop_on_a_thread()
    assert name_of(array.answer) == VERSIONED
    assert foreign.deletions == 0
    array.answer = None
    gc.collect()
    assert foreign.deletions == 1


def test_a_result_that_was_released_is_refused(ext: Any, shared: Any) -> None:
    with refused("request_unsupported", "return"):
        ext.released(shared)
    with refused("request_unsupported", "from"):
        ext.released_to_ndarray(shared)


# --- Containers and casts -------------------------------------------------------------------------


def test_a_view_may_be_left_out(ext: Any, floats: Any) -> None:
    assert ext.maybe() == -1
    assert ext.maybe(None) == -1
    assert ext.maybe(floats) == 12


def test_views_in_a_list_live_as_long_as_the_call(ext: Any, queue: Any) -> None:
    def arrays() -> Any:
        return [ForeignArray(ForeignTensor(one.data, shape=(2,))) for one in kept]

    kept = [shared_floats(queue, [n, n + 1]) for n in range(20)]
    assert ext.first_elements(arrays()) == [float(n) for n in range(20)]


def test_a_bad_array_in_a_list_is_no_crash(ext: Any, shared: Any, floats: Any) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.first_elements([shared, floats])
    with refused("usm_type_not_accepted", "data", found="device"):
        ext.explained_elements([shared, floats])
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.maybe(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.first_elements([shared, None])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_what_no_overload_could_mend_comes_before_reasons_of_types(
    ext: Any, queue: Any, dtype: str
) -> None:
    with refused("device_type_unsupported", "device.device_type"):
        ext.fill(queue, np.zeros(3, dtype), "no number")


def test_a_pointer_is_null_for_none_and_raises_what_is_wrong(
    ext: Any, queue: Any, floats: Any, memory: Any
) -> None:
    assert ext.maybe_pointer(None) == -1
    assert ext.maybe_pointer(floats) == 12
    with refused("device_type_unsupported", "device.device_type"):
        ext.maybe_pointer(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.maybe_pointer(to_dlpack_tensor(memory, dtype="f8"))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.maybe_pointer()
    assert ext.maybe_kept(floats) == floats.data
    assert ext.maybe_kept(None) is None


def test_a_view_that_is_no_pointer_is_never_none(ext: Any, floats: Any) -> None:
    assert ext.rank_one_or_none(floats) == 12
    assert ext.rank_one_or_none(None) == "the next overload"


def test_a_cast_to_a_view_is_refused(ext: Any, floats: Any) -> None:
    with pytest.raises(RuntimeError, match="bad_cast"):
        ext.cast_to_view(floats)
    assert ext.cast_to_owned(floats)[0] == floats.data


def test_an_object_at_hand_becomes_an_owned_view(ext: Any, floats: Any) -> None:
    assert ext.to_owned(floats) == (floats.data, (12,), (1,))
    with refused("device_type_unsupported", "device.device_type"):
        ext.to_owned(np.zeros(3, np.float32))
    with refused("rank_mismatch", "ndim"):
        ext.to_owned(to_dlpack_tensor(floats, shape=(3, 4)))
    with pytest.raises(TypeError, match="x: expected an array"):
        ext.to_owned(3)


# --- Owners ---------------------------------------------------------------------------------------


def test_a_kept_view_keeps_a_foreign_tensor(ext: Any, queue: Any) -> None:
    memory = usm.MemoryUSMShared(16, queue=queue)
    foreign = ForeignTensor(address_of(memory), shape=(4,))
    array = ForeignArray(foreign)
    ext.keep(array)
    array.given = None
    del array
    gc.collect()
    assert foreign.deletions == 0
    ext.drop_on_a_thread()
    assert foreign.deletions == 1


def test_a_kept_view_keeps_the_array_and_knows_its_queue(ext: Any, queue: Any) -> None:
    before = shared_floats(queue, [5, 6, 7])
    ext.keep(before)
    data = before.data
    del before
    gc.collect()
    assert ext.kept_queue() == queue
    assert ext.kept_values() == [5, 6, 7]
    back = ext.take_back()
    assert back.data == data
    assert back.sycl_queue == queue
    assert back.numpy().tolist() == [5, 6, 7]


def test_an_extension_and_an_import_agree_on_the_queue_that_an_object_says(
    ext: Any, queue: Any, shared: Any
) -> None:
    array: Any = ForeignArray(ForeignTensor(shared.data, shape=(4,)))
    array.sycl_queue = queue
    assert from_dlpack(array).sycl_queue == queue
    ext.keep(array)
    assert ext.kept_queue() == queue
    ext.drop_on_a_thread()


def test_a_kept_view_knows_the_queue_that_the_exchange_api_of_an_array_says(
    ext: Any, queue: Any, shared: Any
) -> None:
    """As PyTorch's tensors do, which have no attribute for it."""
    ours = to_dlpack_tensor(shared, shape=(4,), queue=queue)
    api = ExchangeAPI(usm_dlpack.DLPackTensor).table
    export = type(api.managed_tensor_from_py_object_no_sync)(
        lambda _, out: api.managed_tensor_from_py_object_no_sync(ours, out)
    )
    table = DLPackExchangeAPI(1, 3, None)
    table.managed_tensor_from_py_object_no_sync = export
    table.current_work_stream = api.current_work_stream

    class Exchanged:
        __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api")

        def __dlpack__(self) -> Any:
            raise AssertionError

    array = Exchanged()
    assert from_dlpack(array).sycl_queue == queue
    ext.keep(array)
    assert ext.kept_queue() == queue
    ext.drop_on_a_thread()


def test_a_kept_view_of_an_array_without_a_queue_knows_none(ext: Any, shared: Any) -> None:
    ext.keep(ForeignArray(ForeignTensor(shared.data, shape=(4,))))
    assert ext.kept_queue() is None
    ext.drop_on_a_thread()


def test_a_kept_view_with_negative_strides_comes_back(ext: Any, shared: Any) -> None:
    ext.keep(to_dlpack_tensor(shared, shape=(4,), strides=(-1,), byte_offset=12))
    assert ext.kept_values() == [3, 2, 1, 0]
    back = ext.take_back()
    assert (back.strides, back.numpy().tolist()) == ((-1,), [3, 2, 1, 0])


def test_a_result_is_a_tensor_that_knows_its_queue(ext: Any, queue: Any) -> None:
    made = ext.full(queue, 3, 4, value=2.5)
    assert type(made) is usm_dlpack.DLPackTensor
    assert (made.shape, made.strides, made.dtype) == ((3, 4), (4, 1), np.float32)
    assert (made.usm_type, made.readonly, made.sycl_queue) == ("device", False, queue)
    assert made.data % 256 == 0
    assert np.all(made.numpy() == 2.5)
    assert ext.full_in_other_kind(queue, 5).usm_type == "shared"


def test_a_result_keeps_what_it_was_made_of(ext: Any, queue: Any) -> None:
    counter = ext.Counter()
    source = shared_floats(queue, [1, 2, 3])
    made = ext.copied(source, counter)
    del source
    gc.collect()
    assert made.numpy().tolist() == [1, 2, 3]
    assert counter.alive == 1
    del made
    assert counter.alive == 0


def test_an_empty_result_is_a_tensor(ext: Any, queue: Any) -> None:
    made = ext.full(queue, 0, 4)
    assert (made.shape, made.size) == ((0, 4), 0)
    assert made.data != 0


def test_results_may_be_dropped_with_work_pending(ext: Any, queue: Any) -> None:
    for _ in range(100):
        ext.full(queue, 300, 400)


def test_a_refusal_in_a_function_is_raised(ext: Any, queue: Any, foreign_queue: Any) -> None:
    x = to_dlpack_tensor(usm.MemoryUSMDevice(48, queue=queue), dtype="float32")
    ext.checked_fill(queue, x, 1.5)
    with refused("context_not_default", "queue", binding=True):
        ext.checked_fill(foreign_queue, x, 1.5)


def test_a_result_of_another_context_is_refused(ext: Any, foreign_queue: Any) -> None:
    with refused("context_not_default", "context", binding=True):
        ext.full(foreign_queue, 3, 4)
    with refused("context_not_default", "context", binding=True):
        ext.result_in_other_context(foreign_queue)


def test_a_result_that_is_no_usm_of_its_queue_is_refused(ext: Any, queue: Any) -> None:
    counter = ext.Counter()
    with refused("pointer_unknown", "data", binding=True):
        ext.result_in_host_memory(queue, counter)
    assert counter.alive == 0


def test_a_result_of_another_kind_than_its_view_names_is_refused(ext: Any, queue: Any) -> None:
    counter = ext.Counter()
    with refused("usm_type_not_accepted", "data", expected="device USM", found="host USM"):
        ext.result_in_other_kind(queue, counter)
    assert counter.alive == 0


def test_the_kind_of_an_empty_result_is_told_and_never_refused(ext: Any, queue: Any) -> None:
    memory = usm.MemoryUSMDevice(16, queue=queue)
    for offset in (0, 16):
        empty = to_dlpack_tensor(memory, shape=(0,), dtype="float32", byte_offset=offset)
        back = ext.device_given_back(empty)
        assert (back.shape, back.data) == ((0,), empty.data)
        assert back.usm_type == empty.usm_type
    back = ext.empty_result_at_null(queue)
    assert (back.shape, back.data, back.usm_type) == ((0,), 0, "unknown")


def test_a_view_of_const_elements_comes_back_read_only(ext: Any, shared: Any, memory: Any) -> None:
    back = ext.given_back(shared)
    assert (back.data, back.readonly, shared.readonly) == (shared.data, True, False)
    with refused("read_only", "flags"):
        ext.rank_one(back)
    assert ext.given_back(ForeignArray(ForeignTensor(address_of(memory), shape=(12,)))).readonly


def test_the_owner_of_a_result_goes_once(ext: Any, queue: Any) -> None:
    counter = ext.Counter()
    made = ext.readonly_result(queue, counter)
    assert made.readonly
    assert made.numpy().tolist() == [2, 2, 2]
    taken = from_dlpack(made)
    del made
    gc.collect()
    assert counter.alive == 1
    del taken
    assert counter.alive == 0


def test_the_deleter_of_a_taken_result_runs_on_any_thread(ext: Any, queue: Any) -> None:
    deleters = CountedDeleters()
    made = ext.full(queue, 2, 2)
    deleters.count_capsule(made.__dlpack__(max_version=(1, 3)))
    del made
    gc.collect()
    assert deleters.deletions == 1


# --- SYCL objects ---------------------------------------------------------------------------------


def test_queues_come_back_as_the_same_queue(ext: Any, queue: Any) -> None:
    again = ext.same_queue(queue)
    assert type(again) is dpctl.SyclQueue
    assert again == queue
    assert ext.same_queue(queue._get_capsule()) == queue


def test_contexts_and_devices_come_back(ext: Any, queue: Any) -> None:
    assert ext.context_of(queue) == queue.sycl_context
    assert ext.device_of(queue.sycl_context) == queue.sycl_device
    assert ext.device_of(queue.sycl_context._get_capsule()) == queue.sycl_device
    assert ext.queue_on(queue.sycl_device).sycl_device == queue.sycl_device


def test_events_order_work(ext: Any, queue: Any) -> None:
    pending = PendingFill(queue)
    x = to_dlpack_tensor(pending.memory, dtype="float32")
    event = ext.fill_after(queue, x, depends=[pending.event])
    assert type(event) is dpctl.SyclEvent
    assert pending.is_pending
    pending.open()
    event.wait()
    assert np.all(x.numpy() == 3)
    after = ext.fill_after(queue, x, [event, event])
    after.wait()
    assert after.execution_status == dpctl.event_status_type.complete
    assert FINISHED != 3


@pytest.mark.parametrize("thing", [None, 1, "gpu", object(), dpctl.SyclQueue])
def test_another_object_is_no_queue(ext: Any, thing: Any) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.same_queue(thing)


def test_another_object_of_dpctl_is_no_queue(ext: Any, queue: Any) -> None:
    for other in (queue.sycl_context, queue.sycl_device, queue.sycl_context._get_capsule()):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ext.same_queue(other)


def test_a_pointer_to_a_queue_is_null_for_none(ext: Any, queue: Any) -> None:
    assert ext.has_queue(queue)
    assert not ext.has_queue(None)
    assert ext.has_queue.__doc__ == "has_queue(queue: dpctl.SyclQueue | None) -> bool"
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.has_queue(3)
    assert ext.queue_or_none(queue) == "a queue"
    assert ext.queue_or_none(None) == "the next overload"


def test_none_in_a_list_is_no_event(ext: Any, queue: Any, floats: Any) -> None:
    event = ext.fill_after(queue, floats, [])
    for events in ([None], [event, None], [None, event]):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ext.fill_after(queue, floats, events)
    event.wait()


def test_a_class_that_only_says_it_is_a_queue_is_none(ext: Any) -> None:
    class Liar:
        __class__ = dpctl.SyclQueue  # type: ignore[assignment]

    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.same_queue(Liar())


# --- nanobind's arrays ----------------------------------------------------------------------------


def test_views_are_made_of_an_ndarray(ext: Any, floats: Any) -> None:
    matrix = to_dlpack_tensor(floats, shape=(2, 3), strides=(6, 2))
    assert ext.of_ndarray(matrix) == (floats.data, (2, 3), (6, 2))
    assert ext.of_readonly_ndarray(matrix) == (floats.data, (2, 3), (6, 2))
    with refused("device_type_unsupported", "device.device_type"):
        ext.of_readonly_ndarray(np.zeros((2, 3), np.float32))


def test_an_ndarray_is_made_of_an_owned_view(ext: Any, queue: Any) -> None:
    made = ext.full(queue, 3, 4)
    data = made.data
    array = ext.to_ndarray(made)
    del made
    gc.collect()
    back = from_dlpack(array)
    assert (back.data, back.shape, back.strides) == (data, (3, 4), (4, 1))
    assert np.all(back.numpy() == 1)


def test_an_ndarray_of_read_only_memory_says_so(ext: Any, queue: Any, floats: Any) -> None:
    constant = ext.readonly_result(queue, ext.Counter())
    assert from_dlpack(ext.to_readonly_ndarray(constant)).readonly
    assert from_dlpack(ext.to_readonly_ndarray(floats)).readonly
    with refused("read_only", "flags", found="read-only memory"):
        ext.constant_to_ndarray(constant)


def test_an_ndarray_has_the_extents_and_the_order_that_its_type_names(
    ext: Any, floats: Any
) -> None:
    right = to_dlpack_tensor(floats, shape=(3, 4))
    left = to_dlpack_tensor(floats, shape=(3, 4), strides=(1, 3))
    assert from_dlpack(ext.to_right_ndarray(right)).strides == (4, 1)
    assert from_dlpack(ext.to_left_ndarray(left)).strides == (1, 3)
    with refused("extent_mismatch", "shape[1]", expected="4 for", found="3"):
        ext.to_right_ndarray(to_dlpack_tensor(floats, shape=(4, 3)))
    with refused("layout_mismatch", "strides[1]", expected="1 for nb::c_contig", found="3"):
        ext.to_right_ndarray(left)
    with refused("layout_mismatch", "strides[0]", expected="1 for nb::f_contig", found="4"):
        ext.to_left_ndarray(right)
    # Strides of dimensions without neighbours are free.
    single = to_dlpack_tensor(floats, shape=(1, 4), strides=(9, 1))
    assert from_dlpack(ext.to_right_ndarray(single)).shape == (1, 4)
    empty = to_dlpack_tensor(floats, shape=(0, 4), strides=(7, 5))
    assert from_dlpack(ext.to_right_ndarray(empty)).shape == (0, 4)


def test_an_ndarray_of_rank_zero_is_made(ext: Any, floats: Any) -> None:
    scalar = to_dlpack_tensor(floats, shape=())
    assert from_dlpack(ext.to_scalar_ndarray(scalar)).shape == ()


def test_a_tensor_without_strides_is_compact_for_an_ndarray(ext: Any, queue: Any) -> None:
    assert ext.strides_without(queue) == (3, 1)
    assert ext.right_strides_without(queue) == (3, 1)
    with refused("layout_mismatch", "strides[0]", expected="1 for nb::f_contig", found="3"):
        ext.left_strides_without(queue)


# --- Threads, processes, types --------------------------------------------------------------------


def test_threads_call_at_once(ext: Any, queue: Any) -> None:
    def work(number: int) -> None:
        memory = usm.MemoryUSMDevice(48, queue=queue)
        good = to_dlpack_tensor(memory, dtype="float32")
        bad = to_dlpack_tensor(memory, dtype="int16", shape=(number + 1,))
        for _ in range(50):
            assert ext.fill(queue, good, number) == "float32"
            (first, *_rest) = refused_call(ext.fill, queue, bad, number).reasons
            assert first.found.startswith("int16")
            assert np.all(ext.full(queue, 2, 3, number).numpy() == number)

    assert at_once(work) == [None] * THREADS


_IN_A_NEW_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
import usm_dlpack
import dpctl, dpctl.memory, numpy as np
import extension_under_test_module as ext
queue = dpctl.SyclQueue()
"""


def run_in_a_new_process(ext: Any, succeed: Callable[..., str], code: str, **variables: str) -> str:
    """Run code with the extension in a process that must end silently, and return its output."""
    folder = Path(ext.__file__).parent
    return succeed(_IN_A_NEW_PROCESS + code, arguments=(str(folder),), **variables)


def run_with_a_leak(ext: Any, new_process: Callable[..., Any]) -> str:
    """Return what a process says that ends with a leaked object of the extension."""
    code = _IN_A_NEW_PROCESS + "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(c))\n"
    done = new_process(
        code.replace("queue =", "c = ext.Counter(); queue ="),
        arguments=(str(Path(ext.__file__).parent),),
    )
    assert done.returncode == 0
    return str(done.stderr)


def test_nothing_leaks(ext: Any, succeed: Callable[..., str], new_process: Any) -> None:
    # nanobind writes to stderr what lives at the end; what is kept here goes then.
    assert "leaked" in run_with_a_leak(ext, new_process)
    code = """
tensor = ext.full(queue, 3, 4)
flat = usm_dlpack.to_dlpack_tensor(tensor, shape=(12,))
for wrong in (tensor, 1, np.zeros(12, "f4"), usm_dlpack.to_dlpack_tensor(flat, dtype="i2")):
    try:
        ext.fill(queue, wrong, 1)
    except (TypeError, BufferError):
        pass
ext.fill(queue, flat, 1)
constant = ext.readonly_result(queue, ext.Counter())
try:
    ext.rank_one(constant)
except BufferError as error:
    kept_error = error
ext.keep(ext.full_in_other_kind(queue, 4))
ext.fill_after(queue, flat, [ext.fill_after(queue, flat)]).wait()
array = ext.to_ndarray(tensor)
print(flat.numpy()[0])
"""
    assert run_in_a_new_process(ext, succeed, code) == "3.0\n"


_BEHIND_A_TASK_THAT_NEEDS_THE_GIL = """
import faulthandler, threading
from pending_work import PendingFill
faulthandler.dump_traceback_later(60, exit=True)

def go(before, act):
    kept = [before()]
    pending = PendingFill(queue)
    pending.keep_alive()  # what dpnp does after each of its kernels
    threading.Timer(0.1, pending.open).start()  # a thread of Python, which needs the GIL too
    try:
        act(kept)
    except ValueError as error:
        print(error)
    queue.wait()

go({before}, {act})
print("fine")
"""


@pytest.mark.parametrize(
    ("before", "act"),
    [
        ("int", "lambda kept: ext.use_scratch(queue)"),
        ("int", "lambda kept: ext.use_scratch(queue, fails=True)"),
        ("lambda: ext.Workspace(queue)", "lambda kept: kept.clear()"),
        ("lambda: ext.full(queue, 2, 3)", "lambda kept: kept.clear()"),
    ],
)
def test_an_array_goes_while_work_before_it_needs_the_gil(
    ext: Any, succeed: Callable[..., str], before: str, act: str
) -> None:
    code = _BEHIND_A_TASK_THAT_NEEDS_THE_GIL.format(before=before, act=act)
    folder = str(Path(__file__).parent)
    assert run_in_a_new_process(ext, succeed, code, PYTHONPATH=folder).endswith("fine\n")


_WITHOUT_THE_PACKAGE = """
import sys
sys.path.insert(0, sys.argv[1])
{before}
try:
    import extension_under_test_module
except ImportError as error:
    print(error.__cause__)
"""


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("sys.modules['usm_dlpack'] = None", "No module named 'usm_dlpack._core'"),
        (
            "import usm_dlpack._core as core; del core._package_interface",
            "usm_dlpack: expected a package with the interface 3, found none; "
            "build the extension with the installed package",
        ),
        (
            "import usm_dlpack._core as core; core._package_interface = core.DLPackTensor."
            "__dlpack_c_exchange_api__",
            "usm_dlpack: expected a package with the interface 3, found none; ",
        ),
    ],
)
def test_an_extension_needs_the_package(
    ext: Any, succeed: Callable[..., str], before: str, sentence: str
) -> None:
    folder = str(Path(ext.__file__).parent)
    printed = succeed(_WITHOUT_THE_PACKAGE.format(before=before), arguments=(folder,))
    assert sentence in printed


def test_an_extension_makes_the_driver_known(ext: Any, succeed: Callable[..., str]) -> None:
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import extension_under_test_module
import dpctl
print(len(dpctl.get_devices()))
"""
    assert int(succeed(code, arguments=(str(Path(ext.__file__).parent),))) >= 1


def test_a_queue_of_another_device_is_refused(
    ext: Any, succeed: Callable[..., str], several_devices: Callable[[int], dict[str, str]]
) -> None:
    code = """
other = dpctl.SyclQueue(usm_dlpack.root_device(1))
here = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48, queue=queue), dtype="float32")
there = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48, queue=other), dtype="float32")
for tensor, right, wrong in ((here, queue, other), (there, other, queue)):
    ext.checked_fill(right, tensor, 4.5)
    assert tensor.numpy().tolist() == [4.5] * 12
    try:
        ext.checked_fill(wrong, tensor, 4.5)
    except usm_dlpack.ConversionError as error:
        print(error.code, error.field)
    assert ext.full(right, 2, 3, 1.5).device == tensor.device
"""
    printed = run_in_a_new_process(ext, succeed, code, **several_devices(2))
    assert printed == "queue_device_mismatch queue\n" * 2


_TYPED = """
import dpctl  # type: ignore[import-untyped]
import dpctl.memory  # type: ignore[import-untyped]
import extension_under_test_module as ext
import usm_dlpack

def use(queue: dpctl.SyclQueue, memory: dpctl.memory.MemoryUSMDevice) -> None:
    tensor: usm_dlpack.DLPackTensor = ext.full(queue, 3, 4, value=2.0)
    ext.fill(queue, tensor, 1)
    ext.fill(queue, memory, 1.5)
    ext.keep(usm_dlpack.to_dlpack_tensor(memory))
    total: float = ext.sum(x=tensor)
    back: usm_dlpack.DLPackTensor = ext.take_back()
    print(total, back, ext.maybe(), ext.first_elements([tensor, back]))
"""

_WRONGLY_TYPED = """
import extension_under_test_module as ext
import usm_dlpack
tensor = usm_dlpack.from_dlpack(None)
ext.rank_one(3)
ext.sum([tensor])
ext.fill(None, tensor)
number: int = ext.full(None, 3, 4)
"""


def install_with_stub(ext: Any, folder: Path) -> str:
    """Return the interpreter of an environment that has the extension's stub, and the packages."""
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    for package in ("usm_dlpack", "dpctl", "numpy"):
        (packages / package).symlink_to(Path(str(importlib.import_module(package).__file__)).parent)
    stub = Path(ext.__file__).with_name(f"{extension_under_test.NAME}.pyi")
    installed = packages / f"{extension_under_test.NAME}-stubs" / "__init__.pyi"
    installed.parent.mkdir()
    installed.write_text(stub.read_text())
    return str(folder / "bin" / "python")


@pytest.mark.extended
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_know_the_extension(ext: Any, checker: str, tmp_path: Path) -> None:
    python = install_with_stub(ext, tmp_path / "environment")
    (tmp_path / "typed.py").write_text(_TYPED)
    (tmp_path / "wrong.py").write_text(_WRONGLY_TYPED)
    done = checked_by(checker, tmp_path / "typed.py", tmp_path, python)
    assert done.returncode == 0, done.stdout + done.stderr
    done = checked_by(checker, tmp_path / "wrong.py", tmp_path, python)
    for line in range(5, 9):
        assert f"wrong.py:{line}:" in done.stdout, done.stdout + done.stderr


def test_what_can_have_no_owner_does_not_compile(ext: Any, tmp_path: Path) -> None:
    commands = json.loads((Path(ext.__file__).parent / "compile_commands.json").read_text())
    source = extension_under_test.PROJECT / "refused_extension.cpp"
    command = shlex.split(next(c["command"] for c in commands if "guide_extension" in c["file"]))
    command = [part for part in command[: command.index("-o")] if part != "-c"]

    def compile_case(*macros: str) -> tuple[int, str]:
        done = subprocess.run(
            [*command, *(f"-D{macro}" for macro in macros), "-fsyntax-only", str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    status, printed = compile_case("REFUSED")
    assert status != 0
    sentences = re.findall(r"static assertion failed: (\w+: expected .*)", printed)
    assert sorted(sentence.split(" found ")[1] for sentence in sentences) == [
        "a usm_array, which would own memory that is Python's; "
        "take the mdspan type, or an owned_view",
        "a view alone, whose memory nothing keeps; return an owned_view or a usm_array",
        "a writable one; add nb::ro, or make its element type const",
        "another; name that one, or none",
        "another; name the view's element type, or none",
        "another; pass the views alone, without a kernel's other arguments",
        "another; use the nb::ndim of the view's rank, or none",
        "fewer, of which an nb::ndarray does not say whether they are padded; take the view itself",
        "padded ones of fewer than 8 bits; return the owned_view itself",
    ]
    assert compile_case() == (0, "")


def test_signatures_say_what_is_taken(ext: Any) -> None:
    assert ext.static_extent.__doc__.startswith(
        "static_extent(x: typing.Annotated[usm_dlpack.UsmArray, "
        "dict(dtype='float32', shape=(4, None), writable=False)]) -> tuple"
    )
    assert "usm_type='device', writable=False" in ext.device_only.__doc__
    assert "-> usm_dlpack.DLPackTensor" in ext.full.__doc__
    assert "(queue: dpctl.SyclQueue) -> dpctl.SyclContext" in ext.context_of.__doc__


def test_the_extension_is_the_one_that_was_built(ext: Any) -> None:
    assert importlib.import_module(extension_under_test.NAME) is ext
    assert issubclass(ArgumentError, ConversionError)
