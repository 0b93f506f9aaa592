# SPDX-License-Identifier: Apache-2.0
"""How much memory a long run keeps, for programs that must keep none."""

import gc
import resource
from pathlib import Path

MOST_GROWTH = 5 << 20  # bytes


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def report_growth(before: int, after: int) -> bool:
    """Print what a run kept since it was warm; return whether that is little enough."""
    print(
        f"resident memory: expected {MOST_GROWTH} bytes more at most than the {before} after a "
        f"tenth of them, found {after - before}; if it is more, look for what is kept"
    )
    return after - before <= MOST_GROWTH
