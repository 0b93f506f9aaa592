# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D103 (the name of a test is its sentence)
"""The functions compute what NumPy computes, in the order asked for, and refuse what is wrong."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import dpctl
import grid_kernels
import numpy as np
import pytest
import usm_dlpack
from conftest import floats, make
from dpctl import memory

Make = Callable[[Any, Any], Any]
SlowFill = Callable[[Any, Any, float], Any]


def laplacian(x: Any) -> Any:
    """Return what grid_kernels.laplacian computes."""
    around = np.pad(x, 1)
    vertical = around[:-2, 1:-1] + around[2:, 1:-1]
    return vertical + around[1:-1, :-2] + around[1:-1, 2:] - 4 * x


def numbers(*shape: int, dtype: str = "float32") -> Any:
    """Return small whole numbers, whose sums and products every order computes alike."""
    return np.random.default_rng(1).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(3, 4), (65, 64), (0, 5)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_laplacian(array: Make, queue: Any, shape: tuple[int, int], dtype: str) -> None:
    values = numbers(*shape, dtype=dtype)
    x, out = array(values, queue), make(values, queue)
    grid_kernels.laplacian(queue, x, out).wait()
    assert np.array_equal(out.numpy(), laplacian(values))


def test_an_input_has_any_strides(queue: Any) -> None:
    values = numbers(6, 8)
    # values[::-1, 1::2], whose strides are -8 and 2.
    view = {"shape": (6, 4), "strides": (-8, 2), "byte_offset": (5 * 8 + 1) * 4}
    x = usm_dlpack.to_dlpack_tensor(make(values, queue), **view)
    out = make(numbers(6, 4), queue)
    grid_kernels.laplacian(queue, x, out).wait()
    assert np.array_equal(out.numpy(), laplacian(values[::-1, 1::2]))


@pytest.mark.parametrize("size", [0, 65, 1000])
def test_total(array: Make, queue: Any, size: int) -> None:
    values = numbers(size)
    assert grid_kernels.total(queue, array(values, queue)) == values.sum()


@pytest.mark.parametrize("shape", [(2, 3, 4, 70), (2, 3, 0, 4)])
def test_matmul(array: Make, queue: Any, shape: tuple[int, int, int, int]) -> None:
    batch, m, k, n = shape
    a, b = numbers(batch, m, k), numbers(batch, k, n)
    product = grid_kernels.matmul(array(a, queue), array(b, queue))
    assert type(product) is usm_dlpack.DLPackTensor
    assert (product.usm_type, product.sycl_queue) == ("device", queue)
    assert np.array_equal(product.numpy(), a @ b)


# --- Order and lifetime ---------------------------------------------------------------------


class Memory(memory.MemoryUSMDevice):  # type: ignore[misc]
    """Memory that can be watched."""


def is_complete(event: Any) -> bool:
    return bool(event.execution_status == dpctl.event_status_type.complete)


def test_kernels_wait_for_the_events_given(slow_fill: SlowFill) -> None:
    queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
    owner, out = Memory(280, queue=queue), make(numbers(1, 70), queue)
    grid_kernels.total(queue, floats(owner, 70))  # the kernels are built now
    filled = slow_fill(queue, owner, 3)
    event = grid_kernels.laplacian(queue, floats(owner, 1, 70), out, [filled])
    assert not is_complete(filled)
    event.wait()
    assert np.array_equal(out.numpy(), laplacian(np.full((1, 70), 3, "f4")))
    filled = slow_fill(queue, owner, 5)
    assert grid_kernels.total(queue, floats(owner, 70), [filled]) == 70 * 5


def test_matmul_is_behind_the_queues_of_both_arrays(queue: Any, slow_fill: SlowFill) -> None:
    other = dpctl.SyclQueue(usm_dlpack.root_device(0))
    a, b = Memory(36, queue=queue), Memory(36, queue=other)
    slow_fill(queue, a, 2).wait()
    slow_fill(other, b, 3).wait()
    grid_kernels.matmul(floats(a, 1, 1, 9), floats(b, 1, 9, 1)).numpy()  # builds the kernels
    for late, owner, value, expected in ((queue, a, 4, 4 * 3), (other, b, 5, 4 * 5)):
        filled = slow_fill(late, owner, value)
        product = grid_kernels.matmul(floats(a, 1, 1, 9), floats(b, 1, 9, 1))
        assert not is_complete(filled)
        assert product.numpy().item() == 9 * expected
        del product  # now: it waits for its queue


def test_a_result_keeps_what_its_kernel_reads(queue: Any, slow_fill: SlowFill) -> None:
    owners = [Memory(36, queue=queue), Memory(36, queue=queue)]
    watched = [weakref.ref(owner) for owner in owners]
    filled = [slow_fill(queue, owner, 4) for owner in owners]
    product = grid_kernels.matmul(floats(owners[0], 1, 1, 9), floats(owners[1], 1, 9, 1))
    dpctl.SyclEvent.wait_for(filled)  # dpctl keeps what its own kernels use
    del owners
    gc.collect()
    assert all(reference() is not None for reference in watched)
    assert product.numpy().item() == 9 * 16
    del product
    gc.collect()
    assert all(reference() is None for reference in watched)


# --- What is refused ------------------------------------------------------------------------


def test_no_overload_for_a_dtype_says_what_each_wanted(queue: Any) -> None:
    x, out = make(numbers(3, 4, dtype="int16"), queue), make(numbers(3, 4), queue)
    with pytest.raises(usm_dlpack.ArgumentError) as refused:
        grid_kernels.laplacian(queue, x, out)
    assert [reason.code for reason in refused.value.reasons] == ["dtype_mismatch"] * 2


def test_an_output_that_is_not_in_device_usm(queue: Any) -> None:
    x = make(numbers(3, 4), queue)
    out = usm_dlpack.from_dlpack(x, usm_type="shared")
    with pytest.raises(usm_dlpack.ConversionError) as refused:
        grid_kernels.laplacian(queue, x, out)
    assert (refused.value.code, refused.value.field) == ("usm_type_not_accepted", "data")


def test_a_queue_of_another_context(queue: Any) -> None:
    device = queue.sycl_device
    elsewhere = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    x = make(numbers(3, 4), queue)
    with pytest.raises(usm_dlpack.UsmBindingError) as refused:
        grid_kernels.laplacian(elsewhere, x, x)
    assert (refused.value.code, refused.value.field) == ("context_not_default", "queue")


def test_shapes_that_do_not_fit(queue: Any) -> None:
    with pytest.raises(ValueError, match="out: expected the shape of x, found another"):
        grid_kernels.laplacian(queue, make(numbers(3, 4), queue), make(numbers(4, 3), queue))
    with pytest.raises(ValueError, match="b: expected the shape"):
        grid_kernels.matmul(make(numbers(2, 3, 4), queue), make(numbers(3, 4, 5), queue))


_CALLS = """
import dpctl, grid_kernels, numpy as np, usm_dlpack
queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
cube = usm_dlpack.from_dlpack(np.ones((2, 3, 3), "f4"), device=queue)
try:
    grid_kernels.matmul(cube, 1)
except TypeError:
    pass
kept = grid_kernels.matmul(grid_kernels.matmul(cube, cube), cube)
print(kept.numpy()[0, 0, 0])
"""


def test_nothing_leaks() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CALLS],
        env=os.environ | {"USM_DLPACK_REPORT_LEAKS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "9.0\n", "")
