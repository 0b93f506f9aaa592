# SPDX-License-Identifier: Apache-2.0
"""What the documentation says of a managed tensor, written without the code under test.

Which rule it breaks first, and if none, what must be proved of it. Python's integers have no end,
so no overflow is looked for: a number is too large or it is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from capsules import IS_COPIED, IS_SUBBYTE_TYPE_PADDED, READ_ONLY, DLManagedTensorVersioned

ONEAPI = 14
KNOWN_FLAGS = READ_ONLY | IS_COPIED | IS_SUBBYTE_TYPE_PADDED


@dataclass(frozen=True)
class Allocation:
    """USM of the default context of its device's platform; ``owner`` keeps it."""

    base: int
    size: int
    usm_type: str
    device_id: int
    owner: Any = None


@dataclass
class Process:
    """What this process has: root devices, one on each platform, and all USM that is alive."""

    devices: Sequence[str]  # "works" or "broken"
    backend: str = "opencl"
    allocations: list[Allocation] = field(default_factory=list)

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that an address points into, its end excluded."""
        for known in self.allocations:
            if known.base <= address < known.base + known.size:
                return known
        return None


@dataclass(frozen=True)
class Requirements:
    """What the caller asks for; by default nothing."""

    usm_types: frozenset[str] = frozenset({"host", "device", "shared"})
    backends: frozenset[str] | None = None
    dtype: tuple[int, int, int] | None = None
    ndim: int | None = None
    writable: bool = False
    unique: bool = False
    device_id: int | None = None
    # of from_dlpack:
    copy: bool | None = None
    to_device: int | None = None
    to_usm_type: str | None = None

    def is_elsewhere(self, device_id: int, usm_type: str) -> bool:
        """Whether memory is not where it is asked for."""
        other_device = self.to_device not in (None, device_id)
        return other_device or self.to_usm_type not in (None, usm_type)


@dataclass(frozen=True)
class Verdict:
    """The code of the first broken rule, or None and what must be proved."""

    code: str | None
    facts: dict[str, Any] = field(default_factory=dict)
    copied: bool = False  # from_dlpack copies, and gives back what it was given


def dtype_is_known(code: int, bits: int, lanes: int) -> bool:
    """Whether DLPack 1.3 has the dtype."""
    whole_bytes = bits % 8 == 0
    if bits == 0 or lanes == 0:
        return False
    if code in (0, 1, 3):  # int, uint, opaque handle
        return whole_bytes or bits in (1, 2, 4)
    if code == 2:  # float
        return whole_bytes and bits >= 16
    if code == 5:  # complex: two floats
        return bits % 16 == 0 and bits >= 32
    fixed = {4: 16, 15: 6, 16: 6, 17: 4} | dict.fromkeys([6, *range(7, 15)], 8)
    return fixed.get(code) == bits


def alignment(code: int, bits: int) -> int:
    """Return what the address of a scalar must be a multiple of, 16 at most."""
    scalar = bits // 2 if code == 5 else bits
    return max(a for a in (1, 2, 4, 8, 16) if a == 1 or scalar % (8 * a) == 0)


def compact(shape: Sequence[int]) -> list[int]:
    """Return what null strides stand for."""
    return [math.prod(shape[r + 1 :]) for r in range(len(shape))]


def steps_over(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether each dimension, by size of step, steps over all that the smaller ones reach."""
    reach = 0
    for step, extent in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if step <= reach:
            return False
        reach += step * (extent - 1)
    return True


@dataclass
class View:
    """The bytes of a view: ``first`` is its first element; ``fits`` if the address space does."""

    first: int
    lowest: int
    past_end: int
    empty: bool
    unique: bool
    fits: bool


