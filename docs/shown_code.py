# SPDX-License-Identifier: Apache-2.0
"""Every code block that a page shows is a region of a file that is built or run.

A block is a ``literalinclude``, or its lines stand in a file below one of the folders of `RUN`,
one after another, indented as a whole as they may be. What is left are commands, which must exist,
and the Python of the pages that a test runs as a whole.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Files that are built or run, and by what.
RUN = {
    "docs/examples/": "tests/python/test_guide_examples.py and its like",
    "examples/": "tests/python/test_examples.py and `dev.py interoperability`",
    "tests/": "`dev.py test` and the commands of CONTRIBUTING.md",
    "benchmarks/": "`dev.py speed` and `dev.py benchmark`",
    "include/": "every test",
    "bindings/": "every test of Python",
    "python/": "every test of Python",
    ".ci/run": "continuous integration",
}
# Pages whose Python a test runs as it stands there.
PYTHON_RUN_BY = {
    "README.md": "tests/python/test_readme.py",
    "docs/onednn.md": "tests/interoperability/test_onednn.py",
}
# Directives that show no code; what is in them is read as a part of the page.
PROSE = {
    *("admonition", "note", "warning", "tip", "important", "seealso", "glossary", "toctree"),
    *(
        "diagram",
        "error-table",
        "invalid-uses",
        "list-table",
        "figure",
        "image",
        "include",
        "contents",
        "dropdown",
        "tab-set",
    ),
}
OUTPUT = {"", "text", "console", "none"}

FENCE = re.compile(r"^( *)(`{3,}|:{3,})\s*(?:\{([\w-]+)\})?\s*(.*?)\s*$")
LIST_ITEM = re.compile(r"^ *(?:[-*+]|\d+[.)]) ")


@dataclass(frozen=True)
class Block:
    """A code block of a page: its language, or that it includes a file."""

    line: int
    language: str
    text: str
    included: str = ""


def indented_blocks(lines: list[tuple[int, str]]) -> Iterator[Block]:
    """Find what four spaces make code: behind an empty line, and not within a list."""
    found: list[tuple[int, str]] = []
    empty, in_list = True, False
    for number, line in [*lines, (0, "end")]:
        if found and (line.startswith("    ") or not line.strip()):
            found.append((number, line))
            continue
        if found:
            text = textwrap.dedent("\n".join(text for _, text in found)).strip("\n")
            yield Block(found[0][0], "", text)
            found = []
        if line.startswith("    ") and empty and not in_list:
            found = [(number, line)]
        elif LIST_ITEM.match(line):
            in_list = True
        elif line.strip() and not line.startswith(" "):
            in_list = False
        empty = not line.strip()


def blocks_of(lines: list[tuple[int, str]]) -> Iterator[Block]:
    """Find the code blocks of a page, also those within notes."""
    prose: list[tuple[int, str]] = []
    place = 0
    while place < len(lines):
        number, line = lines[place]
        opened = FENCE.match(line)
        if not opened:
            prose.append((number, line))
            place += 1
            continue
        indent, fence, directive, argument = opened.groups()
        end = place + 1
        while end < len(lines) and not re.fullmatch(
            rf" *{fence[0]}{{{len(fence)},}} *", lines[end][1]
        ):
            end += 1
        inside = lines[place + 1 : end]
        prose.append((number, ""))
        if directive in PROSE:
            cut = [(n, text.removeprefix(indent)) for n, text in inside]
            yield from (b for b in blocks_of(cut) if directive != "glossary" or b.language)
        elif directive == "literalinclude":
            yield Block(number, "", "", argument)
        else:
            text = textwrap.dedent("\n".join(text for _, text in inside))
            if directive:
                text = re.sub(r"\A(?::[\w-]+:.*\n)+\n?", "", text)
            language = argument.split(" ")[0]
            yield Block(number, language, text.strip("\n"))
        place = end + 1
    yield from indented_blocks(prose)


@cache
def run_files(root: Path) -> dict[str, list[str]]:
    """Return the lines of each file that is built or run."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *RUN],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    files = {}
    for name in listed:
        file = root / name
        if file.is_file() and file.stat().st_size < 1_000_000:
            try:
                files[name] = [line.rstrip() for line in file.read_text().splitlines()]
            except UnicodeDecodeError:
                continue
    return files


