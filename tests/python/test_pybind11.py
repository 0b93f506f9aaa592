# SPDX-License-Identifier: Apache-2.0
"""Functions of a pybind11 extension take and return views of USM and SYCL objects."""

import sys
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import usm_dlpack
from capsules import ForeignArray, ForeignTensor
from dpctl import memory as usm
from memory_sources import address_of
from refusals import refused
from usm_dlpack import to_dlpack_tensor

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
    return pytest.raises(TypeError, match=r"incompatible (constructor|function) arguments")


# --- Parameters -----------------------------------------------------------------------------------


def test_none_is_no_argument_where_the_function_says_so(ext):
    for function in (ext.rank_one, ext.not_none, ext.same_queue):
        with no_overload():
            function(None)


def test_containers_and_casts_in_a_call_keep_their_arrays(ext, memory):
    foreign = [ForeignTensor(address_of(memory), shape=(n,)) for n in (2, 3)]
    arrays = [ForeignArray(tensor) for tensor in foreign]
    assert ext.sizes(arrays) == [2, 3]
    assert ext.two_sizes(*(ForeignArray(tensor) for tensor in foreign)) == (2, 3)


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
    with no_overload():
        ext.facts_of(np.zeros(3))


def test_any_view_is_a_view_of_shared_usm_only_where_it_is(ext, queue):
    shared, device = (
        to_dlpack_tensor(kind(48, queue=queue), dtype="float32")
        for kind in (usm.MemoryUSMShared, usm.MemoryUSMDevice)
    )
    assert ext.any_as_shared(shared).data == shared.data
    with refused("usm_type_not_accepted", "data", found="device"):
        ext.any_as_shared(device)


def test_an_ordered_section_takes_any_view(ext, queue, foreign_queue):
    ones, out = ext.full(queue, 1000, 1.0), ext.full(queue, 1000, 0.0)
    ext.copy_any(queue, ones, out)
    assert np.all(out.numpy() == 1)
    with refused("read_only", "to.flags"):
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


def test_a_result_is_refused_by_its_reason(ext, queue):
    with refused("pointer_unknown", "data", binding=True):
        ext.elsewhere(queue)


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
        with no_overload():
            call()
    for other in (1, doubles):
        with pytest.raises(TypeError, match="unsupported operand"):
            sums + other


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
            with no_overload():
                wrong()
        ext.same_queue(queue)

    calls()
    before = [sys.getrefcount(x) for x in (floats, doubles, queue)]
    for _ in range(10):
        calls()
    assert [sys.getrefcount(x) for x in (floats, doubles, queue)] == before


# --- SYCL objects, errors and text ----------------------------------------------------------------


def test_sycl_objects_are_dpctls(ext, queue, floats):
    assert (ext.has_queue_or_not(None), ext.has_queue_or_not(queue)) == (False, True)
    event = ext.cleared(queue, floats)
    assert type(event) is dpctl.SyclEvent
    ext.wait_for(event)
    assert np.all(floats.numpy() == 0)


def test_errors_of_functions_are_pythons(ext, queue, floats, foreign_queue):
    with refused("context_not_default", "queue"):
        ext.check_queue(foreign_queue, floats, floats)


def test_a_signature_says_that_an_array_may_be_none(ext):
    assert "writable=False)] | None = None" in ext.maybe.__doc__
