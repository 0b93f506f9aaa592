# SPDX-License-Identifier: Apache-2.0
"""Processes that a test starts, and their environment, which is to find what a user's finds.

A variable that gives a process other devices or packages than a user has is named here. Where the
tests run on a simulated device or by CUDA, the selector that leaves only this one is kept; on PoCL,
its name.
"""

import os
import subprocess
import sys
from pathlib import Path

# Set by the driver's simulation, and by nobody else.
IS_SIMULATED = "SetCommandStreamReceiver" in os.environ
# Set by tests/drivers/run.py and tests/cuda/run.py.
_CONFIGURATION = os.environ.get("DRIVER_CONFIGURATION", "")
IS_POCL, IS_CUDA = _CONFIGURATION.startswith("pocl"), _CONFIGURATION == "cuda"

HIDDEN = {
    *(() if IS_POCL else ("OCL_ICD_FILENAMES",)),
    *("OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER", "USM_DLPACK_REPORT_LEAKS"),
    *(() if IS_SIMULATED or IS_CUDA else ("ONEAPI_DEVICE_SELECTOR",)),
    *("PYTHONPATH", "CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "usm_dlpack_DIR"),
    "PYTHONUNBUFFERED",  # what is buffered is lost, or written at the end
}
# Where a container has no /sys, the CPU driver's hwloc writes to stderr that it found none.
ADDED = {"HWLOC_HIDE_ERRORS": "2"}


def run(
    *command: str | Path, cwd: Path | str | None = None, timeout: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command with the tools of this environment first, and some more variables."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    return subprocess.run(
        [str(word) for word in command],
        env=kept | ADDED | {"PATH": tools} | variables,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
