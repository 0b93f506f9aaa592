# SPDX-License-Identifier: Apache-2.0
"""The example of dpctl.tensor in docs/how-to/dpctl.md, with the last release that has it."""

from __future__ import annotations

from pathlib import Path

import guide


def test_the_example_of_dpctl_tensor_prints_what_its_page_shows(tmp_path: Path) -> None:
    # dpctl.tensor announces that it moves to dpnp.
    quiet = ("-W", "ignore::DeprecationWarning")
    printed = guide.run("with_dpctl_tensor", tmp_path, *quiet)
    assert printed == guide.expected("with_dpctl_tensor")
