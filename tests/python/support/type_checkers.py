# SPDX-License-Identifier: Apache-2.0
"""Runs type checkers as a user does."""

import subprocess
import sys
from pathlib import Path

import time_limit

CHECKERS = {
    "mypy": ["--strict", "--config-file=", "--cache-dir=cache", "--python-executable"],
    "pyright": ["--pythonpath"],
}


def checked_by(checker: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a type checker on a folder, by default without a configuration, for this environment."""
    command = [sys.executable, "-m", checker, *CHECKERS[checker], sys.executable, *options, "."]
    with time_limit.paused():
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
