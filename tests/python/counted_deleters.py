# SPDX-License-Identifier: Apache-2.0
"""Counts how often the deleters of managed tensors that went out have run."""

from __future__ import annotations

import ctypes
from typing import Any

from capsules import content_of

_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class CountedDeleters:
    """Stands before the deleters of managed tensors; a second call of one would find none."""

    def __init__(self) -> None:
        self.exports = 0
        self.deletions = 0
        self.originals: dict[int, int] = {}
        self._counting = _Deleter(self._count)

    def _count(self, address: int) -> None:
        original = self.originals.pop(address, None)
        self.deletions += 1
        if original is not None:
            _Deleter(original)(address)

    def count(self, managed: Any) -> Any:
        """Put a deleter that counts before the one of a managed tensor, and return the tensor."""
        self.exports += 1
        self.originals[ctypes.addressof(managed)] = managed.deleter
        managed.deleter = ctypes.cast(self._counting, ctypes.c_void_p)
        return managed

    def count_capsule(self, capsule: Any) -> Any:
        """Do the same with what is in a fresh capsule, and return the capsule."""
        self.count(content_of(capsule))
        return capsule
