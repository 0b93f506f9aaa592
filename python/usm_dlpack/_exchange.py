# SPDX-License-Identifier: Apache-2.0
"""How Python objects offer memory: dpctl's array interface, and ``__dlpack__``, old and new."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from usm_dlpack import _core, _dtypes
from usm_dlpack._errors import ConversionError, shown, type_name

if TYPE_CHECKING:
    import dpctl

    from usm_dlpack._core import DLPackTensor, UsmAllocation

# The newest DLPack that this package knows.
_MAX_VERSION = (1, 3)
_KDL_ONEAPI = 14
_USM_TYPES = ("host", "device", "shared")


def _type_name(x: object) -> str:
    return type_name(x)


def _integer(field: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{field}: expected an int, found {shown(value)}; pass one") from None


def _integers(field: str, values: object) -> list[int]:
    """Return a sequence of integers, or one integer as a sequence of one, as NumPy does."""
    try:
        if isinstance(values, Iterable):
            return [operator.index(value) for value in values]
        return [operator.index(values)]  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{field}: expected a sequence of integers, found {shown(values)}; pass a tuple of int"
        ) from None


def _fits(field: str, values: Sequence[int], low: int) -> None:
    for r, value in enumerate(values):
        if not low <= value < 2**63:
            raise ValueError(
                f"{field}[{r}]: expected from {low} to {2**63 - 1} elements, found {value}; "
                "correct the value"
            )


class _Interface:
    """What ``__sycl_usm_array_interface__`` says, its fields checked."""

    readonly: bool

    def __init__(self, obj: object) -> None:
        try:
            interface = getattr(obj, "__sycl_usm_array_interface__", None)
            if interface is None and hasattr(type(obj), "__sycl_usm_array_interface__"):
                obj.__sycl_usm_array_interface__  # type: ignore[attr-defined] # noqa: B018
        except AttributeError as error:  # the object says why it has none
            raise TypeError(str(error)) from error
        if not isinstance(interface, dict):
            raise TypeError(
                "obj: expected an object with __sycl_usm_array_interface__, "
                f"found one of type {_type_name(obj)}; pass dpctl.memory or a dpnp array, "
                "or use from_dlpack"
            )
        try:
            self._read(interface)
        except (KeyError, TypeError, ValueError) as error:
            found = f"none of {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(
                "__sycl_usm_array_interface__: expected data, shape, strides, typestr and syclobj "
                f"as dpctl documents them, found {found}; correct the object that offers it"
            ) from error
        # dpctl.memory says True of memory that everybody may write.
        self.readonly = self.readonly and not _is_dpctl_memory(obj)

    def _read(self, interface: dict[str, Any]) -> None:
        data, flag = interface["data"]
        self.data = operator.index(data)
        self.readonly = bool(flag)
        self.shape = _integers("shape", interface["shape"])
        strides = interface.get("strides")
        self.strides = None if strides is None else _integers("strides", strides)
        typestr = interface["typestr"]
        self.offset = operator.index(interface.get("offset", 0))
        self.place: Any = interface["syclobj"]
        if not 0 <= self.data < 2**64:
            raise ValueError(f"the address {self.data}")
        if not isinstance(typestr, str):  # NumPy reads None as float64
            raise TypeError(f"the typestr {shown(typestr)}")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(f"{len(self.strides)} strides for {len(self.shape)} dimensions")
        self.dtype = _dtypes.to_dlpack_dtype(np.dtype(typestr))
        self.itemsize = np.dtype(typestr).itemsize

    def is_compact(self) -> bool:
        """Return whether the elements stand in C order without gaps."""
        if self.strides is None or 0 in self.shape:
            return True
        step = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True


def _is_dpctl_memory(obj: object) -> bool:
    from dpctl import memory

    kinds = (memory.MemoryUSMDevice, memory.MemoryUSMHost, memory.MemoryUSMShared)
    return isinstance(obj, kinds)


def _place_of(syclobj: Any) -> Any:
    """Return what a context is taken from; a filter string names a device's default context."""
    if not isinstance(syclobj, str):
        return syclobj
    import dpctl

    try:
        return dpctl.SyclContext(dpctl.SyclDevice(syclobj))
    except (dpctl.SyclDeviceCreationError, ValueError) as error:
        raise ValueError(
            f"syclobj: expected the filter string of a device, found {shown(syclobj)}; "
            "correct the object that offers it"
        ) from error


