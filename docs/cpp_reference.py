# SPDX-License-Identifier: Apache-2.0
"""The C++ reference: ``.. header:: sycl/devices.hpp``, written from what Doxygen read.

It shows what a header is for and its public names, in the order in which they stand there.
Overloads of which only the first is described share one entry. Breathe, the usual pair, has one
entry for each and shows the private parts that a default argument names.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.statemachine import StringList
from error_table import read_table
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

INCLUDE = Path(__file__).resolve().parents[1] / "include" / "usm_dlpack"
NAMESPACE = "usm_dlpack"

# A longer value is an implementation, not something to read.
MOST_OF_A_VALUE = 30
SPECIAL = re.compile(r"([\\*_|`<>])")


@dataclass
class Entity:
    """A public name: its declarations, what is said of it, and its members."""

    kind: str
    name: str
    header: str
    line: int
    declarations: list[str]
    said: list[str]
    members: list[Entity] = field(default_factory=list)
    specialised_for: list[str] = field(default_factory=list)


def plain_text(element: ET.Element | None) -> str:
    """Return the text of an element and all within it, with single spaces."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


def tidy(code: str) -> str:
    """Return code as clang-format spaces it, where Doxygen adds or takes spaces."""
    code = re.sub(r"\s+", " ", code).replace("< ", "<").replace(" >", ">")
    code = re.sub(r"(\w) ([&*]+) ?(?=\w)", r"\1\2 ", code)
    code = re.sub(r"(\w|>) ([&*]+)(?=[,)>]|$)", r"\1\2", code)
    code = re.sub(r"\bconst (&+)", r"const\1", code)
    return re.sub(r" ?= ?(delete|default)\b", r" = \1", code).strip()


def inline(element: ET.Element) -> str:
    """Return the text of a paragraph as reStructuredText, up to a block within it."""
    out = [SPECIAL.sub(r"\\\1", element.text or "")]
    for child in element:
        if child.tag == "computeroutput":
            text = plain_text(child)
            out.append(f"\\ ``{text}``\\ " if text else "")
        elif child.tag in ("bold", "emphasis"):
            mark = "**" if child.tag == "bold" else "*"
            out.append(f"\\ {mark}{plain_text(child)}{mark}\\ ")
        elif child.tag not in ("simplesect", "parameterlist", "itemizedlist", "orderedlist"):
            out.append(inline(child))
        out.append(SPECIAL.sub(r"\\\1", child.tail or ""))
    return " ".join("".join(out).split())


def indented(lines: list[str], by: str = "   ") -> list[str]:
    """Return lines further to the right."""
    return [by + line if line else "" for line in lines]


def blocks(paragraph: ET.Element) -> Iterator[list[str]]:
    """Return what stands in a paragraph besides its text: lists, parameters, notes."""
    for child in paragraph:
        if child.tag in ("itemizedlist", "orderedlist"):
            mark = "- " if child.tag == "itemizedlist" else "#. "
            for item in child.iter("listitem"):
                text = " ".join(inline(p) for p in item.iter("para"))
                yield [mark + text]
        elif child.tag == "parameterlist":
            word = {"exception": "throws", "templateparam": "tparam"}.get(
                child.get("kind", ""), "param"
            )
            for item in child.iter("parameteritem"):
                name = plain_text(item.find("parameternamelist"))
                text = " ".join(inline(p) for p in item.iterfind("parameterdescription/para"))
                yield [f":{word} {name}: {text}"]
        elif child.tag == "simplesect":
            text = " ".join(inline(p) for p in child.iter("para"))
            kind = child.get("kind", "")
            if kind == "return":
                yield [f":returns: {text}"]
            elif kind == "note":
                yield [".. note::", "", *indented([text])]
            else:
                title = {"pre": "Precondition", "post": "Postcondition", "see": "See"}
                yield [f"**{title.get(kind, kind.capitalize())}:** {text}"]


