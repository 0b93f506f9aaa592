# SPDX-License-Identifier: Apache-2.0
"""The examples of the tutorial and the how-to pages: they run, and print what the pages show.

Those that need a peer run where it is: tests/interoperability/test_guide_examples.py.
"""

from __future__ import annotations

import os
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
from usm_dlpack import _core

DOCS = guide.ROOT / "docs"
# Those whose Python needs nothing that is not here, and is a region after the other.
PAGES_HERE = [
    DOCS / f"{name}.md"
    for name in (
        *("tutorial", "how-to/errors", "how-to/numpy", "how-to/tvm_ffi"),
        *("how-to/sub_devices", "how-to/streams"),
    )
]
PAGES = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
# Where the code of the pages is, besides docs/examples/: each is run or built by a test.
SOURCES = [
    *sorted(path for path in guide.EXAMPLES.iterdir() if path.is_file()),
    *sorted(path for path in (guide.EXAMPLES / "cmake").rglob("*") if path.is_file()),
    guide.ROOT / "tests" / "cpp" / "sycl" / "test_guide.cpp",
    guide.ROOT / "tests" / "cpp" / "sycl" / "test_readme.cpp",
    guide.ROOT / "tests" / "python" / "extension_project" / "guide_extension.cpp",
]
HERE = (
    *("tutorial", "with_dpctl", "with_numpy", "with_tvm_ffi"),
    *("sub_devices", "streams", "refusals", "explain"),
)
REGION = re.compile(
    r"^ *(?:#|//) \[begin ([\w ]+)\]\n(.*?)^ *(?:#|//) \[end \1\]$", re.DOTALL | re.MULTILINE
)


def regions(source: Path) -> dict[str, str]:
    """Return the regions of a source, without the indentation that all lines share."""
    found = REGION.findall(source.read_text(encoding="utf-8"))
    return {name: textwrap.dedent(text).strip("\n") for name, text in found}


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return language and text of each code block of a page; directives have none."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(language, block.strip("\n")) for language, block in found]


@pytest.mark.parametrize("name", HERE)
def test_an_example_prints_what_its_page_shows(name: str, tmp_path: Path) -> None:
    assert guide.run(name, tmp_path, "-W", "error") == guide.expected(name)


@pytest.mark.parametrize("page", PAGES_HERE, ids=lambda page: page.stem)
def test_a_page_can_be_typed_from_top_to_bottom(page: Path, succeed: Any) -> None:
    shown = blocks(page)
    code = "\n".join(block for language, block in shown if language == "python")
    printed = "\n".join(block for language, block in shown if language == "text")
    assert succeed(code) == f"{printed}\n"


def test_the_example_of_several_devices_runs_on_two(
    driver: Path, driver_copies: Any, tmp_path: Path
) -> None:
    two = f"{driver}:{driver_copies['second']}"
    printed = guide.run("several_devices", tmp_path, "-W", "error", OCL_ICD_FILENAMES=two)
    assert printed == guide.expected("several_devices")


