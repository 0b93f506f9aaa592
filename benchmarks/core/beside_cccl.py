# SPDX-License-Identifier: Apache-2.0
"""Compare the C++ core with CCCL: instructions of each conversion and, on request, its time.

``python3 dev.py speed`` runs it with the same options. It fails where a ratio is above its limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from page import write_section  # noqa: E402

from dev import (  # noqa: E402
    VALGRIND,
    Environment,
    RefusalError,
    absent,
    make_environment,
    require_debian_packages,
)

COMPILERS: dict[str, dict[str, str]] = {
    "g++": {},
    "clang++-19": {"clang-19": "/usr/bin/clang++-19"},
}
FLAGS = ["-std=c++17", "-O2", "-DNDEBUG"]

# The most that ours / CCCL's may be: of instructions up to a rank, of instructions above that
# rank, and of time. Aimed at are 1.0 and 1.3. g++ exports ranks 1 and 2 with up to 1.15; clang
# unrolls CCCL's exports, which do not look for negative extents; layout right and left are asked
# for each stride, which costs rank 8 twice CCCL's running product.
LIMITS = {
    "g++": {"export": (2, 1.2, 1.0), "import": (4, 1.1, 2.1)},
    "clang++-19": {"export": (2, 1.1, 2.2), "import": (4, 1.0, 1.0)},
}
MOST_TIME = 1.05

NOTE = f"""\
Ours / CCCL's, for index types `int` and `int64_t`, dynamic and static extents, and compact and
sliced tensors: instructions of a call, and in parentheses its time in the fastest of many rounds in
which all conversions take turns. `{" ".join(FLAGS)}`, all views in one program."""
NAMES = {"export": "`to_dlpack_tensor`", "import": "`to_mdspan`"}


@dataclass(frozen=True)
class Cell:
    """A conversion, and what it costs: ours, CCCL's."""

    compiler: str
    direction: str
    layout: str
    index: str
    kind: str
    rank: int
    instructions: tuple[int, int]
    times: tuple[float, float] | None

    @property
    def ratio(self) -> float:
        """Instructions of ours divided by those of CCCL's."""
        return self.instructions[0] / self.instructions[1]

    @property
    def time_ratio(self) -> float | None:
        """Our time in the fastest round divided by CCCL's."""
        return None if self.times is None else self.times[0] / self.times[1]

    @property
    def limit(self) -> float:
        """The most that the ratio of instructions may be."""
        highest, below, above = LIMITS[self.compiler][self.direction]
        return below if self.rank <= highest else above

    @property
    def misses(self) -> bool:
        """Whether a ratio is above its limit."""
        return self.ratio > self.limit or (self.time_ratio or 0) > MOST_TIME


