# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the tutorial and the how-to pages as a reader would, each in a new process.

What docs/examples/<name>.py prints must be docs/examples/output/<name>.txt. Each of them is run by
tests/python/test_guide_examples.py, or, if it needs a peer, by the test of the same name in
tests/interoperability/.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import clean_environment

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def expected(name: str) -> str:
    """Return what an example prints, as its page shows it."""
    return (EXAMPLES / "output" / f"{name}.txt").read_text(encoding="utf-8")


def run(
    name: str,
    folder: Path,
    *options: str,
    launcher: tuple[str | Path, ...] = (),
    **variables: str,
) -> str:
    """Run an example in a folder, require success and silence, and return what it printed.

    Parameters
    ----------
    name
        That of its file, without .py.
    folder
        Where it runs.
    options
        For Python.
    launcher
        What stands before Python.
    variables
        Of its environment.

    Returns
    -------
    :
        Its output.
    """
    done = subprocess.run(
        [*launcher, sys.executable, *options, EXAMPLES / f"{name}.py"],
        env=clean_environment.without() | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
