# SPDX-License-Identifier: Apache-2.0
"""What is exchanged with each consumer: one array for each cell of docs/consumers.md.

A case says what the array is; `make_tensor` makes one of ours of it, and the consumers make one of
theirs. Bytes are compared, so that dtypes without a NumPy dtype can be. A host exchange is a case,
and how a library gets it as memory of the host.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import dpctl
import numpy as np
import usm_dlpack
from usm_dlpack import _dtypes
from usm_here import USM_TYPES, allocate, described, name_of

GRID = np.arange(24, dtype="i4").reshape(4, 6)
PLAIN_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
# Those that NumPy has no dtype for, and how many bits an element has.
OTHER_DTYPES = {
    "bfloat16": 16,
    "complex32": 32,
    "float8_e3m4": 8,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 8,
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
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


View = Callable[[Any, Any], Any]


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
    device_id
        The root device.
    readonly
        Whether the array forbids writing.
    """

    name: str
    values: np.ndarray
    dtype: str = "int32"
    view: View | None = None
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


CASES = (
    Case("device USM", GRID, usm_type="device"),
    Case("host USM", GRID, usm_type="host"),
    Case("shared USM", GRID, usm_type="shared"),
    Case("second device", GRID, device_id=1),
    Case("empty", np.empty((0, 3), "i4")),
    Case("0-d", np.array(7, "i4")),
    Case("strided", GRID, view=lambda xp, a: a[1::2, ::3]),
    Case("reversed", GRID, view=lambda xp, a: a[::-1, 1::2]),
    Case("broadcast", GRID, view=lambda xp, a: xp.broadcast_to(a[1, :], (3, 6))),
    Case("read-only", GRID, readonly=True),
    *(_of_dtype(dtype) for dtype in DTYPES),
)


@dataclass(frozen=True)
class HostExchange:
    """One tensor of ours that a library takes as memory of the host.

    Attributes
    ----------
    case
        What it is.
    by
        ``"capsule"``: the library gets a capsule for the host, and asks for no device;
        ``"keyword"``: the library asks for it, by a keyword of its own.
    version
        The ``max_version`` that ours is asked with, by a capsule alone: legacy, or versioned.
    copy
        The ``copy`` that is asked for.
    """

    case: Case
    by: str
    version: str | None
    copy: bool | None


HOST_CASES = tuple(
    Case(name, values, view=view, usm_type=kind)
    for name, values, view in (
        ("C order", GRID, None),
        ("F order", GRID, lambda xp, a: a.T),
        ("reversed", GRID, lambda xp, a: a[::-1, ::-1]),
        ("gaps", GRID, lambda xp, a: a[1::2, ::3]),
        ("broadcast", GRID, lambda xp, a: xp.broadcast_to(a[1, :], (3, 6))),
        ("0-d", np.array(7, "i4"), None),
        ("empty", np.empty((0, 3), "i4"), None),
    )
    for kind in USM_TYPES
)
HOST_EXCHANGES = (
    *(
        HostExchange(case, "capsule", version, copy)
        for case in HOST_CASES
        for version in ("legacy", "versioned")
        for copy in (None, True)
    ),
    *(HostExchange(case, "keyword", None, copy) for case in HOST_CASES for copy in (None, True)),
)


class OnHost:
    """A tensor of ours as an array of the host.

    It asks ours for what the exchange says, whatever the library asks for.
    """

    def __init__(self, tensor: usm_dlpack.DLPackTensor, exchange: HostExchange) -> None:
        self.tensor = tensor
        self.keywords: dict[str, Any] = {"dl_device": (1, 0), "copy": exchange.copy}
        if exchange.version == "versioned":
            self.keywords["max_version"] = (1, 3)

    def __dlpack__(self, **_: Any) -> Any:
        return self.tensor.__dlpack__(**self.keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@cache
def queue_of(device_id: int) -> dpctl.SyclQueue:
    """Return one queue of a root device, in its default context."""
    return dpctl.SyclQueue(usm_dlpack.root_device(device_id))


class _Owner:
    """Owns memory, and says whether it may be written, which dpctl's memory does not."""

    def __init__(self, memory: Any, readonly: bool) -> None:
        self.memory = memory
        interface = memory.__sycl_usm_array_interface__
        self.__sycl_usm_array_interface__ = interface | {"data": (memory._pointer, readonly)}


def make_tensor(case: Case, usm_type: str) -> usm_dlpack.DLPackTensor:
    """Return a tensor of ours as a case says."""
    base = case.values if case.values.size else np.zeros(1, case.values.dtype)
    memory = allocate(base, case.usm_type or usm_type, queue_of(case.device_id))
    view = case.seen
    strides = None
    if case.view is not None:
        strides = [step // view.itemsize for step in view.strides]
    return usm_dlpack.to_dlpack_tensor(
        _Owner(memory, case.readonly),
        shape=case.shape,
        dtype=dlpack_dtype(case.dtype),
        strides=strides,
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


_DTYPE_NAMES = {dlpack_dtype(name): name for name in DTYPES}


def name_of_dtype(code: int, bits: int, lanes: int) -> str:
    """Return DLPack's name of an element type."""
    return _DTYPE_NAMES.get((code, bits, lanes), f"({code}, {bits}, {lanes})")


def flags_of(capsule: Any) -> int:
    """Return the flags in a capsule, which a legacy one does not have."""
    if not name_of(capsule).endswith("versioned"):
        return 0
    return ctypes.c_uint64.from_address(ctypes.addressof(described(capsule)) - 8).value


def gather(address: int, shape: Sequence[int], strides: Sequence[int], bits: int) -> bytes:
    """Return the elements of host memory, in C order."""
    if 0 in shape:
        return b""
    if bits % 8 != 0:  # packed, and compact
        return ctypes.string_at(address, int(np.prod(shape)) * bits // 8)
    steps = [stride * bits // 8 for stride in strides]
    lowest = sum(min(0, (n - 1) * s) for n, s in zip(shape, steps, strict=True))
    highest = sum(max(0, (n - 1) * s) for n, s in zip(shape, steps, strict=True))
    span = ctypes.string_at(address + lowest, highest - lowest + bits // 8)
    view: np.ndarray = np.ndarray(shape, f"V{bits // 8}", span, -lowest, steps)
    return view.tobytes()


def see_tensor(tensor: usm_dlpack.DLPackTensor) -> Seen:
    """Return what a tensor of ours says of itself."""
    described_dtype = described(tensor.__dlpack__(max_version=(1, 3))).dtype
    code, bits, low, high = described_dtype
    lanes = low + high * 256
    capsule = tensor.__dlpack__(max_version=(1, 3), dl_device=(1, 0))
    here = described(capsule)
    strides = here.strides[: here.ndim]
    return Seen(
        tensor.shape,
        name_of_dtype(code, bits, lanes),
        gather((here.data or 0) + here.byte_offset, tensor.shape, strides, bits * lanes),
        tensor.data,
        tensor.readonly,
    )
