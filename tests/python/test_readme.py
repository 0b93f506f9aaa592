# SPDX-License-Identifier: Apache-2.0
"""The README: its Python runs and prints what it shows, its C++ is a test, its commands exist."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpctl
import extension_under_test

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_python_examples_run_and_print_the_sentence_shown() -> None:
    printed = io.StringIO()
    examples = blocks("python")
    assert len(examples) == 2
    with contextlib.redirect_stdout(printed):
        for example in examples:
            exec(compile(example, "README.md", "exec"), {})
    sentence = printed.getvalue().strip()
    assert sentence
    assert f"\n    {sentence}\n" in README


def test_cpp_examples_are_the_texts_of_tests() -> None:
    between = []
    for source in (
        "tests/cpp/sycl/test_readme.cpp",
        "tests/python/extension_project/readme_extension.cpp",
    ):
        text = (ROOT / source).read_text(encoding="utf-8")
        between.append(text.split("// README begins\n")[1].split("// README ends")[0])
    assert blocks("cpp") == between


def test_the_extension_does_what_the_readme_says(queue: Any) -> None:
    extension = extension_under_test.load("readme_extension")
    made = extension.filled(queue, 3, 1.5)
    assert made.sycl_queue == queue
    assert made.numpy().tolist() == [1.5] * 3
    assert type(extension.fill(queue, made, 2)) is dpctl.SyclEvent
    assert made.numpy().tolist() == [2] * 3


def test_the_cmake_example_configures(tmp_path: Path) -> None:
    (block,) = blocks("cmake")
    text = f"cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES CXX)\n{block}"
    (tmp_path / "CMakeLists.txt").write_text(text)
    (tmp_path / "mine.cpp").write_text("// that it compiles, the extension shows\n")
    (command,) = re.findall(r"^    (cmake -S (?:.*\\\n)*.*)$", README, re.MULTILINE)
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=os.environ | {"PATH": tools},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_commands_exist() -> None:
    commands = re.findall(r"^    python3 dev\.py (\w+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    for command in commands:
        called = [sys.executable, str(ROOT / "dev.py"), command, "--help"]
        assert subprocess.run(called, capture_output=True, check=False).returncode == 0


def test_pages_that_it_names_exist() -> None:
    pages = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(pages) >= 6
    assert [page for page in pages if not (ROOT / page).is_file()] == []
