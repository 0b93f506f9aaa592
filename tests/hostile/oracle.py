# SPDX-License-Identifier: Apache-2.0
"""What the documentation says of a managed tensor, written without the code under test.

Which rule it breaks first, and if none, what must be proved of it. The tensors here are compact and
of few dtypes: views of all other kinds are those of tests/fuzz and of test_properties.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from capsules import IS_COPIED, IS_SUBBYTE_TYPE_PADDED, READ_ONLY, DLManagedTensorVersioned

ONEAPI = 14
KNOWN_FLAGS = READ_ONLY | IS_COPIED | IS_SUBBYTE_TYPE_PADDED
# What the bytes of an element are aligned to, by (code, bits, lanes).
DTYPES = {(2, 32, 1): 4, (1, 8, 1): 1, (0, 64, 1): 8, (5, 128, 1): 8, (2, 16, 4): 2}


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


def _dtype_of(tensor: Any) -> tuple[int, int, int]:
    return tensor.code, tensor.bits, tensor.lanes


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
    if _dtype_of(tensor) not in DTYPES:
        return "dtype_unsupported"
    return "shape_negative" if any(n < 0 for n in tensor.shape[: tensor.ndim]) else None


def _broken_view(tensor: Any, first: int, nbytes: int) -> str | None:
    if not tensor.data:
        return "data_null" if nbytes else None
    past_end = first + nbytes
    if past_end >= 2**64 or nbytes >= 2**63:
        return "span_overflow"
    return "data_misaligned" if nbytes and first % DTYPES[_dtype_of(tensor)] else None


def _broken_requirement(tensor: Any, wanted: Requirements, process: Process) -> str | None:
    if wanted.dtype not in (None, _dtype_of(tensor)):
        return "dtype_mismatch"
    if wanted.ndim not in (None, tensor.ndim):
        return "rank_mismatch"
    if wanted.device_id not in (None, tensor.device_id):
        return "device_not_accepted"
    if not 0 <= tensor.device_id < len(process.devices):
        return "device_id_out_of_range"
    if process.devices[tensor.device_id] == "broken":
        return "device_failed"
    accepted = wanted.backends is None or process.backend in wanted.backends
    return None if accepted else "backend_not_accepted"


def _broken_binding(
    tensor: Any, past_end: int, wanted: Requirements, there: Allocation | None
) -> str | None:
    if there is None:
        return "pointer_unknown"
    if there.device_id != tensor.device_id:
        return "device_mismatch"
    if there.usm_type not in wanted.usm_types:
        return "usm_type_not_accepted"
    return None if past_end <= there.base + there.size else "out_of_bounds"


def judge(managed: Any, process: Process, wanted: Requirements | None = None) -> Verdict:
    """Say what must come of a managed tensor, reading no more than the rules need."""
    wanted = wanted or Requirements()
    tensor = managed.dl_tensor
    code = _broken_structure(managed, wanted)
    if code is not None:
        return Verdict(code)
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    flags = getattr(managed, "flags", 0)
    nbytes = math.prod(shape) * tensor.bits * tensor.lanes // 8
    first = tensor.data + tensor.byte_offset if tensor.data else 0
    there = process.find(first)
    code = _broken_view(tensor, first, nbytes) or _broken_requirement(tensor, wanted, process)
    if code is None and nbytes:  # an empty one may point anywhere
        code = _broken_binding(tensor, first + nbytes, wanted, there)
    known = there if there is not None and there.device_id == tensor.device_id else None
    if known is not None and not nbytes and known.usm_type not in wanted.usm_types:
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
            "shape": shape,
            "usm_type": known.usm_type if known else "unknown",
            "device_id": tensor.device_id,
            "readonly": bool(flags & READ_ONLY),
            "nbytes": nbytes,
            "base": known.base if known and nbytes else 0,
            "size": known.size if known and nbytes else 0,
        },
        elsewhere or (wanted.copy is True and not flags & IS_COPIED),
    )
