# SPDX-License-Identifier: Apache-2.0
"""Write docs/consumers.md from what the environments measured, or see that it is unchanged.

The releases, tables and reasons are written; the prose around them stays as it is. A cell that does
not pass must be explained in `upstream_defects.EXPLANATIONS`, and an explanation must have a cell
that does not pass: otherwise the page is not written. No explanation excuses wrong values. Only the
standard library is used, since no environment sees all of the parts.
"""

import difflib
import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from upstream_defects import EXPLANATIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "consumers.md"
COMMITTED = PAGE.read_text()
PASSED = ("same memory", "copy", "arrived", "sent", "received", "")
NONE = "no such array"
RELEASES = "Releases: "
HOST_HEAD = "without / with `copy=True`"
DIRECTIONS = ("ours to theirs", "theirs to ours")
HOST_WAYS = ("legacy capsule", "versioned capsule", "keyword")
EXTENDED_HEADING = "## Extended run"

Row = dict[str, Any]


def prose(heading: str, end: str) -> str:
    """Return what the page says from a heading up to what is written after the prose."""
    start = COMMITTED.index(heading)
    return COMMITTED[start : COMMITTED.index(end, start)]


class Explained:
    """The explanations of cells, numbered in the order in which they are met."""

    def __init__(self, anchor: str) -> None:
        self.anchor = anchor
        self.numbers: dict[str, int] = {}
        self.fitting: dict[str, None] = {}
        self.problems: list[str] = []

    def mark(self, row: Row, direction: str, cell: str) -> str:
        outcome = row["cells"].get(direction, {}).get(cell, {"outcome": ""})
        where = f"{row['title']} | {direction} | {cell}"
        fitting = [
            sentence
            for sentence, patterns in EXPLANATIONS.items()
            if any(fnmatchcase(where, pattern) for pattern in patterns)
        ]
        self.fitting |= dict.fromkeys(fitting[:1])
        word: str = outcome["outcome"]
        if word in PASSED:
            return word
        if word == "wrong" or not fitting:
            self.problems.append(
                f"{where}: expected a cell that passes or is explained, found {word} "
                f"({outcome.get('reason')}); mend the export, or explain it in upstream_defects.py"
            )
            return word
        number = self.numbers.setdefault(fitting[0], len(self.numbers) + 1)
        return f"{word} [{number}](#{self.anchor})"

    def faults(self) -> list[str]:
        """Return what is unexplained, and each explanation whose cells all pass."""
        unused = [
            "upstream_defects.py: expected a cell that does not pass, found none for "
            f"`{sentence}`; take the entry out"
            for sentence in self.fitting
            if sentence not in self.numbers
        ]
        return self.problems + unused


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def listed(dtypes: list[str], of_numpy: list[str]) -> str:
    """Return names, those of NumPy in one if all of them, or all but one, are there."""
    missing = [name for name in of_numpy if name not in dtypes]
    if len(missing) > 1:
        return ", ".join(dtypes)
    others = [name for name in dtypes if name not in of_numpy]
    return ", ".join(["NumPy's" + "".join(f" but {name}" for name in missing), *others])


def of_dtypes(row: Row, direction: str, explained: Explained) -> str:
    """Return the dtypes that pass, and those that do not, by what became of them."""
    found: dict[str, list[str]] = {}
    for cell, outcome in row["cells"][direction].items():
        kind, _, dtype = cell.partition(" ")
        if kind == "dtype" and outcome["outcome"] != "":
            mark = explained.mark(row, direction, cell)
            found.setdefault("" if mark in PASSED else mark, []).append(dtype)
    passed = found.pop("", [])
    others = [f"{mark}: {listed(dtypes, row['numpy'])}" for mark, dtypes in found.items()]
    return "; ".join([listed(passed, row["numpy"])] * bool(passed) + others)


def summed_up(marks: dict[str, str]) -> str:
    """Return what became of most arrays that passed, then the others with their names."""
    groups: dict[str, list[str]] = {}
    for name, mark in marks.items():
        groups.setdefault(mark or NONE, []).append(name)
    groups.pop("arrived", None)  # of an empty array, of which no more can be said
    most = max(groups, key=lambda mark: (mark != NONE, "[" not in mark, len(groups[mark])))
    if most == NONE:
        return ""
    return "; ".join(
        [most, *(f"{mark}: {', '.join(names)}" for mark, names in groups.items() if mark != most)]
    )


