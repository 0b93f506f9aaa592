# SPDX-License-Identifier: Apache-2.0
"""Draws the diagrams of docs/diagrams/ with graphviz.

Pictures that are seen outside the site, in README.md and CONTRIBUTING.md, are kept there too;
`python3 docs/build.py --draw` renews them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DOCS = Path(__file__).resolve().parent
DIAGRAMS = DOCS / "diagrams"

# Pictures that are kept, because README.md and CONTRIBUTING.md show them.
KEPT = ("exchange", "architecture")

# What graphviz draws in black and white takes the colours of the page.
COLOURS = {'"black"': '"currentColor"', '"white"': '"none"'}

# A picture for itself has the reader's scheme, as a page that shows it may not say.
STYLE = """<style>
svg { color: #111; } text { fill: #111; }
@media (prefers-color-scheme: dark) { svg { color: #ddd; } text { fill: #ddd; } }
</style>"""


def source_of(name: str) -> str:
    """Return the graph of a diagram, or nothing if there is none of that name."""
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
