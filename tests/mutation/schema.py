# SPDX-License-Identifier: Apache-2.0
"""Headers in which every fault that acts at run time is compiled in, and switched on by number.

A *unit* is a piece of a function that can be written in several versions, of which a switch takes
one: a statement (``if (on(7)) { wrong } else { right }``), or an expression (``on(7) ? (wrong) :
(right)``). A fault belongs to the smallest unit around it. What has no unit (template arguments,
`if constexpr`, constexpr variables, static_asserts) is tried by a compilation of its own.

In constant evaluation the switch is off, so what the headers compute at compile time stays right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from faults import Fault
from tokens import Source, on_one_line

_ON = "::usm_dlpack_mutation::on"
_TYPELIKE = re.compile(r"[A-Za-z_]\w*$|^[*&>\]]$|^&&$")
_NOT_TYPES = {"throw", "delete", "new", "operator", "goto", "else", "do", "case"}
_COMPILE_TIME = {"using", "static_assert", "typedef", "constexpr", "__extension__", "extern"}
_NO_FUNCTIONS = {"decltype", "noexcept", "alignas", "alignof", "sizeof", "__attribute__"}


@dataclass
class Unit:
    """A piece of the text that can be written in several versions."""

    kind: str  # "statement", "condition" or "value"
    start: int
    end: int
    faults: list[tuple[int, Fault]] = field(default_factory=list)


@dataclass(frozen=True)
class Function:
    """The piece of the text that a function's definition takes."""

    name: str
    start: int
    end: int
    constant: bool  # whether the compiler may call it, too


