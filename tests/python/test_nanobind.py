# SPDX-License-Identifier: Apache-2.0
"""Functions of a nanobind extension take and return views of USM and SYCL objects."""

import contextlib
import gc
import json
import re
import shlex
import shutil
import subprocess
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import tvm_ffi
import usm_dlpack
from c_exchange_api import Table
from capsules import (
    IS_COPIED,
    READ_ONLY,
    VERSIONED,
    Calling,
    ForeignArray,
    ForeignTensor,
    OldArray,
    call_deleter,
    consume,
    dpctl_queue,
    name_of,
)
from dpctl import memory as usm
from memory_sources import TypedArray, address_of, allocate, new_queue
from pending_work import PendingFill, answer_behind
from refusals import refused, wrong_argument
from threads_at_once import THREADS, at_once
from type_checkers import checked_by
from usm_dlpack import from_dlpack, to_dlpack_tensor

ROW = "float32 view of rank 1: "
ANY = "array of any type: "
CONST_ROW = f"const {ROW}"


@pytest.fixture(scope="module")
def ext() -> Any:
    return extension_under_test.load()


@pytest.fixture
def floats(memory: Any) -> Any:
    return to_dlpack_tensor(memory, dtype="float32")


@pytest.fixture
def doubles(memory: Any) -> Any:
    return to_dlpack_tensor(memory, dtype="float64")


@pytest.fixture
def shared(queue: Any) -> Any:
    """Return the float32 0, 1, 2 and 3 in shared USM."""
    return shared_floats(queue, [0, 1, 2, 3])


def shared_floats(queue: Any, values: Any) -> Any:
    memory = usm.MemoryUSMShared(4 * len(values), queue=queue)
    memory.copy_from_host(np.array(values, np.float32).view(np.uint8))
    return to_dlpack_tensor(memory, dtype="float32")


@contextlib.contextmanager
def no_overload() -> Iterator[None]:
    """Require that no overload takes the arguments of the block, and that none says why."""
    with pytest.raises(TypeError, match="incompatible function arguments") as caught:
        yield
    assert type(caught.value) is TypeError


# --- What is an array -----------------------------------------------------------------------------


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


class RefusingExport(TypedArray):
    """An array with an interface, whose export fails."""

    def __dlpack__(self, **_: Any) -> Any:
        raise LookupError("no")


def fail(error: BaseException | type[BaseException]) -> Any:
    raise error


def by_itself(array: Any, *names: str) -> Any:
    """Return an object that has attributes of an array, and its type has none."""
    return types.SimpleNamespace(**{name: getattr(array, name) for name in names})


class Number(float):
    """A number that says that it is an array; a function of numbers may be meant."""

    def __getattr__(self, name: str) -> Any:
        return pytest.fail(name)


INTERFACE = "__sycl_usm_array_interface__"
ARRAYS: dict[str, Callable[[Any, Any], Any]] = {
    "a tensor of this package": lambda tensor, _: tensor,
    "an interface": lambda _, memory: TypedArray(memory, shape=(3, 4)),
    "an interface behind an export that fails": lambda _, memory: RefusingExport(
        memory, shape=(3, 4)
    ),
    "the exchange API": lambda tensor, _: tvm_ffi.from_dlpack(tensor),
    "before all keywords": lambda tensor, _: OldArray(tensor.__dlpack__()),
    "the protocol by itself": lambda tensor, _: by_itself(
        tensor, "__dlpack__", "__dlpack_device__"
    ),
    "an interface by itself": lambda _, memory: by_itself(
        TypedArray(memory, shape=(3, 4)), INTERFACE
    ),
    "both by themselves, the export fails": lambda _, memory: by_itself(
        RefusingExport(memory, shape=(3, 4)), "__dlpack__", INTERFACE
    ),
    "a proxy": lambda tensor, _: Proxy(lambda name: getattr(tensor, name)),
}


def test_an_interrupt_of_an_export_is_raised_though_the_array_has_an_interface(ext, memory):
    members = {"__dlpack__": lambda self, **_: fail(KeyboardInterrupt)}
    with pytest.raises(KeyboardInterrupt):
        ext.rank_one(type("Array", (TypedArray,), members)(memory))


@pytest.mark.parametrize("error", [AttributeError, OSError])
def test_an_error_of_an_array_about_its_queue_is_raised_though_it_has_an_interface(
    ext, memory, error
):
    members = {
        "__dlpack__": lambda self, **_: to_dlpack_tensor(self, dtype="f4").__dlpack__(),
        "sycl_queue": property(lambda _: fail(error("broken"))),
    }
    array = type("Array", (TypedArray,), members)(memory)
    with pytest.raises(error, match="broken"):
        ext.rank_one(array)


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_an_array_is_a_view(ext, memory, make):
    array = make(to_dlpack_tensor(memory, shape=(3, 4), dtype="f4"), memory)
    assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1))


@pytest.mark.parametrize("legacy", [True, False])
def test_a_foreign_capsule_lives_as_long_as_the_call(ext, memory, legacy):
    foreign = ForeignTensor(address_of(memory), legacy=legacy)
    array = ForeignArray(foreign)
    assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1))
    assert array.asked == [{"stream": dpctl_queue(), "max_version": (1, 3)}]
    assert foreign.deletions == 0
    array.given = None
    assert foreign.deletions == 1


