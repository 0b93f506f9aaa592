# SPDX-License-Identifier: Apache-2.0
"""Write docs/consumers.md from what the environments measured, or see that it is unchanged.

    python consumers_page.py [--write] folder ...

A folder is an environment's, with its ``consumers.json`` and, where the peer's wheel has tests, the
counts of `peers_own_tests`. The section of the extended run stays as it is if its folder is not
given.

A cell that does not pass must be explained in `upstream_defects.EXPLANATIONS`, and an explanation
must have a cell that does not pass: otherwise the page is not written. No explanation excuses wrong
values. Only the standard library is used, since no environment sees all of the parts.
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
# How the page writes an outcome, and a direction.
SIGNS = {"same memory": "✓", "arrived": "✓", "sent": "✓", "received": "✓"}
SIGNS |= {"refused": "✗", "writable": "⚠", "crash": "☠"}
ARROWS = {"ours to theirs": "→", "theirs to ours": "←"}
HEAD = """\
# Consumers: what passes between this package and other libraries

`python3 dev.py interoperability` writes this page by trying each cell on the CPU device, and fails
when a cell is not as it stands here; `python3 tests/interoperability/run.py --write` renews it.

- ✓: it arrived at the same address, with its values, shape and dtype. Empty arrays have no address;
  for mpi4py, the message was read from, or written to, the memory itself.
- copy: it arrived in memory of its own.
- ✗ refused, ⚠ read-only memory that can be written on the other side, ☠ ends the process: the
  number leads to the reason. Wrong values fail the run.
- none: the library has no such array.

The first sign of a row stands for all arrays that no other sign names. → is ours to theirs: USM
libraries take a tensor by their `from_dlpack`; host libraries are asked for their CPU device, and
take shared USM unless the array says otherwise. ← is theirs to ours, `usm_dlpack.from_dlpack(x)`,
for host libraries with `device=(14, id)`, which copies. *Through NumPy* is
`from_dlpack(numpy.from_dlpack(x, device="cpu"))`, *through a capsule*
`from_dlpack(x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))`. mpi4py takes all USM for host
memory; device USM passes because the device is the CPU. The second device is on a platform of its
own.
"""


HOST = """\
A tensor of ours that a library takes as host memory, of each USM kind, with `copy` None and True.
*Capsule*: the library gets our legacy and versioned capsules for `dl_device=(1, 0)`. *Keyword*: it
is asked for the host by its own `device=`. ✓ is for host and shared USM without `copy=True`;
everything else is a copy, as it must be.
"""
EXTENDED = "extended"
EXTENDED_HEADING = "## Extended run"
EXTENDED_TEXT = """\
The libraries that are too large for every run: `python3 dev.py interoperability --extended`
measures them too, and compares this section, which stays as it is otherwise.
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

    def __init__(self, anchor: str) -> None:
        self.anchor = anchor
        self.numbers: dict[int, int] = {}
        self.problems: list[str] = []

    def mark(self, title: str, direction: str, cell: str, outcome: dict[str, Any]) -> str:
        """Return what stands in a cell."""
        found = [
            place
            for place, (titles, ways, pattern, _) in enumerate(EXPLANATIONS)
            if title in titles and direction in ways and fnmatchcase(cell, pattern)
        ]
        word: str = outcome["outcome"]
        if word in PASSED:
            return SIGNS.get(word, word)
        if word == "wrong" or not found:
            where = f"{title}, {direction}, {cell}"
            passes = "a cell that passes" + (" or is explained" if word != "wrong" else "")
            remedy = "explain it in upstream_defects.py" if word != "wrong" else "mend the export"
            self.problems.append(
                f"{where}: expected {passes}, found {word} ({outcome.get('reason')}); {remedy}"
            )
            return word
        number = self.numbers.setdefault(found[0], len(self.numbers) + 1)
        return f"{SIGNS.get(word, word)} [{number}](#{self.anchor})"

    def unused(self, measured: set[str]) -> list[str]:
        """Return a sentence for each explanation of measured libraries whose cells all pass."""
        return [
            f"upstream_defects.py: expected a cell that does not pass, found none for {entry[:3]}; "
            "take the entry out"
            for place, entry in enumerate(EXPLANATIONS)
            if place not in self.numbers and measured.intersection(entry[0])
        ]


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def grouped(names: list[str], marks: list[str]) -> str:
    """Return each mark once, with the names of its cells; the most frequent stands for the rest."""
    groups: dict[str, list[str]] = {}
    for name, mark in zip(names, marks, strict=True):
        groups.setdefault(mark or "none", []).append(name)
    ordered = sorted(groups, key=lambda mark: (mark == "none", -len(groups[mark])))
    return "; ".join([*ordered[:1], *(f"{m}: {', '.join(groups[m])}" for m in ordered[1:])])


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
            passed = outcome["outcome"] in PASSED
            found.setdefault("" if passed else mark, []).append(dtype)
    taken = found.pop("", [])
    others = [f"{mark}: {listed(dtypes, row['numpy'])}" for mark, dtypes in found.items()]
    return [row["title"], ARROWS[direction], listed(taken, row["numpy"]), "; ".join(others)]


# The words for what was varied.
FACTORS: dict[str, tuple[str, dict[Any, str]]] = {
    "usm_type": ("{} USM", {"device": "device", "host": "host", "shared": "shared"}),
    "version": ("{}", {"legacy": "legacy", "versioned": "versioned", None: ""}),
    "copy": ("{}", {None: "without a copy", True: "with `copy=True`"}),
}


