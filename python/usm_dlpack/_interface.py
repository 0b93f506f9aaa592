# SPDX-License-Identifier: Apache-2.0
"""The view of memory that the arguments of `to_dlpack_tensor` describe."""

import contextlib
import math
import operator
from dataclasses import dataclass
from typing import Any

from usm_dlpack import _core, _dtypes
from usm_dlpack._arguments import check_range, filtered, integer, integers, refuse
from usm_dlpack._dtypes import Element
from usm_dlpack._errors import shown, type_name

_NAME = "__sycl_usm_array_interface__"
_ADDRESSES = range(2**64)
# The attributes with an array's memory: of dpctl.tensor and dpnp.tensor, like NumPy's, of dpnp.
_NAMES_OF_MEMORY = ("usm_data", "base", "data")
_LONGEST_CHAIN = 64


@dataclass
class _Array:
    data: int  # the address that it names
    first: int  # the address of the first element
    shape: list[int]
    strides: list[int] | None  # in elements
    element: Element
    readonly: bool
    begin: int  # of the bytes from the lowest to the highest element
    end: int
    syclobj: Any = None  # None of a DLPackTensor

    def is_compact(self) -> bool:
        """Return whether the elements are in C order without gaps."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides or ()), strict=False):
            if extent != 1 and stride != expected:
                return 0 in self.shape
            expected *= extent
        return True


def _bits_of(element: Element) -> int:
    _, bits, lanes, padded = element
    return (max(bits, 8) if padded else bits) * lanes


def _is_dpctl_memory(obj: object) -> bool:
    from dpctl import memory

    kinds = (memory.MemoryUSMDevice, memory.MemoryUSMHost, memory.MemoryUSMShared)
    return isinstance(obj, kinds)


def _read_tensor(tensor: _core.DLPackTensor) -> _Array:
    element, lowest, nbytes = _core.parts_of(tensor)
    return _Array(
        tensor.data, tensor.data, list(tensor.shape), list(tensor.strides), element,
        tensor.readonly, lowest, lowest + nbytes,
    )  # fmt: skip


def _read_fields(interface: dict[str, Any]) -> _Array:
    version, is_known = interface["version"], False
    with contextlib.suppress(ValueError):  # an array has no truth value
        is_known = bool(version == 1)
    if not is_known:
        raise ValueError(f"the version {shown(version)}")
    try:
        address, readonly = interface["data"]
        data, readonly = operator.index(address), bool(readonly)
    except (TypeError, ValueError):
        raise ValueError(f"the data {shown(interface['data'])}") from None
    shape = integers("shape", interface["shape"])
    strides = interface.get("strides")
    strides = None if strides is None else integers("strides", strides)
    typestr, offset = interface["typestr"], interface.get("offset", 0)
    try:
        elements = operator.index(offset)
    except TypeError:
        raise ValueError(f"the offset {shown(offset)}") from None
    syclobj = interface["syclobj"]
    if data not in _ADDRESSES:
        raise ValueError(f"the address {shown(address)}")
    if not isinstance(typestr, str):  # NumPy reads None as float64
        raise ValueError(f"the typestr {shown(typestr)}")
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"{len(strides)} strides for {len(shape)} dimensions")
    element = _dtypes.read_typestr(typestr)
    itemsize = _bits_of(element) // 8
    first = data + elements * itemsize
    if first not in _ADDRESSES:
        raise ValueError(f"the offset {shown(offset)}, which leads to no address")
    low, count = 0, math.prod(shape)
    if count and strides is not None:
        reach = [(extent - 1) * step for extent, step in zip(shape, strides, strict=True)]
        low, count = sum(min(part, 0) for part in reach), 1 + sum(map(abs, reach))
    begin = first + low * itemsize
    end = begin + count * itemsize
    return _Array(data, first, shape, strides, element, readonly, begin, end, syclobj)


def _read(obj: Any) -> _Array:
    if isinstance(obj, _core.DLPackTensor):
        return _read_tensor(obj)
    try:
        interface = getattr(obj, _NAME)
    except AttributeError as error:
        if hasattr(type(obj), _NAME):  # the error says why the object has none
            raise TypeError(str(error)) from error
        interface = None
    if not isinstance(interface, dict):
        found = f"one of type {type_name(obj)}"
        remedy = "pass dpctl.memory or a dpnp array, or use from_dlpack"
        refuse(TypeError, "obj", f"an object with {_NAME}", found, remedy)
    try:
        made = _read_fields(interface)
    except (KeyError, TypeError, ValueError) as error:
        found = f"none of {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{_NAME}: expected data, shape, strides, typestr, version 1 and syclobj as dpctl "
            f"documents them, found {found}; correct the object that offers it"
        ) from error
    # dpctl.memory reports writable memory as read-only.
    made.readonly = made.readonly and not _is_dpctl_memory(obj)
    return made


def _memory_of(obj: Any, first: int) -> tuple[Any, _Array] | None:
    """Return the memory that an array is a part of, if its first element is in it."""
    for name in _NAMES_OF_MEMORY:
        with contextlib.suppress(Exception):
            memory = getattr(obj, name)
            found = _read(memory)
            check_range("shape", found.shape, 0)
            if found.begin <= first <= found.end:
                return memory, found
    return None


def _bytes_behind(obj: Any, array: _Array) -> tuple[int, int]:
    """Return begin and end of an object's bytes, or of the memory that it is a part of."""
    for _ in range(_LONGEST_CHAIN):
        if isinstance(obj, _core.DLPackTensor) or _is_dpctl_memory(obj):
            break
        if (found := _memory_of(obj, array.first)) is None:
            break
        obj, array = found
    return max(array.begin, 0), min(array.end, 2**64 - 1)


