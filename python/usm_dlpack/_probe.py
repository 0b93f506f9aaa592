# SPDX-License-Identifier: Apache-2.0
"""Imports in a process of their own, because they may end it, and what each has loaded.

The file runs itself as a program, without the package, which may be what cannot be imported.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SECONDS = 120
_LIBRARIES = re.compile(r"/[^\n]*/lib(?:sycl|OpenCL|intelocl|ze_loader)\.so[.\d]*$", re.MULTILINE)


@dataclass
class Probe:
    """What came of importing some modules in a new process.

    Attributes
    ----------
    failure
        The last line that the process said, or how it ended; None if all were imported.
    libraries
        The paths of the runtime's libraries in that process.
    """

    failure: str | None = None
    libraries: list[str] = field(default_factory=list)


def last_line(text: str) -> str | None:
    """Return the last line of a text that is not blank."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else None


def import_in_child(modules: Sequence[str]) -> Probe:
    """Import modules in a new process, one after the other."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, *modules],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Probe(str(error))
    if done.returncode < 0:
        return Probe(f"the process was ended by signal {-done.returncode}")
    if done.returncode != 0:
        return Probe(last_line(done.stderr) or f"exit status {done.returncode}")
    try:
        return Probe(None, json.loads(last_line(done.stdout) or ""))
    except ValueError:
        return Probe("the process said something else than was asked")


def _loaded() -> list[str]:
    maps = Path("/proc/self/maps").read_text(errors="replace")
    return sorted(set(_LIBRARIES.findall(maps)))


def _main(modules: Sequence[str]) -> None:
    import importlib

    sys.path.pop(0)  # this file's folder: the package's inside
    try:
        for name in modules:
            importlib.import_module(name)
    except Exception as error:
        cause = error.__cause__ or error  # ours is raised from the loader's
        print(f"{type(cause).__name__}: {cause}", file=sys.stderr)
        raise SystemExit(1) from error
    print("\n" + json.dumps(_loaded()))


if __name__ == "__main__":
    _main(sys.argv[1:])
