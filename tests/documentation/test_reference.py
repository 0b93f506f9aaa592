# SPDX-License-Identifier: Apache-2.0
"""The reference: what Doxygen is given of a header, and that a name without an entry is seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cpp_reference import Entity, entities
from doxygen import read_headers
from header_filter import public_interface
from site_reference import faults_of_cpp, faults_of_python, named

ROOT = Path(__file__).resolve().parents[2]


def test_the_filter_keeps_every_line_where_it_is() -> None:
    for header in (ROOT / "include" / "usm_dlpack").rglob("*.hpp"):
        text = header.read_text()
        assert public_interface(text).count("\n") == text.count("\n")


def test_the_filter_hides_what_users_do_not_call() -> None:
    text = (
        "namespace detail {\nint hidden;\n}  // namespace detail\n"
        "template <class View, int = detail::require<View>(),\n          int N = 1>\n"
        "struct shown : detail::base<View> {\n  friend class detail::other;\n};\n"
    )
    assert public_interface(text) == (
        "\n\n\ntemplate <class View,\n          int N = 1>\nstruct shown {\n\n};\n"
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Let Doxygen read our headers and one more, as a new function would come."""
    root = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "include", root / "include")
    shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("examples"))
    (root / "include" / "usm_dlpack" / "new_room.hpp").write_text(
        "// SPDX-License-Identifier: Apache-2.0\n#pragma once\nnamespace usm_dlpack {\n"
        "int of_which_nothing_is_said();\n/// Says something.\nint newly_made(int*  place);\n"
        "namespace detail {\nint hidden();\n}  // namespace detail\n}  // namespace usm_dlpack\n"
    )
    assert read_headers(root / "xml", root)
    return root


def test_a_new_function_without_an_entry_is_seen(tree: Path) -> None:
    by_header = entities(tree / "xml")
    known = {name for all_of_it in by_header.values() for one in all_of_it for name in named(one)}
    assert "usm_dlpack::detail::hidden" not in known
    new = {"usm_dlpack::newly_made", "usm_dlpack::of_which_nothing_is_said"}
    assert new <= known
    faults = faults_of_cpp(known - new, by_header)
    assert [fault.partition(";")[0] for fault in faults] == [
        "new_room.hpp: expected an entry of usm_dlpack::of_which_nothing_is_said, found none",
        "new_room.hpp:4: expected a comment on usm_dlpack::of_which_nothing_is_said, found none",
        "new_room.hpp: expected an entry of usm_dlpack::newly_made, found none",
    ]


def test_a_warning_of_doxygen_fails_the_build(tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    shutil.copytree(tree, root, ignore=shutil.ignore_patterns("xml"))
    (root / "include" / "usm_dlpack" / "new_room.hpp").write_text(
        "// SPDX-License-Identifier: Apache-2.0\n#pragma once\nnamespace usm_dlpack {\n"
        "/// Says it of a parameter that is not there.\n/// @param other nothing\n"
        "int newly_made(int place);\n}  // namespace usm_dlpack\n"
    )
    assert not read_headers(tmp_path / "xml", root)


def test_a_member_without_an_entry_is_seen() -> None:
    member = Entity("function", "get", "a.hpp", 2, ["int get()"], [])
    made = Entity("class", "usm_dlpack::made", "a.hpp", 1, ["made"], ["Made."], [member])
    (fault,) = faults_of_cpp({"usm_dlpack::made"}, {"a.hpp": [made]})
    assert fault.startswith("a.hpp: expected an entry of usm_dlpack::made::get, found none")


def test_a_python_name_without_an_entry_is_seen() -> None:
    (fault,) = faults_of_python({"usm_dlpack.validate"}, ["validate", "newly_made"])
    assert fault.startswith("usm_dlpack.newly_made: expected an entry, found none")
