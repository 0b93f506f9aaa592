# SPDX-License-Identifier: Apache-2.0
"""The exchange functions."""

from collections.abc import Sequence
from typing import Any, Literal

from usm_dlpack import _core
from usm_dlpack._arrays import Place, SupportsSyclUsm, SyclDevice, UsmArray, UsmType
from usm_dlpack._core import DLPackTensor, UsmAllocation

_USM_TYPES: tuple[UsmType, ...] = ("host", "device", "shared")


def to_dlpack_tensor(
    obj: SupportsSyclUsm,
    /,
    *,
    shape: Sequence[int] | int | None = None,
    dtype: Any = None,
    strides: Sequence[int] | None = None,
    byte_offset: int = 0,
    queue: Place | int | None = None,
) -> DLPackTensor:
    """Describe USM that a Python object owns, prove it, and keep the object alive.

    Without a keyword the tensor describes the same array as `obj`. With ``shape``, ``dtype``,
    ``strides`` or ``byte_offset`` it is another view of that memory. Every byte of the view must
    lie within the bytes of `obj`, from its lowest to its highest element. An empty tensor may begin
    at their end.

    Parameters
    ----------
    obj
        An object with ``__sycl_usm_array_interface__``, such as a dpctl.memory or a dpnp array;
        or a DLPackTensor of any dtype.
    shape
        Extents, in elements. None keeps shape and strides of `obj`, if the ``dtype`` has the same
        width and ``byte_offset`` is 0. Otherwise None means one dimension, over all bytes of `obj`
        after ``byte_offset``. One extent may be -1: it is computed from the same bytes, as in
        ``numpy.reshape``. With ``strides`` pass all.
    dtype
        A NumPy dtype, a name of DLPack's such as "bfloat16", "float8_e4m3fn" or "float32x4", or a
        tuple (code, bits, lanes). It says what the bytes are; nothing is converted. None keeps the
        dtype of `obj`, which is uint8 for dpctl.memory. The name "float128" means DLPack's dtype of
        128 bits, not NumPy's of 80. If an element has fewer than 8 bits, a name or a tuple means
        packed elements, and a type of ml_dtypes one element per byte.
    strides
        Distances between neighbours, in elements; they may be negative or zero. None means C order
        without gaps. If `obj` is not so itself, pass strides with any ``shape`` or ``byte_offset``,
        and with a ``dtype`` of another width.
    byte_offset
        Bytes from the first element of `obj` to that of the tensor.
    queue
        A `Place` with the queue that works on the memory, or the address of a ``sycl::queue``,
        which is not checked. The queue must be made from the memory's root device alone. None
        means the ``sycl_queue`` of a DLPackTensor, or the queue in the array interface, if there
        is one. The queue becomes the tensor's ``sycl_queue``: exports and copies of the tensor are
        ordered behind its work, as for ``__dlpack__``. This call does not wait.

    Returns
    -------
    :
        The tensor. It and every capsule made from it keep `obj` alive, or what `obj` keeps alive if
        it is a DLPackTensor.

    Raises
    ------
    UsmBindingError
        If the memory is not USM of the default context of its platform, or `queue` is of another
        context or device.
    ConversionError
        If another rule is broken; its ``code`` says which.
    TypeError, ValueError
        If an argument has the wrong type, or contradicts another.

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
    device: Place | None = None,
    copy: bool | None = None,
    usm_type: UsmType | None = None,
    order: Literal["C"] | None = None,
) -> DLPackTensor:
    """Import an array of another library, validated before its memory is used.

    Parameters
    ----------
    x
        An array with ``__dlpack__``, or a fresh DLPack capsule, legacy or versioned, which is
        consumed if this succeeds. Its memory is USM; with the CUDA backend also that of CUDA
        arrays. With ``device`` it may be host memory, even of a NumPy array with a dtype of
        ml_dtypes, which NumPy does not export.
    device
        The `Place` of the tensor, as `device_id` lists them. None means the array's own. An array
        on another root device is copied, and so is one for the host, unless its memory is host USM
        or shared USM of that device, as that of a pinned pool or of NumPy's view. USM of a
        sub-device, or known to be of another context, is copied through the host, after the work on
        its ``sycl_queue``; its producer must be able to export to the host. A queue of the place
        must be of the default context. It becomes the tensor's ``sycl_queue``, and is ordered
        behind the array's ``sycl_queue``. If the array has none, the queue is passed to its
        ``__dlpack__`` as ``stream``, and is ordered behind dpctl's queue, as for a capsule of
        another library.
    copy
        True always copies, and False never does. None copies if `device`, `usm_type` or `order`
        requires it, and accepts a copy that the producer makes. A copy keeps positive strides
        without overlap or gaps; otherwise it is in C order.
    usm_type
        "host", "device" or "shared": the array is copied if its USM is of another kind. None keeps
        the kind; other host memory is copied to device USM.
    order
        "C" copies the array if its elements are not in C order without gaps. None accepts any
        strides.

    Returns
    -------
    :
        The tensor. It keeps the producer's memory, or owns the copy.

    Raises
    ------
    UsmBindingError
        If the memory is not USM of the device that the producer names, or the queue in ``device``
        is not of the default context.
    ConversionError
        If another rule is broken. Then the capsule was not consumed.
    TypeError, ValueError
        If `x` is no capsule and has no ``__dlpack__``, or a keyword has the wrong type or value.

    Notes
    -----
    The call waits for the producer's work only if it copies. A copy is complete when the call
    returns. The tensor's ``sycl_queue`` is the queue in ``device``, or else the producer's: its
    attribute ``sycl_queue``, or the stream of its C exchange API. Exports and copies of the tensor
    are ordered behind it. For a capsule that a DLPackTensor exported without a copy it is the
    ``stream`` of that export, or else the tensor's queue. A producer without a queue is assumed to
    use ``dpctl.get_device_cached_queue(device)``, as dpnp does; finish work on other queues first.
    A capsule of CUDA memory is ordered behind CUDA's legacy default stream.

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


