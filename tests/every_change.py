# SPDX-License-Identifier: Apache-2.0
"""Run the tests that every change must pass, in C++ and in Python.

``python3 dev.py test`` runs this program.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dev import GOOGLETEST, Environment, RefusalError, prepare_package  # noqa: E402

# What `--all` has beyond the others.
BEYOND = (
    "sanitizers (ASan, UBSan) in C++, each header alone, and tests that build, repeat for long, or "
    "start many processes"
)


def run_tests(environment: Environment, every: bool) -> None:
    """Build and run the C++ tests, and run the Python tests; refuse at the first failure."""
    preset = "dev" if every else "quick"
    chosen = [] if every else ["-m", "not extended"]
    environment.run("cmake", "--preset", preset)
    environment.run("cmake", "--build", "--preset", preset)
    environment.run("ctest", "--preset", preset)
    environment.run(environment.python, "-m", "pytest", *chosen)


def main() -> int:
    """Run the tests that were asked for; return 0 if all passed."""
    parser = argparse.ArgumentParser(prog="dev.py test", description=__doc__)
    parser.add_argument("--all", action="store_true", help=f"with {BEYOND}")
    told = "only Python tests whose names match, as in pytest"
    parser.add_argument("-k", metavar="WORDS", help=told)
    options = parser.parse_args()
    try:
        environment = prepare_package("requirements/test.txt", GOOGLETEST)
        if options.k is not None:
            return environment.run(environment.python, "-m", "pytest", "-k", options.k, check=False)
        run_tests(environment, options.all)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    if not options.all:
        print(f"\n`python3 dev.py test --all` adds {BEYOND}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
