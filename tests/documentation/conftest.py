# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/ are imported as they import each other."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
