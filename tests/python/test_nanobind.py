# SPDX-License-Identifier: Apache-2.0
"""Functions of a nanobind extension take and return views of USM and SYCL objects."""

import gc
import json
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import tvm_ffi
import usm_dlpack
from capsules import IS_COPIED, READ_ONLY, VERSIONED, ForeignArray, ForeignTensor, OldArray, name_of
from dpctl import memory as usm
from memory_sources import TypedArray, address_of, allocate
from pending_work import PendingFill, answer_behind
from refusals import check_refusal, refused, wrong_argument
from test_exchange_api import Table
from test_types import checked_by
from threads_at_once import THREADS, at_once
from usm_dlpack import ArgumentError, ConversionError, from_dlpack, to_dlpack_tensor
from usm_dlpack._call_errors import from_arguments


@pytest.fixture(scope="module")
def ext() -> Any:
    return extension_under_test.load()


@pytest.fixture
def floats(memory: Any) -> Any:
    return to_dlpack_tensor(memory, dtype="float32")


@pytest.fixture
def shared(queue: Any) -> Any:
    """Return the float32 0, 1, 2 and 3 in shared USM."""
    return shared_floats(queue, [0, 1, 2, 3])


def shared_floats(queue: Any, values: Any) -> Any:
    memory = usm.MemoryUSMShared(4 * len(values), queue=queue)
    memory.copy_from_host(np.array(values, np.float32).view(np.uint8))
    return to_dlpack_tensor(memory, dtype="float32")


def refused_call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as caught:
        function(*arguments, **keywords)
    return caught.value


@contextmanager
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


def test_an_array_is_a_view(ext, memory):
    tensor = to_dlpack_tensor(memory, shape=(3, 4), dtype="f4")
    offering, refusing = (kind(memory, shape=(3, 4)) for kind in (TypedArray, RefusingExport))
    interface = "__sycl_usm_array_interface__"
    arrays = {
        "a tensor of this package": tensor,
        "an interface": offering,
        "an interface behind an export that fails": refusing,
        "the exchange API": tvm_ffi.from_dlpack(tensor),
        "before all keywords": OldArray(tensor.__dlpack__()),
        "the protocol by itself": by_itself(tensor, "__dlpack__", "__dlpack_device__"),
        "an interface by itself": by_itself(offering, interface),
        "both by themselves, the export fails": by_itself(refusing, "__dlpack__", interface),
        "a proxy": Proxy(lambda name: getattr(tensor, name)),
    }
    for name, array in arrays.items():
        assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1)), name


@pytest.mark.parametrize("legacy", [True, False])
def test_a_foreign_capsule_lives_as_long_as_the_call(ext, memory, legacy):
    foreign = ForeignTensor(address_of(memory), legacy=legacy)
    array = ForeignArray(foreign)
    assert ext.rank_two_const(array) == (address_of(memory), (3, 4), (4, 1))
    assert array.asked == [{"max_version": (1, 3)}]
    assert foreign.deletions == 0
    array.given = None
    assert foreign.deletions == 1


def test_what_is_no_array_is_no_argument(ext, floats):
    capsule = floats.__dlpack__(max_version=(1, 3))
    without_function = types.SimpleNamespace(__dlpack__=None)
    has_every_attribute = Proxy(lambda _: lambda **keywords: pytest.fail("called"))
    others = (capsule, without_function, has_every_attribute, ForeignArray)
    for thing in (None, 1, object(), *others):
        with no_overload():
            ext.rank_one(thing)
    assert name_of(capsule) == VERSIONED


def test_what_an_attribute_raises_makes_no_array_unless_it_is_an_interrupt(ext):
    for error in (KeyError, RecursionError):
        proxy = Proxy(lambda _, error=error: fail(error))
        with no_overload():
            ext.rank_one(proxy)
        assert proxy.asked == ["__dlpack__"]
    with pytest.raises(KeyboardInterrupt):
        ext.rank_one(Proxy(lambda _: fail(KeyboardInterrupt)))


# --- What a view's type asks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fits", "function", "fields"),
    [
        (True, "left", {"shape": (3, 4), "strides": (1, 3)}),
        # The handle of this layout is the lowest address.
        (True, "relaxed", {"shape": (3, 4), "strides": (-4, 1), "byte_offset": 32}),
        (True, "scalar", {"shape": (), "dtype": "float64"}),
        (True, "rank_one", {"shape": (0,)}),
        (True, "small_index", {"shape": 127, "dtype": "uint8"}),
        (False, "small_index", {"shape": 128, "dtype": "uint8"}),
        (False, "rank_one", {"dtype": "int32"}),
        (False, "rank_one", {"shape": (3, 4)}),
        (False, "rank_one", {"shape": (3,), "strides": (2,)}),
        (False, "left", {"shape": (3, 4)}),
        (False, "static_extent", {"shape": (3, 4)}),
    ],
)
def test_shape_and_strides_reach_the_view_that_fits(ext, queue, fits, function, fields):
    memory = usm.MemoryUSMDevice(128, queue=queue)
    array = to_dlpack_tensor(memory, **({"dtype": "float32"} | fields))
    if fits:
        view = (address_of(memory), array.shape, array.strides)
        assert getattr(ext, function)(array) == view
        return
    with no_overload():  # the next overload is tried
        getattr(ext, function)(array)


