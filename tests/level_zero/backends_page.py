# SPDX-License-Identifier: Apache-2.0
"""Write docs/backends.md: which tests run on which backend, and which are left out, and why."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "backends.md"
HEAD = """\
# Backends: which tests run where

The tests run on two drivers of Intel's, and on no GPU:

- **The OpenCL CPU device**, with kernels: all tests, by `python3 dev.py test --all`.
- **Intel's driver for Level Zero** (and its OpenCL driver for GPUs), simulated, without kernels:
  the tests of this page, by `python3 dev.py gpu`. Devices, tiles, USM, its queries and memcpy are
  the code of Intel's release driver; nothing is a GPU.

`python3 tests/level_zero/run.py --write` writes this page. `python3 dev.py gpu` fails if the
suites, the configurations or what is left out are not as they stand here; the counts are of the
day when the page was written, with {versions}.
"""
LEFT_OUT = """\
## What is left out on Level Zero

The tests of the suites above whose names match; the pattern is compared with `Suite.Name` in C++,
and with `test_file.py::test_name[parameters]` in Python. A pattern that matches no test fails the
run.
"""
# Numbers change with every test that is added, and with every release of a driver.
NUMBERS = re.compile(r"\d[\d.~+-]*")


def table(heading: list[str], rows: list[list[object]]) -> str:
    """Return a table, its first column left and numbers right."""
    lines: list[Sequence[object]] = [heading, ["---", *("---:" for _ in heading[1:])], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def suites(title: str, counts: dict[str, list[int]]) -> str:
    """Return the section of some suites: how many of the tests of each ran where."""
    ran = {name: count for name, count in counts.items() if count[1]}
    rows: list[list[object]] = [
        [f"`{name}`", *(number or "" for number in count)] for name, count in ran.items()
    ]
    rows.append(["together", *(sum(column) for column in zip(*ran.values(), strict=True))])
    text = f"## {title}\n\n" + table(["", "OpenCL CPU device", "Level Zero"], rows)
    others = ", ".join(f"`{name}`" for name, count in counts.items() if not count[1])
    return f"{text}\nNot run on one root device of Level Zero: {others}.\n"


def page(
    versions: str,
    counts: dict[str, dict[str, list[int]]],
    patterns: dict[str, list[dict[str, str]]],
    configurations: dict[str, tuple[str, Any]],
) -> str:
    """Return the text of the page.

    Parameters
    ----------
    versions
        Of the drivers and the runtime.
    counts
        Of "cpp" and "python", by suite, the tests that run on OpenCL and those that ran here; of
        "configured" those that ran, by configuration and filter or file.
    patterns
        What left_out.toml says.
    configurations
        Their names, and what they are.
    """
    rows: list[list[object]] = []
    for key, count in counts["configured"].items():
        name, chosen = key.split()
        rows.append([configurations[name][0], f"`{chosen}`", *count])
    reasons = [
        [language, f"`{entry['pattern']}`", entry["reason"]]
        for key, language in (("cpp", "C++"), ("python", "Python"))
        for entry in patterns.get(key, [])
    ]
    left_out = [
        "| | tests | because |",
        "|---|---|---|",
        *(f"| {' | '.join(r)} |" for r in reasons),
    ]
    return "\n".join(
        [
            HEAD.format(versions=versions),
            suites("C++, on one root device", counts["cpp"]),
            suites("Python, on one root device", counts["python"]),
            "## Other configurations of Level Zero\n",
            table(["Configuration", "C++ tests, or a file of tests/level_zero", "tests"], rows),
            LEFT_OUT,
            *left_out,
            "",
        ]
    )


def difference(text: str) -> str:
    """Return how the page that is there differs from this text in more than numbers."""
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    old, new = (NUMBERS.sub("N", page).splitlines() for page in (before, text))
    return "\n".join(difflib.unified_diff(old, new, "the page", "what ran", n=0, lineterm=""))
