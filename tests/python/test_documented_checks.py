# SPDX-License-Identifier: Apache-2.0
"""docs/checks.md says the order of checks that the C++ tests prove."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "checks.md"
SOURCES = ("rules_in_order.hpp", "core/order_of_checks.cpp", "sycl/test_order_of_checks.cpp")
TESTS = "".join((ROOT / "tests" / "cpp" / source).read_text() for source in SOURCES)

REFERENCE = re.compile(r"\[(\w+)\]\(#\w+\) (\d+) to (\d+)$")
STEP = re.compile(r"^\| (\d+|-) \| ([^|]*?) *\| ([^|]*?) *\| ([^|]*?) *\|$", re.MULTILINE)
TABLE_ROW = re.compile(r'\{errc::(\w+),\s*"([^"]*)",')
# The steps of each list by its heading: number, what is refused, field, and codes of the outcomes.
STEPS = {
    section.partition("\n")[0]: STEP.findall(section)
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
}

# Each list of the page, and the tables of the test that proves it.
LISTS = {
    "view": "view_rules",
    "check_structure": "structure_rules",
    "to_mdspan": "to_mdspan_rules",
    "managed": "legacy_rules, structure_rules",
    "validate": "header_rules, structure_rules, import_rules",
    "export": "view_rules, export_rules",
}


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


def rules_of(table: str) -> list[tuple[str, str]]:
    """Return code and field of each row of a table in a C++ test."""
    (rows,) = re.findall(rf"\b{table}\[\] = \{{\n(.*?)^\}};", TESTS, re.MULTILINE | re.DOTALL)
    return [(code, re.sub(r"\[\d\]", "[r]", field)) for code, field in TABLE_ROW.findall(rows)]


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_the_order_that_the_test_proves(name):
    assert f", {LISTS[name]});" in " ".join(re.sub(r"<\w+>", "", TESTS).split())
    assert [step[0] for step in STEPS[name]] == [str(n + 1) for n in range(len(STEPS[name]))]
    rules = [rule for table in LISTS[name].split(", ") for rule in rules_of(table)]
    for (_, _, told, codes), (code, field) in zip(expanded(name), rules, strict=True):
        assert told.strip("`") == field
        assert f"`{code}`" in codes


def test_every_list_of_steps_is_proved():
    numbered = {name for name, steps in STEPS.items() if steps and steps[0][0] == "1"}
    # The header is no function of its own: its steps are part of two lists.
    assert numbered == LISTS.keys() | {"header"}
