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
EXAMPLES = ROOT / "docs" / "examples" / "explanation"
ON_TWO_DEVICES = {"device_id", "selected_device"}


def plain(title: str) -> str:
    """Return a title as it reads, whatever its first letter is."""
    number, _, text = title.replace("`", "").partition(". ")
    return f"{number}. {text[0].lower()}{text[1:]}"


@pytest.mark.parametrize("direction", ["export", "import"])
def test_the_steps_of_page_and_diagram_are_those_of_explain(direction: str) -> None:
    memory = dpctl.memory.MemoryUSMDevice(48)
    x: Any = memory if direction == "export" else usm_dlpack.to_dlpack_tensor(memory)
    (walk,) = usm_dlpack.explain(x, direction=direction).walks  # type: ignore[arg-type]
    steps = [f"{step.number}. {step.title}" for step in walk.steps]
    page = (ROOT / "docs" / "explanation" / f"{direction}_protocol.md").read_text()
    headings = re.findall(r"^## (\d+\. .*)$", page, re.MULTILINE)
    assert [plain(heading) for heading in headings] == [plain(step) for step in steps]
    diagram = (ROOT / "docs" / "diagrams" / f"{direction}_steps.dot").read_text()
    labels = re.findall(r'^  step_\d+ \[label="(.*)"\]$', diagram, re.MULTILINE)
    assert [label.replace("\\n", " ") for label in labels] == steps
    drawn = re.findall(r'^  refused_\d+ \[label="(.*?)"', diagram, re.MULTILINE)
    refused = re.findall(r"^Refused: (.*?)(?=\n\n|\Z)", page, re.DOTALL | re.MULTILINE)
    for on_page, codes in zip(refused, drawn, strict=True):
        assert [code for code in codes.split("\\n") if f"`{code}`" not in on_page] == []


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_an_example_is_true(
    name: str, several_devices: Callable[[int], dict[str, str]], succeed: Callable[..., str]
) -> None:
    variables = several_devices(2) if name in ON_TWO_DEVICES else {}
    if name == "selected_device":
        variables["ONEAPI_DEVICE_SELECTOR"] = "opencl:1"
    assert succeed(arguments=(str(EXAMPLES / f"{name}.py"),), **variables) == ""
