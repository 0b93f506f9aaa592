# SPDX-License-Identifier: Apache-2.0
"""Diagrams are those of their sources: docs/checks.md, and their graphs."""

from __future__ import annotations

import shutil
from pathlib import Path

import drawing
import pytest


@pytest.fixture
def diagrams(tmp_path: Path) -> Path:
    """Copy the diagrams, to spoil them."""
    return Path(shutil.copytree(drawing.DIAGRAMS, tmp_path / "diagrams"))


def test_the_kept_pictures_are_those_of_their_sources(diagrams: Path) -> None:
    assert drawing.faults_of_kept_pictures(diagrams) == []


@pytest.mark.parametrize("name", drawing.KEPT)
def test_a_picture_that_shows_something_else_is_a_fault(diagrams: Path, name: str) -> None:
    picture = diagrams / f"{name}.svg"
    picture.write_text(picture.read_text().replace("<text", "<text>more</text><text", 1))
    (fault,) = drawing.faults_of_kept_pictures(diagrams)
    assert fault.startswith(f"docs/diagrams/{name}.svg: expected")
    picture.unlink()
    (fault,) = drawing.faults_of_kept_pictures(diagrams)
    assert "found none" in fault


def test_the_protocols_are_drawn_as_the_page_has_them() -> None:
    assert drawing.faults_of_protocols() == []


@pytest.mark.parametrize(
    ("name", "code"),
    [("export_protocol", "context_not_default"), ("import_protocol", "shape_negative")],
)
def test_a_protocol_that_is_drawn_otherwise_is_a_fault(
    diagrams: Path, name: str, code: str
) -> None:
    source = diagrams / f"{name}.dot"
    assert code in source.read_text()
    source.write_text(source.read_text().replace(code, "read_only"))
    (fault,) = drawing.faults_of_protocols(diagrams)
    assert fault.startswith(f"docs/diagrams/{name}.dot: expected the codes")
