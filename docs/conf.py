# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx. Doxygen reads the headers first, a project for each folder of them.

Two things are our own. A code or a public name that a page has in backticks links to its place, and
links of files that a page includes lead where they lead in the file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING

import usm_dlpack
from docutils import nodes
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
XML = ROOT / "build" / "docs" / "doxygen"

# Of the commands whose output pages show.
os.environ |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "80"}

CONFIG_HEADER = (ROOT / "include" / "usm_dlpack" / "core" / "config.hpp").read_text()

project = "usm_dlpack"
author = "the authors of usm_dlpack"
project_copyright = author
release = ".".join(
    re.findall(r"VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", CONFIG_HEADER),
)

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinxcontrib.programoutput",
    "breathe",
]
exclude_patterns = ["examples"]
# Breathe finds a namespace once in each project.
FOLDERS = ("core", "sycl", "opencl", "python", "nanobind", "pybind11")
breathe_projects = {folder: str(XML / folder) for folder in FOLDERS}
XML.mkdir(parents=True, exist_ok=True)
for folder, output in breathe_projects.items():
    settings = f"@INCLUDE = docs/Doxyfile\nINPUT = include/usm_dlpack/{folder}\n"
    settings += f"OUTPUT_DIRECTORY = {XML}\nXML_OUTPUT = {output}\n"
    subprocess.run(["doxygen", "-"], cwd=ROOT, input=settings, text=True, check=True)

breathe_show_include = False
# Each page opens the namespace anew.
suppress_warnings = ["duplicate_declaration.cpp"]
nitpicky = True
nitpick_ignore_regex = [
    # Names of other projects and of the languages, whose documentation is not at hand.
    (r"cpp:identifier", r".*"),
    (r"py:obj", r".*"),
    (r"py:class", r"(collections\.abc|dpctl|numpy|typing_extensions)\..*"),
    # Annotations of the package's own, as they are spelled in its modules.
    (r"py:class", r"usm_dlpack\._arrays\._\w+"),
    (r"py:class", r"(dict\[str|CudaView|HostView|SyclQueue)"),
]

# Docstrings spell names in single backticks, as NumPy does: those of public names become links.
default_role = "py:obj"
maximum_signature_line_length = 80
autodoc_typehints = "signature"
napoleon_google_docstring = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "usm_dlpack"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False

# The stub says the types of properties, which the compiled classes do not.
_stub = SourceFileLoader("usm_dlpack._core", str(Path(usm_dlpack.__file__).with_name("_core.pyi")))
_spec = spec_from_loader(_stub.name, _stub)
assert _spec is not None
_typed = module_from_spec(_spec)
_stub.exec_module(_typed)
for _name in ("DLPackTensor", "UsmAllocation"):
    setattr(usm_dlpack, _name, getattr(_typed, _name))

SHOWN_FILE = re.compile(r"\]\([./]+/(?:examples/(\w+)/README|(CHANGELOG|CONTRIBUTING))\.md\)")
LINK = re.compile(r"\]\(([^)#:\s][^):\s]*)\)")
# Not a header, a private module, or a target of CMake.
PUBLIC_NAME = re.compile(
    r"usm_dlpack(\.(?!hpp|_)|::(?!usm_dlpack|mdspan_header|sycl_runtime))[\w.:]+"
)


def page_of_file(link: re.Match[str]) -> str:
    """Return a link to the page that includes a file."""
    example, file = link.groups()
    return f"](/how-to/examples/{example}.md)" if example else f"](/{file.lower()}.md)"


def link_pages(app: Sphinx, docname: str, content: list[str]) -> None:
    """Let links to files that pages include lead to these pages."""
    content[0] = SHOWN_FILE.sub(page_of_file, content[0])


def link_included(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    """Let the links of an included file lead to where they lead from its own folder."""
    content[0] = SHOWN_FILE.sub(page_of_file, LINK.sub(rf"](/{path.parent}/\1)", content[0]))


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make a link of each code and public name that the text of a page has in backticks."""
    places = {}
    for file in (DOCS / "errors").glob("*.md"):
        for code in re.findall(r"^## `(\w+)`$", file.read_text(encoding="utf-8"), re.MULTILINE):
            places[code] = f"errors/{file.stem}", f"#{nodes.make_id(code)}"
    for domain in ("py", "cpp"):
        for name, _, _, page, anchor, _ in app.env.domains[domain].get_objects():
            if PUBLIC_NAME.fullmatch(name):
                places.setdefault(name, (page, f"#{anchor}"))
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext()
        if PUBLIC_NAME.fullmatch(name) and name not in places:
            told = "%s: expected a public name, found none; correct it"
            logging.getLogger(__name__).warning(told, name, location=literal)
        page, anchor = places.get(name, (docname, ""))
        if isinstance(literal.parent, nodes.paragraph) and page != docname:
            address = app.builder.get_relative_uri(docname, page) + anchor
            reference = nodes.reference("", "", literal.deepcopy(), internal=True, refuri=address)
            literal.parent.replace(literal, reference)


def setup(app: Sphinx) -> None:
    """Connect these functions."""
    app.connect("source-read", link_pages)
    app.connect("include-read", link_included)
    app.connect("doctree-resolved", link_names)
