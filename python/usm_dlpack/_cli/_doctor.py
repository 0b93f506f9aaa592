# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack doctor``: what is wrong with an environment, and what to do.

Works where the package cannot be imported: then the error of the import is the first finding.
"""

import importlib.metadata
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import usm_dlpack
from usm_dlpack import _cli, _cpu_driver
from usm_dlpack._terminal import styled, wants_colour

_PACKAGES = re.compile(
    r"usm-dlpack|dpctl|dpnp|numpy|nanobind|torch|jax|apache-tvm-ffi|ml-dtypes"
    r"|intel-(sycl|opencl|cmplr)-.*|dpcpp-.*|onemkl-.*|mkl|onednn"
)
_LIBSYCL = re.compile(r"/.*/(libsycl\.so\.\d+)[.\d]*")
_WHEEL = "the wheel intel-opencl-rt"
_STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}


@dataclass(frozen=True)
class Finding:
    """The result of one check; `level` is "ok", "warning" or "problem"."""

    name: str
    level: str
    sentence: str


def fine(name: str, sentence: str) -> Finding:
    return Finding(name, "ok", sentence)


def refused(
    name: str, expected: str, found: object, remedy: str, *, field: str = "", level: str = "problem"
) -> Finding:
    """Return a finding in the form of our errors."""
    sentence = f"{field or name}: expected {expected}, found {found}; {remedy}"
    return Finding(name, level, sentence)


def installed_versions() -> dict[str, str]:
    """Return the versions of the packages that work together, by their normal names."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"])).lower()
        if _PACKAGES.fullmatch(name) and distribution.version:  # a damaged record has none
            found.setdefault(name, distribution.version)
    return dict(sorted(found.items()))


def import_failure() -> ImportError | None:
    """Return why the package, or dpctl, which its functions import, cannot be imported."""
    if _cli.failure is None:
        try:
            import dpctl  # noqa: F401
        except ImportError as error:
            return error
    return _cli.failure


def check_package() -> Iterator[Finding]:
    failure = import_failure()
    if failure is None:
        yield fine("package", "usm_dlpack is imported")
        return
    remedy = "install what is missing, or build usm_dlpack again for what is installed"
    found = f"{type(failure).__name__}: {failure}"
    yield refused("package", "a package that can be imported", found, remedy)


def needed_libsycl() -> str | None:
    """Return the name of the libsycl that the compiled module is linked with."""
    for folder in usm_dlpack.__path__:
        for file in Path(folder).glob("_core*.so"):
            if match := re.search(rb"libsycl\.so\.\d+", file.read_bytes()):
                return match[0].decode()
    return None


def loaded_libsycl() -> list[str]:
    """Return each libsycl that this process has loaded."""
    words = Path("/proc/self/maps").read_text(errors="replace").split()
    return sorted(set(filter(_LIBSYCL.fullmatch, words)))


def libsycl_files() -> list[str]:
    """Return each libsycl of this process, and of the folders that the loader searches."""
    folders = _cpu_driver.library_folders()
    folders += map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)))
    files = {str(file) for folder in folders for file in folder.glob("libsycl.so.*")}
    return sorted(filter(_LIBSYCL.fullmatch, files.union(loaded_libsycl())))


def majors_of(files: list[str]) -> set[str]:
    return {match[1] for match in map(_LIBSYCL.fullmatch, files) if match}


def refusal_of_two_majors() -> str | None:
    """Return why the objects of one library are not those of another here, or None."""
    loaded = loaded_libsycl()
    if len(majors_of(loaded)) < 2:
        return None
    return next(check_libsycl(needed_libsycl(), loaded)).sentence


def check_libsycl(needed: str | None, files: list[str]) -> Iterator[Finding]:
    """Check whether there is one major version: two in one process do not work together."""
    majors = majors_of(files)
    listed = ", ".join(files) or "none"
    if len(majors) == 1 and needed in (None, *majors):
        yield fine("libsycl", f"one major version of libsycl: {listed}")
        return
    expected = f"{needed} alone, which usm_dlpack needs" if needed else "one major version"
    remedy = (
        "install a SYCL runtime of that major version alone, and packages built for it, and check "
        "LD_LIBRARY_PATH"
    )
    yield refused("libsycl", expected, listed, remedy)


