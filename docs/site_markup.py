# SPDX-License-Identifier: Apache-2.0
"""What the site has beyond Sphinx and MyST.

A page of docs/errors/ ends with the invalid uses that it is about, and the index with the table of
codes. The pages that an index lists are below it in the sidebar. A code or a public name in
backticks links to its page. Links in included files lead where they do in the file, and links to a
file that has a page to that page. Properties of the extension module show their types.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import usm_dlpack
from docutils import nodes
from error_table import index_table, read_table, with_meaning
from recorded_uses import uses_of
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

LOGGER = logging.getLogger(__name__)

SHOWN_FILE = re.compile(r"\]\([./]+/(?:examples/(\w+)/README|(CHANGELOG|CONTRIBUTING))\.md\)")
LINK = re.compile(r"\]\(([^)#:\s][^):\s]*)\)")
# Not a header, a private module, or a target of CMake.
PUBLIC_NAME = re.compile(
    r"usm_dlpack(\.(?!hpp|_)|::(?!usm_dlpack|mdspan_header|sycl_runtime))[\w.:]+"
)
LISTED = re.compile(r"^- \[[^]]+\]\(([^)]+\.md)\)", re.MULTILINE)
LEXERS = {".py": "python", ".cpp": "cpp", ".sh": "sh"}


def page_of_file(link: re.Match[str]) -> str:
    """Return a link to the page that includes a file."""
    example, file = link.groups()
    return f"](/how-to/examples/{example}.md)" if example else f"](/{file.lower()}.md)"


def complete_page(app: Sphinx, docname: str, content: list[str]) -> None:
    """Add what is refused to a page of an error, contents to an index; lead links to pages."""
    content[0] = SHOWN_FILE.sub(page_of_file, content[0])
    folder, _, page = docname.rpartition("/")
    contents = LISTED.findall(content[0]) if page == "index" else []
    added = []
    if folder == "errors":
        rows = {row.code: row for row in read_table()}
        if page == "index":
            added += index_table([*rows.values()])
            contents += sorted(rows)
        if page in rows:
            raised = rows[page].raised
            added += [f"In Python {raised}; in C++ `usm_dlpack::errc::{page}`.", ""]
            content[0] = with_meaning(rows[page], content[0])
        for use in uses_of(page):
            added += [f"**{use.title}** ({use.source})", ""]
            added += [f"```{LEXERS[Path(use.source).suffix]}", use.shown, "```", ""]
            added += ["```text", use.sentence, "```", ""]
    if contents:
        added += ["", "```{toctree}", ":hidden:", *contents, "```"]
    content[0] = "\n".join([content[0], *added])


def complete_include(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    """Let the links of an included file lead to where they lead from its own folder."""
    content[0] = SHOWN_FILE.sub(page_of_file, LINK.sub(rf"](/{path.parent}/\1)", content[0]))


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make a link of each code and public name that the text of a page has in backticks."""
    places = {row.code: (f"errors/{row.code}", "") for row in read_table()}
    for domain in ("py", "cpp"):
        for name, _, _, page, anchor, _ in app.env.domains[domain].get_objects():
            if PUBLIC_NAME.fullmatch(name):
                places.setdefault(name, (page, f"#{anchor}"))
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext()
        if PUBLIC_NAME.fullmatch(name) and name not in places:
            told = "%s: expected a public name, found none; correct it"
            LOGGER.warning(told, name, location=literal)
        page, anchor = places.get(name, (docname, ""))
        if isinstance(literal.parent, nodes.paragraph) and page != docname:
            address = app.builder.get_relative_uri(docname, page) + anchor
            reference = nodes.reference("", "", literal.deepcopy(), internal=True, refuri=address)
            literal.parent.replace(literal, reference)


@cache
def property_types() -> dict[str, str]:
    """Return the type of each property of the extension module, as the stub beside it says."""
    stub = Path(usm_dlpack.__file__).with_name("_core.pyi")
    return {
        f"usm_dlpack.{made.name}.{member.name}": ast.unparse(member.returns)
        for made in ast.parse(stub.read_text()).body
        if isinstance(made, ast.ClassDef)
        for member in made.body
        if isinstance(member, ast.FunctionDef) and member.returns and member.decorator_list
    }


def complete_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Say the type of a property."""
    if what == "property":
        # Napoleon takes what stands before a colon in the first line for a type: an empty comment
        # is that line.
        lines[:0] = ["..", ""]
        if name in property_types():
            lines += ["", f"Type: ``{property_types()[name]}``"]


def require_entries(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of public Python names without an entry; the C++ pages have all names of a folder."""
    for name in usm_dlpack.__all__ if "reference/python" in env.found_docs else ():
        if f"usm_dlpack.{name}" not in env.domains.python_domain.objects:
            LOGGER.warning("usm_dlpack.%s: expected an entry, found none; add one", name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all of it; docstrings are read before napoleon reads them."""
    app.connect("source-read", complete_page)
    app.connect("include-read", complete_include)
    app.connect("doctree-resolved", link_names)
    app.connect("env-check-consistency", require_entries)
    app.connect("autodoc-process-docstring", complete_docstring, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
