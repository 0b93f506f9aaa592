# SPDX-License-Identifier: Apache-2.0
"""What the pages of docs/ show is run: Python, and commands in a shell.

Python that needs a peer runs where it is: tests/interoperability/test_guide_examples.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import clean_environment
import dpctl
import extension_under_test
import guide
import pytest
import usm_dlpack

EXAMPLES = guide.DOCS / "examples"
ON_TWO_DEVICES = ("how-to/devices", "explanation/device_id")
OF_PEERS = re.compile(r"^(?:import|from) (?:dpnp|mpi4py|torch)\b", re.MULTILINE)


def console(page: str) -> list[str]:
    """Return the commands of a page, block by block."""
    return [text for language, text in guide.blocks_of(page) if language == "console"]


@pytest.mark.parametrize(
    "name",
    [name for name, program in guide.PROGRAMS.items() if not OF_PEERS.search(program.code)],
)
def test_a_program_prints_what_its_page_shows(
    name: str, driver: Path, driver_copies: Any, tmp_path: Path
) -> None:
    program = guide.PROGRAMS[name]
    variables = {}
    if program.page in ON_TWO_DEVICES:
        variables["OCL_ICD_FILENAMES"] = f"{driver}:{driver_copies['second']}"
    if "guide_extension" in program.code:
        variables["PYTHONPATH"] = str(extension_under_test.build())
    assert program.run(tmp_path, **variables) == program.printed


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


BUILD_PROGRAM, BUILD_EXTENSION, RUN, INSTALL, USE = console("how-to/cmake")


def built_project(name: str, commands: str, folder: Path) -> Path:
    """Build a copy of a project of the page on CMake."""
    project = folder / name
    shutil.copytree(EXAMPLES / "cmake" / name, project)
    built = shell(commands, project)
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
    project = built_project("program", BUILD_PROGRAM, tmp_path)
    ran = shell(RUN, project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "device 0\n", "")
    shutil.rmtree(project / "build")
    for commands, folder in ((INSTALL, clone), (USE, project)):
        done = shell(f"PREFIX={tmp_path}/prefix\n{commands}", folder)
        assert done.returncode == 0, done.stdout + done.stderr
    cache = (project / "build" / "CMakeCache.txt").read_text(encoding="utf-8")
    assert f"usm_dlpack_DIR:PATH={tmp_path}/prefix/" in cache
    ran = shell(RUN, project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "device 0\n", "")


@pytest.mark.extended
def test_the_extension_of_the_page_on_cmake_builds_and_refuses(tmp_path: Path) -> None:
    project = built_project("extension", BUILD_EXTENSION, tmp_path)
    (extension,) = (project / "build").glob("mine.*.so")
    # As installed at the top of site-packages: its run path leads to the environment's libsycl.
    path = subprocess.check_output(["readelf", "--dynamic", extension], text=True)
    assert "libsycl" in path
    code = "import dpctl.memory, mine; print(mine.size(dpctl.memory.MemoryUSMDevice(4)))"
    refused = shell(f"PYTHONPATH=build python -c '{code}'", project)
    assert "dtype: expected float32" in refused.stderr


def test_the_commands_of_the_page_on_devices_do_what_it_says(tmp_path: Path) -> None:
    devices, selected, forbidden, searched = (
        shell(commands, tmp_path) for commands in console("how-to/devices")
    )
    told = [text for language, text in guide.blocks_of("how-to/devices") if language == "text"]
    assert devices.returncode == selected.returncode == 0
    assert f" {usm_dlpack.root_device(0).name}\n" in devices.stdout
    assert " opencl:cpu:0 " in selected.stdout
    assert "ONEAPI_DEVICE_SELECTOR=opencl:cpu " in selected.stdout
    assert (forbidden.returncode, forbidden.stderr) == (1, told[0])
    assert searched.returncode == 1
    assert f"\n{told[1]}" in searched.stdout


def test_the_command_of_the_page_on_refusals_says_what_the_example_does(tmp_path: Path) -> None:
    _, program = guide.programs_of("how-to/errors")
    (tmp_path / "explain.py").write_text(program.code, encoding="utf-8")
    (command,) = console("how-to/errors")
    explained = shell(command, tmp_path)
    assert explained.returncode == 1
    steps = re.findall(r"^  (ok|stop|\.\.) +(\d+)\. (.*)$", explained.stdout, re.MULTILINE)
    words = {"ok": "passed", "stop": "stopped", "..": "not reached"}
    shown = [f"{number} {words[mark]} - {title}" for mark, number, title in steps]
    printed = program.printed.splitlines()
    assert shown == printed[: printed.index("context_not_default")]