def check_driver() -> Iterator[Finding]:
    """Say which OpenCL driver the loader was told, and whether a file that is named is missing."""
    library = _cpu_driver.find_cpu_driver()
    icds = sorted(_cpu_driver._SYSTEM_DRIVERS.glob("*.icd"))
    named = os.environ.get("OCL_ICD_FILENAMES")
    if named == str(library):
        told = f"{library}, of {_WHEEL}, which usm_dlpack registered"
        told += "; a C++ program needs OCL_ICD_FILENAMES set to it"
    elif named is not None:
        told = f"OCL_ICD_FILENAMES={named}"
    elif "OCL_ICD_VENDORS" in os.environ:
        told = f"OCL_ICD_VENDORS={os.environ['OCL_ICD_VENDORS']}"
    elif icds:
        told = f"of the system: {', '.join(map(str, icds))}"
    elif library is None:
        told = f"none, because {_WHEEL} is not in this environment"
    else:
        told = "none, because USM_DLPACK_CPU_DRIVER=0"
    yield fine("driver", f"OpenCL driver: {told}")
    registered = [(str(icd), icd.read_text(errors="replace").strip()) for icd in icds]
    registered += [("OCL_ICD_FILENAMES", file) for file in filter(None, (named or "").split(":"))]
    for field, file in registered:
        if file.startswith("/") and not Path(file).is_file():
            remedy = "correct the path, or remove it"
            yield refused(
                "driver", "a driver that is there", file, remedy, field=field, level="warning"
            )


def check_devices(found: dict[str, Any]) -> Iterator[Finding]:
    """List the devices into what was found, and check whether there are any that work."""
    if import_failure() is not None or refusal_of_two_majors() is not None:
        return
    from usm_dlpack._cli import _devices  # needs the compiled module

    try:
        devices = found["devices"] = _devices.list_devices()
    except usm_dlpack.ConversionError as error:  # the runtime cannot list them
        yield Finding("devices", "problem", str(error))
        return
    if not devices:
        yield _why_no_device(_devices.hiding_variables())
        return
    works = [device["usable"] for device in devices]
    level = "warning" if any(works) else "problem"
    for device in devices:
        if not device["usable"]:
            expected = "a device that the SYCL runtime can use"
            remedy = "repair its driver, or hide it with ONEAPI_DEVICE_SELECTOR"
            field = f"device {device['device_id']}"
            yield refused("devices", expected, device["failure"], remedy, field=field, level=level)
    yield fine("devices", f"{sum(works)} of {len(works)} root devices work")


def _why_no_device(hiding: dict[str, str]) -> Finding:
    expected = "at least one root device"
    if not hiding and usm_dlpack._core.remedy_of_late_import():
        found = "none, because devices were queried before usm_dlpack was imported"
        remedy = (
            "import usm_dlpack first; here a sitecustomize module or a .pth file made the query"
        )
        return refused("devices", expected, found, remedy)
    library = str(_cpu_driver.find_cpu_driver())  # whose variable was not set by the user
    names = ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER")
    hiding = hiding | {n: os.environ[n] for n in names if os.environ.get(n, library) != library}
    remedy = f"install a driver, such as {_WHEEL}"
    if not hiding:
        return refused("devices", expected, "none", remedy)
    found = f"none with {', '.join(f'{name}={value}' for name, value in hiding.items())}"
    remedy = f"unset or correct {' and '.join(hiding)}, or {remedy}"
    return refused("devices", expected, found, remedy)


def examine() -> dict[str, Any]:
    """Look through the environment; return all that was found, for JSON."""
    package = [*check_package()]  # loads what dpctl needs
    needed, files = needed_libsycl(), libsycl_files()
    found: dict[str, Any] = {
        "python": sys.executable,
        "versions": installed_versions(),
        "libsycl": {"needed": needed, "files": files},
        "devices": [],
    }
    findings = [*package, *check_libsycl(needed, files), *check_driver()]
    findings += check_devices(found)
    return found | {"findings": [asdict(finding) for finding in findings]}


def _print(found: dict[str, Any], colour: bool) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    print(styled(f"Python {version}, {found['python']}", "bold", colour))
    told = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    for line in textwrap.wrap(told, 94, break_on_hyphens=False):
        print(f"  {line}")
    for finding in found["findings"]:
        level = styled(f"{finding['level']:8}", _STYLES[finding["level"]], colour)
        lines = textwrap.wrap(
            finding["sentence"], 86, break_long_words=False, break_on_hyphens=False
        )
        print(f"{level} " + f"\n{'':9}".join(lines))
    problems = sum(finding["level"] == "problem" for finding in found["findings"])
    counted = {0: "No problem", 1: "1 problem"}.get(problems, f"{problems} problems")
    print(styled(f"{counted} found.", "bold", colour))


def show(*, as_json: bool, colour: str) -> int:
    found = examine()
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print(found, wants_colour(sys.stdout, colour))
    return int(any(finding["level"] == "problem" for finding in found["findings"]))
