# SPDX-License-Identifier: Apache-2.0
"""What the C++ core costs beside CCCL's and beside code by hand, in one run.

``python3 dev.py speed`` runs it as the guard: it counts the instructions of chosen cells under
callgrind, and fails where ours takes more than 1.3 times CCCL's. ``--full`` measures the whole grid
with g++ and clang, in instructions and in time, and what the headers cost to compile; ``--write``
renews docs/speed.md and its plot by that.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(HERE))

from compile_cost import call, code_sizes, instructions_of_compiling  # noqa: E402
from speed_page import OTHER_TENSORS, write_page  # noqa: E402

from dev import (  # noqa: E402
    VALGRIND,
    WHEELS,
    Environment,
    RefusalError,
    absent,
    make_environment,
    require_debian_packages,
)

FLAGS = ["-std=c++17", "-O2", "-DNDEBUG"]
COMPILERS = {"g++": "g++", "clang++-19": "clang++-19"}
LAYOUTS = ("right", "left", "stride")
GUARDED_RANKS = (1, 4, 8)
MOST_OF_CCCL = 1.3


@dataclass(frozen=True)
class Cost:
    """What one cell takes: instructions, and nanoseconds of its fastest and median round."""

    instructions: int
    fastest: float = 0.0
    median: float = 0.0


# The cells of a group, by subject: ours, CCCL, floor.
Group = dict[str, Cost]


def packages_of(environment: Environment) -> Path:
    """Return the folder into which pip installs."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(
        subprocess.run(
            [environment.python, "-c", ask], capture_output=True, text=True, check=True
        ).stdout.strip()
    )


def header_flags(environment: Environment) -> list[str]:
    """Return the include folders of dlpack.h, mdspan and this project."""
    site = packages_of(environment)
    mdspan = environment.folder / "mdspan" / "mdspan.hpp"
    mdspan.parent.mkdir(exist_ok=True)
    mdspan.write_bytes((site / "basix" / "include" / "basix" / "mdspan.hpp").read_bytes())
    return [
        *(f"-I{ROOT / 'include'}", f"-I{HERE}"),
        *("-isystem", str(site / "tvm_ffi" / "include"), "-isystem", str(environment.folder)),
        *(
            "-DMDSPAN_IMPL_STANDARD_NAMESPACE=Kokkos",
            "-DMDSPAN_IMPL_PROPOSED_NAMESPACE=Experimental",
        ),
    ]


def include_flags(environment: Environment) -> list[str]:
    """Return the same, and the include folders of CCCL and CUDA."""
    cuda = next(packages_of(environment).glob("nvidia/cu*/include"))
    return [
        *header_flags(environment),
        *("-isystem", str(cuda / "cccl"), "-isystem", str(cuda)),
    ]


