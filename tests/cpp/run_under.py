# SPDX-License-Identifier: Apache-2.0
"""Run C++ tests on devices under ThreadSanitizer or valgrind: ``run_under.py threads|valgrind``.

``python3 dev.py threads`` and ``python3 dev.py valgrind`` run this program.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dev import GOOGLETEST, VALGRIND, WHEELS, RefusalError, prepare  # noqa: E402


def without_random_addresses() -> list[str]:
    """Return a prefix without which programs of ThreadSanitizer may fail to start.

    That of g++ 12 does not support 32 random bits in addresses (``vm.mmap_rnd_bits``). Where a
    container forbids the prefix, it is empty.
    """
    prefix = ["setarch", "--addr-no-randomize"]
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    except OSError:
        return []
    return prefix if allowed.returncode == 0 else []


def main() -> int:
    """Build and run the tests of a workflow of CMakePresets.json; return 0 if all passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workflow", choices=("threads", "valgrind"))
    workflow = parser.parse_args().workflow
    packages = GOOGLETEST | (VALGRIND if workflow == "valgrind" else {})
    prefix = without_random_addresses() if workflow == "threads" else []
    try:
        environment = prepare("-r", "requirements/test.txt", *WHEELS, packages=packages)
        command = ["cmake", "--workflow", "--preset", workflow]
        return environment.run(*prefix, *command, check=False)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
