# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules as another library makes them, field by field, and what stands in a capsule.

`ForeignTensor` is the one builder: it is valid, and a test spoils one field of ``managed`` or
``tensor`` before it takes the capsule. It counts the calls of its deleter.
"""

import ctypes
import functools
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dpctl
import usm_dlpack

sys.path.insert(1, str(Path(__file__).resolve().parents[3] / "conformance"))

from usm_dlpack_conformance.cases import compact_strides
from usm_dlpack_conformance.dlpack import (  # noqa: F401 (tests import them from here)
    IS_COPIED,
    LEGACY,
    READ_ONLY,
    VERSIONED,
    DLManagedTensorVersioned,
    DLTensor,
    Foreign,
    call_deleter,
    consume,
    content_of,
    integers,
    name_of,
    new_capsule,
)

IS_SUBBYTE_TYPE_PADDED = 4
NEWEST = (1, 3)  # version of DLPack
# The codes of the dtypes of 8 bits that are named by code alone.
_NAMES = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
FLOAT8 = {f"float8_{name}": code for code, name in enumerate(_NAMES, 7)}


def bytes_on_host(capsule: Any) -> bytes:
    """Return the bytes of a compact tensor in a capsule for the host."""
    inside = content_of(capsule).dl_tensor
    assert (inside.device_type, inside.device_id, inside.byte_offset) == (1, 0, 0)
    shape = integers(inside.shape, inside.ndim)
    assert integers(inside.strides, inside.ndim) == compact_strides(shape)
    return ctypes.string_at(inside.data, math.prod(shape) * inside.bits // 8)


class ForeignTensor(Foreign):
    """A managed tensor of another library: 12 float32 at an address, compact, on device 0."""

    def __init__(
        self,
        data: int,
        *,
        shape: Sequence[int] = (3, 4),
        strides: Sequence[int] | None = None,
        dtype: tuple[int, int, int] = (2, 32, 1),
        legacy: bool = False,
    ) -> None:
        super().__init__(data, shape, "float32", strides, legacy=legacy)
        self.tensor.code, self.tensor.bits, self.tensor.lanes = dtype
        if not legacy:
            self.managed.minor = NEWEST[1]


class ForeignArray:
    """An array of another library, up to date with DLPack, whose tensor a test has spoiled."""

    def __init__(self, foreign: ForeignTensor, device: Any = (14, 0)) -> None:
        self.foreign = foreign
        self.device = device
        self.asked: list[dict[str, Any]] = []
        # Held, so that the capsule does not die while an exception is on its way: a destructor in
        # Python could not run then.
        self.given: Any = None

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        self.asked.append({name: value for name, value in asked.items() if value is not None})
        capsule = self.given = self.foreign.capsule()
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.device


class Ordering(ForeignArray):
    """An array that says no queue, and orders the consumer's behind its own, as dpnp's do."""

    def __init__(self, foreign: ForeignTensor, queue: Any) -> None:
        super().__init__(foreign)
        self.queue = queue

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        if stream is not None and stream != self.queue:
            stream.submit_barrier([self.queue.submit_barrier()])
        return super().__dlpack__(**keywords)


def dpctl_queue() -> Any:
    """Return the queue on which dpctl and dpnp put memory that they take without a queue."""
    return dpctl.get_device_cached_queue(dpctl.SyclDevice())


@functools.cache  # a tensor that goes waits for its queue
def package_queue(device_id: int = 0) -> Any:
    """Return the package's queue of a root device, which tensors have that know no other."""
    return usm_dlpack.empty(1, device=(14, device_id)).sycl_queue


class OldArray:
    """An array from before all keywords, which answers with whatever a test gave it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __dlpack__(self) -> Any:
        return self.answer


class Calling:
    """An array whose ``__dlpack__`` runs something first."""

    def __init__(self, tensor: Any, act: Callable[[], object]) -> None:
        self.tensor = tensor
        self.act = act

    def __dlpack__(self, **keywords: Any) -> Any:
        self.act()
        return self.tensor.__dlpack__(**keywords)
