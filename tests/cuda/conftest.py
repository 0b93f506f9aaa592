# SPDX-License-Identifier: Apache-2.0
"""Finds what is shared with the tests of the package: capsules.py, pending_work.py and others."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "python" / "support"))
pytest.register_assert_rewrite("capsules", "refusals", "memory_sources", "pending_work")

from time_limit import of_one_test, pytest_configure  # noqa: E402, F401
