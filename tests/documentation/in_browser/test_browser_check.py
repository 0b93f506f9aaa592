# SPDX-License-Identifier: Apache-2.0
"""Chromium sees what is planted in a page: too wide, too faint, an error, a foreign request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_check import chromium, look_at_all_ways
from playwright.sync_api import Browser

PAGE = """<!DOCTYPE html><meta name="viewport" content="width=device-width"><title>A page</title>
<style>@media (prefers-color-scheme: dark) {{ body {{ background: #000; color: #eee; }} }}</style>
<body><p>Some text.</p>{planted}</body>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser for all pages."""
    with chromium() as started:
        yield started


def faults(browser: Browser, folder: Path, planted: str) -> list[str]:
    page = folder / "page.html"
    page.write_text(PAGE.format(planted=planted))
    return look_at_all_ways(browser, page, folder / "pictures")


def test_a_page_that_is_well_has_no_faults_and_four_pictures(
    browser: Browser, tmp_path: Path
) -> None:
    assert faults(browser, tmp_path, "<div style='width: 300px'>narrow</div>") == []
    names = sorted(picture.name for picture in (tmp_path / "pictures").iterdir())
    assert names == ["1400-dark.png", "1400-light.png", "390-dark.png", "390-light.png"]


@pytest.mark.parametrize(
    ("planted", "ways", "said"),
    [
        (
            "<div style='width: 700px'>wide</div>",
            ["at 390, light", "at 390, dark"],
            "expected at most 390 pixels, found a page of",
        ),
        (
            "<p style='color: #ccc'>faint</p>",
            ["at 390, light", "at 1400, light"],
            "faint (1.6)",
        ),
        (
            "<svg width=80 height=30><text y=20 fill='#111'>drawn</text></svg>",
            ["at 390, dark", "at 1400, dark"],
            "drawn (1.1)",
        ),
    ],
)
def test_what_is_wrong_in_some_ways_is_said_of_these(
    browser: Browser, tmp_path: Path, planted: str, ways: list[str], said: str
) -> None:
    found = faults(browser, tmp_path, planted)
    assert [fault.partition(":")[0] for fault in found] == ways
    assert all(said in fault for fault in found)


def test_what_a_page_logs_is_said_once(browser: Browser, tmp_path: Path) -> None:
    (fault,) = faults(browser, tmp_path, "<script>throw new Error('planted')</script>")
    assert "expected no exception" in fault


def test_a_request_of_another_site_is_named(browser: Browser, tmp_path: Path) -> None:
    found = faults(browser, tmp_path, "<img src='http://localhost:9/picture.png' alt='none'>")
    wanted = "expected files of the site only, found a request of http://localhost:9/picture.png"
    assert wanted in found
