# SPDX-License-Identifier: Apache-2.0
"""Functions of an extension take and return arrays and SYCL objects, the same in both bindings."""

import gc
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import tvm_ffi
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
from dpctl.memory import as_usm_memory
from memory_sources import UNPOOLED, TypedArray, address_of, allocate, new_queue
from pending_frees import is_usm
from pending_work import VALUES, PendingFill, answer_behind
from refusals import check_refusal, refused
from threads_at_once import THREADS, at_once
from type_checkers import checked_by
from usm_dlpack import ConversionError, DLPackTensor, empty, from_dlpack, to_dlpack_tensor

MODULES = {"nanobind": extension_under_test.NAME, "pybind11": "pybind11_under_test_module"}
CONVERTED = np.float32(1)  # becomes a double only in the second round over the overloads
INTERFACE = "__sycl_usm_array_interface__"


@pytest.fixture(scope="module", params=MODULES)
def binding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def ext(binding: str) -> Any:
    return extension_under_test.load(MODULES[binding])


@pytest.fixture(scope="module")
def of_nanobind() -> Any:
    return extension_under_test.load()


@pytest.fixture(scope="module")
def of_pybind11() -> Any:
    return extension_under_test.load(MODULES["pybind11"])


@pytest.fixture
def floats(memory: Any) -> DLPackTensor:
    return to_dlpack_tensor(memory, dtype="float32")


@pytest.fixture
def doubles(memory: Any) -> DLPackTensor:
    return to_dlpack_tensor(memory, dtype="float64")


def no_overload() -> Any:
    return pytest.raises(TypeError, match=r"incompatible (constructor|function) arguments")


def bad_cast() -> Any:
    return pytest.raises(RuntimeError, match=r"Unable to cast|bad_cast")


def reason(binding: str, code: str, field: str, *, in_pybind11: Any) -> Any:
    """Require that nanobind gives the reason of a refusal, and pybind11 an error of its own."""
    return refused(code, field) if binding == "nanobind" else in_pybind11


def fail(error: BaseException) -> Any:
    raise error


# --- Overloads ------------------------------------------------------------------------------------


class Arrays:
    """Arrays of one memory, and arrays elsewhere."""

    def __init__(self, memory: Any) -> None:
        self.row = to_dlpack_tensor(memory, dtype="float32")
        self.integers = to_dlpack_tensor(memory, dtype="int32")
        self.longs = to_dlpack_tensor(memory, dtype="int64")
        self.rows = to_dlpack_tensor(memory, dtype="float32", shape=(3, 4))
        self.four_rows = to_dlpack_tensor(memory, dtype="float32", shape=(4, 3))
        self.columns = to_dlpack_tensor(memory, dtype="float32", shape=(3, 4), strides=(1, 3))
        self.gaps = to_dlpack_tensor(memory, dtype="float32", shape=(2, 2), strides=(6, 2))
        self.broadcast = to_dlpack_tensor(memory, dtype="float32", shape=(3, 4), strides=(0, 1))
        self.few_bytes = to_dlpack_tensor(memory, dtype="uint8")
        shared = allocate("shared", 128, memory.sycl_queue)
        self.bytes = to_dlpack_tensor(shared, dtype="uint8")
        self.shared = to_dlpack_tensor(shared, dtype="float32")
        self.host = to_dlpack_tensor(allocate("host", 48, memory.sycl_queue), dtype="float32")
        self.read_only_rows = self._read_only(memory, (3, 4))
        self.no_usm = np.zeros(3, np.float32)

    @staticmethod
    def _read_only(memory: Any, shape: tuple[int, ...]) -> ForeignArray:
        foreign = ForeignTensor(address_of(memory), shape=shape)
        foreign.managed.flags = READ_ONLY
        return ForeignArray(foreign)


# The end of a call: what it returns; or, where nanobind gives the reason and pybind11 its
# TypeError, the code, what was found, and the field unless `FIELDS` has it; or None, for the
# TypeError of both.
End = str | tuple[str, str] | tuple[str, str, str] | None
Call = tuple[str, Callable[[Arrays], tuple[Any, ...]], End]

