# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack doctor``: finds what is really wrong with an environment."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import clean_environment
import pytest
import usm_dlpack
from refusals import SENTENCE
from usm_dlpack import _cpu_driver
from usm_dlpack._cli import _doctor

# Each starts processes.
pytestmark = pytest.mark.extended

DOCTOR = ("-m", "usm_dlpack", "doctor", "--json")


def examined(python: str = sys.executable, **variables: str) -> Any:
    """Return what the doctor finds in a new process."""
    done = clean_environment.run(python, *DOCTOR, **variables)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    for finding in found["findings"]:
        if finding["level"] != "ok":
            sentence = re.sub("^device (?=[0-9])|^/.*/", "", finding["sentence"])
            assert SENTENCE.fullmatch(sentence), sentence
    assert done.returncode == any(f["level"] == "problem" for f in found["findings"])
    return found


def troubles(found: Any) -> list[tuple[str, str, str]]:
    """Return level, name and sentence of all findings that are not well."""
    rows = ((f["level"], f["name"], f["sentence"]) for f in found["findings"])
    return [row for row in rows if row[0] != "ok"]


def trouble(found: Any) -> tuple[str, str, str]:
    (row,) = troubles(found)
    return row


def test_a_whole_environment_has_no_trouble(driver):
    found = examined()
    assert troubles(found) == []
    sentences = {finding["name"]: finding["sentence"] for finding in found["findings"]}
    assert list(sentences) == ["package", "libsycl", "driver", "devices"]
    assert sentences["driver"].startswith(f"OpenCL driver: {driver}, of the wheel")
    assert sentences["driver"].endswith("; a C++ program needs OCL_ICD_FILENAMES set to it")
    assert sentences["devices"] == "1 of 1 root devices work"
    for name in ("intel-sycl-rt", "dpctl", "usm-dlpack"):
        assert found["versions"][name] == importlib.metadata.version(name)
    assert {Path(file).name for file in found["libsycl"]["files"]} >= {found["libsycl"]["needed"]}
    assert [device["device_id"] for device in found["devices"]] == [0]


@pytest.mark.parametrize(
    "variables",
    [
        {"USM_DLPACK_CPU_DRIVER": "0"},
        {"OCL_ICD_VENDORS": "/"},
        {"OCL_ICD_FILENAMES": "libnone.so"},
        {"SYCL_DEVICE_ALLOWLIST": "DeviceType:gpu"},
        {"ONEAPI_DEVICE_SELECTOR": "level_zero:*", "OCL_ICD_FILENAMES": "libnone.so"},
    ],
    ids=str,
)
def test_variables_without_which_there_may_be_devices_are_named(variables):
    level, name, sentence = trouble(examined(**variables))
    assert (level, name) == ("problem", "devices")
    given = ", ".join(f"{variable}={value}" for variable, value in variables.items())
    assert f"found none with {given}; unset or correct {' and '.join(variables)}, or " in sentence


def test_a_selector_that_cannot_be_read_is_reported_as_the_runtime_does():
    level, name, sentence = trouble(examined(ONEAPI_DEVICE_SELECTOR="bogus"))
    assert (level, name) == ("problem", "devices")
    assert "unset ONEAPI_DEVICE_SELECTOR" in sentence


