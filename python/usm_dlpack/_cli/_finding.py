# SPDX-License-Identifier: Apache-2.0
"""The doctor's findings: a sentence, a level, and the command that fixes it."""

from __future__ import annotations

from dataclasses import dataclass

PIP = "python -m pip install"
REINSTALL = f"{PIP} --force-reinstall --no-deps"


@dataclass(frozen=True)
class Finding:
    """The result of one check; `level` is "ok", "warning" or "problem"."""

    name: str
    level: str
    sentence: str
    command: str | None = None


def fine(name: str, sentence: str) -> Finding:
    return Finding(name, "ok", sentence)


def refused(
    name: str, expected: str, found: str, command: str, *, level: str = "problem", field: str = ""
) -> Finding:
    """Return a finding in the form of our errors."""
    sentence = f"{field or name}: expected {expected}, found {found}; run `{command}`"
    return Finding(name, level, sentence, command)


def first_command(findings: list[Finding]) -> str | None:
    """Return the command for the first problem, which may cause the later ones."""
    commands = (finding.command for finding in findings if finding.level == "problem")
    return next(commands, None)
