# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D103 (the name of a test is its sentence)
"""oneDNN works on the arrays' own memory, in order, and refuses what it cannot describe."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import weakref
from collections.abc import Callable
from typing import Any

import dpctl
import numpy as np
import onednn_ops
import pytest
import usm_dlpack
from dpctl import memory, program

LIBRARIES = ["usm_dlpack", *(["dpnp"] if importlib.util.find_spec("dpnp") else [])]
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


def make(values: Any, queue: Any, library: str = "usm_dlpack") -> Any:
    """Return an array of a library, in device USM, that holds a copy of NumPy's values."""
    if library == "usm_dlpack":
        return usm_dlpack.from_dlpack(values, device=queue)
    import dpnp

    return dpnp.asarray(values, usm_type="device", sycl_queue=queue)


def tensor(shape: tuple[int, ...], queue: Any, **keywords: Any) -> Any:
    """Return a tensor over 256 zero bytes of device USM."""
    return usm_dlpack.to_dlpack_tensor(make(np.zeros(256, "u1"), queue), shape=shape, **keywords)


def refused(act: Any, *arguments: Any, **keywords: Any) -> tuple[str, str]:
    """Return code and field of the refusal that a call ends in."""
    with pytest.raises(usm_dlpack.ConversionError) as no:
        act(*arguments, **keywords)
    return no.value.code, no.value.field


# --- Results --------------------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_chain_of_primitives(queue: Any, library: str) -> None:
    a, b = np.arange(12, dtype="f4").reshape(3, 4), np.ones((4, 5), "f4")
    product = onednn_ops.matmul(make(a, queue, library), make(b, queue, library))
    assert type(product) is usm_dlpack.DLPackTensor
    assert (product.usm_type, product.sycl_queue.is_in_order) == ("device", True)
    assert (product.sycl_queue == queue) == queue.is_in_order
    whole = onednn_ops.reorder(product, dtype="int32")
    assert np.array_equal(whole.numpy(), (a @ b).astype("i4"))


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


# --- Memory objects -------------------------------------------------------------------------

DTYPES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float64": "f64",
    "int32": "s32",
    "int8": "s8",
    "uint8": "u8",
    "int4": "s4",
    "uint4": "u4",
    "float8_e5m2": "f8_e5m2",
    "float8_e4m3fn": "f8_e4m3",
    "float8_e8m0fnu": "e8m0",
    "float4_e2m1fn": "f4_e2m1",
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_memory_object_is_the_array(dtype: str) -> None:
    queue = new_queue()
    x = tensor((2, 3), queue, dtype=dtype, byte_offset=8)
    assert onednn_ops.describe(x) == {
        "data_type": DTYPES[dtype],
        "dims": (2, 3),
        "strides": (3, 1),
        "handle": x.data,
        "memory_kind": "usm",
        "device": queue.sycl_device,
        "queue": queue,
    }


@pytest.mark.parametrize("dtype", ["bool", "int64", (2, 32, 2)])
def test_a_dtype_that_onednn_has_not_is_refused(queue: Any, dtype: Any) -> None:
    x = tensor((2,), queue, dtype=dtype)
    assert refused(onednn_ops.describe, x) == ("dtype_unsupported", "dtype")


