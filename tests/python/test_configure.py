# SPDX-License-Identifier: Apache-2.0
"""The configure step: a header of another project is found, or refused before anything is built."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.extended

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment that has no package at all."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def configure(folder: Path, *defines: str) -> tuple[int, str]:
    """Configure the project without its tests; return the exit status and what was said."""
    command = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DUSM_DLPACK_BUILD_TESTS=OFF"]
    done = subprocess.run(
        [*command, *(f"-D{define}" for define in defines)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_header_in_a_wheel_of_the_environment_is_found(tmp_path: Path) -> None:
    status, said = configure(tmp_path, f"Python_EXECUTABLE={sys.executable}")
    assert status == 0, said
    assert "dlpack.h: " in said


def test_header_found_nowhere_stops_with_the_cures(tmp_path: Path, bare_python: Path) -> None:
    status, said = configure(tmp_path, f"Python_EXECUTABLE={bare_python}")
    assert status != 0
    assert (
        "dlpack/dlpack.h: expected dlpack.h 1.0 or newer, before 2.0, found no such header; "
        'run `python -m pip install "apache-tvm-ffi>=0.1.9"`'
    ) in said
    assert "-DUSM_DLPACK_DLPACK_INCLUDE_DIR=<folder>" in said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#define DLPACK_VERSION 60\n", "a version older than 1.0"),
        ("#define DLPACK_MAJOR_VERSION 2\n#define DLPACK_MINOR_VERSION 1\n", "version 2.1"),
    ],
)
def test_header_of_another_version_is_refused(tmp_path: Path, text: str, found: str) -> None:
    header = tmp_path / "dlpack" / "dlpack.h"
    header.parent.mkdir()
    header.write_text(text)
    status, said = configure(tmp_path / "build", f"USM_DLPACK_DLPACK_INCLUDE_DIR={tmp_path}")
    assert status != 0
    expected = "USM_DLPACK_DLPACK_INCLUDE_DIR: expected dlpack.h 1.0 or newer, before 2.0, found "
    assert expected + found in said


def syntax_errors(source: Path, *flags: str) -> str:
    """Return what g++ says of a source that it refuses."""
    source.write_text("#include <usm_dlpack/core/config.hpp>\n")
    done = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'include'}", *flags, str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("-U__GNUC__", "compiler: expected g++ or clang (icpx is one), found another; build with"),
        (
            "-fno-exceptions",
            "compiler flags: expected exceptions, found -fno-exceptions; remove that flag",
        ),
    ],
)
def test_another_compiler_or_no_exceptions_is_refused_in_words(
    tmp_path: Path, flag: str, sentence: str
) -> None:
    assert f"#error {sentence}" in syntax_errors(tmp_path / "user.cpp", flag)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "no such header"),
        ("#define DLPACK_VERSION 60\n", "one older than 1.0"),
        ("#define DLPACK_MAJOR_VERSION 2\n", "another"),
    ],
)
def test_compiler_refuses_another_header_in_words(
    tmp_path: Path, text: str | None, found: str
) -> None:
    if text is not None:
        header = tmp_path / "dlpack" / "dlpack.h"
        header.parent.mkdir()
        header.write_text(text)
    said = syntax_errors(tmp_path / "user.cpp", f"-I{tmp_path}")
    sentence = re.search(r"#error (dlpack/dlpack\.h: expected .*, found (.*); .+)", said)
    assert sentence is not None, said
    assert sentence.group(2) == found
