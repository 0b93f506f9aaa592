# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack``: what it shows of an environment, what it finds wrong, and `errors`."""

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
import dpctl
import guide
import pytest
import usm_dlpack
from capsules import content_of
from refusals import SENTENCE
from usm_dlpack import ConversionError, _core, _cpu_driver, _environment

MAIN = ("-m", "usm_dlpack")


def examined(**variables: str) -> Any:
    """Return what the program finds as JSON, and require that its text has the same facts."""
    text, done = (
        clean_environment.run(sys.executable, *MAIN, *options, **variables)
        for options in ((), ("--json",))
    )
    assert done.stderr == text.stderr == ""
    found = json.loads(done.stdout)
    assert done.returncode == text.returncode == (1 if found["problems"] else 0)
    for sentence in found["problems"]:
        assert SENTENCE.fullmatch(re.sub("^device (?=[0-9]+: )", "", sentence)), sentence
        assert f"\n  {sentence}\n" in text.stdout
    facts = {**found["versions"], **found["files"], **found["variables"]}
    for name, value in facts.items():
        assert re.search(rf"^  {re.escape(name)} +{re.escape(value or 'none')}$", text.stdout, re.M)
    for device in found["devices"]:
        assert f"\n  (14, {device['device_id']})  {device['name']}\n" in text.stdout
        for fact in ("filter_string", "backend", "type", "driver_version"):
            assert str(device[fact]) in text.stdout
    return found


def test_a_whole_environment_has_devices_versions_and_no_problem(driver):
    found = examined()
    real = dpctl.get_devices()[0]
    assert found["devices"] == [
        {
            "device_id": 0,
            "name": real.name.strip(),
            "filter_string": "opencl:cpu:0",
            "type": "cpu",
            "backend": "opencl",
            "driver_version": real.driver_version,
            "usm_types": ["device", "host", "shared"],
            "failure": None,
        }
    ]
    versions = found["versions"]
    assert versions["Python"] == ".".join(map(str, sys.version_info[:3]))
    for name in ("usm-dlpack", "dpctl", "numpy", "intel-sycl-rt", "intel-opencl-rt"):
        assert versions[name] == importlib.metadata.version(name)
    exported = content_of(usm_dlpack.empty(1).__dlpack__(max_version=(1, 99)))
    assert versions["DLPack"] == f"{exported.major}.{exported.minor}"
    assert found["files"]["compiled module"] == _core.__file__
    assert found["files"]["OpenCL driver"] == str(driver)
    assert re.fullmatch(r"/.*/libsycl\.so\.\d[.\d]*", found["files"]["SYCL runtime"])
    assert (found["variables"], found["problems"]) == ({}, [])


NO_DEVICE = "devices: expected at least one root device, found none"


@pytest.mark.parametrize(
    ("variables", "others"),
    [
        ({"USM_DLPACK_CPU_DRIVER": "0"}, []),
        ({"OCL_ICD_VENDORS": "/"}, []),
        ({"SYCL_DEVICE_ALLOWLIST": "DeviceType:gpu"}, []),
        ({"OCL_ICD_FILENAMES": "libnone.so", "ONEAPI_DEVICE_SELECTOR": "level_zero:*"}, []),
        (
            {"OCL_ICD_FILENAMES": "/no/driver.so"},
            ["OCL_ICD_FILENAMES: expected a driver, found no file /no/driver.so; "],
        ),
    ],
    ids=str,
)
def test_without_a_device_the_variables_that_may_be_the_cause_are_named(variables, others):
    found = examined(**variables)
    assert (found["devices"], found["variables"]) == ([], variables)
    given = ", ".join(f"{name}={value}" for name, value in variables.items())
    remedy = f"unset or correct {' and '.join(variables)}, or install a driver"
    starts = [*others, f"{NO_DEVICE} with {given}; {remedy}, such as the wheel intel-"]
    assert len(found["problems"]) == len(starts)
    assert all(map(str.startswith, found["problems"], starts))


def test_a_selector_that_is_wrong_is_found():
    (problem,) = examined(ONEAPI_DEVICE_SELECTOR="bogus")["problems"]
    assert problem.startswith("device: expected the root devices of this process")


@pytest.mark.parametrize(("selector", "usable"), [("*:*", [True, False]), ("opencl:1", [False])])
def test_a_device_that_fails_keeps_its_id_and_is_a_problem(driver, driver_copies, selector, usable):
    drivers = f"{driver}:{driver_copies['broken']}"
    found = examined(OCL_ICD_FILENAMES=drivers, ONEAPI_DEVICE_SELECTOR=selector)
    assert [device["failure"] is None for device in found["devices"]] == usable
    failed = len(usable) - 1
    (problem,) = found["problems"]
    assert problem.startswith(f"device {failed}: expected a device that the SYCL runtime can use, ")
    assert found["devices"][failed]["failure"] in problem