def units(ranks: tuple[int, ...]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each translation unit: name, source, macros.

    Each layout and rank is one of its own: in a large one g++ inlines less.
    """
    yield "main", "main.cpp", []
    for rank in ranks:
        chosen = f"-DUSM_DLPACK_CELLS_RANKS={rank}"
        for layout in LAYOUTS:
            macros = [
                f"-DUSM_DLPACK_CELLS_LAYOUT=layout_{layout}",
                f"-DUSM_DLPACK_CELLS_ORDER={layout}",
                f'-DUSM_DLPACK_CELLS_NAME="{layout}"',
            ]
            yield f"{layout}-{rank}", "cccl_cells.cpp", [chosen, *macros]
            yield f"to_mdspan-{layout}-{rank}", "to_mdspan_cells.cpp", [chosen, *macros]
        if rank > 0:
            yield f"padded-{rank}", "padded_cells.cpp", [chosen]
        yield f"structure-{rank}", "structure_cells.cpp", [chosen]


def build(compiler: str, folder: Path, flags: list[str], ranks: tuple[int, ...]) -> Path:
    """Build the program of the cells of some ranks."""
    folder.mkdir(parents=True, exist_ok=True)

    def compile_unit(unit: tuple[str, str, list[str]]) -> Path:
        name, source, macros = unit
        made = folder / f"{name}.o"
        call([compiler, *FLAGS, *flags, *macros, "-c", HERE / source, "-o", made])
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_unit, units(ranks)))
    program = folder / "cells"
    call([compiler, *objects, "-o", program])
    return program


def count(program: Path) -> dict[str, int]:
    """Return the instructions of one call of each cell, less those of a call of nothing."""
    out = program.with_suffix(".callgrind")
    valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--combine-dumps=yes"]
    call([*valgrind, f"--callgrind-out-file={out}", program, "count"])
    counts: dict[str, int] = {}
    name = ""
    for line in out.read_text().splitlines():
        if line.startswith("part:"):
            name = ""
        elif line.startswith("desc: Trigger: Client Request: "):
            name = line.removeprefix("desc: Trigger: Client Request: ")
        elif line.startswith("totals:") and name:
            counts[name] = int(line.split()[1])
    nothing = counts.pop("nothing/any/any/any/0/ours")
    return {name: total - nothing for name, total in counts.items()}


def measure(program: Path, rounds: int) -> dict[str, Group]:
    """Return the costs of all cells by group; the times only where there are rounds."""
    times: dict[str, tuple[float, float]] = {}
    if rounds:
        for line in call([program, "time", str(rounds)]).splitlines():
            name, fastest, median = line.split("\t")
            times[name] = (float(fastest), float(median))
    groups: dict[str, Group] = {}
    for name, instructions in count(program).items():
        group, subject = name.rsplit("/", 1)
        groups.setdefault(group, {})[subject] = Cost(instructions, *times.get(name, (0.0, 0.0)))
    return groups


def faults_of_relations(compiler: str, groups: dict[str, Group]) -> list[str]:
    """Find where our conversion takes more instructions than 1.3 times CCCL's.

    A slice and columns are left out: CCCL does not prove their strides.
    """
    faults = []
    for name, group in groups.items():
        if "CCCL" not in group or name.split("/")[3] in OTHER_TENSORS:
            continue
        ours = group["ours"].instructions
        allowed = MOST_OF_CCCL * group["CCCL"].instructions
        if ours > allowed:
            faults.append(
                f"{compiler}, {name}: expected at most {allowed:.0f} instructions "
                f"({MOST_OF_CCCL:g} times CCCL's), found {ours}; make it fewer"
            )
    return faults


def version_of(compiler: str) -> str:
    """Return a compiler's first line about itself."""
    return call([compiler, "--version"]).splitlines()[0]


def guard(flags: list[str], folder: Path) -> int:
    """Count the guarded cells, and compare them with CCCL's."""
    faults = []
    for compiler in COMPILERS:
        groups = measure(build(compiler, folder / compiler, flags, GUARDED_RANKS), rounds=0)
        faults += faults_of_relations(compiler, groups)
        print(f"{compiler}: {len(groups)} cells counted")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def full(flags: list[str], folder: Path, rounds: int, write: bool) -> int:
    """Measure everything with both compilers."""
    measured = {}
    faults = []
    for compiler in COMPILERS:
        program = build(compiler, folder / f"full-{compiler}", flags, tuple(range(9)))
        groups = measure(program, rounds)
        faults += faults_of_relations(compiler, groups)
        made = folder / f"full-{compiler}"
        measured[compiler] = {
            "version": version_of(compiler),
            "groups": groups,
            "compiled": instructions_of_compiling([compiler, *FLAGS, *flags], made),
            "sizes": code_sizes([compiler, *FLAGS, *flags], made),
        }
    page, plot = write_page(measured, FLAGS, rounds)
    print(page)
    if write:
        (ROOT / "docs" / "speed.md").write_text(page, encoding="utf-8")
        (ROOT / "docs" / "speed.svg").write_text(plot, encoding="utf-8")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def main() -> int:
    """Run the guard, or the whole benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the whole grid, and times")
    parser.add_argument("--write", action="store_true", help="renew docs/speed.md, with --full")
    parser.add_argument("--rounds", type=int, default=1000, help="in which cells take turns")
    options = parser.parse_args()
    try:
        clang = {"clang-19": "/usr/bin/clang++-19"}
        require_debian_packages(absent(VALGRIND | clang))
        environment = make_environment("speed")
        environment.install("-r", "requirements/speed.txt")
        flags = include_flags(environment)
        folder = ROOT / "build" / "speed"
        if options.full:
            environment.install(*(wheel for wheel in WHEELS if "sycl" in wheel))
            sycl = ["-isystem", str(environment.folder / "include")]
            return full([*flags, *sycl], folder, options.rounds, options.write)
        return guard(flags, folder)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
