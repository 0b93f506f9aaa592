# SPDX-License-Identifier: Apache-2.0
"""A process in which many queues work on memory of this package, each for one call.

With the argument ``growth``, the process must keep none of them. With ``frees``, the memory must go
behind the work of the first queue, whoever has that. Prints the ways that it went.
"""

import faulthandler
import itertools
import sys
from collections.abc import Callable
from typing import Any

import dpctl
import numpy as np
from c_exchange_api import ExchangeAPI
from capsules import OldArray
from memory_sources import new_queue
from pending_frees import HERE, check_freed_behind, started, zeros
from usm_dlpack import DLPackTensor, from_dlpack, root_device
from usm_dlpack_conformance import cases

api = ExchangeAPI(DLPackTensor)
MOST_GROWTH = 2 << 20  # bytes, in 3,000 queues, each of which would take more


def short_lived_queue(in_order: bool) -> Any:
    return dpctl.SyclQueue(root_device(0), property="in_order" if in_order else "default")


def borrowed(x: Any, other: Any, queue: Any) -> None:
    """Lend a tensor of another queue and one without a queue, as a call of a consumer does."""
    api.borrow(x)
    api.borrow(from_dlpack(other, device=queue))
    assert api.stream(0)


# What is done with the memory, and with other memory of this package, for a queue.
WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "tensor": lambda x, other, queue: from_dlpack(x, device=queue),
    "tensors of two memories": lambda x, other, queue: [
        from_dlpack(each, device=queue) for each in (x, other)
    ],
    "capsule": lambda x, other, queue: x.__dlpack__(stream=queue),
    "capsule, taken": lambda x, other, queue: from_dlpack(
        OldArray(x.__dlpack__(stream=queue)), device=queue
    ),
    "borrowed": borrowed,
}  # fmt: skip


def use_many(x: Any, other: Any, way: str, in_order: bool, count: int) -> None:
    for _ in range(count):
        WAYS[way](x, other, short_lived_queue(in_order))


def growth(way: str, in_order: bool) -> bool:
    """Return whether the process grows only by what the OpenCL driver keeps of each queue."""
    x, other = (from_dlpack(np.zeros(12, np.int32), device=HERE) for _ in range(2))
    kept = cases.growth(lambda: short_lived_queue(in_order).submit_barrier(), 3000)
    grown = cases.growth(lambda: use_many(x, other, way, in_order, 10), 300) - kept
    print(f"resident memory: expected {MOST_GROWTH} bytes more at most, found {grown} + {kept}")
    return grown <= MOST_GROWTH


def frees(way: str, in_order: bool) -> bool:
    """Require that memory waits for the first queue, for which a consumer has a capsule.

    If the consumer keeps the queue, it is idle while the others come. Otherwise it has work then,
    and the consumer is gone.
    """
    # An out-of-order queue is ordered behind a host task by the host, which waits.
    for is_held in (True, False) if in_order else (True,):
        x, other = (from_dlpack(zeros, device=HERE) for _ in range(2))
        queue = (new_queue if is_held else short_lived_queue)(in_order=in_order)
        held = [x, x.__dlpack__(stream=queue)]
        if is_held:
            use_many(x, other, way, in_order, 100)
        pending = started(x.data, queue, host_task=True)
        if not is_held:
            del held[1], queue
            use_many(x, other, way, in_order, 100)
        address = x.data
        del x
        check_freed_behind(pending, address, held.clear)
    return True


def main() -> int:
    faulthandler.dump_traceback_later(60, exit=True)
    is_good = {"growth": growth, "frees": frees}[sys.argv[1]]
    for way, in_order in itertools.product(WAYS, (True, False)):
        print(f"{way}, in order: {in_order}", flush=True)
        if not is_good(way, in_order):
            return 1
    print("\nall")
    return 0


if __name__ == "__main__":
    sys.exit(main())
