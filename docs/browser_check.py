# SPDX-License-Identifier: Apache-2.0
"""Looks at the built site in Chromium: every page, narrow and wide, light and dark.

A page must not be wider than the window, ask for nothing that is not a file of the site, log no
error, and show text that stands out from what is behind it. ``--screenshots`` keeps what was seen.
Chromium is told what to do through its debugging pipe, so nothing but Debian's package is needed.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (390, 1400)
SCHEMES = ("light", "dark")

# Text of at least this contrast is readable: WCAG 2.1, level AA, with its ratio for large text,
# because colours of code and of plots count too.
LEAST_CONTRAST = 3.0

LOOK = """
(async () => {
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
})()
"""


@dataclass
class Browser:
    """Chromium without a window, told what to do in JSON, each message ended by a zero byte."""

    folder: str
    process: subprocess.Popen[bytes] = field(init=False)
    session: str = ""
    number: int = 0
    rest: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start it, with the ends of two pipes as its descriptors 3 and 4."""
        its_input, self.to = os.pipe()
        self.back, its_output = os.pipe()
        high = [os.dup2(its_input, 63), os.dup2(its_output, 64)]
        command = [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--remote-debugging-pipe", f"--user-data-dir={self.folder}", "--no-first-run"),
        ]
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" 3<&63 4>&64 63<&- 64>&-', "bash", *command],
            pass_fds=high,
            stderr=subprocess.DEVNULL,
        )
        for end in (its_input, its_output, *high):
            os.close(end)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        while b"\0" not in self.rest:
            read = os.read(self.back, 1 << 20)
            if not read:
                raise RuntimeError("chromium: expected an answer, found its end; run it by hand")
            self.rest += read
        message, _, self.rest = self.rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; keep the events that come before it."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, page: Path) -> None:
        """Go to a page, and wait until all of it is there."""
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)


def faults_of_events(events: list[dict[str, Any]]) -> list[str]:
    """Return what a page logged, and what it asked for besides files."""
    faults = []
    for event in events:
        parameters = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            address = parameters["request"]["url"]
            if not address.startswith(("file:", "data:")):
                faults.append(f"expected files of the site only, found a request of {address}")
        elif event["method"] == "Runtime.exceptionThrown":
            faults.append(f"expected no exception, found {parameters['exceptionDetails']['text']}")
        elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            entry = parameters["entry"]
            faults.append(f"expected no error, found {entry['text']} {entry.get('url', '')}")
    return faults


def look(browser: Browser, width: int, scheme: str) -> list[str]:
    """Return what is wrong with the open page in a window of a width and in a colour scheme."""
    browser.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=900, deviceScaleFactor=1, mobile=width < 800,
    )  # fmt: skip
    browser.ask(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    script = LOOK.replace("LEAST", str(LEAST_CONTRAST))
    answer = browser.ask(
        "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
    )
    seen = answer["result"]["value"]
    faults = []
    if seen["width"] > width:
        faults.append(f"expected at most {width} pixels, found a page of {seen['width']}")
    if seen["faint"]:
        faults.append(f"expected a contrast of {LEAST_CONTRAST}, found {', '.join(seen['faint'])}")
    return faults


def look_at_all_ways(browser: Browser, page: Path, screenshots: Path | None) -> list[str]:
    """Return what is wrong with a page; keep a picture of each way if a place for it is given."""
    browser.open(page)
    faults = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            faults += [f"at {width}, {scheme}: {fault}" for fault in look(browser, width, scheme)]
            if screenshots:
                shown = browser.ask("Page.captureScreenshot", format="png")["data"]
                file = screenshots / f"{width}-{scheme}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(base64.b64decode(shown))
    return faults + faults_of_events(browser.events)


def main() -> int:
    """Look at each page of the site in each way."""
    parser = argparse.ArgumentParser(prog="docs/browser_check.py", description=__doc__)
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "docs" / "html")
    parser.add_argument("--screenshots", type=Path, help="folder for pictures of what was seen")
    parser.add_argument("pages", nargs="*", help="paths below the site; all pages if none")
    options = parser.parse_args()
    site = options.site.resolve()
    pages = [site / name for name in options.pages] or sorted(site.rglob("*.html"))
    if not pages:
        print(f"{site}: expected built pages, found none; run `python3 dev.py docs`")
        return 1
    failed = 0
    folder = tempfile.mkdtemp()
    browser = Browser(folder)
    try:
        for page in pages:
            name = page.relative_to(site)
            kept = options.screenshots / name.with_suffix("") if options.screenshots else None
            for fault in look_at_all_ways(browser, page, kept):
                failed += 1
                print(f"{name}: {fault}")
    finally:
        browser.close()
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{'FAILED' if failed else 'passed'}: {len(pages)} pages, {len(WIDTHS)} widths, 2 schemes"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