def resolve_syclobj(syclobj: Any) -> Any:
    """Return the queue or context, or its capsule, that a `syclobj` carries or names."""
    import dpctl

    if isinstance(syclobj, str):
        _core.check_process()
        if (device := filtered(syclobj)) is None:
            remedy = "correct the object that offers it"
            refuse(
                ValueError,
                "syclobj",
                "the filter string of a device that exists",
                shown(syclobj),
                remedy,
            )
        return dpctl.SyclContext(device)
    if isinstance(syclobj, dpctl.SyclQueue | dpctl.SyclContext | type):
        return syclobj
    get_capsule = getattr(syclobj, "_get_capsule", None)
    return syclobj if get_capsule is None else get_capsule()


def _reinterpreted_shape(array: _Array, bits: int, byte_offset: int) -> list[int]:
    """Return the one-dimensional shape of all bytes after `byte_offset`."""
    if not array.is_compact():
        remedy = "pass shape and strides of the elements that are meant"
        refuse(ValueError, "shape", "a shape, since the array is not compact", "None", remedy)
    nbytes = (math.prod(array.shape) * _bits_of(array.element) + 7) // 8
    behind = nbytes - byte_offset
    if behind < 0:
        expected = f"at most {nbytes}, the bytes of the array"
        refuse(ValueError, "byte_offset", expected, shown(byte_offset), "correct byte_offset")
    if behind * 8 % bits:
        expected = f"a whole number of elements of {bits} bits"
        refuse(ValueError, "shape", expected, f"{behind} bytes behind byte_offset", "pass shape")
    return [behind * 8 // bits]


def read_view(
    obj: Any, shape: Any, dtype: Any, strides: Any, byte_offset: Any
) -> tuple[int, int, int, int, list[int], list[int] | None, Element, bool, Any]:
    """Read the array that an object describes, as the arguments change it.

    Returns the address that the object names; begin and end of its bytes; the first element of the
    view, its shape, strides, and dtype; whether it is read-only; and what names the context, or
    None of a DLPackTensor.
    """
    array = _read(obj)
    check_range("shape", array.shape, 0)
    offset = integer("byte_offset", byte_offset)
    element = array.element if dtype is None else _dtypes.read_dtype(dtype)
    if strides is not None and shape is None and (dtype is not None or offset):
        refuse(ValueError, "shape", "a shape for these strides", "None", "pass both")
    extents, steps = array.shape, None
    if shape is not None:
        extents = integers("shape", shape)
    elif offset or _bits_of(element) != _bits_of(array.element):
        extents = _reinterpreted_shape(array, _bits_of(element), offset)
    else:
        steps = array.strides
    if strides is not None:
        steps = integers("strides", strides)
    if steps is not None and len(steps) != len(extents):
        expected = f"{len(extents)}, one for each dimension"
        refuse(ValueError, "strides", expected, len(steps), "correct shape or strides")
    check_range("shape", extents, 0)
    check_range("strides", steps or (), -(2**63))
    first = array.first + offset
    if first not in _ADDRESSES:
        expected = "an offset within the address space"
        refuse(ValueError, "byte_offset", expected, shown(offset), "correct byte_offset")
    begin, end = _bytes_behind(obj, array)
    place = None if isinstance(obj, _core.DLPackTensor) else resolve_syclobj(array.syclobj)
    return array.data, begin, end, first, extents, steps, element, array.readonly, place
