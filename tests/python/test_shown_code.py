# SPDX-License-Identifier: Apache-2.0
"""Code that a page shows is code that is run or built, and its commands exist.

Python is run by tests/python/test_guide_examples.py and its like, as it stands on the page.
"""

import functools
import json
import re
import subprocess
import sys
from typing import Any

import guide
import pytest
from usm_dlpack import ConversionError

DOCS, ROOT = guide.DOCS, guide.ROOT
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^```+(.*)$", re.MULTILINE)
LANGUAGES = {"python", "cpp", "cmake", "sh", "console", "text"}
DIRECTIVES = {"{toctree}", "{include}"}
# Pages whose commands test_guide_examples.py runs.
RUN_FROM_THE_PAGE = {DOCS / "how-to" / f"{name}.md" for name in ("cmake", "devices", "errors")}
BUILT_OR_RUN = ("docs/examples", "examples", "tests", "benchmarks", "include", "bindings")


def lines_of(text: str) -> str:
    """Return text with a line break around each line, and nothing else around it."""
    return "\n".join(["", *(line.strip() for line in text.strip().splitlines()), ""])


@functools.cache
def sources() -> str:
    """Return the lines of all files that are built or run."""
    files = [file for name in BUILT_OR_RUN for file in (ROOT / name).rglob("*") if file.is_file()]
    generated = {"build", "__pycache__"}
    return "".join(
        lines_of(file.read_text(errors="replace"))
        for file in files
        if not generated.intersection(file.relative_to(ROOT).parts)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_is_run_or_built(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"\{[\w:]+\}`", text), "a role of Sphinx, which a forge does not know"
    assert {word.partition(" ")[0] for word in FENCE.findall(text)[::2]} <= LANGUAGES | DIRECTIVES
    before = ""
    for language, block in guide.BLOCK.findall(text):
        if language == "console" and page not in RUN_FROM_THE_PAGE:
            assert re.fullmatch(r"python3 dev\.py \w+\n", block), block
        elif language == "text" and before not in ("python", "console"):
            assert block.strip() in sources(), block
        elif language in ("cpp", "cmake", "sh"):
            assert lines_of(block) in sources(), block
        before = language


def test_commands_exist():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    listed = subprocess.check_output(["python3", "dev.py", "--help"], cwd=ROOT, text=True)
    commands = re.findall(r"^    (\w+)", listed, re.MULTILINE)
    assert set(re.findall(r"python3 dev\.py (\w+)", text)) <= set(commands)
    for program in re.findall(r"(?:python3?|bash) ((?:docs|tests|\.ci)/[\w/.]*\w)", text):
        assert (ROOT / program).is_file(), program
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    assert set(re.findall(r"--preset (\w+)", text)) <= {preset["name"] for preset in presets}


def test_the_python_of_the_readme_is_refused_in_the_sentence_shown():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    *accepted, refused = example.splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(accepted), names)
    assert names["back"].data == names["tensor"].data
    with pytest.raises(ConversionError) as caught:
        exec(refused, names)
    assert f"\n    {caught.value}\n" in readme


def test_a_user_without_root_is_told_what_to_install():
    code = """
import os, dev
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    dev.require_debian_packages(["g++", "python3-venv"])
except dev.RefusalError as refusal:
    print(refusal)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == (
        "",
        "system packages: expected g++ (a C++17 compiler), python3-venv, found none of them; "
        "run `apt-get install g++ python3-venv` as root, or what your system has instead\n",
    )
