# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack doctor``: what is wrong with an environment, and what mends it.

Nothing of the runtime is imported in this process: the package itself may be what cannot be.
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
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from usm_dlpack import _doctor_driver, _releases
from usm_dlpack._elf import needed_libraries
from usm_dlpack._finding import PIP, Finding, fine, refused
from usm_dlpack._probe import Probe, import_in_child
from usm_dlpack._terminal import Progress, styled, wants_colour

_PEERS = ("dpctl", "dpnp", "torch", "sklearnex")
_LIBSYCL = re.compile(r"libsycl\.so\.(\d+)$")
_STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}
# libsycl.so.9 came with the releases of 2026: the wheels' years are ahead of the majors by this.
_YEAR_OF_MAJOR_0 = 2017


def _module_file() -> Path | None:
    return next(iter(sorted(Path(__file__).parent.glob("_core*.so"))), None)


def _major_needed(file: Path | None) -> int | None:
    """Return the major version of libsycl that the compiled module is built for."""
    try:
        names = needed_libraries(file) if file is not None else []
    except (OSError, ValueError):
        return None
    found = (_LIBSYCL.search(name) for name in names)
    return next((int(match[1]) for match in found if match), None)


def libsycl_files() -> list[Path]:
    """Return each libsycl where the loader or the package looks for one."""
    folders = [Path(sysconfig.get_path("data"), "lib")]
    if site.ENABLE_USER_SITE:
        folders.append(Path(site.getuserbase(), "lib"))
    folders += [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p]
    found = {}
    for folder in folders:
        for file in sorted(folder.glob("libsycl.so.*")):
            if _LIBSYCL.search(file.name):
                found[file.resolve()] = file
    return list(found.values())


def _major(path: str | Path) -> int | None:
    match = re.search(r"libsycl\.so\.(\d+)", Path(path).name)
    return int(match[1]) if match else None


def _release_for(major: int) -> str:
    return f'"{_releases.RUNTIME}=={major + _YEAR_OF_MAJOR_0}.*"'


def _command_for_libsycl(major: int) -> str:
    """Return what installs a libsycl, also where its wheel is recorded and its files are gone."""
    version = _releases.installed_versions().get(_releases.RUNTIME, "")
    if version.startswith(f"{major + _YEAR_OF_MAJOR_0}."):
        return f"{PIP} --force-reinstall --no-deps {_release_for(major)}"
    return f"{PIP} {_release_for(major)} dpctl"


def _place_of_package() -> str | None:
    """Return from where pip installed this package, if it recorded that and it is still there."""
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
    if not Path(path).exists():
        return None
    editable = "-e " if record.get("dir_info", {}).get("editable") else ""
    return editable + shlex.quote(path)


def check_package(file: Path | None, major: int | None, probe: Probe) -> list[Finding]:
    """Look whether the package can be imported, and with which libsycl."""
    if file is None or major is None:
        place = _place_of_package()
        command = f"{PIP} --force-reinstall --no-deps {place or '.'}"
        found = "none" if file is None else "one that names none"
        expected = "a compiled module that needs libsycl"
        if place is None:
            expected += ", which pip builds in a clone of the repository"
        return [refused("package", expected, found, command)]
    if probe.failure is None:
        return [fine("package", f"usm_dlpack is built for libsycl.so.{major}, and is imported")]
    majors = {_major(path) for path in libsycl_files()}
    there = sorted(number for number in majors if number is not None)
    command = _command_for_libsycl(major)
    if major in there and f"libsycl.so.{major}:" in probe.failure:  # the loader does not find it
        folder = next(path.parent for path in libsycl_files() if _major(path) == major)
        command = f"export LD_LIBRARY_PATH={folder}"
    elif major in there:
        command = f"{PIP} --force-reinstall numpy dpctl"
    expected = f"a module built for libsycl.so.{major} that can be imported"
    libraries = ", ".join(f"libsycl.so.{number}" for number in there) or "no libsycl"
    return [refused("package", expected, f"{libraries}, and {probe.failure}", command)]


