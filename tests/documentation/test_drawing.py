# SPDX-License-Identifier: Apache-2.0
"""Kept pictures are those of their sources."""

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