LAYOUTS = {
    "Fortran order": ((2, 3), (1, 2), (1, 2)),
    "gaps": ((2, 3), (10, 3), (10, 3)),
    "broadcast": ((2, 3), (0, 1), (0, 1)),
    # What DLPack leaves open becomes what a compact array has.
    "extent 1": ((2, 1, 3), (3, 77, 1), (3, 3, 1)),
    "extent 1, negative": ((1, 3), (-5, 1), (3, 1)),
    "empty": ((0, 3), (-1, 9), (3, 1)),
    "rank 0": ((), (), (1,)),
    "rank 12": ((1,) * 11 + (2,), (1,) * 12, (2,) * 11 + (1,)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_the_same_on_both_sides(queue: Any, layout: str) -> None:
    shape, strides, expected = LAYOUTS[layout]
    said = onednn_ops.describe(tensor(shape, queue, strides=strides, dtype="float32"))
    assert (said["dims"], said["strides"]) == (shape or (1,), expected)


NO_LAYOUTS = {
    "negative": ((2, 3), (-3, 1), 12, "layout_mismatch", "strides[0]"),
    "overlapping": ((2, 3), (2, 1), 0, "layout_mismatch", "strides"),
    "interleaved": ((2, 3), (5, 2), 0, "layout_mismatch", "strides"),
    "rank 13": ((1,) * 13, (1,) * 13, 0, "ndim_out_of_range", "ndim"),
    "too large": ((0, 2**40, 2**40), (1, 1, 1), 0, "span_overflow", "shape[1]"),
}


@pytest.mark.parametrize("layout", NO_LAYOUTS)
def test_a_layout_that_onednn_has_not_is_refused(queue: Any, layout: str) -> None:
    shape, strides, offset, code, field = NO_LAYOUTS[layout]
    x = tensor(shape, queue, strides=strides, byte_offset=offset, dtype="float32")
    assert refused(onednn_ops.describe, x) == (code, field)


# --- What else is refused -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn", "float8_e8m0fnu"])
def test_what_onednn_would_compute_wrongly_is_refused(queue: Any, dtype: str) -> None:
    x, plain = (tensor((4,), queue, dtype=name) for name in (dtype, "int32"))
    assert refused(onednn_ops.reorder, x, dtype="float32") == ("request_unsupported", "x")
    assert refused(onednn_ops.reorder, plain, dtype=dtype) == ("request_unsupported", "dtype")


def test_what_onednn_does_not_implement_is_refused_with_its_status(queue: Any) -> None:
    x = tensor((3, 3), queue, dtype="float64")
    with pytest.raises(usm_dlpack.ConversionError, match=r"the status unimplemented \(3\)") as no:
        onednn_ops.matmul(x, x)
    assert (no.value.code, no.value.field) == ("request_unsupported", "matmul")


def test_arguments_that_do_not_fit_are_refused(queue: Any) -> None:
    assert refused(onednn_ops.matmul, ONES, ONES, queue=queue)[0] == "device_type_unsupported"
    device = queue.sycl_device
    elsewhere = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    x = tensor((3, 4), queue, dtype="float32")
    assert refused(onednn_ops.reorder, x, queue=elsewhere) == ("context_not_default", "queue")
    assert refused(onednn_ops.reorder, x, dtype="float31") == ("dtype_unsupported", "dtype")
    with pytest.raises(ValueError, match="b: expected the shape"):
        onednn_ops.matmul(x, x)
    with pytest.raises(TypeError):
        onednn_ops.matmul(3, x)


# --- Order and lifetime: the pending work takes a second, and each test sees that it is pending ---


class Memory(memory.MemoryUSMDevice):  # type: ignore[misc]
    """Memory that can be watched by a weak reference."""


SlowFill = Callable[[Any, Any, float], Any]
SLOW_FILL = """
__kernel void slow_fill(__global float *x, float value, int size, int turns) {
  volatile float none = 0;
  for (int i = 0; i < turns; ++i) none = none * 0.5f;
  for (int i = 0; i < size; ++i) x[i] = value + none;
}
"""


@pytest.fixture(scope="session")
def slow_fill() -> SlowFill:
    """Return a function that fills floats, in a second or so, and returns the event."""
    programs: dict[Any, Any] = {}

    def fill(queue: Any, owner: Any, value: float) -> Any:
        if queue not in programs:
            programs[queue] = program.create_program_from_source(queue, SLOW_FILL)
        kernel = programs[queue].get_sycl_kernel("slow_fill")
        sizes = [ctypes.c_int(owner.nbytes // 4), ctypes.c_int(200_000_000)]
        return queue.submit_async(kernel, [owner, ctypes.c_float(value), *sizes], [1])

    return fill


def is_complete(event: Any) -> bool:
    """Return whether an event is complete."""
    return bool(event.execution_status == dpctl.event_status_type.complete)


def floats(owner: Any, queue: Any) -> Any:
    """Return a tensor of 3 by 3 floats over some memory."""
    return usm_dlpack.to_dlpack_tensor(owner, shape=(3, 3), dtype="float32", queue=queue)


@pytest.mark.parametrize("is_theirs", [False, True])
def test_a_primitive_is_behind_the_queue_of_its_array(
    queue: Any, slow_fill: SlowFill, is_theirs: bool
) -> None:
    theirs = new_queue("default") if is_theirs else queue
    owner, ones = Memory(36, queue=theirs), make(ONES, queue)
    slow_fill(theirs, owner, 1).wait()
    onednn_ops.matmul(floats(owner, theirs), ones, queue=queue).numpy()  # compiles the kernels
    filled = slow_fill(theirs, owner, 2)
    product = onednn_ops.matmul(floats(owner, theirs), ones, queue=queue)
    assert not is_complete(filled)
    assert np.array_equal(product.numpy(), 6 * ONES)  # waits


def test_another_library_is_behind_a_primitive(queue: Any, slow_fill: SlowFill) -> None:
    owner = Memory(36, queue=queue)
    filled = slow_fill(queue, owner, 2)
    product = onednn_ops.matmul(floats(owner, queue), make(ONES, queue), queue=queue)
    other = new_queue()
    handed = usm_dlpack.from_dlpack(product, device=other)
    copied = Memory(36, queue=other)
    other.memcpy_async(copied, dpctl.memory.as_usm_memory(handed), 36).wait()
    assert is_complete(filled)
    assert np.array_equal(floats(copied, other).numpy(), 6 * ONES)


def test_a_result_keeps_what_its_primitive_reads_until_it_is_done(
    queue: Any, slow_fill: SlowFill
) -> None:
    owner = Memory(36, queue=queue)
    watched = weakref.ref(owner)
    slow_fill(queue, owner, 4).wait()  # dpctl keeps what its own kernels use
    product = onednn_ops.matmul(floats(owner, queue), floats(owner, queue))
    del owner
    gc.collect()
    assert product.numpy()[0, 0] == 48
    assert watched() is not None
    filled = slow_fill(queue, watched(), 5)
    product = onednn_ops.matmul(floats(watched(), queue), product)
    assert not is_complete(filled)
    del product
    gc.collect()
    assert is_complete(filled)
