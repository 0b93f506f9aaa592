# SPDX-License-Identifier: Apache-2.0
"""Work that stays pending until a test says so, behind an event that the test completes.

No clock decides anything: while the gate is closed the work cannot begin, and work that nobody
ordered behind it runs to its end and sees what was there before. What is pending occupies no thread
of the device, so that a device of few cores does the other work meanwhile.

On OpenCL the work is a kernel behind a user event. On other backends it is a `queue::memcpy` behind
a host task: kernels from source are OpenCL's, and only OpenCL has user events. All host tasks
share one thread: there the gate that was made first must be opened first.
"""

import ctypes
import functools
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpctl
import numpy as np
import time_limit
from capsules import new_capsule
from dpctl import memory, program
from memory_sources import KINDS, new_queue

COUNT = 12
FINISHED = 7
ZEROS, VALUES = [0] * COUNT, [FINISHED] * COUNT
LATE = 20.0  # seconds until the gate opens for a call that should not wait, and does
_UNSEEN = -1

_KERNELS = """
__kernel void fill(__global int *x, int value) {
  for (int i = 0; i < 12; ++i) x[i] = value;
}
__kernel void read(__global const int *x, __global int *seen) {
  for (int i = 0; i < 12; ++i) seen[i] = x[i];
}
"""
_built: dict[Any, Any] = {}


@functools.cache
def _gates() -> ctypes.CDLL:
    """Return the library of event_gate.cpp, built once for a SYCL runtime."""
    source = Path(__file__).with_name("event_gate.cpp")
    prefix = Path(sys.prefix)
    name = hashlib.sha256(source.read_bytes() + bytes(prefix)).hexdigest()[:16]
    library = source.parents[3] / "build" / "event_gate" / f"{name}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        partial = library.with_suffix(f".{os.getpid()}")
        flags = ["-std=c++17", "-shared", "-fPIC", "-w", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING"]
        places = ["-isystem", prefix / "include", "-L", prefix / "lib", f"-Wl,-rpath,{prefix}/lib"]
        command = ["g++", *flags, *places, source, "-lsycl", "-ldl", "-o", partial]
        with time_limit.paused():
            subprocess.run(command, check=True)
        partial.replace(library)
    loaded = ctypes.CDLL(str(library))
    loaded.new_gate.restype = ctypes.c_void_p
    loaded.new_gate.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
    loaded.open_gate.argtypes = [ctypes.c_void_p]
    loaded.open_gate.restype = None
    loaded.open_gate_later.argtypes = [ctypes.c_void_p, ctypes.c_double]
    loaded.open_gate_later.restype = None
    return loaded


def has_kernels(queue: Any) -> bool:
    return bool(queue.backend == dpctl.backend_type.opencl)


def _kernel(queue: Any, name: str) -> Any:
    context = queue.sycl_context
    if context not in _built:
        _built[context] = program.create_program_from_source(queue, _KERNELS)
    return _built[context].get_sycl_kernel(name)


def is_complete(event: Any) -> bool:
    return bool(event.execution_status == dpctl.event_status_type.complete)


def memory_at(address: int, nbytes: int, queue: Any) -> Any:
    """Return USM as memory of dpctl which keeps nothing, and whose work no tensor knows."""
    described = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 1}
    return memory.as_usm_memory(
        SimpleNamespace(__sycl_usm_array_interface__=described | {"syclobj": queue})
    )


