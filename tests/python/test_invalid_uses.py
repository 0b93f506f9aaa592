# SPDX-License-Identifier: Apache-2.0
"""The invalid uses of the documentation say what docs/examples/invalid_uses/sentences.txt holds.

After a change of a sentence on purpose, ``USM_DLPACK_RENEW_SENTENCES=1`` writes it there.
"""

import functools
import json
import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

import clean_environment
import extension_under_test
import invalid_uses
import nanobind
import pytest
import usm_dlpack
from recorded_uses import FOLDER, RECORD, Use, read_record, uses_in, write_record
from usm_dlpack import _core

ROOT = FOLDER.parents[2]
CODES = {code for code, _, _ in _core.error_table()}
SENTENCE = re.compile(r"([\w.\[\]]+|<[\w/.]+>|[\w.]+/[\w.]+): expected .+?, found .+?; .+")
run = functools.partial(clean_environment.run, cwd=FOLDER, LC_ALL="C")


def said_by_python(source: str, **variables: str) -> list[Use]:
    done = run(sys.executable, "-W", "error", invalid_uses.__file__, source, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return [Use(source, *parts) for parts in json.loads(done.stdout)]


def said_by_program(program: Path, *arguments: str, **variables: str) -> list[Use]:
    done = run(program, *arguments, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return [Use(f"{program.name}.cpp", *line.split("\t")) for line in done.stdout.splitlines()]


def said_by_compiler(name: str) -> Use:
    """Return the first house sentence with which g++ refuses a use of compile_time.cpp."""
    third_party = Path(usm_dlpack.get_include(), "../share/usm_dlpack/third_party")
    folders = [usm_dlpack.get_include(), third_party / "dlpack", third_party / "mdspan"]
    folders += [Path(sys.prefix) / "include", nanobind.include_dir()]
    macros = {
        "MDSPAN_IMPL_STANDARD_NAMESPACE": "Kokkos",
        "MDSPAN_IMPL_PROPOSED_NAMESPACE": "Experimental",
        "SYCL_DISABLE_FSYCL_SYCLHPP_WARNING": "1",
        name: "1",
    }
    flags = [f"-D{macro}={value}" for macro, value in macros.items()]
    for folder in (*folders, sysconfig.get_path("include")):
        flags += ["-isystem", str(folder)]
    done = run("g++", "-std=c++17", "-fsyntax-only", *flags, "compile_time.cpp")
    found = re.search(
        r"(?:static assertion failed: |throw_if\(.*?\")(\w[^:\n]*: expected [^\"\n]*)", done.stderr
    )
    assert found is not None, done.stderr
    return Use("compile_time.cpp", name, "", found[1])


def said_by_command(name: str, folder: Path) -> Use:
    """Return what a use of commands.sh says on its last line, to standard error."""
    done = run("sh", FOLDER / "commands.sh", name, cwd=folder)
    assert done.returncode in (1, 2, 3), done.stderr
    return Use("commands.sh", name, "", done.stderr.strip().splitlines()[-1])


def said_by_build(name: str, folder: Path) -> Use:
    """Return the sentence with which CMake or the compiler refuses a use of building.sh.

    The folder stands in it as ``<folder>``, CMake's Python as ``<python>``.
    """
    places = {"INCLUDE": usm_dlpack.get_include(), "PACKAGE": usm_dlpack.get_cmake_dir()}
    done = run("sh", FOLDER / "building.sh", name, cwd=folder, SOURCE=str(ROOT), **places)
    assert done.returncode != 0, f"{name} builds"
    printed = " ".join(done.stderr.replace(str(folder), "<folder>").split())
    printed = re.sub(r"(run `)\S+( -m pip)", r"\1<python>\2", printed)
    found = re.search(
        r"(?:#error |\(message\): |package: )([\w/.<>]+: expected .*?)"
        r"(?: Call Stack| \d+ \||(?= -- Configuring)|$)",
        printed,
    )
    assert found is not None, done.stderr
    return Use("building.sh", name, "", found[1])


@pytest.fixture(scope="module")
def said(driver: Path, driver_copies: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Use]:
    """Run every use, each file in a process that has the devices that it needs."""
    two = f"{driver}:{driver_copies['second']}"
    plain = ("memory.py", "exchange.py", "arguments.py", "process.py")
    files: dict[str, dict[str, str]] = {source: {} for source in plain}
    files |= {
        "extension.py": {"PYTHONPATH": str(extension_under_test.build())},
        "two_devices.py": {"OCL_ICD_FILENAMES": two},
        "broken_device.py": {"OCL_ICD_FILENAMES": f"{driver}:{driver_copies['broken']}"},
        "no_device.py": {"ONEAPI_DEVICE_SELECTOR": "level_zero:*"},
        "wrong_selector.py": {"ONEAPI_DEVICE_SELECTOR": "nonsense"},
    }
    uses = [use for source, given in files.items() for use in said_by_python(source, **given)]
    programs = extension_under_test.build_project(FOLDER, "invalid_uses")
    one = {"LD_LIBRARY_PATH": str(driver.parent), "OCL_ICD_FILENAMES": str(driver)}
    for arguments, given in (
        (["views_and_tensors"], {}),
        (["usm"], {}),
        (["usm", "two_devices"], {"OCL_ICD_FILENAMES": two}),
        (["opencl"], {}),
        (
            ["opencl", "hidden_device"],
            {"OCL_ICD_FILENAMES": two, "ONEAPI_DEVICE_SELECTOR": "opencl:1"},
        ),
        (["opencl", "no_opencl"], {"ONEAPI_DEVICE_SELECTOR": "level_zero:*"}),
    ):
        uses += said_by_program(programs / arguments[0], *arguments[1:], **(one | given))
    folder = tmp_path_factory.mktemp
    uses += [said_by_command(name, folder(name)) for name, _ in uses_in("commands.sh")]
    uses += [said_by_compiler(name) for name, _ in uses_in("compile_time.cpp")]
    uses += [said_by_build(name, folder(name)) for name, _ in uses_in("building.sh")]
    if os.environ.get("USM_DLPACK_RENEW_SENTENCES") == "1":
        RECORD.write_text(write_record(uses), encoding="utf-8")
    return uses


def test_each_use_says_what_the_record_holds(said):
    assert said == read_record()


def test_the_record_is_the_uses_of_all_files():
    sources = [path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".cpp", ".sh")]
    written = [(source, name) for source in sources for name, _ in uses_in(source)]
    assert sorted(written) == sorted((use.source, use.name) for use in read_record())


def test_every_exception_is_a_house_sentence():
    for use in read_record():
        assert SENTENCE.search(use.sentence.replace("&lt;", "<").replace("&gt;", ">")), use


# It needs an OpenCL GPU beside Level Zero: tests/drivers/.
NOT_ON_THE_CPU = {"context_ambiguous"}


def test_every_code_has_a_use_and_a_page():
    assert CODES - {use.code for use in read_record()} == NOT_ON_THE_CPU
    assert {page.stem for page in (ROOT / "docs" / "errors").glob("*.md")} >= CODES


# --- Every refusal of the sources

# What no use provokes on a CPU device. The last but one is that of g++ at compile time, which a
# compiler of kernels leaves to the run time.
UNPROVOKED = {
    "context_ambiguous": "pass the queue or the context of the one that is meant",
    "pointer_unknown": "pass a queue, or the context, of the device that is meant",
    "backend_not_accepted": (
        "use a device of the backend opencl, or the handles of the other backend"
    ),
    "runtime_error": "check that the device works, for example with python -m usm_dlpack devices",
    "usm_type_not_accepted": "copy the elements to host or shared USM, or index in a kernel",
}
LITERAL = r'"((?:[^"\\]|\\.)*)"'


def refusals_of(text: str) -> set[tuple[str, str]]:
    """Return code and remedy of each call of `refuse` in a C++ source, whose remedy is a text."""
    calls = rf"\brefuse\(\s*errc::(\w+),(?:(?!\);).)*?((?:{LITERAL}\s*)+)\);"
    return {
        (code, "".join(re.findall(LITERAL, remedy)).replace('\\"', '"'))
        for code, remedy, _ in re.findall(calls, text, re.DOTALL)
    }


def test_every_remedy_of_the_sources_is_recorded():
    sources = [*(ROOT / "include").rglob("*.hpp"), *(ROOT / "bindings").glob("*.cpp")]
    made = {pair for source in sources for pair in refusals_of(source.read_text(encoding="utf-8"))}
    assert len(made) > 60
    said = [(use.code, use.sentence) for use in read_record()]
    unsaid = {
        (code, remedy)
        for code, remedy in made
        if not any(code == said_code and remedy in sentence for said_code, sentence in said)
    }
    assert unsaid == set(UNPROVOKED.items())
