# SPDX-License-Identifier: Apache-2.0
"""Prints what each function of a file of docs/examples/invalid_uses raises, as JSON."""

import importlib
import json
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
from recorded_uses import FOLDER, uses_in


def say(source: str) -> None:
    """Run the functions of a file, which stands in a process of its own."""
    sys.path.insert(0, str(FOLDER))  # of on_device.py
    module = importlib.import_module(Path(source).stem)
    said = []
    for name, _ in uses_in(source):
        try:
            getattr(module, name)()
        except Exception as error:
            lines = traceback.extract_tb(error.__traceback__)
            assert any(line.name == name for line in lines)
            said.append((name, getattr(error, "code", type(error).__name__), str(error)))
        else:
            said.append((name, "", "nothing was raised"))
    print(json.dumps(said))


if __name__ == "__main__":
    say(sys.argv[1])
