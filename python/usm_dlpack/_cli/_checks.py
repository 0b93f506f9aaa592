# SPDX-License-Identifier: Apache-2.0
"""The doctor's findings, and the checks of wheels, of the CPU driver and of the devices.

pip does not know that a newer oneMKL calls functions that an older SYCL runtime lacks: the import
of dpnp then fails with an undefined symbol. An older oneMKL was seen to work.
"""

import importlib.metadata
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from usm_dlpack import _cpu_driver
from usm_dlpack._cli._child import HIDING, Device, list_with
from usm_dlpack._cli._selector import SELECTOR, changes_of_selector, terms_of

PIP = "python -m pip install"
REINSTALL = f"{PIP} --force-reinstall --no-deps"
RUNTIME = "intel-sycl-rt"
_ONEMKL = (*(f"onemkl-sycl-{part}" for part in ("blas", "dft", "lapack", "rng", "vm")), "mkl")
_OF_COMPILER = ("intel-cmplr-lib-rt", "intel-cmplr-lib-ur", "intel-opencl-rt", "dpcpp-cpp-rt")
_NAMES = (
    *("usm-dlpack", "dpctl", "dpnp", RUNTIME, *_OF_COMPILER, *_ONEMKL, "onednn"),
    *("torch", "jax", "apache-tvm-ffi", "nanobind", "numpy"),
)
# The output of `pip check` for a wrong version and for a missing package.
_UNMET = re.compile(
    r"(\S+) \S+ (?:has requirement (.+), but you have (\S+ .+)|requires (\S+), which is .+)\."
)
_WHEEL = "intel-opencl-rt"
_CHOOSING = ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER")


@dataclass(frozen=True)
class Finding:
    """The result of one check; `level` is "ok", "warning" or "problem"."""

    name: str
    level: str
    sentence: str
    command: str | None = None


def fine(name: str, sentence: str) -> Finding:
    return Finding(name, "ok", sentence)


def refused(
    name: str, expected: str, found: str, command: str, *, level: str = "problem", field: str = ""
) -> Finding:
    """Return a finding in the form of our errors."""
    sentence = f"{field or name}: expected {expected}, found {found}; run `{command}`"
    return Finding(name, level, sentence, command)


def first_command(findings: list[Finding]) -> str | None:
    """Return the command for the first problem, which may cause the later ones."""
    commands = (finding.command for finding in findings if finding.level == "problem")
    return next(commands, None)


def installed_versions() -> dict[str, str]:
    found = {}
    for name in _NAMES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if version:  # a damaged record has none
            found[name] = version
    return found


def release_of(version: str) -> tuple[int, ...]:
    """Return year and quarter of a version: (2026, 1) of 2026.1.2."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def check_releases(versions: dict[str, str]) -> list[Finding]:
    """Check whether the compiler's runtime is there, with all parts and oneMKL of its release."""
    if RUNTIME not in versions:
        expected = f"the wheel {RUNTIME}, or a SYCL runtime of the system"
        command = f"{PIP} {RUNTIME}"
        return [refused("releases", expected, "no such wheel", command, level="warning")]
    release = release_of(versions[RUNTIME])
    has_onemkl = any(name in versions for name in _ONEMKL[:-1])
    findings = []
    for names in (_OF_COMPILER, _ONEMKL if has_onemkl else ()):
        odd = [n for n in names if n in versions and release_of(versions[n]) != release]
        if odd:
            text = ".".join(map(str, release))
            newer = names is _ONEMKL and any(release_of(versions[name]) > release for name in odd)
            expected = f"release {text}, as {RUNTIME} is"
            found = ", ".join(f"{name} {versions[name]}" for name in odd)
            command = f"{PIP} " + " ".join(f'"{name}=={text}.*"' for name in odd)
            level = "problem" if newer else "warning"
            findings.append(refused("releases", expected, found, command, level=level))
    told = f"{RUNTIME} {versions[RUNTIME]}, and all that belongs to it is of its release"
    return findings or [fine("releases", told)]


def check_requirements() -> list[Finding]:
    """Ask pip whether the installed packages have what they require."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "No module named pip" in done.stderr:
        return [fine("requirements", "not asked: this environment has no pip")]
    findings = []
    for line in done.stdout.splitlines():
        if (match := _UNMET.fullmatch(line)) is None:
            continue
        name, wanted, there, absent = match.groups()
        other = absent or there.partition(" ")[0]
        if {name.lower(), other.lower()} & set(_NAMES):
            expected = f"{absent or wanted}, as {name} requires"
            package = absent or f'"{wanted}"'
            findings.append(refused("requirements", expected, there or "none", f"{PIP} {package}"))
    return findings or [fine("requirements", "every package has what it requires")]


def _command_for_wheel() -> str:
    return f"{REINSTALL if _WHEEL in installed_versions() else PIP} {_WHEEL}"


def check_driver() -> list[Finding]:
    findings = []
    library = _cpu_driver.find_cpu_driver()
    for file in sorted(_cpu_driver._SYSTEM_DRIVERS.glob("*.icd")):
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
            found = f"{failure or 'none'}, but {count} when unset"
            return refused("devices", expected, found, f"unset {' '.join(there)}")
    command = cause or (f"{PIP} --force-reinstall dpctl" if failure else _command_for_wheel())
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
