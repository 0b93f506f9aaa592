# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx: the extensions that read the pages, and foreign names without a page."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

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
    "sphinxcontrib.programoutput",
    "breathe",
    "site_markup",
]
exclude_patterns = ["examples"]
# One project a folder of headers: Breathe finds a namespace once in each.
breathe_projects = {
    folder: f"{os.environ['USM_DLPACK_DOXYGEN_XML']}/{folder}"
    for folder in ("core", "sycl", "opencl", "nanobind")
}
breathe_show_include = False
# Each page opens the namespace anew.
suppress_warnings = ["duplicate_declaration.cpp"]
nitpicky = True
nitpick_ignore_regex = [
    # Names of other projects and of the languages, whose documentation is not at hand.
    (r"cpp:identifier", r".*"),
    (r"py:obj", r".*"),
    (r"py:class", r"(collections\.abc|dpctl|numpy)\..*"),
    # Annotations of the package's own, as they are spelled in its modules.
    (r"py:class", r"(dict\[str|HostView|Step|SyclQueue|Walk)"),
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
