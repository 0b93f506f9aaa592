# SPDX-License-Identifier: Apache-2.0
"""Functions of a pybind11 extension take and return views of USM and SYCL objects."""

import gc
import sys
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import tvm_ffi
import usm_dlpack
from capsules import ForeignArray, ForeignTensor
from dpctl import memory as usm
from memory_sources import TypedArray, address_of, allocate
from refusals import refused
from usm_dlpack import to_dlpack_tensor

ROW = "float32 view of rank 1: "
ANY = "array of any type: "
CONST_ROW = f"const {ROW}"
CONVERTED = np.float32(1)  # pybind11 makes a double of it in its second round


@pytest.fixture(scope="module")
def ext() -> Any:
    return extension_under_test.load("pybind11_under_test_module")


@pytest.fixture
def floats(memory: Any) -> Any:
    return to_dlpack_tensor(memory, dtype="float32")


@pytest.fixture
def doubles(memory: Any) -> Any:
    return to_dlpack_tensor(memory, dtype="float64")


def no_overload() -> Any:
    return pytest.raises(TypeError, match="incompatible function arguments")


# --- Parameters -----------------------------------------------------------------------------------


def test_arrays_of_any_library_are_views(ext, floats, memory):
    foreign = ForeignArray(ForeignTensor(address_of(memory), shape=(12,)))
    for array in (floats, tvm_ffi.from_dlpack(floats), foreign):
        assert ext.rank_one(array) == (address_of(memory), [12])
    assert ext.rank_two(TypedArray(memory, shape=(3, 4))) == (address_of(memory), [3, 4])


@pytest.mark.parametrize("thing", [1, object(), "text", [1.0]], ids=lambda x: type(x).__name__)
def test_what_is_no_array_is_no_argument(ext, thing):
    with no_overload():
        ext.rank_one(thing)


def test_a_lone_function_says_what_does_not_fit(ext, floats, doubles):
    remedy = 'convert the array to float32, in Python by dpnp.from_dlpack(x).astype("float32")'
    with refused("dtype_mismatch", "dtype", found="float64", remedy=remedy, wanted=ROW):
        ext.rank_one(doubles)
    # An array as a list has elements of one dimension less.
    remedy = "reshape the array, or if a list is expected, pass a list of arrays"
    with refused("rank_mismatch", "ndim", remedy=remedy, wanted="const float32 view of rank 2: "):
        ext.rank_two(floats)
    with refused("rank_mismatch", "ndim", remedy="reshape the array", wanted=ROW) as caught:
        ext.rank_one(to_dlpack_tensor(floats, shape=(3, 4)))
    assert "list" not in caught.value.remedy
    remedy = "usm_dlpack.from_dlpack(x, device=(14, 0))"
    with refused("device_type_unsupported", "device.device_type", remedy=remedy, wanted=ROW):
        ext.rank_one(np.zeros(3, np.float32))


def test_memory_without_a_dtype_is_told_how_to_get_one(ext, memory):
    found = "uint8, bytes without a dtype"
    remedy = 'pass usm_dlpack.to_dlpack_tensor(x, dtype="float32")'
    with refused("dtype_mismatch", "dtype", found=found, remedy=remedy, wanted=ROW):
        ext.rank_one(memory)
    assert ext.rank_one(usm_dlpack.to_dlpack_tensor(memory, dtype="float32"))
    remedy = 'dtype="float32", shape=s), where s is its shape'
    with refused("dtype_mismatch", "dtype", remedy=remedy, wanted="const float32 view of rank 2: "):
        ext.rank_two(memory)


def test_memory_is_refused_as_from_dlpack_does(ext, queue, foreign_queue, floats):
    with refused("context_not_default", "context", binding=True, wanted=ROW):
        ext.rank_one(TypedArray(allocate("device", 48, foreign_queue)))
    shared = ext.full(queue, 3)
    remedy = 'usm_dlpack.from_dlpack(x, usm_type="device")'
    with refused("usm_type_not_accepted", "data", found="shared", remedy=remedy, wanted=CONST_ROW):
        ext.device_only(shared)
    with refused("read_only", "flags", wanted=ROW):
        ext.rank_one(ext.given_back(floats))


def test_none_is_an_argument_where_the_function_says_so(ext, floats):
    for function in (ext.maybe, ext.maybe_pointer):
        assert (function(), function(None), function(floats)) == (-1, -1, 12)
    for function in (ext.rank_one, ext.not_none, ext.same_queue):
        with no_overload():
            function(None)


