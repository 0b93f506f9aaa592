# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that leaves out the tests of left_out.toml, and says how many and why.

With ``--all-of-left-out``, for a run of all files, a pattern that matches no test is an error.
"""

from __future__ import annotations

import fnmatch
import sys
from collections import Counter
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

LIST = Path(__file__).with_suffix(".toml")
COUNTS = pytest.StashKey["Counter[str]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for a run of all files."""
    parser.addoption(
        "--all-of-left-out",
        action="store_true",
        help=f"require that each pattern of {LIST.name} matches a test",
    )


def reasons() -> dict[str, str]:
    """Return the reason of each pattern."""
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["python"]
    return {entry["pattern"]: entry["reason"] for entry in entries}


def name_of(item: pytest.Item) -> str:
    """Return a test's node id without its folder."""
    return item.path.name + item.nodeid[item.nodeid.index("::") :]


@pytest.hookimpl(tryfirst=True)  # before the deselection by -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the list leaves out."""
    known = reasons()
    stale = set(known)
    counts = config.stash[COUNTS] = Counter()
    kept, left_out = [], []
    for item in items:
        matches = [pattern for pattern in known if fnmatch.fnmatchcase(name_of(item), pattern)]
        stale.difference_update(matches)
        if matches:
            counts[known[matches[0]]] += 1
            left_out.append(item)
        else:
            kept.append(item)
    if stale and config.getoption("all_of_left_out"):
        raise pytest.UsageError(
            f"{LIST.name}: expected patterns that match a test, found none for "
            f"{', '.join(sorted(stale))}; delete the entries, or correct them"
        )
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how many tests were left out, for each reason."""
    counts = config.stash.get(COUNTS, Counter())
    if counts:
        each = "; ".join(f"{count}: {reason}" for reason, count in counts.most_common())
        terminalreporter.write_line(f"left out {sum(counts.values())} tests ({each})")
