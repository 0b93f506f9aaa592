# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D103 (the name of a test is its sentence)
"""oneDNN works on the arrays' own memory, in order, and refuses what it cannot describe."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import onednn_ops
import pytest
import usm_dlpack
from conftest import Memory, new_queue, tensor

Make = Callable[[Any, Any], Any]
SlowFill = Callable[[Any, Any, float], Any]
ONES = np.ones((3, 3), "f4")


def refused(act: Any, *arguments: Any, **keywords: Any) -> tuple[str, str]:
    """Return code and field of the refusal that a call ends in."""
    with pytest.raises(usm_dlpack.ConversionError) as no:
        act(*arguments, **keywords)
    return no.value.code, no.value.field


# --- Results --------------------------------------------------------------------------------


def test_a_chain_of_primitives(array: Make, queue: Any) -> None:
    a, b = np.arange(12, dtype="f4").reshape(3, 4), np.ones((4, 5), "f4")
    product = onednn_ops.matmul(array(a, queue), array(b, queue))
    assert type(product) is usm_dlpack.DLPackTensor
    assert (product.usm_type, product.sycl_queue.is_in_order) == ("device", True)
    assert (product.sycl_queue == queue) == queue.is_in_order
    whole = onednn_ops.reorder(product, dtype="int32")
    assert np.array_equal(whole.numpy(), (a @ b).astype("i4"))


@pytest.mark.parametrize(
    ("shape", "strides"), [((4, 3), (1, 6)), ((4, 3), (0, 1)), ((4, 3), (8, 2)), ((0, 3), (3, 1))]
)
def test_matmul_of_strided_views(queue: Any, shape: tuple[int, int], strides: Any) -> None:
    base = np.arange(40, dtype="f4")
    a = np.lib.stride_tricks.as_strided(base, shape, [4 * stride for stride in strides])
    x = usm_dlpack.from_dlpack(base, device=queue)
    view = usm_dlpack.to_dlpack_tensor(x, shape=shape, strides=strides)
    b = np.arange(15, dtype="f4").reshape(3, 5)
    product = onednn_ops.matmul(view, usm_dlpack.from_dlpack(b, device=queue))
    assert np.array_equal(product.numpy(), a @ b)


@pytest.mark.parametrize(
    ("left", "right"), [((1, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (1, 6, 4, 5)), ((2, 0), (0, 3))]
)
def test_matmul_of_batches_and_of_nothing(queue: Any, left: Any, right: Any) -> None:
    a, b = np.ones(left, "f4"), np.ones(right, "f4")
    x, y = (usm_dlpack.from_dlpack(values, device=queue) for values in (a, b))
    assert np.array_equal(onednn_ops.matmul(x, y).numpy(), a @ b)


# What four bytes mean, of which the first elements are written out.
BYTES = np.array([0x21, 0x43, 0x38, 0x7F], "u1")
MEANINGS = {
    "int8": [33, 67, 56, 127],
    "uint8": [33, 67, 56, 127],
    "float8_e5m2": [2**-7 * 1.25, 3.5, 0.5, math.nan],
    "float8_e4m3fn": [2**-3 * 1.125, 2.75, 1, math.nan],
    "float16": [3.5645, math.nan],
    "int32": [0x7F384321],
    "bfloat16": [float((BYTES.view("u2").astype("u4") << 16).view("f4")[i]) for i in (0, 1)],
}


@pytest.mark.parametrize("dtype", MEANINGS)
def test_a_dtype_means_the_same_on_both_sides(queue: Any, dtype: str) -> None:
    expected = MEANINGS[dtype]
    owner = usm_dlpack.from_dlpack(BYTES, device=queue)
    x = usm_dlpack.to_dlpack_tensor(owner, shape=len(expected), dtype=dtype)
    values = onednn_ops.reorder(x, dtype="float32").numpy()
    assert np.allclose(values, expected, rtol=1e-4, equal_nan=True)


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


@pytest.mark.parametrize("dtype", ["bool", "int64", "complex64", "float6_e2m3fn", (2, 32, 2)])
def test_a_dtype_that_onednn_has_not_is_refused(queue: Any, dtype: Any) -> None:
    assert refused(onednn_ops.describe, tensor((2,), queue, dtype=dtype)) == (
        "dtype_unsupported",
        "dtype",
    )


def test_padded_elements_of_four_bits_are_refused(queue: Any) -> None:
    class Padded:
        def __dlpack__(self, *, max_version: Any = None) -> Any:
            capsule = tensor((4,), queue, dtype=(1, 4, 1)).__dlpack__(max_version=max_version)
            pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
            pointer_of.restype = ctypes.c_void_p
            pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
            flags = pointer_of(capsule, b"dltensor_versioned") + 24
            ctypes.c_uint64.from_address(flags).value = 4
            return capsule

    assert refused(onednn_ops.describe, Padded(), queue=queue) == ("dtype_unsupported", "flags")


# --- What else is refused -------------------------------------------------------------------


def test_what_onednn_would_compute_wrongly_is_refused(queue: Any) -> None:
    gaps = tensor((2, 2, 2), queue, strides=(8, 2, 1), dtype="float32")
    assert refused(onednn_ops.matmul, gaps, gaps) == ("layout_mismatch", "a")
    for dtype in ("int4", "float4_e2m1fn", "float8_e8m0fnu"):
        x = tensor((4,), queue, dtype=dtype)
        assert refused(onednn_ops.reorder, x, dtype="float32") == ("request_unsupported", "x")
        plain = tensor((4,), queue, dtype="int32")
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


TWO_DEVICES = """
import dpctl, numpy as np, onednn_ops, usm_dlpack
values = np.arange(9, dtype="f4").reshape(3, 3)
queues = [dpctl.SyclQueue(device) for device in dpctl.get_devices()]
arrays = [usm_dlpack.from_dlpack(values, device=queue) for queue in queues]
for i, x in enumerate(arrays):
    assert onednn_ops.describe(x)["device"] == usm_dlpack.root_device(i)
    product = onednn_ops.matmul(x, x)
    assert product.device == (14, i) and np.array_equal(product.numpy(), values @ values)
    try:
        onednn_ops.matmul(x, arrays[1 - i])
    except usm_dlpack.ConversionError as error:
        print(error.code)