@pytest.mark.parametrize(
    "thing",
    [
        None,
        1,
        Number(),
        object(),
        types.SimpleNamespace(__dlpack__=None),
        Proxy(lambda _: lambda **keywords: pytest.fail("called")),  # has every attribute
        ForeignArray,
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_is_no_array_is_no_argument(ext, thing):
    with no_overload():
        ext.rank_one(thing)


def test_a_capsule_is_no_argument(ext, floats):
    capsule = floats.__dlpack__(max_version=(1, 3))
    with no_overload():
        ext.rank_one(capsule)
    assert name_of(capsule) == VERSIONED


@pytest.mark.parametrize("error", [KeyError, RecursionError])
def test_an_object_is_no_array_whose_attribute_raises(ext, error):
    proxy = Proxy(lambda _: fail(error))
    with no_overload():
        ext.rank_one(proxy)
    assert proxy.asked == ["__dlpack__"]


# --- What a view's type asks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        ("left", {"shape": (3, 4), "strides": (1, 3)}),
        # The handle of this layout is the lowest address.
        ("relaxed", {"shape": (3, 4), "strides": (-4, 1), "byte_offset": 32}),
        ("scalar", {"shape": (), "dtype": "float64"}),
        ("rank_one", {"shape": (0,)}),
        ("small_index", {"shape": 127, "dtype": "uint8"}),
    ],
)
def test_shape_and_strides_reach_the_view_that_fits(ext, queue, function, fields):
    memory = usm.MemoryUSMDevice(128, queue=queue)
    array = to_dlpack_tensor(memory, **({"dtype": "float32"} | fields))
    assert getattr(ext, function)(array) == (address_of(memory), array.shape, array.strides)


@pytest.mark.parametrize(
    ("function", "fields", "code", "field", "wanted"),
    [
        ("rank_one", {"dtype": "int32"}, "dtype_mismatch", "dtype", ROW),
        ("rank_one", {"shape": (3, 4)}, "rank_mismatch", "ndim", ROW),
        ("rank_one", {"shape": 3, "strides": 2}, "layout_mismatch", "strides[0]", ROW),
        (
            "left",
            {"shape": (3, 4)},
            "layout_mismatch",
            "strides[0]",
            "const float32 view of rank 2: ",
        ),
        (
            "static_extent",
            {"shape": (3, 4)},
            "extent_mismatch",
            "shape[0]",
            "const float32 view of rank 2: ",
        ),
        (
            "small_index",
            {"shape": 128, "dtype": "uint8"},
            "index_type_too_small",
            "shape[0]",
            "const uint8 view of rank 1: ",
        ),
    ],
)
def test_a_function_without_overloads_says_what_does_not_fit(
    ext, queue, function, fields, code, field, wanted
):
    memory = usm.MemoryUSMDevice(128, queue=queue)
    array = to_dlpack_tensor(memory, **({"dtype": "float32"} | fields))
    with refused(code, field, wanted=wanted):
        getattr(ext, function)(array)


# --- Overloads ------------------------------------------------------------------------------------


WHICH = {
    "a row": {},
    "integers": {"dtype": "int32"},  # another dtype
    "columns": {"shape": (3, 4), "strides": (1, 3)},  # another rank
    "four rows": {"shape": (4, 3)},  # another layout
    "rows": {"shape": (3, 4)},  # another extent
    "few bytes": {"dtype": "uint8", "shape": 127},
    "bytes": {"dtype": "uint8", "shape": 128},  # another index type
}


