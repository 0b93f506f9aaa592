# SPDX-License-Identifier: Apache-2.0
"""DLPack's dtypes from and to names, NumPy's dtypes and type strings of array interfaces."""

import functools
import importlib
import re
from typing import Any

import numpy as np

from usm_dlpack import _core
from usm_dlpack._arguments import refuse
from usm_dlpack._core import DLPackTensor
from usm_dlpack._errors import ConversionError, shown

#: Code, bits and lanes, and whether elements of fewer than 8 bits have a byte each.
Element = tuple[int, int, int, bool]

_NUMBERS = {"int": 1, "uint": 1, "float": 16, "complex": 32}  # the fewest bits of each
_NAMES: dict[tuple[int, int], str] = {}  # by code and bits, of one lane
for _code, (_name, _bits) in enumerate(_core.type_codes()):
    if _bits:
        _NAMES[_code, _bits] = "bfloat16" if _name == "bfloat" else _name
    elif _name in _NUMBERS:
        _NAMES |= {(_code, bits): f"{_name}{bits}" for bits in range(_NUMBERS[_name], 256)}
_KEYS = {name: key for key, name in _NAMES.items()}
_KINDS = {kind: _KEYS[f"{name}64"][0] for kind, name in zip("iufc", _NUMBERS, strict=True)}
_KINDS["b"] = _KEYS["bool"][0]
_CODE = re.compile(r"code(\d{1,3})bits(\d{1,3})")
_LANES = re.compile(r"(.+)x(\d{1,5})")
_PADDED_FLOATS = (np.longdouble, np.clongdouble)  # x87 numbers of 80 bits


def name_of(code: int, bits: int, lanes: int = 1) -> str:
    """Return `float32`, `bfloat16`, `float32x4` for four lanes; `code3bits64` of unnamed ones."""
    name = _NAMES.get((code, bits)) or f"code{code}bits{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


def _fitting(code: int, bits: int, lanes: int) -> bool:
    """Return whether the fields of a ``DLDataType`` can hold the numbers."""
    return 0 <= code < 256 and 0 < bits < 256 and 0 < lanes < 65536


def _named(name: str) -> Element | None:
    """Return the dtype that `name_of` gives the name, or None."""
    lanes, key = 1, _KEYS.get(name)
    if key is None and (parts := _LANES.fullmatch(name)):  # not the x of complex32
        scalar, lanes = parts[1], int(parts[2])
        key = _KEYS.get(scalar)
    else:
        scalar = name
    if key is None and (numbers := _CODE.fullmatch(scalar)):
        key = int(numbers[1]), int(numbers[2])
    if key is None or not _fitting(*key, lanes) or name_of(*key, lanes) != name:
        return None
    return *key, lanes, False


def _is_of_ml_dtypes(name: str) -> bool:
    """Return whether ml_dtypes may have a dtype of one lane that NumPy lacks."""
    code, bits = _KEYS.get(name, (0, 8))
    return name == "complex32" or (name != "bool" and (bits < 8 or code not in _KINDS.values()))


def of_numpy(dtype: np.dtype[Any]) -> Element | None:
    """Return the dtype of a number in native byte order, or None."""
    if not dtype.isnative or dtype.type in _PADDED_FLOATS:
        return None
    key = _KEYS.get(dtype.name)
    return None if key is None else (*key, 1, key[1] < 8)


def _to_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        made: np.dtype[Any] = np.dtype(dtype)
    except SyntaxError:  # of "i4,,", which NumPy gives to Python's parser
        raise TypeError(f"the data type {shown(dtype)}") from None
    return made


def _read_numpy(dtype: np.dtype[Any]) -> Element:
    found = of_numpy(dtype)
    if found is None:
        expected = "a bool or a number in native byte order"
        remedy = "convert the array or reinterpret its memory"
        refuse(TypeError, "dtype", expected, shown(dtype), remedy)
    return found


