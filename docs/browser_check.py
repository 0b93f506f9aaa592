# SPDX-License-Identifier: Apache-2.0
"""Looks at the built site in Debian's Chromium: every page, narrow and wide, light and dark.

A page must not be wider than the window, ask for nothing that is not a file of the site, and log no
error. Pictures of each way are kept in build/docs/screenshots, to be looked at.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

BUILT = Path(__file__).resolve().parents[1] / "build" / "docs"
SITE = BUILT / "html"
WIDTHS = (390, 1400)
SCHEMES = ("light", "dark")


def faults_of(browser: Browser, file: Path) -> list[str]:
    """Return what is wrong with a page, and keep a picture of each way to look at it."""
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
    pictures = BUILT / "screenshots" / file.relative_to(SITE).with_suffix("")
    for width in WIDTHS:
        for scheme in SCHEMES:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            seen = page.evaluate("document.documentElement.scrollWidth")
            if seen > width:
                faults.append(f"expected at most {width} pixels, found a page of {seen}")
            page.screenshot(path=pictures / f"{width}-{scheme}.png")
    page.close()
    return faults


def main() -> int:
    """Look at each page of the site in each way."""
    pages = sorted(SITE.rglob("*.html"))
    failed = not pages
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for page in pages:
            for fault in faults_of(browser, page):
                failed = True
                print(f"{page.relative_to(SITE)}: {fault}")
        browser.close()
    print(f"{'FAILED' if failed else 'passed'}: {len(pages)} pages, {len(WIDTHS)} widths")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
