# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D103 (the name of a test is its sentence)
"""oneDNN's primitives compute what NumPy computes, on the arrays' memory, and refuse the rest."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import c_api
import dpctl
import numpy as np
import onednn_ops
import pytest
import usm_dlpack
from conftest import Library, make, new_queue

HERE = Path(__file__).parent


def numbers(*shape: int, dtype: str = "float32") -> Any:
    """Return small whole numbers, whose products every order of additions computes alike."""
    lowest = 0 if dtype.startswith("u") else -4
    return np.random.default_rng(1).integers(lowest, 5, shape).astype(dtype)


def refused(act: Any, *arguments: Any, **keywords: Any) -> Any:
    """Return the refusal that a call ends in."""
    with pytest.raises(usm_dlpack.ConversionError) as no:
        act(*arguments, **keywords)
    return no.value


def assert_refused_with(status: int, act: Any, *arguments: Any, **keywords: Any) -> None:
    """Assert that a call ends in a refusal that says oneDNN's status."""
    no = refused(act, *arguments, **keywords)
    assert (no.code, no.field) == ("request_unsupported", act.__name__)
    names = {2: "invalid_arguments", 3: "unimplemented"}
    assert f"found the status {names[status]} ({status})" in str(no)


# --- Primitives -----------------------------------------------------------------------------


def test_matmul_eltwise_and_reorder_in_a_chain(library: Library, queue: Any) -> None:
    a, b = numbers(3, 4), numbers(4, 5)
    product = onednn_ops.matmul(library.array(a, queue), library.array(b, queue))
    assert isinstance(product, usm_dlpack.DLPackTensor)
    assert (product.usm_type, product.sycl_queue.is_in_order) == ("device", True)
    assert (product.sycl_queue == queue) == queue.is_in_order
    positive = onednn_ops.eltwise("relu", product)
    small = onednn_ops.reorder(positive, dtype="int8")
    back = library.take(small)
    assert library.address(back) == small.data
    expected = np.maximum(a @ b, 0).astype("i1")
    assert np.array_equal(library.values(back), expected)


VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.T,
    "block": lambda x: x[1:5, 2:6],
    "every other column": lambda x: x[:4, ::2],
    "one row": lambda x: x[2:3, :],
    "no rows": lambda x: x[2:2, :],
    "no columns": lambda x: x[:, 3:3],
}


@pytest.mark.parametrize("view", VIEWS)
def test_matmul_of_views(library: Library, out_of_order: Any, view: str) -> None:
    base = numbers(6, 8)
    left = library.view(library.array(base, out_of_order), base, VIEWS[view])
    a = VIEWS[view](base)
    b = numbers(a.shape[1], 3)
    product = onednn_ops.matmul(left, library.array(b, out_of_order))
    assert onednn_ops.describe(left)["handle"] == library.address(left)
    assert np.array_equal(product.numpy(), a @ b)


