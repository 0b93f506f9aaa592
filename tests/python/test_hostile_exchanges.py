# SPDX-License-Identifier: Apache-2.0
"""Some of the hostile exchanges that ``python3 dev.py hostile`` runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.extended
def test_hostile_exchanges_on_opencl_end_as_documented_and_leave_nothing_behind(
    new_process: Callable[..., Any], driver: Path, driver_copies: Any, project_root: Path
) -> None:
    drivers = [driver, driver_copies["second"], driver_copies["broken"]]
    program = project_root / "tests" / "hostile" / "run.py"
    done = new_process(
        arguments=(str(program), "--count", "20000", "--seed", "1"),
        OCL_ICD_FILENAMES=":".join(map(str, drivers)),
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