def description(entity: ET.Element) -> list[str]:
    """Return what a comment says, as reStructuredText; fields last, as Sphinx wants them."""
    paragraphs: list[list[str]] = []
    fields: list[list[str]] = []
    for part in ("briefdescription", "detaileddescription"):
        for paragraph in entity.iterfind(f"{part}/para"):
            if text := inline(paragraph):
                paragraphs.append([text])
            for block in blocks(paragraph):
                (fields if block[0].startswith(":") else paragraphs).append(block)
    lines = [line for block in paragraphs for line in [*block, ""]]
    return [*lines, *(line for block in fields for line in block), *([""] if fields else [])]


def template_of(entity: ET.Element) -> str:
    """Return ``template <...>`` of a declaration, or nothing."""
    parameters = entity.find("templateparamlist")
    if parameters is None:
        return ""
    texts = []
    for parameter in parameters.iterfind("param"):
        text = f"{plain_text(parameter.find('type'))} {plain_text(parameter.find('declname'))}"
        default = plain_text(parameter.find("defval"))
        hidden = not default or "detail::" in default
        texts.append(tidy(text) + ("" if hidden else f" = {tidy(default)}"))
    return f"template<{', '.join(texts)}> "


def declaration(member: ET.Element, name: str) -> str:
    """Return the declaration of a function, variable, alias or macro as Sphinx reads it."""
    kind = member.get("kind")
    type_text = plain_text(member.find("type"))
    if kind == "typedef":
        alias = "" if "detail::" in type_text else f" = {tidy(type_text)}"
        return f"{template_of(member)}{name}{alias}"
    words = [
        word
        for word, wanted in (
            ("static", member.get("static") == "yes"),
            ("explicit", member.get("explicit") == "yes" and "explicit" not in type_text),
        )
        if wanted
    ]
    arguments = member.findtext("argsstring") or ""
    if kind == "variable":
        value = plain_text(member.find("initializer"))
        arguments = "" if "detail::" in value or len(value) > MOST_OF_A_VALUE else f" {value}"
    code = tidy(f"{' '.join(words)} {type_text} {name}{arguments}")
    return template_of(member) + code.replace("inline ", "")


def enumerators(member: ET.Element) -> list[Entity]:
    """Return the values of an enum; what an error code means stands in the table of codes."""
    is_errc = member.findtext("name") == "errc"
    meanings = {row.code: row.meaning for row in read_table()} if is_errc else {}
    return [
        Entity(
            "enumerator", name, "", 0, [f"{name} {value.findtext('initializer') or ''}".strip()],
            [meanings[name].replace("`", "``"), ""] if is_errc else description(value),
        )
        for value in member.iterfind("enumvalue")
        if (name := value.findtext("name") or "")
    ]  # fmt: skip


def place_of(entity: ET.Element) -> tuple[str, int]:
    """Return the header and the line of an entity."""
    location = entity.find("location")
    if location is None:
        return "", 0
    file = location.get("file", "").rpartition("usm_dlpack/")[2]
    return file, int(location.get("line", 0))


def entity_of(member: ET.Element, qualified: bool) -> Entity:
    """Return a member of a namespace or of a class."""
    name = member.findtext("name") or ""
    shown = (member.findtext("qualifiedname") or name) if qualified else name
    kind = {"typedef": "type", "variable": "var"}.get(
        member.get("kind", ""), member.get("kind", "")
    )
    found = Entity(
        kind, shown, *place_of(member), [declaration(member, shown)], description(member)
    )
    if kind == "enum":
        found.kind = "enum-class" if member.get("strong") == "yes" else "enum"
        found.declarations = [shown]
        found.members = enumerators(member)
    elif kind == "var" and not qualified:
        found.kind = "member"
    return found


def joined(entities: list[Entity]) -> list[Entity]:
    """Join overloads of which nothing is said to the one before them.

    Two that differ only in what they refuse, or in being explicit, are shown once.
    """
    out: list[Entity] = []
    for entity in entities:
        last = out[-1] if out else None
        same = last and last.kind == entity.kind == "function" and last.name == entity.name
        if last and same and not entity.said:
            shown = [one.replace("explicit ", "") for one in last.declarations]
            last.declarations += [
                one for one in entity.declarations if one.replace("explicit ", "") not in shown
            ]
        else:
            out.append(entity)
    return out


