# SPDX-License-Identifier: Apache-2.0
"""A process in which one thread copies with dpctl while others make calls that wait.

dpctl submits with the GIL, and the host task behind each copy needs the GIL. Therefore a call hangs
if it waits with the GIL, or with a lock that a submission needs. The arguments:

- the tensor's queue: the ``same`` that copies, or an ``other``, while dpctl's cached queue copies;
  or ``waited``: the same, for which the thread that copies waits by `queue.wait`, which holds a
  lock of the runtime meanwhile;
- that queue's property for dpctl: ``in_order``, or ``default``, which is out of order;
- the calls in turn: names of `CALLS`, or ``all``;
- the number of threads that call;
- the seconds to run: it goes on until each thread has made some progress, too.

Prints how often each thread copied or called. A process that hangs shows its threads and ends.
"""

import faulthandler
import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import dpctl
import extension_under_test
import numpy as np
from dpctl.memory import MemoryUSMDevice
from memory_sources import new_queue
from usm_dlpack import from_dlpack

MOST_PENDING = 4
FEWEST_ROUNDS = 10
LIMIT_SECONDS = 30

# With the extension, a tensor, and an array of its shape and dtype.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "wait": lambda extension, x, values: x.wait(),
    "numpy": lambda extension, x, values: x.numpy(),
    "plain-view": lambda extension, x, values: extension.rank_one(x),
    "section": lambda extension, x, values: extension.copied_behind(x.sycl_queue, x),
    "capsule": lambda extension, x, values: x.__dlpack__(),
    "copy_from": lambda extension, x, values: x.copy_from(values),
}


def main(where: str, order: str, name: str, callers: int, seconds: float) -> None:
    queue = new_queue(in_order=order == "in_order")
    cached_queue = dpctl.get_device_cached_queue(dpctl.select_default_device())
    copying_queue = cached_queue if where == "other" else queue
    values = np.arange(1000, dtype=np.float32)
    source, target = (MemoryUSMDevice(values.nbytes, queue=copying_queue) for _ in range(2))
    x = from_dlpack(values, device=queue)
    extension = extension_under_test.load()
    chosen = [CALLS[each] for each in (CALLS if name == "all" else name.split(","))]
    rounds = [0] * (1 + callers)
    faulthandler.dump_traceback_later(seconds + LIMIT_SECONDS, exit=True)
    end = time.monotonic() + seconds
    pending: deque[Any] = deque()

    def copy() -> None:
        copied = copying_queue.memcpy_async(target, source, values.nbytes)
        pending.append(copying_queue._submit_keep_args_alive([target, source], [copied]))
        if where == "waited":
            copying_queue.wait()
        elif len(pending) > MOST_PENDING:
            pending.popleft().wait()

    def repeat(number: int) -> None:
        calls = itertools.cycle(chosen)
        while time.monotonic() < end or min(rounds) < FEWEST_ROUNDS:
            if number == 0:
                copy()
            else:
                next(calls)(extension, x, values)
            rounds[number] += 1

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(1 + callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    copying_queue.wait()
    print(*rounds)


if __name__ == "__main__":
    _, where, order, name, callers, seconds = sys.argv
    main(where, order, name, int(callers), float(seconds))
