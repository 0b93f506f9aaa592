# SPDX-License-Identifier: Apache-2.0
"""What the pages of docs/ show is run: Python, and commands in a shell.

Python that needs a peer runs where it is: tests/interoperability/test_guide_examples.py.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import clean_environment
import extension_under_test
import guide
import pytest
import usm_dlpack

EXAMPLES = guide.DOCS / "examples"
ON_TWO_DEVICES = ("how-to/devices", "explanation/device_id")
OF_PEERS = {"dpnp", "mpi4py", "torch"}


def console(page: str) -> list[str]:
    return [text for language, text in guide.blocks_of(page) if language == "console"]


@pytest.mark.parametrize(
    "name",
    [name for name, program in guide.PROGRAMS.items() if not program.modules & OF_PEERS],
)
def test_a_program_prints_what_its_page_shows(name, several_devices, tmp_path):
    program = guide.PROGRAMS[name]
    variables = several_devices(2) if program.page in ON_TWO_DEVICES else {}
    if "guide_extension" in program.modules:
        variables["PYTHONPATH"] = str(extension_under_test.build())
    assert program.run(tmp_path, **variables) == program.printed


def shell(commands: str, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run commands as a reader does whose environment is active, and require an exit status."""
    active = {"VIRTUAL_ENV": sys.prefix, "PIP_NO_INDEX": "1"}
    done = clean_environment.run("sh", "-ec", commands, cwd=folder, timeout=900, **active)
    assert done.returncode == status, done.stdout + done.stderr
    return done


BUILD_PROGRAM, BUILD_EXTENSION, RUN, INSTALL, USE, COMPILE = console("how-to/cmake")


def built_project(name: str, commands: str, folder: Path) -> Path:
    project = folder / name
    shutil.copytree(EXAMPLES / "cmake" / name, project)
    shell(commands, project)
    return project


@pytest.mark.extended
def test_the_program_of_the_page_on_cmake_builds_with_the_package_a_prefix_and_without_cmake(
    tmp_path, project_root
):
    clone, prefix = tmp_path / "clone", tmp_path / "prefix"
    clone.mkdir()
    for name in ("CMakeLists.txt", "LICENSE", "cmake", "include"):
        (clone / name).symlink_to(project_root / name)
    project = built_project("program", BUILD_PROGRAM, tmp_path)
    assert shell(RUN, project).stdout == "device 0\n"
    shutil.rmtree(project / "build")
    shell(f"PREFIX={prefix}\n{INSTALL}", clone)
    assert {path.name for path in prefix.iterdir()} == {"include", "share"}
    prefix = prefix.rename(tmp_path / "moved")
    said = shell(f"PREFIX={prefix}\n{USE}", project).stdout
    for name in ("dlpack", "mdspan"):
        assert f"{prefix}/share/usm_dlpack/third_party/{name}\n" in said
    assert shell(RUN, project).stdout == "device 0\n"
    with (project / "program.cpp").open("a") as source:
        source.write("#include <mdspan/mdspan.hpp>\nKokkos::dextents<int, 2> extents;\n")
    shell(COMPILE, project)
    assert shell(RUN.replace("build/", "./"), project).stdout == "device 0\n"


@pytest.mark.extended
def test_the_extension_of_the_page_on_cmake_builds_and_refuses(tmp_path):
    project = built_project("extension", BUILD_EXTENSION, tmp_path)
    (extension,) = (project / "build").glob("mine.*.so")
    # As installed at the top of site-packages: its run path leads to the environment's libsycl.
    path = subprocess.check_output(["readelf", "--dynamic", extension], text=True)
    assert "libsycl" in path
    code = "import dpctl.memory, mine; print(mine.size(dpctl.memory.MemoryUSMDevice(4)))"
    refused = shell(f"PYTHONPATH=build python -c '{code}'", project, 1)
    assert "dtype: expected float32" in refused.stderr


def test_the_commands_of_the_page_on_devices_do_what_it_says(tmp_path):
    show, select, forbid, search, show_two = console("how-to/devices")
    told = [text for language, text in guide.blocks_of("how-to/devices") if language == "text"]
    selected = shell(select, tmp_path).stdout
    assert f" {usm_dlpack.root_device(0).name}\n" in shell(show, tmp_path).stdout
    assert " opencl:cpu:0 " in selected
    assert "ONEAPI_DEVICE_SELECTOR=opencl:cpu " in selected
    assert shell(forbid, tmp_path, 1).stderr == told[0]
    assert f"\n{told[1]}" in shell(search, tmp_path, 1).stdout
    assert " opencl:cpu:1 " in shell(show_two, tmp_path).stdout


def test_the_command_of_the_page_on_refusals_says_what_the_example_does(tmp_path):
    _, program = guide.programs_of("how-to/errors")
    (tmp_path / "explain.py").write_text(program.code, encoding="utf-8")
    (command,) = console("how-to/errors")
    explained = shell(command, tmp_path, 1).stdout
    shown = [f"{outcome} {name}" for outcome, name in re.findall(r"(?m)^  (\w+) +(\w+)", explained)]
    printed = program.printed.splitlines()
    assert shown == printed[: printed.index("context_not_default")]