def view_of(tensor: Any, shape: Sequence[int], padded: bool) -> View:
    """Return which bytes a tensor spans."""
    strides = list(tensor.strides[: len(shape)]) if tensor.strides else compact(shape)
    first = (tensor.data or 0) + tensor.byte_offset
    if 0 in shape:
        return View(first, first, first, True, True, first < 2**64)
    reaches = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = sum(r for r in reaches if r < 0), sum(r for r in reaches if r > 0) + 1
    bits = (8 if padded and tensor.bits < 8 else tensor.bits) * tensor.lanes
    lowest, past_end = first + low * bits // 8, first - (-high * bits // 8)
    # Offsets are int64_t: of bytes, or of bits where elements share bytes, which are rounded up.
    unit, rounding = (bits // 8, 0) if bits % 8 == 0 else (bits, 7)
    fits = (
        low * unit >= -(2**63)
        and high * unit + rounding < 2**63
        and lowest > 0  # nothing stands at address 0
        and past_end < 2**64
        and past_end - lowest < 2**63
    )
    return View(first, lowest, past_end, False, steps_over(shape, strides), fits)


def _broken_structure(managed: Any, wanted: Requirements) -> str | None:
    if isinstance(managed, DLManagedTensorVersioned):
        if managed.major != 1:
            return "version_unsupported"
        if managed.flags & ~KNOWN_FLAGS:
            return "flags_unknown"
        if wanted.writable and managed.flags & READ_ONLY:
            return "read_only"
    tensor = managed.dl_tensor
    if tensor.device_type != ONEAPI:
        return "device_type_unsupported"
    if tensor.ndim < 0:
        return "ndim_out_of_range"
    if tensor.ndim > 0 and not tensor.shape:
        return "shape_null"
    if not dtype_is_known(tensor.code, tensor.bits, tensor.lanes):
        return "dtype_unsupported"
    shape = tensor.shape[: tensor.ndim] if tensor.ndim else []
    return "shape_negative" if any(n < 0 for n in shape) else None


def _broken_view(tensor: Any, view: View) -> str | None:
    if not tensor.data:
        return None if view.empty else "data_null"
    if not view.fits:
        return "span_overflow"
    aligned = view.first % alignment(tensor.code, tensor.bits) == 0
    return None if view.empty or aligned else "data_misaligned"


def _broken_requirement(
    tensor: Any, view: View, wanted: Requirements, process: Process
) -> str | None:
    if wanted.dtype not in (None, (tensor.code, tensor.bits, tensor.lanes)):
        return "dtype_mismatch"
    if wanted.ndim not in (None, tensor.ndim):
        return "rank_mismatch"
    if wanted.unique and not view.unique:
        return "overlapping"
    if wanted.device_id not in (None, tensor.device_id):
        return "device_not_accepted"
    if not 0 <= tensor.device_id < len(process.devices):
        return "device_id_out_of_range"
    if process.devices[tensor.device_id] == "broken":
        return "device_failed"
    accepted = wanted.backends is None or process.backend in wanted.backends
    return None if accepted else "backend_not_accepted"


def _broken_binding(
    tensor: Any, view: View, wanted: Requirements, there: Allocation | None
) -> str | None:
    if view.empty:  # it may point anywhere, one past the end of its array for example
        return None
    if there is None:
        return "pointer_unknown"
    if there.device_id != tensor.device_id:
        return "device_mismatch"
    if there.usm_type not in wanted.usm_types:
        return "usm_type_not_accepted"
    inside = there.base <= view.lowest and view.past_end <= there.base + there.size
    return None if inside else "out_of_bounds"


def judge(managed: Any, process: Process, wanted: Requirements | None = None) -> Verdict:
    """Say what must come of a managed tensor, reading no more than the rules need."""
    wanted = wanted or Requirements()
    tensor = managed.dl_tensor
    code = _broken_structure(managed, wanted)
    if code is not None:
        return Verdict(code)
    shape = list(tensor.shape[: tensor.ndim]) if tensor.ndim else []
    flags = getattr(managed, "flags", 0)
    view = view_of(tensor, shape, bool(flags & IS_SUBBYTE_TYPE_PADDED))
    nowhere = view.empty and not tensor.data
    first = 0 if nowhere else view.first
    there = None if nowhere else process.find(first)
    code = (
        _broken_view(tensor, view)
        or _broken_requirement(tensor, view, wanted, process)
        or _broken_binding(tensor, view, wanted, there)
    )
    known = there if there is not None and there.device_id == tensor.device_id else None
    if known is not None and view.empty and known.usm_type not in wanted.usm_types:
        known = None  # another's, which begins where the view ends
    elsewhere = wanted.is_elsewhere(tensor.device_id, known.usm_type if known else "unknown")
    if code is None and wanted.copy is False and (elsewhere or flags & IS_COPIED):
        code = "copy_needed"
    if code is not None:
        return Verdict(code)
    return Verdict(
        None,
        {
            "data": first,
            "shape": tuple(shape),
            "strides": tuple(tensor.strides[: len(shape)]) if shape and tensor.strides else None,
            "usm_type": known.usm_type if known else "unknown",
            "device_id": tensor.device_id,
            "readonly": bool(flags & READ_ONLY),
            "nbytes": view.past_end - view.lowest,
            "overlapping": not view.unique,
            "base": known.base if known and not view.empty else 0,
            "size": known.size if known and not view.empty else 0,
        },
        elsewhere or (wanted.copy is True and not (flags & IS_COPIED and view.unique)),
    )
