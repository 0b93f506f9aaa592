# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds: a sentence, how bad it is, and the command that mends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PIP = "python -m pip install"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    name
        What was looked at.
    level
        "ok", "warning" or "problem".
    sentence
        What was found.
    command
        What mends it; None if nothing is to be done.
    """

    name: str
    level: str
    sentence: str
    command: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "name": self.name,
            "level": self.level,
            "sentence": self.sentence,
            "command": self.command,
        }


def fine(name: str, sentence: str) -> Finding:
    """Return a finding that is as it should be."""
    return Finding(name, "ok", sentence)


def refused(
    name: str, expected: str, found: str, command: str, *, level: str = "problem", field: str = ""
) -> Finding:
    """Return a finding in the shape that every refusal here has."""
    sentence = f"{field or name}: expected {expected}, found {found}; run `{command}`"
    return Finding(name, level, sentence, command)
