# SPDX-License-Identifier: Apache-2.0
"""Exchange SYCL USM between array libraries through DLPack, validated before use.

`to_dlpack_tensor` describes USM that a Python object owns, `from_dlpack` imports an array of
another library, `empty` makes a tensor in new memory, `validate` proves that an array is what it
claims to be, and `device_id` and `root_device` map devices to DLPack's ids and back.
"""

import sys as _sys

from usm_dlpack._cpu_driver import register_cpu_driver as _register_cpu_driver
from usm_dlpack._main_interpreter import check_interpreter as _check_interpreter

_check_interpreter()  # first: see there
_register_cpu_driver()  # before the first device query

_failure: ImportError | None = None
try:
    from usm_dlpack._arrays import Place, SupportsDLPack, SupportsSyclUsm, UsmArray
    from usm_dlpack._core import DLPackTensor, UsmAllocation
    from usm_dlpack._core import version as _version
    from usm_dlpack._errors import ConversionError, UsmBindingError
    from usm_dlpack._paths import get_cmake_dir, get_include
    from usm_dlpack._public import (
        device_id,
        empty,
        from_dlpack,
        root_device,
        to_dlpack_tensor,
        validate,
    )
except ImportError as _cause:
    _failure = ImportError(
        f"usm_dlpack: expected its compiled module and what it needs, found {_cause}; "
        "run `python -m usm_dlpack`, which says what to do",
        name=_cause.name,
        path=_cause.path,
    )
    # While `python -m` looks for its module, sys.argv[0] is "-m": this may be our command, which
    # uses no public name. In other programs the first use of a public name raises the error.
    if _sys.argv[:1] != ["-m"]:
        raise _failure from _cause
    _failure.__cause__ = _cause

    def _refuse(name: str) -> None:
        if name in __all__:
            raise _failure  # type: ignore[misc]
        raise AttributeError(name)

    globals()["__getattr__"] = _refuse  # so that type checkers do not see it
else:
    __version__ = _version

__all__ = [
    "ConversionError",
    "DLPackTensor",
    "Place",
    "SupportsDLPack",
    "SupportsSyclUsm",
    "UsmAllocation",
    "UsmArray",
    "UsmBindingError",
    "device_id",
    "empty",
    "from_dlpack",
    "get_cmake_dir",
    "get_include",
    "root_device",
    "to_dlpack_tensor",
    "validate",
]
