# SPDX-License-Identifier: Apache-2.0
"""The page docs/speed.md: each benchmark renews its own section."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "speed.md"


def write_section(heading: str, text: str) -> None:
    """Replace what stands between one heading of the second level and the next."""
    before, found, after = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    if not found:
        raise ValueError(f"{PAGE.name}: expected a heading '{heading}', found none; add it")
    _, next_heading, rest = after.partition("\n## ")
    PAGE.write_text(f"{before}{found}\n{text}\n{next_heading}{rest}", encoding="utf-8")
