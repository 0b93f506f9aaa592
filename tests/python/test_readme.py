# SPDX-License-Identifier: Apache-2.0
"""The README: its Python runs and prints what it shows, its C++ is a test, its commands exist."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCREEN = 40


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_python_example_runs_and_prints_the_sentence_shown() -> None:
    printed = io.StringIO()
    (example,) = blocks("python")
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    sentence = printed.getvalue().strip()
    assert sentence
    assert f"\n    {sentence}\n" in README


def test_the_cpp_example_is_the_text_of_a_test() -> None:
    text = (ROOT / "tests/cpp/sycl/test_readme.cpp").read_text(encoding="utf-8")
    between = text.split("// README begins\n")[1].split("// README ends")[0]
    assert blocks("cpp") == [between]


def test_no_code_is_shown_that_is_not_tested() -> None:
    assert sorted(re.findall(r"^```(\w+)$", README, re.MULTILINE)) == ["cpp", "python"]


def test_commands_exist() -> None:
    commands = re.findall(r"^    python3 dev\.py (\w+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    for command in (*commands, *re.findall(r"`python3 dev\.py (\w+)`", README)):
        called = [sys.executable, str(ROOT / "dev.py"), command, "--help"]
        assert subprocess.run(called, capture_output=True, check=False).returncode == 0


def test_pages_and_pictures_that_it_names_exist() -> None:
    pages = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(pages) >= 15
    assert [page for page in pages if not (ROOT / page).is_file()] == []
    assert any(page.endswith(".svg") for page in pages)


@pytest.mark.parametrize("section", re.split(r"^(?=## )", README, flags=re.MULTILINE))
def test_each_section_fits_on_a_screen(section: str) -> None:
    assert len(section.splitlines()) <= SCREEN


def test_a_user_without_root_is_told_what_to_install() -> None:
    code = """
import os, dev
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    dev.require_debian_packages(["g++", "python3-venv"])
except dev.RefusalError as refusal:
    print(refusal)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == (
        "",
        "system packages: expected g++, python3-venv, found none of them; "
        "run `apt-get install g++ python3-venv` as root\n",
    )
