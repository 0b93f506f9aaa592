# SPDX-License-Identifier: Apache-2.0
"""Host memory: how CPU libraries see host and shared USM, and the values that they give."""

from typing import Any

import numpy as np

from usm_dlpack import _core, _dtypes
from usm_dlpack._arguments import refuse
from usm_dlpack._core import DLPackTensor
from usm_dlpack._dtypes import Element
from usm_dlpack._errors import ConversionError, shown, type_name


class HostView:
    """A tensor's memory as an array of the host, without a copy; it keeps the memory alive.

    Made by `DLPackTensor.host_view`. A read-only tensor's view is read-only.
    """

    def __init__(self, tensor: DLPackTensor) -> None:
        self._tensor = tensor

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export as a capsule of kDLCPU, after waiting for the tensor's ``sycl_queue``."""
        there = (1, 0) if dl_device is None else dl_device
        return self._tensor.__dlpack__(
            stream=stream, max_version=max_version, dl_device=there, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """``(1, 0)``: kDLCPU."""
        return (1, 0)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's description of the memory; an AttributeError for a dtype that NumPy lacks."""
        (code, bits, lanes, _), _, _ = _core.parts_of(self._tensor)
        typestr = _dtypes.to_typestr(code, bits, lanes, "__array_interface__")
        steps = (stride * bits // 8 for stride in self._tensor.strides)
        return {
            "data": (self._tensor.data, self._tensor.readonly),
            "shape": self._tensor.shape,
            # The free stride of an extent of 1 may wrap.
            "strides": tuple((step + 2**63) % 2**64 - 2**63 for step in steps),
            "typestr": typestr,
            "version": 3,
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Refuse: NumPy comes here only if it lacks the dtype."""
        expected, found = "one that NumPy has a type string for", str(self._tensor.dtype)
        remedy = "copy the values with numpy(), or use __dlpack__"
        raise ConversionError("dtype_unsupported", "dtype", expected, found, remedy)


def host_values(host: Any, tensor: DLPackTensor) -> tuple[Any, Element | None]:
    """Return an array that exports the values of `host`, and their dtype if that says more."""
    if not hasattr(host, "__dlpack__"):
        try:
            host = np.asarray(host if hasattr(host, "__array_interface__") else memoryview(host))
        except (TypeError, ValueError, BufferError):
            expected = "an array in host memory"
            found = f"an object of type {type_name(host)}"
            refuse(TypeError, "host", expected, found, "pass for example a NumPy array")
    if _dtypes.is_exported_by_numpy(host) and _dtypes.of_numpy(host.dtype) is None:
        remedy = "convert the values with astype"
        found = shown(host.dtype)
        raise ConversionError("dtype_mismatch", "dtype", str(tensor.dtype), found, remedy)
    element, exported = _dtypes.bits_of_ml_array(host)
    return exported, element
