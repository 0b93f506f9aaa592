# SPDX-License-Identifier: Apache-2.0
"""Says which public names have no entry in the built reference, and which say nothing.

C++ names are those that Doxygen finds in the headers, Python names those of ``__all__``; what has
an entry stands in the inventory that Sphinx writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cpp_reference import Entity, entities
from sphinx.util.inventory import InventoryFile


def documented(site: Path) -> set[str]:
    """Return the names that have an entry, C++ and Python."""
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    return {
        name
        for kind, names in inventory.data.items()
        if kind.startswith(("cpp:", "py:"))
        for name in names
    }


def named(entity: Entity, within: str = "") -> Iterator[str]:
    """Return the full names of an entity and its members, as Sphinx writes them."""
    name = f"{within}{entity.name}"
    if entity.kind != "namespace":
        yield name
    for member in entity.members:
        yield from named(member, f"{name}::")


def faults_of_cpp(entries: set[str], by_header: dict[str, list[Entity]]) -> list[str]:
    """Find names of the headers without an entry or without a comment."""
    faults = []
    for header, all_of_it in by_header.items():
        said = {entity.name for entity in all_of_it if entity.said}
        for entity in all_of_it:
            faults += [
                f"{header}: expected an entry of {name}, found none; add the header to a page of "
                "docs/reference/"
                for name in named(entity)
                if name not in entries
            ]
            if entity.name not in said and "::type_code::" not in entity.name:
                faults.append(f"{header}:{entity.line}: expected a comment on {entity.name}, "
                              "found none; say what it is for")  # fmt: skip
    return faults


def faults_of_python(entries: set[str], names: list[str]) -> list[str]:
    """Find names of the package without an entry."""
    return [
        f"usm_dlpack.{name}: expected an entry, found none; add it to docs/reference/python.rst"
        for name in names
        if f"usm_dlpack.{name}" not in entries
    ]


def faults_of_reference(site: Path, xml: Path) -> list[str]:
    """Find public names without an entry."""
    import usm_dlpack

    by_header = entities(xml)
    if not by_header:
        return [f"{xml}: expected what Doxygen read, found nothing; run Doxygen first"]
    entries = documented(site)
    return faults_of_cpp(entries, by_header) + faults_of_python(entries, usm_dlpack.__all__)
