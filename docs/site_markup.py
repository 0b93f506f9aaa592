# SPDX-License-Identifier: Apache-2.0
"""What the pages can say beyond Sphinx: links to the page of an error, their table, and diagrams.

A code in backticks links to its page, ``{error-table}`` is the table of all codes,
``{invalid-uses}`` shows the uses that the page's code refuses, and ``{diagram} exchange`` draws
docs/diagrams/exchange.dot in the colours of the page.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.statemachine import StringList
from drawing import DIAGRAMS, draw, source_of
from error_table import HEADER, index_table, read_table
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from recorded_uses import RECORD, read_record
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
# A diagram may be made smaller to this part of what graphviz draws, and scrolls then.
SMALLEST = 0.7
WIDTH = re.compile(r'\bwidth="(\d+)pt" height="\d+pt"')
LOGGER = logging.getLogger(__name__)

OUTSIDE_LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)\)")
LINK = re.compile(r"\]\(([^)#:\s]+)\)")
# A page that is a README of an example, as it stands.
EXAMPLE = re.compile(r"\A```\{include\} (\S+/README\.md)\n```\n\Z")
# Files outside docs/ that are pages of the site already.
PAGE_OF_FILE = {"CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"} | {
    f"examples/{name}/README.md": f"how-to/examples/{name}"
    for name in ("extension", "c_abi", "onednn")
}


class ErrorTableDirective(SphinxDirective):
    """A row for each error code: what it means, and what Python raises."""

    def run(self) -> list[nodes.Node]:
        """Write the table as Markdown, and let MyST read it."""
        self.env.note_dependency(str(ROOT / HEADER))
        container = nodes.container()
        lines = StringList(index_table(read_table()), source=str(HEADER))
        self.state.nested_parse(lines, self.content_offset, container)
        return list(container.children)


class InvalidUsesDirective(SphinxDirective):
    """The invalid uses of the codes, exceptions or files that it names, or of the page's code."""

    optional_arguments = 9

    def run(self) -> list[nodes.Node]:
        """Show each use with its sentence; on the page of a code, first what is raised."""
        page = PurePosixPath(self.env.docname).name
        wanted = self.arguments or [page]
        self.env.note_dependency(str(RECORD))
        container = nodes.container()
        for row in read_table():
            if row.code == page:
                says = (
                    f"In Python {row.raised}; in C++ {{cpp:enumerator}}`usm_dlpack::errc::{page}`."
                )
                self.state.nested_parse(
                    StringList([says], source=str(HEADER)), self.content_offset, container
                )
        for use in read_record():
            if use.code in wanted or use.source in wanted:
                language = lexer_of(Path(use.source))
                container += nodes.paragraph(
                    "", "", nodes.strong(use.title, use.title), nodes.Text(f" ({use.source})")
                )
                container += nodes.literal_block(use.shown, use.shown, language=language)
                container += nodes.literal_block(use.sentence, use.sentence, language="text")
        return list(container.children)


class DiagramDirective(SphinxDirective):
    """Draws docs/diagrams/<argument>.dot; the content of the directive says what is to be seen."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw the source, and note that the page depends on it."""
        name = self.arguments[0]
        if not source_of(name):
            raise self.error(
                f"diagram: expected a source in docs/diagrams/, found none named {name}.dot; "
                "write it"
            )
        self.env.note_dependency(str(DIAGRAMS / f"{name}.dot"))
        says = " ".join(self.content).strip()
        if not says:
            raise self.error(
                "diagram: expected a sentence that says what is to be seen, found none; add it"
            )
        return [diagram_node(self.env.app, self.env.docname, name, says)]


def diagram_node(app: Sphinx, docname: str, name: str, says: str) -> nodes.raw:
    """Draw a diagram into a page: in its colours, with links from codes to their errors."""
    picture = re.sub(r"<title>.*?</title>\n?", "", draw(source_of(name)))
    picture = picture.replace(' id="', f' id="{name}-')
    for code in error_codes():
        if f"errors/{code}" in app.env.found_docs:
            address = app.builder.get_relative_uri(docname, f"errors/{code}")
            picture = re.sub(
                rf"(<text[^>]*>{code}</text>)", rf'<a href="{address}">\1</a>', picture
            )
    found = WIDTH.search(picture)
    width = int(found[1]) if found else 0
    # As wide as the page at most, unless the text in it would become too small.
    size = f"width:{width}pt;max-width:max(100%,{width * SMALLEST:.0f}pt)"
    label = says.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    picture = WIDTH.sub("", picture, count=1).replace(
        "<svg", f'<svg role="img" aria-label="{label}" style="{size}"', 1
    )
    return nodes.raw("", f'<div class="diagram" tabindex="0">{picture}</div>', format="html")


