# SPDX-License-Identifier: Apache-2.0
"""The check of code blocks takes what is built or run, and sees what is not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import shown_code

PROGRAM = "first = 1\n\n\ndef second():\n    third = 3\n    return third\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a small project with a program, what it prints, and a command."""
    files = {
        "docs/examples/program.py": PROGRAM,
        "docs/examples/output/program.txt": "program: shape: expected 2, found 3; reshape\n",
        "docs/not_run.py": "fourth = 4\n",
        "dev.py": "COMMANDS = {f.__name__: f for f in (test, docs)}\n",
        "CMakePresets.json": json.dumps({"workflowPresets": [{"name": "dev"}]}),
        "README.md": "",
        "CONTRIBUTING.md": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    shown_code.run_files.cache_clear()
    shown_code.commands_of_dev.cache_clear()
    return tmp_path


def faults(project: Path, page: str) -> list[str]:
    (project / "docs" / "page.md").write_text(page)
    return shown_code.faults_of_code_blocks(project)


@pytest.mark.parametrize(
    "page",
    [
        "```python\nthird = 3\nreturn third\n```\n",
        "```{code-block} python\n:linenos:\n\nfirst = 1\n```\n",
        "```{literalinclude} examples/program.py\n:language: python\n```\n",
        "```sh\n$ python3 dev.py docs --browser\n```\n",
        "```console\ncmake --workflow --preset dev\n```\n",
        "text\n\n    shape: expected 2, found 3; reshape\n",
        "- an item\n\n    and its second paragraph\n",
        "````{note}\ntext\n```python\nfirst = 1\n```\n````\n",
        "```{glossary}\nterm\n    What it means.\n```\n",
    ],
)
def test_code_that_is_run_is_taken(project: Path, page: str) -> None:
    assert faults(project, page) == []


@pytest.mark.parametrize(
    ("page", "line", "found"),
    [
        ("text\n```python\nfirst = 1\nthird = 3\n```\n", 2, "'first = 1' and 1 more"),
        ("```python\nthird = 3\n  return third\n```\n", 1, "'third = 3' and 1 more"),
        ("```python\nfourth = 4\n```\n", 1, "'fourth = 4'"),
        ("```{code-block} python\nfirst = 2\n```\n", 1, "'first = 2'"),
        ("```{literalinclude} not_run.py\n```\n", 1, "docs/not_run.py"),
        ("text\n\n    first = 2\n", 3, "'first = 2'"),
        ("```sh\npython3 dev.py tests\n```\n", 1, "'python3 dev.py tests'"),
        ("```sh\ncmake --workflow --preset other\n```\n", 1, "'cmake --workflow --preset other'"),
        ("```text\nexpected 2, found 4\n```\n", 1, "'expected 2, found 4'"),
        ("````{note}\ntext\n```python\nfirst = 2\n```\n````\n", 3, "'first = 2'"),
    ],
)
def test_code_that_is_not_run_is_a_fault(project: Path, page: str, line: int, found: str) -> None:
    (fault,) = faults(project, page)
    assert fault.startswith(f"docs/page.md:{line}: expected")
    assert found in fault


def test_python_of_a_page_that_a_test_runs_is_taken(project: Path) -> None:
    (project / "README.md").write_text("```python\nof_its_own = 1\n```\n")
    assert faults(project, "") == []


def test_the_tests_that_run_pages_do_read_them() -> None:
    for page, test in shown_code.PYTHON_RUN_BY.items():
        assert Path(page).name in (shown_code.ROOT / test).read_text()
