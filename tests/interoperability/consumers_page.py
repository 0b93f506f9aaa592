# SPDX-License-Identifier: Apache-2.0
"""Write docs/consumers.md from what the environments measured, or see that it is unchanged.

    python consumers_page.py [--write] folder ...

A folder is an environment's, with its ``consumers.json`` and, where the peer's wheel has tests, the
counts of `peers_own_tests`.

A cell that does not pass must be explained in `upstream_defects.EXPLANATIONS`, and an explanation
must have a cell that does not pass: otherwise the page is not written. Only the standard library is
used, since no environment sees all of the parts.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from upstream_defects import EXPLANATIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "consumers.md"
PASSED = ("same memory", "copy", "arrived", "sent", "received", "")
HEAD = """\
# Consumers: what passes between this package and other libraries

`python3 dev.py interoperability` writes this page by trying each cell on the CPU device, and fails
when a cell is not as it stands here; `python3 tests/interoperability/run.py --write` renews it.

- *same memory*: the array arrived, its values, shape and dtype unchanged, at the same address.
- *copy*: it arrived in memory of its own.
- *arrived*: it is empty, so that nothing is shared or copied.
- *sent*, *received*: the message was read from, or written to, the memory itself.
- *refused*, *writable* (read-only memory that can be written on the other side), *wrong*, *crash*:
  a number leads to the reason.
- An empty cell: the library has no such array.

Ours to theirs: USM libraries take a tensor by their `from_dlpack`; host libraries are asked for
their CPU device, and but for the columns that say so take shared USM. Theirs to ours is
`usm_dlpack.from_dlpack(x)`, and for host libraries `from_dlpack(x, device=(14, id), usm_type=...)`,
which copies. *Through NumPy* is `from_dlpack(numpy.from_dlpack(x, device="cpu"))`, *through a
capsule* `from_dlpack(x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))`. For mpi4py, ours to
theirs is a message sent out of our memory to the other rank, theirs to ours one received into it,
both shared USM; it takes all USM for host memory unseen, and device USM passes here because the
device is the CPU. The second device is another root device, on a platform of its own.
"""


OWN_TESTS = """\
## Their own tests

The DLPack tests in the wheels of dpctl and dpnp, run with `usm_dlpack` in place of their exporter
(ours is the producer) or of their importer. The cases that do not fit, each of which was seen not
to pass or not to reach ours, stand with their reasons in
[peers_unfit_tests.py](../tests/interoperability/peers_unfit_tests.py).
"""


class Explained:
    """Which explanation each cell has, numbered in the order in which they are met."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.problems: list[str] = []

    def mark(self, title: str, direction: str, cell: str, outcome: dict[str, str]) -> str:
        """Return what stands in a cell."""
        found = [
            place
            for place, (titles, way, pattern, _) in enumerate(EXPLANATIONS)
            if title in titles and way in (direction, "both ways") and fnmatchcase(cell, pattern)
        ]
        word = outcome["outcome"]
        if word in PASSED:
            return word
        if not found:
            where = f"{title}, {direction}, {cell}"
            self.problems.append(
                f"{where}: expected a cell that passes or is explained, found {word} "
                f"({outcome.get('reason')}); explain it in upstream_defects.py"
            )
            return word
        number = self.numbers.setdefault(found[0], len(self.numbers) + 1)
        return f"{word} [{number}](#reasons)"

    def unused(self) -> list[str]:
        """Return a sentence for each explanation of cells that pass."""
        return [
            f"upstream_defects.py: expected a cell that does not pass, found none for {entry[:3]}; "
            "take the entry out"
            for place, entry in enumerate(EXPLANATIONS)
            if place not in self.numbers
        ]


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def listed(dtypes: list[str], of_numpy: list[str]) -> str:
    """Return names, those of NumPy in one if all of them, or all but one, are there."""
    missing = [name for name in of_numpy if name not in dtypes]
    if len(missing) > 1:
        return ", ".join(dtypes)
    others = [name for name in dtypes if name not in of_numpy]
    return ", ".join(["NumPy's" + "".join(f" but {name}" for name in missing), *others])


