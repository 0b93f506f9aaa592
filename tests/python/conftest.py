# SPDX-License-Identifier: Apache-2.0
"""What every Python test shares."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def project_root() -> Path:
    """Return the folder of the source tree."""
    return Path(__file__).resolve().parents[2]
