# SPDX-License-Identifier: Apache-2.0
"""Every code block that a page shows is a region of a file that is built or run.

A block is a ``literalinclude``, or its lines stand in a file below one of the folders of `RUN`,
one after another. What is left are commands, which must exist, and the Python of pages that a test
runs as a whole.
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

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]

# Folders of files that are built or run.
RUN = ("docs/examples/", "examples/", "tests/", "benchmarks/", "include/", "bindings/", "python/")
# Pages whose Python a test runs as it stands there.
PYTHON_RUN_BY = {
    "README.md": "tests/python/test_readme.py",
}
# Directives that show no code; what is in them is read as a part of the page.
PROSE = {"note", "warning", "glossary", "toctree", "include", "diagram"}
PROSE |= {"error-table", "invalid-uses"}
OUTPUT = {"", "text", "console"}


@dataclass(frozen=True)
class Block:
    """A code block of a page: its language, or the file that it includes."""

    line: int
    language: str
    text: str
    included: str = ""


def blocks_of(text: str, first_line: int = 1) -> Iterator[Block]:
    """Find the code blocks of a page, also those within notes."""
    for token in MarkdownIt().parse(text):
        if token.type not in ("fence", "code_block"):
            continue
        line = first_line + (token.map or [0])[0]
        directive = re.match(r"\{([\w-]+)\}\s*(\S*)", token.info)
        if directive is None:
            yield Block(line, token.info.partition(" ")[0], token.content)
        elif directive[1] == "literalinclude":
            yield Block(line, "", "", directive[2])
        elif directive[1] not in PROSE:
            yield Block(line, directive[2], re.sub(r"\A(?::[\w-]+:.*\n)+\n?", "", token.content))
        elif directive[1] != "glossary":
            yield from blocks_of(token.content, line + 1)


@cache
def run_files(root: Path) -> dict[str, list[str]]:
    """Return the lines of each file that is built or run."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *RUN]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    files = {}
    for name in listed.splitlines():
        if (root / name).is_file():
            text = (root / name).read_text(errors="replace")
            files[name] = [line.rstrip() for line in text.splitlines()]
    return files


def dedented(lines: list[str]) -> list[str]:
    """Return lines without the indentation that all have."""
    return textwrap.dedent("\n".join(lines)).splitlines()


def stands_in(block: list[str], file: list[str]) -> bool:
    """Say whether the lines stand in a file, one after another."""
    return any(
        line.strip() == block[0].strip() and dedented(file[start : start + len(block)]) == block
        for start, line in enumerate(file)
    )


def is_output(block: list[str], files: dict[str, list[str]]) -> bool:
    """Say whether a line ends one that a test expects, which may say before it what answers."""
    kept = [line for name, lines in files.items() if name.endswith(".txt") for line in lines]
    return len(block) == 1 and any(line.endswith(f": {block[0]}") for line in kept)


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
        words = shlex.split(line.removeprefix("$ "), comments=True)
    except ValueError:  # prose, with an apostrophe
        return False
    if words[:2] == ["python3", "dev.py"]:
        return len(words) > 2 and words[2] in commands_of_dev(root)
    if words[:3] == ["cmake", "--workflow", "--preset"] and len(words) == 4:
        presets = json.loads((root / "CMakePresets.json").read_text())
        return any(preset["name"] == words[3] for preset in presets["workflowPresets"])
    programs = ("python3", ".dev/venv/bin/python", "bash")
    return len(words) > 1 and words[0] in programs and (root / words[1]).is_file()


def fault_of(block: Block, page: Path, root: Path) -> str:
    """Return what is wrong with a block, or nothing."""
    files = run_files(root)
    if block.included:
        target = (page.parent / block.included).resolve()
        name = str(target.relative_to(root)) if target.is_relative_to(root) else block.included
        if name in files:
            return ""
        return f"expected a file that is built or run, found {name}; move it below docs/examples/"
    lines = dedented([line.rstrip() for line in block.text.strip("\n").splitlines()])
    if not lines:
        return "expected code, found an empty block; remove it"
    if any(stands_in(lines, file) for file in files.values()):
        return ""
    if block.language == "python" and str(page.relative_to(root)) in PYTHON_RUN_BY:
        return ""
    if block.language in OUTPUT and is_output(lines, files):
        return ""
    if block.language in OUTPUT | {"sh"} and all(is_command(one, root) for one in lines if one):
        return ""
    return (
        f"expected the lines of a file that is built or run, found {lines[0]!r} and "
        f"{len(lines) - 1} more; include a region of such a file"
    )


def faults_of_code_blocks(root: Path = ROOT) -> list[str]:
    """Find code that no test has seen."""
    pages = [*(root / "docs").rglob("*.md"), root / "README.md", root / "CONTRIBUTING.md"]
    return [
        f"{page.relative_to(root)}:{block.line}: {fault}"
        for page in sorted(pages)
        for block in blocks_of(page.read_text())
        if (fault := fault_of(block, page, root))
    ]
