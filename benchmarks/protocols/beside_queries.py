# SPDX-License-Identifier: Apache-2.0
"""What the export and the import protocol cost beside the queries that they cannot do without.

``python3 dev.py speed --full`` runs it: it counts instructions, and measures time with 1, 2 and 4
root devices, among 10 and 10,000 live allocations, and from 1 to 8 threads; ``--write`` renews
docs/protocol_speed.md and its plot.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
CORE = ROOT / "benchmarks" / "core"
sys.path[:0] = [str(ROOT), str(CORE), str(ROOT / "tests" / "devices")]

from beside_cccl import header_flags, measure  # noqa: E402
from compile_cost import call  # noqa: E402
from driver_copies import copy_driver  # noqa: E402
from protocol_page import Measured, write_page  # noqa: E402

from dev import (  # noqa: E402
    VALGRIND,
    Environment,
    RefusalError,
    absent,
    make_environment,
    require_debian_packages,
)

COMPILER = "g++"
FLAGS = ["-std=c++17", "-O2", "-DNDEBUG", "-w"]
DEVICES = (1, 2, 4)
LIVE = (10, 10_000)
THREADS = (1, 2, 4, 8)
PLACES = 8
PLACE_BYTES = 80  # a cache line and an alignment of functions: the place in either changes


def build(environment: Environment, folder: Path, places: int) -> list[Path]:
    """Build the program against the environment's SYCL runtime, its code at some places.

    Where code stands decides which of its branches a processor foretells: the same code has taken
    a tenth more or less.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library = environment.folder / "lib"
    code = folder / "main.o"
    include = ["-isystem", str(environment.folder / "include"), f"-I{CORE}"]
    flags = [*FLAGS, *header_flags(environment), *include]
    call([COMPILER, *flags, "-c", HERE / "main.cpp", "-o", code])
    libraries = [f"-L{library}", f"-Wl,-rpath,{library}", "-lsycl", "-ldl", "-pthread"]
    programs = []
    for place in range(places):
        before = folder / f"before_{place}.cpp"
        before.write_text(f'asm(".text\\n.skip {place * PLACE_BYTES + 1}, 0x90");\n')
        programs.append(folder / f"protocols_{place}")
        call([COMPILER, before, code, "-o", programs[-1], *libraries])
    return programs


def drivers(environment: Environment, folder: Path, count: int) -> str:
    """Return the driver and copies of it, each of which is a platform with a root device."""
    driver = environment.folder / "lib" / "libintelocl.so"
    copies = [
        copy_driver(driver, folder / f"device{number}", siblings=True) for number in range(1, count)
    ]
    return ":".join(map(str, [driver, *copies]))


def times(program: Path, *arguments: int | str) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the nanoseconds, the fewest and the median, by protocol and device, and subject."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for line in call([program, *map(str, arguments)]).splitlines():
        name, fastest, median = line.split("\t")
        group, subject = name.rsplit("/", 1)
        found.setdefault(group, {})[subject] = (float(fastest), float(median))
    return found


def full(
    environment: Environment, programs: list[Path], folder: Path, rounds: int, write: bool
) -> int:
    """Measure everything; fail where a target is missed."""
    each = max(1, rounds // len(programs))
    each_at_once = max(1, each // 10)
    measured = Measured(
        rounds=each,
        rounds_at_once=each_at_once,
        places=len(programs),
        instructions=measure(programs[0], rounds=0),
    )
    for count in DEVICES:
        os.environ["OCL_ICD_FILENAMES"] = drivers(environment, folder, count)
        for live in LIVE:
            measured.alone[count, live] = [
                times(program, "time", each, live) for program in programs
            ]
    os.environ["OCL_ICD_FILENAMES"] = drivers(environment, folder, 1)
    for threads in THREADS:
        measured.at_once[threads] = [
            times(program, "threads", each_at_once, threads) for program in programs
        ]
    page, plot, missed = write_page(measured)
    print(page)
    if write:
        (ROOT / "docs" / "protocol_speed.md").write_text(page, encoding="utf-8")
        (ROOT / "docs" / "protocol_speed.svg").write_text(plot, encoding="utf-8")
    for fault in missed:
        print(fault, file=sys.stderr)
    return 1 if missed else 0


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the page")
    parser.add_argument("--rounds", type=int, default=4000, help="in which cells take turns")
    options = parser.parse_args()
    try:
        require_debian_packages(absent(VALGRIND))
        environment = make_environment("venv")
        wheels = ["intel-sycl-rt>=2026.0,<2027", "intel-opencl-rt", "apache-tvm-ffi>=0.1.9"]
        environment.install("-r", "requirements/test.txt", *wheels)
        folder = ROOT / "build" / "protocols"
        programs = build(environment, folder, PLACES)
        os.environ["OCL_ICD_FILENAMES"] = drivers(environment, folder, 1)
        return full(environment, programs, folder, options.rounds, options.write)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
