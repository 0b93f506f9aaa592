# SPDX-License-Identifier: Apache-2.0
"""The conformance suite with the libraries of this environment; docs/consumers.md is made of it."""

import json
import re
import sys
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import conformance_adapters
import pytest
from conformance_runs import conform
from consumers_page import LIBRARIES

ENVIRONMENT = Path(sys.prefix).name.removeprefix("interoperability-")
EXCHANGES = conformance_adapters.EXCHANGES.get(ENVIRONMENT, {})
CHECK_LIBRARY = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "check_library.md"


@pytest.mark.parametrize("name", LIBRARIES[ENVIRONMENT])
def test_a_library_fails_what_is_known(name: str, tmp_path: Path) -> None:
    library = getattr(conformance_adapters, name)
    options = ("-W", "ignore", "--report", str(tmp_path / "report.md"))
    failed, not_run, printed = conform(f"conformance_adapters:{name}", *options)
    assert failed == set(chain(*library.fails.values())), printed
    report = (tmp_path / "report.md").read_text()
    found = {
        "title": library.title,
        "version": version(library.distribution).partition("+")[0],
        "call": library.call,
        "passed": report.count("| passed |"),
        "fails": library.fails,
        "not run": len(not_run),
    }
    if name == "TvmFfi":  # whose report the page shows in part
        shown = re.findall(r"(?m)^\| .* \|$", CHECK_LIBRARY.read_text())
        assert set(shown) <= set(report.splitlines())
    Path(sys.prefix, f"conformance-{name}.json").write_text(json.dumps(found))


@pytest.mark.parametrize("name", EXCHANGES)
def test_arrays_are_exchanged_with_ours(name: str) -> None:
    """In one process, since ours refuses what a peer crashes of."""
    failed, _, printed = conform(f"conformance_adapters:{name}", "-W", "ignore", "--together")
    assert failed == EXCHANGES[name], printed