def text_of(page: Path) -> str:
    """Return the text of a page; that of a README has its links as they are from the page."""
    text = page.read_text()
    included = EXAMPLE.match(text)
    if included is None:
        return text
    readme = (page.parent / included[1]).resolve()

    def from_page(link: re.Match[str]) -> str:
        return f"]({os.path.relpath(readme.parent / link[1], page.parent)})"

    return LINK.sub(from_page, readme.read_text())


def linked_files(page: Path) -> dict[str, Path]:
    """Return the files outside docs/ that a page links to, by the target as it is written there."""
    found = {}
    for target in OUTSIDE_LINK.findall(text_of(page)):
        file = (page.parent / target).resolve()
        if not file.is_relative_to(DOCS) and file.is_relative_to(ROOT):
            found[target] = file / "README.md" if file.is_dir() else file
    return found


def mark_outside_links(app: Sphinx, docname: str, content: list[str]) -> None:
    """Give links to files outside docs/ a scheme of their own, before MyST looks for pages."""
    page = Path(app.env.doc2path(docname))
    if included := EXAMPLE.match(content[0]):
        app.env.note_dependency(str((page.parent / included[1]).resolve()), docname=docname)
        content[0] = text_of(page)
    for target, file in linked_files(page).items():
        if not file.is_file():
            text = f"{target}: expected a file of the repository, found none; correct the link"
            LOGGER.warning(text, location=docname)
        marked = f"repository:{file.relative_to(ROOT)}"
        content[0] = content[0].replace(f"]({target})", f"]({marked})")


def resolve_outside_links(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn the scheme into links to the pages that `make_file_pages` makes."""
    for reference in doctree.findall(nodes.reference):
        scheme, _, path = reference.get("refuri", "").partition(":")
        if scheme == "repository":
            page = PAGE_OF_FILE.get(path, f"files/{path}")
            reference["refuri"] = app.builder.get_relative_uri(docname, page)


def error_codes() -> frozenset[str]:
    """Return the names of usm_dlpack::errc."""
    return frozenset(row.code for row in read_table())


def within(node: nodes.Node, kind: type[nodes.Node]) -> bool:
    """Say whether a node is a part of another of some kind."""
    above = node.parent
    while above is not None and not isinstance(above, kind):
        above = above.parent
    return above is not None


def link_error_codes(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make a link of each code that a page names in backticks, to the page of that error."""
    codes = error_codes()
    for literal in list(doctree.findall(nodes.literal)):
        page = f"errors/{literal.astext()}"
        if literal.astext() not in codes or page not in app.env.found_docs or page == docname:
            continue
        if within(literal, nodes.reference) or within(literal, nodes.title):
            continue
        address = app.builder.get_relative_uri(docname, page)
        reference = nodes.reference("", "", literal.deepcopy(), internal=True, refuri=address)
        literal.parent.replace(literal, reference)


def make_file_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, str], str]]:
    """Make a page of each linked file, with its text as it is."""
    pages = [Path(app.env.doc2path(name)) for name in app.env.found_docs]
    files = {file for page in pages for file in linked_files(page).values() if file.is_file()}
    for file in sorted(files):
        path = str(file.relative_to(ROOT))
        if path in PAGE_OF_FILE:
            continue
        lexer = lexer_of(file)
        shown = app.builder.highlighter.highlight_block(file.read_text(), lexer)
        yield f"files/{path}", {"title": path, "body": f"<h1>{path}</h1>{shown}"}, "page.html"


def lexer_of(file: Path) -> str:
    """Return the name by which Pygments knows the language of a file."""
    try:
        return str(get_lexer_for_filename(file.name).aliases[0])
    except ClassNotFound:
        return "text"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and what becomes of links."""
    app.add_directive("diagram", DiagramDirective)
    app.add_directive("error-table", ErrorTableDirective)
    app.add_directive("invalid-uses", InvalidUsesDirective)
    app.connect("source-read", mark_outside_links)
    app.connect("doctree-resolved", resolve_outside_links)
    app.connect("doctree-resolved", link_error_codes)
    app.connect("html-collect-pages", make_file_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