@pytest.mark.parametrize("factor", [1.0, 1], ids=["as it is", "converted"])
@pytest.mark.parametrize(("name", "fields"), WHICH.items(), ids=WHICH)
def test_the_overload_runs_that_the_array_fits(ext, queue, name, fields, factor):
    memory = usm.MemoryUSMDevice(128, queue=queue)
    array = to_dlpack_tensor(memory, **({"dtype": "float32"} | fields))
    assert ext.which(array, factor) == name


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_overload_that_fits_gets_the_memory(ext, queue, memory, dtype):
    array = to_dlpack_tensor(memory, dtype=dtype)
    assert ext.fill(queue, array, 3) == dtype
    assert np.all(array.numpy() == 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_overload_launches_the_kernel_of_its_element_type(ext, queue, dtype):
    array = usm_dlpack.empty(100, dtype, device=queue)
    array.copy_from(np.arange(100, dtype=dtype))
    ext.scale(queue, array, 3)
    assert np.array_equal(array.numpy(), 3 * np.arange(100))


def test_the_array_is_not_blamed_for_another_argument(ext, floats, doubles):
    for array in (floats, doubles):
        with no_overload():
            ext.which(array, "no number")


def test_an_array_for_three_parameters_is_refused_by_the_one_that_it_does_not_fit(
    ext, floats, doubles
):
    assert ext.three(floats, floats, doubles) == 6
    with refused("dtype_mismatch", "dtype", wanted="const float64 view of rank 1: "):
        ext.three(floats, floats, floats)
    with refused("dtype_mismatch", "dtype", wanted=CONST_ROW):
        ext.three(doubles, doubles, doubles)


@pytest.mark.parametrize("factor", [1.0, 1], ids=["as it is", "converted"])
def test_noconvert_leaves_the_array_to_an_overload_for_any_object(ext, floats, doubles, factor):
    assert ext.which_object(floats, factor) == "a row"
    assert ext.which_object(doubles, factor) == "any object"


class Summand:
    """An array that knows how to add itself to something."""

    def __init__(self, tensor: Any) -> None:
        self.__dlpack__ = tensor.__dlpack__

    def __radd__(self, other: Any) -> str:
        return "the other operand"


def test_noconvert_leaves_the_array_of_an_operator_to_python(ext, shared, doubles):
    assert ext.RowSums() + shared == 6
    assert ext.RowSums() + Summand(shared) == 6
    assert ext.RowSums() + Summand(doubles) == "the other operand"
    with pytest.raises(TypeError, match="unsupported operand"):
        ext.RowSums() + doubles


def test_a_constructor_and_methods_say_what_does_not_fit(ext, shared, doubles):
    sums = ext.RowSums(shared, 2)
    sums.add(shared)
    assert (sums.total, ext.RowSums.of(shared)) == (14, 6)
    for call in (lambda: ext.RowSums(doubles, 2), lambda: sums.add(doubles)):
        with refused("dtype_mismatch", "dtype", wanted=CONST_ROW):
            call()
    with refused("dtype_mismatch", "dtype", wanted=CONST_ROW):
        ext.RowSums.of(doubles)


@pytest.mark.parametrize("factor", [1.0, 1], ids=["as it is", "converted"])
def test_any_view_takes_every_array_and_refuses_as_a_view_does(ext, floats, doubles, factor):
    assert ext.which_any(floats, factor) == "a row"
    assert ext.which_any(doubles, factor) == "any array"
    assert ext.any_as_row(floats)[0] == floats.data
    with refused("dtype_mismatch", "y.dtype"):
        ext.any_as_row(doubles)
    assert ext.any_given_back(doubles).dtype == np.float64
    with refused("device_type_unsupported", "device.device_type", wanted=ANY):
        ext.any_given_back(np.zeros(3))


# --- What is always raised ------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["rank_one", "maybe_pointer", "which", "which_object"])
def test_memory_elsewhere_is_raised(ext, function):
    arguments = (np.zeros(3, np.float32), *([1] if function.startswith("which") else []))
    code, field = "device_type_unsupported", "device.device_type"
    wanted = ROW if function == "rank_one" else CONST_ROW
    with refused(code, field, found="kDLCPU (1)", wanted=wanted):
        getattr(ext, function)(*arguments)


def test_a_kind_is_raised_that_a_later_overload_takes(ext, shared):
    for factor in (1.0, 1):
        with refused("usm_type_not_accepted", "data", wanted=CONST_ROW):
            ext.which_kind(shared, factor)


def test_dtype_and_rank_come_before_memory_elsewhere(ext):
    with refused("dtype_mismatch", "dtype", wanted=ROW):
        ext.rank_one(np.zeros(3))
    with refused("rank_mismatch", "ndim", wanted=ROW):
        ext.rank_one(np.zeros((3, 3), np.float32))


def test_a_refusal_of_what_was_read_begins_with_what_is_wanted(ext, foreign_queue):
    with refused("context_not_default", "context", binding=True, wanted=ROW):
        ext.rank_one(TypedArray(allocate("device", 48, foreign_queue)))
    with refused("capsule_unusable", "capsule", wanted=ROW):
        ext.rank_one(OldArray("no capsule"))


def test_another_kind_is_refused_for_an_array_with_elements(ext, shared, floats):
    for array in (shared, ForeignArray(ForeignTensor(shared.data, shape=(4,)))):
        with refused(
            "usm_type_not_accepted", "data", expected="device", found="shared", wanted=CONST_ROW
        ):
            ext.device_only(array)
    assert ext.device_only(floats)[0] == floats.data
    empty = to_dlpack_tensor(shared, shape=(0,))
    for array in (empty, ForeignArray(ForeignTensor(shared.data, shape=(0,)))):
        assert ext.device_only(array) == (shared.data, (0,), (1,))
    assert ext.device_given_back(empty).usm_type == "shared"


def test_a_read_only_array_needs_const_elements(ext, queue, shared):
    constant = ext.readonly_result(queue, ext.Counter())
    foreign = ForeignTensor(constant.data, shape=(3,))
    foreign.managed.flags = READ_ONLY
    for array in (constant, ForeignArray(foreign)):
        with refused("read_only", "flags", wanted=ROW):
            ext.rank_one(array)
        assert ext.maybe(array) == 3
    for array in (shared, ForeignArray(ForeignTensor(shared.data, shape=(4,)))):
        back = ext.given_back(array)  # of const elements
        assert (back.data, back.readonly) == (shared.data, True)
    assert not shared.readonly
    foreign = ForeignTensor(shared.data, shape=())  # as dpnp's
    foreign.managed.flags = READ_ONLY
    array = ForeignArray(foreign)
    remedy = "if it is dpnp's, pass usm_dlpack.to_dlpack_tensor(x); else copy the array"
    with refused("read_only", "flags", remedy=remedy, wanted="float32 view of rank 0: "):
        ext.written_scalar(array)


@pytest.mark.parametrize(
    ("name", "value", "field"), [("shape", "ab", INTERFACE), ("syclobj", "nowhere", "syclobj")]
)
def test_an_interface_that_is_wrong_is_named(ext, memory, name, value, field):
    with wrong_argument(ValueError, field):
        ext.rank_one(TypedArray(memory, **{name: value}))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyError("mine")])
