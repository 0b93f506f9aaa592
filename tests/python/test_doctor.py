# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack doctor``: finds what is really wrong, and its command mends it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clean_environment
import pytest
import usm_dlpack
from refusals import SENTENCE
from usm_dlpack import _driver
from usm_dlpack._cli import _child, _doctor, _doctor_driver, _doctor_releases, _finding

# Each starts several processes.
pytestmark = pytest.mark.extended

DOCTOR = ("-m", "usm_dlpack", "doctor")
PACKAGE = Path(usm_dlpack.__file__).parent
LEVELS = {"ok", "warning", "problem"}


def examined(run: Callable[..., Any], **variables: str) -> tuple[int, Any]:
    """Return exit status and what was found, of a new process."""
    done = run(arguments=(*DOCTOR, "--json"), **variables)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    for finding in found["findings"]:
        assert finding["level"] in LEVELS
        assert (finding["command"] is None) is (finding["level"] == "ok")
        if finding["level"] != "ok":
            sentence = finding["sentence"]
            assert SENTENCE.fullmatch(re.sub("^device ", "device_", sentence)), sentence
            assert sentence.endswith(f"; run `{finding['command']}`")
    problems = [f for f in found["findings"] if f["level"] == "problem"]
    assert done.returncode == bool(problems)
    return done.returncode, found


def troubles(found: Any) -> list[tuple[str, str, str]]:
    """Return level, name and command of all findings that are not well."""
    rows = ((f["level"], f["name"], f["command"]) for f in found["findings"])
    return [row for row in rows if row[0] != "ok"]


def mended(command: str, **variables: str) -> Any:
    """Run a command of the doctor's in a shell, then the doctor in it; return what that found."""
    done = subprocess.run(
        ["sh", "-c", f'{command}\nexec "$0" "$@" --json', sys.executable, *DOCTOR],
        env=clean_environment.without() | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout)


def test_a_whole_environment_has_no_trouble(new_process: Callable[..., Any]) -> None:
    status, found = examined(new_process)
    assert troubles(found) == []
    assert status == 0
    names = {finding["name"] for finding in found["findings"]}
    assert names >= {"package", "libsycl", "runtime", "requirements", "peers", "driver", "devices"}
    assert found["versions"]["dpctl"] == importlib.metadata.version("dpctl")
    assert found["versions"]["intel-sycl-rt"] == importlib.metadata.version("intel-sycl-rt")
    (file,) = found["libsycl"]
    assert file.endswith(f"libsycl.so.{found['module']['libsycl']}")
    assert len(found["devices"]) == 1


def test_the_text_says_the_same_in_lines(new_process: Callable[..., Any]) -> None:
    done = new_process(arguments=DOCTOR, OCL_ICD_FILENAMES="/no/such/driver.so")
    assert done.returncode == 1
    assert "\nproblem  OCL_ICD_FILENAMES: expected paths of drivers, found no file" in done.stdout
    assert "\n         run: unset OCL_ICD_FILENAMES\n" in done.stdout
    assert done.stdout.rstrip().endswith("2 problems found.")
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"OCL_ICD_FILENAMES": "/no/such/driver.so"}, "driver"),
        ({"OCL_ICD_VENDORS": "/no/such/folder"}, "driver"),
        ({"OCL_ICD_VENDORS": "/"}, "driver"),
        ({"USM_DLPACK_CPU_DRIVER": "0"}, "driver"),
        ({"ONEAPI_DEVICE_SELECTOR": "level_zero:*"}, "devices"),
        ({"ONEAPI_DEVICE_SELECTOR": "bogus"}, "devices"),
        ({"SYCL_DEVICE_ALLOWLIST": "DeviceType:gpu"}, "devices"),
    ],
)
def test_a_variable_that_hides_the_devices_is_found_and_its_command_mends_it(
    new_process: Callable[..., Any], variables: dict[str, str], name: str
) -> None:
    status, found = examined(new_process, **variables)
    assert status == 1
    (variable,) = variables
    assert ("problem", name, f"unset {variable}") in troubles(found)
    assert {command for _, _, command in troubles(found)} == {f"unset {variable}"}
    assert troubles(mended(f"unset {variable}", **variables)) == []