def _reinterpreted_shape(base: _Interface, bits: int, byte_offset: int) -> list[int]:
    """Return the shape of all bytes behind ``byte_offset`` in another dtype: one dimension."""
    nbytes = math.prod(base.shape) * base.itemsize - byte_offset
    if not base.is_compact():
        raise ValueError(
            "shape: expected one, since the array is not compact, found None; "
            "pass shape and strides of the elements that are meant"
        )
    if nbytes < 0:
        raise ValueError(
            f"byte_offset: expected at most {nbytes + byte_offset}, the bytes of the array, "
            f"found {byte_offset}; correct byte_offset"
        )
    if nbytes * 8 % bits != 0:
        raise ValueError(
            f"shape: expected a whole number of elements of {bits} bits, found {nbytes} bytes "
            "behind byte_offset; pass shape"
        )
    return [nbytes * 8 // bits]


def to_dlpack_tensor(
    obj: Any,
    /,
    *,
    shape: Sequence[int] | int | None = None,
    dtype: Any = None,
    strides: Sequence[int] | None = None,
    byte_offset: int = 0,
    queue: dpctl.SyclQueue | None = None,
) -> DLPackTensor:
    """Describe USM that a Python object owns, prove it, and keep the object alive.

    Without a keyword the tensor is the array that `obj` describes. With ``shape``, ``dtype``,
    ``strides`` or ``byte_offset`` its memory is read anew, from `obj`'s first element on; every
    byte of the result must lie in the allocation.

    Parameters
    ----------
    obj
        An object with ``__sycl_usm_array_interface__``: dpctl.memory, a dpnp array.
    shape
        Extents, in elements. If ``dtype`` or ``byte_offset`` is given without it, one dimension
        that takes all the bytes of `obj` behind ``byte_offset``.
    dtype
        A NumPy dtype, a name of DLPack's ("bfloat16", "float8_e4m3fn"), or a tuple (code, bits,
        lanes); None is the dtype of `obj`, which is uint8 for dpctl.memory.
    strides
        Distances between neighbours, in elements, of either sign or zero; None is compact
        row-major.
    byte_offset
        Bytes from `obj`'s first element to the tensor's first.
    queue
        A queue made from the memory's root device alone, which it must know.

    Returns
    -------
    :
        The tensor. It and every capsule made from it keep `obj` alive.

    Raises
    ------
    UsmBindingError
        If the memory is not USM of the default context of its platform.
    ConversionError
        If another rule is broken; its ``code`` says which.
    TypeError, ValueError
        If an argument is not of its kind or contradicts another.

    Notes
    -----
    Nothing is synchronised: work on the memory must have finished before it is used elsewhere.

    Examples
    --------
    >>> import dpctl.memory, usm_dlpack
    >>> memory = dpctl.memory.MemoryUSMDevice(48)
    >>> tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
    >>> tensor.shape, tensor.strides, tensor.usm_type
    ((3, 4), (4, 1), 'device')
    >>> usm_dlpack.to_dlpack_tensor(memory, shape=(4, 4), dtype="float32")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    usm_dlpack.ConversionError: shape: expected a view within the 48 bytes of its allocation, ...
    """
    base = _Interface(obj)
    byte_offset = _integer("byte_offset", byte_offset)
    code, bits, lanes = base.dtype if dtype is None else _dtypes.to_dlpack_dtype(dtype)
    renewed = shape is not None or dtype is not None or byte_offset != 0
    if strides is not None and shape is None and renewed:
        raise ValueError("shape: expected one, since strides are given, found None; pass both")
    if shape is not None:
        extents = _integers("shape", shape)
    elif renewed and (bits * lanes != base.itemsize * 8 or byte_offset != 0):
        extents = _reinterpreted_shape(base, bits * lanes, byte_offset)
    else:
        extents, renewed = base.shape, False
    steps = base.strides if not renewed else None
    if strides is not None:
        steps = _integers("strides", strides)
    if steps is not None and len(steps) != len(extents):
        raise ValueError(
            f"strides: expected {len(extents)}, one for each dimension, found {len(steps)}; "
            "correct shape or strides"
        )
    _fits("shape", extents, 0)
    _fits("strides", steps or (), -(2**63))
    start = base.data + base.offset * base.itemsize + byte_offset
    if not 0 <= start < 2**64:
        raise ValueError(
            f"byte_offset: expected an address after it, found {start}; correct byte_offset"
        )
    return _core.from_memory(
        obj,
        base.data,
        start,
        extents,
        steps,
        code,
        bits,
        lanes,
        base.readonly,
        _place_of(base.place),
        queue,
    )


# For each type, its __dlpack__ and the keywords that this takes; weak, so that types can go.
_Known = tuple[Callable[[], Any], frozenset[str]]
_accepts: weakref.WeakKeyDictionary[type, _Known] = weakref.WeakKeyDictionary()
_KEYWORDS = frozenset({"stream", "max_version", "dl_device", "copy"})


def _read_signature(method: Callable[..., Any]) -> frozenset[str]:
    try:
        parameters = inspect.signature(method).parameters.values()
    except (ValueError, TypeError):
        # Compiled code without a signature: its docstring names the keywords, or nothing does.
        text = getattr(method, "__doc__", None) or ""
        named = frozenset(word for word in _KEYWORDS if word in text)
        return named if "(" in text else _KEYWORDS
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return _KEYWORDS
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        frozenset(parameter.name for parameter in parameters if parameter.kind in by_name)
        & _KEYWORDS
    )