class PendingFill:
    """Fills twelve int32 of a memory with a value, once the gate is opened; before, zeros."""

    def __init__(
        self,
        queue: Any,
        usm: str = "device",
        *,
        behind_host_task: bool = False,
        into: Any = None,
        value: int = FINISHED,
    ) -> None:
        self.queue = queue
        self.values = [value] * COUNT
        self.has_host_task = False
        self.memory = KINDS[usm](4 * COUNT, queue=queue) if into is None else into
        if into is None:
            self.memory.copy_from_host(np.zeros(4 * COUNT, np.uint8))
        self._opener = ctypes.c_void_p()
        holding = queue if has_kernels(queue) else new_queue(queue.sycl_device)
        gates = _gates()
        time_limit.begin()
        gate = gates.new_gate(holding.addressof_ref(), ctypes.byref(self._opener))
        before = dpctl.SyclEvent(new_capsule(gate, b"SyclEventRef"))
        if behind_host_task:
            before = queue._submit_keep_args_alive([object()], [before])
        if has_kernels(queue):
            arguments = [self.memory, ctypes.c_int(value)]
            self.event = queue.submit_async(
                _kernel(queue, "fill"), arguments, [1], dEvents=[before]
            )
        else:
            self._values = _on_host(queue, value)
            self.event = queue.memcpy_async(self.memory, self._values, 4 * COUNT, dEvents=[before])

    @property
    def is_pending(self) -> bool:
        return not is_complete(self.event)

    def keep_alive(self) -> Any:
        """Submit a host task behind the work, as dpctl and dpnp do; return its event.

        The task takes the GIL, to let go of the arguments.
        """
        self.has_host_task = True
        return self.queue._submit_keep_args_alive([self.memory], [self.event])

    def open_later(self, seconds: float) -> None:
        """Open the gate after some time, even if a thread waits for the work with the GIL."""
        _gates().open_gate_later(self._opener, seconds)

    def open(self) -> None:
        if self._opener:
            _gates().open_gate(self._opener)
            self._opener = None

    def end(self) -> None:
        self.open()
        self.event.wait()


def _on_host(queue: Any, value: int) -> Any:
    made = memory.MemoryUSMHost(4 * COUNT, queue=queue)
    np.frombuffer(made, np.int32)[:] = value
    return made


class Reader:
    """A consumer's kernel or `queue::memcpy` that reads the twelve int32 when its queue lets it."""

    def __init__(self, queue: Any, source: Any, *, copies: bool = False) -> None:
        self._seen = _on_host(queue, _UNSEEN)
        self._device = queue.sycl_device
        if has_kernels(queue) and not copies:
            self.event = queue.submit_async(_kernel(queue, "read"), [source, self._seen], [1])
        else:
            self.event = queue.memcpy_async(self._seen, source, 4 * COUNT)

    @property
    def is_held(self) -> bool:
        """Whether the work waits for other work: what was submitted later overtook it."""
        queue = new_queue(self._device)
        later = memory.MemoryUSMDevice(4 * COUNT, queue=queue)
        for _ in range(2):
            Reader(queue, later).event.wait()
        return not is_complete(self.event)

    @property
    def seen(self) -> list[int]:
        """What was read; waits for it.

        Not by the event alone: on a busy machine the runtime now and then calls one complete whose
        command it held back behind a host task, and that has not run (DPC++ 2026.2).
        """
        self.event.wait()
        values = np.frombuffer(self._seen, np.int32)
        for _ in range(10_000):
            if values[-1] != _UNSEEN:
                break
            time.sleep(0.001)
        return list(values.tolist())


def check_order(consumer: Any, pending: Any) -> None:
    """Require that a consumer's queue waits for pending work, and that nobody waited until now."""
    assert pending.is_pending
    readers = [Reader(consumer, pending.memory, copies=copies) for copies in (False, True)]
    assert all(reader.is_held for reader in readers)
    assert pending.is_pending
    pending.open()
    assert [reader.seen for reader in readers] == [pending.values] * 2


class Waiting:
    """A call in a thread of its own, which is expected to wait."""

    def __init__(self, call: Callable[[], Any]) -> None:
        time_limit.begin()
        self._running = ThreadPoolExecutor(1).submit(call)

    def is_waiting(self) -> bool:
        """Return whether the call goes on for a while: one that does not wait has returned."""
        return bool(wait([self._running], 0.1).not_done)

    def end(self) -> Any:
        return self._running.result()


def answer_behind(pending: Any, call: Callable[[], Any]) -> Any:
    """Require that a call waits for pending work, and return its answer.

    It must wait without the GIL, which this thread needs to open the gate.
    """
    waiting = Waiting(call)
    assert waiting.is_waiting()
    assert pending.is_pending
    pending.open()
    return waiting.end()


def answer_at_once(pending: Any, call: Callable[[], Any]) -> Any:
    """Require that a call does not wait for pending work, and return its answer."""
    pending.open_later(LATE)
    answer = call()
    assert pending.is_pending
    return answer
