# SPDX-License-Identifier: Apache-2.0
"""Try each case of `consumer_cases` with the consumers of one environment.

    python consumer_matrix.py dpnp part.json

Arrays go both ways, and ours also as memory of the host. Each consumer is tried in a process of its
own, which has two root devices: the second one is a copy of the CPU driver, which the OpenCL loader
takes for another platform. Both must be named before anything asks for devices. A process that
crashes is begun again behind the cell that it died of. mpi4py is tried by `mpi_ranks.py`, in two
processes.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "devices"), str(HERE.parent / "python" / "support")]

from driver_copies import copy_driver  # noqa: E402

DRIVER = Path(sys.prefix, "lib", "libintelocl.so")
SECOND = copy_driver(DRIVER, Path(sys.prefix, "driver_copies", "second"), siblings=True)
os.environ["OCL_ICD_FILENAMES"] = f"{DRIVER}:{SECOND}"

from consumer_cases import (  # noqa: E402
    CASES,
    HOST_CASES,
    PLAIN_DTYPES,
    Case,
    Seen,
    make_tensor,
    see_tensor,
)
from consumers import CONSUMERS, Consumer, Exporter  # noqa: E402

Outcome = dict[str, str]
# What each way to memory of the host asks of us; a keyword of theirs asks by itself.
CAPSULES = {"legacy capsule": {}, "versioned capsule": {"max_version": (1, 3)}}
HOST_WAYS = [f"{way}{copied}" for way in (*CAPSULES, "keyword") for copied in ("", ", copied")]
WAYS = ("ours to theirs", "theirs to ours", *HOST_WAYS)
CELLS = [(way, case) for way in WAYS for case in (HOST_CASES if way in HOST_WAYS else CASES)]


def compare(expected: Seen, found: Seen) -> Outcome:
    """Return whether an array arrived, and how."""
    for field in ("shape", "dtype", "bytes"):
        left, right = getattr(expected, field), getattr(found, field)
        if left != right:
            return {"outcome": "wrong", "reason": f"{field}: {right!r} instead of {left!r}"}
    if not expected.bytes:
        return {"outcome": "arrived"}
    if found.address != expected.address:
        return {"outcome": "copy"}
    if expected.readonly and not found.readonly:
        return {"outcome": "writable", "reason": "read-only memory can be written"}
    return {"outcome": "same memory"}


def ours_to_theirs(consumer: Consumer, case: Case) -> Outcome:
    ours = make_tensor(case, consumer.usm_type)
    seen = see_tensor(ours)
    wanted = Seen(case.shape, case.dtype, case.seen.tobytes(), seen.address, case.readonly)
    if seen != wanted:
        return {"outcome": "wrong", "reason": f"ours is {seen} instead of {wanted}"}
    return compare(seen, consumer.see(consumer.take(ours)))


def theirs_to_ours(consumer: Consumer, case: Case) -> Outcome:
    theirs = consumer.make(case)
    seen = consumer.see(theirs)
    if seen.shape != case.shape or seen.dtype != case.dtype:
        raise SystemExit(f"{consumer.title} makes {seen} for the case {case.name}")
    if case.readonly and not seen.readonly:
        return {"outcome": ""}
    ours = consumer.give(theirs, case)
    if (case.usm_type or ours.usm_type, case.device_id) != (ours.usm_type, ours.device[1]):
        place = f"{ours.usm_type} USM of device {ours.device[1]}"
        return {"outcome": "wrong", "reason": place}
    return compare(seen, see_tensor(ours))


def on_the_host(consumer: Consumer, case: Case, way: str) -> Outcome:
    ours = make_tensor(case, "shared")
    kind, _, copied = way.partition(", ")
    copy = True if copied else None
    if kind in CAPSULES:
        capsules = Exporter(ours, dl_device=(1, 0), copy=copy, **CAPSULES[kind])
        theirs = consumer.from_dlpack(capsules)
    else:
        theirs = consumer.from_dlpack(ours, device=consumer.host, copy=copy)
    wanted = Seen(case.shape, case.dtype, case.seen.tobytes(), ours.data, False)
    outcome = compare(wanted, consumer.see_on_host(theirs))
    if copied and outcome["outcome"] == "same memory":
        return {"outcome": "wrong", "reason": "no copy, which was asked for"}
    return outcome


def is_offered(consumer: Consumer, way: str, case: Case) -> bool:
    """Say whether a library has such an array and such a way; if not, the cell is empty."""
    if case.name.startswith("dtype ") and case.dtype not in consumer.dtypes:
        return False
    if way.startswith("keyword") and consumer.host is None:
        return False
    if way == "theirs to ours" and case.name in consumer.lacks:
        return False
    return way == "ours to theirs" or not consumer.only_takes


def attempt(consumer: Consumer, way: str, case: Case) -> Outcome:
    if not is_offered(consumer, way, case):
        return {"outcome": ""}
    try:
        if way in HOST_WAYS:
            return on_the_host(consumer, case, way)
        return (ours_to_theirs if way == "ours to theirs" else theirs_to_ours)(consumer, case)
    except Exception as error:
        return {"outcome": "refused", "reason": f"{type(error).__name__}: {error}"}


def measure_from(environment: str, place: int, first: int) -> None:
    """Print what became of each exchange with one consumer, from one of them on."""
    consumer = CONSUMERS[environment][place]()
    print(json.dumps({"title": consumer.title, "version": consumer.version}), flush=True)
    for way, case in CELLS[first:]:
        print(json.dumps(attempt(consumer, way, case)), flush=True)


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program that may crash, but must not fail."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode > 0:
        words = shlex.join(map(str, command))
        raise SystemExit(f"{words}: {done.stdout}\n{done.stderr}")
    return done


def measure(environment: str, place: int) -> dict[str, object]:
    """Return the row of one consumer, measured in a process that may crash."""
    head: dict[str, str] = {}
    found: list[Outcome] = []
    while len(found) < len(CELLS):
        where = [environment, f"--place={place}", f"--first={len(found)}"]
        done = run(sys.executable, __file__, *where)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        head, *outcomes = lines
        found += outcomes
        if done.returncode < 0 and len(found) < len(CELLS):
            found.append({"outcome": "crash", "reason": signal.strsignal(-done.returncode) or ""})
    cells: dict[str, dict[str, Outcome]] = {way: {} for way in WAYS}
    for (way, case), outcome in zip(CELLS, found, strict=True):
        cells[way][case.name] = outcome
    return {**head, "numpy": PLAIN_DTYPES, "cells": cells}


def main() -> None:
    """Measure the consumers of one environment, and write what became of each cell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("environment", choices=list(CONSUMERS))
    parser.add_argument("part", nargs="?", type=Path, help="the file to write")
    parser.add_argument("--place", type=int, help="print the cells of one consumer")
    parser.add_argument("--first", type=int, default=0, help="from this cell on")
    options = parser.parse_args()
    if options.part is None:
        measure_from(options.environment, options.place, options.first)
        return
    rows = [measure(options.environment, i) for i in range(len(CONSUMERS[options.environment]))]
    if options.environment == "consumers":
        mpiexec = Path(sys.prefix, "bin", "mpiexec")
        done = run(mpiexec, "-n", "2", sys.executable, HERE / "mpi_ranks.py")
        rows.append({**json.loads(done.stdout), "numpy": PLAIN_DTYPES})
    options.part.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
