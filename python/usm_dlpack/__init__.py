# SPDX-License-Identifier: Apache-2.0
"""Exchange SYCL USM between array libraries through DLPack, proved before it is touched.

`to_dlpack_tensor` describes USM that a Python object owns, `from_dlpack` takes an array from
another library, `validate` says whether an array is what it claims, and `device_id` and
`root_device` map devices to DLPack's ids and back.
"""

from usm_dlpack._driver import register_cpu_driver as _register_cpu_driver

_register_cpu_driver()  # before anything can ask the runtime for its devices

from usm_dlpack._arrays import UsmArray  # noqa: E402
from usm_dlpack._core import DLPackTensor, UsmAllocation  # noqa: E402
from usm_dlpack._core import version as _version  # noqa: E402
from usm_dlpack._errors import ArgumentError, ConversionError, UsmBindingError  # noqa: E402
from usm_dlpack._exchange import (  # noqa: E402
    device_id,
    from_dlpack,
    root_device,
    to_dlpack_tensor,
    validate,
)
from usm_dlpack._paths import get_cmake_dir, get_include  # noqa: E402

__version__ = _version

__all__ = [
    "ArgumentError",
    "ConversionError",
    "DLPackTensor",
    "UsmAllocation",
    "UsmArray",
    "UsmBindingError",
    "device_id",
    "from_dlpack",
    "get_cmake_dir",
    "get_include",
    "root_device",
    "to_dlpack_tensor",
    "validate",
]
