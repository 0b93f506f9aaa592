# SPDX-License-Identifier: Apache-2.0
"""Arrays go out and come in by every way, again and again, and nothing is left behind.

After each cycle as many deleters must have run as managed tensors went out, and every owner must be
gone; resident memory must stay flat. ``python3 dev.py cycles`` runs a million.
"""

import argparse
import faulthandler
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The capsules are those of the Python tests.
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "python"))

import dpctl
import numpy as np
import pytest
import tvm_ffi
import usm_dlpack
from c_exchange_api import ExchangeAPI
from capsules import (
    CountedDeleters,
    ForeignArray,
    ForeignTensor,
    OldArray,
    call_deleter,
    consume,
    forget_kept,
)
from memory_sources import TypedArray, address_of, allocate
from resident_memory import report_growth, resident_bytes
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, to_dlpack_tensor, validate

NEWEST = (1, 3)


class Owner(TypedArray):
    """Owns what our tensors show, and counts how many of its kind there are."""

    alive = 0

    def __init__(self, memory: Any) -> None:
        super().__init__(memory)
        Owner.alive += 1

    def __del__(self) -> None:
        Owner.alive -= 1


class Cycles:
    """What all cycles share, and how many managed tensors went out and were deleted."""

    def __init__(self) -> None:
        device = usm_dlpack.root_device(0)
        self.queue = dpctl.SyclQueue(device, property="in_order")
        self.consumer_queue = dpctl.SyclQueue(device)
        self.memory = allocate("device", 4096, self.queue)
        self.host_memory = allocate("shared", 4096, self.queue)
        self.values = np.arange(64, dtype=np.float32)
        self.address = address_of(self.memory)
        self.foreign = [
            ForeignTensor(self.address, legacy=False),
            ForeignTensor(self.address, legacy=True),
        ]
        self.api = ExchangeAPI(DLPackTensor)
        self.ours = CountedDeleters()
        self.foreign_exports = 0

    def tensor(self) -> DLPackTensor:
        """Return a tensor of ours whose owner is counted."""
        return to_dlpack_tensor(Owner(self.memory))

    def exported(self, **keywords: Any) -> Any:
        """Return a capsule of a new tensor of ours, whose deleter is counted."""
        return self.ours.count_capsule(self.tensor().__dlpack__(**keywords))

    def foreign_array(self, foreign: ForeignTensor, kind: type = ForeignArray) -> Any:
        """Return an array of another library that gives its tensor once."""
        self.foreign_exports += 1
        return kind(foreign)

    def check(self) -> None:
        """Refuse to go on if a deleter has not run, or an owner is left."""
        exports = self.ours.exports + self.foreign_exports
        deletions = self.ours.deletions + sum(foreign.deletions for foreign in self.foreign)
        if exports != deletions or Owner.alive:
            raise AssertionError(
                f"expected as many deleter calls as exports, and no owner left, found {deletions} "
                f"for {exports}, and {Owner.alive} owners; look for who keeps or deletes too much"
            )


def _taken(cycles: Cycles) -> None:
    assert from_dlpack(cycles.tensor()).data == cycles.address
    assert from_dlpack(tvm_ffi.from_dlpack(cycles.tensor())).data == cycles.address
    for version in (None, NEWEST):
        capsule = cycles.exported(max_version=version)
        assert from_dlpack(OldArray(capsule)).data == cycles.address


def _abandoned(cycles: Cycles) -> None:
    cycles.exported()
    cycles.exported(max_version=NEWEST)
    call_deleter(consume(cycles.exported(max_version=NEWEST)))
    without_a_copy = to_dlpack_tensor(Owner(cycles.host_memory)).__dlpack__(dl_device=(1, 0))
    cycles.ours.count_capsule(without_a_copy)


def _refused(cycles: Cycles) -> None:
    capsule = cycles.exported(max_version=NEWEST)
    assert validate(capsule).data == cycles.address
    with pytest.raises(ConversionError):
        from_dlpack(OldArray(capsule), usm_type="host", copy=False)


def _foreign(cycles: Cycles) -> None:
    for foreign in cycles.foreign:
        assert from_dlpack(cycles.foreign_array(foreign)).data == cycles.address


def _passed_on(cycles: Cycles) -> None:
    taken = from_dlpack(cycles.foreign_array(cycles.foreign[0]))
    from_dlpack(OldArray(cycles.ours.count_capsule(taken.__dlpack__(max_version=NEWEST))))


def _exchange_api(cycles: Cycles) -> None:
    tensor = cycles.tensor()
    assert cycles.api.borrow(tensor).data == cycles.address
    out, back = (cycles.ours.count(cycles.api.export(tensor)) for _ in range(2))
    del tensor
    call_deleter(out)
    assert cycles.api.take(back).data == cycles.address


def _exchange_api_memory(cycles: Cycles) -> None:
    managed = cycles.ours.count(cycles.api.allocate(cycles.foreign[0].tensor))
    assert cycles.api.take(managed).shape == (3, 4)


def _another_thread(cycles: Cycles) -> None:
    managed = consume(cycles.exported(max_version=NEWEST))
    thread = threading.Thread(target=call_deleter, args=(managed,))
    thread.start()
    thread.join()


def _streams(cycles: Cycles) -> None:
    tensor = to_dlpack_tensor(Owner(cycles.memory), queue=cycles.queue)
    capsule = tensor.__dlpack__(stream=cycles.consumer_queue, max_version=NEWEST)
    cycles.ours.count_capsule(capsule)
    from_dlpack(tensor, device=cycles.consumer_queue)


def _copies(cycles: Cycles) -> None:
    cycles.exported(copy=True, max_version=NEWEST)
    cycles.exported(dl_device=(1, 0))
    assert from_dlpack(cycles.tensor(), copy=True).data != cycles.address
    assert to_dlpack_tensor(cycles.memory, shape=(4, 4), dtype="f4").numpy().shape == (4, 4)
    assert from_dlpack(cycles.values, device=(14, 0)).shape == (64,)


def _new_types_and_memory(cycles: Cycles) -> None:
    new_type = type("Producer", (ForeignArray,), {})
    assert from_dlpack(cycles.foreign_array(cycles.foreign[0], new_type)).data == cycles.address
    memory = allocate("host", 256, cycles.queue)
    managed = cycles.ours.count(consume(to_dlpack_tensor(memory).__dlpack__()))
    del memory
    call_deleter(managed)


Way = Callable[[Cycles], None]

CHEAP: list[Way] = [_taken, _abandoned, _refused, _foreign, _passed_on, _exchange_api]
# They copy, allocate, wait, or start threads: one cycle of a hundred.
DEAR: list[Way] = [
    *(_streams, _copies, _new_types_and_memory, _another_thread, _exchange_api_memory),
]


def main() -> int:
    """Run the cycles, and say whether memory stayed flat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="how many (default: 1000000)")
    count = parser.parse_args().count
    faulthandler.enable()
    cycles = Cycles()
    before = resident_bytes()
    for number in range(count):
        if number == count // 10:
            before = resident_bytes()
        is_dear = number % 100 == 0
        way = DEAR[number // 100 % len(DEAR)] if is_dear else CHEAP[number % len(CHEAP)]
        try:
            way(cycles)
            cycles.check()
        except Exception:
            print(f"cycle {number}: {way.__name__}")
            raise
        if number % 1000 == 0:
            forget_kept()
    return 0 if report_growth(before, resident_bytes()) else 1


if __name__ == "__main__":
    sys.exit(main())
