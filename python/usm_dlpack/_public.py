# SPDX-License-Identifier: Apache-2.0
"""The exchange functions."""

from collections.abc import Sequence
from typing import Any, Literal

from usm_dlpack import _core
from usm_dlpack._arrays import SupportsSyclUsm, SyclDevice, SyclQueue, UsmArray
from usm_dlpack._core import DLPackTensor, UsmAllocation

_USM_TYPES = ("host", "device", "shared")


def to_dlpack_tensor(
    obj: SupportsSyclUsm,
    /,
    *,
    shape: Sequence[int] | int | None = None,
    dtype: Any = None,
    strides: Sequence[int] | None = None,
    byte_offset: int = 0,
    queue: SyclQueue | None = None,
) -> DLPackTensor:
    """Describe USM that a Python object owns, prove it, and keep the object alive.

    Without a keyword the tensor is the array that `obj` describes. With ``shape``, ``dtype``,
    ``strides`` or ``byte_offset`` it is another view of that memory, counted from `obj`'s first
    element. Every byte of it must lie within the bytes of `obj`: all of a dpctl.memory; all of an
    array's ``usm_data``, ``base`` or ``data``; otherwise, and for a DLPackTensor, those from the
    lowest to the highest element. An empty tensor may begin at their end.

    Parameters
    ----------
    obj
        An object with ``__sycl_usm_array_interface__``: dpctl.memory, a dpnp array; or a
        DLPackTensor of any dtype.
    shape
        Extents, in elements. None keeps shape and strides of `obj`, if the ``dtype`` has the same
        width and ``byte_offset`` is 0. Otherwise None is one dimension of all bytes of `obj` behind
        ``byte_offset``; `obj` must then be compact.
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
        ``sycl_queue`` of a DLPackTensor, or one in the array interface. It becomes the tensor's
        ``sycl_queue``: exports and copies of the tensor are ordered behind its work, as
        ``__dlpack__`` says. Nothing is synchronised here.

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
    return _core.to_dlpack_tensor(obj, shape, dtype, strides, byte_offset, queue)


def from_dlpack(
    x: UsmArray,
    /,
    *,
    device: SyclDevice | SyclQueue | tuple[int, int] | str | None = None,
    copy: bool | None = None,
    usm_type: str | None = None,
    order: Literal["C"] | None = None,
) -> DLPackTensor:
    """Take an array from another library, proved before its memory is touched.

    Parameters
    ----------
    x
        An array with ``__dlpack__``. Its memory is USM, or with ``device`` host memory, also of a
        NumPy array of ml_dtypes, which NumPy does not export.
    device
        Where the tensor must be: ``(14, device_id)``, a device, a filter string or a queue; a
        sub-device means its root. An array in host memory or on another root device is copied. USM
        of another context or of a sub-device is copied through the host, if its producer exports it
        there, after all work on its ``sycl_queue``. A queue must be of the default context, and
        becomes the tensor's ``sycl_queue``: it is ordered behind the ``sycl_queue`` of the array;
        an array without one gets it as ``stream``. None takes the array where it is.
    copy
        True always copies; this package makes the copy, which keeps positive strides without
        overlap or gaps and is in C order otherwise. False never copies. None copies if `device`,
        `usm_type` or `order` needs it, or the producer does so.
    usm_type
        "host", "device" or "shared": the array is copied if its USM is of another kind. None
        keeps the kind of USM; what comes through the host becomes device USM.
    order
        "C" copies the array unless its elements are in C order without gaps. None keeps the
        strides.

    Returns
    -------
    :
        The tensor. It owns the producer's memory, and gives it back when it is destroyed.

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
    The call waits for the producer's work only if it copies. The tensor's ``sycl_queue`` is the
    queue in ``device``, or else the producer's, by its attribute ``sycl_queue`` or the C exchange
    API; exports and copies of the tensor are ordered behind it. If the producer names no queue, its
    work must have finished. Copies made here are complete.

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
    return _core.from_dlpack(x, device, copy, usm_type, order)


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
    device: SyclDevice | tuple[int, int] | str | None = None,
) -> UsmAllocation:
    """Prove that an array is what it says, and usable here, and return the proof.

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
        The proof. It keeps nothing alive.

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
    return _core.validate(x, usm_types, backends, dtype, ndim, readonly, overlapping, device)


def device_id(device: SyclDevice, /) -> int:
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


def root_device(device_id: int, /) -> SyclDevice:
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
    usm_dlpack.ConversionError: device.device_id: expected ...
    """
    return _core.root_device(device_id)