def test_overloads_are_chosen_by_dtype(ext, queue, memory):
    for dtype, value in (("float32", 2), ("int32", 3)):
        array = to_dlpack_tensor(memory, dtype=dtype)
        assert ext.fill(queue, array, value) == dtype
        assert np.all(array.numpy() == value)


# --- What is always raised ------------------------------------------------------------------------


def test_what_no_overload_could_mend_is_raised(ext, queue, shared, foreign_queue):
    host = np.zeros(3, np.float32)
    in_fill = "fill: argument 2 (x): "
    for place, call in (
        ("", lambda: ext.rank_one(host)),
        ("", lambda: ext.maybe_pointer(host)),
        ("", lambda: ext.to_owned(host)),
        ("", lambda: ext.of_readonly_ndarray(np.zeros((2, 3), np.float32))),
        ("count_variants: argument 1 (arrays[0]): ", lambda: ext.count_variants([host])),
        (in_fill, lambda: ext.fill(queue, host, 1)),  # ends the search for an overload
        # comes before types
        (in_fill, lambda: ext.fill(queue, np.zeros(3, "int32"), "no number")),
    ):
        code, field = "device_type_unsupported", "device.device_type"
        with refused(code, field, found="kDLCPU (1)", place=place):
            call()
    # A later overload takes this kind: of `fill` already before it converts the integer.
    for place, call in (
        (in_fill, lambda: ext.fill(queue, shared, 1)),
        ("explained_elements: argument 1: ", lambda: ext.explained_elements(shared)),
    ):
        with refused("usm_type_not_accepted", "data", place=place):
            call()
    with no_overload():
        ext.rank_one(np.zeros(3))  # float64
    refused_call(ext.fill, "no queue", host, 1)  # another argument that does not fit comes first
    with refused("context_not_default", "context", binding=True):
        ext.rank_one(TypedArray(allocate("device", 48, foreign_queue)))
    with refused("capsule_unusable", "capsule"):
        ext.rank_one(OldArray("no capsule"))


def test_another_kind_is_refused_for_an_array_with_elements(ext, shared, floats):
    for array in (shared, ForeignArray(ForeignTensor(shared.data, shape=(4,)))):
        with refused("usm_type_not_accepted", "data", expected="device", found="shared"):
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
        with refused("read_only", "flags"):
            ext.rank_one(array)
        assert ext.maybe(array) == 3
    for array in (shared, ForeignArray(ForeignTensor(shared.data, shape=(4,)))):
        back = ext.given_back(array)  # of const elements
        assert (back.data, back.readonly) == (shared.data, True)
    assert not shared.readonly


# --- The last overload ----------------------------------------------------------------------------


def test_the_last_overload_says_why(ext, queue, memory):
    array = to_dlpack_tensor(memory, dtype="float64")
    error = refused_call(ext.fill, queue, array, 1)
    first, second = error.reasons
    check_refusal(first, "dtype_mismatch", "dtype", expected="float32", found="float64")
    check_refusal(second, "dtype_mismatch", "dtype", expected="int32", found="float64")
    assert str(error) == f"fill: argument 2 (x): {first}\nfill: argument 2 (x): {second}"
    assert (error.code, error.field, error.expected) == (first.code, first.field, first.expected)
    error = refused_call(ext.fill, queue, value=1, x=to_dlpack_tensor(array, shape=(2, 3)))
    assert str(error).startswith("fill: argument 2 (x): dtype: expected float32")


def test_an_argument_that_an_overload_took_is_not_blamed(ext, queue, floats, shared):
    of_queue, of_value = "an object of type dpctl.SyclQueue", "an object of type float or"
    of_array = "an array of dtype='float32', shape=(None,), usm_type="
    for arguments, place, expected, remedy in (
        (("no queue", floats, 1), "1 (queue)", of_queue, "pass a dpctl.SyclQueue"),
        ((queue, floats, "x"), "3 (value)", of_value, "see help(fill)"),
        ((queue, floats), "3 (value)", of_value, "see help(fill)"),
        ((queue, None, 1), "2 (x)", of_array, "pass such an array"),
        ((floats, queue, 1), "1 (queue)", of_queue, "pass a dpctl.SyclQueue"),
    ):
        error = refused_call(ext.fill, *arguments)
        assert str(error).startswith(f"fill: argument {place}: expected {expected}")
        assert error.remedy == remedy
    wanted = refused_call(ext.fill, queue, 3, 1).expected.split(" or ")
    assert [array.split("'")[1::2] for array in wanted] == [
        ["float32", "device"],
        ["int32", "device"],
        ["float32", "shared"],
    ]
    assert (ext.kind_of(floats), ext.kind_of(shared)) == ("device", "shared")
    assert str(refused_call(ext.kind_of, shared, "x")).startswith("kind_of: argument 2 (n): ")


def test_an_array_that_is_several_arguments_is_named_by_all(ext, queue, shared):
    with pytest.raises(ConversionError, match=r"^step: argument 2 \(u\) or argument 3 \(v\): data"):
        ext.step(queue, shared, shared)


def test_arguments_by_position_are_counted_if_all_overloads_take_as_many():
    signatures = ["def f(x: int, *, n: int)", "def f(x: int, n: int)"]
    text = str(from_arguments("f", signatures, (1, "s"), {}, [], []))
    assert text.startswith("f: argument 2 (n): expected an object of type int, found an object of")
    for signature, arguments, told in (
        ("def f(x: list[int])", ("s",), "found an object of type str; see help(f)"),
        ("def f(self: int)", ("s",), "f: argument 1 (self): expected an object of type int"),
        ("def f(x)", (1,), "f: argument 1 (x): expected an object of type , found"),
        ("def f(x: int, *args)", ("s",), "f: expected arguments of one of its signatures"),
    ):
        assert told in str(from_arguments("f", [signature], arguments, {}, [], []))


