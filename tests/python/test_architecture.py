# SPDX-License-Identifier: Apache-2.0
"""The sources keep the rules of CONTRIBUTING.md: who may include whom, and what a file looks like.

Each rule is a function from a source tree to the faults in it, in sentences. Our tree has none, and
each rule sees the fault that it is for, planted in a small tree.
"""

from __future__ import annotations

import re
import subprocess
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
    "nanobind": ("sycl", "core"),
}
# The header that includes each folder; its order is that in which its headers stand on each other.
UMBRELLAS = {
    "core": "core.hpp",
    "sycl": "usm_dlpack.hpp",
    "opencl": "opencl.hpp",
    "nanobind": "nanobind.hpp",
}
MOST_COLUMNS = 100

OUR_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<usm_dlpack/|")([\w/]+\.hpp)[>"]', re.MULTILINE)
SYCL_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](sycl|CL)/', re.MULTILINE)
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|define|undef)\b", re.MULTILINE)
# One argument only is what `std::array::fill` takes.
FILL_OF_SYCL = re.compile(r"(?:\.|->)fill(?:<[^>]*>)?\((?:[^(),]|\([^()]*\))*,")
SHOWN_CPP = re.compile(r"^ *```cpp\n.*?```$", re.DOTALL | re.MULTILINE)
VAGUE_WORDS = {"utils", "helpers", "common", "misc", "manager", "info"}


def headers(root: Path) -> dict[str, str]:
    """Return the text of each public header by its path below include/usm_dlpack."""
    folder = root / INCLUDE
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*.hpp"))
    }


def folder_of(header: str) -> str:
    """Return the folder that a header stands in, or that it includes as a whole."""
    folders = {umbrella: folder for folder, umbrella in UMBRELLAS.items()}
    return folders.get(header, header.rpartition("/")[0])


