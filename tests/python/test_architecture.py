# SPDX-License-Identifier: Apache-2.0
"""The headers keep the rules of CONTRIBUTING.md: who may include whom, and what none may hold.

Each rule is a function from a source tree to the faults in it. Our tree has none, and each rule
sees the faults that it is for, planted in a small tree.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = Path("include", "usm_dlpack")

# Each folder, and those that its headers may include.
FOLDERS_BELOW = {
    "core": (),
    "sycl": ("core",),
    "opencl": ("sycl", "core"),
    "python": ("sycl", "core"),
    "nanobind": ("python", "sycl", "core"),
    "pybind11": ("python", "sycl", "core"),
}
# The header that includes a folder.
UMBRELLAS = {
    "core": "core.hpp",
    "sycl": "usm_dlpack.hpp",
    "opencl": "opencl.hpp",
    "nanobind": "nanobind.hpp",
    "pybind11": "pybind11.hpp",
}

OUR_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<usm_dlpack/|")([\w/]+\.hpp)[>"]', re.MULTILINE)
SYCL_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](?:sycl|CL)/', re.MULTILINE)
CONDITION = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif|else|define|undef)\b", re.MULTILINE)
# One argument only is what `std::array::fill` takes.
FILL_OF_SYCL = re.compile(r"(?:\.|->)fill(?:<[^>]*>)?\((?:[^(),]|\([^()]*\))*,")


def headers(root: Path) -> dict[str, str]:
    """Return the text of each public header by its path below include/usm_dlpack."""
    folder = root / INCLUDE
    paths = sorted(folder.rglob("*.hpp"))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def folder_of(header: str) -> str:
    """Return the folder that a header stands in, or that it includes as a whole."""
    folders = {umbrella: folder for folder, umbrella in UMBRELLAS.items()}
    return folders.get(header, header.partition("/")[0])


def faults_of_arrows(root: Path) -> list[str]:
    """Find includes that lead neither to a lower folder nor to another header of the same."""
    faults = []
    for name, text in headers(root).items():
        folder = folder_of(name)
        if folder not in FOLDERS_BELOW:
            faults.append(f"{name} is in no known folder")
            continue
        for other in OUR_INCLUDE.findall(text):
            same = folder_of(other) == folder and other != UMBRELLAS.get(folder)
            if not same and folder_of(other) not in FOLDERS_BELOW[folder]:
                faults.append(f"{name} includes {other}")
    return faults


def faults_of_sycl(root: Path) -> list[str]:
    """Find SYCL or OpenCL in the headers that are tested without a device."""
    core = ((name, text) for name, text in headers(root).items() if folder_of(name) == "core")
    return [name for name, text in core if SYCL_INCLUDE.search(text)]


def faults_of_conditions(root: Path) -> list[str]:
    """Find conditional compilation and macros outside the headers that may have them."""
    found = (name for name, text in headers(root).items() if CONDITION.search(text))
    return [name for name in found if not name.endswith("config.hpp")]


def faults_of_fill(root: Path) -> list[str]:
    """Find fills of SYCL's, which pages show from files too.

    They are kernels on Level Zero, and abort in programs that a plain compiler made.
    """
    folders = ("include", "bindings", "docs", "examples", "tests")
    paths = (path for folder in folders for path in (root / folder).rglob("*.[ch]pp"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return [f"{path}: {call}" for path in texts for call in FILL_OF_SYCL.findall(texts[path])]


def faults_of_skips(root: Path) -> list[str]:
    """Find skips in C++ tests, which ctest would count as passed."""
    paths = (root / "tests" / "cpp").rglob("*.[ch]pp")
    return [str(path) for path in paths if "GTEST_SKIP" in path.read_text(encoding="utf-8")]


def faults_of_builds(root: Path) -> list[str]:
    """Find test files that build an extension when they are collected, as every `-k` would."""
    paths = (root / "tests" / "python").glob("test_*.py")
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return [str(path) for path in texts if re.search(r"(?m)^[A-Z_]+ = .*\bload\(", texts[path])]


Rule = Callable[[Path], list[str]]
RULES: list[Rule] = [
    *(faults_of_arrows, faults_of_sycl, faults_of_conditions, faults_of_fill, faults_of_skips),
    faults_of_builds,
]

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
PLANTED = [
    (faults_of_arrows, "core/strides.hpp", SPDX + "#include <usm_dlpack/core.hpp>\n"),
    (faults_of_arrows, "core/strides.hpp", SPDX + "#include <usm_dlpack/sycl/config.hpp>\n"),
    (faults_of_arrows, "sycl/backends/a.hpp", SPDX + "#include <usm_dlpack/opencl/interop.hpp>\n"),
    (faults_of_arrows, "opencl/interop.hpp", SPDX + "#include <usm_dlpack/nanobind/views.hpp>\n"),
    (faults_of_sycl, "core/strides.hpp", SPDX + "#  include <CL/cl.h>\n"),
    (faults_of_conditions, "core/strides.hpp", SPDX + "# define RANK 8\n"),
    (faults_of_fill, "core/strides.hpp", SPDX + "h->fill<int>(to, 7, 4);\ns.fill(f(1, 2));\n"),
    (faults_of_skips, "../../tests/cpp/sycl/one.cpp", 'TEST(One, Two) { GTEST_SKIP() << "3"; }\n'),
    (faults_of_builds, "../../tests/python/test_one.py", "EXT = extension_under_test.load()\n"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_sources_keep_the_rule(rule):
    assert {"core.hpp", "core/to_dlpack.hpp", "sycl/validate.hpp"} <= headers(ROOT).keys()
    assert rule(ROOT) == []


@pytest.mark.parametrize(("rule", "name", "text"), PLANTED)
def test_a_planted_fault_is_seen_by_its_rule(tmp_path, rule, name, text):
    header = tmp_path / INCLUDE / name
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(text)
    assert len(rule(tmp_path)) == 1
