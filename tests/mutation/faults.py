# SPDX-License-Identifier: Apache-2.0
"""The faults: every comparison, arithmetic operator, boolean condition and throw, made wrong.

A fault is one edit of one header. All faults of a header are generated from its tokens by the
tables and rules below; none is chosen by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tokens import Source

#: What a comparison becomes. Against `nullptr` only the opposite has a meaning.
COMPARISONS = {
    "<": ("<=", ">", ">=", "==", "!="),
    "<=": ("<", ">", ">=", "==", "!="),
    ">": (">=", "<", "<=", "==", "!="),
    ">=": (">", "<", "<=", "==", "!="),
    "==": ("!=", "<=", ">="),
    "!=": ("==", "<", ">"),
}
ARITHMETIC = {
    "+": ("-", "*"),
    "-": ("+", "*"),
    "*": ("/", "+"),
    "/": ("*", "%"),
    "%": ("/", "*"),
    "<<": ("+", "&"),
    ">>": ("+", "&"),
    "&": ("|", "^"),
    "|": ("&", "^"),
    "^": ("&", "|"),
    "++": ("--",),
    "--": ("++",),
    "+=": ("-=", "="),
    "-=": ("+=", "="),
    "*=": ("+=", "="),
    "/=": ("*=", "="),
    "%=": ("/=", "="),
    "|=": ("&=", "="),
    "&=": ("|=", "="),
}
OVERFLOWS = {
    "__builtin_add_overflow": ("__builtin_sub_overflow", "__builtin_mul_overflow"),
    "__builtin_sub_overflow": ("__builtin_add_overflow", "__builtin_mul_overflow"),
    "__builtin_mul_overflow": ("__builtin_add_overflow", "__builtin_sub_overflow"),
}
UNARY = "-~"

#: Signs that bind weaker than `&&` and `||` do, and so end their operands.
_WEAK = {",", ";", "?", ":", "=", "return", "throw", "+=", "-=", "*=", "/=", "|=", "&="}
_COMPARING = set(COMPARISONS)


@dataclass(frozen=True)
class Fault:
    """One edit of one header."""

    header: str
    kind: str
    start: int
    end: int
    text: str
    change: str
    line: int
    source_line: str
    function: str = ""
    #: Whether the compiler may come to it: outside of a function, or in a constexpr one.
    constant: bool = True
    #: Which of the faults that read the same in the same function this is, from 1.
    occurrence: int = 1

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What identifies the fault in the results of earlier runs."""
        return self.header, self.function, self.source_line, self.change, self.occurrence

    def __str__(self) -> str:
        """Where it is, and what."""
        nth = f" (occurrence {self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.header}:{self.line}: {self.change}{nth} in: {self.source_line}"