class Structure:
    """The functions of a header and the units in them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.units: list[Unit] = []
        self.functions: list[Function] = []
        self._scope(0, len(source.tokens), in_class=False)

    def _text(self, place: int) -> str:
        return self.source.tokens[place].text

    def _unit(self, kind: str, first: int, last: int) -> None:
        if first <= last:
            self.units.append(Unit(kind, *self.source.span(first, last)))

    def _next(self, place: int) -> int:
        """Return the place behind a token, or behind the bracket that it opens."""
        return self.source.partner[place] + 1 if self.source.opens(place) else place + 1

    def _find(self, place: int, end: int, *texts: str) -> int:
        """Return the first token of some texts that stands in no bracket."""
        while place < end and self._text(place) not in texts:
            place = self._next(place)
        return place

    # Declarations

    def _scope(self, place: int, end: int, *, in_class: bool) -> None:
        while place < end:
            text = self._text(place)
            if text == "template":
                place = self._next(place + 1)
            elif text in (";", ":", "friend", "public", "private") or self.source.opens(place):
                place = self._next(place)
            elif text in ("namespace", "class", "struct"):
                place = self._nested(place, end, in_class=text != "namespace")
            elif text in ("enum", *_COMPILE_TIME - {"constexpr"}):
                place = self._find(place, end, ";") + 1
            else:
                place = self._declaration(place, end, in_class=in_class)

    def _nested(self, place: int, end: int, *, in_class: bool) -> int:
        opened = self._find(place, end, "{", ";")
        if opened < end and self._text(opened) == "{":
            self._scope(opened + 1, self.source.partner[opened], in_class=in_class)
        return self._next(opened)

    def _declaration(self, first: int, end: int, *, in_class: bool) -> int:
        place, name, initialisers = first, "", 0
        while place < end:
            text = self._text(place)
            if text == ";":
                return place + 1
            if text == "=" and not name:
                stop = self._find(place, end, ";")
                words = {self._text(p) for p in range(first, place)}
                if in_class and words.isdisjoint({"static", "constexpr"}):
                    self._unit("value", place + 1, stop - 1)
                return stop + 1
            if text == "{":
                if name:
                    self._function(name, first, initialisers, place)
                    return self.source.partner[place] + 1
                return self._find(place, end, ";") + 1
            if text == "(" and not name and self._names_function(place):
                name = self._function_name(place)
            elif text == ":" and name:
                initialisers = place
            place = self._next(place)
        return place

    def _names_function(self, opened: int) -> bool:
        before = self._text(opened - 1)
        return not before.isupper() and before not in _NO_FUNCTIONS

    def _function_name(self, opened: int) -> str:
        for back in (1, 2, 3):
            if self._text(opened - back) == "operator":
                signs = "".join(self._text(p) for p in range(opened - back, opened))
                return signs if back > 1 else "operator()"
        return self._text(opened - 1)

    def _function(self, name: str, first: int, initialisers: int, opened: int) -> None:
        closed = self.source.partner[opened]
        constant = "constexpr" in {self._text(p) for p in range(first, opened)}
        self.functions.append(Function(name, *self.source.span(first, closed), constant))
        if initialisers:
            for place in range(initialisers, opened):
                closed_here = self.source.partner.get(place, 0)
                lone = self._find(place + 1, closed_here, ",") == closed_here
                if self._text(place) == "(" and lone:
                    self._unit("value", place + 1, closed_here - 1)
        self._block(opened)

    # Statements

    def _block(self, opened: int) -> None:
        place, closed = opened + 1, self.source.partner[opened]
        while place < closed:
            place = self._statement(place, closed)

    def _statement(self, place: int, end: int) -> int:
        """Find the units of one statement, and return the place behind it."""
        text = self._text(place)
        if text == "{":
            self._block(place)
            return self._next(place)
        if text in ("case", "default"):
            return self._find(place, end, ":") + 1
        if text in ("if", "while", "for", "switch"):
            return self._compound(place, end)
        if text == "try":
            return self._tried(place, end)
        stop = self._find(place, end, ";")
        if text in ("return", "throw"):
            self._unit("statement", place, stop)
        elif text not in _COMPILE_TIME:
            self._simple(place, stop)
        return stop + 1

    def _simple(self, first: int, stop: int) -> None:
        """Take an expression, or the declaration of a variable with a value."""
        equals = self._find(first, stop, "=")
        if not self._declares(first, min(equals, stop)):
            self._unit("statement", first, stop)
        elif equals < stop and self._text(equals + 1) != "{":
            words = {self._text(p) for p in range(first, equals)}
            if "constexpr" not in words:
                self._unit("value", equals + 1, stop - 1)

    def _declares(self, first: int, stop: int) -> bool:
        """Whether a statement begins with a type and a name."""
        place, before = first, ""
        while place < stop and self._text(place) not in ("(", "{"):
            text = self._text(place)
            known = _TYPELIKE.search(before) is not None and before not in _NOT_TYPES
            if known and self.source.tokens[place].kind == "name":
                return True
            before = text
            if self.source.opens(place):
                before = self._text(self.source.partner[place])
            place = self._next(place)
        return False

    def _compound(self, place: int, end: int) -> int:
        """`if`, `while`, `for` and `switch`, with what they govern."""
        what = self._text(place)
        constant = self._text(place + 1) == "constexpr"
        opened = place + 2 if constant else place + 1
        closed = self.source.partner[opened]
        whole = self._head(what, opened, closed) and not constant
        after = self._statement(closed + 1, end)
        while what == "if" and after < end and self._text(after) == "else":
            after = self._statement(after + 1, end)
        if whole:
            self._unit("statement", place, after - 1)
        return after

    def _head(self, what: str, opened: int, closed: int) -> bool:
        """Find the units in the brackets; say whether the whole statement is one instead."""
        if self._text(opened - 1) == "constexpr":
            return False
        if what == "for":
            first = self._find(opened + 1, closed, ";")
            if first == closed:
                return True
            second = self._find(first + 1, closed, ";")
            if self._declares(opened + 1, first):
                self._simple(opened + 1, first)
            self._unit("condition", first + 1, second - 1)
            self._unit("value", second + 1, closed - 1)
            return False
        if what == "switch" or self._find(opened + 1, closed, "=") < closed:
            return True
        self._unit("condition", opened + 1, closed - 1)
        return False

    def _tried(self, place: int, end: int) -> int:
        after = self._statement(place + 1, end)
        while after < end and self._text(after) == "catch":
            after = self._statement(self._next(after + 1), end)
        return after


def with_functions(structure: Structure, faults: list[Fault]) -> list[Fault]:
    """Tell each fault the function that it is in, and count those that read the same."""
    seen: dict[tuple[str, str, str, str, int], int] = {}
    told = []
    for fault in faults:
        around = [f for f in structure.functions if f.start <= fault.start and fault.end <= f.end]
        placed = fault
        if around:
            inner = min(around, key=lambda f: f.end - f.start)
            placed = replace(fault, function=inner.name, constant=inner.constant)
        seen[placed.key] = seen.get(placed.key, 0) + 1
        told.append(replace(placed, occurrence=seen[placed.key]))
    return told


def apply(text: str, fault: Fault, start: int = 0, end: int | None = None) -> str:
    """Return a piece of a header, with the fault in it."""
    stop = len(text) if end is None else end
    return text[start : fault.start] + fault.text + text[fault.end : stop]


class Schema:
    """One header with its faults compiled in."""

    def __init__(self, source: Source, structure: Structure, faults: dict[int, Fault]) -> None:
        self.source = source
        units = (Unit(u.kind, u.start, u.end) for u in structure.units)
        self.units = sorted(units, key=lambda u: (u.start, -u.end))
        self.switched: set[int] = set()
        for number, fault in faults.items():
            around = [u for u in self.units if u.start <= fault.start and fault.end <= u.end]
            if around:
                min(around, key=lambda u: u.end - u.start).faults.append((number, fault))
                self.switched.add(number)

    def text(self) -> str:
        """Return the header to compile."""
        body = self._piece(0, len(self.source.text), None)
        # So that a refusal which is left out returns.
        body = body.replace("[[noreturn, ", "[[")
        switch = "#pragma once\n#include <usm_dlpack_mutation/switch.hpp>\n"
        return body.replace("#pragma once\n", switch, 1)

    def _piece(self, start: int, end: int, outer: Unit | None) -> str:
        """Return a piece of the text, with the units that stand in it in all their versions."""
        written, place = [], start
        for unit in self.units:
            if unit is outer or unit.start < place or unit.end > end or not self._has_faults(unit):
                continue
            written.append(self.source.text[place : unit.start])
            written.append(self._versions(unit))
            place = unit.end
        return "".join([*written, self.source.text[place:end]])

    def _has_faults(self, unit: Unit) -> bool:
        """Whether a unit, or one inside of it, has faults."""
        inside = (u for u in self.units if unit.start <= u.start and u.end <= unit.end)
        return any(u.faults for u in inside)

    def _versions(self, unit: Unit) -> str:
        right = self._piece(unit.start, unit.end, unit)
        if not unit.faults:
            return right
        wrong = []
        for number, fault in unit.faults:
            text = on_one_line(apply(self.source.text, fault, unit.start, unit.end))
            wrong.append((number, text))
        if unit.kind == "statement":
            cases = [f"if ({_ON}({number})) {{ {text} }}\nelse " for number, text in wrong]
            return "\n" + "".join(cases) + "{ " + right + "\n}"
        cast = "static_cast<bool>" if unit.kind == "condition" else ""
        cases = [f"{_ON}({number}) ? {cast}({text}) :\n" for number, text in wrong]
        return "(\n" + "".join(cases) + f"{cast}({right}))"
