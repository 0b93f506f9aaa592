# SPDX-License-Identifier: Apache-2.0
"""Each managed tensor's deleter runs once, on any thread, however its capsule ends."""

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from capsules import ForeignArray, ForeignTensor
from memory_sources import TypedArray, address_of, allocate, owned
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor


def test_a_capsule_dies_beside_an_error_that_stays_what_it_is(memory):
    """NumPy lets the capsule go after it has set its error."""
    tensor, gone = owned(memory)
    capsules = [tensor.__dlpack__()]
    del tensor

    class Array:
        def __dlpack__(self, **keywords):
            return capsules.pop()

        def __dlpack_device__(self):
            return 1, 0

    # The type of the error depends on NumPy's version.
    with pytest.raises((RuntimeError, BufferError), match="Unsupported device"):
        np.from_dlpack(Array())
    assert gone() is None


def test_a_tensor_dies_beside_an_error_that_stays_what_it_is(memory):
    foreign = ForeignTensor(address_of(memory))
    with pytest.raises(ZeroDivisionError):
        _ = (from_dlpack(ForeignArray(foreign)), 1 / 0)  # Python drops the first meanwhile
    assert foreign.deletions == 1


@pytest.mark.parametrize("see", [lambda tensor: tensor, DLPackTensor.host_view], ids=str)
def test_a_cycle_through_a_view_is_collected(queue, see):
    owner = TypedArray(allocate("shared", 64, queue))
    owner.tensor = see(to_dlpack_tensor(owner))
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "keywords", [{}, {"device": (14, 0)}, {"copy": False}, {"device": ...}], ids=str
)
def test_a_cycle_of_tensors_and_their_producers_is_collected(queue, keywords):
    keywords = {name: queue if value is ... else value for name, value in keywords.items()}
    owner = TypedArray(allocate("shared", 64, queue))
    owner.tensor = from_dlpack(from_dlpack(to_dlpack_tensor(owner)), **keywords)
    gone = [weakref.ref(owner), weakref.ref(owner.tensor)]
    del owner
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_a_tensor_of_a_tensor_keeps_the_memory_and_not_the_tensor(memory):
    tensor, kept = owned(memory)
    ways: list[Callable[[DLPackTensor], DLPackTensor]] = [
        from_dlpack,
        to_dlpack_tensor,
        lambda tensor: to_dlpack_tensor(tensor, shape=(12,)),
        lambda tensor: from_dlpack(tensor, device=(14, 0), copy=False),
    ]
    for way in ways:
        gone = weakref.ref(tensor)
        tensor = way(tensor)
        assert gone() is None
        assert kept() is not None
    del tensor
    assert kept() is None


CHAIN = """
import threading
import dpctl.memory
from capsules import OldArray
from memory_sources import owned
from usm_dlpack import from_dlpack, root_device, to_dlpack_tensor

def run(link):
    tensor, gone = owned(dpctl.memory.MemoryUSMShared(64))
    for _ in range(5000):
        tensor = link(tensor)
    assert gone() is not None
    del tensor
    assert gone() is None

root_device(0)
threading.stack_size(256 * 1024)
for link in (
    from_dlpack,
    to_dlpack_tensor,
    lambda tensor: from_dlpack(OldArray(tensor.__dlpack__())),
):
    thread = threading.Thread(target=run, args=(link,))
    thread.start()
    thread.join()
print("all is gone")
"""


def test_a_long_chain_of_tensors_ends_on_a_small_stack(succeed):
    assert succeed(CHAIN) == "all is gone\n"


@pytest.mark.parametrize("work", [pytest.param("alone", marks=pytest.mark.extended), "host-task"])
@pytest.mark.parametrize(("ways", "last"), [("copies", "cycle"), ("lent", "exported")])
def test_memory_goes_after_the_work_on_it(ways, last, work, succeed, project_root):
    program = str(project_root / "tests" / "python" / "support" / "pending_frees.py")
    assert succeed(arguments=(program, ways, work)).endswith(f"\n{last}\n")


@pytest.mark.parametrize("what", ["growth", "frees"])
def test_memory_of_many_queues(what, succeed, project_root):
    program = str(project_root / "tests" / "python" / "support" / "many_queues.py")
    assert succeed(arguments=(program, what)).endswith("\nall\n")


PENDING = """
import threading
import numpy as np
from dpctl.memory import MemoryUSMDevice, as_usm_memory
from memory_sources import new_queue
from pending_work import PendingFill
from usm_dlpack import from_dlpack
"""

UNKNOWN = """
for in_order in (True, False):
    queue = new_queue(in_order=in_order)
    x = from_dlpack(np.zeros(12, np.int32), device=(14, 0))
    pending = PendingFill(queue, into=as_usm_memory(x))
    pending.memory = None
    threading.Timer(0.3, pending.open).start()  # a thread of Python, which needs the GIL
    del x
    queue.wait()
"""


