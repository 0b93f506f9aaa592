# SPDX-License-Identifier: Apache-2.0
"""DLPack's dtypes, ``(code, bits, lanes)``, to and from NumPy's and array-interface strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from usm_dlpack._errors import shown

if TYPE_CHECKING:
    from usm_dlpack._core import DLPackTensor, UsmAllocation

DLDataType = tuple[int, int, int]

# DLDataTypeCode of dlpack.h 1.3; the kinds that have one width carry it in their name.
_NUMBERED = {0: "int", 1: "uint", 2: "float", 5: "complex"}
_NAMED = {
    (4, 16): "bfloat16",
    (6, 8): "bool",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
    (15, 6): "float6_e2m3fn",
    (16, 6): "float6_e3m2fn",
    (17, 4): "float4_e2m1fn",
}
_CODES = {name: key for key, name in _NAMED.items()}
_PADDED = (np.longdouble, np.clongdouble)
_KIND_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


def name_of(code: int, bits: int, lanes: int) -> str:
    """Return the name of a dtype: ``float32``, ``bfloat16``, ``float32x4`` for four lanes."""
    number = _NUMBERED.get(code)
    name = _NAMED.get((code, bits)) if number is None else f"{number}{bits}"
    if name is None:
        name = f"code{code}bits{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


def from_dlpack_dtype(code: int, bits: int, lanes: int) -> np.dtype[Any] | str:
    """Return NumPy's dtype where it has one, otherwise the name."""
    name = name_of(code, bits, lanes)
    if lanes != 1:
        return name
    try:
        found = np.dtype(name)
    except TypeError:
        return name
    # NumPy's names for wide floats are those of padded x87 numbers.
    return name if found.itemsize * 8 != bits or found.type in _PADDED else found


def to_dlpack_dtype(dtype: object) -> DLDataType:
    """Return DLPack's dtype of anything that NumPy takes for a dtype, or of one of DLPack's names.

    Raises
    ------
    TypeError
        If DLPack has no such dtype, or it is not of native byte order.
    """
    if isinstance(dtype, str) and dtype in _CODES:
        code, bits = _CODES[dtype]
        return code, bits, 1
    if isinstance(dtype, tuple) and len(dtype) == 3 and all(type(part) is int for part in dtype):
        code, bits, lanes = dtype
        if 0 <= code <= 255 and 0 < bits <= 255 and 0 < lanes <= 65535:
            return code, bits, lanes
    try:
        found = np.dtype(dtype)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise TypeError(
            f"dtype: expected one of NumPy's or DLPack's dtypes, found {shown(dtype)}; "
            "pass for example numpy.float32 or 'bfloat16'"
        ) from None
    if found.name in _CODES:  # the types of ml_dtypes
        code, bits = _CODES[found.name]
        if bits != found.itemsize * 8:
            raise TypeError(
                f"dtype: expected elements that fill their bytes, found {shown(found)}; "
                f"pass the name {found.name!r} if the memory holds them packed"
            )
        return code, bits, 1
    if found.kind not in _KIND_CODES or not found.isnative or found.type in _PADDED:
        raise TypeError(
            f"dtype: expected a bool or a number in native byte order, found {shown(found)}; "
            "convert the array or reinterpret its memory"
        )
    return _KIND_CODES[found.kind], found.itemsize * 8, 1


def to_typestr(code: int, bits: int, lanes: int) -> str:
    """Return the array interface's type string.

    Raises
    ------
    AttributeError
        If there is none (bfloat16, float8, lanes): the attribute that holds it then is not there.
    """
    found = from_dlpack_dtype(code, bits, lanes)
    if isinstance(found, str) or code not in _KIND_CODES.values():
        raise AttributeError(
            f"__sycl_usm_array_interface__: expected a dtype that has a type string, "
            f"found {name_of(code, bits, lanes)}; exchange the array through DLPack"
        )
    return found.str


def describe_proof(proof: UsmAllocation) -> str:
    """Return the text of ``repr`` of what was proved."""
    access = ", read-only" if proof.readonly else ""
    return (
        f"UsmAllocation(usm_type={proof.usm_type!r}, device_id={proof.device_id}, "
        f"nbytes={proof.nbytes}, size={proof.size}, bounds={proof.bounds!r}, "
        f"device_proof={proof.device_proof!r}{access})"
    )


def describe(tensor: DLPackTensor) -> str:
    """Return the text of ``repr``."""
    access = ", read-only" if tensor.readonly else ""
    return (
        f"DLPackTensor(shape={tensor.shape}, strides={tensor.strides}, dtype={tensor.dtype}, "
        f"usm_type={tensor.usm_type!r}, device={tensor.device}{access})"
    )