def test_the_example_that_calls_the_extension_prints_what_its_page_shows(tmp_path: Path) -> None:
    built = str(extension_under_test.build())
    printed = guide.run("call_extension", tmp_path, "-W", "error", PYTHONPATH=built)
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
    kept = clean_environment.without()
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-ec", commands],
        cwd=folder,
        env=kept | {"PATH": tools, "VIRTUAL_ENV": sys.prefix, "PIP_NO_INDEX": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def built_project(name: str, folder: Path) -> tuple[Path, dict[str, str]]:
    """Build a copy of a project of the page on CMake; return it with the page's commands."""
    project = folder / name
    shutil.copytree(guide.EXAMPLES / "cmake" / name, project)
    commands = regions(project / "build.sh")
    built = shell(commands["build"], project)
    assert built.returncode == 0, built.stdout + built.stderr
    return project, commands


@pytest.mark.extended
def test_the_program_of_the_page_on_cmake_builds_and_runs(tmp_path: Path) -> None:
    project, commands = built_project("program", tmp_path)
    ran = shell(commands["run"], project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "device 0\n", "")


@pytest.mark.extended
def test_the_prefix_of_the_page_on_cmake_is_one_that_a_program_builds_with(
    tmp_path: Path, project_root: Path
) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("CMakeLists.txt", "LICENSE", "cmake", "include"):
        (clone / name).symlink_to(project_root / name)
    project = tmp_path / "program"
    shutil.copytree(guide.EXAMPLES / "cmake" / "program", project)
    commands = regions(guide.EXAMPLES / "cmake" / "prefix.sh")
    for step, folder in (("install", clone), ("use", project)):
        done = shell(f"PREFIX={tmp_path}/prefix\n{commands[step]}", folder)
        assert done.returncode == 0, done.stdout + done.stderr
    for header in ("dlpack/dlpack/dlpack.h", "mdspan/mdspan/mdspan.hpp"):
        assert (tmp_path / "prefix" / "third_party" / header).is_file()
    cache = (project / "build" / "CMakeCache.txt").read_text(encoding="utf-8")
    assert f"usm_dlpack_DIR:PATH={tmp_path}/prefix/" in cache
    ran = shell(regions(guide.EXAMPLES / "cmake" / "program" / "build.sh")["run"], project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "device 0\n", "")


@pytest.mark.extended
def test_the_extension_of_the_page_on_cmake_builds_and_refuses(tmp_path: Path) -> None:
    project, _ = built_project("extension", tmp_path)
    (extension,) = (project / "build").glob("mine.*.so")
    # As installed at the top of site-packages: its run path leads to the environment's libsycl.
    path = subprocess.check_output(["readelf", "--dynamic", extension], text=True)
    assert "libsycl" in path
    code = "import dpctl.memory, mine; print(mine.size(dpctl.memory.MemoryUSMDevice(4)))"
    refused = shell(f"PYTHONPATH=build python -c '{code}'", project)
    assert "dtype: expected float32" in refused.stderr


def test_the_commands_of_the_page_on_drivers_do_what_it_says(tmp_path: Path) -> None:
    commands = regions(guide.EXAMPLES / "drivers.sh")
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


def test_each_example_is_run_by_a_test() -> None:
    needing_peers = guide.ROOT / "tests" / "interoperability" / "test_guide_examples.py"
    elsewhere = needing_peers.read_text(encoding="utf-8")
    names = {path.stem for path in guide.EXAMPLES.glob("*.py")} - {*HERE, "several_devices"}
    names.remove("call_extension")
    assert sorted(name for name in names if f'"{name}"' not in elsewhere) == []
    outputs = {path.stem for path in (guide.EXAMPLES / "output").glob("*.txt")}
    assert outputs == {path.stem for path in guide.EXAMPLES.glob("*.py")} | {
        "doctor",
        "drivers",
        "onednn",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_is_a_region_that_a_test_runs(page: Path) -> None:
    known = [region for source in SOURCES for region in regions(source).values()]
    known.append("python3 dev.py demo")  # test_readme.py knows that there is such a command
    code = [block for language, block in blocks(page) if language != "text"]
    assert [block for block in code if block not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_output_on_a_page_is_what_a_test_compares(page: Path) -> None:
    outputs = (guide.EXAMPLES / "output").glob("*.txt")
    lines = [f"\n{path.read_text(encoding='utf-8')}" for path in outputs]
    shown = [block for language, block in blocks(page) if language == "text"]
    assert [block for block in shown if not any(f"\n{block}\n" in text for text in lines)] == []


def test_no_region_is_left_unshown() -> None:
    shown = {block for page in PAGES for _, block in blocks(page)}
    left = [
        (source.name, region)
        for source in SOURCES
        for region in regions(source).values()
        if region not in shown and source.name != "test_readme.cpp"
    ]
    assert left == []


def test_the_round_trip_of_the_tutorial_has_twenty_lines() -> None:
    code = regions(guide.EXAMPLES / "tutorial.py")["round trip"]
    assert len([line for line in code.splitlines() if line]) <= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_codes_and_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"\{error\}`(\w+)`", text))
    assert named <= {code for code, _, _ in _core.error_table()}
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\((?!https:)([^)#:\s]+)", prose)
    assert [link for link in links if not (page.parent / link).exists()] == []
