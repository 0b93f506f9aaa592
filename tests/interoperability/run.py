# SPDX-License-Identifier: Apache-2.0
"""Exchange arrays with dpctl.tensor and dpnp, each in a virtual environment of its own.

The two need different major releases of the SYCL runtime, of which a process and an extension have
one. So each environment gets its own build of this package. ``python3 dev.py interoperability``
runs this program; ``python3 tests/interoperability/run.py dpnp -k strides`` runs one peer, with
further arguments for pytest.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dev import Environment, RefusalError, make_environment  # noqa: E402

PEERS = ("dpctl-tensor", "dpnp")


def build_package(environment: Environment) -> None:
    """Build this package against the environment's SYCL runtime, and install it there.

    Parameters
    ----------
    environment
        Where the runtime, the build tools and the headers are. The build folder is inside, so that
        a second build takes only what has changed.
    """
    environment.run(
        environment.python,
        *("-m", "pip", "install", "--no-build-isolation", "--no-deps"),
        f"--config-settings=build-dir={environment.folder / 'build'}",
        ROOT,
    )


def run_tests(environment: Environment, peer: str, arguments: list[str]) -> None:
    """Run the tests of one peer.

    Parameters
    ----------
    environment
        Where the peer and this package are installed.
    peer
        One of `PEERS`.
    arguments
        More for pytest.
    """
    file = Path(__file__).with_name(f"test_{peer.replace('-', '_')}.py")
    environment.run(environment.python, "-m", "pytest", "--durations=5", file, *arguments)


def exchange_with(peer: str, arguments: list[str]) -> list[tuple[str, float]]:
    """Make the environment of one peer and run its tests there.

    Parameters
    ----------
    peer
        One of `PEERS`.
    arguments
        More for pytest.

    Returns
    -------
    :
        The steps and how many seconds each took.

    Raises
    ------
    RefusalError
        If a step failed.
    """
    environment = make_environment(f"interoperability-{peer}")
    requirements = f"requirements/interoperability-{peer}.txt"
    steps: dict[str, Callable[[], None]] = {
        "install": lambda: environment.install("-r", requirements),
        "build": lambda: build_package(environment),
        "test": lambda: run_tests(environment, peer, arguments),
    }
    taken = []
    for step, act in steps.items():
        print(f"\n=== {peer}: {step}", flush=True)
        start = time.monotonic()
        act()
        taken.append((step, time.monotonic() - start))
    return taken


def main() -> int:
    """Exchange arrays with the peers that were asked for, and print what took how long.

    Returns
    -------
    :
        0 if all tests of all of them passed, otherwise 1.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", nargs="?", choices=PEERS, help="one of them; both if not given")
    chosen, arguments = parser.parse_known_args()
    summary = []
    failures = 0
    for peer in PEERS if chosen.peer is None else [chosen.peer]:
        try:
            steps = exchange_with(peer, arguments)
            summary.append((peer, ", ".join(f"{step} {taken:.0f} s" for step, taken in steps)))
        except RefusalError as refusal:
            failures += 1
            summary.append((peer, f"FAILED: {refusal}"))
    print()
    for peer, outcome in summary:
        print(f"{peer}: {outcome}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