def test_containers_and_casts_in_a_call_keep_their_arrays(ext, memory, doubles):
    foreign = [ForeignTensor(address_of(memory), shape=(n,)) for n in (2, 3)]
    arrays = [ForeignArray(tensor) for tensor in foreign]
    assert ext.sizes(arrays) == [2, 3]
    assert ext.two_sizes(*(ForeignArray(tensor) for tensor in foreign)) == (2, 3)
    with refused("dtype_mismatch", "dtype", wanted=CONST_ROW):
        ext.sizes([doubles])
    with refused("dtype_mismatch", "dtype", wanted=CONST_ROW):
        ext.maybe(doubles)


def test_an_argument_is_dropped_after_the_call(ext, memory):
    foreign = ForeignTensor(address_of(memory), shape=(3,))
    array = ForeignArray(foreign)
    ext.rank_one(array)
    array.given = None
    assert foreign.deletions == 1


# --- Overloads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.0, CONVERTED], ids=["as it is", "converted"])
def test_the_overload_runs_that_the_array_fits(ext, memory, factor):
    for name, fields in {
        "a row": {},
        "integers": {"dtype": "int32"},
        "columns": {"shape": (3, 4), "strides": (1, 3)},
        "rows": {"shape": (3, 4)},
    }.items():
        array = to_dlpack_tensor(memory, **({"dtype": "float32"} | fields))
        assert ext.which(array, factor) == name


@pytest.mark.parametrize("factor", [1.0, CONVERTED], ids=["as it is", "converted"])
def test_an_overload_for_any_array_or_object_comes_after_those_for_views(
    ext, floats, doubles, factor
):
    assert ext.which_object(floats, factor) == "a row"
    assert ext.which_object(doubles, factor) == "any object"
    assert ext.which_any(floats, factor) == "a row"
    assert ext.which_any(doubles, factor) == "any array"
    assert ext.which_any("text", factor) == "any object"


def test_a_variant_takes_the_array_that_fits(ext, floats, doubles, memory):
    assert [ext.either(x) for x in (None, floats, doubles)] == [0, 1, 2]
    with refused("dtype_mismatch", "dtype", wanted=ROW):
        ext.either(to_dlpack_tensor(memory, dtype="int32"))


# --- Any array ------------------------------------------------------------------------------------


def test_any_view_tells_what_the_array_is(ext, queue):
    memory = usm.MemoryUSMShared(96, queue=queue)
    array = to_dlpack_tensor(memory, shape=(3, 4), strides=(1, 3), dtype="int16")
    assert ext.facts_of(array) == {
        "dtype": [0, 16, 1],
        "shape": [3, 4],
        "strides": [1, 3],
        "data": address_of(memory),
        "readonly": False,
        "usm_type": "shared",
        "device_id": array.device[1],
        "queue": array.sycl_queue,
    }
    scalar = ext.facts_of(to_dlpack_tensor(memory, shape=(), dtype="float64"))
    assert (scalar["shape"], scalar["strides"]) == ([], [])
    with refused("device_type_unsupported", "device.device_type", wanted=ANY):
        ext.facts_of(np.zeros(3))


def test_any_view_becomes_a_view_or_refuses_as_a_parameter_does(ext, queue, floats, doubles):
    assert ext.any_as_row(floats) == (floats.data, [12])
    reversed_rows = to_dlpack_tensor(floats, shape=(3, 4), strides=(-4, 1), byte_offset=32)
    for array, code, field in (
        (doubles, "dtype_mismatch", "dtype"),
        (reversed_rows, "rank_mismatch", "ndim"),
        (ext.given_back(floats), "read_only", "flags"),
    ):
        with refused(code, f"y.{field}"):
            ext.any_as_row(array)
    with refused("layout_mismatch", "strides[0]"):
        ext.any_as_columns(reversed_rows)
    with refused("usm_type_not_accepted", "data", expected="shared", found="device"):
        ext.any_as_shared(floats)
    shared = ext.full(queue, 3, 2.0)
    owned = ext.any_as_shared(shared)
    assert (owned.data, owned.readonly, list(owned.numpy())) == (shared.data, True, [2, 2, 2])


def test_an_ordered_section_takes_any_view(ext, queue, foreign_queue):
    ones, out = ext.full(queue, 1000, 1.0), ext.full(queue, 1000, 0.0)
    ext.copy_any(queue, ones, out)
    assert np.all(out.numpy() == 1)
    with refused("read_only", "to.flags", remedy="; if you pass a copy, read the result from the"):
        ext.copy_any(queue, out, ext.given_back(ones))
    with refused("overlapping", "to.strides"):
        ext.copy_any(queue, ones, to_dlpack_tensor(out, shape=(1000,), strides=(0,)))
    with refused("context_not_default", "queue"):
        ext.copy_any(foreign_queue, ones, out)


# --- Results and owners ---------------------------------------------------------------------------