def test_an_array_in_a_container_that_an_overload_took_is_not_blamed(ext, floats, memory):
    integers = to_dlpack_tensor(memory, dtype="int32")
    assert ext.count_variants([floats, integers]) == 2
    # What takes one element of a list takes each.
    error = refused_call(ext.count_variants, [floats, integers, integers], "x")
    assert [reason.field for reason in error.reasons] == ["n"]
    # An element that none took is the fault, and no other.
    doubles = to_dlpack_tensor(memory, dtype="float64")
    error = refused_call(ext.count_variants, [integers, doubles])
    assert [reason.found.split()[0] for reason in error.reasons] == ["float64", "float64"]


def test_reasons_are_those_of_the_call(ext, queue, floats, memory):
    wrong = to_dlpack_tensor(memory, dtype="float64")
    refused_call(ext.fill, queue, wrong, 1)
    with no_overload():
        ext.rank_one(wrong)
    # The same object, refused for another reason than before.
    assert refused_call(ext.fill, None, wrong, 1).field == "queue"
    assert ext.fill(queue, floats, True) == "float32"  # implicit conversions come before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # nanobind's
def test_a_constructor_is_explained(ext, shared, floats, memory):
    assert (ext.RowSums(shared, 2).total, ext.Made(shared).total) == (8, 4)
    bad = to_dlpack_tensor(memory, dtype="int8")
    place = "argument 1 (row): dtype: expected"
    assert f"RowSums: {place}" in str(refused_call(ext.RowSums, bad, 2))
    assert f"Made: {place}" in str(refused_call(ext.Made, bad))
    assert "expected () or (row, factor)" in str(refused_call(ext.RowSums, shared))
    error = refused_call(ext.Made)  # which is no object without content
    assert "found ()" in str(error)

    class Uninitialised(ext.RowSums):
        def __init__(self) -> None: ...

    with pytest.raises(TypeError, match=r"RowSums\.add: self: expected an initialised object"):
        Uninitialised().add(shared)


def test_an_array_for_two_parameters_is_refused_by_the_one_that_it_does_not_fit(ext, floats):
    doubles = to_dlpack_tensor(floats, shape=6, dtype="f8")
    assert ext.explained_two(floats, doubles) == 18
    for array, place, wanted in (
        (floats, "argument 2 (y)", "float64"),
        (doubles, "argument 1 (x)", "float32"),
    ):
        error = refused_call(ext.explained_two, array, array)
        assert str(error).startswith(f"explained_two: {place}: dtype: expected {wanted} ")
    rows = to_dlpack_tensor(floats, shape=(3, 4))
    for array, place in ((floats, "argument 2 (y)"), (rows, "argument 1 (x)")):
        error = refused_call(ext.explained_ranks, array, array)
        assert str(error).startswith(f"explained_ranks: {place}: ndim: expected ")
    by_name = by_itself(doubles, "__sycl_usm_array_interface__")
    remedy = refused_call(ext.explained_two, by_name, doubles).remedy
    y = follow(remedy, x=by_name, dpctl=dpctl)
    assert ext.explained_two(y, doubles) == 12


def test_a_value_of_a_type_of_the_same_name_is_told_apart(ext, floats):
    doubles = to_dlpack_tensor(floats, shape=6, dtype="f8")
    error = refused_call(ext.explained_two, floats, doubles, np.bool_(1))
    assert (error.expected, error.found) == (
        "an object of type bool",
        f"an object of type numpy.{np.bool_.__name__}",
    )
    error = refused_call(ext.explained_nested, [], {"a": 3})
    assert error.found == "an object of type dict, which does not fit"


def test_an_interrupt_is_not_lost_in_the_second_round(ext, floats):
    doubles = to_dlpack_tensor(floats, shape=6, dtype="f8")
    left = [KeyboardInterrupt]
    array = Proxy(lambda name: fail(left.pop()) if left else getattr(floats, name))
    with pytest.raises(KeyboardInterrupt):
        ext.explained_two(array, doubles, False, 1)  # a float would need no second round
    assert ext.explained_two(array, doubles, False, 1) == 18


def test_a_method_and_a_static_method_have_a_last_overload(ext, shared, memory):
    assert ext.RowSums.of(shared) == ext.RowSums().of(shared) == 6
    for function in (ext.RowSums.of, ext.RowSums().of):
        error = refused_call(function, to_dlpack_tensor(memory, dtype="int8"))
        assert str(error).startswith("RowSums.of: argument 1: dtype: expected float32")
    assert "of(*, _: typing.NoReturn)" in ext.RowSums.of.__doc__
    sums = ext.RowSums()
    sums.add(shared)
    assert sums.total == 6
    error = refused_call(sums.add, to_dlpack_tensor(memory, dtype="int8"))
    assert str(error).startswith("RowSums.add: argument 1 (row): dtype: expected float32")
    with refused("usm_type_not_accepted", "data", place="RowSums.add: argument 1 (row): "):
        sums.add(to_dlpack_tensor(memory, dtype="float32"))


