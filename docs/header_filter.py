# SPDX-License-Identifier: Apache-2.0
"""What Doxygen reads instead of a header: the public interface alone, at the same line numbers.

Namespaces `detail` become empty lines, and template parameters without a name go, which are there
to refuse and of which a user passes none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

DETAIL = re.compile(
    r"^namespace ((?:\w+::)?detail) \{$.*?^\}  // namespace \1$", re.MULTILINE | re.DOTALL
)
# What is inherited or befriended from there.
BASE = re.compile(r"(?<=[\w>])\s*: (?:public |private )?detail::(?:[^{;]|\n)*?(?= \{)")
FRIEND = re.compile(r"^ *friend [^;{]*detail::[^;{]*;", re.MULTILINE)
TEMPLATE = re.compile(r"\btemplate\s*<")
UNNAMED = re.compile(r"\s*(?:int|bool|typename|class)\s*=|\s*std::enable_if_t<")


def only_newlines(text: str) -> str:
    """Return the line breaks of a text."""
    return "\n" * text.count("\n")


def split_parameters(text: str, start: int) -> tuple[list[str], int]:
    """Split a template parameter list that opens before `start`; return the end of it too."""
    parameters: list[str] = []
    depth, begin = 0, start
    for place in range(start, len(text)):
        letter = text[place]
        if letter in "<([{":
            depth += 1
        elif letter == ">" and depth == 0:
            return [*parameters, text[begin:place]], place
        elif letter in ">)]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parameters.append(text[begin:place])
            begin = place + 1
    raise ValueError(f"template: expected a closing bracket, found the end of {text[start:]!r}")


def public_interface(text: str) -> str:
    """Return a header without what its users do not call."""
    for hidden in (DETAIL, BASE, FRIEND):
        text = hidden.sub(lambda found: only_newlines(found[0]), text)
    out, place = [], 0
    for found in TEMPLATE.finditer(text):
        if found.start() < place:
            continue
        parameters, end = split_parameters(text, found.end())
        kept = [p for p in parameters if not UNNAMED.match(p)]
        dropped = "".join(only_newlines(p) for p in parameters if UNNAMED.match(p))
        out += [text[place : found.end()], ",".join(kept), ">", dropped]
        place = end + 1
    return "".join([*out, text[place:]])


if __name__ == "__main__":
    sys.stdout.write(public_interface(Path(sys.argv[1]).read_text()))
