# SPDX-License-Identifier: Apache-2.0
"""Whether a CPU driver is there and found, and which devices there are, which need it."""

from __future__ import annotations

import importlib.metadata
import os
import re
from pathlib import Path

from usm_dlpack import _driver
from usm_dlpack._finding import PIP, Finding, fine, refused
from usm_dlpack._listing import HIDING, Device, list_with
from usm_dlpack._selector import SELECTOR, changes_of_selector, terms_of

_WHEEL = "intel-opencl-rt"
_CHOOSING = ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER")
# What the process that lists devices says where it has half of dpctl.
_OF_DPCTL = re.compile(r"(ImportError|AttributeError|ModuleNotFoundError): .*\bdpctl\b")


def _has_wheel() -> bool:
    try:
        importlib.metadata.version(_WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _check_variable_of_files() -> list[Finding]:
    name = "OCL_ICD_FILENAMES"
    paths = [path for path in os.environ.get(name, "").split(os.pathsep) if path]
    missing = [path for path in paths if "/" in path and not Path(path).is_file()]
    if not missing:
        return []
    found = ", ".join(missing)
    return [refused("driver", "paths of drivers", f"no file {found}", f"unset {name}", field=name)]


def _check_variable_of_folder() -> list[Finding]:
    name = "OCL_ICD_VENDORS"
    value = os.environ.get(name)
    if value is None:
        return []
    place = Path(value)
    if any(place.glob("*.icd")) if place.is_dir() else place.is_file():
        return []
    found = f"{value}, where none is"
    return [refused("driver", "a folder of .icd files", found, f"unset {name}", field=name)]


def _check_registered() -> list[Finding]:
    """Look whether the drivers that the system registers are there."""
    findings = []
    for file in sorted(_driver._SYSTEM_DRIVERS.glob("*.icd")):
        try:
            library = file.read_text(errors="replace").strip()
        except OSError:
            continue
        if library.startswith("/") and not Path(library).is_file():
            wheel = _driver.find_cpu_driver()
            command = f"export OCL_ICD_FILENAMES={wheel}" if wheel else f"{PIP} {_WHEEL}"
            expected = "the path of a driver"
            found = f"{library}, where no file is"
            finding = refused("driver", expected, found, command, level="warning", field=str(file))
            findings.append(finding)
    return findings


def check_driver(devices: list[Device]) -> list[Finding]:
    """Look whether the CPU driver of the wheel, or another, is there and not hidden."""
    findings = _check_variable_of_files() + _check_variable_of_folder() + _check_registered()
    library, level = _driver.find_cpu_driver(), "warning" if devices else "problem"
    if os.environ.get("USM_DLPACK_CPU_DRIVER") == "0" and not any(
        name in os.environ for name in ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS")
    ):
        name = "USM_DLPACK_CPU_DRIVER"
        expected = "nothing that hides the CPU driver of the wheel"
        found = "0, so that importing usm_dlpack does not make it known"
        command = f"unset {name}"
        findings.append(refused("driver", expected, found, command, level=level, field=name))
    if library is None and _has_wheel():
        command = f"{PIP} --force-reinstall --no-deps {_WHEEL}"
        found = "none, though the wheel is installed"
        findings.append(refused("driver", f"libintelocl.so of {_WHEEL}", found, command))
    elif library is None and not devices:
        expected = "a driver, such as the CPU driver of the wheel"
        findings.append(refused("driver", expected, "none", f"{PIP} {_WHEEL}"))
    if not findings and not devices:
        findings = _check_useless_variables()
    if findings:
        return findings
    told = "no CPU driver of a wheel, and none is needed"
    return [fine("driver", told if library is None else f"CPU driver {library}")]


def _without_hiding(*more: str) -> list[Device]:
    """Return the devices that are there if nothing hides any, without some more variables."""
    try:
        return list_with(dict.fromkeys((*HIDING, *more)))
    except RuntimeError:
        return []


def _check_useless_variables() -> list[Finding]:
    """Look whether a variable that chooses the driver keeps one that works from being found."""
    there = [name for name in _CHOOSING if name in os.environ]
    if not there or (any(name in os.environ for name in HIDING) and _without_hiding()):
        return []
    for names in (*((name,) for name in there), tuple(there)):
        found = _without_hiding(*names)
        if found:
            values = ", ".join(f"{name}={os.environ[name]}" for name in names)
            told = f"none, and {len(found)} without"
            command = f"unset {' '.join(names)}"
            return [refused("driver", f"a root device with {values}", told, command)]
    return []


def list_devices() -> tuple[list[Device], str | None]:
    """Return the root devices of a new process, and why they could not be listed."""
    try:
        return list_with({}), None
    except RuntimeError as error:
        return [], str(error)


def check_devices(devices: list[Device], failure: str | None, mended: str | None) -> list[Finding]:
    """Look whether there are devices, whether they work, and whether variables hide them.

    Where there is none because of the driver, `mended` is the command that mends that.
    """
    hiding = [name for name in HIDING if name in os.environ]
    if not devices:
        hidden = _without_hiding() if hiding else []
        if hidden:
            values = ", ".join(f"{name}={os.environ[name]}" for name in hiding)
            told = failure or f"none of {len(hidden)}"
            command = f"unset {' '.join(hiding)}"
            return [refused("devices", f"a root device with {values}", told, command)]
        wheel = f"--force-reinstall --no-deps {_WHEEL}" if _has_wheel() else _WHEEL
        if failure and _OF_DPCTL.match(failure):
            wheel = "--force-reinstall --no-deps dpctl"
        command = mended or f"{PIP} {wheel}"
        return [refused("devices", "at least one root device", failure or "none", command)]
    findings = []
    working = sum(device["failure"] is None for device in devices)
    if working < len(devices):
        command, level = _hide_broken(devices), "warning" if working else "problem"
        for number, device in enumerate(devices):
            if device["failure"] is not None:
                expected = "a device that the SYCL runtime can use"
                field, why = f"device {number}", device["failure"]
                finding = refused("devices", expected, why, command, level=level, field=field)
                findings.append(finding)
    return [*findings, fine("devices", f"{working} of {len(devices)} root devices work")]


def _hide_broken(devices: list[Device]) -> str:
    """Return the command that leaves the devices that work, of which one may be hidden now.

    A selector counts the devices that are there without one.
    """
    chosen, everything = list(range(len(devices))), devices
    if SELECTOR in os.environ:
        changes = changes_of_selector(devices)
        if changes["without"] is None:
            return f"unset {SELECTOR}"
        chosen = changes["without"]
        placed = dict(zip(chosen, devices, strict=True))
        placed |= {device["device_id"]: device for device in changes["hidden"]}
        everything = [placed[place] for place in sorted(placed)]
    terms = terms_of(everything)
    working = [terms[place] for place in chosen if everything[place]["failure"] is None]
    if working:
        return f'export {SELECTOR}="{";".join(working)}"'
    if any(device["failure"] is None for device in everything):
        return f"unset {SELECTOR}"
    return "python -m usm_dlpack devices"
