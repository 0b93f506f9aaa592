# SPDX-License-Identifier: Apache-2.0
"""Draws diagrams with graphviz: those of docs/diagrams/, and the rooms of the headers.

The architecture is drawn from the table that tests/python/test_architecture.py compares with the
includes, so the picture cannot say anything else. Pictures that are seen outside the site, in
README.md and CONTRIBUTING.md, are kept in docs/diagrams/; `python3 docs/build.py --draw` renews
them.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

DOCS = Path(__file__).resolve().parent
DIAGRAMS = DOCS / "diagrams"
ROOMS = DOCS.parent / "tests" / "python" / "test_architecture.py"

# The tables of rooms, with what they are called in the picture.
FLOORS = {
    "CORE_ROOMS": "without SYCL",
    "SYCL_ROOMS": "with SYCL",
    "NANOBIND_ROOMS": "for nanobind extensions",
}
# Pictures that are kept, because README.md and CONTRIBUTING.md show them.
KEPT = ("exchange", "architecture")

# What graphviz draws in black and white takes the colours of the page.
COLOURS = {'"black"': '"currentColor"', '"white"': '"none"'}

# A picture for itself has the reader's scheme, as a page that shows it may not say.
STYLE = """<style>
svg { color: #111; } text { fill: #111; }
@media (prefers-color-scheme: dark) { svg { color: #ddd; } text { fill: #ddd; } }
</style>"""


def rooms() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the rooms right below each room, by the name of the table that has it."""
    assigned = (
        (node.targets[0].id, node.value)
        for node in ast.parse(ROOMS.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    )
    return {name: ast.literal_eval(value) for name, value in assigned if name in FLOORS}


def architecture_source() -> str:
    """Return the rooms as a graph: an arrow leads from a header to one that it may include."""
    lines = [
        "digraph architecture {",
        "  rankdir=TB; ranksep=0.35; nodesep=0.15",
        '  node [shape=box style=rounded fontname="sans-serif" fontsize=11 height=0.3]',
        '  edge [arrowsize=0.6]; fontname="sans-serif"; fontsize=12',
    ]
    for table, floor in reversed(rooms().items()):
        lines += [f"  subgraph cluster_{table} {{", f'    label="{FLOORS[table]}"; labeljust=l']
        lines += [f"    {room}" for room in floor]
        lines += ["  }"]
    for floor in rooms().values():
        lines += [
            f"  {room} -> {below}" for room, all_below in floor.items() for below in all_below
        ]
    source = "\n".join([*lines, "}"])
    # An arrow that others imply says nothing.
    reduced = subprocess.run(
        ["tred"], input=source, capture_output=True, text=True, check=True
    ).stdout
    return reduced.rstrip().removesuffix("}") + "\n".join([*stacked(), "}", ""])


def stacked() -> list[str]:
    """Return invisible arrows that put each floor above the one below it."""
    lines = []
    floors = list(rooms().values())
    for upper, lower in zip(floors[1:], floors, strict=False):
        lowest = [room for room, below in upper.items() if not upper.keys() & set(below)]
        entered = {room for below in lower.values() for room in below}
        lines += [
            f"  {room} -> {top} [style=invis]" for room in lowest for top in lower.keys() - entered
        ]
    return sorted(lines)


def source_of(name: str) -> str:
    """Return the graph of a diagram, or nothing if there is none of that name."""
    if name == "architecture":
        return architecture_source()
    file = DIAGRAMS / f"{name}.dot"
    return file.read_text() if file.is_file() else ""


def draw(source: str) -> str:
    """Return what graphviz draws, as an <svg> element without colours of its own."""
    drawn = subprocess.run(
        ["dot", "-Tsvg"], input=source, capture_output=True, text=True, check=True
    ).stdout
    element = drawn[drawn.index("<svg") :]
    for drawn_colour, colour in COLOURS.items():
        element = element.replace(drawn_colour, colour)
    return re.sub(r"<!--.*?-->\n?", "", element, flags=re.DOTALL)


def standalone(name: str) -> str:
    """Return a picture for itself, in the colours that the reader prefers."""
    opened, _, rest = draw(source_of(name)).partition(">\n")
    return f"{opened}>\n{STYLE}\n{rest}"


def shown_in(picture: str) -> list[str]:
    """Return the texts, boxes and arrows of a picture, which no version of graphviz changes."""
    return sorted(re.findall(r"<(?:title|text)[^>]*>([^<]*)<", picture))


def keep() -> None:
    """Draw the kept pictures anew."""
    for name in KEPT:
        (DIAGRAMS / f"{name}.svg").write_text(standalone(name))


def faults_of_kept_pictures(diagrams: Path = DIAGRAMS) -> list[str]:
    """Find kept pictures that show something else than their sources."""
    faults = []
    for name in KEPT:
        kept = diagrams / f"{name}.svg"
        if not kept.is_file() or shown_in(kept.read_text()) != shown_in(standalone(name)):
            found = "another one" if kept.is_file() else "none"
            faults.append(
                f"docs/diagrams/{name}.svg: expected the picture of its source, found {found}; "
                "run `python3 docs/build.py --draw`"
            )
    return faults


def rows_of(page: str, heading: str) -> list[tuple[str, list[str]]]:
    """Return the rule and the codes of each row of a list of docs/checks.md."""
    sections = re.split(r"^## ", page, flags=re.MULTILINE)
    (text,) = [section for section in sections if section.startswith(f"{heading}\n")]
    rows = [line.split("|") for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    return [(cells[2].strip(), re.findall(r"`(\w+)`", cells[4])) for cells in rows]


def codes_of_list(page: str, heading: str) -> list[str]:
    """Return the codes of a list of docs/checks.md in its order, lists that it runs included."""
    codes: list[str] = []
    for rule, of_row in rows_of(page, heading):
        inner = re.match(r"\[\w+\]\(#(\w+)\) 1 to (\d+)", rule)
        if inner:
            codes += [code for _, row in rows_of(page, inner[1])[: int(inner[2])] for code in row]
        codes += of_row
    return codes


# The diagrams of the protocols, and the list of docs/checks.md that each draws.
PROTOCOLS = {"export_protocol": "export", "import_protocol": "validate"}


def faults_of_protocols(diagrams: Path = DIAGRAMS, checks: Path = DOCS / "checks.md") -> list[str]:
    """Find diagrams that refuse otherwise, or in another order, than docs/checks.md says."""
    page = checks.read_text()
    faults = []
    for name, heading in PROTOCOLS.items():
        source = (diagrams / f"{name}.dot").read_text()
        labels = re.findall(r'^ *refused_\d+ \[label="([^"]*)"', source, re.MULTILINE)
        drawn = [code for label in labels for code in re.split(r"\\[nl]", label) if code]
        expected = codes_of_list(page, heading)
        if drawn != expected:
            faults.append(
                f"docs/diagrams/{name}.dot: expected the codes {', '.join(expected)}, found "
                f"{', '.join(drawn)}; draw the list of docs/checks.md"
            )
    return faults
