# SPDX-License-Identifier: Apache-2.0
"""Reads docs/examples/invalid_uses: the code of each use, and the sentence that it raises."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "examples" / "invalid_uses"
RECORD = FOLDER / "sentences.txt"

# The code of a use of each file, by its name.
PATTERNS = {
    "compile_time.cpp": r"^#(?:el)?if defined\((NAME)\)\n(.*?)(?=\n+#e)",
    ".cpp": r'^const use \w+\(\s*"(NAME)",.*?\[\] \{\n(.*?)^ *\}\);',
    ".py": r"^def (NAME)\(\) -> None:\n(.*?)(?=\n\n\n|\Z)",
    ".sh": r"^  (NAME)\)\n(.*?)^    ;;",
}

# The pages that are about no code, and what they show: exceptions of Python, or a file.
SHOWN_ON = {
    "building": ("building.sh",),
    "commands": ("commands.sh",),
    "compile_time": ("compile_time.cpp",),
    "python_arguments": ("TypeError", "ValueError", "AttributeError"),
}


@dataclass(frozen=True)
class Use:
    """An invalid use: where it stands, the code or exception that it raises, and the sentence."""

    source: str
    name: str
    code: str
    sentence: str

    @property
    def title(self) -> str:
        """The name as words."""
        words = self.name.replace("_", " ")
        for word, spelled in (("usm", "USM"), ("sycl", "SYCL"), ("dlpack", "DLPack")):
            words = re.sub(rf"\b{word}\b", spelled, words)
        return words[0].upper() + words[1:]

    @property
    def shown(self) -> str:
        """The lines of the use."""
        return dict(uses_in(self.source))[self.name]


def uses_in(source: str) -> list[tuple[str, str]]:
    """Return name and lines of each use of a file, in their order."""
    pattern = PATTERNS.get(source) or PATTERNS[Path(source).suffix]
    found = re.finditer(
        pattern.replace("NAME", r"\w+"),
        (FOLDER / source).read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return [(use[1], textwrap.dedent(use[2]).strip("\n")) for use in found]


def read_record() -> list[Use]:
    """Return the uses of ``sentences.txt``: two lines each, the second one indented."""
    uses = []
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    for head, sentence in zip(lines[1::2], lines[2::2], strict=True):
        source, name, code = (part.strip() for part in head.split("|"))
        uses.append(Use(source, name, code, sentence.strip()))
    return uses


def uses_of(page: str) -> list[Use]:
    """Return the uses that a page of docs/errors shows."""
    wanted = SHOWN_ON.get(page, (page,))
    return [use for use in read_record() if use.code in wanted or use.source in wanted]


def write_record(uses: list[Use]) -> str:
    """Return the text of ``sentences.txt``."""
    head = "What the invalid uses of this folder say; tests/python/test_invalid_uses.py compares."
    entries = (f"{use.source} | {use.name} | {use.code}\n  {use.sentence}\n" for use in uses)
    return "".join([f"{head}\n", *entries])