def test_a_copy_goes_without_the_gil_whatever_kernel_works(succeed):
    """The backend's own free waits for kernels."""
    assert succeed(PENDING + UNKNOWN) == ""


IN_A_HOST_TASK = """
from pending_frees import is_usm, zeros
from usm_dlpack import empty
for in_order in (True, False):
    queue = new_queue(in_order=in_order)
    x = from_dlpack(zeros, device=queue)
    address = x.data
    queue._submit_keep_args_alive([x], [])  # which needs the GIL
    del x
    queue.wait()
    while is_usm(address):
        empty(1)  # frees what the host task left
"""


def test_a_copy_goes_in_a_host_task_of_its_queue(succeed):
    """Such a task of dpctl or dpnp, one after each kernel, may hold the last reference."""
    assert succeed(PENDING + IN_A_HOST_TASK) == ""


DROPPED_WHILE_THE_MAIN_THREAD_SUBMITS = """
import extension_under_test

extension, queue = extension_under_test.load(), new_queue(in_order=True)
tasks = []
for _ in range(2000):
    x = extension.zeros(queue, 12)
    tasks.append(queue._submit_keep_args_alive([x], []))
    del x
    if len(tasks) > 4:  # dpctl alone hangs behind thousands of host tasks (DPC++ 2026.2)
        tasks.pop(0).wait()
queue.wait()
"""


def test_nobody_waits_while_the_main_thread_submits_to_opencl(succeed):
    """A submission of dpctl, with the GIL, would wait for a lock that the wait holds."""
    assert succeed(PENDING + DROPPED_WHILE_THE_MAIN_THREAD_SUBMITS) == ""


LEFT_BEHIND_HELD_WORK = """
from pending_frees import is_usm, zeros
from usm_dlpack import empty
queue = new_queue(in_order=True)
pending = PendingFill(queue)
x = from_dlpack(zeros, device=queue)
address = x.data
x.__dlpack__(stream=-1)
last = new_queue(in_order=True)._submit_keep_args_alive([x], [])
del x
last.wait()
for _ in range(3000):
    empty(1)  # asks for the work each time, and does not wait
assert is_usm(address) and pending.is_pending
pending.end()
while is_usm(address):
    empty(1)
"""


OTHERS_ARE_FREED = """
from pending_frees import is_usm, zeros
from usm_dlpack import empty
queue, other = new_queue(in_order=True), new_queue(in_order=True)
pending = PendingFill(queue)
x, y = from_dlpack(zeros, device=queue), from_dlpack(zeros, device=other)
address = y.data
left = [x, y]
del x, y
while left:
    task = new_queue()._submit_keep_args_alive([left.pop(0)], [])
    task.wait()
    empty(1)
while is_usm(address):
    empty(1)
assert pending.is_pending
pending.end()
"""


def test_what_a_host_task_left_waits_for_no_other_queue_on_opencl(succeed):
    assert succeed(PENDING + OTHERS_ARE_FREED) == ""


def test_what_a_host_task_left_is_freed_after_the_work_on_it_on_opencl(succeed):
    assert succeed(PENDING + LEFT_BEHIND_HELD_WORK) == ""


WORKING_AT_THE_END = """
import dpctl
import numpy as np
from usm_dlpack import empty, from_dlpack
from memory_sources import new_queue

queue = new_queue(in_order={})
x, y = (empty(1 << 24, device=queue) for _ in range(2))
for _ in range(20):
    queue.memcpy_async(*map(dpctl.memory.as_usm_memory, (x, y)), 1 << 26)
taken = x.__dlpack__(stream=queue)
"""


@pytest.mark.parametrize("in_order", [False, True])
def test_a_process_ends_while_copies_are_pending(in_order, succeed):
    assert succeed(WORKING_AT_THE_END.format(in_order)) == ""


DROPPED_AT_THE_END = """
import atexit, threading, time

def finish():  # before the package, hence called after its own handlers
    go_on.set()
    time.sleep(0.3)  # meanwhile another thread drops the last reference
    pending.open()
    time.sleep(0.3)

atexit.register(finish)
go_on = threading.Event()

from dpctl.memory import as_usm_memory
import extension_under_test
from memory_sources import new_queue
from pending_work import PendingFill

queue = new_queue(in_order=True)
held = [extension_under_test.load().zeros(queue, 12)]
pending = PendingFill(queue, into=as_usm_memory(held[0]))
pending.memory = None

def drop():
    go_on.wait()
    held.clear()
"""

