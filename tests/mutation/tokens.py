# SPDX-License-Identifier: Apache-2.0
"""The tokens of a header, with their brackets matched.

Whether ``<`` opens template arguments or compares is told by the layout, which clang-format keeps
and `python3 dev.py lint` checks: an operator has white space on both sides, a bracket has not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>\d[\w.]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign><<=|>>=|(?<=\s)>>(?=\s)|\.\.\.|->|::|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_CLOSERS = {"(": ")", "[": "]", "{": "}", "<": ">"}


def on_one_line(text: str) -> str:
    """Return the text of some tokens, without line breaks and comments."""
    return " ".join(re.sub(r"//[^\n]*", "", text).split())


@dataclass(frozen=True)
class Token:
    """A token of C++ and where it stands in the text."""

    text: str
    kind: str
    start: int
    end: int


@dataclass
class Source:
    """A header, cut into tokens; comments and preprocessor lines are left out."""

    name: str
    text: str
    tokens: list[Token] = field(default_factory=list)
    #: For the place of a bracket, that of its partner.
    partner: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Source:
        """Cut a file into tokens and match its brackets."""
        source = cls(path.name, path.read_text())
        for found in _TOKEN.finditer(source.text):
            kind = found.lastgroup or "skip"
            if kind != "skip":
                source.tokens.append(Token(found.group(), kind, found.start(), found.end()))
        source._match()
        return source

    def _spaced(self, place: int) -> bool:
        """Whether white space stands on both sides of a token."""
        token = self.tokens[place]
        return self.text[token.start - 1].isspace() and self.text[token.end].isspace()

    def _match(self) -> None:
        opened: list[int] = []
        for place, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            angle = token.text in "<>" and not self._spaced(place)
            after_template = token.text == "<" and self.tokens[place - 1].text == "template"
            if token.text in "([{" or (token.text == "<" and (angle or after_template)):
                opened.append(place)
            elif token.text in ")]}" or (token.text == ">" and angle):
                first = opened.pop() if opened else place
                if _CLOSERS.get(self.tokens[first].text) != token.text:
                    raise ValueError(
                        f"{self.name}:{self.line_of(token.start)}: expected brackets in pairs, "
                        f"found `{token.text}` alone; run clang-format, which tells them apart"
                    )
                self.partner[first] = place
                self.partner[place] = first

    def is_bracket(self, place: int) -> bool:
        """Whether a token opens or closes something."""
        return place in self.partner

    def is_operator(self, place: int) -> bool:
        """Whether a token is a sign between (or before) operands, not a bracket."""
        return self.tokens[place].kind == "sign" and place not in self.partner

    def opens(self, place: int) -> bool:
        """Whether a token opens a bracket."""
        return self.partner.get(place, -1) > place

    def closes(self, place: int) -> bool:
        """Whether a token closes a bracket."""
        return place in self.partner and self.partner[place] < place

    def line_of(self, position: int) -> int:
        """Return the number of the line of a position in the text, from 1."""
        return self.text.count("\n", 0, position) + 1

    def line_text(self, position: int) -> str:
        """Return the line of a position, without its indentation and its comment."""
        start = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", position)
        return re.sub(r"\s+//.*$", "", self.text[start:end]).strip()

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the positions that the tokens from one place to another, both included, take."""
        return self.tokens[first].start, self.tokens[last].end

    def plain(self, start: int, end: int) -> str:
        """Return a piece of the text on one line, without comments."""
        return on_one_line(self.text[start:end])
