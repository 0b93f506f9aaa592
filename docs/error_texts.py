# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of docs/errors as plain text, for ``python -m usm_dlpack errors``.

The build of the Python package runs it with the folder to write to: a text for each page, and
``index.txt`` with the codes and their meanings.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from error_table import ROOT, read_table, with_meaning
from recorded_uses import uses_of

# Of a link its words are kept, and of bold letters the letters.
MARKUP = re.compile(r"\[([^]]+)\]\([^)]+\)|\*\*(.+?)\*\*|^# ", re.MULTILINE)


def filled(text: str, first: str = "", others: str = "") -> str:
    """Return text in lines of at most 96 columns, which begin as told."""
    return textwrap.fill(
        " ".join(text.split()),
        96,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
    )


def plain(markdown: str) -> str:
    """Return text without markup, its paragraphs and list items wrapped again."""
    text = MARKUP.sub(lambda found: found[1] or found[2] or "", markdown)
    parts = re.split(r"\n\n|\n(?=- )", text.strip())
    return "\n\n".join(filled(part, others="  " * part.startswith("- ")) for part in parts)


def text_of(name: str, markdown: str) -> str:
    """Return a page as plain text, and behind it each of its invalid uses with what it says."""
    shown = [plain(markdown)]
    for use in uses_of(name):
        code = textwrap.indent(use.shown, "    ")
        shown.append(f"{use.title}:\n\n{code}\n\n{filled(use.sentence, '  ', '  ')}")
    return "\n\n".join(shown) + "\n"


def write_texts(output: Path) -> None:
    """Write all texts to a folder."""
    output.mkdir(parents=True, exist_ok=True)
    rows = read_table()
    files = (ROOT / "docs" / "errors").glob("*.md")
    pages = {file.stem: file.read_text(encoding="utf-8") for file in files}
    del pages["index"]
    pages |= {row.code: with_meaning(row, pages[row.code]) for row in rows}
    for name, markdown in pages.items():
        (output / f"{name}.txt").write_text(text_of(name, markdown), encoding="utf-8")
    meanings = {row.code: row.meaning for row in rows}
    for name in sorted(pages.keys() - meanings.keys()):
        meanings[name] = pages[name].partition("\n")[0].removeprefix("# ")
    width = max(map(len, meanings))
    index = "".join(f"{name:{width}}  {meaning}\n" for name, meaning in meanings.items())
    (output / "index.txt").write_text(index, encoding="utf-8")


if __name__ == "__main__":
    write_texts(Path(sys.argv[1]))
