# SPDX-License-Identifier: Apache-2.0
"""What is exchanged with each consumer: one array for each cell of docs/consumers.md.

A case says what the array is; `make_tensor` makes one of ours, and the consumers make theirs. Bytes
are compared, so that dtypes without a NumPy dtype can be.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import dpctl
import numpy as np
import usm_dlpack
from memory_sources import TypedArray

GRID = np.arange(24, dtype="i4").reshape(4, 6)
PLAIN_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
# Those that NumPy has no dtype for, and how many bits an element has.
OTHER_DTYPES = {
    "bfloat16": 16,
    "complex32": 32,
    **{f"float8_{n}": 8 for n in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz")},
    **{f"float8_{n}": 8 for n in ("e5m2", "e5m2fnuz", "e8m0fnu")},
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float4_e2m1fn": 4,
    "float4_e2m1fnx2": 8,
    "int4": 4,
    "uint4": 4,
}
DTYPES = (*PLAIN_DTYPES, *OTHER_DTYPES)


@dataclass(frozen=True)
class Case:
    """One array, and the cell that it has: a heading of the page, or ``dtype <name>``."""

    name: str
    values: np.ndarray  # raw bytes if NumPy has no such dtype
    dtype: str = "int32"
    # What is seen of the values, from a namespace and an array; None is all of it.
    view: Callable[[Any, Any], Any] | None = None
    usm_type: str | None = None  # None is the kind that the consumer prefers
    device_id: int = 0
    readonly: bool = False

    @property
    def seen(self) -> np.ndarray:
        return self.values if self.view is None else self.view(np, self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which that of raw bytes is not."""
        if self.dtype not in OTHER_DTYPES:
            return self.seen.shape
        return (self.values.size * 8 // OTHER_DTYPES[self.dtype],)


EMPTY = Case("empty", np.empty((0, 3), "i4"))
SCALAR = Case("0-d", np.array(7, "i4"))
BROADCAST = Case("broadcast", GRID, view=lambda xp, a: xp.broadcast_to(a[1, :], (3, 6)))
CASES = (
    *(Case(f"{kind} USM", GRID, usm_type=kind) for kind in ("device", "host", "shared")),
    Case("second device", GRID, device_id=1),
    *(EMPTY, SCALAR),
    Case("strided", GRID, view=lambda xp, a: a[1::2, ::3]),
    Case("reversed", GRID, view=lambda xp, a: a[::-1, 1::2]),
    BROADCAST,
    Case("read-only", GRID, readonly=True),
    *(Case(f"dtype {t}", np.arange(8).reshape(2, 4).astype(t), t) for t in PLAIN_DTYPES),
    # Small positive numbers in each of them, eight or more.
    *(Case(f"dtype {t}", np.arange(1, 13, dtype="u1").repeat(4), t) for t in OTHER_DTYPES),
)
# What is taken as memory of the host.
HOST_CASES = (
    Case("C order", GRID),
    Case("F order", GRID, view=lambda xp, a: a.T),
    Case("reversed", GRID, view=lambda xp, a: a[::-1, ::-1]),
    Case("gaps", GRID, view=lambda xp, a: a[1::2, ::3]),
    *(BROADCAST, SCALAR, EMPTY),
)


@cache
def queue_of(device_id: int) -> dpctl.SyclQueue:
    return dpctl.SyclQueue(usm_dlpack.root_device(device_id))


def make_tensor(case: Case, usm_type: str) -> usm_dlpack.DLPackTensor:
    raw = case.values.reshape(-1).view("u1") if case.values.size else np.zeros(4, "u1")
    place = {"device": queue_of(case.device_id), "usm_type": case.usm_type or usm_type}
    memory = usm_dlpack.from_dlpack(raw, **place)
    view = case.seen
    return usm_dlpack.to_dlpack_tensor(
        TypedArray(memory, typestr="|u1", shape=raw.shape, data=(memory.data, case.readonly)),
        shape=case.shape,
        dtype=case.dtype,
        strides=None if case.view is None else [step // view.itemsize for step in view.strides],
        byte_offset=view.ctypes.data - case.values.ctypes.data,
    )


@dataclass(frozen=True)
class Seen:
    shape: tuple[int, ...]
    dtype: str
    bytes: bytes
    address: int
    readonly: bool


def bytes_of(tensor: usm_dlpack.DLPackTensor) -> bytes:
    """Return the elements in C order, also those that NumPy has no dtype for."""
    copy = usm_dlpack.from_dlpack(tensor, usm_type="host", order="C", copy=True)
    return usm_dlpack.to_dlpack_tensor(copy, shape=copy.nbytes, dtype="uint8").numpy().tobytes()


def see_tensor(tensor: usm_dlpack.DLPackTensor) -> Seen:
    dtype = str(tensor.dtype)
    return Seen(tensor.shape, dtype, bytes_of(tensor), tensor.data, tensor.readonly)