def test_a_function_of_a_module_is_explained_wherever_it_stands(ext, queue, shared, memory):
    assert ext.RowSums.Start(shared).value == 6
    assert ext.RowSums() + shared == 6
    assert ext.also_fill(queue, to_dlpack_tensor(memory, dtype="f4"), 1) == "float32"
    sums = ext.RowSums()
    sums.row = shared  # a property that was made of a method before
    ext.inner.add(sums, shared)
    assert (sums.total, ext.RowSums.row.__doc__) == (12, "added")
    bad = to_dlpack_tensor(memory, dtype="int8")
    for call, place in (
        (lambda: ext.also_fill(queue, bad, 1), "fill: argument 2 (x)"),
        (lambda: ext.RowSums.Start(bad), "RowSums.Start: argument 1 (row)"),
        (lambda: ext.RowSums.Own()(bad), "RowSums.__call__: argument 1 (row)"),
        (lambda: ext.RowSums()[bad], "RowSums.__getitem__: argument 1"),
        (lambda: ext.RowSums().__setitem__(0, bad), "RowSums.__setitem__: argument 2"),
        (lambda: ext.inner.sum(bad), "sum: argument 1 (row)"),
        (lambda: ext.inner.add(ext.RowSums(), bad), "RowSums.add: argument 1 (row)"),
        (lambda: setattr(ext.RowSums(), "row", bad), "RowSums.add: argument 1 (row)"),
    ):
        assert str(refused_call(call)).startswith(f"{place}: dtype: expected")
    with pytest.raises(TypeError, match=r"RowSums\.add: self: expected an object"):
        ext.RowSums.add(bad, shared)
    with pytest.raises(TypeError, match="unsupported operand"):  # the other operand is asked
        ext.RowSums() + bad
    with no_overload():
        ext.double_of("x")  # takes no arrays
    assert refused_call(ext.queue_on, 3).expected == "an object of type dpctl.SyclDevice"
    other = types.ModuleType("other")
    other.__dict__.update(fill=ext.rank_one, rank_one=ext.rank_one, some=[], inner=types)
    for scope in (other, ext.RowSums):  # which has defined none of them, or is explained
        ext.explain(scope)
    assert other.fill is other.rank_one is ext.rank_one
    assert len(ext.RowSums.add.__nb_signature__) == 2


def test_reasons_reach_out_of_containers_in_containers(ext, floats, memory):
    bad = to_dlpack_tensor(memory, dtype="int32")

    def first_line(*arguments):
        error = refused_call(ext.explained_nested, *arguments)
        assert {reason.code for reason in error.reasons} == {"dtype_mismatch"}
        return str(error).split(": dtype: expected")[0]

    assert ext.explained_nested([[floats], []], {"a": floats}) == 3
    endless: list[Any] = [[bad]]
    endless.append(endless)
    for rows, named, place in (
        ([[floats], [floats, bad]], {}, "1 (rows[1][1])"),
        (([floats], (bad,)), {}, "1 (rows[1][0])"),
        ([[bad]], {"b": bad}, "1 (rows[0][0])"),
        (endless, {}, "1 (rows[0][0])"),
        ([], {"a": floats, "b": bad}, "2 (named['b'])"),
    ):
        assert first_line(rows, named) == f"explained_nested: argument {place}"


def test_the_only_overload_names_the_argument_that_it_did_not_take(ext, queue, floats):
    swapped = (floats, queue, None)
    good = (queue, floats, None)
    assert ext.step(*good) == 12
    for arguments, keywords, place, found in (
        ((), {}, "1 (queue)", "no argument"),
        ((None, floats, None), {}, "1 (queue)", "None"),
        ((3, floats, None, 3), {}, "1 (queue)", "type int"),
        (swapped, {}, "1 (queue)", "type DLPackTensor"),
        ((floats, floats), {}, "1 (queue)", "type DLPackTensor"),  # the queue is forgotten
        ((queue, None), {"v": None}, "2 (u)", "None"),
        ((queue,), {"v": None, "u": 1.5}, "2 (u)", "type float"),
        ((queue, queue, None), {}, "2 (u)", "type SyclQueue"),
        ((queue, floats), {}, "3 (v)", "no argument"),
        ((queue, floats, 3), {}, "3 (v)", "type int"),
        ((*good, "x"), {}, "4 (dt)", "type str"),
        ((*good, 1.0, 3), {}, "5 (depends)", "type int"),
        ((*good, np.float32(1), 3), {}, "5 (depends)", "type int"),
        ((*good, 1.0, [3]), {}, "5 (depends)", "type list, which does not fit"),
        (good, {"depends": [None]}, "5 (depends)", "type list, which does not fit"),
    ):
        error = refused_call(ext.step, *arguments, **keywords)
        assert str(error).startswith(f"step: argument {place}: expected ")
        assert error.field == place[3:-1]
        assert error.found.endswith(found)
    error = refused_call(ext.step, queue, None, None)
    wanted = "an array of dtype='float32', shape=(None,), usm_type='device'"
    assert (error.expected, error.remedy) == (wanted, "pass such an array")


