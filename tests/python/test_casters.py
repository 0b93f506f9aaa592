# SPDX-License-Identifier: Apache-2.0
"""Arguments of an extension, in both bindings: which overload runs, and which error is raised."""

import ctypes
import gc
import itertools
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import tvm_ffi
import usm_dlpack
from capsules import (
    READ_ONLY,
    VERSIONED,
    Calling,
    DLTensor,
    ForeignArray,
    ForeignTensor,
    OldArray,
    call_deleter,
    consume,
    dpctl_queue,
    integers,
    name_of,
    pointer_of,
)
from memory_sources import TypedArray, address_of, allocate
from refusals import check_refusal, refused
from threads_at_once import THREADS, at_once
from usm_dlpack import ConversionError, DLPackTensor, to_dlpack_tensor

MODULES = {"nanobind": extension_under_test.NAME, "pybind11": "pybind11_under_test_module"}
CONVERTED = np.float32(1)  # becomes a double only in the second round over the overloads
INTERFACE = "__sycl_usm_array_interface__"


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
        self.doubles = to_dlpack_tensor(memory, dtype="float64")
        self.longs = to_dlpack_tensor(memory, dtype="int64")
        self.table = to_dlpack_tensor(memory, dtype="int32", shape=(3, 4))
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
        self.read_only = self._read_only(memory, (12,))
        self.read_only_rows = self._read_only(memory, (3, 4))
        self.on_host = np.zeros(3, np.int32)
        self.row_on_host = np.zeros(3, np.float32)

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