@pytest.mark.parametrize(
    "call",
    [
        lambda ext, array: ext.rank_one(array),
        lambda ext, array: ext.which(array, 1.0),
        lambda ext, array: ext.maybe_pointer(array),
        lambda ext, array: ext.to_owned(array),
    ],
    ids=["no overloads", "overloads", "a pointer", "a cast"],
)
def test_what_an_array_raises_is_raised(ext, shared, call, error):
    with pytest.raises(type(error)) as caught:
        call(ext, Calling(shared, lambda: fail(error)))
    assert caught.value is error


def test_a_refusal_that_the_producer_raises_again_is_not_changed(ext, floats):
    kept = usm_dlpack.ConversionError("out_of_bounds", "data", "some bytes", "more", "wait")
    for _ in range(2):
        with pytest.raises(usm_dlpack.ConversionError) as caught:
            ext.rank_one(Calling(floats, lambda: fail(kept)))
        assert caught.value is kept
        assert str(kept).startswith("data: ")


@pytest.mark.parametrize(
    "call",
    [
        lambda ext, array: ext.is_row(array),
        lambda ext, array: ext.try_cast_to_owned(array),
        lambda ext, array: ext.first_elements([array]),
        lambda ext, array: ext.maybe(array),
        lambda ext, array: ext.count_variants([array]),
        lambda ext, array: ext.which(array, "no number"),
        lambda ext, array: ext.which(array, 1),  # is called in the second round
    ],
    ids=[
        "isinstance",
        "try_cast",
        "vector",
        "optional",
        "variant",
        "another argument",
        "the second round",
    ],
)
def test_an_interrupt_is_not_lost_where_nanobind_has_its_own_answer(ext, shared, call):
    left = [KeyboardInterrupt()]
    array = Calling(shared, lambda: fail(left.pop()) if left else None)

    def interrupted() -> None:
        with contextlib.suppress(TypeError):
            call(ext, array)

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_an_array_that_drops_itself_lives_as_long_as_it_is_asked(ext, shared):
    arrays: list[Any] = []
    arrays.append(Calling(shared, arrays.clear))
    assert ext.first_elements(arrays) == [0.0]


def test_a_capsule_that_its_producer_keeps_is_taken_for_the_call(ext, shared):
    foreign = ForeignTensor(shared.data, shape=(4,))
    array = OldArray(foreign.capsule())
    names: list[Any] = []

    def steal():
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


@pytest.mark.parametrize("keeps", [True, False])
def test_a_capsule_that_is_taken_while_the_queue_is_read_is_refused(ext, memory, keeps):
    foreign = ForeignTensor(address_of(memory))

    class Array:
        def __dlpack__(self) -> Any:
            self.given = foreign.capsule()
            return self.given

        @property
        def sycl_queue(self) -> None:
            taken.append(consume(self.given))
            if not keeps:
                del self.given

    taken: list[Any] = []
    array = Array()
    with refused("capsule_unusable", "capsule", found='"used_dltensor_versioned"', wanted=None):
        ext.rank_two_const(array)
    assert foreign.deletions == 0
    call_deleter(taken[0])


# --- Containers and casts -------------------------------------------------------------------------


def test_a_view_may_be_left_out_or_null(ext, floats, doubles):
    assert ext.maybe() == ext.maybe(None) == ext.maybe_pointer(None) == -1
    assert ext.maybe(floats) == ext.maybe_pointer(floats) == ext.rank_one_or_none(floats) == 12
    assert ext.rank_one_or_none(None) == "the next overload"
    with refused("dtype_mismatch", "dtype", wanted=CONST_ROW):
        ext.maybe_pointer(doubles)
    with no_overload():
        ext.maybe_pointer()


def test_memory_of_ones_own_becomes_a_tensor(ext, queue):
    made = ext.allocated(queue, 3)
    assert (made.shape, made.usm_type, made.sycl_queue) == ((3,), "device", queue)


def test_any_view_tells_what_the_array_is(ext, doubles):
    assert ext.facts(doubles) == (2, [6], [1], doubles.data)


def test_views_in_a_list_live_as_long_as_the_call(ext, queue):
    kept = [shared_floats(queue, [n, n + 1]) for n in range(20)]
    arrays = [ForeignArray(ForeignTensor(one.data, shape=(2,))) for one in kept]
    assert ext.first_elements(arrays) == [float(n) for n in range(20)]


def test_an_array_in_a_container_chooses_the_overload(ext, floats, memory):
    integers = to_dlpack_tensor(memory, dtype="int32")
    assert ext.which_optional(floats, 1) == "a row"
    assert ext.which_optional(integers, 1) == "integers"
    assert ext.count_variants([floats, integers]) == 2


