# SPDX-License-Identifier: Apache-2.0
"""The invalid uses of the documentation: each says what its page shows, on the page of its code.

After a change of a sentence on purpose, ``USM_DLPACK_RENEW_SENTENCES=1`` writes what was said to
docs/examples/invalid_uses/sentences.txt; the pages are corrected by hand.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import extension_under_test
import invalid_uses
import pytest
from invalid_uses import FOLDER, RECORD, ROOT, Use, names_of, read_record, region
from usm_dlpack import _core

DOCS = ROOT / "docs"
ERRORS = DOCS / "errors"
CODES = [code for code, _, _ in _core.error_table()]
# Pages without a use, which docs/build.py makes of the table.
GENERATED = {
    page.stem
    for page in ERRORS.glob("*.md")
    if "% Written by docs/build.py" in page.read_text(encoding="utf-8")
}

# Pages beside those of the codes: refusals that have none.
OTHER_PAGES = {
    *("index", "python_arguments", "argument_error", "commands", "compile_time", "building"),
}

# Regions that several uses share, and that no sentence follows.
SHARED = {"eight_int4", "exchange_api", "layout_of_halves", "memory_of", "received_tensor"}

INCLUDED = re.compile(
    r"```\{literalinclude\} \.\./examples/invalid_uses/(?P<source>[\w.]+)\n"
    r"(?P<options>(?::.*\n)*)```\n"
    r"(?P<between>(?:(?!```).*\n)*?)"
    r"```text\n(?P<sentence>.*\n)```",
)
START = re.compile(r'^:start-after: "\[begin (\w+)\]"$', re.MULTILINE)
END = re.compile(r'^:end-before: "\[end (\w+)\]"$', re.MULTILINE)
SENTENCE = re.compile(
    r"(?P<field>[\w.\[\]]+|&lt;[\w/.]+&gt;|<[\w/.]+>|[\w.]+/[\w.]+): "
    r"expected (?P<expected>.+?), found (?P<found>.+?); (?P<remedy>.+)"
)


def shown_on(page: Path) -> list[tuple[str, str, str]]:
    """Return source, name and sentence of each use that a page shows."""
    shown = []
    for found in INCLUDED.finditer(page.read_text(encoding="utf-8")):
        start, end = START.search(found["options"]), END.search(found["options"])
        assert start is not None, found[0]
        assert end is not None, found[0]
        assert start[1] == end[1], found[0]
        assert ":language: " in found["options"], found[0]
        shown.append((found["source"], start[1], found["sentence"].strip()))
    return shown


# --- What the uses say


@pytest.fixture(scope="module")
def said(
    new_process: Any, driver: Path, driver_copies: Any, tmp_path_factory: pytest.TempPathFactory
) -> list[Use]:
    """Run every use, each file in a process that has the devices that it needs."""
    two = f"{driver}:{driver_copies['second']}"
    broken = f"{driver}:{driver_copies['broken']}"
    extension = str(extension_under_test.build())
    environments: dict[str, dict[str, str]] = {source: {} for source in invalid_uses.PLAIN}
    environments |= {
        "extension.py": {"PYTHONPATH": extension},
        "two_devices.py": {"OCL_ICD_FILENAMES": two},
        "broken_device.py": {"OCL_ICD_FILENAMES": broken},
        "no_device.py": {"ONEAPI_DEVICE_SELECTOR": "level_zero:*"},
        "wrong_selector.py": {"ONEAPI_DEVICE_SELECTOR": "nonsense"},
    }
    uses = []
    for source, variables in environments.items():
        done = new_process(arguments=(invalid_uses.__file__, source), **variables)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        for name, kind, code, sentence in json.loads(done.stdout):
            assert kind, f"{source}: {name}: {sentence}"
            uses.append(Use(source, name, code or kind, sentence))
    programs = invalid_uses.build_programs()
    plain = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(driver.parent)}
    plain |= {"OCL_ICD_FILENAMES": str(driver)}
    selected = {"OCL_ICD_FILENAMES": two, "ONEAPI_DEVICE_SELECTOR": "opencl:1"}
    for arguments, variables in (
        (["views_and_tensors"], {}),
        (["usm"], {}),
        (["usm", "two_devices"], {"OCL_ICD_FILENAMES": two}),
        (["opencl"], {}),
        (["opencl", "hidden_device"], selected),
        (["opencl", "no_opencl"], {"ONEAPI_DEVICE_SELECTOR": "level_zero:*"}),
    ):
        program, *rest = arguments
        environment = plain | variables
        uses += invalid_uses.run_program(programs / program, *rest, environment=environment)
    folder = tmp_path_factory.mktemp("commands")
    for name in names_of("commands.sh"):
        uses.append(invalid_uses.run_command(name, folder, {}))
    uses += [invalid_uses.compile_use(name) for name in names_of("compile_time.cpp")]
    for name in names_of("building.sh"):
        uses.append(invalid_uses.build_wrongly(name, tmp_path_factory.mktemp(name)))
    if os.environ.get("USM_DLPACK_RENEW_SENTENCES") == "1":
        RECORD.write_text(invalid_uses.write_record(uses), encoding="utf-8")
    return uses


def test_each_use_says_what_the_record_holds(said: list[Use]) -> None:
    assert said == read_record()


def test_the_record_is_the_uses_of_all_files() -> None:
    sources = [path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".cpp", ".sh")]
    marked = {(source, name) for source in sources for name in names_of(source)}
    recorded = [(use.source, use.name) for use in read_record()]
    assert marked - set(recorded) == {pair for pair in marked if pair[1] in SHARED}
    assert len(recorded) == len(set(recorded))
    assert set(recorded) <= marked
    for source, name in recorded:
        assert region(source, name).strip()


def test_every_exception_is_a_house_sentence() -> None:
    for use in read_record():
        assert SENTENCE.search(use.sentence), use


# --- Pages


def test_each_page_has_a_code() -> None:
    pages = {path.stem for path in ERRORS.glob("*.md")}
    assert OTHER_PAGES <= pages <= set(CODES) | OTHER_PAGES


# It needs an OpenCL GPU beside Level Zero: tests/level_zero/.
NOT_ON_THE_CPU = "context_ambiguous"
WITH_USES = sorted(
    {page.stem for page in ERRORS.glob("*.md")} - OTHER_PAGES - GENERATED - {NOT_ON_THE_CPU}
)


@pytest.mark.parametrize("code", WITH_USES)
def test_the_page_of_a_code_shows_uses_that_are_refused_by_it(code: str) -> None:
    page = ERRORS / f"{code}.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# `{code}`\n")
    shown = shown_on(page)
    assert shown
    recorded = {(use.source, use.name): use for use in read_record()}
    for source, name, sentence in shown:
        use = recorded[source, name]
        assert (use.code, use.sentence) == (code, sentence)


def test_every_use_is_shown_on_the_page_of_its_code() -> None:
    homes = {use: page for page in sorted(ERRORS.glob("*.md")) for use in shown_on(page)}
    for use in read_record():
        home = homes.get((use.source, use.name, use.sentence))
        assert home is not None, f"{use.source}: {use.name} is shown nowhere; add it to its page"
        if use.code in CODES and use.source != "extension.py":
            assert home.stem == use.code, use
        else:
            assert home.stem in OTHER_PAGES | {use.code}, use


def test_each_included_region_has_its_sentence_behind_it() -> None:
    for page in ERRORS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        included = text.count("```{literalinclude} ../examples/invalid_uses/")
        shared = sum(text.count(f'[begin {name}]"') for name in SHARED)
        assert len(shown_on(page)) == included - shared, page.name


# --- Every refusal of the sources

# What no use provokes: the pages show the header that makes the sentence, and say why. The last one
# is that of g++ at compile time, which a compiler of kernels leaves to the run time.
UNPROVOKED = {
    ("context_ambiguous", "pass the queue or the context of the one that is meant"),
    ("pointer_unknown", "pass a queue, or the context, of the device that is meant"),
    (
        "backend_not_accepted",
        "use a device of the backend opencl, or the handles of the other backend",
    ),
    (
        "runtime_error",
        "check that the device works, for example with python -m usm_dlpack devices",
    ),
    (
        "usm_type_not_accepted",
        "copy the elements to host or shared USM, or index in a kernel",
    ),
}
LITERAL = r'"((?:[^"\\]|\\.)*)"'


def refusals_of(text: str) -> set[tuple[str, str]]:
    """Return code and remedy of each call of `refuse` in a C++ source, whose remedy is a text."""
    found = set()
    calls = re.finditer(r"\brefuse\(\s*errc::(\w+),(.*?)\);", text, re.DOTALL)
    for call in calls:
        last = re.search(rf"((?:{LITERAL}\s*)+)$", call[2])
        if last is not None:
            remedy = "".join(re.findall(LITERAL, last[1])).replace('\\"', '"')
            found.add((call[1], remedy))
    return found


def test_every_remedy_of_the_sources_is_shown_on_the_page_of_its_code() -> None:
    sources = [*(ROOT / "include").rglob("*.hpp"), *(ROOT / "bindings").glob("*.cpp")]
    made = {pair for source in sources for pair in refusals_of(source.read_text(encoding="utf-8"))}
    assert len(made) > 60
    shown: dict[str, str] = {}
    for use in read_record():
        shown[use.code] = shown.get(use.code, "") + use.sentence
    with_uses = {*WITH_USES, NOT_ON_THE_CPU}
    unseen = {
        pair for pair in made if pair[0] in with_uses and pair[1] not in shown.get(pair[0], "")
    }
    assert unseen == UNPROVOKED


def test_the_index_is_a_row_for_each_use() -> None:
    text = (ERRORS / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .+? \| `` (.+?) `` \| (.+?) \|$", text, re.MULTILINE)
    assert sorted(rows) == sorted({(use.sentence, page_link(use)) for use in read_record()})


def page_link(use: Use) -> str:
    """Return how the index links to the page that shows a use."""
    for page in sorted(ERRORS.glob("*.md")):
        if (use.source, use.name, use.sentence) in shown_on(page):
            if page.stem in OTHER_PAGES:
                return f"[{page.stem}]({page.name})"
            return f"{{error}}`{page.stem}`"
    raise AssertionError(f"{use.source}: {use.name} is shown nowhere")


# --- Sentences on other pages


Key = tuple[str, str, str]


def key_of(field: str, expected: str, remedy: str) -> Key:
    """Return what a sentence is recognised by on another page, whatever its numbers are."""
    first = re.sub(r"\d+", "0", expected.split()[0])
    return re.sub(r"\[\d+\]", "", field), first, remedy.strip()


def known_sentences() -> dict[Key, set[str]]:
    """Return the pages of errors that show a sentence."""
    known: dict[Key, set[str]] = {}
    for page in ERRORS.glob("*.md"):
        for _, _, sentence in shown_on(page):
            for found in SENTENCE.finditer(sentence):
                key = key_of(found["field"], found["expected"], found["remedy"])
                known.setdefault(key, set()).add(page.stem)
    return known


def sentences_in(text: str) -> list[tuple[str, Key]]:
    """Return each sentence of a page, with the section that it stands in."""
    found = []
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        for line in section.splitlines():
            # A placeholder, as in the shape of all sentences, is no sentence.
            for sentence in re.finditer(
                r"(?<![<\w])([\w.\[\]]+): expected ([^;<]+), found [^;<]+; ([^`|]+?) *(?=[`|]|$)",
                line,
            ):
                found.append((section, key_of(*sentence.groups())))
    return found


def pages_with_sentences() -> list[Path]:
    """Return the pages that are no pages of errors."""
    return sorted(page for page in DOCS.rglob("*.md") if page.parent != ERRORS)


@pytest.mark.parametrize("page", pages_with_sentences(), ids=lambda page: page.stem)
def test_each_sentence_on_a_page_links_to_the_page_of_its_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for section, key in sentences_in(text):
        linked = set(re.findall(r"\{error\}`(\w+)`", section))
        linked |= set(re.findall(r"errors/(\w+)\.md", section))
        linked |= set(re.findall(r"`(\w+)`", section))  # of which the site makes a link
        # A sentence of an example's own has the code of one of this library's.
        homes = known_sentences().get(key, set(CODES))
        assert homes & linked, f"{page.name}: expected a link to a page of {homes} beside {key}"
