# SPDX-License-Identifier: Apache-2.0
"""Refuses sub-interpreters, which the SYCL runtime and dpctl do not know.

Python itself refuses the compiled module only in those with a GIL of their own, from 3.12 on.
"""

import ctypes


def check_interpreter() -> None:
    """Raise an ImportError in a sub-interpreter."""
    python = ctypes.pythonapi
    python.PyInterpreterState_Get.restype = ctypes.c_void_p
    python.PyInterpreterState_GetID.argtypes = [ctypes.c_void_p]
    python.PyInterpreterState_GetID.restype = ctypes.c_int64
    if python.PyInterpreterState_GetID(python.PyInterpreterState_Get()) != 0:
        raise ImportError(
            "usm_dlpack: expected the main interpreter, found a sub-interpreter, whose objects the "
            "SYCL runtime and dpctl would share with it; import the package in the main one"
        )
