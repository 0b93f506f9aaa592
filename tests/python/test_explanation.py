# SPDX-License-Identifier: Apache-2.0
"""The pages of explanation: their code runs, and the steps are those that `explain` prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl.memory
import pytest
import usm_dlpack

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "explanation"
EXAMPLES = ROOT / "docs" / "examples" / "explanation"
DIAGRAMS = ROOT / "docs" / "diagrams"
DIRECTIONS = ("export", "import")


def steps_of(direction: str) -> list[str]:
    """Return number and title of each step of a protocol that `explain` walks."""
    memory = dpctl.memory.MemoryUSMDevice(48)
    x: Any = memory if direction == "export" else usm_dlpack.to_dlpack_tensor(memory)
    (walk,) = usm_dlpack.explain(x, direction=direction).walks
    return [f"{step.number}. {step.title}" for step in walk.steps]


def plain(title: str) -> str:
    """Return a title as it reads, whatever its first letter is."""
    number, _, text = title.replace("`", "").partition(". ")
    return f"{number}. {text[0].lower()}{text[1:]}"


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_steps_of_a_page_are_those_of_explain(direction: str) -> None:
    page = (PAGES / f"{direction}_protocol.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (\d+\. .*)$", page, re.MULTILINE)
    assert [plain(heading) for heading in headings] == [plain(s) for s in steps_of(direction)]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_steps_of_a_diagram_are_those_of_explain(direction: str) -> None:
    diagram = (DIAGRAMS / f"{direction}_steps.dot").read_text(encoding="utf-8")
    labels = re.findall(r'^  step_\d+ \[label="(.*)"\]$', diagram, re.MULTILINE)
    assert [label.replace("\\n", " ") for label in labels] == steps_of(direction)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_each_step_refuses_on_its_page_what_the_diagram_draws(direction: str) -> None:
    page = (PAGES / f"{direction}_protocol.md").read_text(encoding="utf-8")
    diagram = (DIAGRAMS / f"{direction}_steps.dot").read_text(encoding="utf-8")
    sections = re.split(r"^## \d+\. ", page, flags=re.MULTILINE)[1:]
    drawn = re.findall(r'^  refused_\d+ \[label="(.*?)"', diagram, re.MULTILINE)
    assert len(drawn) == len(sections)
    for section, codes in zip(sections, drawn, strict=True):
        refused = section.partition("\nRefused: ")[2]
        for code in codes.split("\\n"):
            assert f"`{code}`" in refused, code


# --- The code of the pages


def test_all_examples_are_run_here_and_shown() -> None:
    shown = set()
    for page in PAGES.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        shown |= set(re.findall(r"\{literalinclude\} \.\./examples/explanation/(\w+)\.py", text))
    assert shown == {path.stem for path in EXAMPLES.glob("*.py")} == RUN | ON_TWO_DEVICES


RUN = {"default_context", "lifetimes", "proofs", "synchronisation"}
ON_TWO_DEVICES = {"device_id", "selected_device"}


@pytest.mark.parametrize("name", sorted(RUN))
def test_an_example_is_true(name: str, succeed: Callable[..., str]) -> None:
    assert succeed(arguments=(str(EXAMPLES / f"{name}.py"),)) == ""


@pytest.mark.parametrize("name", sorted(ON_TWO_DEVICES))
def test_an_example_is_true_on_two_devices(
    name: str, driver: Path, driver_copies: Any, succeed: Callable[..., str]
) -> None:
    variables = {"OCL_ICD_FILENAMES": f"{driver}:{driver_copies['second']}"}
    if name == "selected_device":
        variables["ONEAPI_DEVICE_SELECTOR"] = "opencl:1"
    assert succeed(arguments=(str(EXAMPLES / f"{name}.py"),), **variables) == ""
