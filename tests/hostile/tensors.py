# SPDX-License-Identifier: Apache-2.0
"""Managed tensors made from random numbers: valid ones, of which some fields are then spoiled.

What DLPack lets a consumer read can always be read: ``shape`` and ``strides`` have ``ndim``
entries. Everything else may be anything, also a pointer that nobody may follow.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence
from typing import Any

import dpctl
import usm_dlpack
from capsules import DLManagedTensorVersioned, ForeignTensor
from memory_sources import address_of, allocate
from oracle import Allocation, Process, alignment, compact, view_of
from usm_dlpack import _core

# (code, bits, lanes)
DTYPES = [
    *((code, bits, 1) for code in (0, 1) for bits in (1, 2, 4, 8, 16, 32, 64, 128)),
    *((2, bits, 1) for bits in (16, 32, 64, 128)),
    *((5, bits, 1) for bits in (32, 64, 128)),
    *((code, 8, 1) for code in range(6, 15)),
    (4, 16, 1),
    *((code, bits, 1) for code, bits in ((15, 6), (16, 6), (17, 4), (3, 64))),
    *((17, 4, 2), (2, 32, 4), (0, 8, 3)),
]
EDGES = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**32, 2**61, 2**62, 2**63 - 1, -(2**63)]
_HUGE = 2**31 - 1  # an ndim for which there are no arrays
RANKS = [*range(9)] * 8 + [9, 16, 32, 33, 63, 64, 65, 100, 1000]
KINDS = ("device", "shared", "host")


class Places:
    """The process as the oracle knows it, and addresses of every other kind."""

    def __init__(self) -> None:
        rows = _core.device_rows()
        devices = ["works" if row["failure"] is None else "broken" for row in rows]
        if devices != ["works", "works", "broken"]:
            raise SystemExit(
                "OCL_ICD_FILENAMES: expected two root devices that work and a broken one, "
                f"found {devices}; run `python3 dev.py hostile`, which names three drivers"
            )
        self.process = Process(devices)
        self.queues = [dpctl.SyclQueue(usm_dlpack.root_device(n)) for n in (0, 1)]
        for device_id, queue in enumerate(self.queues):
            for size in (1, 64, 1000, 4096):
                for kind in KINDS:
                    owner = allocate(kind, size, queue)
                    known = Allocation(address_of(owner), size, kind, device_id, owner)
                    self.process.allocations.append(known)
        device = self.queues[0].sycl_device
        other_context = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        self._hidden = [allocate(kind, 256, other_context) for kind in KINDS]
        self._malloc = ctypes.create_string_buffer(4096)
        freed = [address_of(allocate(kind, 1 << 16, self.queues[0])) for kind in ("device", "host")]
        self._wild = [
            *freed,
            *(address_of(owner) for owner in self._hidden),
            ctypes.addressof(self._malloc),
            id(self),
            *(0x7FFF_FFFF_F000, 1, 8, 64, 4096, 2**47, 2**63, 2**64 - 1, 2**64 - 4096),
        ]

    def address(self, dice: random.Random) -> int:
        """Return an address: in, beside or far from USM."""
        known = dice.choice(self.process.allocations)
        beside = [known.base - 1, known.base + known.size - 1, known.base + known.size]
        inside = known.base + dice.choice([1, 2, 4, 8, dice.randrange(known.size)])
        return dice.choice([0, dice.choice(self._wild), dice.getrandbits(64), inside, *beside])


def _strides(dice: random.Random, shape: Sequence[int]) -> list[int] | None:
    """Return strides of one of the layouts that arrays have."""
    kind = dice.choice(["null", "compact", "compact", "F", "negative", "broadcast", "padded"])
    if kind == "null":
        return None
    order = list(range(len(shape)))[:: 1 if kind == "F" else -1]
    if kind == "padded":
        dice.shuffle(order)
    strides, step = [0] * len(shape), 1
    for r in order:
        strides[r] = step
        step *= max(1, shape[r])
        if kind == "padded":
            step = min(step + dice.randrange(3), 2**62)
    if kind == "negative":
        return [dice.choice((-1, 1)) * stride for stride in strides]
    if kind == "broadcast":
        return [dice.choice((0, stride)) for stride in strides]
    # The stride of one element may be anything.
    anything = [n == 1 and dice.random() < 0.1 for n in shape]
    return [dice.choice(EDGES) if any_ else s for s, any_ in zip(strides, anything, strict=True)]


def valid_tensor(dice: random.Random, places: Places) -> ForeignTensor:
    """Return a tensor that lies in USM, if its elements are not too large for that."""
    known = dice.choice(places.process.allocations)
    dtype = dice.choice(DTYPES)
    legacy = dice.random() < 0.4
    rank = dice.choice(RANKS)
    shape = [dice.choice((1, 1, 1, 2, 3)) if r < 8 else 1 for r in range(rank)]
    if dice.random() < 0.06 and rank:
        shape[dice.randrange(rank)] = 0
    strides = _strides(dice, shape)
    foreign = ForeignTensor(known.base, shape=shape, strides=strides, dtype=dtype, legacy=legacy)
    tensor = foreign.tensor
    tensor.device_id = known.device_id
    if strides is None:
        tensor.strides = None
    if not legacy:
        foreign.managed.minor = dice.choice((0, 1, 2, 3, 4, 2**32 - 1))
        foreign.managed.flags = dice.randrange(8)
    padded = not legacy and bool(foreign.managed.flags & 4)
    view = view_of(tensor, shape, padded)
    room = known.size - (view.past_end - view.lowest)
    step = alignment(dtype[0], dtype[1])
    start = known.base - view.lowest + known.base
    # At either end of the allocation, one element beyond it, or anywhere.
    start += dice.choice([0, room, room, -step, room + step, dice.randrange(max(1, room + 1))])
    start -= start % step
    split = dice.choice((0, 0, dice.randrange(64), start - known.base))
    if 0 <= split <= start:
        tensor.data, tensor.byte_offset = start - split, split
    return foreign


def _entries(foreign: ForeignTensor, name: str) -> list[int]:
    """Return the entries of ``shape`` or ``strides``, or what may stand there if it is null."""
    pointer, ndim = getattr(foreign.tensor, name), foreign.tensor.ndim
    if not 0 < ndim < _HUGE:
        return []
    if pointer:
        return [int(value) for value in pointer[:ndim]]
    if name == "strides" and foreign.tensor.shape:
        return [min(s, 2**62) for s in compact(_entries(foreign, "shape"))]
    return [1] * ndim


def _spoil_entry(dice: random.Random, foreign: ForeignTensor, name: str) -> None:
    values = _entries(foreign, name)
    if values:
        r = dice.randrange(len(values))
        near = [values[r] + 1, values[r] - 1, -values[r], values[r] * 1000, 7]
        values[r] = min(max(dice.choice([*EDGES, *near]), -(2**63)), 2**63 - 1)
        setattr(foreign.tensor, name, foreign.array(values))


def _spoil_ndim(dice: random.Random, foreign: ForeignTensor) -> None:
    tensor = foreign.tensor
    arrays = {name: _entries(foreign, name) for name in ("shape", "strides")}
    now = len(arrays["shape"])
    ndim = dice.choice([-1, -(2**31), -7, 0, 1, now + 1, now + 1, now - 1, _HUGE])
    for name, values in arrays.items():
        if ndim == _HUGE:
            setattr(tensor, name, None)
        elif ndim > 0:  # the arrays must have as many entries
            setattr(tensor, name, foreign.array(values + [1] * (ndim - now)))
    tensor.ndim = ndim


def _value(dice: random.Random, foreign: ForeignTensor, places: Places, name: str) -> int | None:
    """Return what a field of one number or address may hold."""
    tensor, small = foreign.tensor, dice.randrange(-64, 65)
    values: dict[str, list[Any]] = {
        "major": [0, 2, 3, 2**31, 2**32 - 1, dice.getrandbits(32)],
        "flags": [8, 2**63, 2**64 - 1, 1 << dice.randrange(64)],
        "data": [None, places.address(dice), places.address(dice)],
        "device_type": [*range(20), -1, -(2**31), 2**31 - 1, dice.getrandbits(31)],
        "device_id": [0, 1, 2, 0, 1, 2, 3, -1, -(2**31), 2**31 - 1, dice.getrandbits(31)],
        "code": [dice.randrange(20), dice.randrange(256)],
        "bits": [0, 1, 6, 8, 12, 24, 255, dice.randrange(256)],
        "lanes": [0, 2, 4, 65535, dice.randrange(65536)],
        "byte_offset": [small, tensor.byte_offset + small, 2**63, -1, 1, 2, 4096],
    }
    value: int | None = dice.choice(values[name])
    return value % 2**64 if name == "byte_offset" and value is not None else value


HEADER = ("major", "flags")
NUMBERS = ("data", "device_type", "device_id", "code", "bits", "lanes", "byte_offset")
ARRAYS = ("shape", "strides")


def mutate(dice: random.Random, foreign: ForeignTensor, places: Places) -> None:
    """Spoil a field without following a pointer: a tensor may hold wild ones by now."""
    name = dice.choice([*HEADER, *NUMBERS, "shape"])
    if name in HEADER:
        if isinstance(foreign.managed, DLManagedTensorVersioned):
            setattr(foreign.managed, name, _value(dice, foreign, places, name))
    else:
        new = None if name == "shape" else _value(dice, foreign, places, name)
        setattr(foreign.tensor, name, new)


def _spoil(dice: random.Random, foreign: ForeignTensor, places: Places) -> None:
    choice = dice.randrange(6)
    if choice == 0:
        _spoil_ndim(dice, foreign)
    elif choice < 3:
        name = dice.choice(ARRAYS)
        if dice.random() < 0.3:
            setattr(foreign.tensor, name, None)
        else:
            _spoil_entry(dice, foreign, name)
    else:
        mutate(dice, foreign, places)


def fuzzed_tensor(dice: random.Random, places: Places) -> ForeignTensor:
    """Return a tensor with none, some or many fields spoiled."""
    foreign = valid_tensor(dice, places)
    for _ in range(dice.choice((0, 0, 0, 1, 1, 1, 1, 2, 3, 6))):
        _spoil(dice, foreign, places)
    if dice.random() < 0.1:
        foreign.managed.deleter = None
    # Nothing may be read behind another major version, and no entry of arrays without any.
    managed, tensor = foreign.managed, foreign.tensor
    if getattr(managed, "major", 1) != 1 or tensor.ndim <= 0:
        for name in ARRAYS:
            if dice.random() < 0.3:
                wild: Any = ctypes.cast(places.address(dice), ctypes.POINTER(ctypes.c_int64))
                setattr(tensor, name, wild)
    return foreign
