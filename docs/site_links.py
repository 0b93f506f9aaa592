# SPDX-License-Identifier: Apache-2.0
"""Resolves every link of the built site and its search; refuses what a page would fetch elsewhere.

Links to other sites are listed and not followed: the build has no network.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements that make a browser fetch what they name, with the attribute that names it.
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("source", "src"),
    ("iframe", "src"),
    ("object", "data"),
    ("embed", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("use", "href"),
}
LINKED = FETCHED | {("a", "href"), ("form", "action")}
# Relations of <link> that a browser does not fetch.
NOT_FETCHED = {"canonical", "index", "search", "next", "prev", "author", "copyright", "contents"}
IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


@dataclass
class Page(HTMLParser):
    """What a page names: its anchors, its links, and what it fetches."""

    text: str
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read the page."""
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors and links of an element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        relations = set(given.get("rel", "").split())
        for element, attribute in LINKED:
            if tag != element or attribute not in given:
                continue
            self.links.append(given[attribute])
            if (element, attribute) in FETCHED and not relations & NOT_FETCHED:
                self.fetched.append(given[attribute])
        self.fetched += addresses_in_style(given.get("style", ""))


def addresses_in_style(style: str) -> list[str]:
    """Return what a style sheet names."""
    return [first or second for first, second in IN_STYLE.findall(style)]


def is_elsewhere(address: str) -> bool:
    """Say whether an address is on another site."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def external_links(site: Path) -> list[str]:
    """Return the addresses on other sites that the pages link to."""
    pages = [Page(file.read_text()) for file in site.rglob("*.html")]
    return sorted({link for page in pages for link in page.links if is_elsewhere(link)})


def faults_of_links(site: Path) -> list[str]:
    """Find links and anchors that lead nowhere, and what would be fetched from another site."""
    pages = {file: Page(file.read_text()) for file in sorted(site.rglob("*.html"))}
    if not pages:
        return [f"{site}: expected built pages, found none; build the site first"]
    faults = []
    for file, page in pages.items():
        name = file.relative_to(site)
        faults += [
            f"{name}: expected files of the site only, found {address}; keep a copy in docs/_static"
            for address in page.fetched
            if is_elsewhere(address)
        ]
        for link in sorted(set(page.links)):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.is_file():
                faults.append(
                    f"{name}: expected a file of the site, found {link}; correct the link"
                )
            elif parts.fragment and target in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].anchors and anchor != "top":
                    fault = f"expected an anchor of {target.relative_to(site)}, found #{anchor}"
                    faults.append(f"{name}: {fault}; correct the link")
    for sheet in sorted(site.rglob("*.css")):
        faults += [
            f"{sheet.relative_to(site)}: expected files of the site only, found {address}; copy it"
            for address in addresses_in_style(sheet.read_text())
            if is_elsewhere(address)
        ]
    return faults


def faults_of_search(site: Path, word: str) -> list[str]:
    """Find pages that the site's search does not know, and a word that it has on no page.

    What shows a file of the project, below ``files/``, is no page of its own.
    """
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    known = set(index["docnames"])
    made = {"search", "genindex", "py-modindex"}
    pages = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    faults = [
        f"search: expected every page in its index, found {page} missing; rebuild the site"
        for page in sorted(pages - known - made)
        if not page.startswith(("_", "files/"))
    ]
    if not index["terms"].get(word):
        faults.append(f"search: expected pages for {word!r}, found none; see searchindex.js")
    return faults
