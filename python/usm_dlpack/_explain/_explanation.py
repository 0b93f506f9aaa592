# SPDX-License-Identifier: Apache-2.0
"""The result of `explain`: the steps of a protocol, with questions and answers."""

import json
import textwrap
from dataclasses import dataclass, field
from typing import Any

from usm_dlpack._errors import ConversionError, command_for_page, error_text, is_our_sentence
from usm_dlpack._terminal import styled

_MARKS = {"passed": ("ok", "green"), "stopped": ("stop", "red"), "not reached": ("..", "faint")}
_WIDTH = 96
_OF_STEP = ("number", "name", "title", "question", "answer", "outcome", "reason", "facts")


@dataclass(frozen=True)
class Step:
    """A step that was taken, or was not reached.

    Attributes
    ----------
    direction
        "import" or "export".
    number, name, title, reason
        Its position from 1, its name for programs, its subject, and why it exists.
    question, answer
        The query and its answer, without addresses.
    outcome
        "passed", "stopped" or "not reached".
    facts
        The answer for programs, addresses included.
    """

    direction: str
    number: int
    name: str
    title: str
    reason: str
    question: str
    answer: str
    outcome: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Walk:
    """One protocol, to its end or to where it stops.

    Attributes
    ----------
    direction
        "import" or "export".
    call
        The function that was called.
    steps
        Its steps in order.
    error
        The function's exception, or None.
    instead
        A call that reads the array in another way; empty if there is none.
    """

    direction: str
    call: str
    steps: tuple[Step, ...]
    error: Exception | None
    instead: str = ""

    @property
    def stop(self) -> Step | None:
        """The step at which it stopped, or None."""
        return next((step for step in self.steps if step.outcome == "stopped"), None)


@dataclass(frozen=True)
class Explanation:
    """Why an array can be exchanged, or where that stops. Its text is for people.

    Attributes
    ----------
    subject
        The object that was explained.
    walks
        The protocols that were walked: export, import, or one of them.
    """

    subject: str
    walks: tuple[Walk, ...]

    __module__ = "usm_dlpack"

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all walks."""
        return tuple(step for walk in self.walks for step in walk.steps)

    @property
    def error(self) -> Exception | None:
        """The exception of the first walk that stopped, or None."""
        return next((walk.error for walk in self.walks if walk.error is not None), None)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, *, colour: bool = False) -> str:
        """Return the text, with the escape sequences of a terminal if `colour`."""
        lines: list[str] = []
        for walk in self.walks:
            lines += [*([""] if lines else []), *_lines_of(self.subject, walk, colour)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as dictionaries, lists, texts and numbers."""
        walks = []
        for walk in self.walks:
            steps = [{name: getattr(step, name) for name in _OF_STEP} for step in walk.steps]
            error = None if walk.error is None else _error_as_dict(walk.error)
            walks.append(vars(walk) | {"steps": steps, "error": error})
        return {"subject": self.subject, "passed": self.error is None, "walks": walks}

    def as_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent)


def _error_as_dict(error: Exception) -> dict[str, Any]:
    """Convert an exception for JSON; errors of other libraries have no parts."""
    parts = ("code", "field", "expected", "found", "remedy")
    described: dict[str, Any] = {"type": type(error).__name__, "text": error_text(error)}
    ours = isinstance(error, ConversionError)
    described |= {part: getattr(error, part) if ours else None for part in parts}
    return described | {"page": _page_of(error)}


def _page_of(error: Exception) -> str | None:
    """Return the command for the page of an exception; None if it is not ours."""
    if isinstance(error, ConversionError):
        return error.page
    return command_for_page("python_arguments") if is_our_sentence(error) else None


def _lines_of(subject: str, walk: Walk, colour: bool) -> list[str]:
    lines = [styled(f"{walk.direction.capitalize()} of {subject}", "bold", colour)]
    lines += [f"  by {walk.call}"]

    def tell(name: str, text: str, style: str | None = None) -> None:
        first = f"           {name:8}  "
        told = textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
        lines.extend(styled(line, style, colour) if style else line for line in told)

    for step in walk.steps:
        mark, style = _MARKS[step.outcome]
        title = f"{step.number:2}. {step.title}"
        if step.outcome == "not reached":
            lines.append(styled(f"  {mark:4} {title}", "faint", colour))
            continue
        lines.append(f"  {styled(f'{mark:4}', style, colour)} {title}")
        tell("asked", step.question)
        tell("answered", step.answer)
        if step.outcome == "stopped" and walk.error is not None:
            kind, sentence = type(walk.error).__name__, error_text(walk.error)
            if isinstance(walk.error, ConversionError):
                kind = walk.error.code
            else:
                sentence = f"{kind}: {sentence}"
            tell("stopped", sentence, "red")
            if (page := _page_of(walk.error)) is not None:
                tell("code", f"{kind}; {page}")
            tell("why", step.reason)
            tell("instead", walk.instead)
    return lines
