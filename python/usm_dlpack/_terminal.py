# SPDX-License-Identifier: Apache-2.0
"""Colours for terminals.

Does not import the package, so that the doctor works even if the import fails.
"""

import os
import sys
from typing import TextIO

_CODES = {"bold": "1", "faint": "2", "red": "31", "green": "32", "yellow": "33"}


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
    return os.environ.get("TERM") != "dumb" and stream is not None and stream.isatty()


def styled(text: str, style: str, colour: bool) -> str:
    """Return a text in a style, or unchanged without `colour`."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour and text else text
