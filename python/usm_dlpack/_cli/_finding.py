# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds: a sentence, how bad it is, and the command that fixes it."""

from __future__ import annotations

from dataclasses import dataclass

PIP = "python -m pip install"


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Attributes
    ----------
    name
        What was checked.
    level
        "ok", "warning" or "problem".
    sentence
        What was found.
    command
        What fixes it; None if nothing is to be done.
    """

    name: str
    level: str
    sentence: str
    command: str | None = None


def fine(name: str, sentence: str) -> Finding:
    """Return a finding that is as it should be."""
    return Finding(name, "ok", sentence)


def refused(
    name: str, expected: str, found: str, command: str, *, level: str = "problem", field: str = ""
) -> Finding:
    """Return a finding in the shape of our errors."""
    sentence = f"{field or name}: expected {expected}, found {found}; run `{command}`"
    return Finding(name, level, sentence, command)


def first_command(findings: list[Finding]) -> str | None:
    """Return what fixes the first problem, which may be the cause of those after it."""
    commands = (finding.command for finding in findings if finding.level == "problem")
    return next(commands, None)