def dedented(lines: list[str]) -> list[str]:
    """Return lines without the indentation that all have."""
    return textwrap.dedent("\n".join(lines)).splitlines()


def stands_in(block: list[str], file: list[str]) -> bool:
    """Say whether the lines stand in a file, one after another."""
    first = block[0].strip()
    for start, line in enumerate(file):
        if line.strip() == first and dedented(file[start : start + len(block)]) == block:
            return True
    return False


def is_output(text: str, files: dict[str, list[str]]) -> bool:
    """Say whether a line ends one that a test expects, which may say before it what answers."""
    return "\n" not in text and any(
        line.endswith(f": {text}")
        for name, lines in files.items()
        if name.endswith(".txt")
        for line in lines
    )


@cache
def commands_of_dev(root: Path) -> frozenset[str]:
    """Return the commands of dev.py: the names in its table."""
    for node in ast.parse((root / "dev.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMMANDS":
            return frozenset(n.id for n in ast.walk(node.value) if isinstance(n, ast.Name))
    return frozenset()


def is_command(line: str, root: Path) -> bool:
    """Say whether a line calls what there is: dev.py, a program of the project, a workflow."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # prose, with an apostrophe
        return False
    if words[:2] == ["python3", "dev.py"]:
        return len(words) > 2 and words[2] in commands_of_dev(root)
    if words[:3] == ["cmake", "--workflow", "--preset"] and len(words) == 4:
        presets = json.loads((root / "CMakePresets.json").read_text())
        return any(preset["name"] == words[3] for preset in presets["workflowPresets"])
    if words and words[0] in ("python3", ".dev/venv/bin/python", "bash") and len(words) > 1:
        return (root / words[1]).is_file() and not words[1].startswith("/")
    return False


def fault_of(block: Block, page: Path, root: Path) -> str:
    """Return what is wrong with a block, or nothing."""
    files = run_files(root)
    if block.included:
        target = (page.parent / block.included).resolve()
        name = str(target.relative_to(root)) if target.is_relative_to(root) else block.included
        if name in files:
            return ""
        return f"expected a file that is built or run, found {name}; move it below docs/examples/"
    lines = dedented([line.rstrip() for line in block.text.splitlines()])
    if not lines:
        return "expected code, found an empty block; remove it"
    if any(stands_in(lines, file) for file in files.values()):
        return ""
    if block.language == "python" and str(page.relative_to(root)) in PYTHON_RUN_BY:
        return ""
    if block.language in OUTPUT and is_output("\n".join(lines), files):
        return ""
    if block.language in OUTPUT | {"sh", "bash"}:
        called = [line for line in lines if line.strip()]
        if all(is_command(line.removeprefix("$ "), root) for line in called):
            return ""
    return (
        f"expected the lines of a file that is built or run, found {lines[0]!r} and "
        f"{len(lines) - 1} more; include a region of such a file"
    )


def pages(root: Path) -> list[Path]:
    """Return the pages that show code."""
    return sorted([*(root / "docs").rglob("*.md"), root / "README.md", root / "CONTRIBUTING.md"])


def faults_of_code_blocks(root: Path = ROOT) -> list[str]:
    """Find code that no test has seen."""
    faults = []
    for page in pages(root):
        lines = list(enumerate(page.read_text().splitlines(), start=1))
        for block in blocks_of(lines):
            if fault := fault_of(block, page, root):
                faults.append(f"{page.relative_to(root)}:{block.line}: {fault}")
    return faults