def class_of(folder: Path, refid: str, name: str) -> Entity | None:
    """Return a class with its public members, or nothing for a private or specialised one."""
    compound = ET.parse(folder / f"{refid}.xml").getroot().find("compounddef")
    if compound is None or compound.get("prot") != "public":
        return None
    members = [
        entity_of(member, qualified=False)
        for section in compound.iterfind("sectiondef")
        if section.get("kind", "").startswith("public")
        for member in section.iterfind("memberdef")
    ]
    for inner in compound.iterfind("innerclass"):
        short = plain_text(inner).rpartition("::")[2]
        if inner.get("prot") == "public" and (
            made := class_of(folder, inner.get("refid", ""), short)
        ):
            members.append(made)
    kind = compound.get("kind", "class")
    text = f"{template_of(compound)}{name}"
    members.sort(key=lambda member: member.line)
    return Entity(kind, name, *place_of(compound), [text], description(compound), joined(members))


@cache
def entities(folder: Path) -> dict[str, list[Entity]]:
    """Return the public names by header, in the order of the header."""
    found: list[Entity] = []
    specialised: dict[str, list[str]] = {}
    for file in sorted(folder.glob(f"namespace{NAMESPACE.replace('_', '__')}*.xml")):
        compound = ET.parse(file).getroot().find("compounddef")
        if compound is None:
            continue
        for member in compound.iterfind("sectiondef/memberdef"):
            if "<" in (member.findtext("name") or ""):
                continue  # a specialisation; the template itself has the entry
            found.append(entity_of(member, qualified=True))
        for inner in compound.iterfind("innerclass"):
            name = plain_text(inner)
            base, _, arguments = name.partition("<")
            if arguments:
                spelled = tidy(arguments.rstrip().removesuffix(">"))
                specialised.setdefault(base.strip(), []).append(spelled)
            elif "::" not in name.removeprefix(f"{NAMESPACE}::") and (
                made := class_of(folder, inner.get("refid", ""), name)
            ):
                found.append(made)
        if compound.findtext("compoundname") != NAMESPACE:
            name = compound.findtext("compoundname") or ""
            found.append(
                Entity("namespace", name, *place_of(compound), [name], description(compound))
            )
    by_header: dict[str, list[Entity]] = {}
    for entity in sorted(found, key=lambda one: one.line):
        entity.specialised_for = specialised.get(entity.name, [])
        by_header.setdefault(entity.header, []).append(entity)
    return {header: joined(all_of_it) for header, all_of_it in by_header.items()}


def lines_of(entity: Entity) -> Iterator[str]:
    """Return the reStructuredText of an entry."""
    if entity.kind == "namespace":
        yield f"**Namespace** ``{entity.name}``"
        yield from ["", *entity.said]
        return
    first, *others = entity.declarations
    margin = " " * len(f".. cpp:{entity.kind}:: ")
    yield f".. cpp:{entity.kind}:: {first}"
    yield from (margin + other for other in others)
    yield ""
    yield from indented(entity.said)
    if entity.specialised_for:
        types = ", ".join(f"``{one}``" for one in entity.specialised_for)
        yield from indented([f"Specialised for {types}.", ""])
    for member in entity.members:
        yield from indented(list(lines_of(member)))


def purpose_of(header: Path) -> str:
    """Return the paragraph at the top of a header, which says what it is for."""
    lines = header.read_text().splitlines()
    comment = lines[2 : lines.index("#pragma once")]
    return " ".join(line.removeprefix("//").strip() for line in comment)


class HeaderDirective(SphinxDirective):
    """The entry of a header."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write what Doxygen read as reStructuredText, and let Sphinx read that."""
        header = INCLUDE / self.arguments[0]
        folder = Path(os.environ["USM_DLPACK_DOXYGEN_XML"])
        self.env.note_dependency(str(header))
        purpose = re.sub(r"`([^`]+)`", r"``\1``", purpose_of(header))
        lines = [f"``#include <usm_dlpack/{self.arguments[0]}>``", "", purpose, ""]
        for entity in entities(folder).get(self.arguments[0], []):
            lines += [*lines_of(entity), ""]
        container = nodes.container()
        self.state.nested_parse(
            StringList(lines, source=str(header)), self.content_offset, container
        )
        return list(container.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("header", HeaderDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
