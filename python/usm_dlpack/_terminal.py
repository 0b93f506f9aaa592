# SPDX-License-Identifier: Apache-2.0
"""Colours and a progress line for terminals.

Does not import the package, so that the doctor works even if the import fails.
"""

import os
import sys
from contextlib import AbstractContextManager
from typing import TextIO

_CODES = {"bold": "1", "faint": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; None is one closed before Python began."""
    return stream is not None and stream.isatty()


def say_error(sentence: object) -> None:
    """Write a line to standard error, unless it is closed: `print` would use standard output."""
    if sys.stderr is not None:
        print(sentence, file=sys.stderr)


def wants_colour(stream: TextIO | None, choice: str = "auto") -> bool:
    """Return whether to colour text for a stream.

    ``auto`` follows NO_COLOR, then FORCE_COLOR (https://no-color.org, https://force-color.org), and
    otherwise colours text for terminals that support it.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and is_terminal(stream)


def styled(text: str, style: str, colour: bool) -> str:
    """Return a text in a style, or unchanged without `colour`."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour and text else text


class Progress(AbstractContextManager["Progress"]):
    """A progress line on standard error, erased at the end.

    Shown only if standard error is a terminal that can erase lines.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._shown = is_terminal(self._stream) and os.environ.get("TERM") != "dumb"

    def __exit__(self, *raised: object) -> None:
        self.show("")

    def show(self, text: str) -> None:
        """Replace the line by a new text; an empty one erases it."""
        if self._shown:
            line = f"{text[: _columns(self._stream) - 3]} …" if text else ""
            self._stream.write(f"\r\x1b[2K{line}")
            self._stream.flush()


def _columns(stream: TextIO) -> int:
    """Return the width of a terminal; shutil would ask that of standard output."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
