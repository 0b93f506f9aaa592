# SPDX-License-Identifier: Apache-2.0
"""Work that stays pending until a test says so: a kernel that waits at a gate in shared USM.

No clock decides anything: while the gate is closed the work cannot be complete, and a kernel that
nobody ordered behind it runs to its end and sees what was there before. A CPU device of few cores
may have no thread at hand for either; a thread that waits for an event lends itself, and runs what
is ready. So the work has such a thread, and has begun there before anything else is waited for.
"""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import dpctl
import numpy as np
from dpctl import memory, program

COUNT = 12
FINISHED = 7

# The wait is bounded: a test that waits for what it should not, fails and does not hang.
_KERNELS = """
__kernel void fill_behind_gate(volatile __global int *gate, __global int *x, int value) {
  for (long turn = 0; turn < 10000000000L && *gate == 0; ++turn) {}
  for (int i = 0; i < 12; ++i) x[i] = value;
}
__kernel void read(__global const int *x, __global int *seen) {
  for (int i = 0; i < 12; ++i) seen[i] = x[i];
}
"""
_built: dict[Any, Any] = {}


def _kernel(queue: Any, name: str) -> Any:
    """Return a kernel for the context of a queue, built once."""
    context = queue.sycl_context
    if context not in _built:
        _built[context] = program.create_program_from_source(queue, _KERNELS)
    return _built[context].get_sycl_kernel(name)


def is_complete(event: Any) -> bool:
    """Return whether an event is complete."""
    return bool(event.execution_status == dpctl.event_status_type.complete)


class PendingFill:
    """Fills twelve int32 of a memory with ``FINISHED``, once the gate is opened; before, zeros."""

    def __init__(self, queue: Any, usm: str = "device") -> None:
        kinds = {
            "device": memory.MemoryUSMDevice,
            "shared": memory.MemoryUSMShared,
            "host": memory.MemoryUSMHost,
        }
        self.queue = queue
        self.memory = kinds[usm](4 * COUNT, queue=queue)
        self.memory.memset(0)
        self._gate = memory.MemoryUSMShared(4, queue=queue)
        self._gate.memset(0)
        arguments = [self._gate, self.memory, ctypes.c_int(FINISHED)]
        self.event = queue.submit_async(_kernel(queue, "fill_behind_gate"), arguments, [1])
        self._thread = threading.Thread(target=self.event.wait)
        self._thread.start()
        while self.event.execution_status == dpctl.event_status_type.submitted:
            time.sleep(0.0005)

    @property
    def is_pending(self) -> bool:
        """Whether the work is not complete."""
        return not is_complete(self.event)

    def open(self) -> None:
        """Let the work go on."""
        np.frombuffer(self._gate, np.int32)[:] = 1

    def end(self) -> None:
        """Open the gate, and wait for the work."""
        self.open()
        self._thread.join()


class Reader:
    """A consumer's kernel that reads the twelve int32 as soon as its queue lets it."""

    def __init__(self, queue: Any, source: Any) -> None:
        self._seen = memory.MemoryUSMHost(4 * COUNT, queue=queue)
        self._device = queue.sycl_device
        self.event = queue.submit_async(_kernel(queue, "read"), [source, self._seen], [1])

    @property
    def is_held(self) -> bool:
        """Whether the kernel waits for another: work that was submitted later overtook it."""
        queue = dpctl.SyclQueue(self._device)
        later = memory.MemoryUSMDevice(4 * COUNT, queue=queue)
        for _ in range(2):
            Reader(queue, later).event.wait()
        return not is_complete(self.event)

    @property
    def seen(self) -> list[int]:
        """What the kernel read; waits for it."""
        self.event.wait()
        values: list[int] = np.frombuffer(self._seen, np.int32).tolist()
        return values


ZEROS = [0] * COUNT
VALUES = [FINISHED] * COUNT
