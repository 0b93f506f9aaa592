# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack doctor``: what is wrong with an environment, and what fixes it.

This process does not import the runtime, because the package itself may be broken.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import site
import subprocess
import sys
import sysconfig
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import usm_dlpack
from usm_dlpack._cli import _doctor_driver, _doctor_releases
from usm_dlpack._cli._child import Probe, import_in_child
from usm_dlpack._cli._finding import PIP, Finding, fine, first_command, refused
from usm_dlpack._terminal import Progress, styled, wants_colour

_PEERS = ("dpctl", "dpnp", "torch", "sklearnex")
_MAJOR = re.compile(r"libsycl\.so\.(\d+)")
_STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}
# libsycl.so.9 came with the releases of 2026.
_YEAR_OF_MAJOR_0 = 2017


def _module_file() -> Path | None:
    folders = map(Path, usm_dlpack.__path__)
    return next((file for folder in folders for file in sorted(folder.glob("_core*.so"))), None)


def _major(text: str | Path) -> int | None:
    match = _MAJOR.search(str(text))
    return int(match[1]) if match else None


def _major_needed(file: Path | None) -> int | None:
    """Return the major version of the libsycl that the compiled module names."""
    return None if file is None else _major(file.read_bytes().decode("latin-1"))


def libsycl_files() -> list[Path]:
    """Return each libsycl in the folders that the loader or the package searches."""
    folders = [Path(sysconfig.get_path("data"), "lib")]
    folders += [Path(site.getuserbase(), "lib")] if site.ENABLE_USER_SITE else []
    folders += map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)))
    files = [file for folder in folders for file in sorted(folder.glob("libsycl.so.*"))]
    found = {file.resolve(): file for file in files if re.fullmatch(_MAJOR, file.name)}
    return list(found.values())


def _release_for(major: int) -> str:
    return f'"{_doctor_releases.RUNTIME}=={major + _YEAR_OF_MAJOR_0}.*"'


def _command_for_libsycl(major: int) -> str:
    """Return the command that installs a libsycl, even if its wheel is recorded without files."""
    version = _doctor_releases.installed_versions().get(_doctor_releases.RUNTIME, "")
    if version.startswith(f"{major + _YEAR_OF_MAJOR_0}."):
        return f"{PIP} --force-reinstall --no-deps {_release_for(major)}"
    return f"{PIP} {_release_for(major)} dpctl"


def _place_of_package() -> str | None:
    """Return the source that pip installed this package from, if recorded and still there."""
    try:
        text = importlib.metadata.distribution("usm-dlpack").read_text("direct_url.json")
        record = json.loads(text or "")
        url = str(record["url"])
        if "vcs_info" in record:
            told = record["vcs_info"]
            return shlex.quote(f"{told['vcs']}+{url}@{told['commit_id']}")
    except (importlib.metadata.PackageNotFoundError, KeyError, TypeError, ValueError):
        return None
    if not url.startswith("file:"):
        return shlex.quote(url)
    path = url2pathname(urlsplit(url).path)
    editable = "-e " if record.get("dir_info", {}).get("editable") else ""
    return editable + shlex.quote(path) if Path(path).exists() else None


def check_package(file: Path | None, major: int | None, probe: Probe) -> list[Finding]:
    """Check whether the package can be imported, and with which libsycl."""
    damaged = major is None or "signal" in (probe.failure or "") or "_core" in (probe.failure or "")
    if damaged and (file is None or probe.failure):
        place = _place_of_package()
        command = f"{PIP} --force-reinstall --no-deps {place or '.'}"
        found = "none" if file is None else f"one that cannot be loaded: {probe.failure}"
        expected = "a compiled module that needs libsycl"
        expected += "" if place else ", which pip builds in a clone of the repository"
        return [refused("package", expected, found, command)]
    if probe.failure is None:
        return [fine("package", f"usm_dlpack is built for libsycl.so.{major}, and is imported")]
    there = {_major(path.name): path for path in libsycl_files()}
    command = _command_for_libsycl(major or 9)
    if major in there:
        command = f"{PIP} --force-reinstall numpy dpctl"
        if f"libsycl.so.{major}:" in probe.failure:  # the loader does not find it
            command = f"export LD_LIBRARY_PATH={there[major].parent}"
    expected = f"a module built for libsycl.so.{major} that can be imported"
    libraries = ", ".join(sorted(path.name for path in there.values())) or "no libsycl"
    return [refused("package", expected, f"{libraries}, and {probe.failure}", command)]


