# SPDX-License-Identifier: Apache-2.0
"""Write docs/consumers.md from what the environments found, or see that it is unchanged.

The tables are written; the prose before each of them stays as it is. Only the
standard library is used, since no environment has all libraries.
"""

import difflib
import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "consumers.md"
# The libraries of each environment, as support/conformance_adapters.py names their adapters.
LIBRARIES = {
    "dpctl-tensor": ("DpctlTensor",),
    "dpnp": ("Dpnp", "DpnpTensor"),
    "consumers": ("TvmFfi", "NumPy", "PyTorch", "Jax", "ArrayApiStrict", "PyArrow"),
}
RESULTS = ["library", "imports `x` by", "passed", "failed", "not run"]
REASONS = ["what fails, and what to do", "with", "cases"]
OWN_TESTS = ["wheel", "ours is the", "pass", "do not fit"]


def head_of(heads: list[str]) -> str:
    return f"| {' | '.join(heads)} |\n"


def table(heads: list[str], rows: list[list[str]]) -> str:
    return "".join(map(head_of, [heads, ["---"] * len(heads), *rows]))


def results(libraries: list[Any]) -> str:
    """Return the table of the libraries, and that of what fails, a row for a reason and cases."""
    rows: list[list[str]] = []
    failing: dict[tuple[str, str], list[str]] = {}
    for library in libraries:
        for reason, cases in library["fails"].items():
            names = ", ".join(f"`{case}`" for case in cases)
            failing.setdefault((reason, names), []).append(library["title"])
        failed = sum(map(len, library["fails"].values()))
        counts = (library["passed"], failed, library["not run"])
        name = f"{library['title']} {library['version']}"
        rows.append([name, f"`{library['call']}`", *map(str, counts)])
    reasons = [[reason, ", ".join(titles), names] for (reason, names), titles in failing.items()]
    return f"{table(RESULTS, rows)}\n{table(REASONS, reasons)}"


def compare(folder: Path, write: bool) -> int:
    """Compare the page with what was found, or write it; return 1 if it is not true.

    The environments are in the folder; each has the results of its libraries, and, if the wheel of
    its peer has tests, the counts of `peers_own_tests`.
    """
    environments = {peer: folder / f"interoperability-{peer}" for peer in LIBRARIES}
    libraries = [
        json.loads((environments[peer] / f"conformance-{name}.json").read_text())
        for peer, names in LIBRARIES.items()
        for name in names
    ]
    own = [
        list(json.loads(file.read_text()).values())
        for environment in environments.values()
        for file in sorted(environment.glob("own_tests_*.json"), reverse=True)
    ]
    committed = PAGE.read_text()
    before, _, after = committed.partition(head_of(RESULTS))
    own_prose = after[after.index("\n## Their own tests") : after.index(head_of(OWN_TESTS))]
    page = f"{before}{results(libraries)}{own_prose}{table(OWN_TESTS, own)}"
    if write:
        PAGE.write_text(page)
        return 0
    lines = (committed.splitlines(), page.splitlines())
    print(
        "\n".join(difflib.unified_diff(*lines, "docs/consumers.md", "this run", lineterm="", n=0))
    )
    if page == committed:
        return 0
    print(
        "docs/consumers.md: expected what this run found, found the differences above; renew it "
        "with `python3 tests/interoperability/run.py --write` if they are right"
    )
    return 1