IN_CONTAINERS: dict[str, Callable[[Any, Any], Any]] = {
    "vector": lambda ext, array: ext.first_elements([array]),
    "optional": lambda ext, array: ext.maybe(array),
    "variant": lambda ext, array: ext.count_variants([array]),
    "overloads": lambda ext, array: ext.which_optional(array, 1),
}
in_containers = pytest.mark.parametrize("call", IN_CONTAINERS.values(), ids=IN_CONTAINERS)


@in_containers
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_bad_array_in_a_container_gets_the_message_of_nanobind(ext, call, dtype):
    with no_overload():
        call(ext, np.zeros(3, dtype))  # on the host


def test_an_element_is_no_other_view_that_a_caster_took_before(ext, shared, floats):
    for bad in (None, floats):  # of another kind
        with no_overload():
            ext.first_elements([shared, bad])


def test_an_object_at_hand_becomes_an_owned_view_and_no_other(ext, floats):
    with refused("request_unsupported", "view", wanted=None):  # nothing would keep its memory
        ext.cast_to_view(floats)
    assert ext.to_owned(floats) == (floats.data, (12,), (1,))
    for convert in (True, False):
        with refused("rank_mismatch", "ndim", wanted=None):
            ext.to_owned(to_dlpack_tensor(floats, shape=(3, 4)), convert)
    with refused("device_type_unsupported", "device.device_type", wanted=None):
        ext.to_owned(np.zeros(3, np.float32))
    for thing in (3, None):
        found = f"found an object of type {type(thing).__name__}; "
        with pytest.raises(TypeError, match=f"array: expected one with .*{found}"):
            ext.to_owned(thing)
    with pytest.raises(TypeError, match=r"a dpctl\.SyclQueue, found an object of type int; "):
        ext.cast_to_queue(3)


def test_an_object_that_cannot_be_cast_leaves_no_error(ext, doubles):
    for thing in (3, doubles):
        assert not ext.try_cast_to_owned(thing)
        assert not ext.try_cast_to_queue(thing)


def test_an_instance_is_what_can_be_cast(ext, queue, floats, doubles):
    on_host = np.zeros(3, np.float32)
    things = [floats, doubles, to_dlpack_tensor(floats, shape=(3, 4)), on_host, queue, 3, None]
    for is_array in (ext.is_row, ext.is_owned):
        assert [is_array(thing) for thing in things] == [True] + 6 * [False]
    assert [ext.is_queue(thing) for thing in things] == 4 * [False] + [True] + 2 * [False]


# --- Owners ---------------------------------------------------------------------------------------


def test_a_kept_view_keeps_a_foreign_tensor(ext, shared):
    foreign = ForeignTensor(shared.data, shape=(4,))
    foreign.managed.flags = IS_COPIED
    array = ForeignArray(foreign)
    ext.keep(array)
    assert ext.kept_flags() == 0  # the copy is none for who gets it next
    array.given = None
    del array
    gc.collect()
    assert foreign.deletions == 0
    ext.drop_on_a_thread()
    assert foreign.deletions == 1


def test_a_python_object_that_owns_is_dropped_by_any_thread(ext, queue):
    owner = object()
    before = sys.getrefcount(owner)
    ext.drop_owners(queue, owner, 50_000)
    assert sys.getrefcount(owner) == before


def test_an_object_owns_what_it_shows_and_one_that_is_none_does_not(ext, queue):
    made = ext.SelfOwned(queue, 3)
    gone, tensor = weakref.ref(made), made.values
    del made
    assert gone() is not None
    del tensor
    assert gone() is None
    with refused("request_unsupported", "owner", found="none"):
        ext.result_of_nobody(queue)


def test_nanobind_keeps_the_array_alive_that_an_overload_took(ext, memory):
    array = TypedArray(memory)
    gone = weakref.ref(array)
    kept = ext.kept_alive(array)
    del array
    assert gone() is not None
    del kept
    assert gone() is None


def test_a_view_that_was_released_is_refused(ext, shared):
    for field, give in (("return", ext.released), ("from", ext.released_to_ndarray)):
        with refused("request_unsupported", field, found="moved from or released"):
            give(shared)


def test_a_kept_view_keeps_the_array_and_knows_its_queue(ext, queue):
    forwards = shared_floats(queue, [5, 6, 7])
    before = to_dlpack_tensor(forwards, shape=(3,), strides=(-1,), byte_offset=8)
    ext.keep(before)
    data = before.data
    del forwards, before
    gc.collect()
    assert ext.kept_queue() == queue
    assert ext.kept_values() == [7, 6, 5]
    back = ext.take_back()
    assert (back.data, back.strides, back.sycl_queue) == (data, (-1,), queue)
    assert back.numpy().tolist() == [7, 6, 5]


def test_a_kept_view_knows_the_queue_that_an_object_or_its_table_says(ext, queue, shared):
    foreign = ForeignTensor(shared.data, shape=(4,))
    saying, table = ForeignArray(foreign), Table(foreign)
    saying.sycl_queue = queue
    table.stream = queue.addressof_ref()  # as PyTorch's tensors say it
    for array in (saying, table.array()):
        ext.keep(array)
        assert ext.kept_queue() == queue
        ext.drop_on_a_thread()


