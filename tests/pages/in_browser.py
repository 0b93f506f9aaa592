# SPDX-License-Identifier: Apache-2.0
"""Look at the pages of build/docs/html in Chromium, as wide as those of telephones to screens.

No page is wider than its window, no text is cut off, no long column says the same in each row, and
on the pages for authors of extensions a section is no longer than a screen. The search finds what
readers look for. Run it by ``python3 dev.py docs --browser``.
"""

import re
import sys
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).resolve().parents[2] / "build" / "docs" / "html"
CHROMIUM = "/usr/bin/chromium"
WIDTHS = (320, 360, 480, 768, 1024, 1280, 1440, 1920)
HEIGHT = 900
OF_ONE_SCREEN = ("how-to/kernels.html", "how-to/nanobind.html")
# What readers searched for, and a page that is among the first results.
SEARCHED = {
    "synchronise": "explanation/synchronisation.html",
    "synchronisation": "explanation/synchronisation.html",
    "(14, 3)": "explanation/device_id.html",
    "performance": "speed.html",
    "wrong result": "how-to/wrong_values.html",
    "pickle": "how-to/threads.html",
    "sklearn": "how-to/libraries.html",
    "joblib": "how-to/threads.html",
    "asyncio": "how-to/threads.html",
    "notebook": "how-to/threads.html",
    "issue": "how-to/report.html",
    "what changed": "changelog.html",
}
FIRST_RESULTS = 5
LAYOUT = """() => {
  const found = [];
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) {
    found.push(`page: ${root.scrollWidth} pixels wide`);
  }
  for (const element of document.body.querySelectorAll("*")) {
    const cuts = ["hidden", "clip"].includes(getComputedStyle(element).overflowX);
    // What is one pixel wide is for readers of screens.
    if (cuts && element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1) {
      found.push(`cut off: ${element.textContent.trim().slice(0, 60)}`);
    }
  }
  for (const table of document.querySelectorAll("table")) {
    const rows = [...table.querySelectorAll("tbody tr")];
    for (let column = 0; rows.length >= 10 && column < rows[0].cells.length; ++column) {
      const said = new Set(rows.map((row) => row.cells[column]?.innerText));
      if (said.size === 1) {
        found.push(`column: ${rows.length} times ${[...said][0]}`);
      }
    }
  }
  return found;
}"""
SECTIONS = """() => {
  const edges = [...document.querySelectorAll("article :is(h1, h2, h3)")];
  const places = edges.map((heading) => heading.getBoundingClientRect().top);
  places.push(document.querySelector("article").getBoundingClientRect().bottom);
  return edges.map((heading, i) => [heading.innerText, places[i + 1] - places[i]]);
}"""


def look_at(page: Page, name: str, width: int) -> list[str]:
    """Return what is wrong with a page."""
    page.goto((SITE / name).as_uri())
    found: list[str] = page.evaluate(LAYOUT)
    if name in OF_ONE_SCREEN and width == 1280:
        for heading, height in page.evaluate(SECTIONS):
            if height > HEIGHT:
                found.append(f"section: {heading!r}, {height:.0f} pixels high")
    return found


def search(page: Page, words: str) -> list[str]:
    """Return the addresses of the first results of a search."""
    page.goto((SITE / "search.html").as_uri() + f"?q={quote(words)}")
    page.get_by_text(re.compile("Search finished|did not match")).wait_for()
    links = page.locator("#search-results ul.search > li > a").all()[:FIRST_RESULTS]
    return [str(link.get_attribute("href")) for link in links]


def main() -> int:
    """Look at all pages; return 1 if something is wrong."""
    names = sorted(str(file.relative_to(SITE)) for file in SITE.rglob("*.html"))
    names = [name for name in names if not name.startswith("_")]
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": HEIGHT})
            for name in names:
                for line in look_at(page, name, width):
                    print(f"{name}, {width} pixels: {line}")
                    wrong += 1
            page.close()
        page = browser.new_page()
        for words, name in SEARCHED.items():
            found = search(page, words)
            if not any(address.startswith(name) for address in found):
                print(f"search for {words!r}: expected {name}, found {found}")
                wrong += 1
        browser.close()
    print(f"{len(names)} pages in {len(WIDTHS)} widths: {wrong or 'nothing'} wrong")
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
