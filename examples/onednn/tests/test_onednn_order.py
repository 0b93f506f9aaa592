# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D103 (the name of a test is its sentence)
"""Primitives run behind pending work, and work behind pending primitives.

The pending work is a kernel that takes a second or so, and each test sees that it is still
pending where that matters; no clock decides anything.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import dpctl
import numpy as np
import onednn_ops
import pytest
import usm_dlpack
from conftest import Library, Memory, floats, is_complete, make, new_queue
from dpctl import memory

SlowFill = Callable[[Any, Any, float], Any]
ONES = np.ones((3, 3), "f4")


@pytest.fixture(scope="module", autouse=True)
def _kernels(in_order: Any, out_of_order: Any, slow_fill: SlowFill) -> None:
    """Compile all kernels, so that no test counts that time."""
    for queue in (in_order, out_of_order):
        owner = Memory(36, queue=queue)
        slow_fill(queue, owner, 1).wait()
        x = floats(owner, 3, 3)
        assert onednn_ops.matmul(onednn_ops.eltwise("relu", x), x).numpy()[0, 0] == 3
        assert onednn_ops.reorder(x).numpy()[0, 0] == 1


def test_an_event_orders_a_primitive_and_a_primitive_gives_one(
    out_of_order: Any, slow_fill: SlowFill
) -> None:
    owner, x = Memory(36, queue=out_of_order), make(ONES, out_of_order)
    product, out = make(0 * ONES, out_of_order), make(0 * ONES, out_of_order)
    filled = slow_fill(out_of_order, owner, 2)
    first = onednn_ops.matmul_into(floats(owner, 3, 3), x, product, depends=[filled])
    second = onednn_ops.eltwise_into("square", product, out, depends=[first])
    # A kernel behind the primitives, by the event of the last.
    copied = Memory(36, queue=out_of_order)
    third = out_of_order.memcpy_async(copied, memory_of(out), 36, [second])
    assert not any(is_complete(event) for event in (filled, first, second, third))
    third.wait()
    assert np.array_equal(floats(copied, 3, 3).numpy(), 36 * ONES)


def test_without_an_event_nothing_orders_an_out_of_order_queue(
    out_of_order: Any, slow_fill: SlowFill
) -> None:
    owner, out = Memory(36, queue=out_of_order), make(ONES, out_of_order)
    slow_fill(out_of_order, owner, 1).wait()
    filled = slow_fill(out_of_order, owner, 2)
    onednn_ops.reorder_into(floats(owner, 3, 3), out).wait()
    assert not is_complete(filled)
    filled.wait()
    assert np.array_equal(out.numpy(), ONES)


def test_an_in_order_queue_needs_no_events(in_order: Any, slow_fill: SlowFill) -> None:
    owner, product, out = Memory(36, queue=in_order), make(ONES, in_order), make(ONES, in_order)
    filled = slow_fill(in_order, owner, 2)
    event = onednn_ops.matmul_into(floats(owner, 3, 3), product, out)
    onednn_ops.reorder_into(floats(owner, 3, 3), product)
    last = onednn_ops.eltwise_into("square", product, product)
    assert not any(is_complete(event) for event in (filled, event, last))
    last.wait()
    assert np.array_equal(product.numpy(), 4 * ONES)


@pytest.mark.parametrize("producer", ["in_order", "out_of_order", "of another queue"])
def test_a_primitive_is_behind_the_queue_of_its_array(
    request: pytest.FixtureRequest, queue: Any, slow_fill: SlowFill, producer: str
) -> None:
    another = producer == "of another queue"
    theirs = new_queue() if another else request.getfixturevalue(producer)
    owner = Memory(36, queue=theirs)
    slow_fill(theirs, owner, 1).wait()
    x, ones = floats(owner, 3, 3, queue=theirs), make(ONES, queue)
    filled = slow_fill(theirs, owner, 2)
    product = onednn_ops.matmul(x, ones, queue=queue)
    positive = onednn_ops.eltwise("relu", product)
    assert not is_complete(filled)
    assert product.sycl_queue == positive.sycl_queue
    assert (product.sycl_queue == queue) == queue.is_in_order
    assert np.array_equal(positive.numpy(), 6 * ONES)  # waits
    assert is_complete(filled)


def test_work_of_the_same_queue_is_behind_a_primitive(in_order: Any, slow_fill: SlowFill) -> None:
    owner, ones = Memory(36, queue=in_order), make(ONES, in_order)
    slow_fill(in_order, owner, 1).wait()
    filled = slow_fill(in_order, owner, 2)
    product = onednn_ops.matmul(floats(owner, 3, 3, queue=in_order), ones)
    handed = usm_dlpack.from_dlpack(product, device=in_order)
    copied = Memory(36, queue=in_order)
    event = in_order.memcpy_async(copied, memory_of(handed), 36)
    assert not is_complete(filled)
    event.wait()
    assert np.array_equal(floats(copied, 3, 3).numpy(), 6 * ONES)


def test_work_of_another_queue_is_behind_a_primitive(
    library: Library, queue: Any, slow_fill: SlowFill
) -> None:
    owner, ones = Memory(36, queue=queue), make(ONES, queue)
    slow_fill(queue, owner, 1).wait()
    filled = slow_fill(queue, owner, 2)
    product = onednn_ops.matmul(floats(owner, 3, 3, queue=queue), ones)
    assert not is_complete(filled)
    # The primitive of a CPU engine is a task of the host, for which OpenCL has no event: DPC++
    # waits for it here, where another queue is to be behind it.
    theirs = library.take(product)
    assert is_complete(filled)
    copied = Memory(36, queue=library.queue)
    library.queue.memcpy_async(copied, memory_of(theirs), 36).wait()
    assert np.array_equal(floats(copied, 3, 3).numpy(), 6 * ONES)
    assert np.array_equal(library.values(theirs), 6 * ONES)


def test_dpnp_computes_behind_a_primitive(library: Library, slow_fill: SlowFill) -> None:
    queue = library.queue
    owner, ones = Memory(36, queue=queue), make(ONES, queue)
    slow_fill(queue, owner, 1).wait()
    filled = slow_fill(queue, owner, 2)
    product = onednn_ops.matmul(floats(owner, 3, 3, queue=queue), ones)
    assert not is_complete(filled)
    theirs = library.take(product)
    if library.name == "dpctl":
        tripled = onednn_ops.eltwise("linear", theirs, alpha=3)
    else:
        tripled = 3 * theirs
    # And behind dpnp's kernel another primitive, on its array.
    squared = onednn_ops.eltwise("square", tripled)
    assert np.array_equal(squared.numpy(), 18 * 18 * ONES)


def memory_of(array: Any) -> Any:
    """Return the USM of an array, which dpctl's queues copy; asked of itself, dpnp's waits."""
    return memory.as_usm_memory(usm_dlpack.from_dlpack(array))


def test_a_result_keeps_what_its_primitive_reads(out_of_order: Any, slow_fill: SlowFill) -> None:
    a, b = Memory(36, queue=out_of_order), Memory(36, queue=out_of_order)
    watched = [weakref.ref(a), weakref.ref(b)]
    filled = [slow_fill(out_of_order, owner, 4) for owner in (a, b)]
    product = onednn_ops.matmul(floats(a, 3, 3), floats(b, 3, 3))
    assert not all(is_complete(event) for event in filled)
    dpctl.SyclEvent.wait_for(filled)  # dpctl keeps what its own kernels use
    del a, b
    gc.collect()
    assert all(reference() is not None for reference in watched)
    assert product.numpy()[0, 0] == 48
    del product
    gc.collect()
    assert all(reference() is None for reference in watched)


def test_a_result_that_goes_waits_for_its_primitive(queue: Any, slow_fill: SlowFill) -> None:
    owner = Memory(36, queue=queue)
    filled = slow_fill(queue, owner, 4)
    product = onednn_ops.matmul(floats(owner, 3, 3, queue=queue), floats(owner, 3, 3, queue=queue))
    assert not is_complete(filled)
    del product
    gc.collect()
    assert is_complete(filled)
