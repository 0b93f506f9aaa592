# SPDX-License-Identifier: Apache-2.0
"""How Python objects offer memory: dpctl's array interface, and ``__dlpack__``, old and new."""

from __future__ import annotations

import enum
import inspect
import math
import operator
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np

from usm_dlpack import _core, _dtypes
from usm_dlpack._errors import ConversionError, shown, type_name

if TYPE_CHECKING:
    import dpctl

    from usm_dlpack._core import DLPackTensor, UsmAllocation

_READ_ONLY = 1
_SUBBYTE_PADDED = 4
_KDL_CPU = 1
_KDL_ONEAPI = 14
_USM_TYPES = ("host", "device", "shared")


def _type_name(x: object) -> str:
    return type_name(x)


def _integer(field: str, value: object) -> int:
    try:
        return _index(value)
    except TypeError:
        raise TypeError(f"{field}: expected an int, found {shown(value)}; pass one") from None


def _index(value: Any) -> int:
    """Return an integer, or the one of a member of an enumeration.

    The array API names device types by members, which need not be integers themselves.
    """
    return operator.index(value.value if issubclass(type(value), enum.Enum) else value)


def _device_type_in(device: tuple[Any, ...]) -> int | None:
    """Return the first of the two integers that name a device; None if it is none."""
    try:
        return _index(device[0]) if len(device) == 2 else None
    except TypeError:
        return None


def _integers(field: str, values: object) -> list[int]:
    """Return a sequence of integers, or one integer as a sequence of one, as NumPy does."""
    try:
        # Also an empty one.
        if isinstance(values, str | bytes | bytearray | Mapping | AbstractSet):
            raise TypeError
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
                f"{field}[{r}]: expected from {low} to {2**63 - 1} elements, "
                f"found {shown(value)}; correct the value"
            )


class _Interface:
    """What ``__sycl_usm_array_interface__`` says, its fields checked."""

    readonly: bool
    padded = False
    strides: list[int] | None
    place: Any
    span: tuple[int, int]  # where the bytes of the elements begin and end

    def __init__(self, obj: object) -> None:
        if isinstance(obj, _core.DLPackTensor):
            self._read_tensor(obj)
            return
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
                "__sycl_usm_array_interface__: expected data, shape, strides, typestr, version 1 "
                f"and syclobj as dpctl documents them, found {found}; "
                "correct the object that offers it"
            ) from error
        # dpctl.memory says True of memory that everybody may write.
        self.readonly = self.readonly and not _is_dpctl_memory(obj)

    def _read_tensor(self, tensor: DLPackTensor) -> None:
        """Read what the interface says, and for dtypes for which it has no words."""
        self.data, self.dtype, flags, self.place, self.span = _core.parts_of(tensor)
        self.readonly = flags & _READ_ONLY != 0
        self.padded = flags & _SUBBYTE_PADDED != 0
        self.shape, self.strides = list(tensor.shape), list(tensor.strides)
        self.offset = 0
        _, bits, lanes = self.dtype
        self.bits = _dtypes.bits_of_element(bits, lanes, self.padded)
        self.itemsize = (self.bits + 7) // 8

    def _read(self, interface: dict[str, Any]) -> None:
        version = interface["version"]
        try:
            is_known = bool(version == 1)
        except ValueError:  # of a NumPy array
            is_known = False
        if not is_known:
            raise ValueError(f"the version {shown(version)}")
        data = interface["data"]
        try:
            address, flag = data
            self.data = operator.index(address)
            self.readonly = bool(flag)
        except (TypeError, ValueError):
            raise ValueError(f"the data {shown(data)}") from None
        self.shape = _integers("shape", interface["shape"])
        strides = interface.get("strides")
        self.strides = None if strides is None else _integers("strides", strides)
        typestr = interface["typestr"]
        offset = interface.get("offset", 0)
        try:
            self.offset = operator.index(offset)
        except TypeError:
            raise TypeError(f"the offset {shown(offset)}") from None
        self.place = interface["syclobj"]
        if not 0 <= self.data < 2**64:
            raise ValueError(f"the address {shown(self.data)}")
        if not isinstance(typestr, str):  # NumPy reads None as float64
            raise TypeError(f"the typestr {shown(typestr)}")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(f"{len(self.strides)} strides for {len(self.shape)} dimensions")
        dtype = _dtypes.to_numpy_dtype(typestr)
        self.dtype = _dtypes.to_dlpack_dtype(dtype)
        self.itemsize = dtype.itemsize
        self.bits = 8 * self.itemsize
        if not 0 <= self.data + self.offset * self.itemsize < 2**64:
            raise ValueError(f"the offset {shown(offset)}, which leads to no address")
        self.span = self._spanned()

    def _spanned(self) -> tuple[int, int]:
        low, count = 0, 0 if 0 in self.shape else 1
        if self.strides is None:
            count = math.prod(self.shape)
        elif count:
            reach = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
            low = sum(step for step in reach if step < 0)
            count += sum(map(abs, reach))
        begin = self.data + (self.offset + low) * self.itemsize
        return begin, begin + count * self.itemsize

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