def test_a_device_that_fails_is_a_warning_and_its_command_hides_it(
    new_process: Callable[..., Any], driver: Path, driver_copies: Any
) -> None:
    drivers = {"OCL_ICD_FILENAMES": f"{driver}:{driver_copies['broken']}"}
    status, found = examined(new_process, **drivers)
    assert status == 0
    ((level, name, command),) = troubles(found)
    assert (level, name) == ("warning", "devices")
    assert found["devices"][1]["failure"]
    healed = mended(command, **drivers)
    assert troubles(healed) == []
    assert len(healed["devices"]) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OCL_ICD_FILENAMES", ""),
        ("OCL_ICD_FILENAMES", "/bin/true"),
        ("OCL_ICD_FILENAMES", "libnothere.so"),
        ("OCL_ICD_VENDORS", "{folder}"),
    ],
)
@pytest.mark.parametrize("selector", [{}, {"ONEAPI_DEVICE_SELECTOR": "opencl:*"}])
def test_a_variable_that_names_no_driver_is_found_and_its_command_mends_it(
    new_process: Callable[..., Any], tmp_path: Path, name: str, value: str, selector: Any
) -> None:
    (tmp_path / "missing.icd").write_text("/no/such/driver.so\n")
    variables = {name: value.format(folder=tmp_path), **selector}
    status, found = examined(new_process, **variables)
    assert status == 1
    command = f"unset {name}"
    assert troubles(found) == [("problem", "driver", command), ("problem", "devices", command)]
    assert troubles(mended(command, **variables)) == []


def test_variables_that_name_no_driver_together_are_unset_together(
    new_process: Callable[..., Any],
) -> None:
    variables = {"OCL_ICD_FILENAMES": "", "USM_DLPACK_CPU_DRIVER": "0"}
    _, found = examined(new_process, **variables)
    command = "unset OCL_ICD_FILENAMES USM_DLPACK_CPU_DRIVER"
    assert troubles(found) == [("problem", "driver", command), ("problem", "devices", command)]
    assert troubles(mended(command, **variables)) == []


def test_a_selector_that_hides_the_devices_of_a_driver_that_was_named_is_blamed(
    new_process: Callable[..., Any], driver: Path
) -> None:
    variables = {"OCL_ICD_FILENAMES": str(driver), "ONEAPI_DEVICE_SELECTOR": "level_zero:*"}
    _, found = examined(new_process, **variables)
    assert troubles(found) == [("problem", "devices", "unset ONEAPI_DEVICE_SELECTOR")]


@pytest.mark.parametrize(
    ("selector", "command"),
    [
        ("opencl:1,2", 'export ONEAPI_DEVICE_SELECTOR="opencl:2"'),
        ("opencl:0,1", 'export ONEAPI_DEVICE_SELECTOR="opencl:0"'),
        ("!level_zero:*", 'export ONEAPI_DEVICE_SELECTOR="opencl:0;opencl:2"'),
        ("opencl:1", "unset ONEAPI_DEVICE_SELECTOR"),
    ],
)
def test_a_device_that_fails_is_hidden_by_its_place_without_the_selector(
    new_process: Callable[..., Any],
    driver: Path,
    driver_copies: Any,
    selector: str,
    command: str,
) -> None:
    drivers = os.pathsep.join(map(str, (driver, driver_copies["broken"], driver_copies["second"])))
    variables = {"OCL_ICD_FILENAMES": drivers, "ONEAPI_DEVICE_SELECTOR": selector}
    status, found = examined(new_process, **variables)
    works = [device["failure"] is None for device in found["devices"]]
    assert works.count(False) == 1
    assert status == (not any(works))
    level = "warning" if any(works) else "problem"
    assert troubles(found) == [(level, "devices", command)]
    healed = mended(command, **variables)
    if command.startswith("export"):
        assert troubles(healed) == []
        assert len(healed["devices"]) == works.count(True)
    else:
        assert [d["failure"] is None for d in healed["devices"]] == [True, False, True]


def test_where_no_device_works_the_devices_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEAPI_DEVICE_SELECTOR", raising=False)
    device = {"backend": "opencl", "name": "x", "failure": "no context"}
    first, last = _doctor_driver.check_devices([device], None, None)
    assert (first.level, first.command) == ("problem", "python -m usm_dlpack devices")
    assert last.sentence == "0 of 1 root devices work"


