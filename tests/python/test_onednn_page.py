# SPDX-License-Identifier: Apache-2.0
"""docs/onednn.md and the example say the same; the code of both runs where oneDNN is.

There, `python3 dev.py interoperability` types the commands of the example's README, and runs the
Python of the page.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "onednn"
PAGE = (ROOT / "docs" / "onednn.md").read_text(encoding="utf-8")
PROGRAM = (EXAMPLE / "src" / "round_trip.cpp").read_text(encoding="utf-8")
OUTPUT = (EXAMPLE / "expected_output.txt").read_text(encoding="utf-8")
REGION = re.compile(r"^ *// docs: (?!end)\w+\n(.*?)^ *// docs: end", re.DOTALL | re.MULTILINE)


def test_the_cpp_of_the_page_is_that_of_the_program() -> None:
    shown = re.findall(r"```cpp\n(.*?)```", PAGE, re.DOTALL)
    regions = [textwrap.dedent(region) for region in REGION.findall(PROGRAM)]
    assert len(regions) == 5
    assert sorted(shown) == sorted(regions)


def test_the_answer_without_an_intel_gpu_is_that_of_the_program() -> None:
    (answer,) = re.findall(r"Without one, the answer is\n\n    (.*)\n", PAGE)
    assert f"opencl engine: request_unsupported: {answer}\n" in OUTPUT


def test_the_sentence_that_the_python_prints_is_the_one_in_the_examples() -> None:
    # tests/interoperability/test_onednn.py runs the Python, and compares what it prints.
    kept = ROOT / "docs" / "examples" / "output" / "onednn.txt"
    (printed,) = re.findall(r"```python\n.*?```\n\n    (.*\n)", PAGE, re.DOTALL)
    assert kept.read_text(encoding="utf-8") == printed.partition("\n")[0] + "\n"


def test_the_page_names_each_data_type_of_the_table() -> None:
    header = (EXAMPLE / "include" / "onednn_dlpack" / "desc.hpp").read_text(encoding="utf-8")
    rows = re.findall(r"^ +\{.*?(?:data_type::)(\w+), \{", header, re.MULTILINE)
    assert len(rows) == 13
    (taken,) = re.findall(r"^\| dtype \| (.*?) \|", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"\((\w+)\)", taken)) == sorted(rows)


def test_the_functions_of_the_mapping_exist() -> None:
    names = set(re.findall(r"`(\w+)\((?:id|queue|tensor|device|engine|desc|memory)[\w, ]*\)", PAGE))
    folders = (EXAMPLE / "include", ROOT / "include")
    headers = "".join(path.read_text() for folder in folders for path in folder.rglob("*.hpp"))
    assert len(names) > 10
    assert [name for name in names if not re.search(rf"\b{name}\(", headers)] == []


def test_pages_that_the_page_and_the_readme_name_exist() -> None:
    for page in (ROOT / "docs" / "onednn.md", EXAMPLE / "README.md"):
        names = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        assert names
        assert [name for name in names if not (page.parent / name).exists()] == []