DROPPED_BY = {
    "a daemon thread": "threading.Thread(target=drop, daemon=True).start()",
    "a host task": "queue._submit_keep_args_alive([held.pop()], [pending.event])",
}


@pytest.mark.parametrize("who", DROPPED_BY)
def test_an_array_of_an_extension_goes_while_exit_handlers_run(who, succeed):
    assert succeed(DROPPED_AT_THE_END + DROPPED_BY[who]) == ""


AFTER_PYTHON = """
import ctypes, sys
import dpctl.memory, usm_dlpack
from capsules import consume

memory = dpctl.memory.MemoryUSMShared(64)
exit_handler = ctypes.CDLL(None).__cxa_atexit  # runs when Python is gone
keywords = [{}, {"max_version": (1, 3)}, {"dl_device": (1, 0)}, {"copy": True}]
for asked in keywords:
    managed = consume(usm_dlpack.to_dlpack_tensor(memory).__dlpack__(**asked))
    address = ctypes.c_void_p(ctypes.addressof(managed))
    assert exit_handler(ctypes.c_void_p(managed.deleter), address, None) == 0
"""


def test_a_deleter_may_run_when_python_is_gone_and_no_leak_is_reported(succeed):
    assert succeed(AFTER_PYTHON) == ""


BUSY_END = """
import threading
import dpctl.memory, usm_dlpack
from capsules import call_deleter, consume
from usm_dlpack import DLPackTensor, from_dlpack

tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMShared(64), dtype="f4")
started = threading.Barrier(9)

def work(number):
    acts = [
        lambda: from_dlpack(tensor),
        lambda: call_deleter(consume(tensor.__dlpack__())),
        lambda: tensor.__dlpack__(dl_device=(1, 0), copy=True),
        lambda: from_dlpack(tensor, copy=True),
    ]
    acts[number % 4]()
    started.wait()
    while True:
        acts[number % 4]()

for number in range(8):
    threading.Thread(target=work, args=(number,), daemon=True).start()
started.wait()
"""


AT_EXIT = """
import atexit, queue, threading

tasks = queue.Queue()

def work():
    while True:
        task = tasks.get()
        print(task().tolist())
        tasks.task_done()

def finish():  # waits for a daemon thread: Python 3.12 makes no new ones any more
    tasks.put(lambda: tensor.numpy())
    tasks.put(lambda: exchange().numpy())
    tasks.join()

atexit.register(finish)  # before the package, hence called after its own handlers
threading.Thread(target=work, daemon=True).start()

import dpctl.memory, numpy as np, usm_dlpack
memory = dpctl.memory.MemoryUSMDevice(8)
memory.copy_from_host(b"\\1" * 8)
tensor = usm_dlpack.to_dlpack_tensor(memory, dtype="u1")

def exchange():
    return usm_dlpack.from_dlpack(np.arange(3), device=(14, 0))
"""


def test_threads_work_as_long_as_the_exit_handlers_do(succeed):
    assert succeed(AT_EXIT) == "[1, 1, 1, 1, 1, 1, 1, 1]\n[0, 1, 2]\n"


@pytest.mark.parametrize("_", range(3))
def test_the_interpreter_ends_while_threads_export_copy_and_let_go(_, succeed):
    assert succeed(BUSY_END) == ""


CALLS = {
    "an import": "from_dlpack(np.zeros(3))",
    "an export": "to_dlpack_tensor(memory, shape=[3], dtype=np.float32)",
    "a text": "repr(tensor)",
    "values": "tensor.copy_from([1, 2, 3])",
    "a stream": "tensor.__dlpack__(stream=Stream())",
    "an extension": "extension.rank_one(np.zeros(3))",
    "a kernel of an extension": "extension.axpy(2, tensor, tensor)",
    "an owner that goes": "to_dlpack_tensor(Owner())",
}
DAEMONS = """
import threading, time
import numpy as np
from dpctl.memory import MemoryUSMShared
import extension_under_test
from usm_dlpack import from_dlpack, to_dlpack_tensor

extension = extension_under_test.load()
memory = MemoryUSMShared(64)
tensor = to_dlpack_tensor(memory, shape=3, dtype="float32")

class Stream:
    @property
    def sycl_queue(self):
        return [number for number in range(100)] and None

class Owner:
    __sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__

    def __del__(self):
        for number in range(100): pass

def call():
    while True:
        try:
            {call}
        except (TypeError, ValueError, BufferError):
            pass

for _ in range(3):
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.2)
"""


@pytest.mark.parametrize("call", CALLS)
def test_daemon_threads_may_be_inside_when_the_process_ends(call, succeed):
    """Python before 3.14 ends a thread that asks for the GIL then, by unwinding its stack."""
    assert succeed(DAEMONS.format(call=CALLS[call])) == ""