def run(*command: str | Path) -> str:
    """Run a program and return what it prints."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RefusalError(
            f"{command[0]}: expected exit status 0, found {done.returncode}; "
            f"correct what it says:\n{done.stderr}"
        )
    return done.stdout


def build(compiler: str, environment: Environment, include: Path, folder: Path) -> Path:
    """Build the program with one compiler, and return it."""
    site = next(environment.folder.glob("lib/python*/site-packages"))
    cuda = next(site.glob("nvidia/cu*/include"))
    flags: list[str | Path] = [*FLAGS, f"-I{include}"]
    for headers in (cuda / "cccl", cuda, site / "tvm_ffi" / "include"):
        flags += ["-isystem", headers]
    program = folder / compiler
    run(compiler, *flags, Path(__file__).with_suffix(".cpp"), "-o", program)
    return program


def count(program: Path) -> dict[str, float]:
    """Return the instructions of one call of each cell, without those of an empty call."""
    out = program.with_name(f"{program.name}.callgrind")
    valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--combine-dumps=yes"]
    run(*valgrind, f"--callgrind-out-file={out}", program, "count")
    counts: dict[str, float] = {}
    trigger = "desc: Trigger: Client Request: "
    name = ""
    for line in out.read_text().splitlines():
        if line.startswith("part:"):
            name = ""
        elif line.startswith(trigger):
            name = line.removeprefix(trigger)
        elif line.startswith("totals:") and name:
            counts[name] = int(line.split()[1])
    nothing = counts.pop("nothing")
    return {name: total - nothing for name, total in counts.items()}


def time(program: Path, rounds: int) -> dict[str, float]:
    """Return the nanoseconds of a call of each cell in the fastest round."""
    lines = run(program, "time", str(rounds)).splitlines()
    return {name: float(fastest) for name, fastest in (line.split("\t") for line in lines)}


def measure(compiler: str, program: Path, rounds: int) -> list[Cell]:
    """Return all cells, with times if there are rounds."""
    counts = count(program)
    times = time(program, rounds) if rounds else {}
    cells = []
    for name in dict.fromkeys(name.rpartition("/")[0] for name in counts):
        direction, layout, index, kind, rank = name.split("/")
        ours, theirs = f"{name}/ours", f"{name}/CCCL"
        cells.append(
            Cell(
                *(compiler, direction, layout, index, kind, int(rank)),
                instructions=(int(counts[ours]), int(counts[theirs])),
                times=(times[ours], times[theirs]) if times else None,
            )
        )
    return sorted(cells, key=lambda cell: list(NAMES).index(cell.direction))


def table(cells: list[Cell]) -> str:
    """Return a Markdown table: the span of the ratios of each layout and rank."""
    ranks = sorted({cell.rank for cell in cells})
    lines = [
        f"| | {' | '.join(f'rank {rank}' for rank in ranks)} |",
        "|---" * (len(ranks) + 1) + "|",
    ]
    for direction, layout in dict.fromkeys((cell.direction, cell.layout) for cell in cells):
        row = [cell for cell in cells if (cell.direction, cell.layout) == (direction, layout)]
        spans = []
        for rank in ranks:
            found = [cell for cell in row if cell.rank == rank]
            times = [cell.time_ratio for cell in found if cell.time_ratio is not None]
            counted = span([cell.ratio for cell in found])
            spans.append(f"{counted} ({span(times)})" if times else counted)
        lines.append(f"| {NAMES[direction]}, {layout} | {' | '.join(spans)} |")
    return "\n".join(lines)


def span(ratios: list[float]) -> str:
    """Return the smallest and the largest ratio."""
    low, high = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return low if low == high else f"{low}-{high}"


def main() -> int:
    """Measure, print, and fail if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="dev.py speed", description=__doc__)
    parser.add_argument("--compiler", choices=COMPILERS, action="append", help="default: both")
    parser.add_argument(
        "--include", type=Path, default=ROOT / "include", help="the headers to measure"
    )
    parser.add_argument("--times", action="store_true", help="measure times too")
    parser.add_argument("--rounds", type=int, default=1000, help="of the times (default: 1000)")
    parser.add_argument("--write", action="store_true", help="renew docs/speed.md, with --times")
    options = parser.parse_args()
    if options.write and options.compiler:
        parser.error("--write: expected both compilers, found --compiler; leave it out")
    compilers = options.compiler or list(COMPILERS)
    rounds = options.rounds if options.times or options.write else 0
    try:
        packages = dict(VALGRIND)
        for compiler in compilers:
            packages |= COMPILERS[compiler]
        require_debian_packages(absent(packages))
        environment = make_environment("speed")
        environment.install("-q", "-r", "requirements/speed.txt")
        # A folder of its own: several runs at once must not measure each other's program.
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
            programs = pool.map(
                lambda name: build(name, environment, options.include, Path(folder)), compilers
            )
            built = dict(zip(compilers, programs, strict=True))
            measured = {name: measure(name, program, rounds) for name, program in built.items()}
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    lines = [NOTE]
    for compiler, cells in measured.items():
        version = run(compiler, "--version").splitlines()[0]
        lines += ["", f"### {version}", "", table(cells)]
    print("\n".join(lines))
    if options.write:
        write_section("C++: beside CCCL", "\n".join(lines))
    every = [cell for cells in measured.values() for cell in cells]
    missed = [cell for cell in every if cell.misses]
    for cell in missed:
        print(f"above {cell.limit} (instructions) or {MOST_TIME} (time): {cell}")
    print(f"\n{len(missed)} of {len(every)} cells are above their limit")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
