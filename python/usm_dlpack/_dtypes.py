# SPDX-License-Identifier: Apache-2.0
"""DLPack's dtypes, ``(code, bits, lanes)``, to and from NumPy's and array-interface strings."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from usm_dlpack import _core
from usm_dlpack._errors import ConversionError, shown

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
# Numbers of ml_dtypes that NumPy does not have, and those that it keeps in a byte each.
_CODES = {name: key for key, name in _NAMED.items() if name != "bool"} | {
    "int1": (0, 1),
    "int2": (0, 2),
    "int4": (0, 4),
    "uint1": (1, 1),
    "uint2": (1, 2),
    "uint4": (1, 4),
    "complex32": (5, 32),
}
_KEYS_OF_NAMES = {name: key for key, name in _NAMED.items()} | _CODES
# With the fewest bits that DLPack has of each.
_LEAST = {"int": (0, 1), "uint": (1, 1), "float": (2, 16), "complex": (5, 32)}
_NUMBER = re.compile("(int|uint|float|complex)([1-9][0-9]{0,2})")
_OPAQUE = re.compile("code([0-9]{1,3})bits([1-9][0-9]{0,2})")
_LANES = re.compile("(.+)x([1-9][0-9]{0,4})")
_SUBBYTE = frozenset(name for name, (_, bits) in _CODES.items() if bits < 8)
_PADDED = (np.longdouble, np.clongdouble)
_KIND_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


def name_of(code: int, bits: int, lanes: int) -> str:
    """Return the name of a dtype: ``float32``, ``bfloat16``, ``float32x4`` for four lanes."""
    number = _NUMBERED.get(code)
    name = _NAMED.get((code, bits)) if number is None else f"{number}{bits}"
    if name is None:
        name = f"code{code}bits{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


def _key_of(name: str) -> tuple[int, int] | None:
    """Return the code and bits of a name of one lane, or None."""
    if number := _NUMBER.fullmatch(name):
        code, least = _LEAST[number[1]]
        bits = int(number[2])
        return (code, bits) if bits >= least else _KEYS_OF_NAMES.get(name)
    if opaque := _OPAQUE.fullmatch(name):
        return int(opaque[1]), int(opaque[2])
    return _KEYS_OF_NAMES.get(name)


@functools.lru_cache(maxsize=256)
def _of_name(name: str) -> DLDataType | None:
    """Return the dtype that `name_of` gives a name to, or None."""
    lanes, key = 1, _key_of(name)
    if key is None and (parts := _LANES.fullmatch(name)):  # not the x of complex32
        lanes, key = int(parts[2]), _key_of(parts[1])
    return None if key is None else _checked(*key, lanes)


def _checked(code: int, bits: int, lanes: int) -> DLDataType | None:
    """Return three numbers that fit a ``DLDataType``, or None."""
    fits = 0 <= code <= 255 and 0 < bits <= 255 and 0 < lanes <= 65535
    return (code, bits, lanes) if fits else None


@functools.lru_cache(maxsize=256)
def from_dlpack_dtype(
    code: int, bits: int, lanes: int, padded: bool = False
) -> np.dtype[Any] | str:
    """Return NumPy's dtype where it or ml_dtypes has one, otherwise the name.

    Elements of fewer than 8 bits have one only if they are padded to a byte each.
    """
    name = name_of(code, bits, lanes)
    if lanes != 1:
        return name
    if code not in _KIND_CODES.values() or (code, bits) in _CODES.values():
        _register_ml_dtypes()
    try:
        found = np.dtype(name)
    except TypeError:
        return name
    # NumPy's names for wide floats are those of padded x87 numbers.
    fills = found.itemsize * 8 == bits or (padded and bits < 8 and found.itemsize == 1)
    return found if fills and found.type not in _PADDED else name


def _register_ml_dtypes() -> bool:
    """Let NumPy know the names bfloat16, float8_e5m2 and so on, if ml_dtypes is installed."""
    with contextlib.suppress(ImportError):
        importlib.import_module("ml_dtypes")
        return True
    return False


def is_of_ml_dtypes(x: object) -> bool:
    """Return whether an object is a NumPy array of one of ml_dtypes' numbers that DLPack has."""
    return (
        isinstance(x, np.ndarray)
        and x.dtype.type.__module__ == "ml_dtypes"
        and x.dtype.name in _CODES
    )


