# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site: what `python3 dev.py docs` runs in its environment.

Doxygen reads the headers, Sphinx the pages; a warning of either is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OUTPUT = ROOT / "build" / "docs"
XML = OUTPUT / "doxygen"


def read_headers() -> bool:
    """Run Doxygen on each folder of headers; say whether it had nothing to warn of."""
    shutil.rmtree(XML, ignore_errors=True)  # of headers that are no more
    XML.mkdir(parents=True)
    passed = True
    for folder in ("core", "sycl", "opencl", "nanobind"):
        settings = ["@INCLUDE = docs/Doxyfile", f"INPUT = include/usm_dlpack/{folder}"]
        settings += [f"OUTPUT_DIRECTORY = {XML}", f"XML_OUTPUT = {folder}"]
        command = ["doxygen", "-"]
        given = "\n".join(settings)
        done = subprocess.run(
            command, cwd=ROOT, input=given, stderr=subprocess.PIPE, text=True, check=False
        )
        print(done.stderr, end="", file=sys.stderr)
        passed = passed and done.returncode == 0 and not done.stderr
    return passed


def build_pages() -> bool:
    """Run Sphinx with warnings as errors; say whether there were none."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-q", "-E"]
    folders = ["-d", str(OUTPUT / "doctrees"), str(DOCS), str(OUTPUT / "html")]
    shutil.rmtree(OUTPUT / "html", ignore_errors=True)  # pages that are no more
    environment = os.environ | {
        "USM_DLPACK_DOXYGEN_XML": str(XML),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
    }
    return subprocess.run([*command, *folders], env=environment, check=False).returncode == 0


if __name__ == "__main__":
    passed = all([read_headers(), build_pages()])
    print(f"{'built' if passed else 'FAILED'}: {OUTPUT / 'html' / 'index.html'}")
    sys.exit(0 if passed else 1)