def test_an_argument_without_a_parameter_is_named(ext, queue, floats):
    good = (queue, floats, None)
    keywords = "a keyword of queue, u, v, dt, depends, found another; "
    twice = "one argument, found one by position and one by keyword; omit one"
    for function, arguments, named, place, sentence in (
        (ext.step, good, {"w": floats}, "w", keywords + "correct its name"),
        (ext.step, good, {"depend": []}, "depend", keywords + "use depends"),
        (ext.step, good, {"u": floats}, "argument 2 (u)", twice),
        (ext.step, (*good, 1, [], 3), {}, "argument 6", "at most 5 by position, found 6"),
        (ext.fill, (*good, 2), {}, "argument 4", "at most 3 by position, found 4"),
        (ext.explained_keyword, (floats, 2), {}, "argument 2", "at most 1 by position, found 2"),
        (ext.RowSums.of, (), {"x": floats}, "x", "arguments by position, found a keyword"),
    ):
        error = refused_call(function, *arguments, **named)
        assert str(error).startswith(f"{function.__qualname__}: {place}: expected {sentence}")
        assert error.reasons == ()
    for n, found in (("x", "an object of type str"), (2**80, f"{2**80}, which does not fit")):
        error = refused_call(ext.explained_keyword, floats, n=n)
        assert (error.field, error.found) == ("n", found)
    for function in (ext.explained_keyword, ext.explained_star):
        assert function(floats, n=3) == 12
    error = refused_call(ext.explained_star, 1.5, n=3)
    assert "expected arguments of one of its signatures, found (float, n=int)" in str(error)


def test_an_ndarray_may_stand_beside_views(ext, floats):
    h = np.ones(2, np.float32)
    assert ext.explained_ndarray(floats, h=h) == floats.size + 2
    for arguments, named, place in (
        ((None, h), {}, "argument 1 (x)"),
        ((floats, None), {}, "argument 2 (h)"),
        ((floats, 3), {}, "argument 2 (h)"),
        ((floats,), {"host": h}, "host"),
    ):
        error = refused_call(ext.explained_ndarray, *arguments, **named)
        assert str(error).startswith(f"explained_ndarray: {place}: expected ")
    assert "writable" not in refused_call(ext.explained_ndarray, None, h).expected
    wanted = "an object of type ndarray[dtype=float32, shape=(*), device='cpu', writable=False]"
    assert refused_call(ext.explained_ndarray, floats, 3).expected == wanted


IN_STEP = "step: argument 2 (u): "


def follow(remedy: str, **names: Any) -> Any:
    """Run the line that a remedy shows, which makes ``y``, and return that."""
    line = re.search(r"y = .+\)", remedy)
    assert line is not None
    exec(line[0], names | {"usm_dlpack": usm_dlpack}, names)
    return names["y"]


def test_a_caller_can_follow_the_remedy_for_an_array(ext, queue, floats, shared, foreign_queue):
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    for u, code, field in (
        (frozen, "read_only", "flags"),
        (np.zeros(3, np.float32), "device_type_unsupported", "device.device_type"),
        (shared, "usm_type_not_accepted", "data"),
        (ext.given_back(floats), "read_only", "flags"),
    ):
        with pytest.raises(usm_dlpack.ConversionError) as caught:
            ext.step(queue, v=None, u=u)
        check_refusal(caught.value, code, field, place=IN_STEP)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        y = follow(caught.value.remedy, u=u, queue=queue)
        assert ext.step(queue, y, None) == u.size
        ext.fill(queue, y, 2)  # the result is in y
        assert np.all(y.numpy() == 2)
    hidden = allocate("device", 48, foreign_queue)
    # Without __dlpack__ it cannot be copied.
    for array, remedy in (
        (TypedArray(hidden), "allocate with"),
        (RefusingExport(hidden), "y = usm_dlpack.from_dlpack(u, device=queue)"),
    ):
        with refused("context_not_default", "context", binding=True, place=IN_STEP, remedy=remedy):
            ext.step(queue, array, None)


@pytest.mark.parametrize("kind", ["host", "tensor", "foreign", "interface"])
@pytest.mark.parametrize(
    ("code", "dtype", "shape"), [("dtype_mismatch", "f8", 6), ("rank_mismatch", "f4", (2, 3))]
)
def test_a_caller_can_follow_the_remedy_for_a_type(ext, queue, kind, code, dtype, shape):
    host = np.arange(6, dtype=dtype).reshape(shape)
    tensor = from_dlpack(host, device=queue)
    memory = usm.MemoryUSMDevice(48, queue=queue)
    memory.copy_from_host(host.reshape(-1).view("u1"))
    u = {
        "host": host,
        "tensor": tensor,
        "foreign": tvm_ffi.from_dlpack(tensor),
        "interface": TypedArray(memory, shape=host.shape, typestr=f"<{dtype}"),
    }[kind]
    error = refused_call(ext.step, queue, u, None)
    assert error.code == code
    y = follow(error.remedy, u=u, queue=queue)
    assert ext.step(queue, y, None) == 6
    assert y.numpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_caller_can_follow_the_remedy_for_a_list(ext, queue):
    for u in ([1, 2, 3], (1.0, 2.0, 3.0)):
        remedy = refused_call(ext.step, queue, u, None).remedy
        assert remedy.endswith(", into which the function may write")
        y = follow(remedy, u=u, queue=queue, numpy=np)
        assert (ext.step(queue, y, None), y.numpy().tolist()) == (3, [1, 2, 3])
    error = refused_call(ext.RowSums.of, [1, 2])  # takes shared USM, and no keyword
    assert error.field == "argument 1"
    y = follow(error.remedy, argument_1=[1, 2], dpctl=dpctl, numpy=np)
    assert (ext.RowSums.of(y), y.usm_type) == (3, "shared")
    error = refused_call(ext.explained_lanes, [1, 2])  # NumPy has no such dtype
    assert error.remedy == "pass an array with __dlpack__ or USM"