NO_USM = ("device_type_unsupported", "kDLCPU (1)")
WITH_A_NUMBER: dict[str, Call] = {
    "a row": ("which", lambda a: (a.row,), "a row"),
    "another dtype": ("which", lambda a: (a.integers,), "integers"),
    "another rank": ("which", lambda a: (a.columns,), "columns"),
    "another layout": ("which", lambda a: (a.four_rows,), "four rows"),
    "another extent": ("which", lambda a: (a.rows,), "rows"),
    "few bytes": ("which", lambda a: (a.few_bytes,), "few bytes"),
    "another index type": ("which", lambda a: (a.bytes,), "bytes"),
    "no overload": ("which", lambda a: (a.longs,), ("dtype_mismatch", "int64")),
    "no USM": ("which", lambda a: (a.no_usm,), NO_USM),
    "None": ("which", lambda _: (None,), None),
    "device USM": ("which_kind", lambda a: (a.row,), "device"),
    "shared USM": ("which_kind", lambda a: (a.shared,), "shared"),
    "host USM": ("which_kind", lambda a: (a.host,), ("usm_type_not_accepted", "host")),
    "memory of the host": ("which_memory", lambda a: (a.no_usm,), "host"),
    "no memory of the host": ("which_memory", lambda a: (a.row,), "USM"),
    "gaps to write": ("which_access", lambda a: (a.gaps,), "writes"),
    "elements that overlap": ("which_access", lambda a: (a.broadcast,), "reads"),
    "read-only": ("which_access", lambda a: (a.read_only_rows,), "reads"),
    "a row before any array": ("which_any", lambda a: (a.row,), "a row"),
    "any array": ("which_any", lambda a: (a.longs,), "any array"),
    "any array in USM": ("which_any", lambda a: (a.no_usm,), NO_USM),
    "a row before any object": ("which_object", lambda a: (a.row,), "a row"),
    "any object": ("which_object", lambda a: (a.longs,), "any object"),
    "an object on the host": ("which_object", lambda a: (a.no_usm,), "any object"),
    "not there": ("which_optional", lambda _: (None,), "a row"),
    "perhaps integers": ("which_optional", lambda a: (a.integers,), "integers"),
    "not perhaps": ("which_optional", lambda a: (a.longs,), None),
    "a list of integers": ("which_list", lambda a: ([a.integers, a.integers],), "integers"),
    "a list of both": ("which_list", lambda a: ([a.row, a.integers],), None),
    "a list with None": ("which_list", lambda a: ([a.row, None],), None),
    "two rows": ("which_two", lambda a: (a.row, a.row), "rows"),
    "two of integers": ("which_two", lambda a: (a.integers, a.integers), "integers"),
    "row, integers": ("which_two", lambda a: (a.row, a.integers), ("dtype_mismatch", "int32")),
    "integers, row": ("which_two", lambda a: (a.integers, a.row), ("dtype_mismatch", "float32")),
    "a row and None": ("which_two", lambda a: (a.row, None), None),
}
ALONE: dict[str, Call] = {
    "another argument is at fault": ("which", lambda a: (a.integers, "no number"), None),
    "behind None": ("behind_perhaps", lambda a: (None, a.integers), "integers"),
    "behind a null row": ("behind_perhaps", lambda a: (None, a.row), "rows"),
    "behind, none": ("behind_perhaps", lambda a: (None, a.longs), ("dtype_mismatch", "int64")),
    "before None": ("behind_perhaps", lambda a: (a.row, None), None),
    "behind a number": ("number_before", lambda a: (1.0, a.integers), "integers"),
    "behind a number, noconvert": ("number_first", lambda a: (CONVERTED, a.integers), "integers"),
    "no overload, noconvert": ("number_first", lambda a: (CONVERTED, a.longs), None),
    "a pair": ("which_pair", lambda a: (a.integers, a.integers), "integers"),
    "not a pair": ("which_pair", lambda a: (a.integers, a.row), ("dtype_mismatch", "float32")),
    "lone, dtype": ("rank_one", lambda a: (a.longs,), ("dtype_mismatch", "int64")),
    "lone, layout": ("rank_two_const", lambda a: (a.columns,), ("layout_mismatch", "1")),
    "lone, a pointer": ("maybe_pointer", lambda a: (a.longs,), ("dtype_mismatch", "int64")),
    "lone, an owned view": ("given_back", lambda a: (a.longs,), ("dtype_mismatch", "int64")),
    "lone, optional": ("maybe", lambda a: (a.longs,), None),
    "lone, list": ("sizes", lambda a: ([a.row, a.longs],), None),
    "lone, variant": ("either", lambda a: (a.longs,), None),
}
FIELDS = {
    "dtype_mismatch": "dtype",
    "layout_mismatch": "strides[0]",
    "usm_type_not_accepted": "data",
    "device_type_unsupported": "device.device_type",
}


def with_number(call: Call, number: Any) -> Call:
    function, arguments, end = call
    return function, lambda a: (*arguments(a), number), end


CALLS = (
    {name: with_number(call, 1.0) for name, call in WITH_A_NUMBER.items()}
    | {f"{name}, converted": with_number(call, CONVERTED) for name, call in WITH_A_NUMBER.items()}
    | ALONE
)


def end_of(ext: Any, call: Call, arrays: Arrays) -> Any:
    """Make a call, and return its result or its error."""
    function, arguments, _ = call
    try:
        return getattr(ext, function)(*arguments(arrays))
    except (ConversionError, TypeError) as error:
        return error


def check_end(binding: str, found: Any, end: End) -> None:
    if isinstance(end, str):
        assert found == end
    elif end is None or binding == "pybind11":
        assert type(found) is TypeError
        assert "incompatible function arguments" in str(found)
    else:
        code, part, *field = end
        check_refusal(found, code, *(field or [FIELDS[code]]), found=part)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_type_of_a_view_chooses_the_overload(binding, ext, memory, call):
    check_end(binding, end_of(ext, call, Arrays(memory)), call[2])


def test_a_number_that_is_converted_hides_later_overloads_in_nanobind(binding, ext, memory):
    call = ("number_before", lambda a: (CONVERTED, a.integers), ("dtype_mismatch", "int32"))
    end = call[2] if binding == "nanobind" else "integers"
    check_end(binding, end_of(ext, call, Arrays(memory)), end)


def test_threads_call_at_once(binding, ext, memory):
    arrays = Arrays(memory)

    def work(number: int) -> None:
        for _ in range(3):
            for call in list(CALLS.values())[number:] + list(CALLS.values())[:number]:
                check_end(binding, end_of(ext, call, arrays), call[2])

    assert at_once(work) == [None] * THREADS


@pytest.mark.parametrize("within", ["another dtype", "integers, row", "no overload"])
def test_a_call_within_a_call_does_not_change_it(binding, ext, memory, within):
    arrays = Arrays(memory)
    call = CALLS[within]
    ends = []
    nested = Calling(arrays.integers, lambda: ends.append(end_of(ext, call, arrays)))
    for arguments in ((arrays.integers, nested), (nested, arrays.integers)):
        for number in (1.0, CONVERTED):
            assert ext.which_two(*arguments, number) == "integers"
    assert ends
    for end in ends:
        check_end(binding, end, call[2])


