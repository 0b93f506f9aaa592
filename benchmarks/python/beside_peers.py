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

PEERS = {"dpctl-tensor": "dpctl.tensor", "dpnp": "dpnp"}


def build_extension(environment: Environment, folder: Path) -> None:
    """Build what the benchmark needs from C++ against the environment's SYCL runtime."""
    environment.run(
        *("cmake", "-S", Path(__file__).parent, "-B", folder, "-G", "Ninja"),
        f"-DPython_EXECUTABLE={environment.python}",
        "-DUSM_DLPACK_BUILD_TESTS=OFF",
    )
    environment.run("cmake", "--build", folder)


def run_beside(peer: str, rounds: int) -> int:
    """Measure with one peer; return whether a target was missed."""
    environment = make_environment(f"interoperability-{peer}")
    environment.install("-r", f"requirements/interoperability-{peer}.txt")
    build_package(environment)
    folder = ROOT / "build" / "benchmarks" / peer
    build_extension(environment, folder)
    program = Path(__file__).with_name("exchange.py")
    arguments: list[str | Path] = [
        environment.python,
        program,
        PEERS[peer],
        folder,
        f"--rounds={rounds}",
    ]
    missed = environment.run(*arguments, check=False)
    if peer == "dpnp":
        driver = environment.folder / "lib" / "libintelocl.so"
        copies = make_copies(driver, folder / "devices")
        drivers = os.pathsep.join(map(str, [driver, copies["second"], copies["third"]]))
        missed |= environment.run(*arguments, check=False, OCL_ICD_FILENAMES=drivers)
    return missed


def main() -> int:
    """Run the benchmark with the peers that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", nargs="*", choices=[[], *PEERS], help="all without any")
    parser.add_argument("--rounds", type=int, default=400)
    options = parser.parse_args()
    try:
        return max(run_beside(peer, options.rounds) for peer in options.peer or PEERS)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
