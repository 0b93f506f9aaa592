# SPDX-License-Identifier: Apache-2.0
"""Which primitives oneDNN has on this CPU, asked of its C API alone.

Support of a data type depends on the instructions of the CPU, so no table can say what must be
taken: https://uxlfoundation.github.io/oneDNN/dev_guide_data_types.html (hardware limitations).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

# Loads oneDNN with what it needs: libdnnl names no folder for libtbb, but the extension does.
import onednn_ops  # noqa: F401

# dnnl_data_type_t
_DATA_TYPES = {
    "float16": 1,
    "bfloat16": 2,
    "float32": 3,
    "int32": 4,
    "int8": 5,
    "uint8": 6,
    "float64": 7,
    "float8_e5m2": 9,
    "float8_e4m3fn": 10,
    "int4": 11,
    "uint4": 12,
    "float8_e8m0fnu": 13,
    "float4_e2m1fn": 14,
}
# dnnl_status_t; what is not implemented on this CPU has another.
SUCCESS = 0
_CPU = 1
_FORWARD_INFERENCE = 96
_ELTWISE = {"linear": 0x26}

_dnnl = ctypes.CDLL("libdnnl.so.3")


def _call(name: str, *arguments: object) -> int:
    return int(getattr(_dnnl, f"dnnl_{name}")(*arguments))


@functools.cache
def _engine() -> ctypes.c_void_p:
    engine = ctypes.c_void_p()
    assert _call("engine_create", ctypes.byref(engine), _CPU, ctypes.c_size_t(0)) == SUCCESS
    return engine


def _described(dtype: str, shape: Sequence[int]) -> ctypes.c_void_p:
    """Return a descriptor of a compact array in C order."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * shape[i]
    dims = ctypes.c_int64 * 12
    desc = ctypes.c_void_p()
    made = _call(
        "memory_desc_create_with_strides",
        ctypes.byref(desc),
        len(shape),
        dims(*shape),
        _DATA_TYPES[dtype],
        dims(*strides),
    )
    assert made == SUCCESS
    return desc


def _made(primitive: str, *arguments: object) -> int:
    made = ctypes.c_void_p()
    status = _call(f"{primitive}_primitive_desc_create", ctypes.byref(made), *arguments)
    if status == SUCCESS:
        _call("primitive_desc_destroy", made)
    return status


def reorder(source: str, dtype: str, shape: Sequence[int]) -> int:
    """Return the status of a copy of a compact array to one of another dtype."""
    there = _described(source, shape), _engine()
    return _made("reorder", *there, _described(dtype, shape), _engine(), None)


def matmul(source: str, dtype: str, left: Sequence[int], right: Sequence[int]) -> int:
    """Return the status of a product, of a dtype, of compact matrices of another."""
    product = _described(dtype, (left[0], right[1]))
    factors = _described(source, left), _described(source, right)
    return _made("matmul", _engine(), *factors, None, product, None)


def eltwise(function: str, dtype: str, shape: Sequence[int]) -> int:
    """Return the status of a function of the elements of a compact array."""
    x = _described(dtype, shape)
    coefficients = ctypes.c_float(2), ctypes.c_float(0)
    what = _FORWARD_INFERENCE, _ELTWISE[function]
    return _made("eltwise_forward", _engine(), *what, x, x, *coefficients, None)
