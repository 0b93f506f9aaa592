# SPDX-License-Identifier: Apache-2.0
"""Checks that the installed releases fit together, beyond what pip checks.

pip does not know that a newer oneMKL calls functions that an older SYCL runtime lacks: the import
of dpnp then fails with an undefined symbol. An older oneMKL was seen to work.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

from usm_dlpack._cli._finding import PIP, Finding, fine, refused

RUNTIME = "intel-sycl-rt"
_ONEMKL = tuple(f"onemkl-sycl-{part}" for part in ("blas", "dft", "lapack", "rng", "vm"))
_OF_COMPILER = ("intel-cmplr-lib-rt", "intel-cmplr-lib-ur", "intel-opencl-rt", "dpcpp-cpp-rt")
_NAMES = (
    *("usm-dlpack", "dpctl", "dpnp", RUNTIME, *_OF_COMPILER, *_ONEMKL, "mkl", "onednn"),
    *("torch", "jax", "apache-tvm-ffi", "nanobind", "numpy"),
)
# The output of `pip check` for a wrong version and for a missing package.
_REQUIREMENT = re.compile(
    r"^(\S+) \S+ has requirement ([^,]+(?:,[^,]+)*), but you have (\S+) (.+)\.$"
)
_MISSING = re.compile(r"^(\S+) \S+ requires (\S+), which is not installed\.$")


def installed_versions() -> dict[str, str]:
    """Return the installed versions of the runtime and of packages that use it."""
    found = {}
    for name in _NAMES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if version:  # a damaged record has none
            found[name] = version
    return found


def release_of(version: str) -> str:
    """Return year and quarter of a version: 2026.1 of 2026.1.2."""
    return ".".join(version.split(".")[:2])


def _check_releases(
    name: str, parts: dict[str, str], expected: str, release: str, level: str
) -> Finding | None:
    """Return a finding if some parts are of another release than wanted."""
    odd = {part: version for part, version in parts.items() if release_of(version) != release}
    if not odd:
        return None
    found = ", ".join(f"{part} {version}" for part, version in odd.items())
    command = f"{PIP} " + " ".join(f'"{part}=={release}.*"' for part in odd)
    return refused(name, expected, found, command, level=level)


def check_onemkl(versions: dict[str, str]) -> list[Finding]:
    """Check whether oneMKL and the SYCL runtime are of one release, as dpnp needs them."""
    parts = {name: versions[name] for name in (*_ONEMKL, "mkl") if name in versions}
    if RUNTIME not in versions or not parts.keys() & set(_ONEMKL):
        return []
    runtime = release_of(versions[RUNTIME])

    def numbers(version: str) -> list[int]:
        return [int(part) for part in release_of(version).split(".") if part.isdecimal()]

    newer = any(numbers(version) > numbers(runtime) for version in parts.values())
    expected = f"oneMKL of the release of {RUNTIME} {versions[RUNTIME]}"
    level = "problem" if newer else "warning"
    odd = _check_releases("releases", parts, expected, runtime, level)
    told = f"oneMKL and the SYCL runtime are both of release {runtime}"
    return [odd or fine("releases", told)]


def check_compiler(versions: dict[str, str]) -> list[Finding]:
    """Check whether the parts of the compiler's runtime are there, and of one release."""
    if RUNTIME not in versions:
        expected = f"the wheel {RUNTIME}, or a SYCL runtime of the system"
        command = f"{PIP} {RUNTIME}"
        return [refused("runtime", expected, "no such wheel", command, level="warning")]
    release = release_of(versions[RUNTIME])
    parts = {name: versions[name] for name in _OF_COMPILER if name in versions}
    expected = f"parts of release {release}, as {RUNTIME} is"
    if odd := _check_releases("runtime", parts, expected, release, "warning"):
        return [odd]
    findings = []
    for name in (RUNTIME, *parts):
        if missing := _missing_libraries(name):
            command = f"{PIP} --force-reinstall --no-deps {name}=={versions[name]}"
            told = (f"the libraries of {name} {versions[name]}", f"none of the name {missing}")
            findings.append(refused("runtime", *told, command, level="warning"))
    return findings or [fine("runtime", f"{RUNTIME} {versions[RUNTIME]}, with all its parts")]


def _missing_libraries(name: str) -> str:
    """Return the names of the libraries that a wheel's record has, and that are not there."""
    try:
        files = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    libraries = [file for file in files if re.search(r"\.so(\.\d+)*$", file.name)]
    return " or ".join(sorted({f.name for f in libraries if not Path(str(f.locate())).exists()}))


def check_requirements() -> list[Finding]:
    """Ask pip whether the installed packages have what they require."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "No module named pip" in done.stderr:
        return [fine("requirements", "not asked: this environment has no pip")]
    findings = []
    for line in done.stdout.splitlines():
        if match := _REQUIREMENT.match(line):
            name, wanted, other, version = match.groups()
            found, package = f"{other} {version}", f'"{wanted}"'
        elif match := _MISSING.match(line):
            name, wanted = match.groups()
            other, found, package = wanted, "none", wanted
        else:
            continue
        if {name.lower(), other.lower()} & set(_NAMES):
            expected = f"{wanted}, as {name} requires"
            findings.append(refused("requirements", expected, found, f"{PIP} {package}"))
    return findings or [fine("requirements", "every package has what it requires")]
