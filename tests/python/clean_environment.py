# SPDX-License-Identifier: Apache-2.0
"""The environment of a process that a test starts, which is to find what a user's finds.

A variable that gives a process other devices or packages than a user has is named here. Where the
tests run on a simulated device, the selector that leaves only this one is kept.
"""

from __future__ import annotations

import os

# Set by the driver's simulation, and by nobody else.
IS_SIMULATED = "SetCommandStreamReceiver" in os.environ

HIDDEN = frozenset(
    (
        "OCL_ICD_FILENAMES",
        "OCL_ICD_VENDORS",
        *(() if IS_SIMULATED else ("ONEAPI_DEVICE_SELECTOR",)),
        "USM_DLPACK_CPU_DRIVER",
        "USM_DLPACK_REPORT_LEAKS",
        "PYTHONPATH",
        "PYTHONUNBUFFERED",  # what is buffered is lost, or written at the end
    )
)


def without(*more: str) -> dict[str, str]:
    """Return this process's variables but the hidden ones, and but some more."""
    return {name: value for name, value in os.environ.items() if name not in HIDDEN | {*more}}
