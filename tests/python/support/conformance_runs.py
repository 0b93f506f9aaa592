# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance suite in a process of its own."""

import os
import re
import sys
from pathlib import Path

import clean_environment

ROOT = Path(__file__).resolve().parents[3]


def conform(adapter: str, *options: str, **variables: str) -> tuple[set[str], set[str], str]:
    """Return the cases that failed, those that were not run, and what was printed."""
    paths = (ROOT / "conformance", ROOT / "tests" / "python" / "support")
    done = clean_environment.run(
        *(sys.executable, "-m", "pytest", "--pyargs", "usm_dlpack_conformance"),
        *("-p", "usm_dlpack_conformance.plugin", "-p", "no:cacheprovider"),
        *("-c", os.devnull, "--tb=short", "--adapter", adapter, *options),
        PYTHONPATH=os.pathsep.join(map(str, paths)),
        timeout=900,
        **variables,
    )
    failed, not_run = (
        set(re.findall(rf"(?m)^{result} +([\w.-]+) \(", done.stdout))
        for result in ("FAILED", "not run")
    )
    assert re.search(r"(?m)^\d+ passed, \d+ FAILED, \d+ not run$", done.stdout), done.stdout
    assert done.returncode == (1 if failed else 0), done.stdout
    return failed, not_run, done.stdout
