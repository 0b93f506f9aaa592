# SPDX-License-Identifier: Apache-2.0
"""The versions, the driver and the devices of this environment, and what is wrong with them.

Works without the compiled module, and reports its failed import as a problem. To add a check, add
its sentence to the problems in `examine`.
"""

import importlib.metadata
import os
import re
import sys
from pathlib import Path
from typing import Any

import usm_dlpack
from usm_dlpack import _cpu_driver

_DISTRIBUTIONS = ("usm-dlpack", "dpctl", "dpnp", "numpy", "intel-sycl-rt", "intel-opencl-rt")
# Variables that name drivers, and those that hide devices.
_VARIABLES = (
    *("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER"),
    *("ONEAPI_DEVICE_SELECTOR", "SYCL_DEVICE_ALLOWLIST", "ZE_AFFINITY_MASK"),
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
)
_LIBSYCL = re.compile(r"/.*/(libsycl\.so\.\d+)[.\d]*")


def examine() -> dict[str, Any]:
    """Return the report; its problems are sentences in the form of our errors."""
    failure = _import_failure()
    runtimes = _loaded_libsycl()
    variables = _set_variables()
    devices: list[dict[str, Any]] = []
    problems = _missing_drivers()
    if failure is not None:
        problems.append(
            f"usm_dlpack: expected a package that can be imported, found {type(failure).__name__}: "
            f"{failure}; install what is missing (libsycl is in the wheel intel-sycl-rt), or build "
            "usm_dlpack again for what is installed"
        )
    elif len(set(runtimes.values())) > 1:  # a device of dpctl may be no device of ours
        problems.append(
            f"libsycl: expected one major version, found {', '.join(runtimes)}; install a SYCL "
            "runtime of one major version and packages that are built for it, and check "
            "LD_LIBRARY_PATH"
        )
    else:
        from usm_dlpack import _core

        try:
            devices = [_describe(row) for row in _core.device_rows()]
            problems += _device_problems(devices, variables)
        except usm_dlpack.ConversionError as error:  # the runtime cannot list them
            problems.append(str(error))
    return {
        "versions": _versions(),
        "files": _files(runtimes),
        "variables": variables,
        "devices": devices,
        "problems": problems,
    }


def _import_failure() -> BaseException | None:
    """Return why the package, or what its functions import, cannot be imported."""
    if usm_dlpack._failure is not None:
        return usm_dlpack._failure.__cause__
    try:
        import dpctl  # noqa: F401 (it imports NumPy)
    except ImportError as error:
        return error
    return None


def _loaded_libsycl() -> dict[str, str]:
    """Return each libsycl that this process has loaded, with its name of a major version."""
    lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    files = sorted({line.split(maxsplit=5)[-1] for line in lines})
    return {match[0]: match[1] for match in map(_LIBSYCL.fullmatch, files) if match}


def _set_variables() -> dict[str, str]:
    """Return the user's variables that choose drivers or hide devices."""
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    if variables.get("OCL_ICD_FILENAMES") == str(_cpu_driver.find_cpu_driver()):
        del variables["OCL_ICD_FILENAMES"]  # the import has set it
    return variables


def _missing_drivers() -> list[str]:
    files = filter(None, os.environ.get("OCL_ICD_FILENAMES", "").split(os.pathsep))
    return [
        f"OCL_ICD_FILENAMES: expected a driver, found no file {file}; correct the path, or unset it"
        for file in files
        if file.startswith("/") and not Path(file).is_file()
    ]


def _describe(row: dict[str, Any]) -> dict[str, Any]:
    device = row["sycl_device"]
    names = ("name", "filter_string", "type", "backend", "driver_version", "usm_types")
    description: dict[str, Any] = {"device_id": row["device_id"], **dict.fromkeys(names)}
    description["failure"] = row["failure"]
    try:
        description["name"] = str(device.name).strip()
        description["filter_string"] = device.get_filter_string()
        description["type"] = device.device_type.name
        description["backend"] = device.backend.name
        description["driver_version"] = device.driver_version
        kinds = ("device", "host", "shared")
        description["usm_types"] = [
            kind for kind in kinds if getattr(device, f"has_aspect_usm_{kind}_allocations")
        ]
    except Exception as error:  # a broken driver may fail at any query
        description["failure"] = description["failure"] or str(error)
    return description


def _device_problems(devices: list[dict[str, Any]], variables: dict[str, str]) -> list[str]:
    if devices:
        return [
            f"device {device['device_id']}: expected a device that the SYCL runtime can use, found "
            f"{device['failure']}; repair its driver, or hide it with ONEAPI_DEVICE_SELECTOR"
            for device in devices
            if device["failure"]
        ]
    found = "none"
    remedy = "install a driver, such as the wheel intel-opencl-rt"
    library = _cpu_driver.find_cpu_driver()
    if variables:
        found += f" with {', '.join(f'{name}={value}' for name, value in variables.items())}"
        remedy = f"unset or correct {' and '.join(variables)}, or {remedy}"
    elif library is not None and "OCL_ICD_FILENAMES" not in os.environ:
        found += f" by the drivers in {_cpu_driver._SYSTEM_DRIVERS}"
        remedy = f"set OCL_ICD_FILENAMES={library}, or install another driver"
    return [f"devices: expected at least one root device, found {found}; {remedy}"]


def _versions() -> dict[str, str]:
    versions = {"Python": ".".join(map(str, sys.version_info[:3]))}
    if usm_dlpack._failure is None:
        from usm_dlpack import _core

        versions["DLPack"] = _core.dlpack_version
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _files(runtimes: dict[str, str]) -> dict[str, str | None]:
    core = sys.modules.get("usm_dlpack._core")
    icds = map(str, sorted(_cpu_driver._SYSTEM_DRIVERS.glob("*.icd")))
    drivers = os.environ.get("OCL_ICD_FILENAMES") or os.environ.get("OCL_ICD_VENDORS")
    return {
        "Python": sys.executable,
        "compiled module": core.__file__ if core else None,
        "SYCL runtime": ", ".join(runtimes) or None,
        "OpenCL driver": drivers or ", ".join(icds) or None,
    }
