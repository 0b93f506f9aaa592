# SPDX-License-Identifier: Apache-2.0
"""The libraries whose arrays are exchanged, behind the names that the tests use.

dpnp took over dpctl.tensor, so its ``dpnp.tensor`` has the same names; its public arrays,
``dpnp.ndarray``, hold one of those.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np


class Peer:
    """``dpctl.tensor``, ``dpnp`` or ``dpnp.tensor``."""

    def __init__(self, name: str) -> None:
        self.name = name
        tensor = "dpctl.tensor" if name == "dpctl.tensor" else "dpnp.tensor"
        with warnings.catch_warnings():
            # dpctl.tensor announces that it moves to dpnp.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.namespace: Any = importlib.import_module(name)
            # The functions that take bare capsules.
            self.capsules: Any = importlib.import_module(f"{tensor}._dlpack")
        ndarray = "ndarray" if name == "dpnp" else "usm_ndarray"
        self.ndarray: Any = getattr(self.namespace, ndarray)

    def usm_ndarray(self, array: Any) -> Any:
        """Return the array that knows its address, and counts its strides in elements."""
        return array.get_array() if hasattr(array, "get_array") else array

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        return int(self.usm_ndarray(array)._pointer)

    def strides(self, array: Any) -> tuple[int, ...]:
        """Return the strides in elements."""
        return tuple(self.usm_ndarray(array).strides)

    def from_numpy(self, values: np.ndarray, **place: Any) -> Any:
        """Return an array with these values, written when this returns."""
        array = self.namespace.asarray(values, **place)
        array.sycl_queue.wait()
        return array

    def to_numpy(self, array: Any) -> np.ndarray:
        """Return a copy of the values on the host."""
        return np.asarray(self.namespace.asnumpy(array))

    def set_readonly(self, array: Any) -> None:
        """Forbid writing to an array."""
        self.usm_ndarray(array).flags["W"] = False
