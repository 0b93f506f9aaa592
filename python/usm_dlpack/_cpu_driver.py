# SPDX-License-Identifier: Apache-2.0
"""Registers the CPU driver of the wheel ``intel-opencl-rt`` with the OpenCL loader.

The wheel registers it under a path that does not exist, so a machine with only the wheel would have
no SYCL device. Must run before the process's first device query: the loader looks only once.
"""

import contextlib
import ctypes
import os
import site
import sysconfig
from pathlib import Path

_LIBRARY = "libintelocl.so"
# Libraries that the wheels' OpenCL loader is linked with, in the order of their dependencies.
_NEEDED_BY_LOADER = ("libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so")
_SYSTEM_DRIVERS = Path("/etc/OpenCL/vendors")


def library_folders() -> list[Path]:
    """Return the folders of the environment and of the user that wheels put libraries in."""
    roots = [sysconfig.get_path("data"), *([site.getuserbase()] if site.ENABLE_USER_SITE else [])]
    return [Path(root, "lib") for root in roots]


def find_cpu_driver() -> Path | None:
    """Return the driver of the wheel in this environment, or None."""
    files = (folder / _LIBRARY for folder in library_folders())
    return next((file for file in files if file.is_file()), None)


def _load_for_loader(folder: Path) -> None:
    """Load the libraries that the wheels' libOpenCL.so.1 needs but does not find.

    Usually another adapter of the SYCL runtime has loaded them, but not if
    ``ONEAPI_DEVICE_SELECTOR`` names only OpenCL. Delete this when that wheel has a run path.
    """
    for name in _NEEDED_BY_LOADER:
        with contextlib.suppress(OSError):
            ctypes.CDLL(str(folder / name))


def register_cpu_driver() -> Path | None:
    """Set ``OCL_ICD_FILENAMES`` to the wheel's driver, unless the user or the system has one.

    Returns the driver, or None if the variable was not set.
    """
    if os.environ.get("USM_DLPACK_CPU_DRIVER") == "0":
        return None
    library = find_cpu_driver()
    if library is not None and "ONEAPI_DEVICE_SELECTOR" in os.environ:
        _load_for_loader(library.parent)
    if "OCL_ICD_FILENAMES" in os.environ or "OCL_ICD_VENDORS" in os.environ:
        return None
    if any(_SYSTEM_DRIVERS.glob("*.icd")):
        return None
    if library is not None:
        os.environ["OCL_ICD_FILENAMES"] = str(library)
    return library