def test_calls_and_errors_leave_no_references(ext, queue, memory):
    arrays = Arrays(memory)
    failing = Calling(arrays.integers, lambda: fail(KeyError("mine")))
    counted = [*vars(arrays).values(), failing, queue]

    def calls() -> list[int]:
        for call in CALLS.values():
            end_of(ext, call, arrays)
        for arguments in ((arrays.integers, failing, 1.0), (failing, arrays.integers, CONVERTED)):
            with pytest.raises(KeyError, match="mine"):
                ext.which_two(*arguments)
        with pytest.raises(IndexError, match="too far"):
            ext.fail(arrays.row)
        ext.given_back(arrays.row)
        ext.facts(arrays.row)
        ext.same_queue(queue)
        del arguments
        gc.collect()
        return [sys.getrefcount(x) for x in counted]

    assert calls() == calls()


def test_signatures_say_dtype_shape_order_and_kind(ext):
    for function, text in {
        "rank_one": "dtype='float32', shape=(None,), order='C')",
        "rank_two_const": "dtype='float32', shape=(None, None), order='C', writable=False)",
        "which": "dtype='float32', shape=(None, None), order='F', writable=False)",
        "which_two": "dtype='int32', shape=(None,), order='C', writable=False)",
        "which_pair": "dtype='int32', shape=(None,), order='C', writable=False)",
        "which_access": "dtype='float32', shape=(None, None), writable=False)",
        "device_only": "shape=(None,), order='C', usm_type='device', writable=False)",
    }.items():
        signature = getattr(ext, function).__doc__
        assert "typing.Annotated[usm_dlpack.UsmArray, dict(dtype=" in signature
        assert text in signature
    assert "shape=(4, None), order='C', writable=False)" in ext.which.__doc__
    assert "usm_dlpack.UsmArray" in ext.any_as_row.__doc__
    assert ext.given_back.__doc__.strip().endswith("-> usm_dlpack.DLPackTensor")
    assert "queue: dpctl.SyclQueue" in ext.same_queue.__doc__


class Summand:
    """An array that knows how to add itself to something."""

    def __init__(self, tensor: Any) -> None:
        self.__dlpack__ = tensor.__dlpack__

    def __radd__(self, other: Any) -> str:
        return "the other operand"


def test_constructors_methods_and_operators_take_views(binding, ext, queue, doubles):
    twos = ext.full(queue, 3, 2.0)
    sums = ext.RowSums(twos, 2)
    assert (sums.add(twos), ext.RowSums.of(twos)) == (18, 6)
    assert sums + twos == sums + Summand(twos) == 24
    for call in (sums.add, ext.RowSums.of, lambda x: ext.RowSums(x, 2)):
        with reason(binding, "dtype_mismatch", "dtype", in_pybind11=no_overload()):
            call(doubles)
    assert sums + Summand(doubles) == "the other operand"
    with pytest.raises(TypeError, match="unsupported operand"):
        sums + doubles


# --- What is always raised ------------------------------------------------------------------------


USES: dict[str, Callable[[Any, Any], Any]] = {
    "a lone function": lambda ext, x: ext.rank_one(x),
    "overloads": lambda ext, x: ext.which(x, 1.0),
    "overloads, converted": lambda ext, x: ext.which(x, CONVERTED),
    "a pointer": lambda ext, x: ext.maybe_pointer(x),
    "an owned view": lambda ext, x: ext.given_back(x),
    "any view": lambda ext, x: ext.any_given_back(x),
    "a cast": lambda ext, x: ext.to_owned(x),
    "a list": lambda ext, x: ext.sizes([x]),
    "an optional": lambda ext, x: ext.maybe(x),
    "a variant": lambda ext, x: ext.either(x),
}
IN_CONTAINERS = {"a list", "an optional", "a variant"}


@pytest.mark.parametrize("use", USES)
def test_a_failed_proof_is_raised(binding, ext, foreign_queue, use):
    is_lost = binding == "nanobind" and use in IN_CONTAINERS
    with no_overload() if is_lost else refused("context_not_default", "context"):
        USES[use](ext, TypedArray(allocate("device", 48, foreign_queue)))


