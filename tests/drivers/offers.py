# SPDX-License-Identifier: Apache-2.0
"""Memory, arrays that offer it with any id, and processes with other variables."""

import os
import subprocess
import sys
import textwrap
from typing import Any

from capsules import ForeignArray, ForeignTensor
from memory_sources import KINDS


def usm(usm_type: str, nbytes: int, queue: Any) -> Any:
    """Return memory that nothing is written to: not every simulated device copies."""
    return KINDS[usm_type](nbytes, queue=queue)


def offered(address: int, device_id: int, nbytes: int = 48) -> ForeignArray:
    """Return an array of another library over some bytes, with an id that a test chooses."""
    foreign = ForeignTensor(address, shape=(nbytes,), dtype=(1, 8, 1))
    foreign.tensor.device_id = device_id
    return ForeignArray(foreign, (14, device_id))


def output_of(code: str, *arguments: str, **variables: str) -> str:
    """Return what Python code prints in a process of its own, which must succeed in silence."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
