# SPDX-License-Identifier: Apache-2.0
"""Finds what is shared with the tests of the package: guide.py, capsules.py and others."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "python" / "support"))
pytest.register_assert_rewrite("guide")
