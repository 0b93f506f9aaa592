# SPDX-License-Identifier: Apache-2.0
"""Build the documentation site in build/docs/html; warnings are errors.

``python3 dev.py docs`` runs this program.
"""

import argparse
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dev import (  # noqa: E402
    RefusalError,
    absent,
    make_environment,
    prepare_package,
    require_debian_packages,
    require_python,
)

DOXYGEN = {"doxygen": "/usr/bin/doxygen"}
CHROMIUM = {"chromium": "/usr/bin/chromium"}


def build() -> int:
    """Build the site; return the exit status of Sphinx."""
    environment = prepare_package("requirements/docs.txt", DOXYGEN)
    shutil.rmtree(ROOT / "build" / "docs", ignore_errors=True)  # pages that are no more
    options = ["-nWqE", "--keep-going"]
    return environment.run("sphinx-build", *options, "docs", "build/docs/html", check=False)


def look_at_pages() -> int:
    """Look at all pages in Chromium; return 0 if they can be read in it."""
    look = make_environment("browser")
    look.install("-q", "-r", "requirements/browser.txt")
    return look.run(look.python, "tests/pages/in_browser.py", check=False)


def main() -> int:
    """Build the site, and look at it if asked to; return 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(prog="dev.py docs", description=__doc__)
    parser.add_argument("--browser", action="store_true", help="look at all pages in Chromium too")
    browser = parser.parse_args().browser
    require_python(11)  # for Sphinx
    try:
        require_debian_packages(absent(CHROMIUM) if browser else [])
        return build() or (look_at_pages() if browser else 0)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
