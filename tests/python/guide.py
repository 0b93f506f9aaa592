# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the tutorial and the how-to pages as a reader would, each in a new process.

What docs/examples/<name>.py prints must be docs/examples/output/<name>.txt. Each of them is run by
tests/python/test_guide_examples.py, or, if it needs a peer, by the test of the same name in
tests/interoperability/.
"""

from __future__ import annotations

import sys
from pathlib import Path

import clean_environment

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"


def expected(name: str) -> str:
    """Return what an example prints, as its page shows it."""
    return (EXAMPLES / "output" / f"{name}.txt").read_text(encoding="utf-8")


def run(name: str, folder: Path, *, launcher: tuple[str | Path, ...] = (), **variables: str) -> str:
    """Run an example in a folder, require success and silence, and return what it printed.

    The launcher stands before Python, as ``mpirun`` does.
    """
    command = (*launcher, sys.executable, EXAMPLES / f"{name}.py")
    done = clean_environment.run(*command, cwd=folder, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