def _keywords_of(x: object) -> frozenset[str]:
    """Return the keywords that ``x.__dlpack__`` takes: its signature says how old it is."""
    method = type(x).__dlpack__  # type: ignore[attr-defined]
    try:
        known = _accepts.get(type(x))
    except TypeError:  # a metaclass without a hash
        return _read_signature(method)
    if known is None or known[0]() is not method:
        try:
            reference: Callable[[], Any] = weakref.ref(method)
        except TypeError:  # methods of compiled types, which live as long as these
            reference = functools.partial(_identity, method)
        known = reference, _read_signature(method)
        _accepts[type(x)] = known
    return known[1]


def _identity(value: Any) -> Any:
    return value


def _device_of(x: object) -> tuple[int, int] | None:
    """Return what an array says of its device, or None if it says nothing."""
    ask = getattr(x, "__dlpack_device__", None)
    if ask is None:
        return None
    answer = ask()
    try:
        device_type, number = (operator.index(part) for part in answer)
        in_range = all(-(2**31) <= part < 2**31 for part in (device_type, number))
    except (TypeError, ValueError):
        in_range = False
    if not in_range:
        raise ConversionError(
            "device_type_unsupported",
            "__dlpack_device__",
            "a tuple (device_type, device_id)",
            shown(answer),
            "correct the producer",
        )
    return device_type, number


def _check_device_type(x: object) -> None:
    """Refuse an array that says itself that it is elsewhere, before it is exported."""
    own = _device_of(x)
    if own is not None:
        _core.check_device_type(own[0])


def _capsule_of(x: Any, copy: bool | None = None) -> Any:
    """Ask a producer for a capsule, with the keywords that it takes."""
    if not hasattr(type(x), "__dlpack__"):
        raise TypeError(
            f"x: expected an array with __dlpack__, found an object of type {_type_name(x)}; "
            "pass the array itself, or use to_dlpack_tensor for memory"
        )
    _check_device_type(x)
    taken = _keywords_of(x)
    keywords: dict[str, Any] = {"max_version": _MAX_VERSION} if "max_version" in taken else {}
    if copy is not None and "copy" in taken:
        keywords["copy"] = copy
    elif copy:
        raise ConversionError(
            "request_unsupported",
            "copy",
            "None or False, since the producer takes no such keyword",
            "True",
            "copy the array before it is exchanged",
        )
    return x.__dlpack__(**keywords)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> DLPackTensor:
    """Take an array from another library, proved before its memory is touched.

    Parameters
    ----------
    x
        An array with ``__dlpack__`` whose memory is USM; its keywords are those of its signature.
    device
        None, or the array's own device as ``(14, device_id)``.
    copy
        True asks the producer for a copy, False forbids one, None leaves it to the producer.

    Returns
    -------
    :
        The tensor. It owns what the producer handed over, and gives it back when it goes.

    Raises
    ------
    UsmBindingError
        If the memory is not USM of the device that the producer named.
    ConversionError
        If another rule is broken; the producer's capsule is then left to its producer.
    TypeError
        If `x` has no ``__dlpack__``.

    Notes
    -----
    The producer is not asked to synchronise: its work on the memory must have finished.

    Examples
    --------
    >>> import dpctl.memory, usm_dlpack
    >>> tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMShared(16), dtype="int32")
    >>> usm_dlpack.from_dlpack(tensor).data == tensor.data
    True
    >>> import numpy
    >>> usm_dlpack.from_dlpack(numpy.zeros(3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    usm_dlpack.ConversionError: device.device_type: expected kDLOneAPI (14), found kDLCPU (1); ...
    """
    if device is not None:
        _check_own_device(x, device)
    return _core.import_capsule(_capsule_of(x, copy), copy is not False)


def _check_own_device(x: Any, device: Any) -> None:
    own = _device_of(x)
    if device != own:
        raise ConversionError(
            "request_unsupported",
            "device",
            f"None or the array's own device {own}",
            shown(device),
            "copy the array to the other device first",
        )


def _names(field: str, values: Sequence[str] | str) -> list[str]:
    names = [values] if isinstance(values, str) else values
    if isinstance(names, Iterable):
        some = list(names)
        if all(isinstance(name, str) for name in some):
            return some
    raise TypeError(f"{field}: expected a sequence of str, found {shown(values)}; pass names")


def _flag(field: str, value: object) -> None:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{field}: expected None, True or False, found {shown(value)}; pass one")


