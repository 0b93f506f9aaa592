# SPDX-License-Identifier: Apache-2.0
"""What the cases ask of a library."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest


class NotSupportedError(pytest.skip.Exception):  # type: ignore[misc,name-defined]
    """The library cannot do what a case needs. The case is then reported as not run."""


class Adapter:
    """One library. Override what it can do: cases that need the rest are reported as not run.

    A library that only exports overrides `make`, `to_bytes` and `address`; one that only imports
    `allocate`, `consume`, `to_bytes` and `address`.
    """

    # The kinds of USM that it makes arrays of, the usual one first.
    kinds: Sequence[str] = ("device", "shared", "host")
    # NumPy's names of its dtypes.
    dtypes: Sequence[str] = ("float32",)

    def make(
        self,
        data: bytes,
        shape: Sequence[int],
        dtype: str = "float32",
        strides: Sequence[int] | None = None,
        kind: str = "device",
        queue: Any = None,
    ) -> Any:
        """Return an array of new memory that holds ``data``, complete.

        ``strides`` are in elements, and the element of lowest address is the first of ``data``.
        ``queue`` is one of `queues`, `queue_of_other_context` or `queue_of_sub_device`.
        """
        raise NotSupportedError("it makes no arrays")

    def allocate(self, data: bytes, kind: str = "device", queue: Any = None) -> tuple[Any, int]:
        """Return the owner of new USM that holds ``data``, and its address."""
        array = self.make(data, (len(data),), "uint8", None, kind, queue)
        return array, self.address(array)

    def consume(self, x: Any, **keywords: Any) -> Any:
        """Return an array of the library, by its ``from_dlpack``.

        The keywords are ``device``, a pair of DLPack, and ``copy``.
        """
        raise NotSupportedError("it takes no arrays")

    def to_bytes(self, array: Any) -> bytes:
        """Return the elements in C order, after all work on them."""
        raise NotSupportedError("its values cannot be read")

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        raise NotSupportedError("its addresses cannot be read")

    def is_readonly(self, array: Any) -> bool:
        """Return whether the library refuses to write to the array."""
        raise NotSupportedError("its arrays do not say whether they are read-only")

    def make_readonly(self, array: Any) -> Any:
        """Return the array, or a view of it, to which the library does not write."""
        raise NotSupportedError("it makes no read-only arrays")

    def queues(self) -> Sequence[Any]:
        """Return a queue for each root device, in the order of ``sycl::device::get_devices()``."""
        raise NotSupportedError("it takes no queue")

    def queue_of_other_context(self) -> Any:
        """Return a queue on the first root device whose context is not the default one."""
        raise NotSupportedError("it takes no queue of another context")

    def queue_of_sub_device(self) -> Any:
        """Return a queue on a sub-device of the first root device."""
        raise NotSupportedError("it takes no queue of a sub-device")

    def write_pending(self, array: Any, data: bytes) -> Callable[[], None]:
        """Submit a write of ``data`` to an array, on its queue, that cannot begin yet.

        Returns a function, callable on any thread, that releases the write.
        """
        raise NotSupportedError("it leaves no write pending")

    def read_behind(self, queue: Any, address: int, nbytes: int) -> bytes:
        """Return bytes of USM as a command reads them that is submitted to a queue now."""
        raise NotSupportedError("it reads no memory by a command of a queue")
