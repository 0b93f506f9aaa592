# SPDX-License-Identifier: Apache-2.0
"""Reads the table of error codes in core/error.hpp, and makes the index of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "include" / "usm_dlpack" / "core" / "error.hpp"

TABLE = re.compile(r"\berror_table\[\] = \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
ROW = re.compile(
    r'\{"(?P<name>\w+)",\s*(?P<meaning>(?:"[^"\n]*"\s*)+)'
    r"(?:,\s*python_class::(?P<raised>\w+))?\}"
)


class Row(NamedTuple):
    """A code, what it means, and the exception in Python, in Markdown."""

    code: str
    meaning: str
    raised: str


def read_table() -> list[Row]:
    """Return the rows of the table, in alphabetical order."""
    table = TABLE.search(HEADER.read_text(encoding="utf-8"))
    assert table is not None, f"{HEADER}: expected error_table, found none; name it so"
    rows = list(ROW.finditer(table[1]))
    assert len(rows) == table[1].count('{"'), f"{HEADER}: a row is not written as the others"
    raised = {
        None: "`usm_dlpack.ConversionError`",
        "binding_error": "`usm_dlpack.UsmBindingError`, which is also a `TypeError`",
    }
    return sorted(
        Row(row["name"], "".join(re.findall(r'"([^"]*)"', row["meaning"])), raised[row["raised"]])
        for row in rows
    )


def index_table(rows: list[Row]) -> list[str]:
    """Return the table of codes in docs/errors/index.md, in lines of Markdown."""
    lines = ["| code | refused | in Python |", "|---|---|---|"]
    return lines + [f"| `{row.code}` | {row.meaning} | {row.raised} |" for row in rows]


def with_meaning(row: Row, page: str) -> str:
    """Return the page of a code with what is refused behind its title."""
    return page.replace("\n", f"\n\nRefused: {row.meaning}.\n", 1)