def test_places_of_devices_are_counted_in_each_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEAPI_DEVICE_SELECTOR", raising=False)
    devices = [
        {"backend": backend, "name": backend, "failure": failure}
        for backend, failure in (
            ("level_zero", None),
            ("opencl", "no context"),
            ("level_zero", None),
            ("opencl", None),
        )
    ]
    finding, _ = _doctor_driver.check_devices(devices, None, None)
    assert finding.level == "warning"
    assert finding.sentence.startswith("device 1: expected ")
    terms = "level_zero:0;level_zero:1;opencl:1"
    assert finding.command == f'export ONEAPI_DEVICE_SELECTOR="{terms}"'


# --- a package that cannot be imported


@pytest.fixture
def stray(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package from which no libsycl is found."""
    folder = tmp_path / "stray"
    ignored = shutil.ignore_patterns("__pycache__", "include", "share", "third_party")
    shutil.copytree(PACKAGE, folder / "usm_dlpack", ignore=ignored)
    return folder


def test_a_package_that_cannot_be_imported_names_the_doctor(
    new_process: Callable[..., Any], stray: Path
) -> None:
    done = new_process("import usm_dlpack", PYTHONPATH=str(stray))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    sentence = last.removeprefix("ImportError: ")
    assert SENTENCE.fullmatch(sentence)
    assert "libsycl.so" in sentence
    assert "`python -m usm_dlpack doctor`" in sentence


@pytest.mark.parametrize("arguments", [(), ("devices",), ("explain", "math:pi")])
def test_other_commands_then_say_so_in_one_sentence(
    new_process: Callable[..., Any], stray: Path, arguments: tuple[str, ...]
) -> None:
    done = new_process(arguments=("-m", "usm_dlpack", *arguments), PYTHONPATH=str(stray))
    assert (done.returncode, done.stdout) == (1, "")
    assert SENTENCE.fullmatch(done.stderr.strip())
    assert "libsycl.so" in done.stderr
    assert "doctor" in done.stderr
    for module in (stray / "usm_dlpack").glob("_core*.so"):
        module.unlink()
    done = new_process(arguments=("-m", "usm_dlpack", *arguments), PYTHONPATH=str(stray))
    assert "found No module named 'usm_dlpack._core'; run" in done.stderr


def test_the_doctor_runs_where_the_package_cannot_be_imported(
    new_process: Callable[..., Any], stray: Path
) -> None:
    status, found = examined(new_process, PYTHONPATH=str(stray))
    assert status == 1
    ((level, name, command),) = troubles(found)
    folder = Path(sysconfig.get_path("data"), "lib")
    assert (level, name, command) == ("problem", "package", f"export LD_LIBRARY_PATH={folder}")
    assert troubles(mended(command, PYTHONPATH=str(stray))) == []


def test_only_the_program_may_go_on_without_the_module(
    new_process: Callable[..., Any], stray: Path, tmp_path: Path
) -> None:
    other = tmp_path / "stray" / "other"
    other.mkdir()
    (other / "__init__.py").write_text("import usm_dlpack\n")
    (other / "__main__.py").write_text("print('went on')\n")
    done = new_process(arguments=("-m", "other", "usm_dlpack"), PYTHONPATH=str(stray))
    assert done.returncode == 1
    assert "went on" not in done.stdout


def test_a_module_that_is_damaged_is_found(new_process: Callable[..., Any], stray: Path) -> None:
    (module,) = (stray / "usm_dlpack").glob("_core*.so")
    whole = module.read_bytes()
    for length in (len(whole) // 2, 60):  # of which the first ends the process that loads it
        module.write_bytes(whole[:length])
        _, found = examined(new_process, PYTHONPATH=str(stray))
        assert [name for _, name, _ in troubles(found)] == ["package"]
    module.unlink()
    _, found = examined(new_process, PYTHONPATH=str(stray))
    assert [name for _, name, _ in troubles(found)] == ["package"]


REINSTALL = "python -m pip install --force-reinstall --no-deps"


@pytest.mark.parametrize(
    ("record", "place"),
    [
        (None, "."),
        ("not JSON", "."),
        ({"url": "file://{folder}/no%20such", "dir_info": {}}, "."),
        ({"url": "file://{folder}/a%20clone", "dir_info": {}}, "'{folder}/a clone'"),
        ({"url": "file://{folder}", "dir_info": {"editable": True}}, "-e {folder}"),
        ({"url": "https://example.org/u.whl", "archive_info": {}}, "https://example.org/u.whl"),
        (
            {"url": "https://example.org/u", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "git+https://example.org/u@c0ffee",
        ),
    ],
)
def test_a_module_that_is_missing_is_installed_from_where_it_came(
    new_process: Callable[..., Any], stray: Path, tmp_path: Path, record: Any, place: str
) -> None:
    for module in (stray / "usm_dlpack").glob("_core*.so"):
        module.unlink()
    (tmp_path / "a clone").mkdir()
    metadata = stray / "usm_dlpack-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: usm-dlpack\nVersion: 0.1.0\n")
    if record is not None:
        text = record if isinstance(record, str) else json.dumps(record)
        (metadata / "direct_url.json").write_text(text.replace("{folder}", str(tmp_path)))
    _, found = examined(new_process, PYTHONPATH=str(stray))
    command = f"{REINSTALL} {place.format(folder=tmp_path)}"
    assert troubles(found) == [("problem", "package", command)]
    (package,) = [f for f in found["findings"] if f["name"] == "package"]
    assert ("which pip builds in a clone" in package["sentence"]) is (place == ".")


# --- environments that lack something


def environment_without(folder: Path, *left_out: str, copied: tuple[str, ...] = ()) -> Path:
    """Make a virtual environment of this one's files without some; return its Python.

    What is not copied finds the libraries of this environment, of whose files it is.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    here = {name: sysconfig.get_path("data") for name in ("base", "platbase")}
    there = {name: str(folder) for name in here}
    sites = [Path(sysconfig.get_path("purelib", vars=roots)) for roots in (here, there)]
    libraries = [Path(roots["base"], "lib") for roots in (here, there)]
    for source, target in (sites, libraries):
        for entry in source.iterdir():
            kept = not any(entry.name.startswith(name) for name in left_out)
            if kept and entry.name in copied:
                shutil.copytree(entry, target / entry.name, ignore=shutil.ignore_patterns("tests"))
            elif kept and not (target / entry.name).exists():
                (target / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def examined_in(python: Path, **variables: str) -> Any:
    """Return what the doctor finds in another environment."""
    arguments = [str(python), *DOCTOR, "--json"]
    kept = clean_environment.without() | variables
    done = subprocess.run(arguments, env=kept, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("left_out", "mending"),
    [
        (("libintelocl", "intel_opencl_rt"), "intel-opencl-rt"),
        (("libintelocl",), "--force-reinstall --no-deps intel-opencl-rt"),
    ],
)
def test_a_missing_cpu_driver_is_found(
    tmp_path: Path, left_out: tuple[str, ...], mending: str
) -> None:
    found = examined_in(environment_without(tmp_path / "environment", *left_out))
    command = f"python -m pip install {mending}"
    assert ("problem", "driver", command) in troubles(found)
    assert ("problem", "devices", command) in troubles(found)
    assert found["devices"] == []


def test_a_whole_copy_of_the_environment_has_no_trouble(tmp_path: Path) -> None:
    found = examined_in(environment_without(tmp_path / "environment"))
    assert troubles(found) == []


@pytest.mark.parametrize("package", ["dpctl", "numpy"])
def test_a_missing_package_is_found_before_it_is_imported(tmp_path: Path, package: str) -> None:
    found = examined_in(environment_without(tmp_path / "environment", package))
    assert ("problem", "requirements", f"python -m pip install {package}") in troubles(found)


def test_a_libsycl_that_is_missing_is_installed_though_its_wheel_is_recorded(
    tmp_path: Path,
) -> None:
    copied = ("usm_dlpack", "dpctl")
    python = environment_without(tmp_path / "environment", "libsycl", copied=copied)
    found = examined_in(python)
    assert found["libsycl"] == []
    year = found["versions"]["intel-sycl-rt"].split(".")[0]
    command = f'{REINSTALL} "intel-sycl-rt=={year}.*"'
    problems = [(name, told) for level, name, told in troubles(found) if level == "problem"]
    assert problems == [(name, command) for name in ("package", "libsycl", "peers", "devices")]
    (runtime,) = [f for f in found["findings"] if f["name"] == "runtime"]
    assert runtime["level"] == "warning"
    assert " libsycl.so.9 " in runtime["sentence"]
    version = found["versions"]["intel-sycl-rt"]
    assert runtime["command"] == f"{REINSTALL} intel-sycl-rt=={version}"


def test_a_libsycl_of_another_year_is_installed_with_a_dpctl_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_doctor, "libsycl_files", list)
    monkeypatch.setattr(
        _doctor_releases, "installed_versions", lambda: {"intel-sycl-rt": "2025.3.1"}
    )
    (finding,) = _doctor.check_libsycl(9, {"usm_dlpack": _child.Probe("ImportError: it")})
    assert finding.level == "problem"
    assert finding.command == 'python -m pip install "intel-sycl-rt==2026.*" dpctl'
    system = _child.Probe(None, ["/opt/intel/lib/libsycl.so.9.0.0"])
    (finding,) = _doctor.check_libsycl(9, {"usm_dlpack": system})
    assert finding.level == "ok"
    assert finding.sentence == "one libsycl: /opt/intel/lib/libsycl.so.9.0.0"


def test_a_library_of_the_runtime_that_is_missing_is_found(tmp_path: Path) -> None:
    found = examined_in(
        environment_without(tmp_path / "environment", "libur_adapter_level_zero_v2")
    )
    version = found["versions"]["intel-cmplr-lib-ur"]
    command = f"{REINSTALL} intel-cmplr-lib-ur=={version}"
    assert ("warning", "runtime", command) in troubles(found)


@pytest.mark.parametrize("variables", [{}, {"ONEAPI_DEVICE_SELECTOR": "opencl:*"}])
@pytest.mark.parametrize("folder_left", [False, True])
def test_a_dpctl_of_which_only_the_record_is_left_is_reinstalled(
    tmp_path: Path, folder_left: bool, variables: dict[str, str]
) -> None:
    python = environment_without(tmp_path / "environment", copied=("dpctl",))
    (folder,) = (tmp_path / "environment").glob("lib/python*/site-packages/dpctl")
    shutil.rmtree(folder)
    if folder_left:
        folder.mkdir()
    told = troubles(examined_in(python, **variables))
    assert told
    for level, _, command in told:
        assert level == "problem"
        assert command.startswith("python -m pip install --force-reinstall ")
        assert command.endswith(" dpctl")


def test_an_environment_without_pip_is_not_asked_for_requirements(tmp_path: Path) -> None:
    found = examined_in(environment_without(tmp_path / "environment", "pip"))
    assert troubles(found) == []
    (asked,) = [f for f in found["findings"] if f["name"] == "requirements"]
    assert asked["sentence"] == "not asked: this environment has no pip"


def test_a_registered_driver_that_is_not_there_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: Path
) -> None:
    (tmp_path / "whole.icd").write_text(f"{driver}\n")
    (tmp_path / "by_name.icd").write_text("libany.so\n")
    (tmp_path / "stale.icd").write_text("/no/such/driver.so\n")
    monkeypatch.setattr(_driver, "_SYSTEM_DRIVERS", tmp_path)
    (finding,) = _doctor_driver.check_registered()
    assert finding.level == "warning"
    assert finding.command == f"export OCL_ICD_FILENAMES={driver}"
    assert finding.sentence.startswith(f"{tmp_path / 'stale.icd'}: expected ")


