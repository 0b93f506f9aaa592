# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site: what `python3 dev.py docs` runs in its environment.

Error codes without a page get one. Doxygen reads the headers, Sphinx the pages; a warning of
either is an error, and so is a public Python name without an entry.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import error_table
from sphinx.util.inventory import InventoryFile

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent


def read_headers(xml: Path) -> bool:
    """Run Doxygen on each folder of headers; say whether it had nothing to warn of."""
    shutil.rmtree(xml, ignore_errors=True)  # of headers that are no more
    xml.mkdir(parents=True)
    passed = True
    for folder in ("core", "sycl", "opencl", "nanobind"):
        settings = ["@INCLUDE = docs/Doxyfile", f"INPUT = include/usm_dlpack/{folder}"]
        settings += [f"OUTPUT_DIRECTORY = {xml}", f"XML_OUTPUT = {folder}"]
        command = ["doxygen", "-"]
        given = "\n".join(settings)
        done = subprocess.run(
            command, cwd=ROOT, input=given, stderr=subprocess.PIPE, text=True, check=False
        )
        print(done.stderr, end="", file=sys.stderr)
        passed = passed and done.returncode == 0 and not done.stderr
    return passed


def build_pages(output: Path, xml: Path) -> bool:
    """Run Sphinx with warnings as errors; say whether there were none."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-q", "-E"]
    folders = ["-d", str(output / "doctrees"), str(DOCS), str(output / "html")]
    shutil.rmtree(output / "html", ignore_errors=True)  # pages that are no more
    environment = os.environ | {
        "USM_DLPACK_DOXYGEN_XML": str(xml),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
    }
    return subprocess.run([*command, *folders], env=environment, check=False).returncode == 0


def faults_of_python_reference(site: Path) -> list[str]:
    """Find public Python names without an entry; the C++ pages have all names of their folder."""
    import usm_dlpack

    inventory = (site / "objects.inv").read_bytes()
    entries = InventoryFile.loads(inventory, uri="").data
    known = {name for kind, names in entries.items() if kind.startswith("py:") for name in names}
    return [
        f"usm_dlpack.{name}: expected an entry, found none; add it to docs/reference/python.rst"
        for name in usm_dlpack.__all__
        if f"usm_dlpack.{name}" not in known
    ]


def main() -> int:
    """Build, and check what was built."""
    parser = argparse.ArgumentParser(prog="docs/build.py", description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "docs")
    output = parser.parse_args().output.resolve()
    xml = output / "doxygen"
    error_table.write_pages()
    passed = all([read_headers(xml), build_pages(output, xml)])
    faults = faults_of_python_reference(output / "html")
    for fault in faults:
        print(fault, file=sys.stderr)
    passed = passed and not faults
    print(f"{'built' if passed else 'FAILED'}: {output / 'html' / 'index.html'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
