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
from invalid_uses import FOLDER, RECORD, ROOT, Use, names_of, read_record
from usm_dlpack import _core

ERRORS = ROOT / "docs" / "errors"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(ERRORS.glob("*.md"))}
# Pages beside those of the codes: refusals that have none.
OTHER_PAGES = {
    *("index", "python_arguments", "argument_error", "commands", "compile_time", "building"),
}
# It needs an OpenCL GPU beside Level Zero: tests/level_zero/.
NOT_ON_THE_CPU = "context_ambiguous"
# Pages of codes; docs/build.py writes those that have no use.
WITH_USES = {name for name, text in PAGES.items() if "% Written by docs/build.py" not in text}
WITH_USES -= OTHER_PAGES

# Regions that several uses share, and that no sentence follows.
SHARED = {"eight_int4", "exchange_api", "layout_of_halves", "memory_of", "received_tensor"}

INCLUDED = re.compile(
    r"```\{literalinclude\} \.\./examples/invalid_uses/([\w.]+)\n"
    r'(?::.*\n)*?:start-after: "\[begin (\w+)\]"\n:end-before: "\[end \2\]"\n(?::.*\n)*```\n'
    r"(?:(?!```).*\n)*?"
    r"```text\n(.*)\n```",
)
SENTENCE = re.compile(r"[\w./<>\[\]&;]+: expected .+, found .+; .+")


@pytest.fixture(scope="module")
def said(
    new_process: Any, driver: Path, driver_copies: Any, tmp_path_factory: pytest.TempPathFactory
) -> list[Use]:
    """Run every use, each file in a process that has the devices that it needs."""
    two = f"{driver}:{driver_copies['second']}"
    broken = f"{driver}:{driver_copies['broken']}"
    environments: dict[str, dict[str, str]] = {source: {} for source in invalid_uses.PLAIN}
    environments |= {
        "extension.py": {"PYTHONPATH": str(extension_under_test.build())},
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
    uses += [invalid_uses.run_command(name, folder) for name in names_of("commands.sh")]
    uses += [invalid_uses.compile_use(name) for name in names_of("compile_time.cpp")]
    for name in names_of("building.sh"):
        uses.append(invalid_uses.build_wrongly(name, tmp_path_factory.mktemp(name)))
    if os.environ.get("USM_DLPACK_RENEW_SENTENCES") == "1":
        RECORD.write_text(invalid_uses.write_record(uses), encoding="utf-8")
    return uses


def test_each_use_says_what_the_record_holds_in_house_sentences(said: list[Use]) -> None:
    assert said == read_record()
    for use in said:
        assert SENTENCE.search(use.sentence), use


def test_each_use_is_shown_with_its_sentence_on_the_page_of_its_code() -> None:
    codes = {code for code, _, _ in _core.error_table()}
    recorded = {(use.source, use.name): use for use in read_record()}
    shown = {}
    for page, text in PAGES.items():
        rows = INCLUDED.findall(text)
        for source, name, sentence in rows:
            use = shown[source, name] = recorded[source, name]
            assert use.sentence == sentence
            is_free = use.code not in codes or source == "extension.py"
            assert page == use.code or (is_free and page in OTHER_PAGES), use
        shared = sum(text.count(f'[begin {name}]"') for name in SHARED)
        assert text.count("literalinclude} ../examples/invalid_uses/") == len(rows) + shared
        assert rows or page not in WITH_USES - {NOT_ON_THE_CPU}, page
    assert shown == recorded
    sources = [path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".cpp", ".sh")]
    marked = {(source, name) for source in sources for name in names_of(source)}
    assert recorded.keys() == {pair for pair in marked if pair[1] not in SHARED}


def test_the_index_is_a_row_for_each_use() -> None:
    rows = re.findall(r"^\| .+? \| `` (.+?) `` \| (.+?) \|$", PAGES["index"], re.MULTILINE)
    expected = set()
    for page, text in PAGES.items():
        link = f"[{page}]({page}.md)" if page in OTHER_PAGES else f"{{error}}`{page}`"
        expected |= {(sentence, link) for _, _, sentence in INCLUDED.findall(text)}
    assert sorted(rows) == sorted(expected)


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
    ("dtype_unsupported", "convert the array, or reinterpret its memory"),
}
LITERAL = r'"((?:[^"\\]|\\.)*)"'


def refusals_of(text: str) -> set[tuple[str, str]]:
    """Return code and remedy of each call of `refuse` in a C++ source, whose remedy is a text."""
    found = set()
    for call in re.finditer(r"\brefuse\(\s*errc::(\w+),(.*?)\);", text, re.DOTALL):
        last = re.search(rf"((?:{LITERAL}\s*)+)$", call[2])
        if last is not None:
            remedy = "".join(re.findall(LITERAL, last[1])).replace('\\"', '"')
            found.add((call[1], remedy))
    return found


def test_every_remedy_of_the_sources_is_said_by_a_use() -> None:
    sources = [*(ROOT / "include").rglob("*.hpp"), *(ROOT / "bindings").glob("*.cpp")]
    made = {pair for source in sources for pair in refusals_of(source.read_text(encoding="utf-8"))}
    assert len(made) > 60
    said_by: dict[str, str] = {}
    for use in read_record():
        said_by[use.code] = said_by.get(use.code, "") + use.sentence
    unseen = {(c, remedy) for c, remedy in made if remedy not in said_by.get(c, "")}
    assert {pair for pair in unseen if pair[0] in WITH_USES} == UNPROVOKED