# --- libsycl


def test_a_libsycl_of_another_major_in_the_path_is_found(
    new_process: Callable[..., Any], tmp_path: Path
) -> None:
    other = tmp_path / "libsycl.so.7"
    subprocess.run(["g++", "-shared", "-x", "c++", os.devnull, "-o", other], check=True)
    variables = {"LD_LIBRARY_PATH": str(tmp_path)}
    status, found = examined(new_process, **variables)
    assert status == 1
    assert troubles(found) == [("problem", "libsycl", "unset LD_LIBRARY_PATH")]
    assert str(other) in found["libsycl"]
    assert troubles(mended("unset LD_LIBRARY_PATH", **variables)) == []


def test_two_libsycl_in_one_process_are_a_problem() -> None:
    both = ["/a/lib/libsycl.so.8.0.0", "/b/lib/libsycl.so.9.0.0"]
    major = _doctor._major_needed(_doctor._module_file())
    probes = {"torch": _child.Probe(None, both)}
    (finding,) = _doctor.check_libsycl(major, probes)
    assert finding.level == "problem"
    assert "one libsycl in a process that imports torch" in finding.sentence
    assert "/a/lib/libsycl.so.8.0.0, /b/lib/libsycl.so.9.0.0" in finding.sentence
    (finding,) = _doctor.check_libsycl(major, {"torch": _child.Probe(None, both[1:])})
    assert finding.level == "ok"


