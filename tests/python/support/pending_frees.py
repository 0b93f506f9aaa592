# SPDX-License-Identifier: Apache-2.0
"""A process that lets go of memory of this package while work on it is pending, in every way.

Whatever lets go must wait for the work, without the GIL, which the thread that lets the work go on
needs, and so does a host task of dpctl. Prints the ways that it went: ``copies`` or ``lent``.
"""

import ctypes
import gc
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from c_exchange_api import ExchangeAPI
from capsules import NEWEST, ForeignTensor, OldArray, call_deleter, content_of
from extension_under_test import load
from memory_sources import UNPOOLED, new_queue
from pending_work import PendingFill, is_complete, memory_at
from usm_dlpack import ConversionError, DLPackTensor, empty, from_dlpack, validate

HERE = (14, 0)
api = ExchangeAPI(DLPackTensor)
zeros = np.zeros(UNPOOLED // 4, np.int32)  # no pool keeps it known when it is freed


def foreign_at(address: int) -> ForeignTensor:
    """Return a description of the memory at an address, which keeps nothing."""
    return ForeignTensor(address, shape=zeros.shape, dtype=(0, 32, 1))


def is_usm(address: int) -> bool:
    try:
        validate(foreign_at(address).capsule())
    except ConversionError as error:
        if error.code != "pointer_unknown":
            raise
        return False
    return True


def in_a_cycle(x: Any) -> list[Any]:
    made = [x]
    made.append(made)
    return made


def said(x: Any, queue: Any) -> Any:
    """Return an array of another library that says the queue of what it has."""
    array = OldArray(x.__dlpack__())
    array.sycl_queue = queue
    return array


def allocated() -> Any:
    """Return memory of the C exchange API."""
    return api.allocate(foreign_at(4096).tensor)


def lent(x: Any) -> Any:
    """Return a tensor after it was lent."""
    api.borrow(x)
    return x


def delete_with_the_gil(managed: Any) -> None:
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(ctypes.addressof(managed))


def copy_to(queue: Any) -> Any:
    return from_dlpack(zeros, device=queue)


# What has the memory, in the order in which it goes, for a queue and another one.
COPIES: dict[str, Callable[[Any, Any], list[Any]]] = {
    "host array": lambda queue, other: [copy_to(queue)],
    "empty": lambda queue, other: [empty(zeros.shape, "i4", device=queue)],
    "tensor of a tensor": lambda queue, other: [from_dlpack(copy_to(other), device=queue)],
    "tensor for the queue goes first": lambda queue, other: [
        from_dlpack(x := copy_to(other), device=queue), x
    ],
    "capsule of a copy": lambda queue, other: [
        copy_to(other).__dlpack__(copy=True, stream=queue, max_version=NEWEST)
    ],
    "capsule": lambda queue, other: [copy_to(other).__dlpack__(stream=queue, max_version=NEWEST)],
    "tensor goes before its capsule": lambda queue, other: [
        x := copy_to(queue), x.__dlpack__(stream=other, max_version=NEWEST)
    ],
    "legacy capsule of a copy, taken": lambda queue, other: [
        from_dlpack(from_dlpack(OldArray(copy_to(other).__dlpack__(copy=True))), device=queue)
    ],
    "legacy capsule, taken": lambda queue, other: [
        from_dlpack(OldArray(copy_to(other).__dlpack__()), device=queue)
    ],
    "array that says the queue": lambda queue, other: [from_dlpack(said(copy_to(HERE), queue))],
    "array of an extension": lambda queue, other: [load().zeros(queue, zeros.size)],
    "cycle": lambda queue, other: [in_a_cycle(copy_to(queue))],
}  # fmt: skip
# For the stream of the C exchange API.
LENT: dict[str, Callable[[Any, Any], list[Any]]] = {
    "lent": lambda queue, other: [lent(copy_to(other))],
    "allocated": lambda queue, other: [allocated()],
    "allocated, with the GIL": lambda queue, other: [allocated()],
    "allocated, taken": lambda queue, other: [allocated()],
    "exported": lambda queue, other: [api.export(copy_to(other))],
}
DELETERS = {"allocated, with the GIL": delete_with_the_gil, "allocated, taken": api.take}


def address_of(kept: Any) -> Any:
    if isinstance(kept, DLPackTensor):
        return kept.data
    if isinstance(kept, list):
        return kept[0].data
    return (kept if isinstance(kept, ctypes.Structure) else content_of(kept)).dl_tensor.data


def let_go(name: str, held: list[Any]) -> None:
    while held:
        kept = held.pop(0)
        if isinstance(kept, ctypes.Structure):
            DELETERS.get(name, call_deleter)(kept)
        del kept
    gc.collect()


def check_freed_behind(pending: Any, address: int, let_go: Callable[[], object]) -> None:
    """Require that memory is freed by whoever lets go of it, when its work has ended."""
    seen = []

    def let_it_go_on() -> None:
        time.sleep(0.3)
        seen.extend([is_usm(address), pending.is_pending])
        pending.open()

    thread = threading.Thread(target=let_it_go_on)
    thread.start()
    let_go()
    seen.append(is_complete(pending.event))
    thread.join()
    assert (seen, is_usm(address)) == ([True, True, True], False), seen


def started(address: int, queue: Any, host_task: bool) -> PendingFill:
    """Start work on memory that keeps neither the memory nor the queue."""
    into = memory_at(address, zeros.nbytes, queue)
    pending = PendingFill(queue, behind_host_task=host_task, into=into)
    pending.memory = pending.queue = None
    return pending


def go(name: str, in_order: bool, host_task: bool) -> None:
    """Let go of the memory, in a thread with a stream of its own, and require that it waited."""
    queue, other = new_queue(in_order=in_order), new_queue()
    if name in LENT:
        queue = api.queue()
    held = (COPIES | LENT)[name](queue, other)
    address = address_of(held[0])
    pending = started(address, queue, host_task)
    print(name, flush=True)
    check_freed_behind(pending, address, lambda: let_go(name, held))
    queue.wait()


def main() -> None:
    gc.disable()
    copies, host_task = sys.argv[1] == "copies", sys.argv[2] == "host-task"
    for number, name in enumerate(COPIES if copies else LENT):
        in_order = number % 2 == 0 or not copies
        thread = threading.Thread(target=go, args=(name, in_order, host_task))
        thread.start()
        thread.join()


if __name__ == "__main__":
    main()
