# SPDX-License-Identifier: Apache-2.0
"""The invalid uses of the documentation say what docs/examples/invalid_uses/sentences.txt holds.

After a change of a sentence on purpose, ``USM_DLPACK_RENEW_SENTENCES=1`` writes it there.
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
from invalid_uses import FOLDER, ROOT, Use, uses_in
from recorded_uses import RECORD, read_record, write_record
from usm_dlpack import _core

ERRORS = ROOT / "docs" / "errors"
CODES = {code for code, _, _ in _core.error_table()}

SENTENCE = re.compile(
    r"(?P<field>[\w.\[\]]+|&lt;[\w/.]+&gt;|<[\w/.]+>|[\w.]+/[\w.]+): "
    r"expected (?P<expected>.+?), found (?P<found>.+?); (?P<remedy>.+)"
)


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
    for name, _ in uses_in("commands.sh"):
        uses.append(invalid_uses.run_command(name, folder, {}))
    uses += [invalid_uses.compile_use(name) for name, _ in uses_in("compile_time.cpp")]
    for name, _ in uses_in("building.sh"):
        uses.append(invalid_uses.build_wrongly(name, tmp_path_factory.mktemp(name)))
    if os.environ.get("USM_DLPACK_RENEW_SENTENCES") == "1":
        RECORD.write_text(write_record(uses), encoding="utf-8")
    return uses


def test_each_use_says_what_the_record_holds(said: list[Use]) -> None:
    assert said == read_record()


def test_the_record_is_the_uses_of_all_files() -> None:
    sources = [path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".cpp", ".sh")]
    written = [(source, name) for source in sources for name, _ in uses_in(source)]
    assert sorted(written) == sorted((use.source, use.name) for use in read_record())


def test_every_exception_is_a_house_sentence() -> None:
    for use in read_record():
        assert SENTENCE.search(use.sentence), use


# It needs an OpenCL GPU beside Level Zero: tests/level_zero/.
NOT_ON_THE_CPU = {"context_ambiguous"}


def test_every_code_has_a_use_and_a_page() -> None:
    assert CODES - {use.code for use in read_record()} == NOT_ON_THE_CPU
    assert {page.stem for page in ERRORS.glob("*.md")} >= CODES


# --- Every refusal of the sources

# What no use provokes on a CPU device. The last but one is that of g++ at compile time, which a
# compiler of kernels leaves to the run time.
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


def test_every_remedy_of_the_sources_is_recorded() -> None:
    sources = [*(ROOT / "include").rglob("*.hpp"), *(ROOT / "bindings").glob("*.cpp")]
    made = {pair for source in sources for pair in refusals_of(source.read_text(encoding="utf-8"))}
    assert len(made) > 60
    said: dict[str, str] = {}
    for use in read_record():
        said[use.code] = said.get(use.code, "") + use.sentence
    assert {pair for pair in made if pair[1] not in said.get(pair[0], "")} == UNPROVOKED
