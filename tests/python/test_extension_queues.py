# SPDX-License-Identifier: Apache-2.0
"""The queue of an array that a nanobind or pybind11 extension takes, shown with work in flight."""

from collections.abc import Callable
from functools import partial
from typing import Any

import extension_under_test
import numpy as np
import pytest
from capsules import ForeignArray, ForeignTensor, OldArray, Ordering, dpctl_queue, package_queue
from dpctl.memory import as_usm_memory
from memory_sources import TypedArray, address_of, allocate
from pending_work import PendingFill, answer_behind
from usm_dlpack import ConversionError, from_dlpack, root_device, to_dlpack_tensor

NANOBIND, PYBIND11 = extension_under_test.NAME, "pybind11_under_test_module"


@pytest.fixture(params=[NANOBIND, PYBIND11])
def ext(request: pytest.FixtureRequest) -> Any:
    return extension_under_test.load(request.param)


PARAMETERS: dict[str, Callable[[Any, Any], Any]] = {
    "a view": lambda ext, x: ext.rank_one(x),
    "an optional": lambda ext, x: ext.maybe(x),
    "a pointer": lambda ext, x: ext.maybe_pointer(x),
    "in a list": lambda ext, x: ext.sizes([x]),
}


def given_back(ext: Any, x: Any) -> Any:
    return ext.given_back(x)


@pytest.mark.parametrize("call", PARAMETERS.values(), ids=PARAMETERS)
def test_the_values_of_a_plain_view_are_finished(ext, producer, start, call):
    pending: PendingFill = start(producer)
    x = to_dlpack_tensor(pending.memory, dtype="f4", queue=producer)
    answer_behind(pending, lambda: call(ext, x))


@pytest.mark.parametrize("call", (PARAMETERS | {"an owned view": given_back}).values())
def test_a_parameter_is_behind_a_consumer_that_named_no_queue(ext, producer, start, call):
    x = from_dlpack(np.zeros(12, "f4"), device=producer)
    x.__dlpack__()  # as dpnp takes it: dpctl's queue may work on it now
    pending = start(dpctl_queue(), into=as_usm_memory(x))
    answer_behind(pending, lambda: call(ext, x))


def test_a_tensor_waits_for_who_was_given_what_an_extension_returned(ext, producer, start):
    x = from_dlpack(np.zeros(12, "f4"), device=producer)
    taken = ext.given_back(x).__dlpack__(max_version=(1, 0))
    pending = start(dpctl_queue(), into=as_usm_memory(x))
    answer_behind(pending, x.numpy)
    del taken


def test_an_array_that_says_no_queue_is_taken_to_be_on_that_of_dpctl(ext, queue, start):
    memory = allocate("device", 48, queue)
    context = queue.sycl_context
    for array in (
        ForeignArray(ForeignTensor(address_of(memory), shape=(12,))),
        TypedArray(memory, syclobj=context),
    ):
        pending = start(dpctl_queue(), into=memory)
        answer_behind(pending, lambda array=array: ext.rank_one(array))
        pending = start(dpctl_queue(), into=memory)
        answer_behind(pending, lambda array=array: ext.given_back(array))


def test_an_array_that_says_no_queue_orders_that_of_dpctl_behind_its_own(ext, producer, start):
    for use in (ext.rank_one, ext.given_back):
        memory = allocate("device", 48, producer)
        array = Ordering(ForeignTensor(address_of(memory), shape=(12,)), producer)
        answer_behind(start(producer, into=memory), partial(use, array))


def test_an_array_waits_for_who_was_given_its_bytes(ext, queue, start):
    memory = allocate("device", 48, queue)
    x = to_dlpack_tensor(memory, dtype="f4", shape=(6,), byte_offset=24)
    taken = x.__dlpack__(max_version=(1, 0))
    pending = start(dpctl_queue(), into=memory)
    answer_behind(pending, lambda: ext.rank_one(TypedArray(memory, syclobj=queue)))
    del taken


def test_an_array_that_keeps_the_capsule_of_a_tensor_is_behind_its_consumers(ext, consumer, start):
    x = from_dlpack(np.zeros(12, "f4"), device=(14, 0))
    held = from_dlpack(x, device=consumer)
    capsule = x.__dlpack__(stream=-1)
    pending = start(consumer, into=as_usm_memory(x))
    answer_behind(pending, lambda: ext.rank_one(OldArray(capsule)))
    del held


def test_an_array_that_is_not_taken_is_not_waited_for(ext, producer, start):
    pending: PendingFill = start(producer)
    x = to_dlpack_tensor(pending.memory, dtype="f4", queue=producer)
    for other in ({"dtype": "i4"}, {"shape": (6,), "strides": (2,)}):
        with pytest.raises((TypeError, ConversionError)):
            ext.rank_one(to_dlpack_tensor(x, **({"dtype": "f4"} | other)))
    assert ext.__name__ == PYBIND11 or ext.is_row(x)
    assert pending.is_pending


def test_an_owned_view_waits_for_nothing(ext, producer, start):
    pending: PendingFill = start(producer)
    x = to_dlpack_tensor(pending.memory, dtype="f4", queue=producer)
    assert ext.given_back(x).sycl_queue == producer
    assert pending.is_pending


def test_an_array_without_a_queue_gets_one_of_the_package(ext, queue):
    x = from_dlpack(np.arange(3, dtype="f4"), device=root_device(0))
    foreign = ForeignArray(ForeignTensor(x.data, shape=(3,)))
    made = ext.copied(x)
    assert made.numpy().tolist() == [0, 1, 2]
    assert made.sycl_queue.is_in_order
    assert made.sycl_queue.sycl_context == queue.sycl_context
    assert made.sycl_queue.sycl_device == queue.sycl_device
    for array in (x, foreign):
        assert ext.given_back(array).sycl_queue == made.sycl_queue
    assert x.sycl_queue == made.sycl_queue == package_queue()
