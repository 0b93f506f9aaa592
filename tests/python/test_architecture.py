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

# Each room, and the rooms right below it; a header may include what is reachable by these arrows.
CORE_ROOMS = {
    "config": (),
    "refusal_text": (),
    "error": ("config", "refusal_text"),
    "dtype_name": ("error",),
    "dtype": ("dtype_name",),
    "checked_arithmetic": ("config",),
    "layout": ("error", "checked_arithmetic"),
    "overlap": ("layout",),
    "relaxed_layout": ("overlap",),
    "dlpack_tensor": ("config",),
    "view": ("dtype",),
    "stride_rule": ("error",),
    "to_dlpack": ("view", "layout", "dlpack_tensor"),
    "element_storage": ("dtype",),
    "ordinary_strides": ("layout", "stride_rule"),
    "ordinary_structure": ("element_storage", "ordinary_strides"),
    "structure": ("ordinary_structure", "overlap"),
    "open_strides": ("layout",),
    "index_products": ("layout", "stride_rule"),
    "strides_argument": (),
    "to_mapping": ("open_strides", "overlap", "index_products", "strides_argument"),
    "ordinary_view": ("structure", "view", "to_mapping"),
    "to_mdspan": ("ordinary_view",),
    "managed_owner": ("config",),
    "managed": ("to_dlpack", "structure", "managed_owner"),
    "core": ("managed", "relaxed_layout", "to_mdspan"),
}
SYCL_ROOMS = {
    "sycl_config": (),
    "sycl_dtype": ("dtype", "sycl_config"),
    "opencl_query": ("sycl_config",),
    "level_zero_query": ("sycl_config",),
    "device_table": ("error", "opencl_query", "level_zero_query", "sycl_config"),
    "device": ("device_table",),
    "allocation": ("device",),
    "usm_allocation": ("allocation", "structure"),
    "usm_accessor": ("view", "sycl_config"),
    "export_refusals": ("allocation", "layout"),
    "usm_export": ("export_refusals", "sycl_dtype", "to_dlpack", "usm_accessor"),
    "usm_import": ("usm_allocation",),
    "usm_mdspan": ("usm_accessor", "usm_import", "to_mdspan"),
    "usm_block": ("usm_export",),
    "array_shape": ("index_products", "view"),
    "usm_array": ("usm_block", "usm_mdspan", "managed", "array_shape"),
    "usm": ("core", "usm_array"),
    "usm_dlpack": ("usm",),
    "opencl_handle": ("allocation",),
    "opencl_interop": ("opencl_handle", "usm_allocation"),
    "opencl_export": ("opencl_interop", "usm_export"),
    "opencl": ("usm", "opencl_export"),
}
# For extensions: what of Python and of dpctl they meet.
NANOBIND_ROOMS = {
    "package_interface": ("managed", "usm_allocation", "usm_block"),
    "recorded_refusals": ("package_interface",),
    "argument_refusals": ("recorded_refusals",),
    "dpctl_objects": ("sycl_config",),
    "dpctl_casters": ("dpctl_objects",),
    "view_import": ("argument_refusals", "usm_mdspan"),
    "view_signature": ("usm_mdspan",),
    "owned_view": ("package_interface", "usm_array"),
    "ndarray_bridge": ("owned_view",),
    "nanobind": ("usm", "view_import", "view_signature", "ndarray_bridge", "dpctl_casters"),
}
ROOMS: dict[str, tuple[str, ...]] = CORE_ROOMS | SYCL_ROOMS | NANOBIND_ROOMS
ROOMS_WITH_CONDITIONS = ("config", "sycl_config")
MOST_COLUMNS = 100

OUR_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](?:usm_dlpack/)?(\w+)\.hpp[>"]', re.MULTILINE)
SYCL_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](sycl|CL)/', re.MULTILINE)
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|define|undef)\b", re.MULTILINE)
# One argument only is what `std::array::fill` takes.
FILL_OF_SYCL = re.compile(r"(?:\.|->)fill(?:<[^>]*>)?\((?:[^(),]|\([^()]*\))*,")
SHOWN_CPP = re.compile(r"^ *```cpp\n.*?```$", re.DOTALL | re.MULTILINE)
VAGUE_WORDS = {"utils", "helpers", "common", "misc", "manager", "info"}


