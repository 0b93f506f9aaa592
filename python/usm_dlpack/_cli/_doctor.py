# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack doctor``: what is wrong with an environment, and what fixes it.

This process does not import the runtime, because the package itself may be broken.
"""

import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import usm_dlpack
from usm_dlpack import _cpu_driver
from usm_dlpack._cli import _checks
from usm_dlpack._cli._checks import PIP, REINSTALL, Finding, fine, first_command, refused
from usm_dlpack._cli._child import Probe, import_in_child, list_with
from usm_dlpack._terminal import Progress, styled, wants_colour

_PEERS = ("dpctl", "dpnp", "torch", "sklearnex")
_MAJOR = re.compile(r"libsycl\.so\.(\d+)")
_NEWEST_MAJOR = 9
_STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}
# libsycl.so.9 came with the releases of 2026.
_YEAR_OF_MAJOR_0 = 2017


def _module_file() -> Path | None:
    folders = map(Path, usm_dlpack.__path__)
    return next((file for folder in folders for file in sorted(folder.glob("_core*.so"))), None)


def _major(text: str) -> int | None:
    match = _MAJOR.search(text)
    return int(match[1]) if match else None


def libsycl_files() -> list[Path]:
    """Return each libsycl in the folders that the loader or the package searches."""
    folders = _cpu_driver.library_folders()
    folders += map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)))
    files = [file for folder in folders for file in sorted(folder.glob("libsycl.so.*"))]
    found = {file.resolve(): file for file in files if re.fullmatch(_MAJOR, file.name)}
    return list(found.values())


def _command_for_libsycl(major: int) -> str:
    """Return the command that installs a libsycl, even if its wheel is recorded without files."""
    year = major + _YEAR_OF_MAJOR_0
    wheel = f'"{_checks.RUNTIME}=={year}.*"'
    version = _checks.installed_versions().get(_checks.RUNTIME, "")
    if version.startswith(f"{year}."):
        return f"{REINSTALL} {wheel}"
    return f"{PIP} {wheel} dpctl"


def _source_of_package() -> str | None:
    """Return the source that pip installed this package from, if recorded and still there."""
    try:
        text = importlib.metadata.distribution("usm-dlpack").read_text("direct_url.json")
        record = json.loads(text or "")
        url = str(record["url"])
        if vcs := record.get("vcs_info"):
            url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    except (importlib.metadata.PackageNotFoundError, KeyError, TypeError, ValueError):
        return None
    if url.startswith("file:") and not Path(url2pathname(urlsplit(url).path)).exists():
        return None
    return url


def check_package(file: Path | None, major: int | None, probe: Probe) -> list[Finding]:
    if probe.failure is None:
        return [fine("package", f"usm_dlpack is built for libsycl.so.{major}, and is imported")]
    if major is None or "signal" in probe.failure or "_core" in probe.failure:
        source = _source_of_package()
        found = "none" if file is None else f"one that cannot be loaded: {probe.failure}"
        expected = "a compiled module that needs libsycl"
        expected += "" if source else ", which pip builds in a clone of the repository"
        return [refused("package", expected, found, f"{REINSTALL} {shlex.quote(source or '.')}")]
    there = {_major(path.name): path for path in libsycl_files()}
    command = _command_for_libsycl(major)
    if major in there:
        command = f"{PIP} --force-reinstall numpy dpctl"
        if f"libsycl.so.{major}:" in probe.failure:  # the loader does not find it
            command = f"export LD_LIBRARY_PATH={there[major].parent}"
    expected = f"a module built for libsycl.so.{major} that can be imported"
    libraries = ", ".join(sorted(path.name for path in there.values())) or "no libsycl"
    return [refused("package", expected, f"{libraries}, and {probe.failure}", command)]


def check_libsycl(major: int, probes: dict[str, Probe]) -> list[Finding]:
    """Check whether there is one libsycl: in the environment, and in each process."""
    files, findings = libsycl_files(), []
    command = _command_for_libsycl(major)
    if odd := [file for file in files if _major(file.name) != major]:
        variable = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        outside = any(str(file.parent) in variable for file in odd)
        expected = f"libsycl.so.{major} alone, for which usm_dlpack is built"
        mends = "unset LD_LIBRARY_PATH" if outside else command
        findings.append(refused("libsycl", expected, ", ".join(map(str, odd)), mends))
    for name, probe in probes.items():
        loaded = {str(Path(path).resolve()) for path in probe.libraries}
        if len(loaded) > 1:
            expected = f"one libsycl in a process that imports {name}"
            findings.append(refused("libsycl", expected, ", ".join(sorted(loaded)), command))
    loaded = {path for probe in probes.values() for path in probe.libraries}
    one = ", ".join(map(str, files)) or ", ".join(sorted(loaded))
    if not one:
        expected = "one libsycl, for which usm_dlpack is built"
        findings.append(refused("libsycl", expected, "none", command))
    return findings or [fine("libsycl", f"one libsycl: {one}")]


def check_peers(probes: dict[str, Probe], earlier: list[Finding]) -> list[Finding]:
    findings = []
    for name, probe in probes.items():
        if probe.failure is None:
            findings.append(fine("peers", f"{name} is imported"))
            continue
        command = first_command(earlier) or f"{PIP} --force-reinstall {name}"
        findings.append(refused("peers", f"{name} to be imported", probe.failure, command))
    return findings


def _import_all(peers: list[str], progress: Progress) -> dict[str, Probe]:
    """Import the package and its peers in one process; one by one only if that fails."""
    names = ["usm_dlpack", *peers]
    progress.show("importing usm_dlpack and its peers")
    together = import_in_child(names)
    if together.failure is None:
        return dict.fromkeys(names, together)
    probes = {}
    for name in names:
        progress.show(f"importing {name}")
        probes[name] = import_in_child([name])
    return probes


def examine(progress: Progress) -> dict[str, Any]:
    """Look through the environment; return all that was found, for JSON."""
    versions = _checks.installed_versions()
    peers = [name for name in _PEERS if name in versions or importlib.util.find_spec(name)]
    file = _module_file()
    # The compiled module names the libsycl that it needs.
    major = _major(file.read_bytes().decode("latin-1")) if file else None
    probes = _import_all(peers, progress)
    progress.show("listing devices")
    devices, failure = [], None
    try:
        devices = list_with({})
    except RuntimeError as error:
        failure = str(error)
    findings = check_package(file, major, probes["usm_dlpack"])
    findings += check_libsycl(major or _NEWEST_MAJOR, probes)
    findings += _checks.check_releases(versions)
    progress.show("asking pip")
    try:
        findings += _checks.check_requirements()
    except (OSError, subprocess.TimeoutExpired) as error:
        findings.append(fine("requirements", f"not asked: {error}"))
    driver = _checks.check_driver()
    cause = first_command(findings + driver if failure else driver)
    findings += driver + _checks.check_devices(devices, failure, cause)
    del probes["usm_dlpack"]
    findings += check_peers(probes, findings)  # last: dpnp needs a device
    return {
        "python": sys.executable,
        "versions": versions,
        "module": {"file": None if file is None else str(file), "libsycl": major},
        "libsycl": [str(path) for path in libsycl_files()],
        "devices": devices,
        "findings": [asdict(finding) for finding in findings],
    }


def _print(found: dict[str, Any], colour: bool) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    print(styled(f"Python {version}, {found['python']}", "bold", colour))
    told = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    for line in textwrap.wrap(told, 94, break_on_hyphens=False):
        print(f"  {line}")
    for finding in found["findings"]:
        level = styled(f"{finding['level']:8}", _STYLES[finding["level"]], colour)
        sentence = finding["sentence"].rsplit("; run `", 1)[0]
        lines = textwrap.wrap(sentence, 86, break_long_words=False, break_on_hyphens=False)
        print(f"{level} " + f"\n{'':9}".join(lines))
        if finding["command"] is not None:
            print(f"{'':9}run: {styled(finding['command'], 'cyan', colour)}")
    problems = sum(finding["level"] == "problem" for finding in found["findings"])
    counted = {0: "No problem", 1: "1 problem"}.get(problems, f"{problems} problems")
    print(styled(f"{counted} found.", "bold", colour))


def show(*, as_json: bool, colour: str) -> int:
    with Progress() as progress:
        found = examine(progress)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print(found, wants_colour(sys.stdout, colour))
    return int(any(finding["level"] == "problem" for finding in found["findings"]))
