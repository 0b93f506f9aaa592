# SPDX-License-Identifier: Apache-2.0
"""The functions that `_core` calls, by name, handed over once."""

from usm_dlpack import (
    _arguments,
    _core,
    _dtypes,
    _errors,
    _host_view,
    _interface,
)
from usm_dlpack._core import DLPackTensor, UsmAllocation


def describe_proof(proof: UsmAllocation) -> str:
    access = ", read-only" if proof.readonly else ""
    return (
        f"UsmAllocation(usm_type={proof.usm_type!r}, device_id={proof.device_id}, "
        f"nbytes={proof.nbytes}, size={proof.size}, bounds={proof.bounds!r}, "
        f"device_proof={proof.device_proof!r}{access})"
    )


def describe_tensor(tensor: DLPackTensor) -> str:
    try:
        name = repr(tensor.sycl_device.name.strip())
    except _errors.ConversionError:  # in a child of fork(), which must not use the runtime
        name = "?"
    access = ", read-only" if tensor.readonly else ""
    return (
        f"DLPackTensor(shape={tensor.shape}, strides={tensor.strides}, dtype={tensor.dtype}, "
        f"usm_type={tensor.usm_type!r}, device={tensor.device}, name={name}, "
        f"nbytes={tensor.nbytes}, byte_extent={tensor.byte_extent}{access})"
    )


_core._set_functions(
    from_parts=_errors.from_parts,
    index=_arguments.index,
    truth=_arguments.truth,
    shown=_errors.shown,
    type_name=_errors.type_name,
    read_view=_interface.read_view,
    common_dtypes=_dtypes.COMMON,
    to_numpy=_dtypes.to_numpy,
    to_typestr=_dtypes.to_typestr,
    empty_numpy=_dtypes.empty_numpy,
    host_values=_host_view.host_values,
    host_view=_host_view.HostView,
    describe_proof=describe_proof,
    describe_tensor=describe_tensor,
)
