# SPDX-License-Identifier: Apache-2.0
"""Overloads for arrays in extensions: which of them runs, and else which reason is raised."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import extension_under_test
import numpy as np
import pytest
import usm_dlpack
from capsules import Calling
from refusals import check_refusal, refused
from usm_dlpack import ConversionError, to_dlpack_tensor

MODULES = {"nanobind": extension_under_test.NAME, "pybind11": "pybind11_under_test_module"}
CONVERTED = np.float32(1)  # becomes a double only in the second round over the overloads
ROW, INTEGERS = "const float32 view of rank 1: ", "const int32 view of rank 1: "
WRITABLE_ROW = "float32 view of rank 1: "


@pytest.fixture(scope="module", params=MODULES)
def binding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def ext(binding: str) -> Any:
    return extension_under_test.load(MODULES[binding])


class Arrays:
    """Arrays of one memory, and arrays elsewhere."""

    def __init__(self, memory: Any) -> None:
        self.row = to_dlpack_tensor(memory, dtype="float32")
        self.integers = to_dlpack_tensor(memory, dtype="int32")
        self.bytes = to_dlpack_tensor(memory, dtype="uint8")
        self.longs = to_dlpack_tensor(memory, dtype="int64")
        self.table = to_dlpack_tensor(memory, dtype="int32", shape=(3, 4))
        self.gaps = to_dlpack_tensor(memory, dtype="float32", shape=(2, 2), strides=(6, 2))
        self.broadcast = to_dlpack_tensor(memory, dtype="float32", shape=(3, 4), strides=(0, 1))
        self.on_host = np.zeros(3, np.int32)
        self.row_on_host = np.zeros(3, np.float32)


# The end of a call: what it returns, or the rule, the view and what was found, or None for the
# TypeError of the binding.
End = str | tuple[str, str, str] | None
Call = tuple[str, Callable[[Arrays], tuple[Any, ...]], End]

WITH_A_NUMBER: dict[str, Call] = {
    "the second overload": ("which", lambda a: (a.integers,), "integers"),
    "no dtype": ("which", lambda a: (a.longs,), ("dtype_mismatch", ROW, "int64")),
    "the dtype of the second": ("which", lambda a: (a.table,), ("rank_mismatch", INTEGERS, "2")),
    "dtype and rank of the third": (
        "which",
        lambda a: (a.gaps,),
        ("layout_mismatch", "const float32 view of rank 2: ", "6"),
    ),
    "no USM": (
        "which",
        lambda a: (a.on_host,),
        ("device_type_unsupported", INTEGERS, "kDLCPU (1)"),
    ),
    "None": ("which", lambda _: (None,), None),
    "two rows": ("which_two", lambda a: (a.row, a.row), "rows"),
    "two of integers": ("which_two", lambda a: (a.integers, a.integers), "integers"),
    "a row and integers": (
        "which_two",
        lambda a: (a.row, a.integers),
        ("dtype_mismatch", ROW, "int32"),
    ),
    "integers and a row": (
        "which_two",
        lambda a: (a.integers, a.row),
        ("dtype_mismatch", INTEGERS, "float32"),
    ),
    "a row and no USM": (
        "which_two",
        lambda a: (a.row, a.row_on_host),
        ("device_type_unsupported", ROW, "kDLCPU (1)"),
    ),
    "a row and None": ("which_two", lambda a: (a.row, None), None),
    "any array": ("which_any", lambda a: (a.longs,), "any array"),
    "any array, no USM": (
        "which_any",
        lambda a: (a.on_host,),
        ("device_type_unsupported", "array of any type: ", "kDLCPU (1)"),
    ),
    "any object": ("which_object", lambda a: (a.longs,), "any object"),
    "not there": ("which_optional", lambda _: (None,), "a row"),
    "perhaps integers": ("which_optional", lambda a: (a.integers,), "integers"),
    "a list of integers": ("which_list", lambda a: ([a.integers, a.integers],), "integers"),
    "gaps to write": ("which_access", lambda a: (a.gaps,), "writes"),
    "overlapping elements": ("which_access", lambda a: (a.broadcast,), "reads"),
    "noconvert in between": ("which_mixed", lambda a: (a.integers,), "integers"),
}
ALONE: dict[str, Call] = {
    "a lone function": (
        "rank_one",
        lambda a: (a.longs,),
        ("dtype_mismatch", WRITABLE_ROW, "int64"),
    ),
    "no number": ("which", lambda a: (a.integers, "no number"), None),
    "two of integers, no number": (
        "which_two",
        lambda a: (a.integers, a.integers, "no number"),
        None,
    ),
    "behind a number, not converted": (
        "number_first",
        lambda a: (CONVERTED, a.integers),
        "integers",
    ),
    "behind a number": ("number_before", lambda a: (1.0, a.integers), "integers"),
    "behind a queue": ("queue_before", lambda a: (a.row.sycl_queue, a.integers), "integers"),
    "behind None": ("queue_before", lambda a: (None, a.integers), None),
    "the first behind None": ("queue_before", lambda a: (None, a.row), None),
    "a pair": ("which_pair", lambda a: (a.integers, a.integers), "integers"),
    "before None": ("which_pair", lambda a: (a.row, None), None),
    "integers before None": ("which_pair", lambda a: (a.integers, None), None),
    "not a pair": (
        "which_pair",
        lambda a: (a.integers, a.row),
        ("dtype_mismatch", INTEGERS, "float32"),
    ),
    "only the second": ("with_perhaps", lambda a: (None, a.row), None),
    "only the first": ("with_perhaps", lambda a: (a.integers, None), "integers"),
    "perhaps a row, no number": ("which_optional", lambda a: (a.row, "no number"), None),
    "a list with None": ("which_list", lambda a: ([a.row, None], 1.0), None),
}


def with_number(call: Call, number: Any) -> Call:
    function, arguments, end = call
    return function, lambda a: (*arguments(a), number), end


CALLS = (
    {name: with_number(call, 1.0) for name, call in WITH_A_NUMBER.items()}
    | {f"{name}, converted": with_number(call, CONVERTED) for name, call in WITH_A_NUMBER.items()}
    | ALONE
)


FIELDS = {
    "dtype_mismatch": "dtype",
    "rank_mismatch": "ndim",
    "layout_mismatch": "strides[0]",
    "device_type_unsupported": "device.device_type",
}


def end_of(ext: Any, call: Call, arrays: Arrays) -> Any:
    """Make a call, always at the same place in the code, and return its result or its error."""
    function, arguments, _ = call
    try:
        return getattr(ext, function)(*arguments(arrays))
    except (ConversionError, TypeError) as error:
        return error


def check_end(found: Any, end: End) -> None:
    if isinstance(end, tuple):
        code, wanted, part = end
        check_refusal(found, code, FIELDS[code], wanted=wanted, found=part)
    elif end is None:
        assert type(found) is TypeError
        assert "incompatible function arguments" in str(found)
    else:
        assert found == end


@pytest.mark.parametrize("before", CALLS)
def test_a_call_ends_as_it_must_whatever_call_was_before(ext, memory, before):
    arrays = Arrays(memory)
    for call in CALLS.values():
        check_end(end_of(ext, CALLS[before], arrays), CALLS[before][2])
        check_end(end_of(ext, call, arrays), call[2])


def test_an_error_of_overloads_does_not_hide_the_reason_of_a_function_alone(ext, memory):
    arrays = Arrays(memory)
    alone = ("maybe_pointer", lambda a: (a.integers,), ("dtype_mismatch", ROW, "int32"))
    for call in (ALONE["no number"], alone):
        check_end(end_of(ext, call, arrays), call[2])


@pytest.mark.parametrize("within", ["the second overload", "integers and a row", "no number"])
def test_a_call_within_a_call_does_not_change_it(ext, memory, within):
    arrays = Arrays(memory)
    nested = Calling(arrays.integers, lambda: end_of(ext, CALLS[within], arrays))
    assert ext.which_two(arrays.integers, nested, CONVERTED) == "integers"
    assert ext.which_two(nested, arrays.integers, CONVERTED) == "integers"


def test_a_cast_gives_the_reason_whatever_call_was_before(ext, memory):
    integers = to_dlpack_tensor(memory, dtype="int32")

    def call_overloads(arguments: Any) -> Any:
        return ext.which_two(*arguments)

    def cast(arguments: Any) -> Any:  # likewise in the same frame and at the same instruction
        return ext.cast_row(*arguments)

    for _ in range(3):
        assert call_overloads((integers, integers, 1.0)) == "integers"
        with refused("dtype_mismatch", "dtype", found="int32", wanted=ROW):
            cast((integers,))


def test_a_cast_gives_the_reason_of_an_array_at_the_address_of_another(ext, memory):
    def call(function: Any, dtype: str, *others: Any) -> Any:
        return function(to_dlpack_tensor(memory, dtype=dtype), *others)

    for _ in range(3):
        assert call(ext.which_optional, "float32", 1.0) == "a row"
        with refused("dtype_mismatch", "dtype", found="int32", wanted=ROW):
            call(ext.cast_row, "int32")


@pytest.mark.parametrize("name", ["writes", "any_writes"])
def test_elements_that_overlap_are_not_written(ext, memory, name):
    arrays = Arrays(memory)
    getattr(ext, name)(arrays.gaps)
    with refused("overlapping", "strides", expected="mutable", remedy='order="C"', wanted=None):
        getattr(ext, name)(arrays.broadcast)
    with refused("layout_mismatch", "strides[0]", remedy='order="C"', wanted=None):
        ext.strided(arrays.broadcast)


def test_a_number_that_must_be_converted_ends_the_first_round_before_the_array(ext, memory):
    arrays = Arrays(memory)
    again = ("number_before", lambda a: (CONVERTED, a.integers), ("dtype_mismatch", ROW, "int32"))
    for call in (ALONE["behind a number"], again, again) * 2:
        check_end(end_of(ext, call, arrays), call[2])


def test_the_reason_is_that_of_the_first_array_by_its_name_in_the_caller(ext, memory):
    arrays = Arrays(memory)
    _hidden = on_host = arrays.row_on_host
    longs, ints_on_host = arrays.longs, arrays.on_host
    calls: dict[str, Callable[[], Any]] = {
        f"on_host ({ROW[:-2]}): device.device_type: ": lambda: ext.which_two(on_host, longs, 1.0),
        f"longs ({ROW[:-2]}): dtype: ": lambda: ext.which_two(arrays.row, longs, 1.0),
        f"{ROW}dtype: ": lambda: ext.which_two(arrays.row, arrays.longs, 1.0),
        f"{ROW}device.device_type: ": lambda: ext.which_two(_hidden, longs, 1.0),
        "ints_on_host (array of any type): device.": lambda: ext.which_any(ints_on_host, 1.0),
    }
    for begin, call in calls.items():
        with pytest.raises(ConversionError) as caught:
            call()
        assert str(caught.value).startswith(begin)


def test_the_name_of_an_array_may_be_that_of_a_global_variable(ext, memory):
    variables = {1: 0, "": 0, "ext": ext, "longs": to_dlpack_tensor(memory, dtype="int64")}
    call = "ext.which_two(longs, longs, 1.0)"
    for code in (call, f"def function():\n    {call}\nfunction()"):
        with pytest.raises(ConversionError) as caught:
            exec(code, variables)
        assert str(caught.value).startswith(f"longs ({ROW[:-2]}): dtype: ")


@pytest.mark.parametrize("call", ["cast_unlocked(x)", "made_unlocked(x.sycl_queue)"])
def test_a_cast_without_the_gil_ends_with_a_sentence(call, binding, ext, new_process):
    folder = str(Path(ext.__file__).parent)
    done = new_process(
        f"import sys; sys.path.insert(0, {folder!r}); import dpctl, usm_dlpack; "
        f"import {ext.__name__} as ext; x = usm_dlpack.empty(3, device=dpctl.SyclQueue()); "
        f"ext.{call}"
    )
    assert done.returncode == -signal.SIGABRT
    assert "GIL: expected that a cast to or from Python holds it, found it rel" in done.stderr


def test_a_view_of_any_array_is_refused_by_the_name_that_its_author_gives(ext, memory):
    longs = to_dlpack_tensor(memory, dtype="int64")
    remedy = "; if you pass a copy, read the result from the copy"
    with refused("dtype_mismatch", "y.dtype", expected="float32", found="int64", remedy=remedy):
        ext.any_as_row(longs)


def test_another_dtype_in_host_memory_is_told_how_to_get_both(ext):
    remedy = 'usm_dlpack.from_dlpack(numpy.asarray(x, "float32"), device=(14, 0))'
    x = np.zeros(3, np.uint8)
    with refused(
        "dtype_mismatch", "dtype", found="uint8 in host memory", remedy=remedy, wanted=WRITABLE_ROW
    ):
        ext.rank_one(x)
    assert eval(remedy, {"usm_dlpack": usm_dlpack, "numpy": np, "x": x}).dtype == np.float32
