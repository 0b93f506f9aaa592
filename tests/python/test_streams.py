# SPDX-License-Identifier: Apache-2.0
"""`stream` in all its forms, and the queue that a tensor has. test_order.py shows the order."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dpctl
import numpy as np
import pytest
from capsules import LEGACY, dpctl_queue, name_of, new_capsule, package_queue
from dpctl import memory as dpctl_memory
from memory_sources import Carrier, TypedArray, address_of, new_queue
from order_table import HERE, HOST, LIBRARIES, by_property
from pending_work import check_order
from place_cases import CASES
from refusals import wrong_argument
from usm_dlpack import from_dlpack, to_dlpack_tensor


class Derived(dpctl.SyclQueue):
    """A queue of somebody's own class."""


class Lazy:
    def __init__(self, **attributes: Callable[[], Any]) -> None:
        self.attributes = attributes

    def __getattr__(self, name: str) -> Any:
        if name not in self.attributes:
            raise AttributeError(name)
        return self.attributes[name]()


def stream_of(sycl_queue: Any) -> Any:
    return SimpleNamespace(sycl_queue=sycl_queue)


FORMS: list[Callable[[Any], Any]] = [
    lambda queue: Derived(queue._get_capsule()),
    *(make for case in CASES if case.cells[-1] == "queue" for make in case.make),
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_queue_comes_behind_pending_work_for_a_legacy_capsule_too(form, start):
    pending, consumer = start(new_queue()), new_queue(in_order=True)
    stream = form(consumer)
    tensor = to_dlpack_tensor(pending.memory, queue=pending.queue)
    capsule = tensor.__dlpack__(stream=stream, dl_device=HERE, copy=False)
    assert name_of(capsule) == LEGACY
    with wrong_argument(ValueError, "stream", "found a queue"):  # which orders no work of the host
        tensor.__dlpack__(stream=stream, dl_device=HOST)
    check_order(consumer, pending)


def test_what_ends_the_program_is_no_refusal(tensor):
    def stop():
        raise KeyboardInterrupt

    for attributes in (
        {"_get_capsule": stop},
        {"_get_capsule": lambda: stop},
        {"_get_capsule": lambda: lambda: None, "sycl_queue": stop},
    ):
        with pytest.raises(KeyboardInterrupt):
            tensor.__dlpack__(stream=Lazy(**attributes))


NO_STREAMS: dict[str, Callable[[Any], Any]] = {
    **{str(number): lambda _, number=number: number for number in (0, -2, 2**64)},
    "a consumed capsule": lambda queue: new_capsule(64, b"used_SyclQueueRef"),
    "_get_capsule that fails": lambda queue: Lazy(_get_capsule=lambda: 1 / 0),
    "_get_capsule that fails when called": lambda queue: Lazy(_get_capsule=lambda: lambda: 1 / 0),
    "sycl_queue that fails": lambda queue: Lazy(sycl_queue=lambda: 1 / 0),
    "_get_capsule, no function": lambda queue: Lazy(_get_capsule=lambda: 5),
    "_get_capsule, an address": lambda queue: Lazy(_get_capsule=lambda: queue.addressof_ref),
    "sycl_queue, None": lambda queue: stream_of(None),
    "an address one off": lambda queue: queue.addressof_ref() + 1,
    "an address as a float": lambda queue: float(queue.addressof_ref()),
}


@pytest.mark.parametrize("device", [None, HOST], ids=str)
@pytest.mark.parametrize("name", NO_STREAMS)
def test_what_is_no_queue_is_a_value_error(name, device, queue, tensor):
    stream = NO_STREAMS[name](queue)
    with wrong_argument(ValueError, "stream", "None, -1, a place that knows a queue, or the"):
        tensor.__dlpack__(stream=stream, dl_device=device)
    assert tensor.__dlpack__(stream=queue) is not None


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_a_tensor_has_the_queue_of_its_producer_or_the_one_that_it_is_for(library, memory):
    own, asked = new_queue(in_order=True), new_queue(in_order=True)
    assert from_dlpack(library(memory, None)).sycl_queue == package_queue()
    x = library(memory, own)
    assert from_dlpack(x).sycl_queue == from_dlpack(x, device=HERE).sycl_queue == own
    assert from_dlpack(x, device=asked).sycl_queue == asked
    assert from_dlpack(x, device=asked, copy=True).sycl_queue == asked
    for keywords in ({"copy": True}, {"usm_type": "host"}):  # copies on the same device
        assert from_dlpack(x, **keywords).sycl_queue == own


def test_a_tensor_has_the_queue_that_it_was_made_with_or_that_its_object_names(queue, memory):
    own = new_queue(in_order=True)
    assert to_dlpack_tensor(memory, queue=own).sycl_queue == own
    known = to_dlpack_tensor(memory).sycl_queue
    assert known == memory.sycl_queue == queue
    assert type(known) is dpctl.SyclQueue
    context, derived = queue.sycl_context, Derived(queue._get_capsule())
    for place in (queue, queue._get_capsule(), derived, Carrier(queue)):
        source = TypedArray(memory, syclobj=place)
        for _ in range(2):  # capsules are not consumed
            assert to_dlpack_tensor(source).sycl_queue == queue
    device = queue.sycl_device.get_filter_string()
    for place in (context, context._get_capsule(), Carrier(context), device):
        source = TypedArray(memory, syclobj=place)
        for _ in range(2):
            assert to_dlpack_tensor(source).sycl_queue == package_queue()
    for place in (own._get_capsule(), Carrier(own), own.addressof_ref()):
        assert from_dlpack(by_property(memory, place)).sycl_queue == own
    assert from_dlpack(by_property(memory, None)).sycl_queue == package_queue()
    for unknown in (5, context, context._get_capsule(), Carrier(context), "cpu", True):
        with wrong_argument(ValueError, "sycl_queue"):
            from_dlpack(by_property(memory, unknown))
    assert from_dlpack(np.zeros(3), device=own).sycl_queue == own


def test_the_interface_names_no_queue_of_another_context_on_opencl(foreign_queue, memory):
    """On Level Zero an array that says such a queue is refused."""
    outside = from_dlpack(by_property(memory, foreign_queue))
    assert outside.sycl_queue == foreign_queue
    # Copies of another view of the memory wait for the same work.
    assert to_dlpack_tensor(outside, shape=12).sycl_queue == foreign_queue
    assert outside.__sycl_usm_array_interface__["syclobj"] == dpctl_queue()
    assert dpctl_memory.as_usm_memory(outside)._pointer == address_of(memory)


def test_a_capsule_for_a_queue_of_another_context_is_of_the_tensors_own(foreign_queue, tensor):
    taken = from_dlpack(tensor.__dlpack__(stream=foreign_queue))
    assert taken.sycl_queue == tensor.sycl_queue
