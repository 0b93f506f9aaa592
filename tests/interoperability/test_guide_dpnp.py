# SPDX-License-Identifier: Apache-2.0
"""The example of docs/how-to/dpctl.md, with the dpnp of this environment."""

from __future__ import annotations

from pathlib import Path

import guide


def test_the_example_of_dpnp_prints_what_its_page_shows(tmp_path: Path) -> None:
    assert guide.run("with_dpnp", tmp_path) == guide.expected("with_dpnp")
