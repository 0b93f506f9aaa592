# SPDX-License-Identifier: Apache-2.0
"""Hostile producers and capsules go through ``from_dlpack`` and ``validate``.

Each case is compared with the oracle, and must leave nothing behind: no memory, no capsule that is
neither its producer's nor ours, no deleter that ran not at all or twice. A case depends on the seed
and its number alone: ``--seed 7 --first 1234 --count 1`` is one of them again. After a crash, halve
``--count`` to find it. ``python3 dev.py hostile`` runs this with the devices that it needs.
"""

import argparse
import collections
import faulthandler
import gc
import os
import sys
from pathlib import Path

# The capsules are those of the Python tests.
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "python"))

from exchanges import Places, run_case
from resident_memory import report_growth, resident_bytes

# Every rule about what a producer hands over, and what a caller asks of it. The other codes are of
# C++ views, of exports, and of processes without a device or with a runtime that fails.
OUTCOMES = """
    version_unsupported flags_unknown device_type_unsupported ndim_out_of_range shape_null
    dtype_unsupported shape_negative data_null span_overflow data_misaligned read_only
    dtype_mismatch rank_mismatch copy_needed capsule_unusable
    device_id_out_of_range device_failed device_not_accepted backend_not_accepted pointer_unknown
    usm_type_not_accepted device_mismatch out_of_bounds accepted raised
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="how many (default: 100000)")
    parser.add_argument("--seed", type=int, default=0, help="of all of them (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    options = parser.parse_args()
    faulthandler.enable()
    unraisable: list[object] = []
    sys.unraisablehook = lambda trouble: unraisable.append(trouble.exc_value)
    places = Places()
    outcomes: collections.Counter[str] = collections.Counter()
    gc.collect()
    gc.freeze()  # what lives now is not looked at by the collection after each case
    gc.disable()
    for done in range(options.count):
        if done == options.count // 10:
            before = resident_bytes()
        number = options.first + done
        try:
            outcomes[run_case(f"{options.seed}:{number}", places)] += 1
            assert not unraisable, f"nobody saw {unraisable}"
        except AssertionError as error:
            # Ends at once: the capsules may outlive what they call when they die.
            case = f"--seed {options.seed} --first {number} --count 1"
            print(f"{case}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    for outcome, times in sorted(outcomes.items()):
        print(f"{times:8}  {outcome}")
    flat = report_growth(before, resident_bytes())
    missing = set(OUTCOMES.split()) - outcomes.keys()
    if missing and options.count >= 5000:
        print(
            f"outcomes: expected each at least once, found no {', '.join(sorted(missing))}; "
            "choose a larger --count or repair the generator"
        )
    return 0 if flat and not (missing and options.count >= 5000) else 1


if __name__ == "__main__":
    sys.exit(main())