def _filter_string(text: str) -> str:
    """Return the text itself of what dpctl reads up to the first zero character."""
    if "\0" in (plain := str.__str__(text)):
        raise ValueError
    return plain


def _place_of(syclobj: Any) -> Any:
    """Return what a context is taken from; a filter string names a device's default context."""
    import dpctl

    if not isinstance(syclobj, str):
        offers = not isinstance(syclobj, (dpctl.SyclQueue, dpctl.SyclContext, type))
        get_capsule = getattr(syclobj, "_get_capsule", None) if offers else None
        return syclobj if get_capsule is None else get_capsule()
    _core.check_process()
    try:
        return dpctl.SyclContext(dpctl.SyclDevice(_filter_string(syclobj)))
    except (dpctl.SyclDeviceCreationError, ValueError) as error:
        raise ValueError(
            f"syclobj: expected the filter string of a device, found {shown(syclobj)}; "
            "correct the object that offers it"
        ) from error


# Where arrays name the memory that they are a part of: those of dpctl.tensor and dpnp.tensor, those
# that are made like NumPy's, and those of dpnp.
_NAMES_OF_MEMORY = ("usm_data", "base", "data")
_LONGEST_CHAIN = 64


def _memory_of(obj: object, first: int) -> tuple[object, _Interface] | None:
    """Return the memory that an array says it is a part of, if its first element is there."""
    for name in _NAMES_OF_MEMORY:
        try:
            memory = getattr(obj, name, None)
            if hasattr(memory, "__sycl_usm_array_interface__"):
                interface = _Interface(memory)
                if interface.span[0] <= first <= interface.span[1]:
                    return memory, interface
        except Exception:
            continue
    return None


def _bytes_behind(obj: object, base: _Interface) -> tuple[int, int]:
    """Return where the bytes behind an object begin and end: its own, or its memory's."""
    for _ in range(_LONGEST_CHAIN):  # of views of views
        if isinstance(obj, _core.DLPackTensor) or _is_dpctl_memory(obj):
            break
        if (memory := _memory_of(obj, base.data + base.offset * base.itemsize)) is None:
            break
        obj, base = memory
    return max(base.span[0], 0), min(base.span[1], 2**64 - 1)


