# SPDX-License-Identifier: Apache-2.0
"""Compare the C++ core with CCCL: instructions of each conversion and, on request, its time.

``python3 dev.py speed`` runs it with the same options. It fails where a ratio is above its limit.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
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

PACKAGES = VALGRIND | {"clang-19": "/usr/bin/clang++-19"}
FLAGS = ["-std=c++17", "-O2", "-DNDEBUG"]

# The most that ours / CCCL's may be: of instructions up to a rank, of instructions above that
# rank, and of time. Aimed at are 1.0 and 1.3. Above it are g++'s export of stride, int, rank 2
# (1.05) and clang's of stride, int64_t, rank 8, which looks for extents below 1 (1.47).
LIMITS = {
    "g++": {"export": (2, 1.06, 1.0), "import": (4, 1.0, 1.2)},
    "clang++-19": {"export": (2, 1.0, 1.5), "import": (4, 1.0, 1.0)},
}
MOST_TIME = 1.05

NOTE = f"""\
Instructions of a call, ours / CCCL's. In parentheses: the times of the fastest of many rounds, in
which all conversions take turns. A range is over layouts, index types, extents, and compact and
sliced tensors. `{" ".join(FLAGS)}`, all views in one program."""
NAMES = {"export": "`to_dlpack_tensor`", "import": "`to_mdspan`"}

# By direction/layout/index type/extents or tensor/rank.
Ratios = dict[str, float]


def run(*command: str | Path) -> str:
    """Run a program and return what it prints."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RefusalError(
            f"{command[0]}: expected exit status 0, found {done.returncode}; "
            f"correct what it says:\n{done.stderr}"
        )
    return done.stdout


def build(compiler: str, environment: Environment, folder: Path) -> Path:
    """Build the program with one compiler, and return it."""
    site = next(environment.folder.glob("lib/python*/site-packages"))
    cuda = next(site.glob("nvidia/cu*/include"))
    flags: list[str | Path] = [*FLAGS, f"-I{ROOT / 'include'}"]
    for headers in (cuda / "cccl", cuda, site / "tvm_ffi" / "include"):
        flags += ["-isystem", headers]
    program = folder / compiler
    run(compiler, *flags, Path(__file__).with_suffix(".cpp"), "-o", program)
    return program


def ratios(costs: dict[str, float]) -> Ratios:
    """Return what ours cost divided by what CCCL's do."""
    ours = (name.removesuffix("/ours") for name in costs if name.endswith("/ours"))
    return {name: costs[f"{name}/ours"] / costs[f"{name}/CCCL"] for name in ours}


def count(program: Path) -> Ratios:
    """Compare the instructions of one call, without those of an empty call."""
    out = program.with_name(f"{program.name}.callgrind")
    valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--combine-dumps=yes"]
    run(*valgrind, f"--callgrind-out-file={out}", program, "count")
    dumps = re.compile(r"desc: Trigger: Client Request: ([^\n]+)\n.*?\ntotals: (\d+)", re.DOTALL)
    counts = {name: int(total) for name, total in dumps.findall(out.read_text())}
    nothing = counts.pop("nothing")
    return ratios({name: total - nothing for name, total in counts.items()})


def time(program: Path) -> Ratios:
    """Compare the nanoseconds of a call in the fastest of many rounds."""
    lines = (line.split("\t") for line in run(program, "time", "1000").splitlines())
    return ratios({name: float(fastest) for name, fastest in lines})


def table(counts: Ratios, times: Ratios) -> str:
    """Return a Markdown table: the span of the ratios of each direction and rank."""
    rows: dict[str, dict[str, list[str]]] = {}
    for name in counts:
        direction, *_, rank = name.split("/")
        row = rows.setdefault(NAMES[direction], {})
        row.setdefault(f"rank {rank}", []).append(name)
    ranks = next(iter(rows.values()))
    lines = [f"| | {' | '.join(ranks)} |", "|---" * (len(ranks) + 1) + "|"]
    for title, row in rows.items():
        spans = [
            span(counts, names) + (f" ({span(times, names)})" if times else "")
            for names in row.values()
        ]
        lines.append(f"| {title} | {' | '.join(spans)} |")
    return "\n".join(lines)


def span(found: Ratios, names: list[str]) -> str:
    """Return the smallest and the largest ratio."""
    low, high = (f"{of(found[name] for name in names):.2f}" for of in (min, max))
    return low if low == high else f"{low}-{high}"


def missed(compiler: str, counts: Ratios, times: Ratios) -> list[str]:
    """Return a line for each conversion above a limit."""
    lines = []
    for name, ratio in counts.items():
        direction, *_, rank = name.split("/")
        highest, below, above = LIMITS[compiler][direction]
        limit = below if int(rank) <= highest else above
        time_ratio = times.get(name, 0)
        if ratio > limit or time_ratio > MOST_TIME:
            lines.append(f"{compiler} {name}: {ratio:.2f} (at most {limit}), time {time_ratio:.2f}")
    return lines


def main() -> int:
    """Measure, print, and fail if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="dev.py speed", description=__doc__)
    parser.add_argument("--times", action="store_true", help="measure times too")
    parser.add_argument("--write", action="store_true", help="renew docs/speed.md, with --times")
    options = parser.parse_args()
    lines, above = [NOTE], []
    try:
        require_debian_packages(absent(PACKAGES))
        environment = make_environment("speed")
        environment.install("-q", "-r", "requirements/speed.txt")
        # A folder of its own: several runs at once must not measure each other's program.
        with tempfile.TemporaryDirectory() as folder:
            for compiler in LIMITS:
                program = build(compiler, environment, Path(folder))
                counts = count(program)
                measured = options.times or options.write
                times = time(program) if measured else {}
                version = run(compiler, "--version").splitlines()[0]
                lines += ["", f"### {version}", "", table(counts, times)]
                above += missed(compiler, counts, times)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    print("\n".join(lines))
    if options.write:
        write_section("C++: beside CCCL", "\n".join(lines))
    for line in above:
        print(f"above its limit: {line}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