WITH_A_NUMBER: dict[str, Call] = {
    "a row": ("which", lambda a: (a.row,), "a row"),
    "another dtype": ("which", lambda a: (a.integers,), "integers"),
    "another rank": ("which", lambda a: (a.columns,), "columns"),
    "another layout": ("which", lambda a: (a.four_rows,), "four rows"),
    "another extent": ("which", lambda a: (a.rows,), "rows"),
    "few bytes": ("which", lambda a: (a.few_bytes,), "few bytes"),
    "another index type": ("which", lambda a: (a.bytes,), "bytes"),
    "no overload": ("which", lambda a: (a.longs,), ("dtype_mismatch", "int64")),
    "no overload of the rank": ("which", lambda a: (a.table,), ("dtype_mismatch", "int32")),
    "no USM": ("which", lambda a: (a.on_host,), ("device_type_unsupported", "kDLCPU (1)")),
    "None": ("which", lambda _: (None,), None),
    "float32": ("which_precision", lambda a: (a.row,), "float32"),
    "float64": ("which_precision", lambda a: (a.doubles,), "float64"),
    "device USM": ("which_kind", lambda a: (a.row,), "device"),
    "shared USM": ("which_kind", lambda a: (a.shared,), "shared"),
    "host USM": ("which_kind", lambda a: (a.host,), ("usm_type_not_accepted", "host")),
    "memory of the host": ("which_memory", lambda a: (a.row_on_host,), "host"),
    "no memory of the host": ("which_memory", lambda a: (a.row,), "USM"),
    "gaps to write": ("which_access", lambda a: (a.gaps,), "writes"),
    "elements that overlap": ("which_access", lambda a: (a.broadcast,), "reads"),
    "read-only": ("which_access", lambda a: (a.read_only_rows,), "reads"),
    "a row before any array": ("which_any", lambda a: (a.row,), "a row"),
    "any array": ("which_any", lambda a: (a.longs,), "any array"),
    "any array in USM": (
        "which_any",
        lambda a: (a.on_host,),
        ("device_type_unsupported", "kDLCPU (1)"),
    ),
    "a row before any object": ("which_object", lambda a: (a.row,), "a row"),
    "any object": ("which_object", lambda a: (a.longs,), "any object"),
    "an object on the host": ("which_object", lambda a: (a.row_on_host,), "any object"),
    "not there": ("which_optional", lambda _: (None,), "a row"),
    "perhaps integers": ("which_optional", lambda a: (a.integers,), "integers"),
    "not perhaps": ("which_optional", lambda a: (a.longs,), None),
    "a list of integers": ("which_list", lambda a: ([a.integers, a.integers],), "integers"),
    "a list of both": ("which_list", lambda a: ([a.row, a.integers],), None),
    "a list with None": ("which_list", lambda a: ([a.row, None],), None),
    "two rows": ("which_two", lambda a: (a.row, a.row), "rows"),
    "two of integers": ("which_two", lambda a: (a.integers, a.integers), "integers"),
    "a row and integers": (
        "which_two",
        lambda a: (a.row, a.integers),
        ("dtype_mismatch", "int32"),
    ),
    "integers and a row": (
        "which_two",
        lambda a: (a.integers, a.row),
        ("dtype_mismatch", "float32"),
    ),
    "a row and None": ("which_two", lambda a: (a.row, None), None),
}
WITHOUT: dict[str, Call] = {
    "another argument is at fault": ("which", lambda a: (a.integers, "no number"), None),
    "behind None": ("behind_perhaps", lambda a: (None, a.integers), "integers"),
    "behind a null row": ("behind_perhaps", lambda a: (None, a.row), "rows"),
    "behind None, no overload": (
        "behind_perhaps",
        lambda a: (None, a.longs),
        ("dtype_mismatch", "int64"),
    ),
    "before None": ("behind_perhaps", lambda a: (a.row, None), None),
    "behind a number": ("number_before", lambda a: (1.0, a.integers), "integers"),
    "behind a number, noconvert": ("number_first", lambda a: (CONVERTED, a.integers), "integers"),
    "no overload, noconvert": ("number_first", lambda a: (CONVERTED, a.longs), None),
    "a pair": ("which_pair", lambda a: (a.integers, a.integers), "integers"),
    "not a pair": ("which_pair", lambda a: (a.integers, a.row), ("dtype_mismatch", "float32")),
    "lone, dtype": ("rank_one", lambda a: (a.longs,), ("dtype_mismatch", "int64")),
    "lone, rank": ("rank_one", lambda a: (a.rows,), ("shape_mismatch", "2", "ndim")),
    "lone, layout": ("rank_two_const", lambda a: (a.columns,), ("layout_mismatch", "1")),
    "lone, stride": ("strided", lambda a: (a.broadcast,), ("layout_mismatch", "0")),
    "lone, overlap": ("writes", lambda a: (a.broadcast,), ("overlapping", "do not prove it")),
    "lone, extent": ("static_extent", lambda a: (a.rows,), ("shape_mismatch", "3", "shape[0]")),
    "lone, index type": ("small_index", lambda a: (a.bytes,), ("index_type_too_small", "128")),
    "lone, read-only": ("rank_one", lambda a: (a.read_only,), ("read_only", "read-only")),
    "lone, kind": ("device_only", lambda a: (a.shared,), ("usm_type_not_accepted", "shared")),
    "lone, host": ("rank_one", lambda a: (a.row_on_host,), ("device_type_unsupported", "kDLCPU")),
    "lone, a pointer": ("maybe_pointer", lambda a: (a.longs,), ("dtype_mismatch", "int64")),
    "lone, an owned view": ("given_back", lambda a: (a.longs,), ("dtype_mismatch", "int64")),
    "lone, optional": ("maybe", lambda a: (a.longs,), None),
    "lone, list": ("sizes", lambda a: ([a.row, a.longs],), None),
    "lone, variant": ("either", lambda a: (a.longs,), None),
    "lone, no array": ("rank_one", lambda _: (1,), None),
}


def with_number(call: Call, number: Any) -> Call:
    function, arguments, end = call
    return function, lambda a: (*arguments(a), number), end


CALLS = (
    {name: with_number(call, 1.0) for name, call in WITH_A_NUMBER.items()}
    | {f"{name}, converted": with_number(call, CONVERTED) for name, call in WITH_A_NUMBER.items()}
    | {f"{name}, an int": with_number(call, 1) for name, call in WITH_A_NUMBER.items()}
    | WITHOUT
)
FIELDS = {
    "dtype_mismatch": "dtype",
    "layout_mismatch": "strides[0]",
    "index_type_too_small": "shape[0]",
    "overlapping": "strides",
    "read_only": "flags",
    "usm_type_not_accepted": "data",
    "device_type_unsupported": "device.device_type",
}


