# SPDX-License-Identifier: Apache-2.0
"""A process that lets go of memory of this package while work on it is pending, in every way.

Whatever lets go must wait for the work, without the GIL, which the thread that lets the work go on
needs, and so does a host task of dpctl. Prints the ways that it went: ``copies`` or ``lent``.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from c_exchange_api import ExchangeAPI
from capsules import ForeignTensor, OldArray, call_deleter, content_of, new_capsule
from dpctl.memory import MemoryUSMDevice, as_usm_memory
from memory_sources import UNPOOLED, new_queue
from pending_work import PendingFill, is_complete
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, root_device, validate
from usm_dlpack import to_dlpack_tensor as export

HERE = (14, 0)
api = ExchangeAPI(DLPackTensor)
zeros = np.zeros(UNPOOLED // 4, np.int32)  # no pool keeps it known when it is freed

# What has the memory, and what lets the last of that go.
Way = tuple[Callable[[], Any], Callable[[], object]]


def foreign_at(address: int) -> ForeignTensor:
    """Return a description of the memory at an address, which keeps nothing."""
    return ForeignTensor(address, shape=zeros.shape, dtype=(0, 32, 1))


def is_usm(address: int) -> bool:
    """Return whether the memory at an address is there."""
    try:
        validate(foreign_at(address).capsule())
    except ConversionError as error:
        if error.code != "pointer_unknown":
            raise
        return False
    return True


def array_of(managed: Any) -> Any:
    """Return a tensor of the memory of a managed tensor, which keeps nothing."""
    return from_dlpack(OldArray(foreign_at(managed.dl_tensor.data).capsule()))


def delete_with_the_gil(managed: Any) -> None:
    """Run a managed tensor's deleter, as code of Python's would."""
    delete = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)
    delete(ctypes.addressof(managed))


def kept(*tensors: Any) -> Way:
    """Return the way of a list whose first entry has the memory."""
    held = list(tensors)
    return lambda: held[0], held.clear


def host_array(queue: Any, other: Any) -> Way:
    return kept(from_dlpack(zeros, device=queue))


def tensor_of_a_tensor(queue: Any, other: Any) -> Way:
    return kept(from_dlpack(from_dlpack(zeros, device=other), device=queue))


def tensor_for_the_queue_went_before(queue: Any, other: Any) -> Way:
    held = [from_dlpack(zeros, device=other)]
    held.append(from_dlpack(held[0], device=queue))
    return lambda: held[1], lambda: (held.__delitem__(1), held.clear())


def capsule_of_a_copy_for_the_queue(queue: Any, other: Any) -> Way:
    source = from_dlpack(zeros, device=other)
    held = [source.__dlpack__(copy=True, stream=queue, max_version=(1, 3))]
    return lambda: array_of(content_of(held[0])), held.clear


def capsule_handed_to_the_queue(queue: Any, other: Any) -> Way:
    held = [from_dlpack(zeros, device=other).__dlpack__(stream=queue, max_version=(1, 3))]
    return lambda: array_of(content_of(held[0])), held.clear


def legacy_capsule_of_a_copy(queue: Any, other: Any) -> Way:
    capsule = from_dlpack(zeros, device=other).__dlpack__(copy=True)
    taken = from_dlpack(OldArray(capsule), device=HERE)
    return kept(from_dlpack(taken, device=queue), taken)


def legacy_capsule_taken_for_the_queue(queue: Any, other: Any) -> Way:
    return kept(from_dlpack(OldArray(from_dlpack(zeros, device=other).__dlpack__()), device=queue))


def array_that_says_the_queue(queue: Any, other: Any) -> Way:
    class Wrapper:
        sycl_queue = queue

        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack__(self, *, max_version: Any = None) -> Any:
            return self.tensor.__dlpack__(max_version=max_version)

    return kept(from_dlpack(Wrapper(from_dlpack(zeros, device=HERE))))


def cycle(queue: Any, other: Any) -> Way:
    held: list[Any] = [from_dlpack(zeros, device=queue)]
    held.append(held)
    holder = [held]
    return lambda: holder[0][0], lambda: (holder.clear(), gc.collect())


def allocated(delete: Callable[[Any], object], *, follows: bool = False) -> Callable[..., Way]:
    """Return the way of memory that the C exchange API allocates for its stream."""

    def way(queue: Any, other: Any) -> Way:
        if follows:
            api.borrow(export(MemoryUSMDevice(48, queue=queue), queue=queue))
        managed = api.allocate(foreign_at(4096).tensor)
        return lambda: array_of(managed), lambda: delete(managed)

    return way


def lent_before_the_stream_moved(make: Callable[[Any], Any]) -> Callable[..., Way]:
    """Return the way of memory for whose consumer the stream moves to a later tensor's queue."""

    def way(queue: Any, other: Any) -> Way:
        mine = make(other)
        api.borrow(export(MemoryUSMDevice(48, queue=queue), queue=queue))
        assert api.stream(0)
        return lambda: array_of(mine), lambda: call_deleter(mine)

    return way