def _reinterpreted_shape(base: _Interface, bits: int, byte_offset: int) -> list[int]:
    """Return the shape of all bytes behind ``byte_offset`` in another dtype: one dimension."""
    nbytes = (math.prod(base.shape) * base.bits + 7) // 8 - byte_offset
    if not base.is_compact():
        raise ValueError(
            "shape: expected one, since the array is not compact, found None; "
            "pass shape and strides of the elements that are meant"
        )
    if nbytes < 0:
        raise ValueError(
            f"byte_offset: expected at most {nbytes + byte_offset}, the bytes of the array, "
            f"found {shown(byte_offset)}; correct byte_offset"
        )
    if nbytes * 8 % bits != 0:
        raise ValueError(
            f"shape: expected a whole number of elements of {bits} bits, "
            f"found {shown(nbytes)} bytes behind byte_offset; pass shape"
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
    ``strides`` or ``byte_offset`` its memory is read anew, from `obj`'s first element on. Every
    byte of the result must lie within the bytes of `obj`, whatever the allocation holds beyond
    them: those of dpctl.memory; of an array those of the memory that its ``usm_data``, ``base`` or
    ``data`` is, or else from its lowest to its highest element, as of a DLPackTensor. An empty
    tensor may begin at their end.

    Parameters
    ----------
    obj
        An object with ``__sycl_usm_array_interface__``: dpctl.memory, a dpnp array; or a
        DLPackTensor of any dtype.
    shape
        Extents, in elements. None keeps shape and strides of `obj`, also with a ``dtype`` of the
        same width; with one of another width, or a ``byte_offset`` other than 0, it is one
        dimension that takes all the bytes of `obj`, which must then be compact, behind
        ``byte_offset``.
    dtype
        A NumPy dtype, a name of DLPack's ("bfloat16", "float8_e4m3fn", "float32x4"), as
        ``DLPackTensor.dtype`` gives it, or a tuple (code, bits, lanes); None is the dtype of `obj`,
        which is uint8 for dpctl.memory. The name "float128" is DLPack's of 128 bits, not NumPy's
        of 80. Elements of fewer than 8 bits are packed for a name or a tuple, and one to a byte for
        a type of ml_dtypes.
    strides
        Distances between neighbours, in elements, of either sign or zero; None is compact
        row-major.
    byte_offset
        Bytes from `obj`'s first element to the tensor's first.
    queue
        A queue made from the memory's root device alone: the one that works on it. None is the
        queue in the array interface of `obj`, if one is there.

    Returns
    -------
    :
        The tensor. It and every capsule made from it keep `obj` alive; if that is a DLPackTensor,
        what it keeps alive itself.

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
    Nothing is synchronised here. The queue becomes the tensor's ``sycl_queue``: exports and copies
    of the tensor are ordered behind its work, as ``__dlpack__`` says.

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
    usm_dlpack.ConversionError: shape: expected a view within the 48 bytes of the object, ...
    """
    base = _Interface(obj)
    _fits("shape", base.shape, 0)
    byte_offset = _integer("byte_offset", byte_offset)
    code, bits, lanes = base.dtype if dtype is None else _dtypes.to_dlpack_dtype(dtype)
    padded = base.padded if dtype is None else _dtypes.is_subbyte_padded(dtype)
    width = _dtypes.bits_of_element(bits, lanes, padded)
    renewed = shape is not None or dtype is not None or byte_offset != 0
    if strides is not None and shape is None and renewed:
        raise ValueError("shape: expected one, since strides are given, found None; pass both")
    if shape is not None:
        extents = _integers("shape", shape)
    elif renewed and (width != base.bits or byte_offset != 0):
        extents = _reinterpreted_shape(base, width, byte_offset)
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
            f"byte_offset: expected an address after it, found {shown(start)}; correct byte_offset"
        )
    flags = _READ_ONLY if base.readonly else 0
    if padded:
        flags |= _SUBBYTE_PADDED
    return _core.from_memory(
        obj,
        base.data,
        _bytes_behind(obj, base),
        start,
        extents,
        steps,
        code,
        bits,
        lanes,
        flags,
        _place_of(base.place),
        queue,
    )


_KEYWORDS = frozenset({"stream", "max_version", "dl_device", "copy"})
# The signature of compiled code is text, and Python's parser (that of 3.11) raises a SystemError
# where two threads parse at once. A collection of garbage may come here again.
_signatures = threading.RLock()


def _defines(kind: type, name: str) -> bool:
    """Return whether a type or one of its bases, and not its metaclass, has an attribute."""
    return any(name in base.__dict__ for base in kind.__mro__)


def _overrides_exchange_api(kind: type) -> bool:
    """Return whether a type has ``__dlpack__`` of a class below that of its C exchange API."""
    for base in kind.__mro__:
        if "__dlpack_c_exchange_api__" in base.__dict__:
            return False
        if "__dlpack__" in base.__dict__:
            return True
    return False


_SIGNATURE = re.compile(r"\s*(?:def )?(?:\w+\.)*__dlpack__\(")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
# A part of a type or of a default, in which commas separate no parameters.
_NESTED = re.compile(r"\([^][(){}]*\)|\[[^][(){}]*\]|\{[^][(){}]*\}")


def _keywords_in(line: str) -> frozenset[str] | None:
    """Return the keywords in the text of a signature of ``__dlpack__``; None if it is none.

    The text need not be Python. ``**kwargs`` there says nothing: pybind11 writes that of overloads.
    """
    head = _SIGNATURE.match(line)
    if head is None:
        return None
    inside, removed = _QUOTED.sub("", line[head.end() :]), 1
    while removed:
        inside, removed = _NESTED.subn("", inside)
    inside, end, _ = inside.partition(")")
    if not end or "**" in inside:
        return None
    by_name = inside.rpartition("/")[2].split(",")
    return _KEYWORDS & {re.split(r"[:=]", parameter)[0].strip() for parameter in by_name}


def _written_keywords(method: object) -> frozenset[str] | None:
    """Return what the text of a compiled method's signature says; of overloads, the one with most.

    nanobind keeps texts, pybind11 and Cython begin the docstring with one.
    """
    overloads = getattr(method, "__nb_signature__", None)
    kept = overloads if isinstance(overloads, tuple) else ()
    texts = [overload[0] for overload in kept if isinstance(overload, tuple) and overload]
    doc = getattr(method, "__doc__", None)
    if not texts and isinstance(doc, str):
        texts = [doc.strip().partition("\n")[0]]
    named = [_keywords_in(text) for text in texts if isinstance(text, str)]
    return max((known for known in named if known is not None), key=len, default=None)


def _read_signature(method: Callable[..., Any]) -> tuple[frozenset[str], bool]:
    """Return the keywords that ``__dlpack__`` takes, and whether that is known.

    Its signature says how old it is. A decorator has one of its own: what it does not pass on is
    not taken, and neither is what the decorated method does not take.
    """
    try:
        with _signatures:
            signatures = [inspect.signature(method, follow_wrapped=own) for own in (True, False)]
    except Exception:  # of Python's parser, or of an attribute __signature__
        named = _written_keywords(method)
        return (frozenset({"max_version"}), False) if named is None else (named, True)
    return _keywords_of(signatures[0]) & _keywords_of(signatures[1]), True


def _keywords_of(signature: inspect.Signature) -> frozenset[str]:
    parameters = signature.parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return _KEYWORDS
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = frozenset(parameter.name for parameter in parameters if parameter.kind in by_name)
    return named & _KEYWORDS


def _device_of(x: object) -> tuple[int, int] | None:
    """Return what an array says of its device, or None if it says nothing."""
    ask = getattr(x, "__dlpack_device__", None)
    if ask is None:
        return None
    answer = ask()
    try:
        device_type, number = map(_index, answer)  # of an endless answer, no more than three
        in_range = all(-(2**31) <= part < 2**31 for part in (device_type, number))
    except (TypeError, ValueError):
        in_range = False
    if not in_range:
        raise ConversionError(
            "device_type_unsupported",
            "__dlpack_device__",
            "a tuple (device_type, device_id) of int32_t",
            shown(answer),
            "correct the producer",
        )
    return device_type, number


def _check_device_type(x: object, host: bool) -> bool:
    """Refuse an array that says itself that it is elsewhere, before it is exported.

    Return whether it says that it is in host memory, which is taken if `host` says so.
    """
    own = _device_of(x)
    if own is None:
        return False
    if host and own[0] == _KDL_CPU:
        return True
    if own[0] == _KDL_CPU:
        raise ConversionError(
            "device_type_unsupported",
            "device.device_type",
            "kDLOneAPI (14)",
            "kDLCPU (1)",
            "move the array to a SYCL device first: from_dlpack(x, device=...) copies it",
        )
    _core.check_device_type(own[0])
    return False


def from_dlpack(
    x: Any,
    /,
    *,
    device: dpctl.SyclDevice | dpctl.SyclQueue | tuple[int, int] | str | None = None,
    copy: bool | None = None,
    usm_type: str | None = None,
) -> DLPackTensor:
    """Take an array from another library, proved before its memory is touched.

    Parameters
    ----------
    x
        An array with ``__dlpack__``, of its type or its own, whose keywords are those of its
        signature, or whose type has the C exchange API. Its memory is USM, or with ``device`` host
        memory; then a NumPy array of ml_dtypes is taken too, though NumPy does not export it.
    device
        Where the tensor is to be: a root device as ``(14, device_id)``, as a device or sub-device
        of it, by its filter string, or by a queue. An array that is elsewhere, in host memory or
        on another root device, is copied. A queue, which must be of the default context, is also
        handed to the producer as ``stream``, and is then the tensor's ``sycl_queue``. None takes
        the array where it is.
    copy
        True always copies: the producer if it can, this package otherwise, also where the
        producer refuses to, or its copy has elements that overlap. False never does. None
        copies where `device` or `usm_type` asks for it, or the producer does. Our copies keep
        positive strides where elements neither overlap nor have gaps, and are compact, in C order,
        elsewhere.
    usm_type
        "host", "device" or "shared": the array is copied if its USM is of another kind. None
        keeps the kind of USM, and copies host memory to device USM.

    Returns
    -------
    :
        The tensor. It owns what the producer handed over, and gives it back when it goes.

    Raises
    ------
    UsmBindingError
        If the memory is not USM of the device that the producer named, or the queue in ``device``
        is of another context.
    ConversionError
        If another rule is broken; the producer's capsule is then left to its producer.
    TypeError, ValueError
        If `x` has no ``__dlpack__``, or a keyword is not of its kind.

    Notes
    -----
    Work of the producer that may still be pending is not waited for, but known: the tensor's
    ``sycl_queue`` is the queue in ``device``, or else the one that the producer says, by its
    attribute ``sycl_queue`` or by the C exchange API; exports and copies of the tensor are ordered
    behind it. A producer that says none must have finished. Copies made here are complete.

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
    >>> usm_dlpack.from_dlpack(numpy.zeros(3), device=(14, 0)).usm_type
    'device'
    """
    if device is None and copy is None and usm_type is None:
        return _core.import_array(x)
    copy = _read_copy(copy)
    if usm_type is not None and not isinstance(usm_type, str):
        raise TypeError(f"usm_type: expected None or a str, found {shown(usm_type)}; pass a name")
    if usm_type is not None and usm_type not in _USM_TYPES:
        raise ValueError(
            f'usm_type: expected "host", "device" or "shared", found {shown(usm_type)}; '
            "correct the name"
        )
    _core.check_process()  # before dpctl is asked for anything
    if device is not None and _dtypes.is_of_ml_dtypes(x):
        return _numbers_of_ml_dtypes(x, device, copy, usm_type)
    queue = None
    if device is not None:
        device, queue = _split_queue(device)
        device = _device_id_of(device)
    return _core.import_array_to(x, device, queue, copy, usm_type)


def _numbers_of_ml_dtypes(
    x: np.ndarray[Any, np.dtype[Any]], device: Any, copy: bool | None, usm_type: str | None
) -> DLPackTensor:
    """Copy a NumPy array to USM whose dtype is of ml_dtypes, which NumPy itself does not export."""
    if not x.dtype.isnative:
        raise ConversionError(
            "dtype_unsupported",
            "dtype",
            "a number in native byte order",
            shown(x.dtype),
            "convert the array, or reinterpret its memory",
        )
    dtype = _dtypes.to_dlpack_dtype(x.dtype)
    bits = from_dlpack(x.view(f"u{x.itemsize}"), device=device, copy=copy, usm_type=usm_type)
    flags = _SUBBYTE_PADDED if _dtypes.is_subbyte_padded(x.dtype) else 0
    return _core.reinterpret(bits, *dtype, flags)


def _split_queue(device: Any) -> tuple[Any, Any]:
    """Return a device and the queue that it was named by, if it was."""
    import dpctl

    if isinstance(device, tuple) and _device_type_in(device) == _KDL_CPU:
        raise ConversionError(
            "request_unsupported",
            "device",
            "a root device as (14, device_id), since a DLPackTensor is USM",
            shown(device),
            'copy to the host with numpy(), or numpy.from_dlpack(x, device="cpu")',
        )
    if isinstance(device, dpctl.SyclQueue):
        return device.sycl_device, device
    return device, None


def _names(field: str, values: Sequence[str] | str) -> list[str]:
    names = [values] if isinstance(values, str) else values
    if isinstance(names, Iterable):
        some = list(names)
        if all(isinstance(name, str) for name in some):
            if strange := [name for name in some if not name.isascii()]:
                raise ValueError(
                    f"{field}: expected names in ASCII, found {shown(strange[0])}; correct the name"
                )
            return some
    raise TypeError(f"{field}: expected a sequence of str, found {shown(values)}; pass names")


def _truth(value: object) -> bool | None:
    """Return what a bool, NumPy's bool, 0 or 1 says, by its type; None for anything else."""
    kind = type(value)
    if kind is bool or kind is np.bool_:
        return bool(value)
    number = int.__index__(value) if issubclass(kind, int) else 2  # type: ignore[arg-type]
    return bool(number) if number in (0, 1) else None


def _read_copy(copy: object) -> bool | None:
    says = _truth(copy)
    if says is None and copy is not None:
        raise TypeError(f"copy: expected None, True or False, found {shown(copy)}; pass one")
    return says


def _flag(field: str, value: object) -> None:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{field}: expected None, True or False, found {shown(value)}; pass one")


def _int32(field: str, value: object) -> int:
    number = _integer(field, value)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{field}: expected an int32_t, found {shown(number)}; correct the value")
    return number


def _device_id_of(device: Any) -> int:
    """Return the DLPack id that a device, its filter string or ``(14, device_id)`` stands for."""
    if isinstance(device, tuple):
        if _device_type_in(device) != _KDL_ONEAPI:
            raise ValueError(
                f"device: expected (14, device_id), found {shown(device)}; "
                "pass the pair that __dlpack_device__ gives"
            )
        return _int32("device", device[1])
    import dpctl

    if isinstance(device, str):
        try:
            device = dpctl.SyclDevice(_filter_string(device))
        except (dpctl.SyclDeviceCreationError, ValueError):
            raise ValueError(
                f"device: expected the filter string of a device, found {shown(device)}; "
                "`python -m usm_dlpack devices` shows them"
            ) from None
    if not isinstance(device, dpctl.SyclDevice):
        is_int = isinstance(device, int | np.integer) and not isinstance(device, bool)
        number = shown(int(device)) if is_int and 0 <= device < 2**31 else "device_id"
        raise TypeError(
            "device: expected (14, device_id), a filter string or a dpctl.SyclDevice, "
            f"found {shown(device)}; pass (14, {number})"
        )
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
        "level_zero", "cuda", "hip", "native_cpu"); None accepts all.
    dtype
        The dtype that the array must have, as for `to_dlpack_tensor`; None takes any. Elements of
        fewer than 8 bits must have a byte each for a type of ml_dtypes; a name or a tuple leaves
        that open, as DLPack's dtype does.
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
    _core.check_process()  # before dpctl is asked for anything
    kinds = _names("usm_types", usm_types)
    accepted = None if backends is None else _names("backends", backends)
    _flag("readonly", readonly)
    _flag("overlapping", overlapping)
    wanted = None if dtype is None else _dtypes.to_dlpack_dtype(dtype)
    return _core.validate_array(
        x,
        kinds,
        accepted,
        writable=readonly is False,
        unique=overlapping is False,
        dtype=wanted,
        padded=dtype is not None and _dtypes.is_subbyte_padded(dtype),
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
            shown(number),
            "pass an id of usm_dlpack.device_id",
        )
    return _core.root_device(number)
