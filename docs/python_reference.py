# SPDX-License-Identifier: Apache-2.0
"""The Python reference: what autodoc does not know of nanobind's classes, and the command line.

Docstrings spell names in single backticks, as NumPy does: those of public names become links. The
types of properties stand in the stub beside the extension module.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import usm_dlpack
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

BACKTICKS = re.compile(r"(?<![`:\w])`([^`\n]+)`(?!`)")


@cache
def property_types() -> dict[str, str]:
    """Return the type of each property of the extension module, by its full name."""
    module = importlib.util.find_spec("usm_dlpack._core")
    if module is None or module.origin is None:
        raise RuntimeError("usm_dlpack._core: expected the module, found none; install the package")
    stub = Path(module.origin).with_name("_core.pyi")
    return {
        f"usm_dlpack.{made.name}.{member.name}": ast.unparse(member.returns)
        for made in ast.parse(stub.read_text()).body
        if isinstance(made, ast.ClassDef)
        for member in made.body
        if isinstance(member, ast.FunctionDef) and member.returns and member.decorator_list
    }


def linked(found: re.Match[str]) -> str:
    """Return what a name in backticks becomes: a link if it is public, otherwise code."""
    name = found[1]
    if name.partition(".")[0] in usm_dlpack.__all__:
        return f":py:obj:`~usm_dlpack.{name}`"
    return f"``{name}``"


def complete_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Make links of names, and say the type of a property."""
    lines[:] = [BACKTICKS.sub(linked, line) for line in lines]
    if what == "property":
        # Napoleon takes what stands before a colon in the first line for a type: an empty comment
        # is that line.
        lines[:0] = ["..", ""]
        if name in property_types():
            lines += ["", f"Type: ``{property_types()[name]}``"]


def help_of(*command: str) -> str:
    """Return what a command says of itself, 80 columns wide."""
    return subprocess.run(
        [sys.executable, "-m", "usm_dlpack", *command, "--help"],
        env=os.environ | {"COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


class CommandsDirective(SphinxDirective):
    """What `python -m usm_dlpack` and each of its commands say with ``--help``."""

    def run(self) -> list[nodes.Node]:
        """Ask the program for its commands, and each of these for its help."""
        text = help_of()
        shown: list[nodes.Node] = [nodes.literal_block(text, text, language="text")]
        listed = text.partition("  command\n")[2].partition("\n\n")[0]
        for name in re.findall(r"^ {4}(\w+)", listed, re.MULTILINE):
            title = f"python -m usm_dlpack {name}"
            section = nodes.section("", nodes.title("", "", nodes.literal(title, title)))
            section["ids"].append(name)
            text = help_of(name)
            section += nodes.literal_block(text, text, language="text")
            shown.append(section)
        return shown


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and read docstrings before napoleon does."""
    app.add_directive("commands", CommandsDirective)
    app.connect("autodoc-process-docstring", complete_docstring, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
