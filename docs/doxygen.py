# SPDX-License-Identifier: Apache-2.0
"""Lets Doxygen read the headers, whose XML cpp_reference.py shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def read_headers(xml: Path, root: Path) -> bool:
    """Run Doxygen on the headers of a tree; say whether it had nothing to warn of."""
    shutil.rmtree(xml, ignore_errors=True)  # of headers that are no more
    xml.mkdir(parents=True)
    settings = [
        f"@INCLUDE = {root / 'docs' / 'Doxyfile'}",
        f"OUTPUT_DIRECTORY = {xml.parent}",
        f"XML_OUTPUT = {xml.name}",
    ]
    done = subprocess.run(
        ["doxygen", "-"],
        cwd=root,
        input="\n".join(settings),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode == 0 and not done.stderr
