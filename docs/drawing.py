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
