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

from usm_dlpack._cli._finding import PIP, Finding, fine, refused

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