def end_of(ext: Any, call: Call, arrays: Arrays) -> Any:
    """Make a call, always at the same place in the code, and return its result or its error."""
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


def test_a_call_ends_as_it_must_whatever_call_was_before(binding, ext, memory):
    arrays = Arrays(memory)
    for before, call in itertools.product(CALLS.values(), repeat=2):
        end_of(ext, before, arrays)
        check_end(binding, end_of(ext, call, arrays), call[2])


@pytest.mark.parametrize(
    "argument",
    [
        *(np.array(["a"]), np.zeros(3, ">f4"), np.ndarray, DLPackTensor),
        types.SimpleNamespace(__dlpack__=None),
    ],
    ids=["a text", "another byte order", "a class", "our class", "no method"],
)
def test_what_is_no_array_in_usm_is_left_to_an_overload_for_any_object(ext, argument):
    assert ext.which_object(argument, 1.0) == "any object"


def test_a_number_that_is_converted_hides_later_overloads_in_nanobind(binding, ext, memory):
    call = ("number_before", lambda a: (CONVERTED, a.integers), ("dtype_mismatch", "int32"))
    end = call[2] if binding == "nanobind" else "integers"
    check_end(binding, end_of(ext, call, Arrays(memory)), end)


def test_the_typeerror_of_pybind11_shows_what_is_taken_and_what_was_passed(binding, ext, memory):
    longs = Arrays(memory).longs
    if binding == "pybind11":
        with pytest.raises(TypeError) as caught:
            ext.rank_one(longs)
        assert "dict(dtype='float32', shape=(None,), order='C')" in str(caught.value)
        assert repr(longs).split("(")[0] in str(caught.value)
    with refused("dtype_mismatch", "y.dtype", expected="float32", found="int64"):
        ext.any_as_row(longs)


def test_signatures_say_dtype_shape_order_and_kind(ext):
    for function, text in {
        "rank_one": "dtype='float32', shape=(None,), order='C')",
        "rank_two_const": "dtype='float32', shape=(None, None), order='C', writable=False)",
        "left": "dtype='float32', shape=(None, None), order='F', writable=False)",
        "static_extent": "dtype='float32', shape=(4, None), order='C', writable=False)",
        "relaxed": "dtype='float32', shape=(None, None), writable=False)",
        "scalar": "dtype='float64', shape=(), writable=False)",
        "device_only": "shape=(None,), order='C', usm_type='device', writable=False)",
    }.items():
        signature = getattr(ext, function).__doc__
        assert "typing.Annotated[usm_dlpack.UsmArray, dict(dtype=" in signature
        assert text in signature
    assert "usm_dlpack.UsmArray" in ext.any_as_row.__doc__
    assert ext.given_back.__doc__.strip().endswith("-> usm_dlpack.DLPackTensor")
    assert "queue: dpctl.SyclQueue" in ext.same_queue.__doc__


# --- What is always raised ------------------------------------------------------------------------


def foreign(memory: Any, **changes: Any) -> ForeignArray:
    made = ForeignTensor(address_of(memory), shape=(12,))
    for name, value in changes.items():
        setattr(made.tensor, name, value)
    return ForeignArray(made)


