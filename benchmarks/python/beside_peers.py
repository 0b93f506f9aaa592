# SPDX-License-Identifier: Apache-2.0
"""Compare calls from Python with dpctl.tensor, dpnp, NumPy and nanobind.

``python3 dev.py benchmark`` runs it with the same options. Each peer is measured in its own
environment, which ``python3 dev.py interoperability`` uses too. It fails where a ratio is above its
limit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from page import write_section  # noqa: E402

from dev import RefusalError, make_environment  # noqa: E402

(PROCESSOR, *_) = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text("utf-8"))
NOTE = f"""\
Times of calls with small arrays, each in its fastest round, on {os.cpu_count()} cores: {PROCESSOR}.
`from_dlpack`, `validate` and views of foreign arrays query the driver for the memory; NumPy and
nanobind validate no memory. A wait for dpctl's queue, as in `wait` and exports, takes 10 µs more
once dpnp or dpctl.tensor has submitted [host tasks](explanation/synchronisation.md#host-tasks).
"""
PEERS = {"dpctl-tensor": "dpctl.tensor", "dpnp": "dpnp"}

Rows = list[tuple[str, float, float, float | None]]


def measure(peer: str) -> Rows:
    """Build the package and the extension in a peer's environment, and measure there."""
    environment = make_environment(f"interoperability-{peer}")
    environment.install("-q", "-r", f"requirements/interoperability-{peer}.txt")
    environment.install_project("--no-deps", ".")
    folder = ROOT / "build" / "benchmarks" / peer
    environment.run(
        *("cmake", "-S", HERE, "-B", folder), f"-DPython_EXECUTABLE={environment.python}"
    )
    environment.run("cmake", "--build", folder)
    environment.run(environment.python, HERE / "ratios.py", PEERS[peer], folder)
    rows: Rows = json.loads((folder / "ratios.json").read_text(encoding="utf-8"))
    return rows


def table(measured: dict[str, Rows]) -> str:
    """Return a Markdown table: a row for each comparison, a column for each peer."""
    lines = [["ours / theirs", "ours, in µs", *(PEERS[peer] for peer in measured), "at most"]]
    lines.append(["---"] * len(lines[0]))
    for same in zip(*measured.values(), strict=True):
        title, _, _, limit = same[0]
        fastest = min(ours for _, ours, _, _ in same)
        ratios = (f"{ratio:.2g}" for _, _, ratio, _ in same)
        shown = f"{fastest:.0f}" if fastest > 10 else f"{fastest:.2g}"
        lines.append([title, shown, *ratios, "" if limit is None else f"{limit:.2g}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Measure, print, and fail if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="dev.py benchmark", description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/speed.md")
    options = parser.parse_args()
    try:
        measured = {peer: measure(peer) for peer in PEERS}
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    text = table(measured)
    print(text)
    if options.write:
        write_section("Python: beside dpctl.tensor, dpnp, NumPy and nanobind", f"{NOTE}\n{text}")
    rows = [row for found in measured.values() for row in found]
    missed = [title for title, _, ratio, limit in rows if limit is not None and ratio > limit]
    for title in missed:
        print(f"above its limit: {title}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
