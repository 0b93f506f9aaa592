# SPDX-License-Identifier: Apache-2.0
"""What is exchanged with each consumer: one array for each cell of docs/consumers.md.

A case says what the array is; `make_tensor` makes one of ours of it, and the consumers make one of
theirs. Bytes are compared, so that dtypes without a NumPy dtype can be.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import usm_dlpack
from capsules import content_of
from usm_dlpack import _dtypes
from usm_here import MemoryOwner, allocate, queue_of

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
    "float4_e2m1fn_x2": 8,
    "int4": 4,
    "uint4": 4,
}
DTYPES = (*PLAIN_DTYPES, *OTHER_DTYPES)


def dlpack_dtype(name: str) -> tuple[int, int, int]:
    """Return code, bits and lanes; two lanes for PyTorch's name of a pair."""
    element, _, lanes = name.partition("_x")
    code, bits, *_ = _dtypes.read_dtype(element)
    return code, bits, int(lanes or 1)


_DTYPE_NAMES = {dlpack_dtype(name): name for name in DTYPES}


def name_of_dtype(code: int, bits: int, lanes: int) -> str:
    """Return DLPack's name of an element type."""
    return _DTYPE_NAMES.get((code, bits, lanes), f"({code}, {bits}, {lanes})")


class NotOfferedError(Exception):
    """A library has no such array at all: the cell is empty."""


@dataclass(frozen=True)
class Case:
    """One array.

    Attributes
    ----------
    name
        The cell: a heading of the page, or ``dtype <name>``.
    values
        The elements; raw bytes if NumPy has no such dtype.
    dtype
        DLPack's name of the element type.
    view
        What is seen of `values`, from a namespace and an array; None is all of it.
    usm_type
        The kind of USM; None is the one that the consumer prefers.
    """

    name: str
    values: np.ndarray
    dtype: str = "int32"
    view: Callable[[Any, Any], Any] | None = None
    usm_type: str | None = None
    device_id: int = 0
    readonly: bool = False

    @property
    def seen(self) -> np.ndarray:
        """What is seen of the values."""
        return self.values if self.view is None else self.view(np, self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which that of raw bytes is not."""
        if self.dtype not in OTHER_DTYPES:
            return self.seen.shape
        return (self.values.size * 8 // OTHER_DTYPES[self.dtype],)


def _of_dtype(dtype: str) -> Case:
    if dtype in PLAIN_DTYPES:
        return Case(f"dtype {dtype}", np.arange(8).reshape(2, 4).astype(dtype), dtype)
    # Small positive numbers in each of them, eight or more.
    return Case(f"dtype {dtype}", np.arange(1, 13, dtype="u1").repeat(4), dtype)


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
    *(_of_dtype(dtype) for dtype in DTYPES),
)
# What is taken as memory of the host.
HOST_CASES = (
    Case("C order", GRID),
    Case("F order", GRID, view=lambda xp, a: a.T),
    Case("reversed", GRID, view=lambda xp, a: a[::-1, ::-1]),
    Case("gaps", GRID, view=lambda xp, a: a[1::2, ::3]),
    *(BROADCAST, SCALAR, EMPTY),
)


class OnHost:
    """A tensor of ours as an array of the host, which gives one kind of capsule."""

    def __init__(self, tensor: usm_dlpack.DLPackTensor, **keywords: Any) -> None:
        self.tensor = tensor
        self.keywords = keywords

    def __dlpack__(self, **_: Any) -> Any:
        return self.tensor.__dlpack__(dl_device=(1, 0), **self.keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def make_tensor(case: Case, usm_type: str) -> usm_dlpack.DLPackTensor:
    """Return a tensor of ours as a case says."""
    base = case.values if case.values.size else np.zeros(1, case.values.dtype)
    memory = allocate(base, case.usm_type or usm_type, queue_of(case.device_id))
    view = case.seen
    strides = [step // view.itemsize for step in view.strides]
    return usm_dlpack.to_dlpack_tensor(
        MemoryOwner(memory, case.readonly),
        shape=case.shape,
        dtype=dlpack_dtype(case.dtype),
        strides=None if case.view is None else strides,
        byte_offset=view.ctypes.data - case.values.ctypes.data,
    )


@dataclass(frozen=True)
class Seen:
    """What a library says of an array."""

    shape: tuple[int, ...]
    dtype: str
    bytes: bytes
    address: int
    readonly: bool


def gather(address: int, shape: Sequence[int], strides: Sequence[int], bits: int) -> bytes:
    """Return the elements of host memory, in C order."""
    if 0 in shape:
        return b""
    if bits % 8 != 0:  # packed, and compact
        return ctypes.string_at(address, int(np.prod(shape)) * bits // 8)
    steps = [stride * bits // 8 for stride in strides]
    reaches = [(n - 1) * step for n, step in zip(shape, steps, strict=True)]
    lowest = sum(reach for reach in reaches if reach < 0)
    highest = sum(reach for reach in reaches if reach > 0)
    span = ctypes.string_at(address + lowest, highest - lowest + bits // 8)
    view: np.ndarray = np.ndarray(shape, f"V{bits // 8}", span, -lowest, steps)
    return view.tobytes()


def see_tensor(tensor: usm_dlpack.DLPackTensor) -> Seen:
    """Return what a tensor of ours says of itself."""
    capsule = tensor.__dlpack__(max_version=(1, 3), dl_device=(1, 0))
    here = content_of(capsule).dl_tensor
    strides = here.strides[: here.ndim]
    address = (here.data or 0) + here.byte_offset
    return Seen(
        tensor.shape,
        name_of_dtype(here.code, here.bits, here.lanes),
        gather(address, tensor.shape, strides, here.bits * here.lanes),
        tensor.data,
        tensor.readonly,
    )