def of_dtypes(row: dict[str, Any], direction: str, explained: Explained) -> list[str]:
    """Return the dtypes that pass, and those that do not, by what became of them."""
    found: dict[str, list[str]] = {}
    outcomes = row["cells"][direction]
    for cell, outcome in outcomes.items():
        kind, _, dtype = cell.partition(" ")
        if kind == "dtype" and outcome["outcome"] != "":
            mark = explained.mark(row["title"], direction, cell, outcome)
            found.setdefault("" if mark in PASSED else mark, []).append(dtype)
    passed = found.pop("", [])
    others = [f"{mark}: {listed(dtypes, row['numpy'])}" for mark, dtypes in found.items()]
    return [row["title"], direction, listed(passed, row["numpy"]), "; ".join(others)]


def render(rows: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """Return the page, and what keeps it from being true."""
    explained = Explained()
    cells = [cell for cell in rows[0]["cells"]["ours to theirs"] if not cell.startswith("dtype ")]
    directions = ("ours to theirs", "theirs to ours")
    # A library that is taken only by way of another has no arrays of its own here.
    ways = [
        (row, direction)
        for row in rows
        for direction in directions
        if any(outcome["outcome"] for outcome in row["cells"][direction].values())
    ]
    arrays = [
        [row["title"], direction]
        + [explained.mark(row["title"], direction, c, row["cells"][direction][c]) for c in cells]
        for row, direction in ways
    ]
    dtypes = [of_dtypes(row, direction, explained) for row, direction in ways]
    ordered = sorted(explained.numbers.items(), key=lambda item: item[1])
    reasons = "".join(f"{number}. {EXPLANATIONS[place][3]}\n" for place, number in ordered)
    versions = list(dict.fromkeys(row["version"] for row in rows))
    page = (
        f"{HEAD}\nReleases: {', '.join(versions)}.\n\n## Arrays\n\n"
        f"{table(['library', 'direction', *cells], arrays)}\n## Element types\n\n"
        "Every element type that the library and DLPack have in common was tried. NumPy's are "
        f"{', '.join(rows[0]['numpy'])}.\n\n"
        f"{table(['library', 'direction', 'passes', 'does not pass'], dtypes)}\n"
        f"## Reasons\n\n{reasons}"
    )
    return page, explained.problems + explained.unused()


def of_own_tests(folders: list[Path]) -> str:
    """Return how the DLPack tests in the peers' wheels fared."""
    lines = []
    for folder in folders:
        for side in ("producer", "consumer"):
            file = folder / f"own_tests_{side}.json"
            if file.exists():
                found = json.loads(file.read_text())
                lines.append([found["release"], side, str(found["passed"]), str(found["unfit"])])
    return f"{OWN_TESTS}\n{table(['wheel', 'ours is the', 'pass', 'do not fit'], lines)}"


def main() -> int:
    """Compare the page with what was measured, or write it; return 1 if it is not true."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="renew the page")
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    parts = [json.loads((folder / "consumers.json").read_text()) for folder in options.folders]
    page, problems = render([row for part in parts for row in part])
    page += f"\n{of_own_tests(options.folders)}"
    for problem in problems:
        print(problem)
    if problems:
        return 1
    if options.write:
        PAGE.write_text(page)
        return 0
    committed = PAGE.read_text() if PAGE.exists() else ""
    if committed == page:
        return 0
    changes = difflib.unified_diff(
        committed.splitlines(), page.splitlines(), "docs/consumers.md", "this run", lineterm="", n=0
    )
    print("\n".join(changes))
    print(
        "docs/consumers.md: expected what this run found, found the differences above; renew it "
        "with `python3 tests/interoperability/run.py --write` if they are right"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
