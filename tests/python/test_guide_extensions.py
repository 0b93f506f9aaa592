# SPDX-License-Identifier: Apache-2.0
"""What the page on nanobind shows of functions and classes does what it says, in both bindings."""

import gc
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
from capsules import ForeignArray, ForeignTensor
from dpctl.memory import as_usm_memory
from memory_sources import new_queue
from pending_work import VALUES, answer_behind
from refusals import refused
from usm_dlpack import empty, from_dlpack, to_dlpack_tensor


@pytest.fixture(params=[extension_under_test.NAME, "pybind11_under_test_module"])
def ext(request: pytest.FixtureRequest) -> Any:
    return extension_under_test.load(request.param)


def test_a_class_gives_back_the_array_that_it_keeps(ext, queue):
    memory = empty(3, device=queue)
    foreign = ForeignTensor(memory.data, shape=(3,))
    field = ext.Field(ForeignArray(foreign))
    first, second = field.values, field.values
    assert first.data == second.data == memory.data
    del field, second
    gc.collect()
    assert foreign.deletions == 0
    del first
    assert foreign.deletions == 1


def test_a_class_gives_a_tensor_of_its_own_array_as_often_as_it_is_asked(ext, queue):
    field = ext.Field(queue, 3)
    first, second = field.values, field.values
    assert (first.data, first.shape, first.sycl_queue) == (second.data, (3,), queue)
    second.copy_from(np.arange(3, dtype="f4"))
    del field, second
    assert first.numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("given", [False, True], ids=["made", "given"])
def test_a_method_is_behind_who_was_given_the_array_of_its_class(ext, producer, start, given):
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


def refused_float64(ext: Any) -> Any:
    """Nanobind gives the reason; pybind11 raises its TypeError."""
    if "pybind11" in ext.__name__:
        return pytest.raises(TypeError, match=r"incompatible (constructor|function) arguments")
    return refused("dtype_mismatch", "dtype", found="float64")


def test_a_class_proves_the_array_that_it_keeps(ext, queue):
    with refused_float64(ext):
        ext.Field(from_dlpack(np.ones(3), device=queue))


@pytest.mark.parametrize("other", [False, True], ids=["their queue", "another queue"])
def test_all_arrays_of_a_list_are_ordered(ext, queue, other):
    arrays = [from_dlpack(np.ones(n, "f4"), device=queue) for n in (0, 1, 70)]
    ext.scale_all(new_queue() if other else queue, 3, arrays)
    assert all(np.all(x.numpy() == 3) for x in arrays)


def test_a_wrong_array_of_a_list_is_refused_by_its_reason_before_any_work(ext, queue):
    good = from_dlpack(np.ones(3, "f4"), device=queue)
    for _ in range(2):
        with refused_float64(ext):
            ext.scale_all(queue, 3, [good, from_dlpack(np.ones(3), device=queue)])
    assert good.numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "factor", [3, 3.0, np.float32(3), np.int64(3)], ids=lambda factor: type(factor).__name__
)
def test_a_function_of_any_array_takes_any_number_before_it(ext, queue, dtype, factor):
    x = from_dlpack(np.arange(70, dtype=dtype), device=queue)
    y = from_dlpack(np.ones(70, dtype), device=queue)
    for _ in range(2):
        ext.axpy(factor, x, y)
    assert np.array_equal(y.numpy(), 1 + 6 * np.arange(70))


def test_a_function_of_any_array_says_what_it_takes(ext, queue):
    with pytest.raises(ValueError, match="expected float32 or float64, found int64"):
        ext.axpy(3, *2 * [from_dlpack(np.ones(3, "int64"), device=queue)])
    x = from_dlpack(np.ones(3), device=queue)
    with refused("shape_mismatch", "y.ndim"):
        ext.axpy(3, x, from_dlpack(np.ones((3, 3)), device=queue))
    with refused("dtype_mismatch", "y.dtype", found="float32"):
        ext.axpy(3, x, from_dlpack(np.ones(3, "f4"), device=queue))
    with pytest.raises(ValueError, match="expected the size of x"):
        ext.axpy(3, x, from_dlpack(np.ones(4), device=queue))


@pytest.mark.parametrize("argument", [0, 1])
def test_a_function_of_any_array_is_behind_the_work_on_each(ext, producer, start, argument):
    pending = start(producer)
    arrays = [to_dlpack_tensor(pending.memory, dtype="f4", queue=producer)]
    arrays.insert(1 - argument, from_dlpack(np.ones(12, "f4"), device=new_queue()))
    answer_behind(pending, lambda: ext.axpy(3, *arrays))