"""


def test_the_engine_is_on_the_device_of_the_array(tmp_path: Path) -> None:
    # A copy of the CPU driver is another platform, with a device of its own.
    driver = Path(sys.prefix, "lib", "libintelocl.so")
    for sibling in driver.parent.iterdir():
        (tmp_path / sibling.name).symlink_to(sibling)
    second = tmp_path / driver.name
    second.unlink()
    shutil.copyfile(driver, second)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TWO_DEVICES],
        env=os.environ | {"OCL_ICD_FILENAMES": f"{driver}:{second}"},
        capture_output=True,
        text=True,
        check=False,
    )
    second.unlink()
    assert (done.returncode, done.stdout) == (0, 2 * "device_not_accepted\n"), done.stderr


# --- Order and lifetime: the pending work takes a second, and each test sees that it is pending ---


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
    theirs = new_queue(in_order=False) if is_theirs else queue
    owner, ones = Memory(36, queue=theirs), usm_dlpack.from_dlpack(ONES, device=queue)
    slow_fill(theirs, owner, 1).wait()
    onednn_ops.matmul(floats(owner, theirs), ones, queue=queue).numpy()  # compiles the kernels
    filled = slow_fill(theirs, owner, 2)
    product = onednn_ops.matmul(floats(owner, theirs), ones, queue=queue)
    assert not is_complete(filled)
    assert np.array_equal(product.numpy(), 6 * ONES)  # waits


def test_another_library_is_behind_a_primitive(
    array: Make, queue: Any, slow_fill: SlowFill
) -> None:
    owner, ones = Memory(36, queue=queue), array(ONES, queue)
    filled = slow_fill(queue, owner, 2)
    product = onednn_ops.matmul(floats(owner, queue), ones, queue=queue)
    other = new_queue()
    handed = usm_dlpack.from_dlpack(product, device=other)
    copied = Memory(36, queue=other)
    other.memcpy_async(copied, dpctl.memory.as_usm_memory(handed), 36).wait()
    assert is_complete(filled)
    assert np.array_equal(floats(copied, other).numpy(), 6 * ONES)


def test_a_result_keeps_what_its_primitive_reads(queue: Any, slow_fill: SlowFill) -> None:
    owners = [Memory(36, queue=queue), Memory(36, queue=queue)]
    watched = [weakref.ref(owner) for owner in owners]
    filled = [slow_fill(queue, owner, 4) for owner in owners]
    product = onednn_ops.matmul(*(floats(owner, queue) for owner in owners))
    dpctl.SyclEvent.wait_for(filled)  # dpctl keeps what its own kernels use
    del owners
    gc.collect()
    assert all(reference() is not None for reference in watched)
    assert product.numpy()[0, 0] == 48
    del product
    gc.collect()
    assert all(reference() is None for reference in watched)


def test_a_result_that_goes_waits_for_its_primitive(queue: Any, slow_fill: SlowFill) -> None:
    owner = Memory(36, queue=queue)
    filled = slow_fill(queue, owner, 4)
    product = onednn_ops.matmul(floats(owner, queue), floats(owner, queue))
    assert not is_complete(filled)
    del product
    gc.collect()
    assert is_complete(filled)