class Generator:
    """Generates the faults of one header."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens

    def text(self, place: int) -> str:
        """Return the token at a place; nothing outside of the header."""
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def fault(self, kind: str, start: int, end: int, text: str, change: str) -> Fault:
        """Make a fault that replaces a piece of the text."""
        source = self.source
        # An edit at the end of a line belongs to the line where its operator stands.
        line = source.line_of(start)
        return Fault(source.name, kind, start, end, text, change, line, source.line_text(start))

    def all(self) -> list[Fault]:
        """Every fault, in the order of the text."""
        found: list[Fault] = []
        for place, token in enumerate(self.tokens):
            if token.kind == "sign" and self.source.is_operator(place):
                if self.text(place - 1) != "operator":
                    found += self.of_sign(place)
            elif token.kind == "name":
                found += self.of_name(place)
        return sorted(set(found), key=lambda f: (f.start, f.end, f.text, f.kind))

    def of_sign(self, place: int) -> Iterator[Fault]:
        """Generate the faults of one operator."""
        sign = self.text(place)
        if sign in COMPARISONS:
            yield from self.of_comparison(place)
        elif sign in ("&&", "||") and self.is_value_operator(place):
            yield from self.of_connective(place)
        elif sign == "?":
            first = self.first_of_operand(place, _WEAK)
            yield from self.forced("condition of ?:", first, place - 1)
        elif sign == "!":
            yield from self.removed_sign(place, "boolean")
        elif sign in UNARY and self.is_prefix(place):
            yield from self.removed_sign(place, "arithmetic")
        elif sign in ARITHMETIC and self.is_value_operator(place):
            yield from self.of_arithmetic(place)

    def of_comparison(self, place: int) -> Iterator[Fault]:
        token = self.tokens[place]
        choices = COMPARISONS[token.text]
        if self.text(place + 1) == "nullptr":
            choices = choices[:1]
        for choice in choices:
            change = f"`{token.text}` -> `{choice}`"
            yield self.fault("comparison", token.start, token.end, choice, change)

    def of_connective(self, place: int) -> Iterator[Fault]:
        """`&&` for `||`, the reverse, and each operand dropped once."""
        token = self.tokens[place]
        other = "||" if token.text == "&&" else "&&"
        change = f"`{token.text}` -> `{other}`"
        yield self.fault("boolean", token.start, token.end, other, change)
        weak = _WEAK | ({"||"} if token.text == "&&" else set())
        if self.text(place + 1) == "...":  # a fold has one operand
            return
        last = self.last_of_operand(place, weak | {token.text})
        start, end = token.start, self.tokens[last].end
        dropped = self.source.plain(self.tokens[place + 1].start, end)
        yield self.fault("boolean", start, end, "", f"operand `{dropped}` dropped")
        first = self.first_of_operand(place, weak | {token.text})
        if self.text(first - 1) != token.text:  # else it is the right operand of that one
            start, end = self.tokens[first].start, self.tokens[place + 1].start
            dropped = self.source.plain(start, self.tokens[place - 1].end)
            yield self.fault("boolean", start, end, "", f"operand `{dropped}` dropped")

    def of_arithmetic(self, place: int) -> Iterator[Fault]:
        token = self.tokens[place]
        weak = _WEAK | _COMPARING | {"&&", "||"}
        if token.text == "+" and self.concatenates(place, weak):
            yield from self.of_concatenation(place, weak | {"+"})
            return
        for choice in ARITHMETIC[token.text]:
            change = f"`{token.text}` -> `{choice}`"
            yield self.fault("arithmetic", token.start, token.end, choice, change)

    def concatenates(self, place: int, weak: set[str]) -> bool:
        """Whether a `+` joins strings: a string, or a function that makes one, is among them."""
        first = self.first_of_operand(place, weak)
        last = self.last_of_operand(place, weak)
        inside, texts = first, []
        while inside <= last:
            token = self.tokens[inside]
            texts.append("a string" if token.kind == "string" else token.text)
            inside = self.source.partner[inside] + 1 if self.source.opens(inside) else inside + 1
        return not {"a string", "to_string", "digits", "string", "indexed", "parts"}.isdisjoint(
            texts
        )

    def of_concatenation(self, place: int, ends: set[str]) -> Iterator[Fault]:
        """Each string that is joined, left out: a difference of strings has no meaning."""
        first = self.first_of_operand(place, ends)
        operands = [(place + 1, self.last_of_operand(place, ends))]
        if self.text(first - 1) != "+":
            operands.insert(0, (first, place - 1))
        for start, last in operands:
            span = self.source.span(start, last)
            change = f"string `{self.source.plain(*span)}` left empty"
            yield self.fault("arithmetic", *span, "std::string()", change)

    def removed_sign(self, place: int, kind: str) -> Iterator[Fault]:
        token = self.tokens[place]
        change = f"`{token.text}` before `{self.text(place + 1)}` removed"
        yield self.fault(kind, token.start, token.end, "", change)

    def forced(self, what: str, first: int, last: int) -> Iterator[Fault]:
        """Generate a condition that is always true, and one that is never."""
        start, end = self.source.span(first, last)
        for value in ("true", "false"):
            yield self.fault("boolean", start, end, value, f"{what} -> `{value}`")

    def of_name(self, place: int) -> Iterator[Fault]:
        """Generate the faults of a condition, a call that sees overflow, or a throw."""
        token = self.tokens[place]
        if token.text in ("if", "while"):
            opened = place + 2 if self.text(place + 1) == "constexpr" else place + 1
            yield from self.of_condition(token.text, opened + 1, self.source.partner[opened] - 1)
        elif token.text == "for":
            yield from self.of_loop(place + 1)
        elif token.text in OVERFLOWS:
            for choice in OVERFLOWS[token.text]:
                change = f"`{token.text}` -> `{choice}`"
                yield self.fault("arithmetic", token.start, token.end, choice, change)
            change = f"`{token.text}` negated"
            yield self.fault("boolean", token.start, token.start, "!", change)
        elif token.text == "throw":
            yield from self.of_throw(place)
        elif token.text.startswith("refuse") and self.text(place - 1) in ("{", "}", ";", "::"):
            yield from self.of_refusal(place)

    def of_condition(self, what: str, first: int, last: int) -> Iterator[Fault]:
        """Generate the condition of an `if`, perhaps a declaration, or of a loop."""
        for place in range(first, last):
            if self.text(place) == ";" and self.at_depth(first - 1, place):
                first = place + 1  # what stands before declares
        names = [p for p in range(first, last) if self.text(p) == "=" and p - 1 > first]
        if not names:
            yield from self.forced(f"condition of {what}", first, last)
            return
        name = self.text(names[0] - 1)
        for value in ("true", "false"):
            end = self.tokens[last].end
            change = f"condition of {what} -> `{value}`"
            edit = self.fault("boolean", end, end, f"; {value}", change)
            yield replace(edit, change=f"{change} for `{name}`")

    def of_loop(self, opened: int) -> Iterator[Fault]:
        """Generate the condition of a `for`, or a loop over a range that runs never."""
        ends = [
            p
            for p in range(opened + 1, self.source.partner[opened])
            if self.text(p) == ";" and self.at_depth(opened, p)
        ]
        if len(ends) == 2 and ends[1] > ends[0] + 1:
            yield from self.forced("condition of for", ends[0] + 1, ends[1] - 1)

    def at_depth(self, opened: int, place: int) -> bool:
        """Whether a place stands directly inside of a bracket."""
        inside = opened + 1
        while inside < place:
            inside = self.source.partner[inside] + 1 if self.source.opens(inside) else inside + 1
        return inside == place

    def of_throw(self, place: int) -> Iterator[Fault]:
        """Generate a statement that does not throw, or a value that is returned instead."""
        last = place
        while self.text(last) not in (";", ","):
            last = self.source.partner[last] + 1 if self.source.opens(last) else last + 1
        end = self.tokens[last].end
        if self.text(last) == ",":  # `return throw "...", 0`
            end = self.tokens[last + 1].start
            yield self.fault("throw", self.tokens[place].start, end, "", "`throw` removed")
        else:
            yield self.fault("throw", self.tokens[place].start, end, ";", "`throw` removed")

    def of_refusal(self, place: int) -> Iterator[Fault]:
        """Generate a call of a function that throws, left out."""
        first = place
        while self.text(first - 1) == "::":
            first -= 2
        opened = place + 1
        if self.source.opens(opened) and self.text(opened) == "<":
            opened = self.source.partner[opened] + 1
        if self.text(opened) != "(" or self.text(self.source.partner[opened] + 1) != ";":
            return
        start, end = self.source.span(first, self.source.partner[opened])
        yield self.fault("throw", start, end, "", f"`{self.text(place)}(...)` not called")

    def is_prefix(self, place: int) -> bool:
        """Whether a sign stands before its only operand."""
        before = self.tokens[place - 1]
        if before.kind in ("number", "string") or before.text in (")", "]", "}", ">"):
            return before.text == ">" and not self.source.closes(place - 1)
        return before.kind == "sign" or before.text in ("return", "case")

    def is_value_operator(self, place: int) -> bool:
        """Whether `*` or `&` is an operator between values, not a part of a type or unary."""
        token = self.tokens[place]
        if token.text in ("++", "--"):
            return True
        text = self.source.text
        return text[token.start - 1].isspace() and text[token.end].isspace()

    def first_of_operand(self, place: int, ends: set[str]) -> int:
        """Return the first token of what stands left of an operator, up to one of some signs."""
        first = place
        while first > 0:
            before = first - 1
            if self.source.closes(before):
                first = self.source.partner[before]
                continue
            if self.source.opens(before) or self.text(before) in ends:
                break
            first = before
        return first

    def last_of_operand(self, place: int, ends: set[str]) -> int:
        """Return the last token of what stands right of an operator, up to one of some signs."""
        last = place
        while last + 1 < len(self.tokens):
            after = last + 1
            if self.source.opens(after):
                last = self.source.partner[after]
                continue
            if self.source.closes(after) or self.text(after) in ends:
                break
            last = after
        return last


def faults_of(source: Source) -> list[Fault]:
    """Every fault of a header."""
    return Generator(source).all()