def test_a_result_is_a_tensor_that_knows_its_queue(ext, queue):
    made = ext.full(queue, 3, 4, value=2.5)
    assert type(made) is usm_dlpack.DLPackTensor
    assert (made.shape, made.strides, made.dtype) == ((3, 4), (4, 1), np.float32)
    assert (made.usm_type, made.readonly, made.sycl_queue) == ("device", False, queue)
    assert made.data % 256 == 0
    assert np.all(made.numpy() == 2.5)
    empty = ext.full(queue, 0, 4)
    assert (empty.shape, empty.size, empty.data != 0) == ((0, 4), 0, True)
    assert ext.in_shared_usm(queue, 5).usm_type == "shared"


def test_a_result_outlives_what_it_was_made_of(ext, queue):
    source = shared_floats(queue, [1, 2, 3])
    taken = from_dlpack(ext.copied(source))
    del source
    gc.collect()
    assert taken.numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("function", "context", "code", "field"),
    [
        ("readonly_result", "foreign_queue", "context_not_default", "context"),
        ("result_in_host_memory", "queue", "pointer_unknown", "data"),
        ("result_in_other_kind", "queue", "usm_type_not_accepted", "data"),
    ],
)
def test_a_result_that_is_no_usm_of_its_queue_and_kind_is_refused_and_freed(
    ext, request, function, context, code, field
):
    counter = ext.Counter()
    with refused(code, field):
        getattr(ext, function)(request.getfixturevalue(context), counter)
    assert counter.alive == 0


def test_a_queue_of_another_context_is_refused(ext, foreign_queue, floats):
    with refused("context_not_default", "context"):
        ext.full(foreign_queue, 3, 4)
    with refused("context_not_default", "queue"):
        ext.fill(foreign_queue, floats, 1.5)  # in the function


def test_the_kind_of_an_empty_result_is_told_and_never_refused(ext, queue):
    memory = usm.MemoryUSMDevice(16, queue=queue)
    for offset in (0, 16):
        empty = to_dlpack_tensor(memory, shape=(0,), dtype="float32", byte_offset=offset)
        back = ext.device_given_back(empty)
        assert (back.shape, back.data) == ((0,), empty.data)
        assert back.usm_type == empty.usm_type
    back = ext.empty_result_at_null(queue)
    assert (back.shape, back.data, back.usm_type) == ((0,), 0, "unknown")


# --- SYCL objects ---------------------------------------------------------------------------------


def test_objects_of_dpctl_come_back_and_others_are_no_argument(ext, queue):
    again = ext.same_queue(queue)
    assert type(again) is dpctl.SyclQueue
    assert again == ext.same_queue(queue._get_capsule()) == queue
    assert ext.context_of(queue) == queue.sycl_context
    assert ext.device_of(queue.sycl_context) == queue.sycl_device
    assert ext.device_of(queue.sycl_context._get_capsule()) == queue.sycl_device
    assert ext.queue_on(queue.sycl_device).sycl_device == queue.sycl_device
    assert ext.has_queue(queue)
    assert not ext.has_queue(None)
    assert ext.has_queue.__doc__ == "has_queue(queue: dpctl.SyclQueue | None) -> bool"
    of_dpctl = (queue.sycl_context, queue.sycl_device, queue.sycl_context._get_capsule())
    for thing in (None, 1, dpctl.SyclQueue, *of_dpctl):
        with no_overload():
            ext.same_queue(thing)
    with no_overload():
        ext.has_queue(3)


def test_events_order_work(ext, queue):
    pending = PendingFill(queue)
    x = from_dlpack(np.zeros(12, np.float32), device=new_queue())
    event = ext.fill_after(queue, x, depends=[pending.event])
    assert type(event) is dpctl.SyclEvent
    assert pending.is_pending
    pending.open()
    event.wait()
    assert np.all(x.numpy() == 3)
    after = ext.fill_after(queue, x, [event, event])
    after.wait()
    assert after.execution_status == dpctl.event_status_type.complete
    for events in ([None], [event, None], [None, event]):
        with no_overload():
            ext.fill_after(queue, x, events)


# --- nanobind's arrays ----------------------------------------------------------------------------


def test_an_ndarray_knows_no_queue_so_its_making_waits(ext, queue):
    pending = PendingFill(queue)
    tensor = to_dlpack_tensor(pending.memory, dtype="f4", shape=(3, 4), queue=queue)
    answer_behind(pending, lambda: ext.to_ndarray(tensor))


def test_an_ndarray_becomes_a_view_and_is_made_of_one(ext, queue, floats):
    matrix = to_dlpack_tensor(floats, shape=(2, 3), strides=(6, 2))
    for read in (ext.of_ndarray, ext.of_readonly_ndarray):
        assert read(matrix) == (floats.data, (2, 3), (6, 2))
    assert from_dlpack(ext.to_ndarray(matrix)).strides == (6, 2)
    made = ext.full(queue, 3, 4)
    data = made.data
    array = ext.to_ndarray(made)
    del made
    gc.collect()
    back = from_dlpack(array)
    assert (back.data, back.shape, back.strides) == (data, (3, 4), (4, 1))
    assert np.all(back.numpy() == 1)
    for array in (ext.readonly_result(queue, ext.Counter()), floats):
        assert from_dlpack(ext.to_readonly_ndarray(array)).readonly


