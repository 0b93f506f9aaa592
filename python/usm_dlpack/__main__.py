# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack``: the devices and versions of this environment; ``errors`` on codes.

A command is a parser in `main`, and a function that prints and returns the exit status.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_DESCRIPTION = """\
Prints the versions, the driver and the devices of this environment, and what is wrong with them.
DLPack's ids of the devices are those in a tuple (14, device_id). Exits with 1 if something is
wrong.
"""
_ERRORS = "Prints the section of the documentation on an error code, or the list of all codes."

# A heading, and the first paragraph, which says what the code means.
_SECTION = re.compile(r"^## `(\w+)`\n\n(.+?)\n\n", re.MULTILINE | re.DOTALL)
# Of the documentation, only the sections of codes are installed.
_REFERENCE = re.compile(r"\s\(\[[^\]]+\]\([^)\s]+\.md[^)\s]*\)\)")
_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\.md[^)\s]*\)")
_LABEL = re.compile(r"\*\*([^*\n]+)\*\*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m usm_dlpack", description=_DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    commands = parser.add_subparsers(dest="command", metavar="errors")
    errors = commands.add_parser("errors", help=_ERRORS, description=_ERRORS)
    errors.add_argument("code", metavar="CODE", nargs="?", help="for example out_of_bounds")
    options = parser.parse_args(arguments)
    return _print_errors(options.code) if options.command else _print_environment(options.json)


def _print_environment(as_json: bool) -> int:
    from usm_dlpack._environment import examine

    report = examine()
    print(json.dumps(report, indent=2) if as_json else _text_of(report))
    return 1 if report["problems"] else 0


def _text_of(report: dict[str, Any]) -> str:
    lines = []
    for title in ("versions", "files", "variables"):
        rows = [f"  {name:15}  {value or 'none'}" for name, value in report[title].items()]
        lines += [f"{title}:", *rows] if rows else []
    lines.append("devices, by DLPack's (14, device_id):" if report["devices"] else "devices: none")
    for device in report["devices"]:
        lines += [
            f"  (14, {device['device_id']})  {device['name']}",
            f"    {device['filter_string']}, {device['backend']}, {device['type']}",
            f"    driver {device['driver_version']}, USM: {', '.join(device['usm_types'] or [])}",
        ]
    lines.append("problems:" if report["problems"] else "problems: none")
    lines += [f"  {problem}" for problem in report["problems"]]
    return "\n".join(lines)


def _sections() -> dict[str, tuple[str, str]]:
    """Return the meaning of each code, on one line, and the rest of its section."""
    from usm_dlpack import _paths

    sections = {}
    for file in sorted(Path(_paths.installed("errors")).glob("*.md")):
        _, *parts = _SECTION.split(file.read_text(encoding="utf-8"))
        for code, meaning, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            sections[code] = _plain(meaning).replace("\n", " "), text
    return sections


def _plain(markdown: str) -> str:
    """Return Markdown for a terminal: without links, with code indented."""
    text = _LABEL.sub(r"\1", _LINK.sub(r"\1", _REFERENCE.sub("", markdown)))
    lines = []
    indent = ""
    for line in text.strip().splitlines():
        if line.startswith("```"):
            indent = "" if indent else "    "
        else:
            lines.append((indent + line).rstrip())
    return "\n".join(lines)


def _print_errors(code: str | None) -> int:
    sections = _sections()
    if code is None:
        width = max(map(len, sections))
        for name, (meaning, _) in sections.items():
            print(f"{name:{width}}  {meaning}")
        return 0
    if code not in sections:
        print(
            f"code: expected the code of an error, found {code!a}; run `python -m usm_dlpack "
            "errors`, which lists all",
            file=sys.stderr,
        )
        return 2
    meaning, text = sections[code]
    print(f"{code}: {meaning}\n\n{_plain(text)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
