# SPDX-License-Identifier: Apache-2.0
# dpctl has no types. Without this stub, strict type checkers refuse a program that imports it.
from typing import Any

def __getattr__(name: str) -> Any: ...