@pytest.mark.parametrize("strides", [(0, 1), (1, 0), (0, 0), (8, 2), (1, 5)])
def test_matmul_of_a_broadcast_or_strided_tensor(queue: Any, strides: tuple[int, int]) -> None:
    base = numbers(40)
    a = np.lib.stride_tricks.as_strided(base, (4, 3), [4 * stride for stride in strides])
    b = numbers(3, 5)
    left = usm_dlpack.to_dlpack_tensor(make(base, queue), shape=(4, 3), strides=strides)
    assert onednn_ops.describe(left)["strides"] == strides
    assert np.array_equal(onednn_ops.matmul(left, make(b, queue)).numpy(), a @ b)


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (1, 6, 4, 5))],
)
def test_matmul_of_batches(queue: Any, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = numbers(*left), numbers(*right)
    product = onednn_ops.matmul(make(a, queue), make(b, queue))
    assert np.array_equal(product.numpy(), a @ b)


@pytest.mark.parametrize(
    ("dtype", "product_dtype"),
    [("float32", "float32"), ("float16", "float16"), ("int8", "int32"), ("uint8", "int32")],
)
def test_matmul_of_dtypes(library: Library, queue: Any, dtype: str, product_dtype: str) -> None:
    a, b = numbers(3, 4, dtype=dtype), numbers(4, 5, dtype=dtype)
    x, y = library.array(a, queue), library.array(b, queue)
    if status := c_api.matmul(dtype, product_dtype, a.shape, b.shape):
        assert_refused_with(status, onednn_ops.matmul, x, y)
        assert dtype == "float16"
        return
    product = onednn_ops.matmul(x, y)
    assert product.dtype == np.dtype(product_dtype)
    assert np.array_equal(product.numpy(), a.astype("i4") @ b.astype("i4"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_matmul_of_dtypes_that_numpy_has_not(queue: Any, dtype: str) -> None:
    a, b = numbers(3, 4), numbers(4, 5)
    left, right = (onednn_ops.reorder(make(x, queue), dtype=dtype) for x in (a, b))
    assert onednn_ops.describe(left)["data_type"] in ("bf16", "f8_e5m2", "f8_e4m3")
    if status := c_api.matmul(dtype, "float32", a.shape, b.shape):
        assert_refused_with(status, onednn_ops.matmul, left, right, dtype="float32")
        return
    product = onednn_ops.matmul(left, right, dtype="float32")
    assert np.array_equal(product.numpy(), a @ b)


ERF = np.vectorize(math.erf)
FUNCTIONS = {
    "abs": np.abs,
    "clip": lambda x: np.clip(x, 0.5, 1.5),
    "exp": np.exp,
    "gelu_erf": lambda x: x / 2 * (1 + ERF(x / math.sqrt(2))),
    "linear": lambda x: 0.5 * x + 1.5,
    "log": np.log,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.where(x > 0, x, 0.5 * x),
    "sqrt": np.sqrt,
    "square": np.square,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_eltwise(out_of_order: Any, function: str) -> None:
    values = np.linspace(0.1, 3, 24, dtype="f4").reshape(4, 6)
    x = make(values, out_of_order)
    for tensor, of in (
        (x, values),
        (usm_dlpack.to_dlpack_tensor(x, shape=(6, 4), strides=(1, 6)), values.T),
        (usm_dlpack.to_dlpack_tensor(x, shape=(5, 6), strides=(0, 1)), values[[0] * 5]),
    ):
        result = onednn_ops.eltwise(function, tensor, alpha=0.5, beta=1.5)
        assert np.allclose(result.numpy(), FUNCTIONS[function](of), rtol=1e-4, atol=1e-5)


# What four bytes mean, of which the first elements are written out.
BYTES = np.array([0x21, 0x43, 0x38, 0x7F], "u1")
MEANINGS = {
    (0, 4, 1): [1, 2, 3, 4, -8, 3, -1, 7],
    (1, 4, 1): [1, 2, 3, 4, 8, 3, 15, 7],
    "float4_e2m1fn": [0.5, 1, 1.5, 2, -0.0, 1.5, -6, 6],
    "int8": [33, 67, 56, 127],
    "uint8": [33, 67, 56, 127],
    "float8_e5m2": [2**-7 * 1.25, 3.5, 0.5, math.nan],
    "float8_e4m3fn": [2**-3 * 1.125, 2.75, 1, math.nan],
    "float8_e8m0fnu": [2.0**-94, 2.0**-60, 2.0**-71, 1],
    "float16": [3.5645, math.nan],
    "int32": [0x7F384321],
    "float32": [float(BYTES.view("f4")[0])],
    "bfloat16": [float((BYTES.view("u2").astype("u4") << 16).view("f4")[i]) for i in (0, 1)],
}


@pytest.mark.parametrize("dtype", MEANINGS, ids=str)
def test_a_dtype_means_the_same_on_both_sides(in_order: Any, dtype: Any) -> None:
    expected = MEANINGS[dtype]
    x = usm_dlpack.to_dlpack_tensor(make(BYTES, in_order), shape=len(expected), dtype=dtype)
    values = onednn_ops.reorder(x, dtype="float32").numpy()
    assert np.allclose(values, expected, rtol=1e-4, equal_nan=True)


# What no CPU's matmul and eltwise take although descriptors and reorders do. A reorder to these is
# made of float32 alone: oneDNN 3.11 makes others too, which write nothing.
ONLY_REORDERED = ["int4", "uint4", "float8_e8m0fnu", "float4_e2m1fn"]
COMPUTED = [
    "float32",
    "float16",
    "bfloat16",
    "int32",
    "int8",
    "uint8",
    "float8_e5m2",
    "float8_e4m3fn",
]
ALL_DTYPES = [*COMPUTED, *ONLY_REORDERED]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_reorder_writes_the_values_or_is_refused(in_order: Any, dtype: str) -> None:
    values = np.array([1, 2, 4, 2, 1, 4], "f4")
    for source in ALL_DTYPES:
        there = onednn_ops.reorder(make(values, in_order), dtype=source)
        if dtype in ONLY_REORDERED and source != "float32":
            no = refused(onednn_ops.reorder, there, dtype=dtype)
            assert (no.code, no.field) == ("request_unsupported", "reorder")
            assert "expected float32 for a result of this dtype" in str(no)
            continue
        if status := c_api.reorder(source, dtype, values.shape):
            assert_refused_with(status, onednn_ops.reorder, there, dtype=dtype)
            assert "float32" not in (source, dtype)
            continue
        made = onednn_ops.reorder(there, dtype=dtype)
        assert str(made.dtype) == dtype
        written = onednn_ops.reorder(made, dtype="float32").numpy()
        assert np.array_equal(written, values), (source, dtype)


@pytest.mark.parametrize("source", ALL_DTYPES)
def test_matmul_writes_the_values_or_is_refused(in_order: Any, source: str) -> None:
    values = np.array([[1, 0], [0, 2]], "f4")
    x = onednn_ops.reorder(make(values, in_order), dtype=source)
    taken = set()
    for dtype in ALL_DTYPES:
        if status := c_api.matmul(source, dtype, values.shape, values.shape):
            assert_refused_with(status, onednn_ops.matmul, x, x, dtype=dtype)
            continue
        taken.add(dtype)
        product = onednn_ops.matmul(x, x, dtype=dtype)
        written = onednn_ops.reorder(product, dtype="float32").numpy()
        assert np.array_equal(written, values @ values), (source, dtype)
    # What any CPU's oneDNN has.
    always = {"float32": {"float32"}, "int8": {"int8", "int32"}, "uint8": {"uint8", "int32"}}
    assert taken >= always.get(source, set())


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_eltwise_writes_the_values_or_is_refused(in_order: Any, dtype: str) -> None:
    values = np.array([1, 2, 4, 2, 1, 4], "f4")
    x = onednn_ops.reorder(make(values, in_order), dtype=dtype)
    if status := c_api.eltwise("linear", dtype, values.shape):
        assert_refused_with(status, onednn_ops.eltwise, "linear", x, alpha=2)
        assert dtype not in ("float32", "int32", "int8", "uint8")
        return
    assert dtype not in ONLY_REORDERED
    made = onednn_ops.eltwise("linear", x, alpha=2)
    assert str(made.dtype) == dtype
    assert np.array_equal(onednn_ops.reorder(made, dtype="float32").numpy(), 2 * values)


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


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_memory_object_is_the_array(queue: Any, dtype: str, usm_type: str) -> None:
    base = make(np.zeros(64, "u1"), queue, usm_type)
    x = usm_dlpack.to_dlpack_tensor(base, shape=(2, 3), dtype=dtype, byte_offset=8)
    said = onednn_ops.describe(x)
    assert said == {
        "data_type": DTYPES[dtype],
        "dims": (2, 3),
        "strides": (3, 1),
        "handle": base.data + 8,
        "memory_kind": "usm",
        "engine_kind": "cpu",
        "device": queue.sycl_device,
        "queue": queue,
    }


NOT_ONEDNNS = ["bool", "int16", "int64", "uint16", "uint32", "uint64", "complex64", "complex128"]
NOT_ONEDNNS += ["float8_e4m3", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn", "int2"]


@pytest.mark.parametrize("dtype", [*NOT_ONEDNNS, (2, 32, 2)], ids=str)
def test_a_dtype_that_onednn_has_not(queue: Any, dtype: Any) -> None:
    x = usm_dlpack.to_dlpack_tensor(make(np.zeros(64, "u1"), queue), shape=(2,), dtype=dtype)
    with pytest.raises(usm_dlpack.ConversionError, match="expected a data type of oneDNN") as no:
        onednn_ops.describe(x)
    assert (no.value.code, no.value.field) == ("dtype_unsupported", "dtype")


LAYOUTS = {
    "C order": ((2, 3), (3, 1), (3, 1)),
    "Fortran order": ((2, 3), (1, 2), (1, 2)),
    "gaps": ((2, 3), (10, 3), (10, 3)),
    "broadcast rows": ((2, 3), (0, 1), (0, 1)),
    "broadcast all": ((2, 3), (0, 0), (0, 0)),
    "permuted": ((2, 3, 4), (4, 8, 1), (4, 8, 1)),
    # What DLPack leaves open becomes what a compact array has.
    "extent 1": ((2, 1, 3), (3, 77, 1), (3, 3, 1)),
    "extent 1, negative": ((1, 3), (-5, 1), (3, 1)),
    "extent 1 at the end": ((3, 1), (1, -9), (1, 1)),
    "extent 1 before swapped": ((2, 1, 3, 4), (12, 77, 1, 3), (12, 12, 1, 3)),
    "all extents 1": ((1, 1), (7, -7), (1, 1)),
    "empty": ((0, 3), (-1, 9), (3, 1)),
    "empty inside": ((2, 0, 3), (5, 5, 5), (3, 3, 1)),
    "rank 0": ((), (), (1,)),
    "rank 12": ((1,) * 11 + (2,), (1,) * 12, (2,) * 11 + (1,)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_the_same_on_both_sides(queue: Any, layout: str) -> None:
    shape, strides, expected = LAYOUTS[layout]
    base = make(np.zeros(64, "f4"), queue)
    said = onednn_ops.describe(usm_dlpack.to_dlpack_tensor(base, shape=shape, strides=strides))
    assert (said["dims"], said["strides"]) == (shape or (1,), expected)
    assert said["handle"] == base.data


NO_LAYOUTS = {
    "negative": ((2, 3), (-3, 1), 3, "layout_mismatch", "strides[0]"),
    "overlapping windows": ((3, 3), (1, 1), 0, "layout_mismatch", "strides"),
    "overlapping rows": ((2, 3), (2, 1), 0, "layout_mismatch", "strides"),
    "every other column of an odd number": ((2, 3), (5, 2), 0, "layout_mismatch", "strides"),
    "rank 13": ((1,) * 13, (1,) * 13, 0, "ndim_out_of_range", "ndim"),
}


@pytest.mark.parametrize("layout", NO_LAYOUTS)
def test_a_layout_that_onednn_has_not(queue: Any, layout: str) -> None:
    shape, strides, first, code, field = NO_LAYOUTS[layout]
    base = make(np.zeros(64, "f4"), queue)
    x = usm_dlpack.to_dlpack_tensor(base, shape=shape, strides=strides, byte_offset=4 * first)
    with pytest.raises(usm_dlpack.ConversionError, match="oneDNN") as no:
        onednn_ops.describe(x)
    assert (no.value.code, no.value.field) == (code, field)
    if field == "strides":
        assert no.value.expected == (
            "strides of 0, or of at least the next smaller one times its extent, "
            "as oneDNN takes them"
        )
        assert no.value.found == f"{strides} for the shape {shape}"


def test_extents_that_no_int64_multiplies(queue: Any) -> None:
    base = make(np.zeros(64, "f4"), queue)
    x = usm_dlpack.to_dlpack_tensor(base, shape=(0, 2**40, 2**40), strides=(1, 1, 1))
    no = refused(onednn_ops.describe, x)
    assert (no.code, no.field) == ("span_overflow", "shape[1]")
    rows, columns = (
        usm_dlpack.to_dlpack_tensor(base, shape=shape, strides=(1, 1))
        for shape in ((2**40, 0), (0, 2**40))
    )
    assert refused(onednn_ops.matmul, rows, columns).code == "span_overflow"


def test_padded_elements_of_four_bits_are_no_packed_ones(queue: Any) -> None:
    class Padded:
        """A tensor whose capsule says that its elements are padded to a byte each."""

        def __init__(self) -> None:
            self.tensor = usm_dlpack.to_dlpack_tensor(
                make(np.zeros(16, "u1"), queue), shape=4, dtype=(1, 4, 1)
            )

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.tensor.device

        def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
            capsule = self.tensor.__dlpack__(max_version=max_version)
            set_flags(capsule, 4)
            return capsule

    with pytest.raises(usm_dlpack.ConversionError, match="expected packed elements") as no:
        onednn_ops.describe(Padded(), queue=queue)
    assert (no.value.code, no.value.field) == ("dtype_unsupported", "flags")


def set_flags(capsule: Any, flags: int) -> None:
    """Set `DLManagedTensorVersioned::flags` of a fresh capsule."""
    import ctypes

    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer_of(capsule, b"dltensor_versioned")
    ctypes.c_uint64.from_address(address + 24).value = flags


# --- What is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", *ONLY_REORDERED])
def test_a_dtype_that_no_primitive_takes(queue: Any, dtype: str) -> None:
    x = usm_dlpack.to_dlpack_tensor(make(np.zeros(64, "u1"), queue), shape=(2, 2), dtype=dtype)
    assert refused(onednn_ops.matmul, x, x).field == "matmul"
    assert refused(onednn_ops.eltwise, "relu", x).field == "eltwise"
    if dtype in ONLY_REORDERED:
        assert onednn_ops.reorder(x, dtype="float32").shape == (2, 2)
    else:
        assert refused(onednn_ops.reorder, x, dtype="float32").field == "reorder"


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_a_product_that_onednn_does_not_implement(library: Library, queue: Any, dtype: str) -> None:
    x = library.array(numbers(3, 3, dtype=dtype), queue)
    no = refused(onednn_ops.matmul, x, x)
    assert (no.code, no.field) == ("request_unsupported", "matmul")
    assert "found the status " in str(no)


def test_an_array_of_the_host(queue: Any) -> None:
    for act in (onednn_ops.matmul, onednn_ops.matmul_into):
        operands = [numbers(3, 3)] * (2 if act is onednn_ops.matmul else 3)
        assert refused(act, *operands, queue=queue).code == "device_type_unsupported"


def test_a_queue_of_another_context(in_order: Any) -> None:
    device = in_order.sycl_device
    elsewhere = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    no = refused(onednn_ops.eltwise, "relu", make(numbers(3), in_order), queue=elsewhere)
    assert isinstance(no, usm_dlpack.UsmBindingError)
    assert (no.code, no.field) == ("context_not_default", "queue")


def test_a_negative_stride_of_theirs(library: Library, queue: Any) -> None:
    values = numbers(3, 3)
    x = library.view(library.array(values, queue), values, lambda x: x[::-1])
    assert refused(onednn_ops.matmul, x, x).code == "layout_mismatch"


def test_an_output_that_is_read_only_or_overlaps(queue: Any) -> None:
    x, out = make(numbers(3), queue), make(numbers(3), queue)
    readonly = usm_dlpack.to_dlpack_tensor(ReadOnly(out))
    assert refused(onednn_ops.reorder_into, x, readonly).code == "read_only"
    repeated = usm_dlpack.to_dlpack_tensor(out, shape=(3,), strides=(0,))
    assert refused(onednn_ops.reorder_into, x, repeated).code == "overlapping"


class ReadOnly:
    """Memory that says that it must not be written to."""

    def __init__(self, tensor: Any) -> None:
        interface = tensor.__sycl_usm_array_interface__
        self.tensor = tensor
        self.__sycl_usm_array_interface__ = interface | {"data": (tensor.data, True)}


def test_outputs_that_onednn_or_the_shapes_refuse(queue: Any) -> None:
    x = make(numbers(3, 4), queue)
    other = usm_dlpack.to_dlpack_tensor(make(numbers(3, 4), queue), shape=(3, 4), strides=(1, 3))
    assert refused(onednn_ops.eltwise_into, "relu", x, other).field == "eltwise"
    with pytest.raises(ValueError, match="out: expected the shape of the product"):
        onednn_ops.matmul_into(x, make(numbers(4, 5), queue), make(numbers(3, 4), queue))
    none = make(numbers(0, 4), queue)
    with pytest.raises(ValueError, match="a: expected columns"):
        onednn_ops.matmul_into(make(numbers(3, 0), queue), none, x)
    for a, b in (((3, 4), (5, 3)), ((3, 4), (2, 4, 3)), ((4,), (4,)), ((2, 3, 4), (3, 4, 5))):
        with pytest.raises(ValueError, match="b: expected the shape"):
            onednn_ops.matmul(make(numbers(*a), queue), make(numbers(*b), queue))


def test_names_that_nobody_has(queue: Any) -> None:
    x = make(numbers(3), queue)
    with pytest.raises(ValueError, match=r'function: expected one of .*, found "sinus"'):
        onednn_ops.eltwise("sinus", x)
    assert refused(onednn_ops.reorder, x, dtype="float31").code == "dtype_unsupported"
    with pytest.raises(TypeError):
        onednn_ops.matmul(3, x)
    bare = usm_dlpack.to_dlpack_tensor(Bare(x))
    assert bare.sycl_queue is None
    with pytest.raises(ValueError, match="queue: expected one"):
        onednn_ops.reorder(bare)
    assert np.array_equal(onednn_ops.reorder(bare, queue=queue).numpy(), numbers(3))


class Bare:
    """Memory that names its context, and no queue."""

    def __init__(self, tensor: Any) -> None:
        interface = tensor.__sycl_usm_array_interface__
        self.tensor = tensor
        self.__sycl_usm_array_interface__ = interface | {"syclobj": tensor.sycl_context}


# --- What oneDNN 3.11 computes wrongly ----------------------------------------------------------


def zeros(queue: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Any:
    """Return a tensor of these strides over zeros."""
    return usm_dlpack.to_dlpack_tensor(
        make(np.zeros(1024, "u1"), queue), shape=shape, strides=strides, dtype=dtype
    )


FOUR_DIMENSIONS = (
    "compact matrices (C order, or the last two dimensions swapped) of more than 3 dimensions"
)
ONE_ROW = "compact matrices where each has one row"
ONE_COLUMN = "compact matrices where each is one column of 8-bit products"
WRONG_PRODUCTS = {
    "half of a batch to write to": (
        ("float32", (2, 2, 3, 3), (18, 9, 3, 1)),
        ("float32", (2, 2, 3, 5), (30, 15, 5, 1)),
        ("float32", (2, 2, 3, 5), (60, 15, 5, 1)),
        ("out", FOUR_DIMENSIONS),
    ),
    "half of a batch to read": (
        ("float32", (2, 2, 3, 3), (36, 9, 3, 1)),
        ("float32", (2, 2, 3, 5), (30, 15, 5, 1)),
        ("float32", (2, 2, 3, 5), (30, 15, 5, 1)),
        ("a", FOUR_DIMENSIONS),
    ),
    "a permuted batch": (
        ("float32", (2, 2, 1, 1), (2, 1, 1, 1)),
        ("float32", (2, 2, 1, 2), (2, 4, 2, 1)),
        ("float32", (2, 2, 1, 2), (4, 2, 2, 1)),
        ("b", FOUR_DIMENSIONS),
    ),
    "a batch inside the columns": (
        ("float32", (1, 1, 1, 1), (1, 1, 1, 1)),
        ("float32", (1, 2, 1, 2), (1, 1, 2, 2)),
        ("float32", (1, 2, 1, 2), (4, 2, 2, 1)),
        ("b", FOUR_DIMENSIONS),
    ),
    "five dimensions": (
        ("float32", (2, 1, 2, 2, 2), (16, 16, 8, 2, 1)),
        ("float32", (2, 1, 2, 2, 2), (8, 8, 4, 2, 1)),
        ("float32", (2, 1, 2, 2, 2), (8, 8, 4, 2, 1)),
        ("a", FOUR_DIMENSIONS),
    ),
    "rows of a wider array": (
        ("float32", (3, 9, 1), (9, 1, 1)),
        ("float32", (3, 1, 9), (13, 9, 1)),
        ("float32", (3, 9, 9), (81, 9, 1)),
        ("b", ONE_ROW),
    ),
    "a column of a wider array": (
        ("int8", (5, 2), (2, 1)),
        ("int8", (2, 1), (1, 1)),
        ("int32", (5, 1), (3, 1)),
        ("out", ONE_COLUMN),
    ),
    "a column of unsigned bytes": (
        ("uint8", (5, 2), (2, 1)),
        ("int8", (2, 1), (1, 1)),
        ("uint8", (5, 1), (8, 1)),
        ("out", ONE_COLUMN),
    ),
}


@pytest.mark.parametrize("product", WRONG_PRODUCTS)
def test_a_product_that_onednn_computes_wrongly_is_refused(in_order: Any, product: str) -> None:
    *arrays, (field, expected) = WRONG_PRODUCTS[product]
    tensors = [zeros(in_order, shape, strides, dtype) for dtype, shape, strides in arrays]
    no = refused(onednn_ops.matmul_into, *tensors)
    assert (no.code, no.field, no.expected) == ("layout_mismatch", field, expected)
    said = onednn_ops.describe(tensors[["a", "b", "out"].index(field)])
    shape = said["dims"]
    assert no.found == f"the strides {said['strides']} for the shape {shape}"
    if field == "out":
        assert no.remedy == "write to a compact array, and copy that"
        assert onednn_ops.matmul(*tensors[:2], dtype=str(tensors[2].dtype)).shape == shape
    else:
        assert no.remedy == "copy the array to a compact one first"
        assert refused(onednn_ops.matmul, *tensors[:2]).expected == expected
        compact = [onednn_ops.reorder(tensor) for tensor in tensors]
        onednn_ops.matmul_into(*compact).wait()


def test_four_dimensions_may_be_swapped_and_three_have_gaps(in_order: Any) -> None:
    values = numbers(2, 1, 4, 4)
    x = make(values, in_order)
    swapped = usm_dlpack.to_dlpack_tensor(x, shape=values.shape, strides=(16, 16, 1, 4))
    turned = np.swapaxes(values, 2, 3)
    assert np.array_equal(onednn_ops.matmul(x, swapped).numpy(), values @ turned)
    blocks = usm_dlpack.to_dlpack_tensor(x, shape=(2, 3, 3), strides=(16, 4, 1))
    assert np.array_equal(
        onednn_ops.matmul(blocks, blocks).numpy(), values[:, 0, :3, :3] @ values[:, 0, :3, :3]
    )


FOUR_BITS = ["int4", "uint4", "float4_e2m1fn"]


@pytest.mark.parametrize("dtype", FOUR_BITS)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1, 3)])
def test_an_odd_number_of_elements_of_four_bits_is_refused(
    in_order: Any, dtype: str, shape: tuple[int, ...]
) -> None:
    owner = make(np.full(8, 0x21, "u1"), in_order)
    packed = usm_dlpack.to_dlpack_tensor(owner, shape=shape, dtype=dtype)
    plain = make(np.ones(shape, "f4"), in_order)
    for act, field in (
        (lambda: onednn_ops.reorder(plain, dtype=dtype), "out"),
        (lambda: onednn_ops.reorder_into(plain, packed), "out"),
        (lambda: onednn_ops.reorder(packed, dtype="float32"), "x"),
        (lambda: onednn_ops.reorder_into(packed, plain), "x"),
    ):
        no = refused(act)
        assert (no.code, no.field) == ("request_unsupported", field)
        assert no.expected == "an even number of elements of 4 bits"
        assert no.found == f"the shape {shape or (1,)}".replace(",)", ")")
        assert no.remedy == "pad the array to an even number of elements"


@pytest.mark.parametrize("dtype", FOUR_BITS)
@pytest.mark.parametrize("strides", [(1, 3), (4, 1), (8, 2)])
def test_elements_of_four_bits_that_are_not_compact_are_refused(
    in_order: Any, dtype: str, strides: tuple[int, int]
) -> None:
    packed = zeros(in_order, (3, 2), strides, dtype)
    plain = make(np.ones((3, 2), "f4"), in_order)
    for act, field in (
        (lambda: onednn_ops.reorder(packed, dtype="float32"), "x"),
        (lambda: onednn_ops.reorder_into(packed, plain), "x"),
        (lambda: onednn_ops.reorder_into(plain, packed), "out"),
    ):
        no = refused(act)
        assert (no.code, no.field) == ("layout_mismatch", field)
        assert no.expected == "a compact array in C order where elements have 4 bits"
        assert no.found == f"the strides {strides} for the shape (3, 2)"


@pytest.mark.parametrize("isa", ["DEFAULT", "AVX2", "SSE41"])
@pytest.mark.parametrize("act", ["float32", "bytes", "from 4 bits", "to 4 bits"])
def test_what_is_taken_of_random_layouts_is_right(act: str, isa: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", HERE / "random_layouts.py", act, "300"],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    outcomes = re.findall(r"^(rank \d|odd|even): (\w+): (\d+)$", done.stdout, re.MULTILINE)
    computed = {kind for kind, outcome, _ in outcomes if outcome == "computed"}
    assert computed == ({"even"} if "4 bits" in act else {"rank 2", "rank 3", "rank 4", "rank 5"})
    if act == "float32":
        assert not any(kind == "rank 2" and outcome != "computed" for kind, outcome, _ in outcomes)


def test_the_c_api_of_onednn_is_found_without_another_library() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import c_api"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# --- Two root devices -----------------------------------------------------------------------


def test_the_engine_is_on_the_device_of_the_array(tmp_path: Path) -> None:
    # A copy of the CPU driver is another platform, with a device of its own.
    driver = Path(sys.prefix, "lib", "libintelocl.so")
    for sibling in driver.parent.iterdir():
        (tmp_path / sibling.name).symlink_to(sibling)
    second = tmp_path / driver.name
    second.unlink()
    shutil.copyfile(driver, second)
    done = subprocess.run(
        [sys.executable, "-W", "error", HERE / "two_devices.py"],
        env=os.environ | {"OCL_ICD_FILENAMES": f"{driver}:{second}"},
        capture_output=True,
        text=True,
        check=False,
    )
    second.unlink()
    assert (done.returncode, done.stdout) == (0, "2 root devices\n"), done.stderr


# --- What is left at the end ----------------------------------------------------------------

_CALLS = """
import conftest, numpy as np, onednn_ops, usm_dlpack
queue = conftest.new_queue()
x = conftest.make(np.ones((3, 3), "f4"), queue)
out = conftest.make(np.ones((3, 3), "f4"), queue)
event = onednn_ops.matmul_into(x, x, out)
onednn_ops.eltwise_into("relu", out, out, depends=[event]).wait()
for call in (lambda: onednn_ops.matmul(x, 1), lambda: onednn_ops.reorder(x, dtype="bool")):
    try:
        call()
    except (TypeError, usm_dlpack.ConversionError):
        pass
kept = onednn_ops.eltwise("square", onednn_ops.matmul(out, x))
print(kept.numpy()[0, 0])
"""


def test_nothing_leaks_and_what_is_pending_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _CALLS],
        env=os.environ | {"USM_DLPACK_REPORT_LEAKS": "1"},
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "81.0\n", "")


def test_memory_objects_keep_nothing_alive() -> None:
    import gc
    import weakref

    from conftest import Memory, floats

    owner = Memory(64, queue=new_queue())
    watched = weakref.ref(owner)
    onednn_ops.describe(floats(owner, 4, 4))
    del owner
    gc.collect()
    assert watched() is None