def test_a_device_query_that_came_too_early_is_found(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import dpctl\ndpctl.get_devices()\n")
    level, name, sentence = trouble(examined(PYTHONPATH=str(tmp_path)))
    assert (level, name) == ("problem", "devices")
    assert "queried before usm_dlpack was imported; import usm_dlpack first" in sentence


def test_a_missing_wheel_of_the_driver_is_named(tmp_path):
    python = environment_without(tmp_path / "environment", "libintelocl", "intel_opencl_rt")
    found = examined(python)
    level, name, sentence = trouble(found)
    assert (level, name) == ("problem", "devices")
    assert sentence.endswith("found none; install a driver, such as the wheel intel-opencl-rt")
    (told,) = [f["sentence"] for f in found["findings"] if f["name"] == "driver"]
    assert (
        told == "OpenCL driver: none, because the wheel intel-opencl-rt is not in this environment"
    )


@pytest.mark.parametrize(
    ("selector", "levels"),
    [(None, ["warning"]), ("opencl:1", ["problem"])],
    ids=str,
)
def test_a_device_that_fails_is_a_problem_if_no_other_works(
    driver, driver_copies, selector, levels
):
    drivers = os.pathsep.join(map(str, (driver, driver_copies["broken"])))
    variables = {"ONEAPI_DEVICE_SELECTOR": selector} if selector else {}
    found = examined(OCL_ICD_FILENAMES=drivers, **variables)
    assert [level for level, *_ in troubles(found)] == levels
    (_, name, sentence), *_ = troubles(found)
    assert name == "devices"
    assert re.match(r"device \d: expected a device that the SYCL runtime can use, ", sentence)


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
    found = examined(PYTHONPATH=str(stray))
    level, name, sentence = trouble(found)
    assert (level, name) == ("problem", "package")
    assert f"ImportError: {found['libsycl']['needed']}: cannot open" in sentence
    assert found["devices"] == []


def test_only_the_program_may_go_on_without_the_module(new_process, stray):
    other = stray / "other"
    other.mkdir()
    (other / "__init__.py").write_text("import usm_dlpack\n")
    (other / "__main__.py").write_text("print('went on')\n")
    done = new_process(arguments=("-m", "other", "usm_dlpack"), PYTHONPATH=str(stray))
    assert done.returncode == 1
    assert "went on" not in done.stdout


def environment_without(folder: Path, *left_out: str) -> str:
    """Copy this environment as links, without some of its files; return its Python."""
    large = ("__pycache__", "tests", "include", "cmake", "share", "build", "lib64")
    skipped = shutil.ignore_patterns(*large, *(f"{name}*" for name in left_out))

    def ignored(where: str, names: list[str]) -> set[str]:
        needed = r"(usm_dlpack|dpctl|numpy).*|.*\.dist-info"
        is_site = Path(where).name == "site-packages"
        others = {name for name in names if is_site and not re.fullmatch(needed, name)}
        return others | skipped(where, names)

    shutil.copytree(sys.prefix, folder, ignore=ignored, copy_function=os.symlink)
    return str(folder / "bin" / "python")


@pytest.mark.parametrize(
    ("left_out", "names"), [("numpy", ["package"]), ("libsycl", ["package", "libsycl"])]
)
def test_what_an_environment_lacks_is_found(tmp_path, left_out, names):
    found = examined(environment_without(tmp_path / "environment", left_out))
    assert [name for _, name, _ in troubles(found)] == names


@pytest.mark.parametrize("registered", ["/no/such/driver.so", "libnone.so", None])
def test_a_registered_driver_that_is_not_there_is_found(tmp_path, monkeypatch, driver, registered):
    monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)
    monkeypatch.setattr(_cpu_driver, "_SYSTEM_DRIVERS", tmp_path)
    icd = tmp_path / "some.icd"
    icd.write_text(f"{registered or driver}\n")
    told, *warnings = _doctor.check_driver()
    assert told.sentence == f"OpenCL driver: of the system: {icd}"
    assert [w.level for w in warnings] == (
        ["warning"] if registered == "/no/such/driver.so" else []
    )
    for warning in warnings:
        assert warning.sentence.startswith(
            f"{icd}: expected a driver that is there, found /no/such"
        )


def test_a_named_driver_that_is_not_there_is_found():
    found = examined(OCL_ICD_FILENAMES="/no/such/driver.so")
    (level, name, sentence), (_, after, _) = troubles(found)
    assert (level, name, after) == ("warning", "driver", "devices")
    assert sentence.startswith(
        "OCL_ICD_FILENAMES: expected a driver that is there, found /no/such/"
    )


@pytest.mark.parametrize("variable", ["LD_LIBRARY_PATH", "LD_PRELOAD"])
def test_a_libsycl_of_another_major_is_found(tmp_path, variable):
    other = tmp_path / "libsycl.so.7"
    subprocess.run(["g++", "-shared", "-x", "c++", os.devnull, "-o", other], check=True)
    value = str(tmp_path if variable == "LD_LIBRARY_PATH" else other)
    found = examined(**{variable: value})  # a folder, or in the process already
    level, name, sentence = trouble(found)
    assert (level, name) == ("problem", "libsycl")
    assert str(other) in sentence
    assert str(other) in found["libsycl"]["files"]


@pytest.mark.parametrize(
    ("files", "level"),
    [
        (["/a/libsycl.so.9", "/a/libsycl.so.9.0.0"], "ok"),
        (["/a/libsycl.so.8"], "problem"),
        (["/a/libsycl.so.8", "/b/libsycl.so.9"], "problem"),
        ([], "problem"),
    ],
)
def test_the_one_libsycl_is_of_the_major_that_the_package_needs(files, level):
    (finding,) = _doctor.check_libsycl("libsycl.so.9", files)
    assert finding.level == level
