# SPDX-License-Identifier: Apache-2.0
"""The configure step: a header of another project is found, or refused before anything is built."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.extended

ROOT = Path(__file__).resolve().parents[2]


def configure(folder: Path, *defines: str) -> tuple[int, str]:
    """Configure the project without its tests; return the exit status and what was said."""
    command = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DUSM_DLPACK_BUILD_TESTS=OFF"]
    command += [f"-D{define}" for define in defines]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_a_header_is_found_in_a_wheel_or_stops_with_the_cures(tmp_path: Path) -> None:
    status, said = configure(tmp_path / "here", f"Python_EXECUTABLE={sys.executable}")
    assert status == 0, said
    venv.create(tmp_path / "bare", with_pip=False)
    status, said = configure(
        tmp_path / "nowhere", f"Python_EXECUTABLE={tmp_path / 'bare/bin/python'}"
    )
    assert status != 0
    assert "dlpack/dlpack.h: expected dlpack.h 1.0 or newer, before 2.0, found no such " in said
    assert 'run `python -m pip install "apache-tvm-ffi>=0.1.9"`' in said
    assert "-DUSM_DLPACK_DLPACK_INCLUDE_DIR=<folder>" in said


def syntax_errors(source: Path, *flags: str) -> str:
    """Return what g++ says of a source that it refuses."""
    source.write_text("#include <usm_dlpack/core/config.hpp>\n")
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'include'}", *flags, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#define DLPACK_VERSION 60\n", "older than 1.0"),
        ("#define DLPACK_MAJOR_VERSION 2\n#define DLPACK_MINOR_VERSION 1\n", "another"),
    ],
)
def test_a_header_of_another_version_is_refused_by_cmake_and_by_the_compiler(
    tmp_path: Path, text: str, found: str
) -> None:
    header = tmp_path / "dlpack" / "dlpack.h"
    header.parent.mkdir()
    header.write_text(text)
    status, said = configure(tmp_path / "build", f"USM_DLPACK_DLPACK_INCLUDE_DIR={tmp_path}")
    assert status != 0
    expected = "expected dlpack.h 1.0 or newer, before 2.0, found "
    assert f"USM_DLPACK_DLPACK_INCLUDE_DIR: {expected}" in said
    refused = syntax_errors(tmp_path / "user.cpp", f"-I{tmp_path}")
    assert "#error dlpack/dlpack.h: expected " in refused
    assert found in refused


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("-U__GNUC__", "compiler: expected g++ or clang (icpx is one), found another; build with"),
        ("-fno-exceptions", "compiler flags: expected exceptions, found -fno-exceptions; remove"),
        ("-DNOTHING", "dlpack/dlpack.h: expected "),
    ],
)
def test_what_the_headers_cannot_be_compiled_with_is_said_in_words(
    tmp_path: Path, flag: str, sentence: str
) -> None:
    assert f"#error {sentence}" in syntax_errors(tmp_path / "user.cpp", flag)
