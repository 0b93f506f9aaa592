# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of README.md and of the pages of docs/ as a reader would, in new processes.

A program begins with a block that begins with an import, and ends before the next one of the page.
The `text` right after one of its blocks is what it prints; where it raises, also the last line of
the traceback. Each section of docs/errors/ counts as a page.
"""

import contextlib
import io
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import clean_environment

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
NOTE = re.compile(r"\w+: python -m usm_dlpack errors ")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Program:
    """A program, the page that shows it, and what the page says that it prints."""

    page: str
    code: str = ""
    printed: str = ""

    @property
    def modules(self) -> set[str]:
        return set(re.findall(r"^(?:import|from) (\w+)", self.code, re.MULTILINE))

    def run(self, folder: Path, *launcher: str | Path, **variables: str) -> str:
        """Run it in a folder, and return what it printed, and raised, without an error's note."""
        file = folder / "program.py"
        file.write_text(self.code, encoding="utf-8")
        done = clean_environment.run(*launcher, sys.executable, file, cwd=folder, **variables)
        raised = [line for line in done.stderr.splitlines() if not NOTE.match(line)]
        assert bool(raised) == bool(done.returncode)
        return done.stdout + "".join(f"{line}\n" for line in raised[-1:])

    def run_here(self) -> str:
        """Run it in this process, with the same result."""
        printed, raised = io.StringIO(), ""
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(self.code, self.page, "exec"), {"__name__": "__main__"})
            except Exception as error:
                raised = traceback.format_exception_only(error)[0]
        return printed.getvalue() + raised


def text_of(page: str) -> str:
    """Return the text of a page, or of the section that follows `#` in its name."""
    name, _, title = page.partition("#")
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0] if title else text


def blocks_of(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall(text_of(page))


def programs_of(page: str) -> list[Program]:
    programs: list[Program] = []
    before = ""
    for language, text in blocks_of(page):
        if language == "python":
            if text.startswith("import "):
                programs.append(Program(page))
            programs[-1].code += text
        elif language == "text" and before == "python":
            programs[-1].printed += text
        before = language
    return programs


def sections_of(page: str) -> list[str]:
    """Return the names of a page of errors' sections; of another page, its own name."""
    titles = re.findall(r"^## (.+)$", text_of(page), re.MULTILINE)
    return [f"{page}#{title}" for title in titles] if page.startswith("errors/") else [page]


FILES = sorted(str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md"))
PAGES = [page for file in FILES for page in sections_of(file)]
PAGES.append("../README")
PROGRAMS = {
    f"{page} {number}": program
    for page in PAGES
    for number, program in enumerate(programs_of(page), 1)
}
