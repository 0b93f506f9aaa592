# SPDX-License-Identifier: Apache-2.0
"""What a call costs, in units of `from_dlpack` of one of our own tensors, in one process.

Run it with the installed package: ``python benchmarks/python/calls.py``. Rounds of all calls are
interleaved, so that a busy machine disturbs all alike; the ratios are of the fastest rounds and of
the median ones. It fails if a ratio of the fastest rounds is above its target.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from dpctl.memory import MemoryUSMDevice
from usm_dlpack import from_dlpack, to_dlpack_tensor, validate

Call = Callable[[], object]

UNIT = "from_dlpack(tensor)"
TARGETS = {
    "to_dlpack_tensor(memory)": 3.3,
    "to_dlpack_tensor(memory, shape, dtype)": 4.5,
    "to_dlpack_tensor(tensor)": 3.0,
    "validate(tensor)": 2.0,
}


def make_calls() -> dict[str, Call]:
    """Return what is measured."""
    memory = MemoryUSMDevice(48)
    tensor = to_dlpack_tensor(memory)
    return {
        UNIT: lambda: from_dlpack(tensor),
        "to_dlpack_tensor(memory)": lambda: to_dlpack_tensor(memory),
        "to_dlpack_tensor(memory, shape, dtype)": lambda: to_dlpack_tensor(
            memory, shape=(3, 4), dtype="float32"
        ),
        "to_dlpack_tensor(tensor)": lambda: to_dlpack_tensor(tensor),
        "validate(tensor)": lambda: validate(tensor),
        "the interface of dpctl.memory": lambda: memory.__sycl_usm_array_interface__,
    }


def measure(calls: dict[str, Call], rounds: int, repeats: int) -> dict[str, list[float]]:
    """Return the nanoseconds of each call, one number a round."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter_ns()
            for _ in range(repeats):
                call()
            spent[name].append((time.perf_counter_ns() - start) / repeats)
    return spent


def main() -> int:
    """Print the table; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    spent = measure(make_calls(), options.rounds, options.repeats)
    missed = False
    for name, times in spent.items():
        fastest = min(times) / min(spent[UNIT])
        median = statistics.median(times) / statistics.median(spent[UNIT])
        target = TARGETS.get(name)
        missed |= target is not None and fastest > target
        promised = "" if target is None else f"at most {target}"
        print(f"{name:40} {min(times):7.0f} ns {fastest:6.2f} {median:6.2f}  {promised}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
