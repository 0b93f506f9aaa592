# SPDX-License-Identifier: Apache-2.0
"""A rule is added in a copy of the tree as CONTRIBUTING.md says, and is then seen everywhere.

Covered are the name in C++, the refusal, and the index of errors; no wheel is built.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi

# What CONTRIBUTING.md shows, the header that it is put into, and what it is put before.
CHECK = """  if (tensor.ndim > 64) {
    refuse(errc::ndim_too_large, "ndim", "at most 64", digits(tensor.ndim), "reshape the array");
  }
"""
ROW = '    {"ndim_too_large", "`ndim` is above 64"},\n'
INSERTED = [
    ("  ndim_too_large,\n", "error.hpp", "  // any query\n  runtime_error,\n"),
    (ROW, "error.hpp", '    {"runtime_error",'),
    (CHECK, "structure.hpp", "  if (tensor.ndim > 0 && tensor.shape == nullptr) {\n"),
]

PROGRAM = r"""
#include <usm_dlpack/core/structure.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>

int main() {
  char element = 0;
  std::int64_t ones[65];
  std::fill_n(ones, 65, 1);
  const DLTensor tensor{&element, {}, 65, {kDLInt, 8, 1}, ones, ones, 0};
  try {
    usm_dlpack::check_structure(tensor);
  } catch (const usm_dlpack::conversion_error& error) {
    std::printf("%s; %s", to_string(error.code()), error.what());
  }
}
"""


def printed_by(*command: str | Path, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


@pytest.mark.extended
def test_a_rule_is_added_by_the_recipe(project_root, tmp_path):
    recipe = (project_root / "CONTRIBUTING.md").read_text().partition("## Adding a rule\n")[2]
    docs = tmp_path / "docs"
    shutil.copytree(project_root / "include", tmp_path / "include")
    docs.mkdir()
    shutil.copy(project_root / "docs" / "error_table.py", docs)
    for shown, name, place in INSERTED:
        assert all(line.strip() in recipe for line in shown.splitlines())
        header = tmp_path / "include" / "usm_dlpack" / "core" / name
        text = header.read_text()
        assert text.count(place) == 1
        header.write_text(text.replace(place, shown + place))

    (tmp_path / "program.cpp").write_text(PROGRAM)
    dlpack = tvm_ffi.libinfo.find_dlpack_include_path()
    flags = ("-std=c++17", "-O0", "-Iinclude", f"-isystem{dlpack}", "-oprogram")
    printed_by("g++", *flags, "program.cpp", cwd=tmp_path)
    sentence = "ndim: expected at most 64, found 65; reshape the array"
    assert printed_by(tmp_path / "program", cwd=tmp_path) == f"ndim_too_large; {sentence}"

    # A process of its own: the programs of docs/ are those of the copy.
    code = "from error_table import *; print(*index_table(read_table()), sep='\\n')"
    index = printed_by(sys.executable, "-c", code, cwd=docs)
    row = "| `ndim_too_large` | `ndim` is above 64 | `usm_dlpack.ConversionError`"
    assert index.count(row) == 1
