# SPDX-License-Identifier: Apache-2.0
"""Checks of the CPU driver and of the devices."""

from __future__ import annotations

import importlib.metadata
import os
import re
from pathlib import Path

from usm_dlpack import _driver
from usm_dlpack._cli._child import HIDING, Device, list_with
from usm_dlpack._cli._finding import PIP, Finding, fine, refused
from usm_dlpack._cli._selector import SELECTOR, changes_of_selector, terms_of

_WHEEL = "intel-opencl-rt"
_CHOOSING = ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER")
# The last line of the process that lists devices, if dpctl is incomplete.
_OF_DPCTL = re.compile(r"(ImportError|AttributeError|ModuleNotFoundError): .*\bdpctl\b")


def _has_wheel() -> bool:
    try:
        importlib.metadata.version(_WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _without(*names: str) -> list[Device]:
    """Return the devices that are there without some variables, and if nothing hides any."""
    try:
        return list_with(dict.fromkeys((*HIDING, *names)))
    except RuntimeError:
        return []


def _check_variables(devices: list[Device]) -> list[Finding]:
    """Check whether the variables that choose the driver lead to one."""
    findings = []

    def refuse(name: str, expected: str, found: str, level: str = "problem") -> None:
        findings.append(
            refused("driver", expected, found, f"unset {name}", level=level, field=name)
        )

    files, folder, ours = (os.environ.get(name) for name in _CHOOSING)
    paths = [path for path in (files or "").split(os.pathsep) if "/" in path]
    if missing := [path for path in paths if not Path(path).is_file()]:
        refuse(_CHOOSING[0], "paths of drivers", f"no file {', '.join(missing)}")
    if folder is not None and not Path(folder).is_file() and not any(Path(folder).glob("*.icd")):
        refuse(_CHOOSING[1], "a folder of .icd files", f"{folder}, where none is")
    if ours == "0" and files is None and folder is None:
        expected = "nothing that hides the CPU driver of the wheel"
        found = "0, so that importing usm_dlpack does not make it known"
        refuse(_CHOOSING[2], expected, found, "warning" if devices else "problem")
    return findings


def check_registered() -> list[Finding]:
    """Check whether the drivers that the system registers are there."""
    findings = []
    for file in sorted(_driver._SYSTEM_DRIVERS.glob("*.icd")):
        library = file.read_text(errors="replace").strip()
        if library.startswith("/") and not Path(library).is_file():
            wheel = _driver.find_cpu_driver()
            command = f"export OCL_ICD_FILENAMES={wheel}" if wheel else f"{PIP} {_WHEEL}"
            told = ("the path of a driver", f"{library}, where no file is", command)
            findings.append(refused("driver", *told, level="warning", field=str(file)))
    return findings


def check_driver(devices: list[Device]) -> list[Finding]:
    """Check whether the CPU driver of the wheel, or another, is there and not hidden."""
    findings = _check_variables(devices) + check_registered()
    library = _driver.find_cpu_driver()
    if library is None and _has_wheel():
        command = f"{PIP} --force-reinstall --no-deps {_WHEEL}"
        found = "none, though the wheel is installed"
        findings.append(refused("driver", f"libintelocl.so of {_WHEEL}", found, command))
    elif library is None and not devices:
        expected = "a driver, such as the CPU driver of the wheel"
        findings.append(refused("driver", expected, "none", f"{PIP} {_WHEEL}"))
    if not findings and not devices:
        findings = _check_useless_variables()
    none = "no CPU driver of a wheel, and none is needed"
    return findings or [fine("driver", f"CPU driver {library}" if library else none)]


def _check_useless_variables() -> list[Finding]:
    """Check whether variables that choose the driver keep one that works from being found."""
    there = [name for name in _CHOOSING if name in os.environ]
    if not there or (any(name in os.environ for name in HIDING) and _without()):
        return []
    if not (found := _without(*there)):
        return []
    values = ", ".join(f"{name}={os.environ[name]}" for name in there)
    told = (f"a root device with {values}", f"none, and {len(found)} without")
    return [refused("driver", *told, f"unset {' '.join(there)}")]


def list_devices() -> tuple[list[Device], str | None]:
    """Return the root devices of a new process, and why they could not be listed."""
    try:
        return list_with({}), None
    except RuntimeError as error:
        return [], str(error)


def check_devices(devices: list[Device], failure: str | None, cause: str | None) -> list[Finding]:
    """Check whether there are devices, whether they work, and whether variables hide them.

    `cause` is the command that fixes the driver, if that is why there is no device.
    """
    if not devices:
        return [_check_hidden(failure, cause)]
    works = [device["failure"] is None for device in devices]
    findings = []
    if not all(works):
        command, level = _hide_broken(devices), "warning" if any(works) else "problem"
        for number, device in enumerate(devices):
            if not works[number]:
                told = ("a device that the SYCL runtime can use", device["failure"], command)
                field = f"device {number}"
                findings.append(refused("devices", *told, level=level, field=field))
    return [*findings, fine("devices", f"{sum(works)} of {len(devices)} root devices work")]


def _check_hidden(failure: str | None, cause: str | None) -> Finding:
    hiding = [name for name in HIDING if name in os.environ]
    if hiding and (hidden := _without()):
        values = ", ".join(f"{name}={os.environ[name]}" for name in hiding)
        told = (f"a root device with {values}", failure or f"none of {len(hidden)}")
        return refused("devices", *told, f"unset {' '.join(hiding)}")
    wheel = f"--force-reinstall --no-deps {_WHEEL}" if _has_wheel() else _WHEEL
    if failure and _OF_DPCTL.match(failure):
        wheel = "--force-reinstall --no-deps dpctl"
    expected = "at least one root device"
    return refused("devices", expected, failure or "none", cause or f"{PIP} {wheel}")


def _hide_broken(devices: list[Device]) -> str:
    """Return the command that selects only the listed devices that work.

    A selector counts the devices that exist without a selector.
    """
    everything, chosen = devices, list(range(len(devices)))
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
    hidden_works = any(device["failure"] is None for device in everything)
    return f"unset {SELECTOR}" if hidden_works else "python -m usm_dlpack devices"
