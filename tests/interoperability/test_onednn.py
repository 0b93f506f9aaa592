# SPDX-License-Identifier: Apache-2.0
"""oneDNN: the Python of the example's README prints what it shows.

The example is installed by then, and its own tests have run.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_python_of_the_readme_prints_what_it_shows() -> None:
    text = (ROOT / "examples/onednn/README.md").read_text(encoding="utf-8")
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n\n    (.*\n)", text, re.DOTALL)
    printed = printed.splitlines()[0]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{printed}\n", "")


def test_this_is_the_release_that_the_page_names() -> None:
    for wheel in ("onednn", "onednn-devel"):
        version = importlib.metadata.version(wheel)
        assert version in (ROOT / "docs" / "onednn.md").read_text(encoding="utf-8")
