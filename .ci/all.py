# SPDX-License-Identifier: Apache-2.0
"""Run every test that needs no GPU, one stage after the other, and print a table of the stages.

These are the stages of ``.ci/run``, with ``test --all``, and those that take too long for every
change. A stage that fails does not stop the others. What a stage has built is removed when it has
passed, as ``.ci/run`` does, because all together take tens of gigabytes.

``python3 dev.py all`` runs this program.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Stage(NamedTuple):
    """A command of dev.py, and patterns of the folders that no later stage takes."""

    command: str
    discarded: tuple[str, ...] = ()


class Result(NamedTuple):
    """How a stage ended."""

    command: str
    seconds: float
    passed: bool


STAGES = (
    Stage("lint"),
    Stage("demo"),
    Stage("test --all", ("build/dev",)),
    Stage("gpu", ("build/drivers", ".dev/drivers/venv")),
    Stage("docs", ("build/docs",)),
    Stage("interoperability", (".dev/interoperability-*",)),
    Stage("pythons", ("build/pythons",)),
    Stage("threads", ("build/threads",)),
    Stage("compilers"),
    # The same inputs each time: a new finding belongs to the person who looks for one.
    Stage("fuzz --seconds 30 --seed 1"),
    # All 1,600 faults take a day.
    Stage("mutation --every 80", ("build/mutation",)),
    Stage("valgrind", ("build/valgrind",)),
)


def run_stage(stage: Stage) -> Result:
    """Run a command of dev.py; discard what it has built if it passed."""
    print(f"\n##### dev.py {stage.command}", flush=True)
    start = time.monotonic()
    command = [sys.executable, "dev.py", *stage.command.split()]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
    seconds = time.monotonic() - start
    if done.returncode == 0:
        for pattern in stage.discarded:
            for folder in ROOT.glob(pattern):
                shutil.rmtree(folder)
    return Result(stage.command, seconds, done.returncode == 0)


def print_table(results: list[Result]) -> None:
    """Print each stage with its seconds and result, and what could not be tested here."""
    print(f"\n{'stage':30} {'seconds':>7}  result")
    for command, seconds, passed in results:
        print(f"{command:30} {seconds:7.0f}  {'passed' if passed else 'FAILED'}")
    for reason in sorted(ROOT.glob(".dev/*/not-run")):
        print(f"not run: {reason.read_text(encoding='utf-8')}")


def main() -> int:
    """Run all stages; return 0 if each has passed, otherwise 1."""
    argparse.ArgumentParser(
        prog="dev.py all", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    results = [run_stage(stage) for stage in STAGES]
    print_table(results)
    return 0 if all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
