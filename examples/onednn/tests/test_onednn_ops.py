# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D103 (the name of a test is its sentence)
"""matmul works on the arrays' own memory, in order, and refuses what oneDNN cannot do."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import dpctl
import numpy as np
import onednn_ops
import pytest
import usm_dlpack
from dpctl import memory, program

ONES = np.ones((3, 3), "f4")
QUEUES: list[Any] = []


def new_queue(order: str = "in_order") -> Any:
    """Return a queue of the first root device, which is never destroyed."""
    QUEUES.append(dpctl.SyclQueue(usm_dlpack.root_device(0), property=order))
    return QUEUES[-1]


@pytest.fixture(scope="session", params=["in_order", "default"])
def queue(request: pytest.FixtureRequest) -> Any:
    """Return an in-order and an out-of-order queue in turn."""
    return new_queue(request.param)


def make(values: Any, queue: Any) -> Any:
    """Return a tensor in device USM that holds a copy of NumPy's values."""
    return usm_dlpack.from_dlpack(values, device=queue)


def test_a_chain_of_products(queue: Any) -> None:
    a, b = np.arange(12, dtype="f4").reshape(3, 4), np.ones((4, 3), "f4")
    first = onednn_ops.matmul(make(a, queue), make(b, queue))
    assert type(first) is usm_dlpack.DLPackTensor
    assert (first.usm_type, first.sycl_queue) == ("device", queue)
    assert np.array_equal(onednn_ops.matmul(first, make(a, queue)).numpy(), a @ b @ a)  # waits


def test_arrays_of_the_packages_queue() -> None:
    x = usm_dlpack.from_dlpack(ONES, device=usm_dlpack.root_device(0))
    assert np.array_equal(onednn_ops.matmul(x, x).numpy(), 3 * ONES)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((4, 3), (1, 6)), ((4, 3), (0, 1)), ((4, 3), (8, 2)), ((0, 3), (3, 1)), ((4, 0), (1, 1))],
)
def test_matmul_of_strided_views(queue: Any, shape: tuple[int, int], strides: Any) -> None:
    base = np.arange(40, dtype="f4")
    a = np.lib.stride_tricks.as_strided(base, shape, [4 * stride for stride in strides])
    view = usm_dlpack.to_dlpack_tensor(make(base, queue), shape=shape, strides=strides)
    b = np.arange(5 * shape[1], dtype="f4").reshape(shape[1], 5)
    assert np.array_equal(onednn_ops.matmul(view, make(b, queue)).numpy(), a @ b)


def test_what_does_not_fit_is_refused(queue: Any) -> None:
    x = make(ONES, queue)
    device = queue.sycl_device
    elsewhere = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    reversed_rows = usm_dlpack.to_dlpack_tensor(x, shape=(3, 3), strides=(-3, 1), byte_offset=24)
    doubles = make(ONES.astype("f8"), queue)
    for a, b, of, code, field in (
        (x, x, elsewhere, "context_not_default", "queue"),
        (reversed_rows, x, queue, "layout_mismatch", "strides[0]"),
        (x, reversed_rows, queue, "layout_mismatch", "strides[0]"),
        (doubles, doubles, queue, "request_unsupported", "matmul"),  # not on a CPU
    ):
        with pytest.raises(usm_dlpack.ConversionError) as refused:
            onednn_ops.matmul(a, b, queue=of)
        assert (refused.value.code, refused.value.field) == (code, field)
    assert refused.value.found == "the status unimplemented (3)"
    with pytest.raises(ValueError, match="b: expected the shape"):
        onednn_ops.matmul(x, make(np.ones((4, 3), "f4"), queue))
    with pytest.raises(usm_dlpack.ConversionError, match=r"^dtype: expected float32"):
        onednn_ops.matmul(x, doubles)


# --- Order and lifetime: the pending work takes a second ------------------------------------------


class Memory(memory.MemoryUSMDevice):  # type: ignore[misc]
    """Memory that can be watched by a weak reference."""


SLOW_FILL = """
__kernel void slow_fill(__global float *x, float value) {
  volatile float none = 0;
  for (int i = 0; i < 200000000; ++i) none = none * 0.5f;
  for (int i = 0; i < 9; ++i) x[i] = value + none;
}
"""


def slow_fill(queue: Any, owner: Any, value: float) -> Any:
    """Fill nine floats, in a second or so; return the event."""
    kernel = program.create_program_from_source(queue, SLOW_FILL).get_sycl_kernel("slow_fill")
    return queue.submit_async(kernel, [owner, ctypes.c_float(value)], [1])


def is_complete(event: Any) -> bool:
    """Return whether an event is complete."""
    return bool(event.execution_status == dpctl.event_status_type.complete)


def floats(owner: Any, queue: Any) -> Any:
    """Return a tensor of 3 by 3 floats over some memory."""
    return usm_dlpack.to_dlpack_tensor(owner, shape=(3, 3), dtype="float32", queue=queue)


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("is_theirs", [False, True])
def test_a_primitive_is_behind_its_arrays_and_another_library_behind_it(
    queue: Any, is_theirs: bool, is_first: bool
) -> None:
    theirs = new_queue("default") if is_theirs else queue
    owner, ones = Memory(36, queue=theirs), make(ONES, queue)
    arrays = (floats(owner, theirs), ones) if is_first else (ones, floats(owner, theirs))
    slow_fill(theirs, owner, 1).wait()
    onednn_ops.matmul(*arrays, queue=queue).numpy()  # compiles the kernels
    filled = slow_fill(theirs, owner, 2)
    product = onednn_ops.matmul(*arrays, queue=queue)
    assert is_complete(filled)
    other = new_queue()
    handed = usm_dlpack.from_dlpack(product, device=other)
    copied = Memory(36, queue=other)
    other.memcpy_async(copied, memory.as_usm_memory(handed), 36).wait()
    assert np.array_equal(floats(copied, other).numpy(), 6 * ONES)


def test_what_a_primitive_reads_may_go_at_once(queue: Any) -> None:
    owner = Memory(36, queue=queue)
    watched = weakref.ref(owner)
    slow_fill(queue, owner, 4).wait()  # dpctl keeps what its own kernels use
    product = onednn_ops.matmul(floats(owner, queue), floats(owner, queue))
    del owner
    gc.collect()
    assert watched() is None
    assert product.numpy()[0, 0] == 48
