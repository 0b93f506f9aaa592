# SPDX-License-Identifier: Apache-2.0
"""What a terminal gets and a pipe does not: colours, and a line that says what is going on.

Imports nothing of the package, so that the doctor can use it where the package cannot be imported.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import TextIO

CHOICES = ("auto", "always", "never")
_CODES = {"bold": "1", "faint": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; one that was closed before Python began is None."""
    return stream is not None and stream.isatty()


def say_error(sentence: object) -> None:
    """Write a line to standard error, and nowhere if that is closed; print would take output."""
    if sys.stderr is not None:
        print(sentence, file=sys.stderr)


def wants_colour(stream: TextIO | None, choice: str = "auto") -> bool:
    """Return whether text for a stream is to be coloured.

    ``auto`` heeds NO_COLOR and FORCE_COLOR (https://no-color.org, https://force-color.org), of
    which the first is stronger, and otherwise asks whether the stream is a terminal that can.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and is_terminal(stream)


def styled(text: str, style: str, colour: bool) -> str:
    """Return a text in one of the styles, or as it is."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour and text else text


def shorten(text: str, width: int) -> str:
    """Return a text that is at most so many characters wide."""
    return text if len(text) <= width else text[: width - 1] + "…"


class Progress:
    """One line on standard error that says what is going on, and is gone when it is done.

    Shown only if standard error is a terminal that can erase a line.
    """

    def __init__(self, total: int = 0) -> None:
        self._stream = sys.stderr
        self._shown = is_terminal(self._stream) and os.environ.get("TERM") != "dumb"
        self._total = total
        self._done = 0

    def __enter__(self) -> Progress:  # noqa: PYI034 (Self is of Python 3.11)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Say what begins now, in the place of what was said before."""
        self._done += 1
        if self._shown:
            count = f"[{self._done}/{self._total}] " if self._total else ""
            self._stream.write(f"\r\x1b[2K{shorten(count + text + ' …', _columns() - 1)}")
            self._stream.flush()

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
