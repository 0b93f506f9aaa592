# SPDX-License-Identifier: Apache-2.0
"""Five thousand of the hostile exchanges that ``python3 dev.py hostile`` runs by the hundred."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.extended

Fuzz = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def fuzz(
    new_process: Callable[..., Any], driver: Path, driver_copies: Any, project_root: Path
) -> Fuzz:
    """Return a function that runs the program with two root devices that work and a broken one."""
    drivers = [driver, driver_copies["second"], driver_copies["broken"]]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = project_root / "tests" / "hostile" / "run.py"
        done: subprocess.CompletedProcess[str] = new_process(
            arguments=(str(program), *arguments),
            OCL_ICD_FILENAMES=":".join(str(library) for library in drivers),
        )
        return done

    return run


def test_hostile_exchanges_on_opencl_end_as_documented_and_leave_nothing_behind(fuzz: Fuzz) -> None:
    done = fuzz("--count", "5000", "--seed", "1")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_one_case_on_opencl_can_be_run_again(fuzz: Fuzz) -> None:
    outputs = [fuzz("--first", "1234", "--count", "1").stdout for _ in range(2)]
    outcomes = [output.splitlines()[0] for output in outputs]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].startswith("       1  ")
