# SPDX-License-Identifier: Apache-2.0
"""The check of links sees a link, an anchor and a foreign resource that are planted in a site."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_links import faults_of_links

GOOD = """<!DOCTYPE html><link rel="stylesheet" href="look.css"><h1 id="top-of-it">A page</h1>
<a href="other.html#there">there</a> <a href="#top-of-it">here</a>
<a href="https://dlpack.org">far</a>
<img src="picture.svg"><link rel="canonical" href="https://usm.example/page.html">"""


def make_site(folder: Path, page: str = GOOD, style: str = "") -> Path:
    (folder / "page.html").write_text(page)
    (folder / "other.html").write_text('<p id="there">there</p>')
    (folder / "picture.svg").write_text("<svg></svg>")
    (folder / "look.css").write_text(style)
    return folder


def test_a_site_whose_links_lead_somewhere_has_no_faults(tmp_path: Path) -> None:
    assert faults_of_links(make_site(tmp_path)) == []


@pytest.mark.parametrize(
    ("good", "planted", "named"),
    [
        ("other.html#there", "missing.html#there", "missing.html#there"),
        ("other.html#there", "other.html#nowhere", "#nowhere"),
        ("picture.svg", "https://far.example/a.svg", "https://far.example/a.svg"),
        ('href="look.css"', 'href="//far.example/a.css"', "//far.example/a.css"),
        ("<h1 ", '<h1 style="background: url(https://far.example/b.png)" ', "b.png"),
        ("<h1 ", '<script src="https://far.example/c.js"></script><h1 ', "c.js"),
    ],
)
def test_a_planted_fault_is_named(tmp_path: Path, good: str, planted: str, named: str) -> None:
    assert good in GOOD
    (fault,) = faults_of_links(make_site(tmp_path, GOOD.replace(good, planted, 1)))
    assert fault.startswith("page.html: expected")
    assert named in fault


@pytest.mark.parametrize(
    "style",
    ["@font-face { src: url('https://far.example/f.woff2') }", "@import 'https://far.example/f'"],
)
def test_a_style_sheet_that_fetches_from_elsewhere_is_a_fault(tmp_path: Path, style: str) -> None:
    (fault,) = faults_of_links(make_site(tmp_path, style=style))
    assert fault.startswith(
        "look.css: expected files of the site only, found https://far.example/f"
    )
