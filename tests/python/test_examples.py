# SPDX-License-Identifier: Apache-2.0
"""The commands of the examples, run on a copy with the installed package alone.

The copy has one thing more: the function that the README of the extension adds as the author's own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import clean_environment
import pytest

pytestmark = pytest.mark.extended

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OWN = "## Your own function"
# What would lead a build or a program to the sources.
SOURCES = ("CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "usm_dlpack_DIR")


def read(page: str) -> str:
    """Return the text of a file of the examples."""
    return (EXAMPLES / page).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def own_function() -> tuple[str, str, str]:
    """Return the kernel, the function and the call that the extension's README adds."""
    section = read("extension/README.md").split(OWN)[1]
    kernel, function = blocks(section, "cpp")
    (call,) = blocks(section, "python")
    return kernel, function, call


PYTHON = (sys.executable, "-W", "error", "-c")
Run = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the examples, in which the extension has its author's own function."""
    copy = tmp_path_factory.mktemp("examples") / "examples"
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("build", "__pycache__"))
    kernel, function, _ = own_function()
    kernels, extension = (copy / "extension" / "src" / f for f in ("kernels.cpp", "extension.cpp"))
    kernels.write_text(f"{kernels.read_text()}\n{kernel}", encoding="utf-8")
    text = extension.read_text(encoding="utf-8").rstrip()
    assert text.endswith("}")
    extension.write_text(f"{text[:-1]}\n{function}}}\n", encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def installed(folder: Path) -> Path:
    """Return the folder of the installed extension, which is beside the copy."""
    return folder.parent / "installed" / "grid_kernels"


@pytest.fixture(scope="module")
def run(folder: Path, installed: Path) -> Run:
    """Return a function that runs a line of a shell in the copy, requires success, and prints.

    pip finds in this environment what it is asked for, and installs nothing else in it.
    """
    environment = clean_environment.without(*SOURCES) | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(installed.parent),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        # Optimising takes longer than the tests; kernels are compiled once for all processes.
        "SKBUILD_CMAKE_BUILD_TYPE": "Debug",
        "SYCL_CACHE_PERSISTENT": "1",
        "SYCL_CACHE_DIR": str(folder.parent / "cache"),
    }

    def line(*command: str, **more: str) -> str:
        done = subprocess.run(
            [*command] if len(command) > 1 else ["sh", "-c", *command],
            env=environment | more,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return line


@pytest.fixture(scope="module")
def printed(run: Run, installed: Path) -> dict[str, str]:
    """Run the commands of examples/README.md in their order; return what each printed."""
    (commands,) = blocks(read("README.md"), "sh")
    beside = {"PIP_TARGET": str(installed.parent)}
    return {
        command: run(command, **(beside if command.endswith("./extension") else {}))
        for command in commands.splitlines()
    }


def test_the_commands_build_and_test_both_examples(printed: dict[str, str]) -> None:
    of_extension = printed["python -m pytest extension"].splitlines()[-1]
    assert re.match(r"(=* )?\d+ passed in ", of_extension), of_extension
    (of_c_abi,) = (said for command, said in printed.items() if " ctest " in command)
    assert "100% tests passed" in of_c_abi


@pytest.mark.usefixtures("printed")
def test_the_calls_of_the_readme_do_what_it_says(run: Run) -> None:
    page = read("extension/README.md").split(OWN)[0]
    (code,) = blocks(page, "python")
    sentence = run(*PYTHON, code)
    assert sentence.startswith("total: argument 2: ")
    assert f"\n    {sentence}" in page
    assert run(*PYTHON, own_function()[2]) == ""


@pytest.mark.usefixtures("printed")
def test_the_stub_names_arrays_and_queues(installed: Path) -> None:
    stub = (installed / "_extension.pyi").read_text(encoding="utf-8")
    assert "def negate(queue: dpctl.SyclQueue, x: Annotated[usm_dlpack.UsmArray, " in stub
    assert "-> usm_dlpack.DLPackTensor: ..." in stub
    assert (installed / "py.typed").is_file()
