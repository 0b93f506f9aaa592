# SPDX-License-Identifier: Apache-2.0
"""What the tests of all peers share: asserts in the contract explain themselves, too."""

import sys
from pathlib import Path

import pytest

# guide.py, which runs the examples of the pages here as it does there, and capsules.py.
sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))
pytest.register_assert_rewrite("exchange_contract", "guide")
