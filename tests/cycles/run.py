# SPDX-License-Identifier: Apache-2.0
"""Arrays go out and come in by every way, again and again, and nothing is left behind.

After each cycle as many deleters must have run as tensors of another library went out, and every
owner of ours must be gone; resident memory must stay flat. ``python3 dev.py cycles`` runs a
million.
"""

import argparse
import faulthandler
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The capsules are those of the Python tests.
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "python" / "support"))

import numpy as np
import pytest
import tvm_ffi
from c_exchange_api import ExchangeAPI
from capsules import ForeignArray, ForeignTensor, OldArray, call_deleter, consume, forget_kept
from memory_sources import TypedArray, address_of, allocate, new_queue, owned
from resident_memory import report_growth, resident_bytes
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, validate

NEWEST = (1, 3)
QUEUE, OTHER_QUEUE = new_queue(in_order=True), new_queue()
MEMORY, HOST_MEMORY = (allocate(kind, 4096, QUEUE) for kind in ("device", "shared"))
ADDRESS = address_of(MEMORY)
VALUES = np.arange(64, dtype=np.float32)
FOREIGN = [ForeignTensor(ADDRESS, legacy=legacy) for legacy in (False, True)]
API = ExchangeAPI(DLPackTensor)


OWNERS: list[weakref.ref[TypedArray]] = []  # of what a cycle exported


def ours(memory: Any = MEMORY, queue: Any = None) -> DLPackTensor:
    tensor, owner = owned(memory, queue=queue)
    OWNERS.append(owner)
    return tensor


def foreign_array(number: int = 0, kind: type = ForeignArray) -> Any:
    """Return an array of another library that gives its tensor once."""
    FOREIGN[number].deletions -= 1
    return kind(FOREIGN[number])


def taken() -> None:
    assert from_dlpack(ours()).data == ADDRESS
    assert from_dlpack(tvm_ffi.from_dlpack(ours())).data == ADDRESS
    for version in (None, NEWEST):
        assert from_dlpack(OldArray(ours().__dlpack__(max_version=version))).data == ADDRESS


def abandoned() -> None:
    ours().__dlpack__()
    ours().__dlpack__(max_version=NEWEST)
    call_deleter(consume(ours().__dlpack__(max_version=NEWEST)))
    ours(HOST_MEMORY).__dlpack__(dl_device=(1, 0))  # no copy


def refused() -> None:
    capsule = ours().__dlpack__(max_version=NEWEST)
    assert validate(capsule).data == ADDRESS
    with pytest.raises(ConversionError):
        from_dlpack(OldArray(capsule), usm_type="host", copy=False)


def foreign() -> None:
    for number in range(len(FOREIGN)):
        assert from_dlpack(foreign_array(number)).data == ADDRESS
    passed_on = from_dlpack(foreign_array()).__dlpack__(max_version=NEWEST)
    assert from_dlpack(OldArray(passed_on)).data == ADDRESS


def exchange_api() -> None:
    tensor = ours()
    assert API.borrow(tensor).data == ADDRESS
    out, back = (API.export(tensor) for _ in range(2))
    del tensor
    call_deleter(out)
    assert API.take(back).data == ADDRESS


def streams() -> None:
    tensor = ours(queue=QUEUE)
    tensor.__dlpack__(stream=OTHER_QUEUE, max_version=NEWEST)
    from_dlpack(tensor, device=OTHER_QUEUE)


def copies() -> None:
    ours().__dlpack__(copy=True, max_version=NEWEST)
    ours().__dlpack__(dl_device=(1, 0))
    assert from_dlpack(ours(), copy=True).data != ADDRESS
    assert ours().numpy().shape == (1024,)
    assert from_dlpack(VALUES, device=(14, 0)).shape == (64,)


def new_types_and_memory() -> None:
    new_type = type("Producer", (ForeignArray,), {})
    assert from_dlpack(foreign_array(kind=new_type)).data == ADDRESS
    call_deleter(consume(ours(allocate("host", 256, QUEUE)).__dlpack__()))
    assert API.take(API.allocate(FOREIGN[0].tensor)).shape == (3, 4)


CHEAP: list[Callable[[], None]] = [taken, abandoned, refused, foreign, exchange_api]
# They copy, allocate or wait: one cycle of a hundred.
DEAR: list[Callable[[], None]] = [streams, copies, new_types_and_memory]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="how many (default: 1000000)")
    count = parser.parse_args().count
    faulthandler.enable()
    before = resident_bytes()
    for number in range(count):
        if number == count // 10:
            before = resident_bytes()
        is_dear = number % 100 == 0
        way = DEAR[number // 100 % len(DEAR)] if is_dear else CHEAP[number % len(CHEAP)]
        way()
        left = sum(owner() is not None for owner in OWNERS)
        OWNERS.clear()
        runs = [tensor.deletions for tensor in FOREIGN]
        assert [left, *runs] == [0, 0, 0], f"cycle {number}, {way.__name__}: {left} and {runs}"
        if number % 1000 == 0:
            forget_kept()
    return 0 if report_growth(before, resident_bytes()) else 1


if __name__ == "__main__":
    sys.exit(main())
