# SPDX-License-Identifier: Apache-2.0
"""docs/checks.md says the order of checks that the C++ tests prove."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "checks.md"
CORE_TEST = ROOT / "tests" / "cpp" / "core" / "order_of_checks.cpp"
SYCL_TEST = ROOT / "tests" / "cpp" / "sycl" / "test_order_of_checks.cpp"

REFERENCE = re.compile(r"\[(\w+)\]\(#\w+\) (\d+) to (\d+)$")
CODE = re.compile(r"`(\w+)`")
TABLE_ROW = re.compile(r'\{errc::(\w+),\s*"([^"]*)",')

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


@dataclass(frozen=True)
class Step:
    """A row of a list: what is refused, and the codes of its outcomes."""

    number: str
    rule: str
    field: str
    codes: tuple[str, ...]


def sections(page: str) -> dict[str, list[Step]]:
    """Return the lists of the page by their headings."""
    found: dict[str, list[Step]] = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in section.splitlines()
            if re.match(r"\| (\d+|-) \|", line)
        ]
        assert all(len(cells) == 4 for cells in rows), rows
        found[section.splitlines()[0]] = [
            Step(number, rule, field.strip("`"), tuple(CODE.findall(codes)))
            for number, rule, field, codes in rows
        ]
    return found


def expanded(page: dict[str, list[Step]], name: str) -> list[Step]:
    """Return the steps of a list, those of the lists that it refers to in their place."""
    steps: list[Step] = []
    for step in page[name]:
        if reference := REFERENCE.match(step.rule):
            other, first, last = reference.groups()
            steps += page[other][int(first) - 1 : int(last)]
        else:
            steps.append(step)
    return steps


def rules_of(source: Path, table: str) -> list[tuple[str, str]]:
    """Return code and field of each row of a table in a C++ test."""
    text = source.read_text()
    assert f"expect_order({table}," in text, f"{source.name}: {table} is not run"
    found = re.search(rf"\b{table}\[\] = \{{\n(.*?)^\}};", text, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, f"{source.name}: expected the table {table}, found none; name it so"
    return [(code, re.sub(r"\[\d\]", "[r]", field)) for code, field in TABLE_ROW.findall(found[1])]


@pytest.fixture(scope="module")
def page() -> dict[str, list[Step]]:
    """Return the page by its headings."""
    return sections(PAGE.read_text())


@pytest.mark.parametrize(("name", "source", "table"), LISTS, ids=lambda value: str(value)[-20:])
def test_a_list_is_the_order_that_the_test_proves(
    page: dict[str, list[Step]], name: str, source: Path, table: str
) -> None:
    steps = expanded(page, name)
    rules = rules_of(source, table)
    assert [step.number for step in page[name]] == [str(n + 1) for n in range(len(page[name]))]
    assert [step.field for step in steps] == [field for _, field in rules]
    for step, (code, _) in zip(steps, rules, strict=True):
        assert code in step.codes


def test_every_list_of_steps_is_proved(page: dict[str, list[Step]]) -> None:
    numbered = {name for name, steps in page.items() if steps and steps[0].number == "1"}
    # The header is no function of its own: its steps are part of two lists.
    assert numbered == {name for name, _, _ in LISTS} | {"header"}
