# SPDX-License-Identifier: Apache-2.0
"""Run the benchmark of the Python exchange with each peer, in the peer's own environment.

``python3 dev.py benchmark`` runs this program. The environments are those of
``python3 dev.py interoperability``; dpnp is measured with one and with three root devices.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "tests" / "interoperability"),
    str(ROOT / "tests" / "devices"),
]

from driver_copies import make_copies  # noqa: E402
from run import build_package  # noqa: E402

from dev import Environment, RefusalError, make_environment  # noqa: E402

PAGE = ROOT / "docs" / "costs.md"
_PREFACE = """\
# What an exchange costs

Written by `python3 benchmarks/python/beside_peers.py --write`; `python3 dev.py benchmark` measures
the same and fails where a target is missed. Each number is a ratio: what a call of ours takes,
divided by what a call of the library beside it takes, each with a small array of its own. All are
measured in one process, in rounds that take turns; the first ratio is of the fastest rounds, the
second of the median ones, which a busy machine moves more. `dltensor_from_py_object_no_sync` has
its target in nanoseconds.

What remains of `from_dlpack` is mostly the backend's answers: kind and device of the pointer, base
and size of its allocation. Without the first two it is not known that the `device_id` is true,
without the others not that the view lies in its allocation; no query is made twice, and none of
them is made for `__dlpack__`, because a tensor that owns its memory was proved when it was made.
Among many live allocations the runtime and the backend look longer for one.

"""

PEERS = {"dpctl-tensor": "dpctl.tensor", "dpnp": "dpnp"}


def build_extension(environment: Environment, folder: Path) -> None:
    """Build what the benchmark needs from C++ against the environment's SYCL runtime."""
    environment.run(
        *("cmake", "-S", Path(__file__).parent, "-B", folder, "-G", "Ninja"),
        f"-DPython_EXECUTABLE={environment.python}",
        "-DUSM_DLPACK_BUILD_TESTS=OFF",
    )
    environment.run("cmake", "--build", folder)


def run_beside(peer: str, rounds: int) -> tuple[int, list[str]]:
    """Measure with one peer; return whether a target was missed, and the tables."""
    environment = make_environment(f"interoperability-{peer}")
    environment.install("-r", f"requirements/interoperability-{peer}.txt")
    build_package(environment)
    folder = ROOT / "build" / "benchmarks" / peer
    build_extension(environment, folder)
    settings: list[dict[str, str]] = [{}]
    if peer == "dpnp":
        driver = environment.folder / "lib" / "libintelocl.so"
        copies = make_copies(driver, folder / "devices")
        drivers = os.pathsep.join(map(str, [driver, copies["second"], copies["third"]]))
        settings.append({"OCL_ICD_FILENAMES": drivers})
    missed, tables = 0, []
    for number, variables in enumerate(settings):
        table = folder / f"table-{number}.md"
        missed |= environment.run(
            *(environment.python, Path(__file__).with_name("exchange.py"), PEERS[peer], folder),
            *(f"--rounds={rounds}", f"--table={table}"),
            check=False,
            **variables,
        )
        tables.append(table.read_text(encoding="utf-8"))
    return missed, tables


def main() -> int:
    """Run the benchmark with the peers that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", nargs="*", choices=[[], *PEERS], help="all without any")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--write", action="store_true", help="renew docs/costs.md")
    options = parser.parse_args()
    missed, tables = 0, []
    try:
        for peer in options.peer or PEERS:
            failed, made = run_beside(peer, options.rounds)
            missed |= failed
            tables += made
        if options.write:
            PAGE.write_text(_PREFACE + "\n".join(tables), encoding="utf-8")
        return missed
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