def test_a_caller_can_follow_the_remedy_for_raw_memory(ext, queue, memory):
    error = refused_call(ext.step, queue, memory, None)
    u = follow(error.remedy, u=memory, queue=queue)
    assert (ext.step(queue, u, None), u.data) == (12, address_of(memory))


def test_the_remedy_for_a_rank_keeps_the_order_of_the_elements(ext, queue):
    rows = from_dlpack(np.arange(24, dtype="f4").reshape(4, 6), device=queue)
    for values in (np.asfortranarray(rows.numpy()), rows.numpy()[::-1], rows.numpy()[:, ::2]):
        strided = from_dlpack(values, device=queue)
        columns = to_dlpack_tensor(rows, shape=(6, 4), strides=(1, 6))
        for u in (values, strided, columns):
            remedy = refused_call(ext.step, queue, u, None).remedy
            y = follow(remedy, u=u, queue=queue)
            told = u if u is values else u.numpy()
            assert y.numpy().tolist() == told.reshape(-1).tolist()
    remedy = refused_call(ext.step, queue, rows, None).remedy
    assert follow(remedy, u=rows, queue=queue).data == rows.data
    assert "from_dlpack(u, order='C')" in remedy  # on the device where it is


def remedy_of(parameter: str, x: Any, *parts: str) -> str:
    """Return what a caller of ``f(x)`` is told, whose view refuses an array."""
    view = f"typing.Annotated[usm_dlpack.UsmArray, dict({parameter})]"
    error = from_arguments(
        "f", [f"def f(x: {view}) -> None"], (x,), {}, [(x, True, *parts, "")], []
    )
    return error.remedy


def test_a_remedy_is_for_the_kind_and_the_order_of_the_parameter():
    host = np.arange(6, dtype="f4").reshape(2, 3)
    names = {"dpctl": dpctl, "numpy": np, "x": host}
    on_host = ("device_type_unsupported", "device.device_type", "kDLOneAPI (14)", "kDLCPU (1)")
    y = follow(remedy_of("dtype='float32', usm_type='shared'", host, *on_host), **names)
    assert (y.usm_type, y.shape) == ("shared", (2, 3))
    order = ("layout_mismatch", "strides[0]", "3 elements for the view's layout", "1")
    assert "order='C'" in remedy_of("dtype='float32'", host, *order)
    order = ("layout_mismatch", "strides[0]", "1 elements for the view's layout", "3")
    y = follow(remedy_of("dtype='float32', usm_type='host'", host, *order), **names)
    assert (y.usm_type, y.strides) == ("host", (1, 2))
    usm = from_dlpack(host, device=(14, 0))
    y = follow(remedy_of("dtype='float32'", usm, *order), **names | {"x": usm})
    assert (y.strides, y.numpy().tolist()) == ((1, 2), host.tolist())
    every_second = to_dlpack_tensor(usm, shape=3, strides=2)
    y = follow(remedy_of("dtype='float32'", every_second, *order), x=every_second)
    assert (y.strides, y.numpy().tolist()) == ((1,), [0, 2, 4])
    context = ("context_not_default", "context", "the default one", "another one")
    assert follow(remedy_of("dtype='float32'", host, *context), **names).shape == (2, 3)
    none = ("rank_mismatch", "ndim", "0 for the view's rank", "2")
    assert remedy_of("dtype='float32'", host, *none) == "pass an array of one element"
    rank = ("rank_mismatch", "ndim", "3 for the view's rank", "2")
    assert follow(remedy_of("dtype='float32'", host, *rank), **names).shape == (1, 1, 6)


def test_a_remedy_says_where_the_result_is_and_what_it_needs():
    dtype = ("dtype_mismatch", "dtype", "float32 for the view's element type")
    remedy = remedy_of("dtype='float32'", np.zeros(3), *dtype, "float64")
    assert remedy.startswith("convert it, for example y = usm_dlpack.from_dlpack(x.astype(")
    assert remedy.endswith("), into which the function may write")
    assert remedy_of("dtype='float32'", np.zeros(3, "u1"), *dtype, "uint8 ").startswith("convert")
    remedy = remedy_of("dtype='float32', writable=False", np.zeros(3), *dtype, "float3")
    assert remedy.startswith("convert it, with ml_dtypes installed, for example y = ")
    assert remedy.endswith(")")


def test_no_remedy_drops_the_imaginary_part():
    dtype = ("dtype_mismatch", "dtype", "float32 for the view's element type", "complex64")
    assert remedy_of("dtype='float32'", np.zeros(3, "c8"), *dtype) == "pass an array of that dtype"


