# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D103 (the name of a test is its sentence)
"""The functions compute what NumPy computes, in the order asked for, and refuse what is wrong."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dpctl
import grid_kernels
import numpy as np
import pytest
import usm_dlpack
from dpctl import memory, program

LIBRARIES = ["usm_dlpack", *(["dpnp"] if importlib.util.find_spec("dpnp") else [])]


@pytest.fixture(params=["in_order", "default"])
def queue(request: pytest.FixtureRequest) -> Any:
    """Return an in-order and an out-of-order queue in turn."""
    return dpctl.SyclQueue(usm_dlpack.root_device(0), property=request.param)


def make(values: Any, queue: Any, library: str = "usm_dlpack") -> Any:
    """Return an array of a library, in device USM, that holds a copy of NumPy's values."""
    if library == "usm_dlpack":
        return usm_dlpack.from_dlpack(values, device=queue)
    import dpnp

    return dpnp.asarray(values, usm_type="device", sycl_queue=queue)


def total_of(x: Any, library: str) -> float:
    """Return the sum of an array, by a library's function."""
    if library == "usm_dlpack":
        return float(x.numpy().sum())
    import dpnp

    return float(dpnp.from_dlpack(x).sum())


def numbers(*shape: int) -> Any:
    """Return small whole numbers, with which float32 is exact."""
    return np.random.default_rng(1).integers(-9, 9, shape).astype("float32")


def laplacian(x: Any) -> Any:
    """Return what grid_kernels.laplacian computes."""
    around = np.pad(x, 1)
    vertical = around[:-2, 1:-1] + around[2:, 1:-1]
    return vertical + around[1:-1, :-2] + around[1:-1, 2:] - 4 * x


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("shape", [(3, 4), (65, 130), (100, 3), (0, 5)])
def test_a_new_array_is_on_the_queue_of_the_argument(
    queue: Any, shape: tuple[int, int], library: str
) -> None:
    values = numbers(*shape)
    result = grid_kernels.laplacian(make(values, queue, library))
    assert (result.usm_type, result.sycl_queue) == ("device", queue)
    assert np.array_equal(result.numpy(), laplacian(values))


def test_an_array_without_a_queue_is_worked_on_by_one_of_the_package() -> None:
    values = numbers(3, 4)
    x = usm_dlpack.from_dlpack(values, device=usm_dlpack.root_device(0))
    result = grid_kernels.laplacian(x)
    assert result.sycl_queue == x.sycl_queue
    assert np.array_equal(result.numpy(), laplacian(values))


SLOW_FILL = """
__kernel void slow_fill(__global float *x) {
  volatile float none = 0;
  for (int i = 0; i < 50000000; ++i) none = none * 0.5f;
  for (int i = 0; i < 12; ++i) x[i] = 3 + none;
}
"""


def test_kernels_run_behind_what_the_queue_has(queue: Any) -> None:
    x, out = make(numbers(3, 4), queue), make(numbers(3, 4), queue)
    grid_kernels.laplacian(queue, x, out)  # builds the kernel
    slow_fill = program.create_program_from_source(queue, SLOW_FILL).get_sycl_kernel("slow_fill")
    queue.submit_async(slow_fill, [memory.as_usm_memory(x)], [1])
    grid_kernels.laplacian(queue, x, out)
    again = grid_kernels.laplacian(out)
    filled = np.full((3, 4), 3, "float32")
    assert np.array_equal(again.numpy(), laplacian(laplacian(filled)))
    assert np.array_equal(out.numpy(), laplacian(filled))


@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_need_be_said_of_queues(queue: Any, library: str) -> None:
    ones = np.ones((200, 200), "float32")
    for _ in range(20):
        x, out = make(ones, queue, library), make(ones, queue, library)
        grid_kernels.laplacian(queue, x, out)
        result = grid_kernels.laplacian(x)
        if library == "dpnp":
            x[...] = 0
        assert (total_of(result, library), total_of(out, library)) == (-800, -800)


def test_an_array_of_another_dtype_is_refused(queue: Any) -> None:
    with pytest.raises(usm_dlpack.ConversionError, match="expected float32") as refused:
        grid_kernels.laplacian(make(np.ones((3, 4), "int32"), queue))
    assert refused.value.code == "dtype_mismatch"


def test_a_queue_of_another_context_is_refused(queue: Any) -> None:
    x, out, device = make(numbers(3, 4), queue), make(numbers(3, 4), queue), queue.sycl_device
    elsewhere = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    with pytest.raises(usm_dlpack.UsmBindingError) as refused:
        grid_kernels.laplacian(elsewhere, x, out)
    assert (refused.value.code, refused.value.field) == ("context_not_default", "queue")


def test_an_output_of_another_shape_is_refused(queue: Any) -> None:
    with pytest.raises(ValueError, match="out: expected the shape of x, found another"):
        grid_kernels.laplacian(queue, make(numbers(3, 4), queue), make(numbers(4, 3), queue))


def test_the_output_must_not_share_the_memory_of_x(queue: Any) -> None:
    both = make(numbers(6, 4), queue)
    x = usm_dlpack.to_dlpack_tensor(both, shape=(3, 4))
    for row in (0, 2):
        out = usm_dlpack.to_dlpack_tensor(both, shape=(3, 4), byte_offset=16 * row)
        with pytest.raises(ValueError, match="out: expected memory apart from x, found shared"):
            grid_kernels.laplacian(queue, x, out)
    out = usm_dlpack.to_dlpack_tensor(both, shape=(3, 4), byte_offset=48)
    grid_kernels.laplacian(queue, x, out)
    assert np.array_equal(out.numpy(), laplacian(x.numpy()))


def test_two_threads_launch_the_same_kernel() -> None:
    def work(seed: int) -> int:
        queue = dpctl.SyclQueue(usm_dlpack.root_device(0), property="in_order")
        values = np.full((3 + seed, 4), seed, "float32")
        x, out = make(values, queue), make(values, queue)
        wanted, wrong = laplacian(values), 0
        for _ in range(500):
            grid_kernels.laplacian(queue, x, out)
            wrong += not np.array_equal(out.numpy(), wanted)
        return wrong

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(work, (1, 2))) == [0, 0]


def test_a_copy_keeps_the_queue(queue: Any) -> None:
    columns = make(numbers(4, 3), queue)
    view = usm_dlpack.to_dlpack_tensor(columns, shape=(3, 4), strides=(1, 3))
    with pytest.raises(usm_dlpack.ConversionError) as refused:
        grid_kernels.laplacian(view)
    assert refused.value.code == "layout_mismatch"
    rows = usm_dlpack.from_dlpack(view, order="C")
    assert np.array_equal(grid_kernels.laplacian(rows).numpy(), laplacian(view.numpy()))