def check_libsycl(major: int | None, probes: dict[str, Probe]) -> list[Finding]:
    """Look whether there is one libsycl: in the environment, and in each process."""
    findings = []
    files = libsycl_files()
    majors = {_major(file) for file in files}
    if len(majors) > 1 or (major is not None and majors and major not in majors):
        odd = [file for file in files if _major(file) != major]
        in_variable = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p]
        outside = any(str(file.parent) in in_variable for file in odd)
        command = "unset LD_LIBRARY_PATH" if outside else f"{PIP} {_release_for(major or 9)} dpctl"
        expected = f"libsycl.so.{major} alone, for which usm_dlpack is built"
        findings.append(refused("libsycl", expected, ", ".join(map(str, odd)), command))
    for name, probe in probes.items():
        loaded = {str(Path(path).resolve()) for path in probe.libraries if _major(path) is not None}
        if len(loaded) > 1:
            command = f"{PIP} --force-reinstall {_release_for(major or 9)}"
            expected = f"one libsycl in a process that imports {name}"
            findings.append(refused("libsycl", expected, ", ".join(sorted(loaded)), command))
    if findings:
        return findings
    loaded = {path for probe in probes.values() for path in probe.libraries if _major(path)}
    told = ", ".join(map(str, files)) or ", ".join(sorted(loaded))
    if not told:
        expected = "one libsycl, for which usm_dlpack is built"
        return [refused("libsycl", expected, "none", _command_for_libsycl(major or 9))]
    return [fine("libsycl", f"one libsycl: {told}")]


def first_command(findings: list[Finding]) -> str | None:
    """Return what mends the first problem, which may be the cause of those after it."""
    commands = (finding.command for finding in findings if finding.level == "problem")
    return next(commands, None)


def check_peers(probes: dict[str, Probe], earlier: list[Finding]) -> list[Finding]:
    """Look whether the libraries that share the runtime can be imported."""
    versions = _releases.installed_versions()
    findings = []
    for name, probe in probes.items():
        if probe.failure is None:
            findings.append(fine("peers", f"{name} {versions.get(name, '')} is imported"))
            continue
        command = first_command(earlier) or f"{PIP} --force-reinstall {name}"
        expected = f"{name} {versions.get(name, '')} that can be imported"
        findings.append(refused("peers", expected, probe.failure, command))
    return findings


def examine(progress: Progress) -> dict[str, Any]:
    """Look through the environment; return all that was found, for JSON."""
    versions = _releases.installed_versions()
    peers = [
        name for name in _PEERS if name in versions or importlib.util.find_spec(name) is not None
    ]
    file = _module_file()
    major = _major_needed(file)
    progress.show("importing usm_dlpack")
    own = import_in_child(["usm_dlpack"])
    probes = {}
    for name in peers:
        progress.show(f"importing {name}")
        probes[name] = import_in_child([name])
    imported = [name for name in peers if probes[name].failure is None]
    together = {"usm_dlpack": own}
    if imported and own.failure is None:
        progress.show("importing all of them together")
        together["them together"] = import_in_child(["usm_dlpack", *imported])
    progress.show("listing devices")
    devices, failure = _doctor_driver.list_devices()
    findings = check_package(file, major, own)
    findings += check_libsycl(major, probes | together)
    findings += _releases.check_compiler(versions) + _releases.check_onemkl(versions)
    progress.show("asking pip")
    try:
        findings += _releases.check_requirements()
    except (OSError, subprocess.TimeoutExpired) as error:
        findings.append(fine("requirements", f"not asked: {error}"))
    findings += check_peers(probes, findings)
    driver = _doctor_driver.check_driver(devices)
    mended = first_command(findings if failure else driver)
    findings += driver + _doctor_driver.check_devices(devices, failure, mended)
    return {
        "python": sys.executable,
        "versions": versions,
        "module": {"file": None if file is None else str(file), "libsycl": major},
        "libsycl": [str(path) for path in libsycl_files()],
        "devices": devices,
        "findings": [finding.as_dict() for finding in findings],
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