def test_what_a_process_has_loaded_is_seen() -> None:
    probe = _child.import_in_child(["usm_dlpack"])
    assert probe.failure is None
    assert any(re.search(r"/libsycl\.so\.\d", path) for path in probe.libraries)


def test_an_import_that_ends_the_process_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_here.py").write_text("import os, signal; os.kill(os.getpid(), 11)\n")
    (tmp_path / "says_no.py").write_text("raise ImportError('undefined symbol: f')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert _child.import_in_child(["ends_here"]).failure == "the process was ended by signal 11"
    assert _child.import_in_child(["says_no"]).failure == "ImportError: undefined symbol: f"


# --- releases


@pytest.fixture(scope="module")
def other_onemkl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a folder with a real oneMKL of another release than the runtime's, and the release."""
    runtime = _doctor_releases.release_of(importlib.metadata.version("intel-sycl-rt"))
    release = "2026.1.0" if runtime != "2026.1" else "2026.0.0"
    folder = tmp_path_factory.mktemp("onemkl")
    wheel = f"onemkl-sycl-rng=={release}"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
    subprocess.run([*command, str(folder), wheel], check=True)
    return folder, release


def test_a_onemkl_of_another_release_is_found_with_what_it_misses(
    new_process: Callable[..., Any], other_onemkl: tuple[Path, str]
) -> None:
    folder, release = other_onemkl
    status, found = examined(new_process, PYTHONPATH=str(folder))
    assert status == 1
    assert found["versions"]["onemkl-sycl-rng"] == release
    runtime = _doctor_releases.release_of(found["versions"]["intel-sycl-rt"])
    wanted = f'python -m pip install "onemkl-sycl-rng=={runtime}.*"'
    newer = release.split(".") > runtime.split(".")
    assert ("problem" if newer else "warning", "releases", wanted) in troubles(found)
    missing = {command for _, name, command in troubles(found) if name == "requirements"}
    assert missing == {"python -m pip install mkl", "python -m pip install dpcpp-cpp-rt"}
    sentences = [f["sentence"] for f in found["findings"] if f["name"] == "releases"]
    assert f"found onemkl-sycl-rng {release}; run" in sentences[0]


def test_the_rule_of_releases() -> None:
    same = {"intel-sycl-rt": "2026.1.2", "onemkl-sycl-rng": "2026.1.0", "mkl": "2026.1.0"}
    (finding,) = _doctor_releases.check_onemkl(same)
    assert finding.level == "ok"
    (finding,) = _doctor_releases.check_onemkl(same | {"mkl": "2026.2.0"})
    assert (finding.level, finding.command) == (
        "problem",
        'python -m pip install "mkl==2026.1.*"',
    )
    (finding,) = _doctor_releases.check_onemkl(same | {"intel-sycl-rt": "2026.10.0"})
    assert finding.level == "warning"
    assert _doctor_releases.check_onemkl({"intel-sycl-rt": "2026.1.2", "mkl": "2025.0.0"}) == []
    (finding,) = _doctor_releases.check_compiler(
        {"intel-sycl-rt": "2026.1.2", "intel-opencl-rt": "2026.2"}
    )
    assert finding.level == "warning"
    assert finding.command == 'python -m pip install "intel-opencl-rt==2026.1.*"'
    (finding,) = _doctor_releases.check_compiler({})
    assert finding.command == "python -m pip install intel-sycl-rt"


def test_a_peer_that_fails_is_mended_by_what_mends_the_cause() -> None:
    probes = {"dpnp": _child.Probe("ImportError: undefined symbol: f")}
    cause = _finding.refused("releases", "one", "another", "mend the cause")
    (finding,) = _doctor.check_peers(probes, [_finding.fine("package", "whole"), cause])
    assert (finding.level, finding.command) == ("problem", "mend the cause")
    (finding,) = _doctor.check_peers(probes, [])
    assert finding.command == f"{_finding.PIP} --force-reinstall dpnp"
