# SPDX-License-Identifier: Apache-2.0
"""Whether the installed releases fit each other: what pip knows, and what it does not.

pip does not know that a oneMKL of a newer release calls functions that an older SYCL runtime does
not have: the import of dpnp ends with an undefined symbol. An older oneMKL was seen to work.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

from usm_dlpack._finding import PIP, Finding, fine, refused

RUNTIME = "intel-sycl-rt"
ONEMKL = tuple(f"onemkl-sycl-{part}" for part in ("blas", "dft", "lapack", "rng", "vm"))
_OF_COMPILER = ("intel-cmplr-lib-rt", "intel-cmplr-lib-ur", "intel-opencl-rt", "dpcpp-cpp-rt")
NAMES = (
    *("usm-dlpack", "dpctl", "dpnp", RUNTIME, *_OF_COMPILER, *ONEMKL, "mkl", "onednn"),
    *("torch", "jax", "apache-tvm-ffi", "nanobind", "numpy"),
)
_REQUIREMENT = re.compile(
    r"^(\S+) \S+ has requirement ([^,]+(?:,[^,]+)*), but you have (\S+) (.+)\.$"
)
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_MISSING = re.compile(r"^(\S+) \S+ requires (\S+), which is not installed\.$")


def installed_versions() -> dict[str, str]:
    """Return the versions of what is installed of the runtime and of those that use it."""
    found = {}
    for name in NAMES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if isinstance(version, str):  # None of a damaged one
            found[name] = version
    return found


def release_of(version: str) -> str:
    """Return year and quarter of a version: 2026.1 of 2026.1.2."""
    return ".".join(version.split(".")[:2])


def _numbers(version: str) -> list[int]:
    return [int(part) for part in release_of(version).split(".") if part.isdecimal()]


def _with_release(names: list[str], release: str) -> str:
    return f"{PIP} " + " ".join(f'"{name}=={release}.*"' for name in names)


def check_onemkl(versions: dict[str, str]) -> list[Finding]:
    """Look whether oneMKL and the SYCL runtime are of one release, as dpnp needs them."""
    parts = {name: versions[name] for name in (*ONEMKL, "mkl") if name in versions}
    if RUNTIME not in versions or not parts.keys() & set(ONEMKL):
        return []
    runtime = release_of(versions[RUNTIME])
    releases = {release_of(version) for version in parts.values()}
    if releases == {runtime}:
        return [fine("releases", f"oneMKL and the SYCL runtime are both of release {runtime}")]
    odd = {name: version for name, version in parts.items() if release_of(version) != runtime}
    command = _with_release(list(odd), runtime)
    found = ", ".join(f"{name} {version}" for name, version in odd.items())
    expected = f"oneMKL of the release of {RUNTIME} {versions[RUNTIME]}"
    newer = any(_numbers(version) > _numbers(runtime) for version in odd.values())
    level = "problem" if newer else "warning"
    return [refused("releases", expected, found, command, level=level)]


def _missing_libraries(name: str) -> list[str]:
    """Return the libraries that the record of a wheel names and that are not there."""
    try:
        files = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    libraries = [file for file in files if _LIBRARY.search(file.name)]
    return sorted({file.name for file in libraries if not Path(str(file.locate())).exists()})


def check_files(versions: dict[str, str]) -> list[Finding]:
    """Look whether the libraries of the runtime's wheels are where their records say."""
    findings = []
    for name in (RUNTIME, *_OF_COMPILER):
        missing = _missing_libraries(name) if name in versions else []
        if missing:
            command = f"{PIP} --force-reinstall --no-deps {name}=={versions[name]}"
            found = "none of the name " + " or ".join(missing)
            expected = f"the libraries of {name} {versions[name]}"
            findings.append(refused("runtime", expected, found, command, level="warning"))
    told = f"{RUNTIME} {versions[RUNTIME]}, with all its parts"
    return findings or [fine("runtime", told)]


def check_compiler(versions: dict[str, str]) -> list[Finding]:
    """Look whether the pieces of the compiler's runtime are of one release."""
    if RUNTIME not in versions:
        command = f"{PIP} {RUNTIME}"
        expected = f"the wheel {RUNTIME}, or a SYCL runtime of the system"
        return [refused("runtime", expected, "no such wheel", command, level="warning")]
    release = release_of(versions[RUNTIME])
    odd = [
        name for name in _OF_COMPILER if name in versions and release_of(versions[name]) != release
    ]
    if not odd:
        return check_files(versions)
    found = ", ".join(f"{name} {versions[name]}" for name in odd)
    expected = f"parts of release {release}, as {RUNTIME} is"
    return [refused("runtime", expected, found, _with_release(odd, release), level="warning")]


def check_requirements() -> list[Finding]:
    """Ask pip whether the installed packages have what they require."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "No module named pip" in done.stderr:
        return [fine("requirements", "not asked: this environment has no pip")]
    findings = []
    for line in done.stdout.splitlines():
        if found := _REQUIREMENT.match(line):
            name, wanted, other, version = found.groups()
            sentence = (f"{wanted}, as {name} requires", f"{other} {version}")
            command = f'{PIP} "{wanted}"'
        elif found := _MISSING.match(line):
            name, other = found.groups()
            sentence = (f"{other}, as {name} requires", "none")
            command = f"{PIP} {other}"
        else:
            continue
        if {name.lower(), other.lower()} & set(NAMES):
            findings.append(refused("requirements", *sentence, command))
    return findings or [fine("requirements", "every package has what it requires")]