def check_libsycl(major: int | None, probes: dict[str, Probe]) -> list[Finding]:
    """Check whether there is one libsycl: in the environment, and in each process."""
    findings = []
    files, wanted = libsycl_files(), major or 9
    odd = [file for file in files if _major(file.name) != major] if major else []
    if odd:
        variable = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        outside = any(str(file.parent) in variable for file in odd)
        command = "unset LD_LIBRARY_PATH" if outside else f"{PIP} {_release_for(wanted)} dpctl"
        expected = f"libsycl.so.{major} alone, for which usm_dlpack is built"
        findings.append(refused("libsycl", expected, ", ".join(map(str, odd)), command))
    for name, probe in probes.items():
        loaded = {str(Path(path).resolve()) for path in probe.libraries}
        if len(loaded) > 1:
            command = f"{PIP} --force-reinstall {_release_for(wanted)}"
            expected = f"one libsycl in a process that imports {name}"
            findings.append(refused("libsycl", expected, ", ".join(sorted(loaded)), command))
    if findings:
        return findings
    told = {path for probe in probes.values() for path in probe.libraries}
    if not (one := ", ".join(map(str, files)) or ", ".join(sorted(told))):
        expected = "one libsycl, for which usm_dlpack is built"
        return [refused("libsycl", expected, "none", _command_for_libsycl(wanted))]
    return [fine("libsycl", f"one libsycl: {one}")]


def check_peers(probes: dict[str, Probe], earlier: list[Finding]) -> list[Finding]:
    """Check whether the libraries that share the runtime can be imported."""
    versions = _doctor_releases.installed_versions()
    findings = []
    for name, probe in probes.items():
        told = f"{name} {versions.get(name, '')}"
        if probe.failure is None:
            findings.append(fine("peers", f"{told} is imported"))
            continue
        command = first_command(earlier) or f"{PIP} --force-reinstall {name}"
        expected = f"{told} that can be imported"
        findings.append(refused("peers", expected, probe.failure, command))
    return findings


def _import_all(peers: list[str], progress: Progress) -> tuple[Probe, dict[str, Probe]]:
    """Import the package and its peers in one process; one by one only if that fails."""
    progress.show("importing usm_dlpack and its peers")
    together = import_in_child(["usm_dlpack", *peers])
    if together.failure is None or not peers:
        return together, dict.fromkeys(peers, together)
    probes = {}
    for name in ("usm_dlpack", *peers):
        progress.show(f"importing {name}")
        probes[name] = import_in_child([name])
    return probes.pop("usm_dlpack"), probes


def examine(progress: Progress) -> dict[str, Any]:
    """Look through the environment; return all that was found, for JSON."""
    versions = _doctor_releases.installed_versions()
    peers = [name for name in _PEERS if name in versions or importlib.util.find_spec(name)]
    file = _module_file()
    major = _major_needed(file)
    own, probes = _import_all(peers, progress)
    progress.show("listing devices")
    devices, failure = _doctor_driver.list_devices()
    findings = check_package(file, major, own)
    findings += check_libsycl(major, {"usm_dlpack": own} | probes)
    findings += _doctor_releases.check_compiler(versions)
    findings += _doctor_releases.check_onemkl(versions)
    progress.show("asking pip")
    try:
        findings += _doctor_releases.check_requirements()
    except (OSError, subprocess.TimeoutExpired) as error:
        findings.append(fine("requirements", f"not asked: {error}"))
    findings += check_peers(probes, findings)
    driver = _doctor_driver.check_driver(devices)
    cause = first_command(findings if failure else driver)
    findings += driver + _doctor_driver.check_devices(devices, failure, cause)
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
        print(f"{level} {lines[0]}")
        for line in lines[1:]:
            print(f"{'':9}{line}")
        if finding["command"] is not None:
            print(f"{'':9}run: {styled(finding['command'], 'cyan', colour)}")
    problems = sum(finding["level"] == "problem" for finding in found["findings"])
    counted = {0: "No problem", 1: "1 problem"}.get(problems, f"{problems} problems")
    print(styled(f"{counted} found.", "bold", colour))


def show(*, as_json: bool, colour: str) -> int:
    """Examine the environment, print what was found; return 1 if there is a problem."""
    with Progress() as progress:
        found = examine(progress)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print(found, wants_colour(sys.stdout, colour))
    return int(any(finding["level"] == "problem" for finding in found["findings"]))
