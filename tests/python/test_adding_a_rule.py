# SPDX-License-Identifier: Apache-2.0
"""A rule is added in a copy of the tree as CONTRIBUTING.md says, and is then seen everywhere.

Covered are the name in C++, the refusal, the exception class in Python (of the table as a C++
program prints it; no wheel is built), the index of errors, and the page of the code. The site is
not built: its reference takes the meanings from the same rows as the index.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from usm_dlpack import ConversionError, UsmBindingError
from usm_dlpack._errors import classes_of

# What CONTRIBUTING.md shows.
ENUMERATOR = "  ndim_too_large,\n"
ROW = '    {errc::ndim_too_large, "ndim_too_large", "`ndim` is above 64"},\n'
CHECK = """  if (tensor.ndim > 64) {
    refuse(errc::ndim_too_large, "ndim", "at most 64", digits(tensor.ndim), "reshape the array");
  }
"""
ACCEPTED = "tensor.ndim > 64 || "
BINDING_ROW = ROW.replace('64"}', '64", python_class::binding_error}')

PROGRAM = r"""
#include <usm_dlpack/core/structure.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>

int main() {
  for (const auto& row : usm_dlpack::detail::error_table) {
    const bool binding = row.raised == usm_dlpack::detail::python_class::binding_error;
    std::printf("[\"%s\", \"%s\", %s]\n", row.name, row.meaning, binding ? "true" : "false");
  }
  char element = 0;
  std::int64_t ones[65];
  std::fill_n(ones, 65, 1);
  const DLTensor tensor{&element, {}, 65, {kDLInt, 8, 1}, ones, ones, 0};
  try {
    usm_dlpack::check_structure(tensor);
  } catch (const usm_dlpack::conversion_error& error) {
    std::printf("[\"%s\", \"%s\"]\n", to_string(error.code()), error.what());
  }
}
"""


def insert(file: Path, text: str, before: str) -> None:
    """Put a text before the only place of another one."""
    old = file.read_text()
    assert old.count(before) == 1
    file.write_text(old.replace(before, text + before))


@pytest.fixture(params=[False, True], ids=["plain", "binding"])
def is_binding(request: pytest.FixtureRequest) -> bool:
    """Whether Python's exception is to be a UsmBindingError."""
    return bool(request.param)


@pytest.fixture
def tree(project_root: Path, tmp_path: Path, is_binding: bool) -> Path:
    """Return a copy of headers and documentation with one more rule."""
    recipe = (project_root / "CONTRIBUTING.md").read_text().partition("## Adding a rule\n")[2]
    for shown in (ENUMERATOR, ROW, CHECK, ACCEPTED):
        assert all(line.strip() in recipe for line in shown.splitlines())
    for folder in ("include", "docs/errors"):
        shutil.copytree(project_root / folder, tmp_path / folder)
    for program in (project_root / "docs").glob("*.py"):
        shutil.copy(program, tmp_path / "docs")
    core = tmp_path / "include" / "usm_dlpack" / "core"
    insert(core / "error.hpp", ENUMERATOR, "  // any query\n  runtime_error,\n")
    insert(core / "error.hpp", BINDING_ROW if is_binding else ROW, "    // any query\n    {errc")
    insert(core / "structure.hpp", ACCEPTED, "tensor.data == nullptr || !detail::has_whole")
    insert(core / "structure.hpp", CHECK, "  if (tensor.ndim > 0 && tensor.shape == nullptr) {\n")
    return tmp_path


def lines_of_program(tree: Path) -> list[list[Any]]:
    """Compile and run the program with the headers of the copy."""
    source = tree / "program.cpp"
    source.write_text(PROGRAM)
    headers = [f"-I{tree / 'include'}", f"-isystem{tvm_ffi.libinfo.find_dlpack_include_path()}"]
    command = ["g++", "-std=c++17", "-O0", *headers, str(source), "-o", str(tree / "program")]
    subprocess.run(command, check=True)
    done = subprocess.run([tree / "program"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.extended
def test_a_rule_is_added_by_the_recipe(tree: Path, is_binding: bool) -> None:
    *table, refusal = lines_of_program(tree)
    assert ["ndim_too_large", "`ndim` is above 64", is_binding] in table
    sentence = "ndim: expected at most 64, found 65; reshape the array"
    assert refusal == ["ndim_too_large", sentence]
    raised = classes_of(table)["ndim_too_large"]
    assert raised is (UsmBindingError if is_binding else ConversionError)

    # A process of its own: the programs of docs/ are those of the copy.
    code = (
        "import error_table as table; table.write_pages(); "
        "print(*table.index_table(table.read_table()), sep='\\n')"
    )
    docs = tree / "docs"
    index = subprocess.run(
        [sys.executable, "-c", code], cwd=docs, capture_output=True, text=True, check=True
    ).stdout
    name = raised.__name__
    row = f"| `ndim_too_large` | `ndim` is above 64 | {{py:exc}}`usm_dlpack.{name}`"
    assert index.count(row) == 1
    page = docs / "errors" / "ndim_too_large.md"
    text = page.read_text()
    assert text.startswith("# `ndim_too_large`\n")
    assert "Refused: `ndim` is above 64." in text
