# SPDX-License-Identifier: Apache-2.0
"""Looks at the built site in Debian's Chromium: every page, narrow and wide, light and dark.

A page must not be wider than the window, ask for nothing that is not a file of the site, and log no
error. ``--screenshots`` keeps pictures of each way, to be looked at.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (390, 1400)
SCHEMES = ("light", "dark")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium without a window."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def look_at_all_ways(browser: Browser, file: Path, screenshots: Path | None) -> list[str]:
    """Return what is wrong with a page; keep a picture of each way if a place for it is given."""
    faults: list[str] = []

    def requested(request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            faults.append(f"expected files of the site only, found a request of {request.url}")

    def logged(message: Any) -> None:
        if message.type == "error":
            faults.append(f"expected no error, found {message.text}")

    page = browser.new_page()
    page.on("request", requested)
    page.on("console", logged)
    page.on("pageerror", lambda error: faults.append(f"expected no exception, found {error}"))
    page.goto(file.as_uri(), wait_until="load")
    for width in WIDTHS:
        for scheme in SCHEMES:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            seen = page.evaluate("document.documentElement.scrollWidth")
            if seen > width:
                faults.append(f"expected at most {width} pixels, found a page of {seen}")
            if screenshots:
                page.screenshot(path=screenshots / f"{width}-{scheme}.png")
    page.close()
    return faults


def main() -> int:
    """Look at each page of the site in each way."""
    parser = argparse.ArgumentParser(prog="docs/browser_check.py", description=__doc__)
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "docs" / "html")
    parser.add_argument("--screenshots", type=Path, help="folder for pictures of what was seen")
    options = parser.parse_args()
    pages = sorted(options.site.resolve().rglob("*.html"))
    failed = not pages
    with chromium() as browser:
        for page in pages:
            name = page.relative_to(options.site.resolve())
            kept = options.screenshots / name.with_suffix("") if options.screenshots else None
            for fault in look_at_all_ways(browser, page, kept):
                failed = True
                print(f"{name}: {fault}")
    print(f"{'FAILED' if failed else 'passed'}: {len(pages)} pages, {len(WIDTHS)} widths")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