RAISED = [
    *(KeyboardInterrupt(), KeyError("mine")),
    ConversionError("out_of_bounds", "data", "some bytes", "more", "wait"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("use", [use for use in USES if use not in IN_CONTAINERS])
def test_what_an_array_raises_is_raised(ext, floats, use, error):
    with pytest.raises(type(error)) as caught:
        USES[use](ext, Calling(floats, lambda: fail(error)))
    assert caught.value is error


@pytest.mark.parametrize("error", [AttributeError("broken"), OSError("broken")], ids=repr)
def test_an_error_of_an_array_about_its_queue_is_raised(ext, floats, error):
    class Array(Calling):
        @property
        def sycl_queue(self) -> Any:
            return fail(error)

    with pytest.raises(type(error), match="broken"):
        ext.rank_one(Array(floats, int))


# --- What is an array, and how long it lives ------------------------------------------------------


def by_itself(array: Any, *names: str) -> Any:
    """Return an object that has attributes of an array, and its type has none."""
    return types.SimpleNamespace(**{name: getattr(array, name) for name in names})


ARRAYS: dict[str, Callable[[Any, Any], Any]] = {
    "an interface": lambda _, memory: TypedArray(memory, shape=(3, 4)),
    "the exchange API": lambda tensor, _: tvm_ffi.from_dlpack(tensor),
    "before all keywords": lambda tensor, _: OldArray(tensor.__dlpack__()),
    "the protocol by itself": lambda tensor, _: by_itself(
        tensor, "__dlpack__", "__dlpack_device__"
    ),
    "an interface by itself": lambda _, memory: by_itself(
        TypedArray(memory, shape=(3, 4)), INTERFACE
    ),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_an_array_is_a_view(ext, memory, make):
    array = make(to_dlpack_tensor(memory, shape=(3, 4), dtype="f4"), memory)
    assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1))


NO_ARRAYS = [None, 1, object(), [1.0], np.ndarray, types.SimpleNamespace(__dlpack__=None)]


@pytest.mark.parametrize("thing", [*NO_ARRAYS, DLPackTensor], ids=lambda x: type(x).__name__)
def test_what_is_no_array_is_no_argument(ext, thing):
    for call in (ext.rank_one, ext.given_back, ext.any_given_back):
        with no_overload():
            call(thing)
    assert thing is None or ext.which_object(thing, 1.0) == "any object"


@pytest.mark.parametrize("array", [np.array(["a"]), np.zeros(3, ">f4")], ids=["a text", "order"])
def test_an_array_that_dlpack_does_not_know_is_left_to_an_overload_for_any_object(ext, array):
    assert ext.which_object(array, 1.0) == "any object"


def test_a_capsule_is_no_argument(ext, memory):
    capsule = to_dlpack_tensor(memory).__dlpack__(max_version=(1, 3))
    with no_overload():
        ext.rank_one(capsule)
    assert name_of(capsule) == VERSIONED


def test_none_is_an_argument_where_the_function_says_so(ext, floats, memory):
    integers = to_dlpack_tensor(memory, dtype="i4")
    assert (ext.maybe(), ext.maybe(None), ext.maybe(floats)) == (-1, -1, 12)
    assert (ext.maybe_pointer(None), ext.maybe_pointer(floats)) == (-1, 12)
    assert [ext.either(x) for x in (None, floats, integers)] == [0, 1, 2]


def test_an_empty_array_may_be_of_another_kind(ext, memory):
    shared = Arrays(memory).shared
    empty = to_dlpack_tensor(shared, shape=(0,))
    for array in (empty, ForeignArray(ForeignTensor(shared.data, shape=(0,)))):
        assert ext.device_only(array) == (shared.data, (0,), (1,))


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("count", [1, 12])
def test_foreign_tensors_live_as_long_as_the_call(ext, memory, count, legacy):
    made = [ForeignTensor(address_of(memory), shape=(n,), legacy=legacy) for n in range(count)]
    arrays = [ForeignArray(one) for one in made]
    argument = arrays if count > 1 else arrays[0]
    assert ext.during(argument, lambda: [one.deletions for one in made]) == [0] * count
    assert [one.deletions for one in made] == [1] * count


def test_a_capsule_is_asked_for_once_and_consumed_only_if_all_fits(ext, memory):
    made = ForeignTensor(address_of(memory), shape=(12,), dtype=(0, 32, 1))
    array = ForeignArray(made)
    assert ext.which(array, CONVERTED) == "integers"
    assert array.asked[0] == {"stream": dpctl_queue(), "max_version": (1, 3)}
    assert made.deletions == len(array.asked)


def test_a_capsule_that_is_taken_while_the_queue_is_read_is_refused(ext, memory):
    made = ForeignTensor(address_of(memory))

    class Array(ForeignArray):
        @property
        def sycl_queue(self) -> None:
            taken.append(consume(self.given))
            self.given = None

    taken: list[Any] = []
    with refused("capsule_unusable", "capsule", found='"used_dltensor_versioned"'):
        ext.rank_two_const(Array(made))
    assert made.deletions == 0
    call_deleter(taken[0])


def test_keep_alive_keeps_the_array(ext, memory):
    array = TypedArray(memory)
    gone = weakref.ref(array)
    kept = ext.kept_alive(array)
    del array
    assert gone() is not None
    del kept
    assert gone() is None


def test_an_array_of_any_dtype_may_come_without_strides(ext, queue):
    assert list(ext.strides_of_none(queue)) == [3, 1]


def test_an_array_keeps_another_argument_alive_in_nanobind(of_nanobind, memory):
    array, other = TypedArray(memory, typestr="<i4"), ForeignArray(None)
    gone = weakref.ref(other)
    of_nanobind.keeping(array, other)
    del other
    assert gone() is not None
    del array
    assert gone() is None


# --- Any dtype and rank ---------------------------------------------------------------------------


def test_any_view_tells_what_the_array_is(ext, queue):
    memory = allocate("shared", 96, queue)
    array = to_dlpack_tensor(memory, shape=(3, 4), strides=(1, 3), dtype="int16")
    data = address_of(memory)
    here = ("shared", array.device[1], array.sycl_queue)
    assert ext.facts(array) == ((0, 16, 1), [3, 4], [1, 3], data, False, *here)
    scalar = ext.facts(to_dlpack_tensor(memory, shape=(), dtype="float64"))
    assert scalar[:3] == ((2, 64, 1), [], [])


def test_any_view_becomes_a_view_or_refuses_by_the_name_of_the_parameter(ext, memory):
    arrays = Arrays(memory)
    assert ext.any_as_row(arrays.row)[0] == arrays.row.data
    assert ext.any_as_shared(arrays.shared).data == arrays.shared.data
    with refused("usm_type_not_accepted", "data", found="device"):
        ext.any_as_shared(arrays.row)
    with refused("dtype_mismatch", "y.dtype", found="int64"):
        ext.any_as_row(arrays.longs)
    with refused("read_only", "y.flags", found="read-only"):
        ext.any_as_row(ext.given_back(arrays.row))


def test_an_ordered_section_takes_any_view(ext, queue, foreign_queue):
    ones, out = ext.full(queue, 1000, 1.0), ext.full(queue, 1000, 0.0)
    ext.copy_any(queue, ones, out)
    assert np.all(out.numpy() == 1)
    with refused("read_only", "to.flags"):
        ext.copy_any(queue, out, ext.given_back(ones))
    with refused("overlapping", "to.strides", expected="mutable", remedy='order="C"'):
        ext.copy_any(queue, ones, to_dlpack_tensor(out, shape=(1000,), strides=(0,)))
    with refused("context_not_default", "queue"):
        ext.copy_any(foreign_queue, ones, out)


# --- Results and owners ---------------------------------------------------------------------------


def test_a_result_is_a_tensor_that_knows_its_queue_and_outlives_the_argument(ext, queue):
    source = ext.full(queue, 3, value=7)
    assert type(source) is DLPackTensor
    assert (source.shape, source.usm_type, source.readonly) == ((3,), "shared", False)
    assert source.sycl_queue == queue
    made = ext.copied(source)
    back = ext.given_back(source)
    assert (back.data, back.readonly, back.sycl_queue) == (source.data, True, queue)
    first, second = ext.two_given_back(source, made)
    assert (first.data, second.data, second.readonly) == (source.data, made.data, False)
    del source, first
    gc.collect()
    assert back.numpy().tolist() == made.numpy().tolist() == [7, 7, 7]


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
    with refused(code, field, binding=code != "usm_type_not_accepted"):
        getattr(ext, function)(request.getfixturevalue(context))
    assert ext.results_alive() == 0


def test_the_owner_of_a_result_lives_as_long_as_its_tensors(ext, queue):
    constant = ext.readonly_result(queue)
    assert (constant.readonly, constant.numpy().tolist()) == (True, [2, 2, 2])
    with pytest.raises((ConversionError, TypeError)):
        ext.rank_one(constant)
    assert ext.results_alive() == 1
    del constant
    gc.collect()
    assert ext.results_alive() == 0


def test_a_result_that_was_released_or_that_nobody_owns_is_refused(ext, queue, floats):
    with refused("request_unsupported", "return", found="moved from or released"):
        ext.released(floats)
    with refused("request_unsupported", "owner", found="none"):
        ext.result_of_nobody(queue)


def test_the_kind_of_an_empty_result_is_told_and_never_refused(ext, queue):
    memory = allocate("device", 16, queue)
    for offset in (0, 16):
        empty = to_dlpack_tensor(memory, shape=(0,), dtype="float32", byte_offset=offset)
        back = ext.device_given_back(empty)
        assert (back.shape, back.data, back.usm_type) == ((0,), empty.data, empty.usm_type)
    back = ext.empty_result_at_null(queue)
    assert (back.shape, back.data, back.usm_type) == ((0,), 0, "unknown")


def test_a_kept_view_knows_strides_and_queue_and_is_dropped_on_any_thread(ext, queue):
    forwards = from_dlpack(np.array([5, 6, 7], "f4"), device=queue)
    ext.keep(to_dlpack_tensor(forwards, shape=3, strides=(-1,), byte_offset=8))
    data = forwards.data
    del forwards
    gc.collect()
    back = ext.take_back()
    assert (back.data, back.strides, back.sycl_queue) == (data + 8, (-1,), queue)
    assert back.numpy().tolist() == [7, 6, 5]
    made = ForeignTensor(data, shape=(3,))
    made.managed.flags = IS_COPIED
    ext.keep(ForeignArray(made))
    assert ext.kept_flags() == 0  # the copy is none for who gets it next
    gc.collect()
    assert made.deletions == 0
    ext.drop_on_a_thread()
    assert made.deletions == 1


def test_a_host_task_drops_an_array_which_a_later_call_frees(ext):
    address = ext.drop_in_host_task(new_queue(), UNPOOLED // 4)
    while is_usm(address):  # or the test takes too long
        empty(1)


def test_a_thread_of_cpp_drops_an_array_which_its_next_one_frees(ext):
    ext.drop_on_a_cpp_thread(new_queue(), UNPOOLED // 4)  # or it takes too long


def test_an_array_may_be_dropped_while_an_earlier_one_waits_for_its_queue_on_opencl(ext, start):
    pending = start(new_queue())
    addresses = []
    for _ in range(2):
        addresses.append(ext.drop_in_host_task(pending.queue, UNPOOLED // 4))
        empty(1)  # begins to wait for the queue, once at a time
        assert is_usm(addresses[-1])
    pending.end()
    while any(map(is_usm, addresses)):  # or the test takes too long
        empty(1)


def test_a_view_knows_the_queue_that_an_object_or_its_table_says(ext, queue, memory):
    foreign = ForeignTensor(address_of(memory), shape=(12,))
    saying, table = ForeignArray(foreign), Table(foreign)
    saying.sycl_queue = queue
    table.stream = queue.addressof_ref()  # as PyTorch's tensors say it
    for array in (saying, table.array()):
        assert ext.given_back(array).sycl_queue == queue


def test_a_python_object_that_owns_is_dropped_by_any_thread(ext, queue):
    owner = object()
    before = sys.getrefcount(owner)
    ext.drop_owners(queue, owner, 50_000)
    assert sys.getrefcount(owner) == before


def test_an_object_owns_what_it_shows(ext, queue):
    made = ext.SelfOwned(queue, 3)
    gone, tensor = weakref.ref(made), made.values
    del made
    assert gone() is not None
    del tensor
    assert gone() is None


# --- Code of docs/how-to/nanobind.md --------------------------------------------------------------


def test_a_class_gives_back_the_array_that_it_keeps(ext, queue):
    memory = empty(3, device=queue)
    made = ForeignTensor(memory.data, shape=(3,))
    field = ext.Field(ForeignArray(made))
    first, second = field.values, field.values
    assert first.data == second.data == memory.data
    del field, second
    gc.collect()
    assert made.deletions == 0
    del first
    assert made.deletions == 1


@pytest.mark.parametrize("given", [False, True], ids=["made", "given"])
def test_a_kernel_of_a_method_waits_for_who_was_given_the_array(ext, producer, start, given):
    queue = new_queue()
    field = ext.Field(from_dlpack(np.zeros(12, "f4"), device=queue)) if given else None
    field = field or ext.Field(queue, 12)
    taken = field.values.__dlpack__()  # as dpnp takes it, on dpctl's queue
    pending = start(
        dpctl.get_device_cached_queue(queue.sycl_device), into=as_usm_memory(field.values)
    )
    answer_behind(pending, lambda: field.scale(2))
    expected = 2 * np.array(VALUES, "i4").view("f4")
    assert np.array_equal(field.values.numpy(), expected)
    del taken


@pytest.mark.parametrize("other", [False, True], ids=["their queue", "another queue"])
def test_the_kernels_of_a_list_are_ordered(binding, ext, queue, other):
    arrays = [from_dlpack(np.ones(n, "f4"), device=queue) for n in (0, 1, 70)]
    on = new_queue() if other else queue
    ext.scale_all(on, 3, arrays)
    wrong = from_dlpack(np.ones(3), device=queue)
    with reason(binding, "dtype_mismatch", "dtype", in_pybind11=bad_cast()):
        ext.scale_all(on, 3, [*arrays, wrong])  # before any work
    assert all(np.all(x.numpy() == 3) for x in arrays)


# --- Casts and SYCL objects -----------------------------------------------------------------------


@pytest.mark.parametrize("call", ["cast_unlocked(x)", "made_unlocked(x.sycl_queue)"])
def test_a_cast_without_the_gil_ends_with_a_sentence(call, ext, new_process):
    folder = str(Path(ext.__file__).parent)
    done = new_process(
        f"import sys; sys.path.insert(0, {folder!r}); import dpctl, usm_dlpack; "
        f"import {ext.__name__} as ext; x = usm_dlpack.empty(3, device=dpctl.SyclQueue()); "
        f"ext.{call}"
    )
    assert done.returncode in (-signal.SIGABRT, -signal.SIGSEGV)  # the second by CUDA's adapter
    assert "GIL: expected a cast with the GIL held, found it rel" in done.stderr


def test_a_cast_to_an_owned_view_gives_the_reason_in_nanobind(binding, ext, memory):
    arrays = Arrays(memory)
    assert ext.to_owned(arrays.row) == (arrays.row.data, (12,), (1,))
    for array, code, field in (
        (arrays.longs, "dtype_mismatch", "dtype"),
        (arrays.rows, "shape_mismatch", "ndim"),
        (arrays.no_usm, "device_type_unsupported", "device.device_type"),
    ):
        with reason(binding, code, field, in_pybind11=bad_cast()):
            ext.to_owned(array)
    with bad_cast():
        ext.to_owned(3)


def test_objects_of_dpctl_come_back_and_others_are_no_argument(ext, queue):
    again = ext.same_queue(queue)
    assert type(again) is dpctl.SyclQueue
    assert again == ext.same_queue(queue._get_capsule()) == queue
    assert ext.context_of(queue) == queue.sycl_context
    assert ext.device_of(queue.sycl_context) == queue.sycl_device
    assert ext.device_of(queue.sycl_context._get_capsule()) == queue.sycl_device
    assert ext.queue_on(queue.sycl_device).sycl_device == queue.sycl_device
    assert (ext.has_queue(None), ext.has_queue(queue)) == (False, True)
    of_dpctl = (queue.sycl_context, queue.sycl_device, queue.sycl_context._get_capsule())
    for thing in (None, 1, dpctl.SyclQueue, *of_dpctl):
        with no_overload():
            ext.same_queue(thing)


def test_events_order_work(ext, queue):
    pending = PendingFill(queue)
    x = from_dlpack(np.zeros(12, np.float32), device=new_queue())
    event = ext.fill_after(queue, x, depends=[pending.event])
    assert type(event) is dpctl.SyclEvent
    assert pending.is_pending
    pending.open()
    ext.wait_for(event)
    assert np.all(x.numpy() == 3)
    for events in ([None], [event, None], [None, event]):
        with no_overload():
            ext.fill_after(queue, x, events)


def test_an_error_that_a_function_throws_is_pythons(ext, foreign_queue, floats):
    with refused("context_not_default", "queue"):
        ext.check_queue(foreign_queue, floats)


# --- The package's table --------------------------------------------------------------------------


def test_a_wait_that_fails_in_an_extension_is_raised_on_opencl(binding, ext, of_nanobind, queue):
    x = from_dlpack(np.zeros(3, np.float32), device=queue)
    recording = of_nanobind.Recording(dpctl_queue())
    with pytest.raises(RuntimeError, match="found one that records a graph"):
        ext.scale_all(queue, 1, [])
    for call in (ext.rank_one, ext.given_back):
        with refused("runtime_error", "queue", found="one that records a graph"):
            call(x)
    with pytest.raises(TypeError if binding == "nanobind" else ConversionError):
        ext.sizes([x])
    recording.end()
    ext.scale_all(queue, 1, [])


WITHOUT_THE_PACKAGE = """
import sys
sys.path.insert(0, sys.argv[1])
{before}
try:
    import {module}
except ImportError as error:
    print(error.__cause__ or error)
else:
    import dpctl
    print(len(dpctl.get_devices()), "device")
"""
CORE = "import usm_dlpack._core as core; "
PLANT = (
    CORE
    + "from capsules import new_capsule; import ctypes; table = (ctypes.c_uint32 * 2)({}); "
    + "core._package_interface = new_capsule(ctypes.addressof(table), "
    + "b'usm_dlpack.package_interface')"
)
EXPECTED = "usm_dlpack: expected a package with the interface 14, found "
SIZES = "usm_dlpack: expected a package with the interface 14 and arrays of "


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("", "1 device"),  # the package makes the driver known
        ("sys.modules['usm_dlpack'] = None", "No module named 'usm_dlpack._core'"),
        (
            CORE + "core._package_interface = core.DLPackTensor.__dlpack_c_exchange_api__",
            f"{EXPECTED}none; build the extension ",
        ),
        (PLANT.format("12, 72"), f"{EXPECTED}12; build the extension "),
        (PLANT.format("14, 80"), f"{SIZES}72 bytes, found 14 and arrays of 80; build the ext"),
    ],
)
def test_an_extension_needs_the_package_of_its_table(ext, succeed, before, sentence):
    code = WITHOUT_THE_PACKAGE.format(before=before, module=ext.__name__)
    assert sentence in succeed(code, arguments=(str(Path(ext.__file__).parent),))


# --- pybind11 alone -------------------------------------------------------------------------------


def test_an_array_may_clear_its_list_in_pybind11(of_pybind11, floats):
    """The list caster of nanobind borrows the elements."""
    arrays: list[Any] = []
    arrays.append(Calling(floats, arrays.clear))
    assert of_pybind11.sizes(arrays) == [12]


def test_a_view_that_pybind11_casts_lives_as_long_as_the_call(of_pybind11, memory):
    made = ForeignTensor(address_of(memory), shape=(12,))
    assert of_pybind11.during_a_cast(ForeignArray(made), lambda: made.deletions) == 0
    assert made.deletions == 1


# --- nanobind alone -------------------------------------------------------------------------------


def test_nanobind_casts_to_owned_views_alone_and_knows_its_instances(of_nanobind, queue, memory):
    arrays = Arrays(memory)
    with refused("request_unsupported", "view"):  # nothing would keep its memory
        of_nanobind.cast_to_view(arrays.row)
    with bad_cast():
        of_nanobind.cast_to_queue(3)
    for thing in (3, arrays.longs):
        assert not of_nanobind.try_cast_to_owned(thing)
        assert not of_nanobind.try_cast_to_queue(thing)
    things = [arrays.row, arrays.longs, arrays.rows, arrays.no_usm, queue, 3, None]
    for is_array in (of_nanobind.is_row, of_nanobind.is_owned):
        assert [is_array(thing) for thing in things] == [True] + 6 * [False]
    assert [of_nanobind.is_queue(thing) for thing in things] == 4 * [False] + [True] + 2 * [False]


def test_an_ndarray_of_nanobind_becomes_a_view_or_is_refused(of_nanobind, floats, memory):
    matrix = to_dlpack_tensor(floats, shape=(2, 3), strides=(6, 2))
    for read in (of_nanobind.of_ndarray, of_nanobind.of_readonly_ndarray):
        assert read(matrix) == (floats.data, (2, 3), (6, 2))
        with refused("shape_mismatch", "ndim", found="1"):
            read(floats)
    elsewhere = ForeignTensor(address_of(memory))
    elsewhere.tensor.device_id = 99
    with refused("no_device", "device.device_id", found="99"):
        of_nanobind.of_ndarray(ForeignArray(elsewhere))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("factor", [3.0, np.int64(3)], ids=["float", "int64"])
def test_each_overload_launches_the_kernel_of_its_dtype(of_nanobind, queue, dtype, factor):
    x = from_dlpack(np.arange(70, dtype=dtype), device=queue)
    of_nanobind.scale(queue, x, factor)
    assert np.array_equal(x.numpy(), 3 * np.arange(70))


@pytest.mark.parametrize("argument", [0, 1])
def test_a_kernel_waits_for_the_work_on_each_array(of_nanobind, producer, start, argument):
    pending = start(producer)
    arrays = [to_dlpack_tensor(pending.memory, dtype="f4", queue=producer)]
    arrays.insert(1 - argument, from_dlpack(np.ones(12, "f4"), device=new_queue()))
    answer_behind(pending, lambda: of_nanobind.axpy(3, *arrays))


def test_a_kernel_on_the_queue_of_an_array_of_numpy_returns_a_number(of_nanobind):
    x, y = (from_dlpack(np.arange(n, n + 3, dtype="f4"), device="cpu") for n in (0, 1))
    assert x.sycl_queue == y.sycl_queue
    assert of_nanobind.dot(x, y) == 8


def test_memory_of_ones_own_becomes_a_tensor(of_nanobind, queue):
    made = of_nanobind.allocated(queue, 3)
    assert (made.shape, made.usm_type, made.sycl_queue) == ((3,), "device", queue)


IN_A_NEW_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
import dpctl
import numpy as np
import usm_dlpack
import extension_under_test_module as ext
queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
"""


@pytest.fixture
def folder(of_nanobind: Any) -> str:
    """Return the folder of the extensions, the argument of a new process."""
    return str(Path(of_nanobind.__file__).parent)


def test_nothing_leaks_in_nanobind(folder, succeed, new_process):
    # nanobind writes to stderr what lives at the end; what is kept here goes then.
    leak = "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(ext.RowSums()))"
    done = new_process(IN_A_NEW_PROCESS + leak, arguments=(folder,))
    assert done.returncode == 0
    assert "leaked" in done.stderr
    code = """
x = ext.full(queue, 12, 3)
for wrong in (1, np.zeros(12, "f4"), usm_dlpack.to_dlpack_tensor(x, dtype="i2")):
    try:
        ext.rank_one(wrong)
    except (TypeError, BufferError):
        pass
try:
    ext.rank_one(ext.readonly_result(queue))
except BufferError as error:
    kept_error = error
ext.keep(ext.full(queue, 4))
y = ext.zeros(queue, 12)
ext.fill_after(queue, y, [ext.fill_after(queue, y)]).wait()
print(y.numpy()[0], ext.Field(queue, 3).values.shape, ext.RowSums(x, 1).add(x))
"""
    assert succeed(IN_A_NEW_PROCESS + code, arguments=(folder,)) == "3.0 (3,) 72.0\n"


BEHIND_A_TASK_THAT_NEEDS_THE_GIL = """
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
go(lambda: ext.zeros(queue, 6), lambda kept: kept.clear())
queue._submit_keep_args_alive([ext.zeros(queue, 6)], [])  # dropped in the task
queue.wait()
queue = dpctl.SyclQueue(property="in_order")
for _ in range(200):  # while this thread submits
    ext.drop_in_task(queue, ext.zeros(queue, 3))
queue.wait()
print("fine")
"""


def test_an_array_goes_while_work_before_it_needs_the_gil(folder, succeed):
    printed = succeed(IN_A_NEW_PROCESS + BEHIND_A_TASK_THAT_NEEDS_THE_GIL, arguments=(folder,))
    assert printed == "scratch: expected no failure, found one as asked for\nfine\n"


TYPED = """
import dpctl
import dpctl.memory
import extension_under_test_module as ext
import usm_dlpack

def use(queue: dpctl.SyclQueue, memory: dpctl.memory.MemoryUSMDevice) -> None:
    tensor: usm_dlpack.DLPackTensor = ext.full(queue, 3, value=2.0)
    ext.rank_one(memory)
    ext.which(tensor, 1)
    ext.keep(usm_dlpack.to_dlpack_tensor(memory))
    ext.RowSums().add(row=tensor)
    back: usm_dlpack.DLPackTensor = ext.take_back()
    print(back, ext.maybe(), ext.sizes([tensor, back]))
"""
WRONGLY_TYPED = """
import extension_under_test_module as ext
import usm_dlpack
tensor = usm_dlpack.from_dlpack(None)
ext.rank_one(3)
ext.rank_two_const([tensor])
ext.axpy(None, tensor, tensor)
number: int = ext.full(None, 3)
"""


@pytest.mark.extended
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_know_the_extension(checker, tmp_path):
    shutil.copy(extension_under_test.build() / f"{extension_under_test.NAME}.pyi", tmp_path)
    (tmp_path / "typed.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(WRONGLY_TYPED)
    settings = tmp_path / "settings.ini"
    settings.write_text("[mypy]\nstrict = true\n[mypy-dpctl.*]\nignore_missing_imports = true\n")
    done = checked_by(checker, tmp_path, *(["--config-file", settings.name] * (checker == "mypy")))
    for line in range(5, 9):
        assert f"wrong.py:{line}:" in done.stdout, done.stdout + done.stderr
    assert not re.search(r"typed\.py:.*error", done.stdout), done.stdout
    assert "is not defined" not in done.stdout, done.stdout


@pytest.mark.extended
def test_what_can_never_be_right_does_not_compile(folder):
    commands = json.loads(Path(folder, "compile_commands.json").read_text())
    source = extension_under_test.PROJECT / "refused_extension.cpp"
    flags = [
        word
        for name in MODULES.values()
        for command in commands
        if command["file"].endswith(f"/{name}.cpp")
        for word in shlex.split(command["command"].partition(" -o ")[0])[1:]
    ]
    done = subprocess.run(
        ["g++", *flags, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    sentences = re.findall(r"static assertion failed: (\w+: expected .*)", done.stderr)
    assert sorted(sentence.split(" found ")[1].split(";")[0] for sentence in sentences) == [
        "a Python handle, which needs the GIL",
        "a usm_array, which would own memory that is Python's",
        "a view alone, whose memory nothing keeps",
        "fewer, of which an nb::ndarray does not say whether they are padded",
    ]
    remedies = re.findall(r"deleted function .*\n(?:.*\n)*?.* = delete;  // (.*)", done.stderr)
    assert sorted(remedies) == [
        "keep the any_view in a variable",
        *["keep the tensor"] * 6,
        *["std::move it, or share it by a std::shared_ptr"] * 2,
    ]
    # Nothing else is wrong: no name of the one binding's header clashes with the other's.
    assert len(re.findall(r" error: ", done.stderr)) == len(sentences) + len(remedies)


@pytest.mark.extended
@pytest.mark.parametrize("header", [True, False])
def test_a_forgotten_header_or_driver_is_seen_at_the_first_call(folder, tmp_path, succeed, header):
    commands = json.loads(Path(folder, "compile_commands.json").read_text())
    (command,) = [one for one in commands if one["file"].endswith("pybind11_under_test_module.cpp")]
    flags = shlex.split(command["command"].partition(" -o ")[0])[1:]
    included = ["-include", "usm_dlpack/pybind11.hpp"] if header else []
    source = extension_under_test.PROJECT / "forgotten.cpp"
    made, library = tmp_path / "forgotten.so", Path(sys.prefix, "lib")
    libraries = [library / "libsycl.so", f"-Wl,-rpath,{library}"]
    compiler = ["g++", *flags, *included, "-O0", "-shared"]
    subprocess.run([*compiler, source, "-o", made, *libraries], check=True)
    code = """
        import sys
        import forgotten

        def attempt(call, *arguments):
            try:
                print(call(*arguments))
            except Exception as error:
                print(" ".join(str(error).split()))

        if sys.argv[1:] == ["first"]:
            attempt(forgotten.device)
        else:
            import usm_dlpack

            x = usm_dlpack.empty(4)
            attempt(forgotten.size, x)
            attempt(forgotten.sizes, [x])
    """
    path = f"{tmp_path}:{Path(extension_under_test.__file__).parent}"
    first = succeed(code, arguments=("first",), PYTHONPATH=path)
    assert first.startswith("No device of requested type available.")
    size, sizes = succeed(code, PYTHONPATH=path).splitlines()
    assert size == "4" if header else "(arg0: Kokkos::mdspan<float," in size
    assert "(arg0: std::vector<Kokkos::mdspan<float," in sizes
    assert "Did you forget to `#include <pybind11/stl.h>`?" in sizes