def _int32(field: str, value: object) -> int:
    number = _integer(field, value)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{field}: expected an int32_t, found {number}; correct the value")
    return number


def _device_id_of(device: Any) -> int:
    """Return the DLPack id that a device, its filter string or ``(14, device_id)`` stands for."""
    if isinstance(device, tuple):
        if len(device) != 2 or device[0] != _KDL_ONEAPI:
            raise ValueError(
                f"device: expected (14, device_id), found {shown(device)}; "
                "pass the pair that __dlpack_device__ gives"
            )
        return _int32("device", device[1])
    if isinstance(device, str):
        import dpctl

        try:
            device = dpctl.SyclDevice(device)
        except (dpctl.SyclDeviceCreationError, ValueError):
            raise ValueError(
                f"device: expected the filter string of a device, found {shown(device)}; "
                "`python -m usm_dlpack devices` shows them"
            ) from None
    return device_id(device)


def validate(
    x: Any,
    /,
    *,
    usm_types: Sequence[str] | str = _USM_TYPES,
    backends: Sequence[str] | str | None = None,
    dtype: Any = None,
    ndim: int | None = None,
    readonly: bool | None = None,
    overlapping: bool | None = None,
    device: dpctl.SyclDevice | tuple[int, int] | str | None = None,
) -> UsmAllocation:
    """Prove that an array is USM that this process can use as it says, and say how it was proved.

    Parameters
    ----------
    x
        An array with ``__dlpack__``, or a DLPack capsule, which is not consumed.
    usm_types
        The USM kinds that are accepted: "host", "device", "shared".
    backends
        The backends that are accepted, named as in ``ONEAPI_DEVICE_SELECTOR`` ("opencl",
        "level_zero", "cuda", "hip"); None accepts all.
    dtype
        The dtype that the array must have, as for `to_dlpack_tensor`; None takes any.
    ndim
        The number of dimensions that it must have; None takes any.
    readonly
        False refuses memory that must not be written; None and True take both.
    overlapping
        False refuses strides that do not prove that elements do not overlap; None and True take
        both.
    device
        The root device that the array must name: a device or sub-device of it, its filter string,
        or ``(14, device_id)``; None takes any.

    Returns
    -------
    :
        What was proved. It keeps nothing alive.

    Raises
    ------
    UsmBindingError
        If the memory is not USM of the device that `x` names.
    ConversionError
        If another rule is broken; its ``code`` says which.
    TypeError, ValueError
        If an argument is not of its kind.

    Examples
    --------
    >>> import dpctl.memory, usm_dlpack
    >>> tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMHost(16))
    >>> usm_dlpack.validate(tensor).bounds
    'allocation'
    >>> usm_dlpack.validate(tensor, usm_types="device")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    usm_dlpack.ConversionError: data: expected device USM, found host USM; ...
    """
    kinds = _names("usm_types", usm_types)
    accepted = None if backends is None else _names("backends", backends)
    _flag("readonly", readonly)
    _flag("overlapping", overlapping)
    wanted = None if dtype is None else _dtypes.to_dlpack_dtype(dtype)
    capsule = x if type(x).__name__ == "PyCapsule" else _capsule_of(x)
    return _core.validate_capsule(
        capsule,
        kinds,
        accepted,
        writable=readonly is False,
        unique=overlapping is False,
        dtype=wanted,
        ndim=None if ndim is None else _int32("ndim", ndim),
        device_id=None if device is None else _device_id_of(device),
    )


def device_id(device: dpctl.SyclDevice, /) -> int:
    """Return DLPack's id of a device: the position of its root among the process's root devices.

    Parameters
    ----------
    device
        A device; a sub-device has the id of its root.

    Raises
    ------
    UsmBindingError
        If the device's root is none of this process's root devices.
    TypeError
        If it is no ``dpctl.SyclDevice``.

    Examples
    --------
    >>> import dpctl, usm_dlpack
    >>> usm_dlpack.device_id(dpctl.get_devices()[0])
    0
    """
    return _core.device_id(device)


def root_device(device_id: int, /) -> dpctl.SyclDevice:
    """Return the root device that an id names in this process.

    Raises
    ------
    ConversionError
        If no root device has the id, or the runtime cannot use the one that has it.

    Examples
    --------
    >>> import usm_dlpack
    >>> usm_dlpack.device_id(usm_dlpack.root_device(0))
    0
    >>> usm_dlpack.root_device(-1).name  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    usm_dlpack.ConversionError: device.device_id: expected from 0 to ...
    """
    number = _integer("device_id", device_id)
    if not -(2**31) <= number < 2**31:
        raise ConversionError(
            "device_id_out_of_range",
            "device.device_id",
            "an int32_t",
            str(number),
            "pass an id of usm_dlpack.device_id",
        )
    return _core.root_device(number)
