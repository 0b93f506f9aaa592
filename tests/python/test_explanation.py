# SPDX-License-Identifier: Apache-2.0
"""The pages of the two protocols have the steps that `explain` prints."""

import re
from pathlib import Path
from typing import Any

import dpctl.memory
import pytest
import usm_dlpack

ROOT = Path(__file__).resolve().parents[2]


def plain(title: str) -> str:
    """Return a title as it reads, whatever its first letter is."""
    number, _, text = title.replace("`", "").partition(". ")
    return f"{number}. {text[0].lower()}{text[1:]}"


@pytest.mark.parametrize("direction", ["export", "import"])
def test_the_steps_of_the_page_are_those_of_explain(direction: str) -> None:
    memory = dpctl.memory.MemoryUSMDevice(48)
    x: Any = memory if direction == "export" else usm_dlpack.to_dlpack_tensor(memory)
    (walk,) = usm_dlpack.explain(x, direction=direction).walks  # type: ignore[arg-type]
    steps = [f"{step.number}. {step.title}" for step in walk.steps]
    page = (ROOT / "docs" / "explanation" / f"{direction}_protocol.md").read_text()
    headings = re.findall(r"^## (\d+\. .*)$", page, re.MULTILINE)
    assert [plain(heading) for heading in headings] == [plain(step) for step in steps]