def test_no_argument_is_blamed_that_an_overload_took():
    first, other = (
        f"typing.Annotated[usm_dlpack.UsmArray, dict(dtype='{name}')]"
        for name in ("float32", "float64")
    )
    signatures = [f"def f(x: {first}, n: int)", f"def f(x: {other}, n: float)"]
    x = np.zeros(3, "f4")
    refusals = [(x, True, "dtype_mismatch", "dtype", "float64", "float32", "")]
    text = str(from_arguments("f", signatures, (x, 1.5), {}, refusals, [x]))
    assert text.startswith("f: expected arguments of one of its signatures, found (ndarray, float)")
    error = from_arguments("f", signatures, (x, "s"), {}, refusals, [x])
    assert (error.field, error.expected) == (
        "n",
        "an object of type int or an object of type float",
    )
    # The overloads give the argument different names.
    signatures[1] = f"def f(y: {other}, z: int)"
    error = from_arguments("f", signatures, (x, 1), {}, refusals, [])
    assert "from_dlpack(argument_1.astype(" in error.remedy
    error = from_arguments("f", ["def f(**kwargs)"], (), {"x": x}, refusals, [])
    assert re.search(r"from_dlpack\(x.astype.*SyclQueue\(\)\)$", error.remedy)
    busy = ValueError("busy")
    assert from_arguments("f", signatures, (x, 1), {}, [(x, busy)], []) is busy


def test_overloads_are_meant_that_take_as_many_arguments():
    view = "typing.Annotated[usm_dlpack.UsmArray, dict(dtype='float32')]"
    signatures = [f"def f(q: dpctl.SyclQueue, x: {view}, n: int = 1)", f"def f(x: {view})"]
    x = np.zeros(3, "f4")
    for arguments, keywords, place in (
        ((1, x), {}, "argument 1 (q)"),
        ((1,), {"x": x, "n": 2}, "argument 1 (q)"),
        ((None,), {}, "argument 1 (x)"),
    ):
        error = from_arguments("f", signatures, arguments, keywords, [arguments[:1]], [])
        assert str(error).startswith(f"f: {place}: expected ")
    for arguments, keywords in (((), {}), ((x, x, 1, 1), {}), ((x,), {"y": 1})):
        error = from_arguments("f", signatures, arguments, keywords, [], [])
        assert str(error).startswith("f: expected (q, x, n) or (x), found (")


def test_no_remedy_is_named_that_does_not_help(ext, queue, memory):
    foreign = ForeignTensor(address_of(memory), shape=(12,))
    foreign.tensor.device_type = 2
    of_cuda = ForeignArray(foreign, device=(2, 0))
    code, remedy = "device_type_unsupported", "move the array to a SYCL device"
    with refused(code, "device.device_type", place=IN_STEP, found="kDLCUDA", remedy=remedy):
        ext.step(queue, of_cuda, None)


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [("shape", "ab", "__sycl_usm_array_interface__"), ("syclobj", "nowhere", "syclobj")],
)
def test_an_interface_that_is_wrong_is_named(ext, queue, memory, name, value, field):
    u = TypedArray(memory, **{name: value})
    with pytest.raises(ValueError, match=rf"^{re.escape(IN_STEP)}{field}: expected .*, found .*; "):
        ext.step(queue, u, None)
    with wrong_argument(ValueError, field):
        ext.rank_one(u)


class Calling:
    """An array whose ``__dlpack__`` runs something first."""

    def __init__(self, tensor: Any, act: Callable[[], object]) -> None:
        self.tensor = tensor
        self.act = act

    def __dlpack__(self, **keywords: Any) -> Any:
        self.act()
        return self.tensor.__dlpack__(**keywords)


def raising(error: BaseException, tensor: Any, *, once: bool = False) -> Any:
    """Return an array whose ``__dlpack__`` raises."""

    def act() -> None:
        if once:
            array.act = int
        raise error

    array = Calling(tensor, act)
    return array


def test_a_refusal_that_the_producer_raises_again_is_not_changed(ext, queue, floats):
    kept = usm_dlpack.ConversionError("out_of_bounds", "data", "some bytes", "more", "wait")
    for _ in range(2):
        with pytest.raises(usm_dlpack.ConversionError) as caught:
            ext.step(queue, raising(kept, floats), None)
        assert str(caught.value) == f"{IN_STEP}{kept}"


def test_reasons_of_a_call_within_another_are_its_own(ext, queue, memory):
    inner: list[ArgumentError] = []
    whole, half, number = (to_dlpack_tensor(memory, dtype=d) for d in ("f8", "f2", "f4"))

    def act():
        if not inner and array.tensor is whole:
            array.tensor = half
            inner.append(refused_call(ext.explained_elements, [array, 3]))
            array.tensor = number

    array = Calling(whole, act)
    ext.fill(queue, array, 1)
    (reason,) = inner[0].reasons
    check_refusal(reason, "dtype_mismatch", "dtype", found="float16")


def test_an_array_that_drops_itself_lives_as_long_as_it_is_asked(ext, shared):
    arrays: list[Any] = []
    arrays.append(Calling(shared, arrays.clear))
    assert ext.first_elements(arrays) == [0.0]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyError("mine")])
def test_what_an_array_raises_is_raised(ext, queue, shared, error):
    array, once = raising(error, shared), raising(error, shared, once=True)
    for call in (
        lambda: ext.rank_one(array),
        lambda: ext.fill(queue, array, "x"),
        lambda: ext.explained_elements([array]),
        lambda: ext.kind_of(once, "x"),  # also where the array is taken after it
    ):
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error


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


# --- Containers and casts -------------------------------------------------------------------------


def test_a_view_may_be_left_out_or_null(ext, floats, memory):
    assert ext.maybe() == ext.maybe(None) == ext.maybe_pointer(None) == -1
    assert ext.maybe(floats) == ext.maybe_pointer(floats) == ext.rank_one_or_none(floats) == 12
    assert ext.rank_one_or_none(None) == "the next overload"
    for arguments in ((to_dlpack_tensor(memory, dtype="f8"),), ()):
        with no_overload():
            ext.maybe_pointer(*arguments)