def headers(root: Path) -> dict[str, str]:
    """Return the text of each public header by its room."""
    return {path.stem: path.read_text() for path in sorted((root / INCLUDE).glob("*.hpp"))}


def rooms_below(room: str) -> set[str]:
    """Return every room that the arrows reach from one."""
    below: set[str] = set()
    for lower in ROOMS[room]:
        below |= {lower} | rooms_below(lower)
    return below


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
    """Find headers outside the table of rooms, and includes that are no arrow down."""
    faults = []
    for room, text in headers(root).items():
        if room not in ROOMS:
            faults.append(
                f"{room}.hpp: expected a room of the table, found a new one; add it there"
            )
            continue
        below = rooms_below(room)
        faults += [
            f"{room}.hpp: expected an include of a lower room, found {other}.hpp; move the code"
            for other in OUR_INCLUDE.findall(text)
            if other not in below
        ]
    return faults


def faults_of_sycl(root: Path) -> list[str]:
    """Find SYCL or OpenCL in the rooms that are tested without a device."""
    return [
        f"{room}.hpp: expected no SYCL, found an include of {found[1]}/; move it to a higher room"
        for room, text in headers(root).items()
        if room in CORE_ROOMS and (found := SYCL_INCLUDE.search(text))
    ]


def faults_of_conditions(root: Path) -> list[str]:
    """Find conditional compilation and macros outside the two headers that may have them."""
    return [
        f"{room}.hpp: expected no condition or macro, found #{found[1]}; move it to config.hpp"
        for room, text in headers(root).items()
        if room not in ROOMS_WITH_CONDITIONS and (found := CONDITION.search(text))
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
    (faults_of_arrows, "layout.hpp", SPDX + "#include <usm_dlpack/core/dtype.hpp>\n"),
    (faults_of_arrows, "layout.hpp", SPDX + '#include "to_dlpack.hpp"\n'),
    (faults_of_arrows, "layout.hpp", SPDX + "#include <usm_dlpack/core/strides.hpp>\n"),
    (faults_of_arrows, "new_room.hpp", SPDX),
    (faults_of_sycl, "layout.hpp", SPDX + "#include <sycl/sycl.hpp>\n"),
    (faults_of_sycl, "layout.hpp", SPDX + "#  include <CL/cl.h>\n"),
    (faults_of_conditions, "layout.hpp", SPDX + "#ifdef NDEBUG\n#endif\n"),
    (faults_of_conditions, "layout.hpp", SPDX + "# define RANK 8\n"),
    (faults_of_length, "layout.hpp", SPDX + "x" * (MOST_COLUMNS + 1)),
    (faults_of_licence, "layout.hpp", "#pragma once\n"),
    (faults_of_names, "layout_utils.hpp", SPDX),
    (faults_of_fill, "layout.hpp", SPDX + "queue.fill(x.data(), 1.5f, 24).wait();\n"),
    (faults_of_fill, "layout.hpp", SPDX + "handler->fill<int>(to, 7, 4);\nshape.fill(f(1, 2));\n"),
    (faults_of_fill, "layout.md", "```cpp\nq.fill(x, 1, 4);\n```\n```py\next.fill(x, 1)\n```\n"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_sources_keep_the_rule(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


def test_there_are_sources_to_check() -> None:
    assert {"config", "to_dlpack", "usm"} <= headers(ROOT).keys()
    assert Path("CMakeLists.txt") in sources(ROOT)


@pytest.mark.parametrize(("rule", "name", "text"), PLANTED)
def test_a_planted_fault_is_seen_by_its_rule_alone(
    tmp_path: Path, rule: Callable[[Path], list[str]], name: str, text: str
) -> None:
    header = tmp_path / INCLUDE / name
    header.parent.mkdir(parents=True)
    (header.parent / "error.hpp").write_text(SPDX + "#include <usm_dlpack/core/config.hpp>\n")
    header.write_text(text)
    assert len(rule(tmp_path)) == 1
    others = [other for other in RULES if other is not rule and name == "layout.hpp"]
    assert [fault for other in others for fault in other(tmp_path)] == []
