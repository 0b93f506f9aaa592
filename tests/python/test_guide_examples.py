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


def test_an_example_that_needs_more_prints_what_its_page_shows(
    driver: Path, driver_copies: Any, tmp_path: Path
) -> None:
    for name, given in (
        ("several_devices", {"OCL_ICD_FILENAMES": f"{driver}:{driver_copies['second']}"}),
        ("call_extension", {"PYTHONPATH": str(extension_under_test.build())}),
    ):
        assert guide.run(name, tmp_path, **given) == guide.expected(name)


def shell(commands: str, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run commands as a reader does whose environment is active, and require an exit status."""
    active = {"VIRTUAL_ENV": sys.prefix, "PIP_NO_INDEX": "1"}
    done = clean_environment.run("sh", "-ec", commands, cwd=folder, timeout=900, **active)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def built_project(name: str, folder: Path) -> Path:
    """Build a copy of a project of the page on CMake."""
    project = folder / name
    shutil.copytree(guide.EXAMPLES / "cmake" / name, project)
    shell(regions(project / "build.sh")["build"], project)
    return project


@pytest.mark.extended
def test_the_program_of_the_page_on_cmake_builds_with_the_package_and_with_a_prefix(
    tmp_path: Path, project_root: Path
) -> None:
    clone, prefix = tmp_path / "clone", tmp_path / "prefix"
    clone.mkdir()
    for name in ("CMakeLists.txt", "LICENSE", "cmake", "include"):
        (clone / name).symlink_to(project_root / name)
    project = built_project("program", tmp_path)
    run = regions(project / "build.sh")["run"]
    assert shell(run, project).stdout == "device 0\n"
    shutil.rmtree(project / "build")
    commands = regions(guide.EXAMPLES / "cmake" / "prefix.sh")
    shell(f"PREFIX={prefix}\n{commands['install']}", clone)
    assert {path.name for path in prefix.iterdir()} == {"include", "share"}
    prefix = prefix.rename(tmp_path / "moved")
    said = shell(f"PREFIX={prefix}\n{commands['use']}", project).stdout
    for name in ("dlpack", "mdspan"):
        assert f"{prefix}/share/usm_dlpack/third_party/{name}\n" in said
    assert shell(run, project).stdout == "device 0\n"


@pytest.mark.extended
def test_the_extension_of_the_page_on_cmake_builds_and_refuses(tmp_path: Path) -> None:
    project = built_project("extension", tmp_path)
    (extension,) = (project / "build").glob("mine.*.so")
    # As installed at the top of site-packages: its run path leads to the environment's libsycl.
    path = subprocess.check_output(["readelf", "--dynamic", extension], text=True)
    assert "libsycl" in path
    code = "import dpctl.memory, mine; print(mine.size(dpctl.memory.MemoryUSMDevice(4)))"
    refused = shell(f"PYTHONPATH=build python -c '{code}'", project, 1)
    assert "dtype: expected float32" in refused.stderr


def test_the_commands_of_the_page_on_devices_do_what_it_says(tmp_path: Path) -> None:
    commands = regions(guide.EXAMPLES / "devices.sh")
    devices, selected = (shell(commands[name], tmp_path).stdout for name in ("devices", "select"))
    assert f" {usm_dlpack.root_device(0).name}\n" in devices
    assert " opencl:cpu:0 " in selected
    assert "ONEAPI_DEVICE_SELECTOR=opencl:cpu " in selected
    assert shell(commands["forbid"], tmp_path, 1).stderr == guide.expected("drivers")
    assert f"\n{guide.expected('doctor')}" in shell(commands["doctor"], tmp_path, 1).stdout


def test_the_command_of_the_page_on_refusals_says_what_the_example_does(tmp_path: Path) -> None:
    shutil.copy(guide.EXAMPLES / "explain.py", tmp_path)
    explained = shell(regions(guide.EXAMPLES / "diagnosis.sh")["explain"], tmp_path, 1).stdout
    steps = re.findall(r"^  (ok|stop|\.\.) +(\d+)\. (.*)$", explained, re.MULTILINE)
    words = {"ok": "passed", "stop": "stopped", "..": "not reached"}
    shown = [f"{number} {words[mark]} - {title}" for mark, number, title in steps]
    printed = guide.expected("explain").splitlines()
    assert shown == printed[: printed.index("context_not_default")]
