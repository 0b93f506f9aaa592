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
from pathlib import Path
from typing import Any

import dpctl
import grid_kernels
import numpy as np
import pytest
import usm_dlpack
from conftest import floats, make
from dpctl import memory


def laplacian(x: Any) -> Any:
    """Return what grid_kernels.laplacian computes."""
    around = np.pad(x, 1)
    vertical = around[:-2, 1:-1] + around[2:, 1:-1]
    return vertical + around[1:-1, :-2] + around[1:-1, 2:] - 4 * x


def numbers(*shape: int, dtype: str = "float32") -> Any:
    """Return small whole numbers, whose sums and products every order computes alike."""
    return np.random.default_rng(1).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (7, 130), (65, 64), (0, 5), (5, 0)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_laplacian(library: Any, queue: Any, shape: tuple[int, int], dtype: str) -> None:
    values = numbers(*shape, dtype=dtype)
    x, out = library.array(values, queue), library.array(values, queue)
    grid_kernels.laplacian(queue, x, out).wait()
    assert np.array_equal(library.values(out), laplacian(values))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
def test_total(library: Any, queue: Any, size: int) -> None:
    values = numbers(size)
    assert grid_kernels.total(queue, library.array(values, queue)) == values.sum()


@pytest.mark.parametrize("shape", [(3, 4, 5, 6), (1, 1, 1, 1), (2, 3, 0, 4), (2, 3, 4, 70)])
def test_matmul(library: Any, queue: Any, shape: tuple[int, int, int, int]) -> None:
    batch, m, k, n = shape
    a, b = numbers(batch, m, k), numbers(batch, k, n)
    product = grid_kernels.matmul(library.array(a, queue), library.array(b, queue))
    assert isinstance(product, usm_dlpack.DLPackTensor)
    assert (product.usm_type, product.sycl_queue) == ("device", queue)
    assert np.array_equal(product.numpy(), a @ b)


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_inputs_are_in_usm_of_any_kind_and_of_any_strides(queue: Any, usm_type: str) -> None:
    values = numbers(6, 8)
    base = make(values, queue, usm_type)
    # values[::-1, 1::2], whose strides are -8 and 2.
    last_row = {"shape": (6, 4), "strides": (-8, 2), "byte_offset": (5 * 8 + 1) * 4}
    x = usm_dlpack.to_dlpack_tensor(base, **last_row)
    out = make(numbers(6, 4), queue)
    grid_kernels.laplacian(queue, x, out).wait()
    assert np.array_equal(out.numpy(), laplacian(values[::-1, 1::2]))


def test_events_order_an_out_of_order_queue(out_of_order: Any) -> None:
    values = numbers(100, 200, dtype="int32")
    x, y = make(values, out_of_order), make(values, out_of_order)
    events: list[Any] = []
    for _ in range(6):
        events = [grid_kernels.laplacian(out_of_order, x, y, depends=events)]
        x, y = y, x
        values = laplacian(values)
    events[0].wait()
    assert np.array_equal(x.numpy(), values)


def test_an_in_order_queue_needs_no_events(in_order: Any) -> None:
    values = numbers(100, 200, dtype="int32")
    x, y = make(values, in_order), make(values, in_order)
    for _ in range(6):
        event = grid_kernels.laplacian(in_order, x, y)
        x, y = y, x
        values = laplacian(values)
    event.wait()
    assert np.array_equal(x.numpy(), values)


class Memory(memory.MemoryUSMDevice):  # type: ignore[misc]
    """Memory that can be watched."""


SlowFill = Callable[[Any, Any, float], Any]


def is_complete(event: Any) -> bool:
    return bool(event.execution_status == dpctl.event_status_type.complete)


def test_kernels_wait_for_the_events_given(out_of_order: Any, slow_fill: SlowFill) -> None:
    owner, out = Memory(280, queue=out_of_order), make(numbers(1, 70), out_of_order)
    grid_kernels.total(out_of_order, floats(owner, 70))  # the kernels are built now
    filled = slow_fill(out_of_order, owner, 3)
    event = grid_kernels.laplacian(out_of_order, floats(owner, 1, 70), out, [filled])
    assert not is_complete(filled)
    event.wait()
    assert np.array_equal(out.numpy(), laplacian(np.full((1, 70), 3, "f4")))
    filled = slow_fill(out_of_order, owner, 5)
    assert grid_kernels.total(out_of_order, floats(owner, 70), [filled]) == 70 * 5


def test_matmul_is_behind_the_queues_of_both_arrays(
    in_order: Any, out_of_order: Any, slow_fill: SlowFill
) -> None:
    for first, second in 2 * ((in_order, out_of_order), (out_of_order, in_order)):
        a, b = Memory(36, queue=first), Memory(36, queue=second)
        slow_fill(first, a, 2).wait()
        slow_fill(second, b, 3).wait()
        for queue, owner, value, expected in ((first, a, 4, 4 * 3), (second, b, 5, 4 * 5)):
            filled = slow_fill(queue, owner, value)
            product = grid_kernels.matmul(floats(a, 1, 1, 9), floats(b, 1, 9, 1))
            assert not is_complete(filled)
            assert product.numpy().item() == 9 * expected
            assert product.sycl_queue == first
            del product  # now: it waits for its queue