# A proof that fails: the array, the code and the field.
PROOFS: dict[str, tuple[Callable[[Any, Any], Any], str, str]] = {
    "a context": (
        lambda _, other: TypedArray(allocate("device", 48, other)),
        "context_not_default",
        "context",
    ),
    "a device": (
        lambda memory, _: foreign(memory, device_id=99),
        "no_device",
        "device.device_id",
    ),
    "bounds": (lambda memory, _: foreign(memory, byte_offset=1 << 40), "pointer_unknown", "data"),
    "alignment": (
        lambda memory, _: foreign(memory, byte_offset=1),
        "data_misaligned",
        "byte_offset",
    ),
    "no capsule": (lambda *_: OldArray("no capsule"), "capsule_unusable", "capsule"),
}
USES: dict[str, Callable[[Any, Any], Any]] = {
    "a lone function": lambda ext, x: ext.rank_one(x),
    "overloads": lambda ext, x: ext.which(x, 1.0),
    "overloads, converted": lambda ext, x: ext.which(x, CONVERTED),
    "a pointer": lambda ext, x: ext.maybe_pointer(x),
    "an owned view": lambda ext, x: ext.given_back(x),
    "any view": lambda ext, x: ext.any_given_back(x),
    "a cast": lambda ext, x: ext.to_owned(x),
}
IN_CONTAINERS: dict[str, Callable[[Any, Any], Any]] = {
    "a list": lambda ext, x: ext.sizes([x]),
    "an optional": lambda ext, x: ext.maybe(x),
    "a variant": lambda ext, x: ext.either(x),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("make", "code", "field"), PROOFS.values(), ids=PROOFS)
def test_a_failed_proof_is_raised(ext, memory, foreign_queue, make, code, field, use):
    with refused(code, field):
        USES[use](ext, make(memory, foreign_queue))


@pytest.mark.parametrize("use", IN_CONTAINERS)
def test_a_failed_proof_in_a_container_ends_as_in_the_binding(binding, ext, foreign_queue, use):
    array = TypedArray(allocate("device", 48, foreign_queue))
    if binding == "nanobind":
        with pytest.raises(TypeError, match="incompatible function arguments"):
            IN_CONTAINERS[use](ext, array)
    else:
        with refused("context_not_default", "context"):
            IN_CONTAINERS[use](ext, array)


def fail(error: BaseException | type[BaseException]) -> Any:
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyError("mine")], ids=repr)
@pytest.mark.parametrize("use", USES)
def test_what_an_array_raises_is_raised(ext, memory, use, error):
    tensor = to_dlpack_tensor(memory, dtype="f4")
    with pytest.raises(type(error)) as caught:
        USES[use](ext, Calling(tensor, lambda: fail(error)))
    assert caught.value is error


@pytest.mark.parametrize("error", [AttributeError, OSError])
def test_an_error_of_an_array_about_its_queue_is_raised(ext, memory, error):
    members = {
        "__dlpack__": lambda self, **_: to_dlpack_tensor(self, dtype="f4").__dlpack__(),
        "sycl_queue": property(lambda _: fail(error("broken"))),
    }
    array = type("Array", (TypedArray,), members)(memory)
    with pytest.raises(error, match="broken"):
        ext.rank_one(array)


def test_an_error_in_the_middle_leaves_nothing_behind(binding, ext, memory):
    arrays = Arrays(memory)
    failing = Calling(arrays.integers, lambda: fail(KeyError("mine")))

    def references() -> list[int]:
        gc.collect()
        return [sys.getrefcount(x) for x in (arrays.integers, failing)]

    before = references()
    for call in CALLS.values():
        for arguments in ((arrays.integers, failing, 1.0), (failing, arrays.integers, CONVERTED)):
            with pytest.raises(KeyError, match="mine"):
                ext.which_two(*arguments)
        with pytest.raises(IndexError, match="too far"):
            ext.fail(arrays.row)
        check_end(binding, end_of(ext, call, arrays), call[2])
    del arguments
    assert references() == before


# --- Calls within calls, and on threads -----------------------------------------------------------


@pytest.mark.parametrize("within", ["another dtype", "integers and a row", "no overload"])
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


def test_a_producer_calls_the_same_function(ext, memory):
    arrays = Arrays(memory)
    inner = []
    nested = Calling(arrays.integers, lambda: inner.append(ext.which(arrays.row, CONVERTED)))
    assert ext.which(nested, CONVERTED) == "integers"
    assert set(inner) == {"a row"}


