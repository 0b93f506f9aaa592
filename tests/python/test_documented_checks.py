# SPDX-License-Identifier: Apache-2.0
"""docs/checks.md says the order of checks that the C++ tests prove."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "checks.md"
CORE_TEST = ROOT / "tests" / "cpp" / "core" / "order_of_checks.cpp"
SYCL_TEST = ROOT / "tests" / "cpp" / "sycl" / "test_order_of_checks.cpp"

REFERENCE = re.compile(r"\[(\w+)\]\(#\w+\) (\d+) to (\d+)$")
STEP = re.compile(r"^\| (\d+|-) \| ([^|]*?) *\| ([^|]*?) *\| ([^|]*?) *\|$", re.MULTILINE)
TABLE_ROW = re.compile(r'\{errc::(\w+),\s*"([^"]*)",')
# The steps of each list by its heading: number, what is refused, field, and codes of the outcomes.
STEPS = {
    section.partition("\n")[0]: STEP.findall(section)
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
}

# Each list of the page, the test that proves it, and the table there.
LISTS = [
    ("view", CORE_TEST, "view_rules"),
    ("check_structure", CORE_TEST, "structure_rules"),
    ("to_mdspan", CORE_TEST, "to_mdspan_rules"),
    ("managed", CORE_TEST, "legacy_rules"),
    ("validate", SYCL_TEST, "validate_rules"),
    ("export", SYCL_TEST, "export_rules"),
    ("opencl", SYCL_TEST, "opencl_rules"),
]


def expanded(name: str) -> list[tuple[str, str, str, str]]:
    """Return the steps of a list, those of the lists that it refers to in their place."""
    steps = []
    for step in STEPS[name]:
        if reference := REFERENCE.match(step[1]):
            other, first, last = reference.groups()
            steps += STEPS[other][int(first) - 1 : int(last)]
        else:
            steps.append(step)
    return steps


def rules_of(source: Path, table: str) -> list[tuple[str, str]]:
    """Return code and field of each row of a table in a C++ test."""
    text = source.read_text()
    assert f"expect_order({table}," in text
    (rows,) = re.findall(rf"\b{table}\[\] = \{{\n(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    return [(code, re.sub(r"\[\d\]", "[r]", field)) for code, field in TABLE_ROW.findall(rows)]


@pytest.mark.parametrize(("name", "source", "table"), LISTS, ids=lambda value: str(value)[-20:])
def test_a_list_is_the_order_that_the_test_proves(name, source, table):
    assert [step[0] for step in STEPS[name]] == [str(n + 1) for n in range(len(STEPS[name]))]
    for (_, _, told, codes), (code, field) in zip(
        expanded(name), rules_of(source, table), strict=True
    ):
        assert told.strip("`") == field
        assert f"`{code}`" in codes


def test_every_list_of_steps_is_proved():
    numbered = {name for name, steps in STEPS.items() if steps and steps[0][0] == "1"}
    # The header is no function of its own: its steps are part of two lists.
    assert numbered == {name for name, _, _ in LISTS} | {"header"}