def lent_without_a_queue(queue: Any, other: Any) -> Way:
    tensor = from_dlpack(zeros, device=HERE)
    assert tensor.sycl_queue is None
    api.borrow(tensor)
    return kept(tensor)


COPIES: dict[str, Callable[[Any, Any], Way]] = {
    way.__name__: way
    for way in (
        host_array, tensor_of_a_tensor, tensor_for_the_queue_went_before,
        capsule_of_a_copy_for_the_queue, capsule_handed_to_the_queue, legacy_capsule_of_a_copy,
        legacy_capsule_taken_for_the_queue, array_that_says_the_queue, cycle,
    )
}  # fmt: skip
# Of these some work on the package's own stream, and some on that of a tensor.
OF_THE_PACKAGE = ("allocated", "allocated, with the GIL", "allocated and taken", "lent")
LENT: dict[str, Callable[[Any, Any], Way]] = {
    "allocated": allocated(call_deleter),
    "allocated, with the GIL": allocated(delete_with_the_gil),
    "allocated and taken": allocated(api.take),
    "lent": lent_without_a_queue,
    "allocated for a tensor's stream": allocated(call_deleter, follows=True),
    "allocated before": lent_before_the_stream_moved(
        lambda other: api.allocate(foreign_at(4096).tensor)
    ),
    "exported before": lent_before_the_stream_moved(
        lambda other: api.export(from_dlpack(zeros, device=other))
    ),
}


def work_stream(other: Any) -> Any:
    """Return the queue for consumers in this thread."""
    capsule = new_capsule(api.stream(0), b"SyclQueueRef")
    return export(MemoryUSMDevice(48, queue=other), queue=capsule).sycl_queue


def go(name: str, in_order: bool, host_task: bool) -> None:
    """Let go of the memory, in a thread with a stream of its own, and require that it waited."""
    queue, other = new_queue(root_device(0), in_order=in_order), new_queue(root_device(0))
    if name in OF_THE_PACKAGE:
        queue = work_stream(other)
    get, last = (COPIES | LENT)[name](queue, other)
    x = get()
    pending = PendingFill(queue, behind_host_task=host_task, into=as_usm_memory(x))
    pending.memory = None
    address = x.data
    del x, get
    seen = []

    def let_it_go_on() -> None:
        time.sleep(0.3)
        seen.extend([is_usm(address), pending.is_pending])
        pending.open()

    thread = threading.Thread(target=let_it_go_on)
    thread.start()
    last()
    seen.append(is_complete(pending.event))
    thread.join()
    queue.wait()
    assert (seen, is_usm(address)) == ([True, True, True], False), (name, seen)
    print(name, flush=True)


def main() -> None:
    """Go each way, in and out of order."""
    faulthandler.dump_traceback_later(100, exit=True)
    gc.disable()
    ways = list(COPIES if sys.argv[1] == "copies" else LENT)
    for number, name in enumerate(ways):
        in_order = number % 2 == 0 or sys.argv[1] != "copies"
        thread = threading.Thread(target=go, args=(name, in_order, sys.argv[2] == "host-task"))
        thread.start()
        thread.join()


if __name__ == "__main__":
    main()
