# SPDX-License-Identifier: Apache-2.0
"""The examples of the tutorial and the how-to pages: they run, and print what the pages show.

Those that need a peer run where it is: tests/interoperability/test_guide_examples.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import clean_environment
import dpctl
import extension_under_test
import guide
import pytest
import usm_dlpack

# Those whose Python needs nothing that is not here, and is a region after the other.
PAGES = ("tutorial", "how-to/errors", "how-to/streams")
EXAMPLES = ("start", "with_dpctl", "with_numpy", "with_tvm_ffi", "sub_devices", "explain")
REGION = re.compile(
    r"^ *(?:#|//) \[begin ([\w ]+)\]\n(.*?)^ *(?:#|//) \[end \1\]$", re.DOTALL | re.MULTILINE
)


def regions(source: Path) -> dict[str, str]:
    """Return the regions of a source, without the indentation that all lines share."""
    found = REGION.findall(source.read_text(encoding="utf-8"))
    return {name: textwrap.dedent(text).strip("\n") for name, text in found}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_its_page_shows(name: str, tmp_path: Path) -> None:
    assert guide.run(name, tmp_path) == guide.expected(name)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_typed_from_top_to_bottom(page: str, succeed: Any) -> None:
    text = (guide.ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```(\w+)\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    code = "\n".join(block for language, block in shown if language == "python")
    printed = "\n".join(block for language, block in shown if language == "text")
    assert succeed(code) == f"{printed}\n"


def test_the_example_of_several_devices_runs_on_two(
    driver: Path, driver_copies: Any, tmp_path: Path
) -> None:
    two = f"{driver}:{driver_copies['second']}"
    printed = guide.run("several_devices", tmp_path, OCL_ICD_FILENAMES=two)
    assert printed == guide.expected("several_devices")


def test_the_example_that_calls_the_extension_prints_what_its_page_shows(tmp_path: Path) -> None:
    built = str(extension_under_test.build())
    printed = guide.run("call_extension", tmp_path, PYTHONPATH=built)
    assert printed == guide.expected("call_extension")


def test_the_extension_returns_what_the_page_says(queue: Any) -> None:
    extension = extension_under_test.load("guide_extension")
    made = extension.filled(queue, 3, 1.5)
    assert made.sycl_queue == queue
    assert made.numpy().tolist() == [1.5] * 3
    assert type(extension.fill(queue, made, 2)) is dpctl.SyclEvent
    assert made.numpy().tolist() == [2] * 3


def shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run commands as a reader does whose environment is active."""
    active = {"VIRTUAL_ENV": sys.prefix, "PIP_NO_INDEX": "1"}
    return clean_environment.run("sh", "-ec", commands, cwd=folder, timeout=900, **active)


def built_project(name: str, folder: Path) -> Path:
    """Build a copy of a project of the page on CMake."""
    project = folder / name
    shutil.copytree(guide.EXAMPLES / "cmake" / name, project)
    built = shell(regions(project / "build.sh")["build"], project)
    assert built.returncode == 0, built.stdout + built.stderr
    return project


@pytest.mark.extended
def test_the_program_of_the_page_on_cmake_builds_with_the_package_and_with_a_prefix(
    tmp_path: Path, project_root: Path
) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("CMakeLists.txt", "LICENSE", "cmake", "include"):
        (clone / name).symlink_to(project_root / name)
    project = built_project("program", tmp_path)
    run = regions(project / "build.sh")["run"]
    ran = shell(run, project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "device 0\n", "")
    shutil.rmtree(project / "build")
    commands = regions(guide.EXAMPLES / "cmake" / "prefix.sh")
    for step, folder in (("install", clone), ("use", project)):
        done = shell(f"PREFIX={tmp_path}/prefix\n{commands[step]}", folder)
        assert done.returncode == 0, done.stdout + done.stderr
    cache = (project / "build" / "CMakeCache.txt").read_text(encoding="utf-8")
    assert f"usm_dlpack_DIR:PATH={tmp_path}/prefix/" in cache
    ran = shell(run, project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "device 0\n", "")


@pytest.mark.extended
def test_the_extension_of_the_page_on_cmake_builds_and_refuses(tmp_path: Path) -> None:
    project = built_project("extension", tmp_path)
    (extension,) = (project / "build").glob("mine.*.so")
    # As installed at the top of site-packages: its run path leads to the environment's libsycl.
    path = subprocess.check_output(["readelf", "--dynamic", extension], text=True)
    assert "libsycl" in path
    code = "import dpctl.memory, mine; print(mine.size(dpctl.memory.MemoryUSMDevice(4)))"
    refused = shell(f"PYTHONPATH=build python -c '{code}'", project)
    assert "dtype: expected float32" in refused.stderr


def test_the_commands_of_the_page_on_devices_do_what_it_says(tmp_path: Path) -> None:
    commands = regions(guide.EXAMPLES / "devices.sh")
    devices, selected = (shell(commands[name], tmp_path) for name in ("devices", "select"))
    assert devices.returncode == selected.returncode == 0
    assert f" {usm_dlpack.root_device(0).name}\n" in devices.stdout
    assert " opencl:cpu:0 " in selected.stdout
    assert "ONEAPI_DEVICE_SELECTOR=opencl:cpu " in selected.stdout
    forbidden = shell(commands["forbid"], tmp_path)
    assert (forbidden.returncode, forbidden.stderr) == (1, guide.expected("drivers"))
    searched = shell(commands["doctor"], tmp_path)
    assert searched.returncode == 1
    assert f"\n{guide.expected('doctor')}" in searched.stdout


def test_the_command_of_the_page_on_refusals_says_what_the_example_does(tmp_path: Path) -> None:
    shutil.copy(guide.EXAMPLES / "explain.py", tmp_path)
    explained = shell(regions(guide.EXAMPLES / "diagnosis.sh")["explain"], tmp_path)
    assert explained.returncode == 1
    steps = re.findall(r"^  (ok|stop|\.\.) +(\d+)\. (.*)$", explained.stdout, re.MULTILINE)
    words = {"ok": "passed", "stop": "stopped", "..": "not reached"}
    shown = [f"{number} {words[mark]} - {title}" for mark, number, title in steps]
    printed = guide.expected("explain").splitlines()
    assert shown == printed[: printed.index("context_not_default")]
