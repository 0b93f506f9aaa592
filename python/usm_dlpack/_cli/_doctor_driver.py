# SPDX-License-Identifier: Apache-2.0
"""Checks of the CPU driver and of the devices."""

from __future__ import annotations

import os
from pathlib import Path

from usm_dlpack import _driver
from usm_dlpack._cli._child import HIDING, Device, list_with
from usm_dlpack._cli._doctor_releases import installed_versions
from usm_dlpack._cli._finding import PIP, REINSTALL, Finding, fine, refused
from usm_dlpack._cli._selector import SELECTOR, changes_of_selector, terms_of

_WHEEL = "intel-opencl-rt"
_CHOOSING = ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER")


def _command_for_wheel() -> str:
    return f"{REINSTALL if _WHEEL in installed_versions() else PIP} {_WHEEL}"


def check_driver() -> list[Finding]:
    findings = []
    library = _driver.find_cpu_driver()
    for file in sorted(_driver._SYSTEM_DRIVERS.glob("*.icd")):
        registered = file.read_text(errors="replace").strip()
        if registered.startswith("/") and not Path(registered).is_file():
            command = f"export OCL_ICD_FILENAMES={library}" if library else f"{PIP} {_WHEEL}"
            told = ("the path of a driver", f"{registered}, where no file is", command)
            findings.append(refused("driver", *told, level="warning", field=str(file)))
    command = _command_for_wheel()
    if library is None and command.startswith(REINSTALL):
        found = "none, though the wheel is installed"
        findings.append(refused("driver", f"libintelocl.so of {_WHEEL}", found, command))
    none = "no CPU driver of a wheel"
    return findings or [fine("driver", f"CPU driver {library}" if library else none)]


def check_devices(devices: list[Device], failure: str | None, cause: str | None) -> list[Finding]:
    """Check whether there are devices, whether they work, and whether variables hide them.

    `cause` is the command that fixes an earlier problem.
    """
    if not devices:
        return [_find_what_hides(failure, cause)]
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


def _find_what_hides(failure: str | None, cause: str | None) -> Finding:
    """Return why there is no device: variables without which there is one, or the installation."""
    for names in (HIDING, _CHOOSING, HIDING + _CHOOSING):
        there = [name for name in names if name in os.environ]
        count = _count_without(there) if there else 0
        if count:
            expected = f"a root device with {', '.join(f'{n}={os.environ[n]}' for n in there)}"
            found = f"{failure or 'none'}, and {count} without"
            return refused("devices", expected, found, f"unset {' '.join(there)}")
    command = cause or (f"{REINSTALL} dpctl" if failure else _command_for_wheel())
    return refused("devices", "at least one root device", failure or "none", command)


def _count_without(names: list[str]) -> int:
    try:
        return len(list_with(dict.fromkeys(names)))
    except RuntimeError:
        return 0


def _hide_broken(devices: list[Device]) -> str:
    """Return the command that selects only the listed devices that work.

    A selector counts the devices that exist without a selector.
    """
    everything, chosen = devices, list(range(len(devices)))
    if SELECTOR in os.environ:
        chosen = changes_of_selector(devices)["without"]
        if chosen is None:
            return f"unset {SELECTOR}"
        everything = list_with({SELECTOR: None})
    terms = terms_of(everything)
    working = [terms[place] for place in chosen if everything[place]["failure"] is None]
    if working:
        return f'export {SELECTOR}="{";".join(working)}"'
    return f"unset {SELECTOR}" if SELECTOR in os.environ else "python -m usm_dlpack devices"