def tracked_files(root: Path) -> list[Path]:
    """Return the files of a tree that git knows or would take, or all of them where git is not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and (root / ".git").exists():
        names = [Path(line) for line in listed.stdout.splitlines()]
    else:
        names = [path.relative_to(root) for path in root.rglob("*")]
    return [name for name in names if (root / name).is_file()]


def sources(root: Path) -> list[Path]:
    """Return the files that are code: they open with a licence line and keep the column limit."""
    return [
        name
        for name in tracked_files(root)
        if name.suffix in (".hpp", ".cpp", ".py", ".cmake") or name.name == "CMakeLists.txt"
    ]


def faults_of_arrows(root: Path) -> list[str]:
    """Find includes that lead neither to a lower folder nor to an earlier header of the same."""
    faults = []
    texts = headers(root)
    for name, text in texts.items():
        folder = folder_of(name)
        if folder not in FOLDERS_BELOW:
            faults.append(f"{name}: expected one of {list(FOLDERS_BELOW)}, found another; move it")
            continue
        order = OUR_INCLUDE.findall(texts.get(UMBRELLAS[folder], ""))
        earlier = order[: order.index(name)] if name in order else []
        whole = name == UMBRELLAS[folder]
        for other in OUR_INCLUDE.findall(text):
            below = folder_of(other) in FOLDERS_BELOW[folder]
            first = other == f"{folder}/config.hpp"
            if not (below or first or other in earlier or (whole and other.startswith(folder))):
                faults.append(
                    f"{name}: expected an include of a lower folder or of an earlier header, "
                    f"found {other}; move the code"
                )
    return faults


def faults_of_sycl(root: Path) -> list[str]:
    """Find SYCL or OpenCL in the headers that are tested without a device."""
    return [
        f"{name}: expected no SYCL, found an include of {found[1]}/; move it to sycl/"
        for name, text in headers(root).items()
        if folder_of(name) == "core" and (found := SYCL_INCLUDE.search(text))
    ]


def faults_of_conditions(root: Path) -> list[str]:
    """Find conditional compilation and macros outside the headers that may have them."""
    return [
        f"{name}: expected no condition or macro, found #{found[1]}; move it to config.hpp"
        for name, text in headers(root).items()
        if Path(name).name != "config.hpp" and (found := CONDITION.search(text))
    ]


def faults_of_length(root: Path) -> list[str]:
    """Find sources with lines that are too long."""
    faults = []
    for name in sources(root):
        for number, line in enumerate((root / name).read_text().splitlines(), start=1):
            if len(line) > MOST_COLUMNS:
                found = f"expected at most {MOST_COLUMNS} columns, found {len(line)}"
                faults.append(f"{name}:{number}: {found}; break it")
    return faults


def faults_of_licence(root: Path) -> list[str]:
    """Find sources that do not open with the licence line."""
    faults = []
    for name in sources(root):
        lines = (root / name).read_text().splitlines() or [""]
        first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
        if first.lstrip("/# ") != "SPDX-License-Identifier: Apache-2.0":
            faults.append(f"{name}: expected the SPDX line first, found {first!r}; add it")
    return faults


def faults_of_names(root: Path) -> list[str]:
    """Find file names that say nothing."""
    return [
        f"{name}: expected a name that says what it holds, found {word!r} in it; rename it"
        for name in sources(root)
        for word in sorted(VAGUE_WORDS & set(re.split(r"[_.]", name.name)))
    ]


def faults_of_fill(root: Path) -> list[str]:
    """Find fills of SYCL's, in C++ and in the C++ of pages.

    They are kernels on Level Zero, and abort in programs that a plain compiler made.
    """
    faults = []
    for name in tracked_files(root):
        if name.suffix not in (".hpp", ".cpp", ".md"):
            continue
        text = (root / name).read_text(encoding="utf-8")
        shown = SHOWN_CPP.findall(text) if name.suffix == ".md" else [text]
        faults += [
            f"{name}: expected a copy, found {call!r} of a queue or handler; use memcpy"
            for code in shown
            for call in FILL_OF_SYCL.findall(code)
        ]
    return faults


RULES: list[Callable[[Path], list[str]]] = [
    faults_of_arrows,
    faults_of_sycl,
    faults_of_conditions,
    faults_of_length,
    faults_of_licence,
    faults_of_names,
    faults_of_fill,
]

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
PLANTED = [
    (faults_of_arrows, "core/strides.hpp", SPDX + "#include <usm_dlpack/core/view.hpp>\n"),
    (faults_of_arrows, "core/strides.hpp", SPDX + "#include <usm_dlpack/core/strides.hpp>\n"),
    (faults_of_arrows, "core/strides.hpp", SPDX + "#include <usm_dlpack/sycl/config.hpp>\n"),
    (faults_of_arrows, "core/strides.hpp", SPDX + '#include "view.hpp"\n'),
    (faults_of_arrows, "opencl/handle.hpp", SPDX + "#include <usm_dlpack/nanobind/views.hpp>\n"),
    (faults_of_arrows, "new_folder/handle.hpp", SPDX),
    (faults_of_sycl, "core/strides.hpp", SPDX + "#include <sycl/sycl.hpp>\n"),
    (faults_of_sycl, "core/strides.hpp", SPDX + "#  include <CL/cl.h>\n"),
    (faults_of_conditions, "core/strides.hpp", SPDX + "#ifdef NDEBUG\n#endif\n"),
    (faults_of_conditions, "core/strides.hpp", SPDX + "# define RANK 8\n"),
    (faults_of_length, "core/strides.hpp", SPDX + "x" * (MOST_COLUMNS + 1)),
    (faults_of_licence, "core/strides.hpp", "#pragma once\n"),
    (faults_of_names, "core/layout_utils.hpp", SPDX),
    (faults_of_fill, "core/strides.hpp", SPDX + "queue.fill(x.data(), 1.5f, 24).wait();\n"),
    (faults_of_fill, "core/strides.hpp", SPDX + "h->fill<int>(to, 7, 4);\ns.fill(f(1, 2));\n"),
    (faults_of_fill, "strides.md", "```cpp\nq.fill(x, 1, 4);\n```\n```py\next.fill(x, 1)\n```\n"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_sources_keep_the_rule(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


def test_there_are_sources_to_check() -> None:
    assert {"core.hpp", "core/to_dlpack.hpp", "sycl/validate.hpp"} <= headers(ROOT).keys()
    assert Path("CMakeLists.txt") in sources(ROOT)


def test_the_picture_has_the_arrows_of_the_folders() -> None:
    picture = (ROOT / "docs" / "diagrams" / "architecture.dot").read_text()
    arrows = {(upper, lower) for upper, lower in re.findall(r"(\w+) -> (\w+)", picture)}
    assert arrows == {(upper, below[0]) for upper, below in FOLDERS_BELOW.items() if below}


@pytest.mark.parametrize(("rule", "name", "text"), PLANTED)
def test_a_planted_fault_is_seen_by_its_rule_alone(
    tmp_path: Path, rule: Callable[[Path], list[str]], name: str, text: str
) -> None:
    header = tmp_path / INCLUDE / name
    header.parent.mkdir(parents=True, exist_ok=True)
    order = "".join(f"#include <usm_dlpack/core/{one}.hpp>\n" for one in ("strides", "view"))
    (tmp_path / INCLUDE / "core.hpp").write_text(SPDX + order)
    header.write_text(text)
    assert len(rule(tmp_path)) == 1
    others = [other for other in RULES if other is not rule and name == "core/strides.hpp"]
    assert [fault for other in others for fault in other(tmp_path)] == []