def to_numpy_dtype(dtype: object) -> np.dtype[Any]:
    """Return NumPy's dtype of anything that it takes for one; a TypeError or ValueError if none."""
    try:
        return np.dtype(dtype)  # type: ignore[call-overload,no-any-return]
    except SyntaxError as error:  # of "i4,,", which NumPy hands to Python's parser
        raise TypeError(f"the data type {shown(dtype)}") from error


def is_subbyte_padded(dtype: object) -> bool:
    """Return whether a dtype is one of ml_dtypes that keeps fewer than 8 bits in a byte."""
    if isinstance(dtype, str):  # the name of a dtype whose elements are packed
        return False
    try:
        found = to_numpy_dtype(dtype)
    except (TypeError, ValueError):
        return False
    return found.name in _SUBBYTE


def bits_of_element(bits: int, lanes: int, padded: bool) -> int:
    """Return the bits of an element in memory; only those of fewer than 8 bits are padded."""
    return (8 if padded and bits < 8 else bits) * lanes


def to_dlpack_dtype(dtype: object) -> DLDataType:
    """Return DLPack's dtype of anything that NumPy takes for a dtype, or of one of DLPack's names.

    A text that is a name in DLPack is that: ``"float128"`` is of 128 bits, and not NumPy's padded
    one of 80.

    Raises
    ------
    TypeError
        If DLPack has no such dtype, or it is not of native byte order.
    """
    if isinstance(dtype, str) and (named := _of_name(str.__str__(dtype))):
        return named
    numbers = isinstance(dtype, tuple) and len(dtype) == 3 and all(type(n) is int for n in dtype)
    if numbers and (checked := _checked(*dtype)):  # type: ignore[misc]
        return checked
    try:
        found = to_numpy_dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(
            f"dtype: expected one of NumPy's or DLPack's dtypes, found {shown(dtype)}; "
            "pass for example numpy.float32 or 'bfloat16'"
        ) from None
    if found.type.__module__ == "ml_dtypes" and found.name in _CODES and found.isnative:
        code, bits = _CODES[found.name]
        return code, bits, 1
    if found.kind not in _KIND_CODES or not found.isnative or found.type in _PADDED:
        raise TypeError(
            f"dtype: expected a bool or a number in native byte order, found {shown(found)}; "
            "convert the array or reinterpret its memory"
        )
    return _KIND_CODES[found.kind], found.itemsize * 8, 1


def to_numpy(tensor: DLPackTensor) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the values as a new NumPy array.

    Raises
    ------
    ConversionError
        If NumPy has no such dtype.
    """
    dtype = tensor.dtype
    if isinstance(dtype, str):
        wanted, remedy = "one that NumPy or ml_dtypes has", "take the bytes"
        if dtype in _CODES and not _register_ml_dtypes():
            remedy = "install ml_dtypes, or take the bytes"
        elif dtype in _SUBBYTE:
            wanted = "one whose elements have a byte each"
        raise ConversionError(
            *("dtype_unsupported", "dtype", wanted, dtype),
            f"{remedy} with __dlpack__(dl_device=(1, 0))",
        )
    values = np.empty(tensor.shape, dtype)
    _core.write_compact(tensor, values.ctypes.data)
    return values


def to_typestr(code: int, bits: int, lanes: int) -> str:
    """Return the array interface's type string.

    Raises
    ------
    AttributeError
        If there is none (bfloat16, float8, lanes): the attribute that holds it then is not there.
    """
    found = from_dlpack_dtype(code, bits, lanes)
    if isinstance(found, str) or found.kind not in _KIND_CODES or code not in _KIND_CODES.values():
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
    """Return the text of ``repr``: what the tensor is, and where."""
    access = ", read-only" if tensor.readonly else ""
    try:
        name = repr(tensor.sycl_device.name.strip())
    except ConversionError:  # in a child of fork(), where the runtime must not be asked
        name = "?"
    return (
        f"DLPackTensor(shape={tensor.shape}, strides={tensor.strides}, dtype={tensor.dtype}, "
        f"usm_type={tensor.usm_type!r}, device={tensor.device}, "
        f"name={name}, nbytes={tensor.nbytes}, "
        f"byte_extent={tensor.byte_extent}{access})"
    )
