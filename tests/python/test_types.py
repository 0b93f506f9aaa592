# SPDX-License-Identifier: Apache-2.0
"""Type checkers know all that is public, from the package as it is installed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typed_consumer
import usm_dlpack

CONSUMER = Path(typed_consumer.__file__)


def checked_by(
    checker: str, file: Path, folder: Path, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run a type checker on one file, where no configuration is, for an environment."""
    choices = {
        "mypy": ["--strict", "--config-file=", "--cache-dir=cache", "--python-executable", python],
        "pyright": ["--pythonpath", python],
    }
    return subprocess.run(
        [sys.executable, "-m", checker, *choices[checker], str(file)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_consumer_of_all_that_is_public_is_typed(checker: str, tmp_path: Path) -> None:
    copy = tmp_path / "consumer.py"
    copy.write_text(CONSUMER.read_text())
    done = checked_by(checker, copy, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = """
import usm_dlpack
tensor = usm_dlpack.from_dlpack(None)
tensor.shape.append(3)
number: int = tensor.usm_type
usm_dlpack.from_dlpack(tensor, copy="yes")
usm_dlpack.validate(tensor, shape=(3,))
tensor.data = 5
class Mine(usm_dlpack.DLPackTensor): ...
class Proof(usm_dlpack.UsmAllocation): ...
"""


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_wrong_uses_are_found(checker: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    done = checked_by(checker, wrong, tmp_path)
    for line in range(4, 11):
        assert f"wrong.py:{line}:" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_stub_of_the_compiled_module_names_only_what_there_is(
    checker: str, tmp_path: Path
) -> None:
    stub = tmp_path / "stub.pyi"
    stub.write_text(Path(usm_dlpack.__file__).with_name("_core.pyi").read_text())
    done = checked_by(checker, stub, tmp_path)
    assert "PyCapsule" not in done.stdout, done.stdout
    assert "is not defined" not in done.stdout, done.stdout


def test_the_consumer_uses_every_public_name() -> None:
    imported = {
        alias.name
        for node in ast.walk(ast.parse(CONSUMER.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "usm_dlpack"
        for alias in node.names
    }
    assert imported == set(usm_dlpack.__all__)


def test_the_consumer_runs(memory: Any) -> None:
    typed_consumer.run(memory)