def test_a_result_keeps_what_its_kernel_reads(out_of_order: Any, slow_fill: SlowFill) -> None:
    a, b = Memory(36, queue=out_of_order), Memory(36, queue=out_of_order)
    watched = [weakref.ref(a), weakref.ref(b)]
    filled = [slow_fill(out_of_order, owner, 4) for owner in (a, b)]
    product = grid_kernels.matmul(floats(a, 1, 1, 9), floats(b, 1, 9, 1))
    dpctl.SyclEvent.wait_for(filled)  # dpctl keeps what its own kernels use
    del a, b
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
    first, second = str(refused.value).splitlines()
    assert first.startswith("laplacian: argument 2: dtype: expected float32 (code 2, bits 32, ")
    assert second.startswith("laplacian: argument 2: dtype: expected int32 (code 0, bits 32, ")


def test_bytes_are_not_floats(queue: Any) -> None:
    with pytest.raises(usm_dlpack.ArgumentError, match=r"expected float32 .*, found uint8"):
        grid_kernels.total(queue, memory.MemoryUSMDevice(40, queue=queue))


def test_a_wrong_rank(queue: Any) -> None:
    with pytest.raises(usm_dlpack.ArgumentError) as refused:
        grid_kernels.total(queue, make(numbers(3, 4), queue))
    assert (refused.value.code, refused.value.field) == ("rank_mismatch", "ndim")


def test_a_wrong_layout(queue: Any) -> None:
    out = usm_dlpack.to_dlpack_tensor(make(numbers(4, 3), queue), shape=(3, 4), strides=(1, 3))
    with pytest.raises(usm_dlpack.ArgumentError) as refused:
        grid_kernels.laplacian(queue, make(numbers(3, 4), queue), out)
    assert "argument 3: strides[0]: expected 4 elements for the view's layout, found 1" in str(
        refused.value
    )


@pytest.mark.parametrize("usm_type", ["shared", "host"])
def test_an_output_that_is_not_in_device_usm(queue: Any, usm_type: str) -> None:
    x, out = make(numbers(3, 4), queue), make(numbers(3, 4), queue, usm_type)
    with pytest.raises(usm_dlpack.ConversionError) as refused:
        grid_kernels.laplacian(queue, x, out)
    assert (refused.value.code, refused.value.field) == ("usm_type_not_accepted", "data")
    assert f"expected device USM, found {usm_type} USM" in str(refused.value)


def test_an_array_of_the_host(queue: Any) -> None:
    with pytest.raises(usm_dlpack.ConversionError) as refused:
        grid_kernels.total(queue, numbers(3))
    assert (refused.value.code, refused.value.field) == (
        "device_type_unsupported",
        "device.device_type",
    )


def test_a_queue_that_cannot_reach_the_memory(in_order: Any) -> None:
    device = in_order.sycl_device
    elsewhere = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    x = make(numbers(3), in_order)
    with pytest.raises(usm_dlpack.UsmBindingError) as refused:
        grid_kernels.total(elsewhere, x)
    assert (refused.value.code, refused.value.field) == ("context_not_default", "context")
    out = make(numbers(3, 4), in_order)
    with pytest.raises(usm_dlpack.UsmBindingError) as refused:
        grid_kernels.laplacian(elsewhere, out, out)
    assert (refused.value.code, refused.value.field) == ("context_not_default", "queue")


def test_shapes_that_do_not_fit(queue: Any) -> None:
    with pytest.raises(ValueError, match="out: expected the shape of x, found another"):
        grid_kernels.laplacian(queue, make(numbers(3, 4), queue), make(numbers(4, 3), queue))
    a = make(numbers(2, 3, 4), queue)
    for shape in ((3, 4, 5), (2, 5, 5)):
        with pytest.raises(ValueError, match="b: expected the shape"):
            grid_kernels.matmul(a, make(numbers(*shape), queue))


# --- What is left at the end ----------------------------------------------------------------

_CALLS = """
import conftest, dpctl, grid_kernels, numpy as np, usm_dlpack
queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
x = conftest.make(np.ones((3, 4), "f4"), queue)
cube = conftest.make(np.ones((2, 3, 3), "f4"), queue)
out = conftest.make(np.ones((3, 4), "f4"), queue)
event = grid_kernels.laplacian(queue, x, out)
grid_kernels.laplacian(queue, out, x, [event]).wait()
for call in (lambda: grid_kernels.total(queue, x), lambda: grid_kernels.matmul(x, 1)):
    try:
        call()
    except TypeError:
        pass
kept = grid_kernels.matmul(grid_kernels.matmul(cube, cube), cube)
print(kept.numpy()[0, 0, 0])
"""


def at_the_end_of(calls: str) -> tuple[int, str, str]:
    """Run calls in a process; return its status, what it printed, and what nanobind said."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", calls],
        env=os.environ | {"USM_DLPACK_REPORT_LEAKS": "1"},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_nothing_leaks() -> None:
    assert at_the_end_of(_CALLS) == (0, "9.0\n", "")


def test_a_leak_would_be_said() -> None:
    leak = "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))"
    # The result, and what it keeps: a factor, which is a result too, and its factor.
    assert "nanobind: leaked 3 instances!" in at_the_end_of(_CALLS + leak)[2]