def test_a_class_gives_a_tensor_of_its_array_as_often_as_it_is_asked(ext, queue):
    field = ext.Field(queue, 3)
    first, second = field.values, field.values
    assert (first.data, first.shape, first.sycl_queue) == (second.data, (3,), queue)
    second.copy_from(np.arange(3, dtype="f4"))
    del field, second
    assert first.numpy().tolist() == [0, 1, 2]
    error = refused_call(ext.Field, 3, 3)
    assert str(error).startswith("Field: argument 1: expected an object of type dpctl.SyclQueue")


def test_views_in_a_list_live_as_long_as_the_call(ext, queue):
    kept = [shared_floats(queue, [n, n + 1]) for n in range(20)]
    arrays = [ForeignArray(ForeignTensor(one.data, shape=(2,))) for one in kept]
    assert ext.first_elements(arrays) == [float(n) for n in range(20)]


def test_a_bad_array_in_a_container_is_no_crash(ext, shared, floats):
    for bad in (floats, None):
        with no_overload():
            ext.first_elements([shared, bad])
    with no_overload():
        ext.maybe(np.zeros(3, np.float32))
    place = "explained_elements: argument 1[1]: "  # which has a name in each overload
    with refused("usm_type_not_accepted", "data", found="device", place=place):
        ext.explained_elements([shared, floats])


def test_an_object_at_hand_becomes_an_owned_view_and_no_other(ext, floats):
    with refused("request_unsupported", "view"):  # nothing would keep its memory
        ext.cast_to_view(floats)
    assert ext.to_owned(floats) == (floats.data, (12,), (1,))
    with refused("rank_mismatch", "ndim"):
        ext.to_owned(to_dlpack_tensor(floats, shape=(3, 4)))
    with pytest.raises(TypeError, match="x: expected an array"):
        ext.to_owned(3)
    with pytest.raises(KeyboardInterrupt):
        ext.to_owned(Proxy(lambda _: fail(KeyboardInterrupt)))
    with pytest.raises(TypeError, match=r"expected a dpctl\.SyclQueue, found another"):
        ext.cast_to_queue(3)
    assert not ext.try_cast_to_queue(3)  # leaves no error
    assert (ext.is_row(floats), ext.is_row(3)) == (True, False)


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
    silent, saying, table = ForeignArray(foreign), ForeignArray(foreign), Table(foreign)
    saying.sycl_queue = queue
    table.stream = queue.addressof_ref()  # as PyTorch's tensors say it
    for array, said in ((silent, None), (saying, queue), (table.array(), queue)):
        ext.keep(array)
        assert ext.kept_queue() == said
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


def test_a_result_keeps_what_it_was_made_of(ext, queue):
    counter = ext.Counter()
    source = shared_floats(queue, [1, 2, 3])
    made = ext.copied(source, counter)
    taken = from_dlpack(made)
    del source, made
    gc.collect()
    assert taken.numpy().tolist() == [1, 2, 3]
    assert counter.alive == 1
    del taken
    assert counter.alive == 0


def test_a_result_that_is_no_usm_of_its_queue_and_kind_is_refused(
    ext, queue, foreign_queue, floats
):
    counter = ext.Counter()
    for field, call in (
        ("context", lambda: ext.full(foreign_queue, 3, 4)),
        ("context", lambda: ext.readonly_result(foreign_queue, counter)),
        ("queue", lambda: ext.fill(foreign_queue, floats, 1.5)),  # in the function
    ):
        with refused("context_not_default", field, binding=True):
            call()
    with refused("pointer_unknown", "data", binding=True):
        ext.result_in_host_memory(queue, counter)
    with refused("usm_type_not_accepted", "data", expected="device USM", found="host USM"):
        ext.result_in_other_kind(queue, counter)
    assert counter.alive == 0


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
    for thing in (None, 1, "gpu", dpctl.SyclQueue, *of_dpctl):
        with no_overload():
            ext.same_queue(thing)
    with no_overload():
        ext.has_queue(3)


def test_events_order_work(ext, queue):
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
    printed = succeed(code, arguments=(folder,), PYTHONPATH=str(Path(__file__).parent))
    assert printed == "scratch: expected no failure, found one as asked for\nfine\n"


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
_EXPECTED = "usm_dlpack: expected a package with the interface 7, found none; build the extension "


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
def test_type_checkers_know_the_extension(folder, checker, tmp_path):
    stub = f"{extension_under_test.NAME}.pyi"
    shutil.copy(Path(folder, stub), tmp_path)
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
        "a writable one",
        *["another"] * 3,
        "fewer, of which an nb::ndarray does not say whether they are padded",
        "padded ones of fewer than 8 bits",
    ]


def test_signatures_say_what_is_taken(ext):
    assert ext.static_extent.__doc__.startswith(
        "static_extent(x: typing.Annotated[usm_dlpack.UsmArray, "
        "dict(dtype='float32', shape=(4, None), writable=False)]) -> tuple"
    )
    assert "usm_type='device', writable=False" in ext.device_only.__doc__
    assert "-> usm_dlpack.DLPackTensor" in ext.full.__doc__
    assert "(queue: dpctl.SyclQueue) -> dpctl.SyclContext" in ext.context_of.__doc__