def which(some: list[dict[str, Any]], every: list[dict[str, Any]]) -> str:
    """Return in words which of the exchanges of a cell these are."""
    words = []
    size = 1
    for factor, (phrase, names) in FACTORS.items():
        values = list(dict.fromkeys(one[factor] for one in some))
        size *= len(values)
        if len(values) < len({one[factor] for one in every}):
            words.append(phrase.format(" and ".join(names[value] for value in values)))
    if size == len(some):
        return ", ".join(words)
    each = [
        [phrase.format(names[one[f]]) for f, (phrase, names) in FACTORS.items()] for one in some
    ]
    return ", ".join(" ".join(filter(None, words)) for words in each)


def of_host(every: list[dict[str, Any]]) -> str:
    """Return what stands for all exchanges of one view, whose marks are known."""
    marks: dict[str, list[dict[str, Any]]] = {}
    for one in every:
        marks.setdefault(one["mark"], []).append(one)
    passed = [one for mark in ("✓", "copy", "") for one in marks.pop(mark, [])]
    in_place = [one for one in passed if one["usm_type"] != "device" and not one["copy"]]
    words = dict.fromkeys(one["mark"] for one in in_place or passed)
    failed = [
        f"{which(some, every)}: {mark}" if len(some) < len(every) else mark
        for mark, some in marks.items()
    ]
    if not words:
        return ", ".join(failed)
    return " or ".join(words) + (f" ({', '.join(failed)})" if failed else "")


def host_rows(row: dict[str, Any], explained: Explained) -> list[list[str]]:
    """Return how a library takes memory of the host: a row for each way that it has.

    A kind of capsule that it never takes is told once, in front.
    """
    rows = []
    for by in dict.fromkeys(one["by"] for one in row["host"] if one["outcome"]):
        every = [one for one in row["host"] if one["by"] == by]
        for one in every:
            cell = ", ".join(filter(None, (one["view"], one["version"])))
            one["mark"] = explained.mark(row["title"], f"by {by}", cell, one)
        views = list(dict.fromkeys(one["view"] for one in every))
        way = by
        for version in ("legacy", "versioned") if by == "capsule" else ():
            marks = {one["mark"] for one in every if one["version"] == version}
            if len(marks) == 1 and not marks & {"✓", "copy", ""}:
                way += f", {version} {marks.pop()}"
                every = [one for one in every if one["version"] != version]
        cells = [of_host([one for one in every if one["view"] == view]) for view in views]
        rows.append([row["title"], way, grouped(views, cells)])
    return rows


def render(rows: list[dict[str, Any]], level: str, suffix: str) -> tuple[str, list[str]]:
    """Return the tables of some libraries, and what keeps them from being true.

    Parameters
    ----------
    rows
        What was measured of each library.
    level
        The marks of a heading.
    suffix
        What the headings end with.
    """
    explained = Explained(f"Reasons{suffix}".lower().replace(" ", "-"))
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
        [
            row["title"],
            ARROWS[direction],
            grouped(
                cells,
                [
                    explained.mark(row["title"], direction, c, row["cells"][direction][c])
                    for c in cells
                ],
            ),
        ]
        for row, direction in ways
    ]
    host = [line for row in rows for line in host_rows(row, explained)]
    views = ", ".join(dict.fromkeys(one["view"] for one in rows[0]["host"]))
    dtypes = [of_dtypes(row, direction, explained) for row, direction in ways]
    ordered = sorted(explained.numbers.items(), key=lambda item: item[1])
    reasons = "".join(f"{number}. {EXPLANATIONS[place][3]}\n" for place, number in ordered)
    versions = list(dict.fromkeys(row["version"] for row in rows))
    page = (
        f"Releases: {', '.join(versions)}.\n\n{level} Arrays{suffix}\n\n"
        f"{table(['library', '', ', '.join(cells)], arrays)}\n"
        f"{level} Memory of the host{suffix}\n\n"
        f"{'' if suffix else HOST + chr(10)}{table(['library', 'by', views], host)}\n"
        f"{level} Element types{suffix}\n\n"
        "Every element type that the library and DLPack have in common was tried. NumPy's are "
        f"{', '.join(rows[0]['numpy'])}.\n\n"
        f"{table(['library', '', 'passes', 'does not pass'], dtypes)}\n"
        f"{level} Reasons{suffix}\n\n{reasons}"
    )
    return page, explained.problems + explained.unused({row["title"] for row in rows})


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
    parts = {f: json.loads((f / "consumers.json").read_text()) for f in options.folders}
    extended = [part for f, part in parts.items() if f.name.endswith(EXTENDED)]
    usual = [row for part in parts.values() if part not in extended for row in part]
    committed = PAGE.read_text() if PAGE.exists() else ""
    tables, problems = render(usual, "##", "")
    page = f"{HEAD}\n{tables}\n{of_own_tests(options.folders)}\n"
    if extended:
        tables, more = render(extended[0], "###", " of the extended run")
        page += f"{EXTENDED_HEADING}\n\n{EXTENDED_TEXT}\n{tables}"
        problems += more
    else:
        page += "".join(committed.partition(EXTENDED_HEADING)[1:])
    for problem in problems:
        print(problem)
    if problems:
        return 1
    if options.write:
        PAGE.write_text(page)
        return 0
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