def empty(
    shape: Sequence[int] | int,
    dtype: Any = "float32",
    *,
    device: Place | None = None,
    usm_type: UsmType | None = "device",
) -> DLPackTensor:
    """Make a tensor in new USM, in C order. Its elements have no particular values.

    Parameters
    ----------
    shape
        Extents, in elements; they may be 0. ``()`` makes a tensor of one element.
    dtype
        A NumPy dtype, a name or a tuple, as for `to_dlpack_tensor`. Elements of fewer than 8 bits
        are packed for a name or a tuple. With a type of ml_dtypes each has its own byte.
    device
        The `Place` of the memory, as `device_id` lists them. Its queue, if it has one, must be of
        the default context, and becomes the tensor's ``sycl_queue``. None means the device that
        SYCL's default selector chooses, which is also dpctl's default, and no queue.
    usm_type
        "host", "device" or "shared"; None means "device".

    Returns
    -------
    :
        The tensor. It owns the memory, which is freed after the work of all queues that used it.

    Raises
    ------
    MemoryError
        If there is not enough memory.
    UsmBindingError
        If the queue in ``device`` is not of the default context.
    ConversionError
        If another rule is broken: the elements reach beyond the address space, or the device does
        not work.
    TypeError, ValueError
        If an argument has the wrong type or value, such as a negative extent.

    Examples
    --------
    >>> import numpy, usm_dlpack
    >>> tensor = usm_dlpack.empty((2, 3), usm_type="shared")
    >>> tensor.copy_from(numpy.ones((2, 3), dtype="float32"))
    >>> tensor.numpy().sum()
    np.float32(6.0)
    >>> usm_dlpack.empty((2, -1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: shape[1]: expected from 0 to 9223372036854775807 elements, found -1; ...
    """
    return _core.empty(shape, dtype, device, usm_type)


def validate(
    x: Any,
    /,
    *,
    usm_types: Sequence[UsmType] | UsmType = _USM_TYPES,
    backends: Sequence[str] | str | None = None,
    dtype: Any = None,
    ndim: int | None = None,
    readonly: bool | None = None,
    overlapping: bool | None = None,
    device: Place | None = None,
) -> UsmAllocation:
    """Prove that an array is what it claims to be and can be used here, and return the proof.

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
        The dtype that the array must have, as for `to_dlpack_tensor`; None accepts any. For a type
        of ml_dtypes, elements of fewer than 8 bits must have a byte each. For a name or a tuple
        they may also be packed.
    ndim
        The number of dimensions that it must have; None accepts any.
    readonly
        False refuses read-only memory; None and True accept both.
    overlapping
        False refuses strides that do not prove that elements do not overlap; None and True accept
        both.
    device
        The `Place` whose root device the array must name. None accepts any.

    Returns
    -------
    :
        The proof. It does not keep the memory alive.

    Raises
    ------
    UsmBindingError
        If the memory is not USM of the device that `x` names.
    ConversionError
        If another rule is broken; its ``code`` says which.
    TypeError, ValueError
        If an argument has the wrong type or value.

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


def device_id(device: Place, /) -> int:
    """Return DLPack's id of a device: the position of its root among this process's root devices.

    Parameters
    ----------
    device
        A `Place`: ``(14, device_id)``, a filter string such as "opencl:cpu", or a device, a queue
        or an array of SYCL, as dpctl, dpnp and PyTorch have them. ``docs/how-to/places.md``
        lists them all. A sub-device has the id of its root.

    Raises
    ------
    UsmBindingError
        If the device's root is not among this process's root devices.
    ConversionError
        If no root device has the id in a tuple, or the place is the host.
    TypeError, ValueError
        If `device` is not a place.

    Examples
    --------
    >>> import dpctl, usm_dlpack
    >>> usm_dlpack.device_id(dpctl.get_devices()[0])
    0
    """
    return _core.device_id(device)


def root_device(device_id: int, /) -> SyclDevice:
    """Return the root device with a DLPack id of this process.

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
