# SPDX-License-Identifier: Apache-2.0
"""Refuses links of the built site that lead nowhere, and what a page would fetch from elsewhere.

Links to other sites are not followed: the build has no network.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

ELEMENT = re.compile(r"<(a|img|script|link|source)\b([^>]*)>")
ADDRESS = re.compile(r'\b(?:href|src)="([^"]*)"')
ANCHOR = re.compile(r'\b(?:id|name)="([^"]*)"')
IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


def is_elsewhere(address: str) -> bool:
    """Say whether an address is on another site."""
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme in ("http", "https")


def fault_of_link(link: str, file: Path, anchors: dict[Path, set[str]]) -> str:
    """Return what is wrong with a link within the site, or nothing."""
    parts = urlsplit(link)
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not target.is_file():
        return f"expected a file of the site, found {link}"
    known = anchors.get(target, {parts.fragment}) | {"", "top"}
    if unquote(parts.fragment) not in known:
        return f"expected an anchor of {target.name}, found #{parts.fragment}"
    return ""


def faults_of_links(site: Path) -> list[str]:
    """Find links and anchors that lead nowhere, and what would be fetched from another site."""
    site = site.resolve()
    texts = {file: file.read_text() for file in sorted(site.rglob("*.html"))}
    if not texts:
        return [f"{site}: expected built pages, found none; build the site first"]
    anchors = {file: set(ANCHOR.findall(text)) for file, text in texts.items()}
    faults = []
    for file, text in texts.items():
        fetched, linked = [], []
        for tag, attributes in ELEMENT.findall(text):
            found = ADDRESS.findall(attributes)
            is_page = tag == "a" or 'rel="canonical"' in attributes
            fetched += [] if is_page else found
            linked += [link for link in found if not is_elsewhere(link)]
        said = {fault_of_link(one, file, anchors) for one in linked if not urlsplit(one).scheme}
        said |= fetched_elsewhere([*fetched, *addresses_in(text)])
        faults += [f"{file.relative_to(site)}: {fault}; correct it" for fault in said if fault]
    for sheet in sorted(site.rglob("*.css")):
        said = fetched_elsewhere(addresses_in(sheet.read_text()))
        faults += [f"{sheet.relative_to(site)}: {fault}; keep a copy" for fault in said]
    return sorted(faults)


def addresses_in(style: str) -> list[str]:
    """Return what a style sheet names."""
    return [first or second for first, second in IN_STYLE.findall(style)]


def fetched_elsewhere(addresses: list[str]) -> set[str]:
    """Return a fault for each address on another site."""
    return {f"expected files of the site only, found {a}" for a in addresses if is_elsewhere(a)}
