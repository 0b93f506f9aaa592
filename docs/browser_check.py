# SPDX-License-Identifier: Apache-2.0
"""Looks at the built site in Debian's Chromium: every page, narrow and wide, light and dark.

A page must not be wider than the window, ask for nothing that is not a file of the site, log no
error, and show text that stands out from what is behind it. ``--screenshots`` keeps what was seen.
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

# Text of at least this contrast is readable: WCAG 2.1, level AA, with its ratio for large text,
# because colours of code and of plots count too.
LEAST_CONTRAST = 3.0

LOOK = """
async LEAST => {
  // What changes colour slowly is looked at when it has.
  const rule = document.createElement('style');
  rule.textContent = '* { transition: none !important; }';
  document.head.append(rule);
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const parse = c => { const m = c.match(/[\\d.]+/g) || [0, 0, 0, 0];
                       return m.length < 4 ? [...m.map(Number), 1] : m.map(Number); };
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = element => { for (let e = element; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.9) return c; }
    return [255, 255, 255, 1]; };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.trim(), element = node.parentElement;
    if (!text || !element.checkVisibility({opacityProperty: true, visibilityProperty: true}))
      continue;
    if (element.closest('script, style, noscript, title, .headerlink, .visually-hidden')) continue;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement;
    const ink = parse(drawn ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < LEAST) faint.add(`${text.slice(0, 30)} (${ratio.toFixed(1)})`);
  }
  return {width: document.documentElement.scrollWidth, faint: [...faint].slice(0, 5)};
}
"""


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
            seen = page.evaluate(LOOK, LEAST_CONTRAST)
            way = f"at {width}, {scheme}: expected"
            if seen["width"] > width:
                faults.append(f"{way} at most {width} pixels, found a page of {seen['width']}")
            if seen["faint"]:
                faults.append(f"{way} a contrast of {LEAST_CONTRAST}, found {seen['faint']}")
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
