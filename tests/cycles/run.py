# SPDX-License-Identifier: Apache-2.0
"""Arrays go out and come in by every way, again and again, and nothing is left behind.

After each cycle as many deleters must have run as managed tensors went out, and every owner must be
gone; resident memory must stay flat. ``python3 dev.py cycles`` runs a million.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import sys
import time
from pathlib import Path

# The capsules are those of the Python tests.
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "python"))

from capsules import forget_kept
from resident_memory import report_growth, resident_bytes
from ways import Cycles, Owner, way_of


def run_cycles(count: int) -> tuple[collections.Counter[str], Cycles, int, int]:
    """Run cycles; return how often each way was gone, and the memory when warm and at the end."""
    cycles = Cycles()
    gone: collections.Counter[str] = collections.Counter()
    before = resident_bytes()
    for number in range(count):
        if number == count // 10:
            before = resident_bytes()
        way = way_of(number)
        way(cycles)
        gone[way.__name__.strip("_").replace("_", " ")] += 1
        if cycles.exports != cycles.deletions or Owner.alive:
            raise AssertionError(
                f"cycle {number} ({way.__name__}): expected as many deleter calls as exports, and "
                f"no owner left, found {cycles.deletions} for {cycles.exports}, and {Owner.alive} "
                "owners; look for who keeps or deletes too much"
            )
        if number % 1000 == 0:
            forget_kept()
    return gone, cycles, before, resident_bytes()


def main() -> int:
    """Run the cycles, and say how many went by which way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="how many (default: 1000000)")
    count = parser.parse_args().count
    faulthandler.enable()
    start = time.monotonic()
    gone, cycles, before, after = run_cycles(count)
    for way, number in sorted(gone.items()):
        print(f"{number:8}  {way}")
    print(f"{count:8}  in {time.monotonic() - start:.0f} s")
    print(f"managed tensors: {cycles.exports} went out, {cycles.deletions} deleters ran")
    return 0 if report_growth(before, after) else 1


if __name__ == "__main__":
    sys.exit(main())