@pytest.fixture
def stray(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package from which no libsycl is found."""
    ignored = shutil.ignore_patterns("__pycache__", "include", "share")
    package = Path(usm_dlpack.__file__).parent
    shutil.copytree(package, tmp_path / "usm_dlpack", ignore=ignored)
    return tmp_path


@pytest.mark.parametrize(
    ("lacks", "error"),
    [
        ("libsycl", r"ImportError: libsycl\.so\.\d: cannot open"),
        ("the module", r"ImportError: cannot import name '_core'|ModuleNotFoundError: .*_core'"),
    ],
)
def test_without_the_compiled_module_the_program_says_why(stray, lacks, error):
    if lacks == "the module":
        (module,) = (stray / "usm_dlpack").glob("_core*.so")
        module.unlink()
    found = examined(PYTHONPATH=str(stray))
    (problem,) = found["problems"]
    expected = "usm_dlpack: expected a package that can be imported, found "
    assert re.match(f"{expected}({error}).*; install what is missing", problem, re.DOTALL)
    assert (found["devices"], found["files"]["compiled module"]) == ([], None)
    assert found["versions"]["dpctl"] == importlib.metadata.version("dpctl")
    arguments = (*MAIN, "errors", "read_only")
    done = clean_environment.run(sys.executable, *arguments, PYTHONPATH=str(stray))
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "read_only")


@pytest.mark.parametrize("name", ["dpctl", "numpy"])
def test_a_package_that_the_functions_need_is_found_missing(tmp_path, name):
    (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name}')\n")
    found = examined(PYTHONPATH=str(tmp_path))
    assert found["devices"] == []
    assert f", found ImportError: no {name}; install" in found["problems"][0]


@pytest.mark.parametrize("use", ["from usm_dlpack import empty", "usm_dlpack.empty(3)", None])
def test_another_program_does_not_go_on_without_the_compiled_module(new_process, stray, use):
    other = stray / "other"
    other.mkdir()
    (other / "__init__.py").write_text("import usm_dlpack\n")
    (other / "__main__.py").write_text(f"import usm_dlpack\n{use}\nprint('went on')\n")
    arguments = ("-c", "import other") if use is None else ("-m", "other")
    done = new_process(arguments=arguments, PYTHONPATH=str(stray))
    assert (done.returncode, done.stdout) == (1, "")
    sentence = done.stderr.strip().splitlines()[-1].removeprefix("ImportError: ")
    assert SENTENCE.fullmatch(sentence)
    assert "found libsycl.so" in sentence
    assert "; run `python -m usm_dlpack`, which says what to do" in sentence


def test_two_major_versions_of_libsycl_are_a_problem_and_no_device_is_listed(tmp_path):
    other = tmp_path / "libsycl.so.7"
    subprocess.run(["g++", "-shared", "-x", "c++", os.devnull, "-o", other], check=True)
    found = examined(LD_PRELOAD=str(other))
    (problem,) = found["problems"]
    assert problem.startswith("libsycl: expected one major version, found /")
    assert str(other) in problem
    assert found["devices"] == []


@pytest.mark.parametrize("has_wheel", [True, False])
def test_a_driver_of_the_system_that_hides_the_wheel_is_named(
    tmp_path, monkeypatch, driver, has_wheel
):
    (tmp_path / "other.icd").write_text("libother.so\n")
    monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)
    monkeypatch.setattr(_cpu_driver, "_SYSTEM_DRIVERS", tmp_path)
    if not has_wheel:
        monkeypatch.setattr(_cpu_driver, "find_cpu_driver", lambda: None)
    assert _environment._files({})["OpenCL driver"] == str(tmp_path / "other.icd")
    found, remedy = "", "install a driver, such as the wheel intel-opencl-rt"
    if has_wheel:
        found = f" by the drivers in {tmp_path}"
        remedy = f"set OCL_ICD_FILENAMES={driver}, or install another driver"
    assert _environment._device_problems([], {}) == [f"{NO_DEVICE}{found}; {remedy}"]


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]{3,}", text))


CODES = [code for code, _ in _core.error_table()]


@pytest.mark.parametrize("code", CODES)
def test_the_section_of_a_code_is_printed_as_plain_text(code, capsys):
    from usm_dlpack.__main__ import main

    (page,) = [page for page in guide.PAGES if page.endswith(f"#`{code}`")]
    section = guide.text_of(page)
    assert main(["errors", code]) == 0
    printed = capsys.readouterr().out
    assert re.match(rf"{code}: [A-Z].*\.\n\n", printed)
    for sign in ("](", ".md", "```", "**What", "..."):
        assert sign not in printed.replace("shape=...", "")
    for _, block in guide.BLOCK.findall(section):
        for line in filter(None, block.splitlines()):
            assert f"\n    {line}\n" in printed
    without_links = re.sub(r"\[[^\]]*\]\([^)]*\)", "", section)
    assert words_of(without_links) - words_of(printed) <= {"cpp", "python", "text"}


def test_all_codes_are_listed_with_their_titles(succeed):
    listed = dict(
        line.split(maxsplit=1) for line in succeed(arguments=(*MAIN, "errors")).splitlines()
    )
    assert listed.keys() == set(CODES)
    assert listed["out_of_bounds"] == "The view does not lie within one USM allocation."


def test_the_note_of_an_error_is_the_command_that_prints_its_section(succeed):
    error = ConversionError("out_of_bounds", "shape", "3", "4", "make it smaller")
    notes = [f"out_of_bounds: {error.page}"] if sys.version_info >= (3, 11) else []
    assert getattr(error, "__notes__", []) == notes
    command, *arguments = error.page.split()
    assert command == "python"
    printed = succeed(arguments=tuple(arguments))
    assert printed.startswith("out_of_bounds: The view does not lie within one USM allocation.\n")
    assert "or no size. Then the error" in printed  # a reference to another page stood between


@pytest.mark.parametrize("code", ["out_of_bound", "index", "../errors/view"])
def test_an_unknown_code_is_an_error_of_the_command_line(new_process, code):
    done = new_process(arguments=(*MAIN, "errors", code))
    assert (done.returncode, done.stdout) == (2, "")
    remedy = "run `python -m usm_dlpack errors`, which lists all"
    assert done.stderr == f"code: expected the code of an error, found {code!r}; {remedy}\n"