def test_threads_call_at_once(binding, ext, memory):
    arrays = Arrays(memory)

    def work(number: int) -> None:
        for _ in range(3):
            for call in list(CALLS.values())[number:] + list(CALLS.values())[:number]:
                check_end(binding, end_of(ext, call, arrays), call[2])

    assert at_once(work) == [None] * THREADS


# --- What is an array, and how long it lives ------------------------------------------------------


class Proxy:
    """An object that forwards what it is asked for."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__dlpack"):
            return getattr(self.array, name)
        raise AttributeError(name)


def by_itself(array: Any, *names: str) -> Any:
    """Return an object that has attributes of an array, and its type has none."""
    return types.SimpleNamespace(**{name: getattr(array, name) for name in names})


ARRAYS: dict[str, Callable[[Any, Any], Any]] = {
    "a tensor of this package": lambda tensor, _: tensor,
    "an interface": lambda _, memory: TypedArray(memory, shape=(3, 4)),
    "the exchange API": lambda tensor, _: tvm_ffi.from_dlpack(tensor),
    "before all keywords": lambda tensor, _: OldArray(tensor.__dlpack__()),
    "the protocol by itself": lambda tensor, _: by_itself(
        tensor, "__dlpack__", "__dlpack_device__"
    ),
    "an interface by itself": lambda _, memory: by_itself(
        TypedArray(memory, shape=(3, 4)), INTERFACE
    ),
    "a proxy": lambda tensor, _: Proxy(tensor),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_an_array_is_a_view(ext, memory, make):
    array = make(to_dlpack_tensor(memory, shape=(3, 4), dtype="f4"), memory)
    assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1))


@pytest.mark.parametrize("thing", [None, 1, object(), "text", [1.0]], ids=repr)
def test_what_is_no_array_is_no_argument(ext, thing):
    for call in (ext.rank_one, ext.given_back, ext.any_given_back):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(thing)


def test_a_capsule_is_no_argument(ext, memory):
    capsule = to_dlpack_tensor(memory).__dlpack__(max_version=(1, 3))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ext.rank_one(capsule)
    assert name_of(capsule) == VERSIONED


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        ("left", {"shape": (3, 4), "strides": (1, 3)}),
        # The handle of this layout is the lowest address.
        ("relaxed", {"shape": (3, 4), "strides": (-4, 1), "byte_offset": 32}),
        ("scalar", {"shape": (), "dtype": "float64"}),
        ("rank_one", {"shape": (0,)}),
        ("small_index", {"shape": 48, "dtype": "uint8"}),
    ],
)
def test_shape_and_strides_reach_the_view(ext, memory, function, fields):
    array = to_dlpack_tensor(memory, **({"dtype": "float32"} | fields))
    assert getattr(ext, function)(array) == (address_of(memory), array.shape, array.strides)


def test_an_empty_array_may_be_of_another_kind(ext, memory):
    shared = Arrays(memory).shared
    empty = to_dlpack_tensor(shared, shape=(0,))
    for array in (empty, ForeignArray(ForeignTensor(shared.data, shape=(0,)))):
        assert ext.device_only(array) == (shared.data, (0,), (1,))


@pytest.mark.parametrize("legacy", [True, False])
def test_a_foreign_capsule_lives_as_long_as_the_call(ext, memory, legacy):
    made = ForeignTensor(address_of(memory), legacy=legacy)
    array = ForeignArray(made)
    assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1))
    assert array.asked == [{"stream": dpctl_queue(), "max_version": (1, 3)}]
    assert made.deletions == 1


def test_arrays_in_a_list_live_as_long_as_the_call(ext, memory):
    made = [ForeignTensor(address_of(memory), shape=(n,)) for n in range(12)]
    assert ext.sizes([ForeignArray(one) for one in made]) == list(range(12))
    assert [one.deletions for one in made] == [1] * 12


def test_an_array_may_clear_its_list_in_pybind11(binding, ext, memory):
    if binding == "nanobind":  # its list caster borrows the elements
        return
    tensor = to_dlpack_tensor(memory, dtype="f4")
    arrays: list[Any] = []
    arrays.append(Calling(tensor, arrays.clear))
    assert ext.sizes(arrays) == [12]
    arrays += [Calling(tensor, arrays.clear), tensor]
    assert ext.sizes(arrays) == [12]


def test_an_owned_view_keeps_the_memory_and_is_dropped_on_any_thread(ext, memory):
    made = ForeignTensor(address_of(memory), shape=(3,))
    ext.keep(ForeignArray(made))
    gc.collect()
    assert made.deletions == 0
    ext.drop_on_a_thread()
    assert made.deletions == 1


def test_a_capsule_is_consumed_only_if_all_fits(ext, memory):
    made = ForeignTensor(address_of(memory), shape=(12,), dtype=(0, 32, 1))
    array = ForeignArray(made)
    assert ext.which(array, CONVERTED) == "integers"
    assert made.deletions == len(array.asked)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_capsule_that_is_taken_while_the_queue_is_read_is_refused(ext, memory, keeps):
    made = ForeignTensor(address_of(memory))

    class Array:
        def __dlpack__(self) -> Any:
            self.given = made.capsule()
            return self.given

        @property
        def sycl_queue(self) -> None:
            taken.append(consume(self.given))
            if not keeps:
                del self.given

    taken: list[Any] = []
    with refused("capsule_unusable", "capsule", found='"used_dltensor_versioned"'):
        ext.rank_two_const(Array())
    assert made.deletions == 0
    call_deleter(taken[0])


# --- Casts, results and SYCL objects --------------------------------------------------------------


def test_a_cast_to_an_owned_view_gives_the_reason_in_nanobind(binding, ext, memory):
    arrays = Arrays(memory)
    assert ext.to_owned(arrays.row) == (arrays.row.data, (12,), (1,))
    with pytest.raises((ConversionError, RuntimeError)) as caught:
        ext.to_owned(arrays.longs)
    if binding == "nanobind":
        check_refusal(caught.value, "dtype_mismatch", "dtype", found="int64")
    else:
        assert "Unable to cast" in str(caught.value)
    with pytest.raises(RuntimeError, match="cast"):
        ext.to_owned(3)


@pytest.mark.parametrize("call", ["cast_unlocked(x)", "made_unlocked(x.sycl_queue)"])
def test_a_cast_without_the_gil_ends_with_a_sentence(call, ext, new_process):
    folder = str(Path(ext.__file__).parent)
    done = new_process(
        f"import sys; sys.path.insert(0, {folder!r}); import dpctl, usm_dlpack; "
        f"import {ext.__name__} as ext; x = usm_dlpack.empty(3, device=dpctl.SyclQueue()); "
        f"ext.{call}"
    )
    assert done.returncode == -signal.SIGABRT
    assert "GIL: expected a cast with the GIL held, found it rel" in done.stderr


def test_none_is_an_argument_where_the_function_says_so(ext, memory):
    floats = to_dlpack_tensor(memory, dtype="f4")
    assert (ext.maybe(), ext.maybe(None), ext.maybe(floats)) == (-1, -1, 12)
    assert (ext.maybe_pointer(None), ext.maybe_pointer(floats)) == (-1, 12)
    integers = to_dlpack_tensor(memory, dtype="i4")
    assert [ext.either(x) for x in (None, floats, integers)] == [0, 1, 2]


def test_a_result_that_was_released_is_refused(ext, memory):
    with refused("request_unsupported", "return", found="moved from or released"):
        ext.released(to_dlpack_tensor(memory, dtype="f4"))


def test_any_view_becomes_a_view_or_refuses_by_the_name_of_the_parameter(ext, memory):
    arrays = Arrays(memory)
    assert ext.any_as_row(arrays.row)[0] == arrays.row.data
    for array, code, field in (
        (arrays.doubles, "dtype_mismatch", "y.dtype"),
        (arrays.rows, "shape_mismatch", "y.ndim"),
        (arrays.read_only, "read_only", "y.flags"),
    ):
        with refused(code, field):
            ext.any_as_row(array)
    with refused("overlapping", "strides", expected="mutable", remedy='order="C"'):
        ext.any_writes(arrays.broadcast)
    assert ext.any_given_back(arrays.doubles).dtype == np.float64


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
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ext.same_queue(thing)


# --- The package's table --------------------------------------------------------------------------


class ImportedArray(ctypes.Structure):
    _fields_ = (
        ("owner", ctypes.c_void_p),
        ("tensor", ctypes.POINTER(DLTensor)),
        *[(name, ctypes.c_void_p) for name in ("queue", "device")],
        *[(name, ctypes.c_uint64) for name in ("flags", "base", "size")],
        *[(name, ctypes.c_int32) for name in ("device_id", "kind", "device_proof", "bounds_proof")],
    )


class FailedWait(ctypes.Structure):
    _fields_ = (("code", ctypes.c_int32), ("text", ctypes.c_char * 1020))


IMPORT = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.POINTER(ImportedArray))
WAIT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(FailedWait))
DROP = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def table_function(index: int, kind: Any) -> Any:
    """Return a function of the table, which follows its version and the size of its struct."""
    capsule = usm_dlpack._core._package_interface
    address = pointer_of(capsule)
    assert ctypes.c_uint32.from_address(address).value == 13
    assert ctypes.c_uint32.from_address(address + 4).value == ctypes.sizeof(ImportedArray)
    return kind(ctypes.c_void_p.from_address(address + 8 * index).value)


def test_the_table_is_called_from_c(queue, memory):
    made = ForeignTensor(address_of(memory), shape=(3, 4))
    imported = ImportedArray()
    importing, drop = table_function(1, IMPORT), table_function(4, DROP)
    assert importing(ForeignArray(made), imported) == 0
    tensor = imported.tensor.contents
    assert (tensor.data, tensor.ndim) == (address_of(memory), 2)
    assert integers(tensor.shape, 2) + integers(tensor.strides, 2) == (3, 4, 4, 1)
    assert (imported.flags, imported.device_id) == (0, 0)
    assert imported.base <= address_of(memory) < imported.base + imported.size
    assert None not in (imported.queue, imported.device)
    assert made.deletions == 0
    drop(imported.owner)
    assert made.deletions == 1
    assert [importing(thing, imported) for thing in (np.zeros(3), 3)] == [1, 2]
    waiting, failed = table_function(6, WAIT), FailedWait()
    assert waiting(queue.addressof_ref(), failed) == 0


def test_a_wait_that_fails_in_an_extension_is_raised_on_opencl(binding, ext, queue):
    x = usm_dlpack.from_dlpack(np.zeros(3, np.float32), device=queue)
    recording = extension_under_test.load().Recording(dpctl_queue())
    failed = FailedWait()
    assert table_function(7, WAIT)(queue.addressof_ref(), failed) == -1
    assert b"found one that records a graph" in failed.text
    assert failed.code == 1  # sycl::errc::runtime
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
EXPECTED = "usm_dlpack: expected a package with the interface 13, found "
SIZES = "usm_dlpack: expected a package with the interface 13 and arrays of "


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("", "1 device"),  # the package makes the driver known
        ("sys.modules['usm_dlpack'] = None", "No module named 'usm_dlpack._core'"),
        (CORE + "del core._package_interface", f"{EXPECTED}none; build the extension "),
        (
            CORE + "core._package_interface = core.DLPackTensor.__dlpack_c_exchange_api__",
            f"{EXPECTED}none; build the extension ",
        ),
        (PLANT.format("12, 72"), f"{EXPECTED}12; build the extension "),
        (PLANT.format("14, 72"), f"{EXPECTED}14; build the extension "),
        (PLANT.format("13, 80"), f"{SIZES}72 bytes, found 13 and arrays of 80; build the ext"),
        (PLANT.format("13, 64"), f"{SIZES}72 bytes, found 13 and arrays of 64; build the ext"),
    ],
)
def test_an_extension_needs_the_package_of_its_table(ext, succeed, before, sentence):
    code = WITHOUT_THE_PACKAGE.format(before=before, module=ext.__name__)
    assert sentence in succeed(code, arguments=(str(Path(ext.__file__).parent),))
