# SPDX-License-Identifier: Apache-2.0
"""Exchange SYCL USM between array libraries through DLPack, proved before it is touched.

`to_dlpack_tensor` describes USM that a Python object owns, `from_dlpack` takes an array from
another library, `empty` makes a tensor in new memory, `validate` says whether an array is what it
claims, and `device_id` and `root_device` map devices to DLPack's ids and back.
"""

from usm_dlpack._cpu_driver import register_cpu_driver as _register_cpu_driver
from usm_dlpack._main_interpreter import check_interpreter as _check_interpreter

_check_interpreter()  # before the compiled module, which would forget that of the main one
_register_cpu_driver()  # before anything can ask the runtime for its devices

from usm_dlpack import _cli  # noqa: E402

try:
    from usm_dlpack._arrays import Place, SupportsDLPack, SupportsSyclUsm, UsmArray
    from usm_dlpack._card import card as _card_of
    from usm_dlpack._core import DLPackTensor, UsmAllocation
    from usm_dlpack._core import version as _version
    from usm_dlpack._errors import ConversionError, UsmBindingError
    from usm_dlpack._explain import Explanation, explain
    from usm_dlpack._paths import get_cmake_dir, get_include
    from usm_dlpack._public import (
        device_id,
        empty,
        from_dlpack,
        root_device,
        to_dlpack_tensor,
        validate,
    )
except ImportError as _failure:
    _cli.failure = _failure  # the commands report it in one sentence
    if not _cli.is_this_package():
        raise ImportError(
            _cli.sentence(_failure), name=_failure.name, path=_failure.path
        ) from _failure
else:
    __version__ = _version
    for _kind in (DLPackTensor, UsmAllocation, Explanation):
        setattr(_kind, "_repr_html_", _card_of)  # noqa: B010 (the stub has no such method)

__all__ = [
    "ConversionError",
    "DLPackTensor",
    "Explanation",
    "Place",
    "SupportsDLPack",
    "SupportsSyclUsm",
    "UsmAllocation",
    "UsmArray",
    "UsmBindingError",
    "device_id",
    "empty",
    "explain",
    "from_dlpack",
    "get_cmake_dir",
    "get_include",
    "root_device",
    "to_dlpack_tensor",
    "validate",
]
