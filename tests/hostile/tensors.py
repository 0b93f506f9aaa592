# SPDX-License-Identifier: Apache-2.0
"""Managed tensors made from random numbers: valid ones, of which some fields are then spoiled.

What DLPack lets a consumer read can always be read: ``shape`` has ``ndim`` entries. Everything else
may be anything, also a pointer that nobody may follow.
"""

from __future__ import annotations

import ctypes
import math
import random
from typing import Any

import dpctl
import usm_dlpack
from capsules import DLManagedTensorVersioned, ForeignTensor
from memory_sources import address_of, allocate
from oracle import DTYPES, Allocation, Process
from usm_dlpack import _core

KINDS = ("device", "shared", "host")
SHAPES = ((), (3,), (2, 3), (1, 1, 2), (1,) * 9, (1,) * 100, (0,), (2, 0))


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
            for size in (128, 1000, 4096):
                for kind in KINDS:
                    owner = allocate(kind, size, queue)
                    known = Allocation(address_of(owner), size, kind, device_id, owner)
                    self.process.allocations.append(known)
        device = self.queues[0].sycl_device
        other_context = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        self._hidden = [allocate(kind, 256, other_context) for kind in KINDS]
        freed = [address_of(allocate(kind, 1 << 16, self.queues[0])) for kind in ("device", "host")]
        self._wild = [
            *freed,
            *(address_of(owner) for owner in self._hidden),
            id(self),
            *(0x7FFF_FFFF_F000, 1, 8, 64, 4096, 2**47, 2**63, 2**64 - 1, 2**64 - 4096),
        ]

    def address(self, dice: random.Random) -> int:
        """Return an address: in, beside or far from USM."""
        known = dice.choice(self.process.allocations)
        beside = [known.base - 1, known.base + known.size - 1, known.base + known.size]
        inside = known.base + dice.choice([1, 2, 4, 8, dice.randrange(known.size)])
        return dice.choice([0, dice.choice(self._wild), dice.getrandbits(64), inside, *beside])


def valid_tensor(dice: random.Random, places: Places) -> ForeignTensor:
    """Return a tensor that lies in USM, at either end of its allocation or one element beyond."""
    known = dice.choice(places.process.allocations)
    dtype, shape = dice.choice(list(DTYPES)), dice.choice(SHAPES)
    legacy = dice.random() < 0.4
    foreign = ForeignTensor(known.base, shape=shape, dtype=dtype, legacy=legacy)
    tensor = foreign.tensor
    tensor.device_id = known.device_id
    if dice.random() < 0.3:
        tensor.strides = None
    if not legacy:
        foreign.managed.minor = dice.choice((0, 1, 3, 4, 2**32 - 1))
        foreign.managed.flags = dice.randrange(8)
    step = DTYPES[dtype]
    room = known.size - math.prod(shape) * dtype[1] * dtype[2] // 8
    start = known.base + dice.choice([0, 0, room, room, room + step, dice.randrange(room + 1)])
    start -= start % step
    split = dice.choice((0, 0, dice.randrange(64), start - known.base))
    tensor.data, tensor.byte_offset = start - split, split
    return foreign


def mutate(dice: random.Random, foreign: ForeignTensor, places: Places) -> None:
    """Spoil a field without following a pointer: a tensor may hold wild ones by now."""
    tensor, small = foreign.tensor, dice.randrange(-64, 65)
    values: dict[str, list[Any]] = {
        "major": [0, 2, 3, 2**31, 2**32 - 1],
        "flags": [8, 2**63, 2**64 - 1, 1 << dice.randrange(64)],
        "data": [None, places.address(dice), places.address(dice)],
        "device_type": [*range(20), -1, -(2**31), 2**31 - 1],
        "device_id": [0, 1, 2, 0, 1, 2, 3, -1, -(2**31), 2**31 - 1],
        "dtype": [*DTYPES, (99, 8, 1), (2, 0, 1), (2, 32, 0), (0, 7, 1), (4, 8, 1)],
        "byte_offset": [small, tensor.byte_offset + small, 2**63, -1, 1, 2, 4096],
        "ndim": [-1, -(2**31)],
        "shape": [None, 0, -1, -(2**63), 1000, 2**31, 2**61, 2**63 - 1],
    }
    name = dice.choice(list(values))
    value = dice.choice(values[name])
    if name in ("major", "flags"):
        if isinstance(foreign.managed, DLManagedTensorVersioned):
            setattr(foreign.managed, name, value)
    elif name == "dtype":
        tensor.code, tensor.bits, tensor.lanes = value
    elif name == "byte_offset":
        tensor.byte_offset = value % 2**64
    elif name == "shape":
        entries = [value, *[1] * (tensor.ndim - 1)]
        tensor.shape = None if value is None else foreign.array(entries)
        tensor.strides = None
    else:
        setattr(tensor, name, value)


def fuzzed_tensor(dice: random.Random, places: Places) -> ForeignTensor:
    """Return a tensor with none, some or many fields spoiled."""
    foreign = valid_tensor(dice, places)
    for _ in range(dice.choice((0, 0, 0, 1, 1, 1, 1, 2, 3, 6))):
        mutate(dice, foreign, places)
    if dice.random() < 0.1:
        foreign.managed.deleter = None
    # Nothing may be read behind another major version, and no entry of arrays without any.
    managed, tensor = foreign.managed, foreign.tensor
    if getattr(managed, "major", 1) != 1 or tensor.ndim <= 0:
        for name in ("shape", "strides"):
            if dice.random() < 0.3:
                wild: Any = ctypes.cast(places.address(dice), ctypes.POINTER(ctypes.c_int64))
                setattr(tensor, name, wild)
    return foreign