def test_an_ndarray_of_a_reversed_view_begins_at_its_first_element(ext, shared):
    reverse = to_dlpack_tensor(shared, shape=(2, 2), strides=(-2, -1), byte_offset=12)
    back = from_dlpack(ext.to_relaxed_ndarray(reverse))
    assert (back.data, back.strides) == (reverse.data, (-2, -1))
    assert back.numpy().tolist() == [[3, 2], [1, 0]]


def test_an_ndarray_has_the_extents_and_the_order_that_its_type_names(ext, floats):
    right = to_dlpack_tensor(floats, shape=(3, 4))
    left = to_dlpack_tensor(floats, shape=(3, 4), strides=(1, 3))
    assert from_dlpack(ext.to_right_ndarray(right)).strides == (4, 1)
    assert from_dlpack(ext.to_left_ndarray(left)).strides == (1, 3)
    with refused("layout_mismatch", "strides[0]", expected="1 for nb::f_contig", found="4"):
        ext.to_left_ndarray(right)
    # Strides of dimensions without neighbours are free.
    for shape, strides in (((1, 4), (9, 1)), ((0, 4), (7, 5))):
        array = to_dlpack_tensor(floats, shape=shape, strides=strides)
        assert from_dlpack(ext.to_right_ndarray(array)).shape == shape
    scalar = to_dlpack_tensor(floats, shape=())
    assert from_dlpack(ext.to_scalar_ndarray(scalar)).shape == ()


# --- Threads, processes, types --------------------------------------------------------------------


def test_threads_call_at_once(ext, queue):
    def work(number):
        memory = usm.MemoryUSMDevice(48, queue=queue)
        good = to_dlpack_tensor(memory, dtype="float32")
        bad = to_dlpack_tensor(memory, dtype="int16", shape=(number + 1,))
        for _ in range(50):
            assert ext.fill(queue, good, number) == "float32"
            with refused("dtype_mismatch", "dtype", found="int16", wanted=ROW):
                ext.fill(queue, bad, number)
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


@pytest.fixture
def folder(ext: Any) -> str:
    """Return the folder of the extension, the argument of a new process."""
    return str(Path(ext.__file__).parent)


def test_nothing_leaks(folder, succeed, new_process):
    # nanobind writes to stderr what lives at the end; what is kept here goes then.
    leak = "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(ext.Counter()))"
    done = new_process(_IN_A_NEW_PROCESS + leak, arguments=(folder,))
    assert done.returncode == 0
    assert "leaked" in done.stderr
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
ext.keep(ext.in_shared_usm(queue, 4))
ext.fill_after(queue, flat, [ext.fill_after(queue, flat)]).wait()
array = ext.to_ndarray(tensor)
print(flat.numpy()[0])
"""
    assert succeed(_IN_A_NEW_PROCESS + code, arguments=(folder,)) == "3.0\n"


_BEHIND_A_TASK_THAT_NEEDS_THE_GIL = """
import threading
from pending_work import PendingFill

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

go(int, lambda kept: ext.use_scratch(queue))
go(int, lambda kept: ext.use_scratch(queue, fails=True))
go(lambda: ext.full(queue, 2, 3), lambda kept: kept.clear())
queue._submit_keep_args_alive([ext.full(queue, 2, 3)], [])  # dropped in the task
queue.wait()
queue = dpctl.SyclQueue(property="in_order")
for _ in range(1000):  # while this thread submits
    ext.drop_in_task(queue, ext.zeros(queue, 3))
queue.wait()
print("fine")
"""


def test_an_array_goes_while_work_before_it_needs_the_gil(folder, succeed):
    code = _IN_A_NEW_PROCESS + _BEHIND_A_TASK_THAT_NEEDS_THE_GIL
    printed = succeed(
        code, arguments=(folder,), PYTHONPATH=str(Path(__file__).with_name("support"))
    )
    assert printed == "scratch: expected no failure, found one as asked for\nfine\n"


def test_a_kernel_on_the_queue_of_an_array_of_numpy_returns_a_number(folder, succeed):
    code = """
x, y = (usm_dlpack.from_dlpack(np.arange(n, n + 3, dtype="f4"), device="cpu") for n in (0, 1))
print(x.sycl_queue == y.sycl_queue, ext.dot(x, y))
"""
    assert succeed(_IN_A_NEW_PROCESS + code, arguments=(folder,)) == "True 8.0\n"


_WITHOUT_THE_PACKAGE = """
import sys
sys.path.insert(0, sys.argv[1])
{before}
try:
    import extension_under_test_module
except ImportError as error:
    print(error.__cause__)
else:
    import dpctl
    print(len(dpctl.get_devices()), "device")