def test_results_are_tensors_of_the_memory(ext, queue, floats):
    made = ext.full(queue, 3, value=7)
    assert type(made) is usm_dlpack.DLPackTensor
    assert (made.usm_type, made.sycl_queue, list(made.numpy())) == ("shared", queue, [7, 7, 7])
    back = ext.given_back(floats)
    assert (back.data, back.readonly) == (floats.data, True)
    first, second = ext.two_given_back(floats, made)
    assert (first.data, second.data, second.readonly) == (floats.data, made.data, False)


def test_a_result_is_refused_by_its_reason(ext, queue, floats):
    with refused("pointer_unknown", "data", binding=True):
        ext.elsewhere(queue)
    with refused("request_unsupported", "return"):
        ext.released(floats)


def test_an_owned_view_keeps_the_memory_and_is_dropped_on_any_thread(ext, memory):
    foreign = ForeignTensor(address_of(memory), shape=(3,))
    ext.keep(ForeignArray(foreign))
    gc.collect()
    assert foreign.deletions == 0
    ext.drop_on_a_thread()
    assert foreign.deletions == 1


def test_a_python_object_owns_the_memory_of_its_views(ext, queue, floats):
    owner = ext.SelfOwned(queue, like=floats)
    values = owner.values
    before = sys.getrefcount(owner)
    again = owner.values
    assert (sys.getrefcount(owner), again.data) == (before + 1, values.data)
    del again
    assert sys.getrefcount(owner) == before
    del owner
    assert len(values.numpy()) == 12


def test_methods_constructors_and_operators_take_views(ext, queue, floats, doubles):
    twos = ext.full(queue, 3, 2.0)
    sums = ext.SelfOwned(1.0)
    assert sums.add(twos) is sums
    assert (sums.sum, sums + twos) == (7, 13)
    for call in (lambda: sums.add(doubles), lambda: ext.SelfOwned(queue, doubles)):
        with refused("dtype_mismatch", "dtype", wanted=CONST_ROW):
            call()
    with pytest.raises(TypeError, match="unsupported operand"):
        sums + 1


def test_keep_alive_keeps_the_array(ext, floats):
    before = sys.getrefcount(floats)
    nurse = ext.kept_alive(floats)
    assert sys.getrefcount(floats) == before + 1
    del nurse
    assert sys.getrefcount(floats) == before


def test_calls_leave_no_references(ext, queue, floats, doubles):
    def calls() -> None:
        ext.rank_one(floats)
        ext.given_back(floats)
        ext.facts_of(doubles)
        ext.which(floats, CONVERTED)
        for wrong in (lambda: ext.rank_one(doubles), lambda: ext.which(doubles, 1.0)):
            with pytest.raises(usm_dlpack.ConversionError):
                wrong()
        ext.same_queue(queue)

    calls()
    before = [sys.getrefcount(x) for x in (floats, doubles, queue)]
    for _ in range(10):
        calls()
    assert [sys.getrefcount(x) for x in (floats, doubles, queue)] == before


# --- SYCL objects, errors and text ----------------------------------------------------------------


def test_sycl_objects_are_dpctls(ext, queue, floats):
    assert ext.same_queue(queue) == queue
    assert ext.same_queue(queue._get_capsule()) == queue
    assert ext.context_of(queue) == queue.sycl_context
    assert ext.device_of(queue.sycl_context) == queue.sycl_device
    assert type(ext.queue_on(queue.sycl_device)) is dpctl.SyclQueue
    assert (ext.has_queue(None), ext.has_queue(queue)) == (False, True)
    assert (ext.has_queue_or_not(None), ext.has_queue_or_not(queue)) == (False, True)
    event = ext.cleared(queue, floats)
    assert type(event) is dpctl.SyclEvent
    ext.wait_for(event)
    assert np.all(floats.numpy() == 0)
    for thing in (1, queue.sycl_device):
        with no_overload():
            ext.same_queue(thing)


def test_errors_of_functions_are_pythons(ext, queue, floats, foreign_queue):
    with refused("context_not_default", "queue"):
        ext.check_queue(foreign_queue, floats, floats)
    with pytest.raises(IndexError, match="too far"):
        ext.fail(floats)


def test_signatures_say_what_a_function_takes(ext):
    assert "dict(dtype='float32', shape=(None,))" in ext.rank_one.__doc__
    assert "usm_type='device', writable=False" in ext.device_only.__doc__
    assert "writable=False)] | None = None" in ext.maybe.__doc__
    assert "writable=False)] = None" in ext.maybe_pointer.__doc__
    assert "queue: dpctl.SyclQueue" in ext.full.__doc__
    assert ext.full.__doc__.strip().endswith("-> usm_dlpack.DLPackTensor")