def read_dtype(dtype: Any) -> Element:
    """Read a name of DLPack's, a tuple (code, bits, lanes), or what NumPy takes for a dtype.

    Elements of a dtype that is given by name are packed. ``"float128"`` has 128 bits, unlike
    NumPy's padded float of 80. A dtype that DLPack lacks is a TypeError.
    """
    if isinstance(dtype, str) and (named := _named(dtype)):
        return named
    numbers = isinstance(dtype, tuple) and [type(part) for part in dtype] == [int] * 3
    if numbers and _fitting(*dtype):
        return *dtype, False
    try:
        found = _to_dtype(dtype)
    except (TypeError, ValueError):
        remedy = "pass for example numpy.float32 or 'bfloat16'"
        refuse(TypeError, "dtype", "one of NumPy's or DLPack's dtypes", shown(dtype), remedy)
    code, bits, lanes, padded = _read_numpy(found)
    return code, bits, lanes, padded and not isinstance(dtype, str)


def read_typestr(typestr: str) -> Element:
    return _read_numpy(_to_dtype(typestr))


#: The dtypes that are read without a call of Python.
COMMON: dict[Any, Element] = {
    key: read_dtype(name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "float32", "float64", "complex64", "complex128", "bool")
    for key in (name, np.dtype(name), np.dtype(name).type)
}  # fmt: skip


def _register_ml_dtypes() -> bool:
    """Import ml_dtypes, if installed, so that NumPy knows bfloat16, float8_e5m2 and so on."""
    try:
        importlib.import_module("ml_dtypes")
    except ImportError:
        return False
    return True


@functools.lru_cache(maxsize=256)
def to_numpy(code: int, bits: int, lanes: int, padded: bool) -> np.dtype[Any] | str:
    """Return the dtype of NumPy or ml_dtypes with the same layout, or DLPack's name."""
    name = name_of(code, bits, lanes)
    if _is_of_ml_dtypes(name):  # of one lane
        _register_ml_dtypes()
    try:
        found = np.dtype(name)
    except TypeError:
        return name
    return found if of_numpy(found) == (code, bits, 1, padded and bits < 8) else name


def to_typestr(
    code: int, bits: int, lanes: int, field: str = "__sycl_usm_array_interface__"
) -> str:
    """Return the type string of an array interface; if there is none, the interface is missing."""
    found = to_numpy(code, bits, lanes, False)
    if isinstance(found, str) or _KINDS.get(found.kind) != code:
        expected, remedy = "a dtype that has a type string", "exchange the array through DLPack"
        refuse(AttributeError, field, expected, name_of(code, bits, lanes), remedy)
    return found.str


def empty_numpy(tensor: DLPackTensor) -> tuple[Any, int]:
    """Return a NumPy array with room for a tensor's elements, and its address."""
    dtype = tensor.dtype
    if isinstance(dtype, str):
        expected, remedy = "one that NumPy or ml_dtypes has", "take the bytes"
        if _is_of_ml_dtypes(dtype):
            if not _register_ml_dtypes():
                remedy = f"install ml_dtypes, or {remedy}"
            elif _KEYS[dtype][1] < 8:
                expected = "one whose elements have a byte each"
        remedy += " with __dlpack__(dl_device=(1, 0))"
        raise ConversionError("dtype_unsupported", "dtype", expected, dtype, remedy)
    values = np.empty(tensor.shape, dtype)
    return values, values.ctypes.data


def is_exported_by_numpy(x: Any) -> bool:
    """Return whether NumPy itself exports an array: a class may export others than it has."""
    return isinstance(x, np.ndarray) and type(x).__dlpack__ is np.ndarray.__dlpack__


def bits_of_ml_array(x: Any) -> tuple[Element | None, Any]:
    """Return dtype and bits of a NumPy array of ml_dtypes; no dtype of any other array.

    NumPy itself exports the bits, so that a tensor of them may get the dtype.
    """
    if not is_exported_by_numpy(x) or x.dtype.type.__module__ != "ml_dtypes":
        return None, x
    if not x.dtype.isnative:
        expected = "a number in native byte order"
        remedy = "convert the array, or reinterpret its memory"
        raise ConversionError("dtype_unsupported", "dtype", expected, shown(x.dtype), remedy)
    return of_numpy(x.dtype), np.asarray(x).view(f"u{x.dtype.itemsize}")