"""
_CORE = "import usm_dlpack._core as core; "
_EXPECTED = "usm_dlpack: expected a package with the interface 11, found none; build the extension "


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("", "1 device"),  # the package makes the driver known
        ("sys.modules['usm_dlpack'] = None", "No module named 'usm_dlpack._core'"),
        (_CORE + "del core._package_interface", _EXPECTED),
        (
            _CORE + "core._package_interface = core.DLPackTensor.__dlpack_c_exchange_api__",
            _EXPECTED,
        ),
        (
            _CORE + "from capsules import new_capsule; import ctypes; old = ctypes.c_uint32(7); "
            "core._package_interface = new_capsule(ctypes.addressof(old), "
            "b'usm_dlpack.package_interface')",
            _EXPECTED.replace("none", "7"),
        ),
    ],
)
def test_an_extension_needs_the_package(folder, succeed, before, sentence):
    assert sentence in succeed(_WITHOUT_THE_PACKAGE.format(before=before), arguments=(folder,))


def test_a_queue_of_another_device_is_refused(folder, succeed, several_devices):
    code = """
other = dpctl.SyclQueue(usm_dlpack.root_device(1))
here = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48, queue=queue), dtype="float32")
there = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48, queue=other), dtype="float32")
for tensor, right, wrong in ((here, queue, other), (there, other, queue)):
    ext.fill(right, tensor, 4.5)
    assert tensor.numpy().tolist() == [4.5] * 12
    try:
        ext.fill(wrong, tensor, 4.5)
    except usm_dlpack.ConversionError as error:
        print(error.code, error.field)
    assert ext.full(right, 2, 3, 1.5).device == tensor.device
"""
    printed = succeed(_IN_A_NEW_PROCESS + code, arguments=(folder,), **several_devices(2))
    assert printed == "queue_device_mismatch queue\n" * 2


_TYPED = """
import dpctl
import dpctl.memory
import extension_under_test_module as ext
import usm_dlpack

def use(queue: dpctl.SyclQueue, memory: dpctl.memory.MemoryUSMDevice) -> None:
    tensor: usm_dlpack.DLPackTensor = ext.full(queue, 3, 4, value=2.0)
    ext.fill(queue, tensor, 1)
    ext.fill(queue, memory, 1.5)
    ext.which(tensor, 1)
    ext.keep(usm_dlpack.to_dlpack_tensor(memory))
    ext.RowSums().add(row=tensor)
    back: usm_dlpack.DLPackTensor = ext.take_back()
    print(back, ext.maybe(), ext.first_elements([tensor, back]))
"""

_WRONGLY_TYPED = """
import extension_under_test_module as ext
import usm_dlpack
tensor = usm_dlpack.from_dlpack(None)
ext.rank_one(3)
ext.scalar([tensor])
ext.fill(None, tensor)
number: int = ext.full(None, 3, 4)
"""


@pytest.mark.extended
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_know_the_extension(checker, tmp_path):
    shutil.copy(extension_under_test.build() / f"{extension_under_test.NAME}.pyi", tmp_path)
    (tmp_path / "typed.py").write_text(_TYPED)
    (tmp_path / "wrong.py").write_text(_WRONGLY_TYPED)
    done = checked_by(checker, tmp_path)
    for line in range(5, 9):
        assert f"wrong.py:{line}:" in done.stdout, done.stdout + done.stderr
    assert not re.search(r"typed\.py:.*error", done.stdout), done.stdout
    assert "is not defined" not in done.stdout, done.stdout


def test_what_can_never_be_right_does_not_compile(folder):
    commands = json.loads(Path(folder, "compile_commands.json").read_text())
    source = extension_under_test.PROJECT / "refused_extension.cpp"
    command = shlex.split(next(c["command"] for c in commands if "guide_extension" in c["file"]))
    command = [part for part in command[: command.index("-o")] if part != "-c"]
    done = subprocess.run(
        [*command, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    sentences = re.findall(r"static assertion failed: (\w+: expected .*)", done.stderr)
    assert sorted(sentence.split(" found ")[1].split(";")[0] for sentence in sentences) == [
        "a Python handle, which needs the GIL",
        "a usm_array, which would own memory that is Python's",
        "a view alone, whose memory nothing keeps",
        "a writable one",
        *["another"] * 3,
        "fewer, of which an nb::ndarray does not say whether they are padded",
        "padded ones of fewer than 8 bits",
    ]
    remedies = re.findall(r"deleted function .*\n(?:.*\n)*?.* = delete;  // (.*)", done.stderr)
    assert sorted(remedies) == [
        "keep the any_view in a variable",
        *["keep the tensor"] * 6,
        *["std::move it, or share it by a std::shared_ptr"] * 2,
    ]


def test_signatures_say_what_is_taken(ext):
    assert ext.static_extent.__doc__.startswith(
        "static_extent(x: typing.Annotated[usm_dlpack.UsmArray, "
        "dict(dtype='float32', shape=(4, None), writable=False)]) -> tuple"
    )
    assert "usm_type='device', writable=False" in ext.device_only.__doc__
    assert "-> usm_dlpack.DLPackTensor" in ext.full.__doc__
    assert "(queue: dpctl.SyclQueue) -> dpctl.SyclContext" in ext.context_of.__doc__