def host_rows(row: Row, views: list[str], explained: Explained) -> list[list[str]]:
    """Return how a library takes memory of the host: a row for all ways that are alike."""
    ways: dict[str, list[str]] = {}
    for way in HOST_WAYS:
        pairs = [
            dict.fromkeys(
                explained.mark(row, f"{way}{copied}", view) for copied in ("", ", copied")
            )
            for view in views
        ]
        cells = summed_up(dict(zip(views, (" / ".join(pair) for pair in pairs), strict=True)))
        if cells:
            ways.setdefault(cells, []).append(way)
    return [[row["title"], ", ".join(alike), cells] for cells, alike in ways.items()]


def render(rows: list[Row], level: str = "##", suffix: str = "") -> tuple[str, list[str]]:
    """Return the tables of some libraries, and what keeps them from being true.

    ``level`` is the marks of a heading, ``suffix`` what the headings end with.
    """
    explained = Explained(f"Reasons{suffix}".lower().replace(" ", "-"))
    cells = [cell for cell in rows[0]["cells"]["ours to theirs"] if not cell.startswith("dtype ")]
    views = list(rows[0]["cells"]["keyword"])
    arrays, host, dtypes = [], [], []
    for row in rows:
        marks = [{cell: explained.mark(row, way, cell) for cell in cells} for way in DIRECTIONS]
        arrays.append([row["title"], *map(summed_up, marks)])
    for row in rows:
        host += host_rows(row, views, explained)
    for row in rows:
        ours, theirs = (of_dtypes(row, way, explained) for way in DIRECTIONS)
        dtypes.append([row["title"], ours, "the same" if theirs == ours else theirs])
    reasons = "".join(f"{number}. {text}\n" for text, number in explained.numbers.items())
    versions = dict.fromkeys(row["version"] for row in rows)
    host_head = f"{level} Memory of the host{suffix}\n\n"
    if not suffix:
        host_head = prose(host_head, "| ")
    page = (
        f"{RELEASES}{', '.join(versions)}.\n\n{level} Arrays{suffix}\n\n"
        f"{table(['library', *DIRECTIONS], arrays)}\n"
        f"{host_head}{table(['library', 'by', HOST_HEAD], host)}\n"
        f"{level} Element types{suffix}\n\n"
        "Every element type that the library and DLPack have in common was tried. NumPy's are "
        f"{', '.join(rows[0]['numpy'])}.\n\n"
        f"{table(['library', *DIRECTIONS], dtypes)}\n"
        f"{level} Reasons{suffix}\n\n{reasons}"
    )
    return page, explained.faults()


def compare(folders: list[Path], write: bool) -> int:
    """Compare the page with what was measured, or write it; return 1 if it is not true.

    A folder is an environment's, with its ``consumers.json`` and, where the peer's wheel has tests,
    the counts of `peers_own_tests`. The section of the extended run stays as it is if its folder is
    not given.
    """
    parts = {folder: json.loads((folder / "consumers.json").read_text()) for folder in folders}
    extended = [part for folder, part in parts.items() if folder.name.endswith("extended")]
    usual = [row for part in parts.values() if part not in extended for row in part]
    own = [
        list(json.loads(file.read_text()).values())
        for folder in folders
        for file in sorted(folder.glob("own_tests_*.json"), reverse=True)
    ]
    tables, problems = render(usual)
    own_table = table(["wheel", "ours is the", "pass", "do not fit"], own)
    page = f"{prose('# Consumers', RELEASES)}{tables}\n"
    page += f"{prose('## Their own tests', '| ')}{own_table}\n"
    if extended:
        tables, more = render(extended[0], "###", " of the extended run")
        page += prose(EXTENDED_HEADING, RELEASES) + tables
        problems += more
    else:
        page += "".join(COMMITTED.partition(EXTENDED_HEADING)[1:])
    print("\n".join(problems))
    if problems:
        return 1
    if write:
        PAGE.write_text(page)
        return 0
    lines = (COMMITTED.splitlines(), page.splitlines())
    changes = difflib.unified_diff(*lines, "docs/consumers.md", "this run", lineterm="", n=0)
    print("\n".join(changes))
    if page == COMMITTED:
        return 0
    print(
        "docs/consumers.md: expected what this run found, found the differences above; renew it "
        "with `python3 tests/interoperability/run.py --write` if they are right"
    )
    return 1
