# SPDX-License-Identifier: Apache-2.0
"""The list of faults that survive, each with the reason: survivors.toml.

An entry names its faults by what stands in the header, not by a number of a line::

    [[equivalent]]
    file = "layout.hpp"
    function = "span_of"
    line = "for (std::size_t r = 0; r < ndim; ++r) {"
    changes = ["`<` -> `!=`"]
    occurrence = 2      # only the second such line of the function; all if left out
    reason = "r counts up from 0 by 1, so it meets ndim"

A file or a function of ``"*"`` is any. An ``[[equivalent]]`` fault changes no behaviour. A
``[[missed]]`` one does, and counts as not caught: no test of it can be had here, of a device that
is not there for example.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tomllib
from faults import Fault


@dataclass(frozen=True)
class Entry:
    """Faults of one line that no test can notice, and why."""

    file: str
    function: str
    line: str
    changes: tuple[str, ...]
    reason: str
    occurrence: int = 0
    #: Whether behaviour stays the same; if not, no test can be had here, and the fault counts.
    same: bool = True

    def matches(self, fault: Fault, change: str) -> bool:
        """Whether a fault is one of the entry, by one of its changes."""
        return (
            self.file in ("*", fault.header)
            and self.function in ("*", fault.function)
            and self.line == fault.source_line
            and fault.change == change
            and self.occurrence in (0, fault.occurrence)
        )


def read_entries(path: Path) -> list[Entry]:
    """Read the list; a key that is not known, or a missing one, is an error."""
    tables = tomllib.loads(path.read_text()) if path.exists() else {}
    return [
        Entry(**{**table, "changes": tuple(table["changes"]), "same": kind == "equivalent"})
        for kind in ("equivalent", "missed")
        for table in tables.get(kind, [])
    ]


def reasons_for(faults: dict[int, Fault], entries: list[Entry], *, same: bool) -> dict[int, str]:
    """Return the reason of each fault that the list names, of those of one kind."""
    return {
        number: entry.reason
        for number, fault in faults.items()
        for entry in entries
        for change in entry.changes
        if entry.same == same and entry.matches(fault, change)
    }


def stale_lines(
    faults: dict[int, Fault], entries: list[Entry], survived: set[int], tried: set[int]
) -> list[str]:
    """Return what the list says and is not so: faults that are not there, or that are caught."""
    stale = []
    for entry in entries:
        for change in entry.changes:
            matched = {n for n, fault in faults.items() if entry.matches(fault, change)}
            name = f"{entry.file}: {change} in: {entry.line}"
            if not matched:
                stale.append(f"{name} ({entry.function}): expected a fault, found none such")
            elif matched <= tried and not matched & survived:
                stale.append(f"{name} ({entry.function}): expected to survive, found caught")
    return stale
