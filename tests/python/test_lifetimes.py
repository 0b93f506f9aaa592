# SPDX-License-Identifier: Apache-2.0
"""Memory goes once, after the work on it, on any thread, and also while the interpreter ends."""

import gc
import weakref
from collections.abc import Callable
from functools import partial

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


# What an owner may have of its own memory, as a function of the owner's tensor.
KEPT: dict[str, Callable[[DLPackTensor], object]] = {
    "the tensor": lambda tensor: tensor,
    "a view for the host": DLPackTensor.host_view,
    "a tensor of it": lambda tensor: from_dlpack(from_dlpack(tensor)),
    "one for a device": partial(from_dlpack, device=(14, 0)),
    "one without a copy": partial(from_dlpack, copy=False),
    "one for a queue": lambda tensor: from_dlpack(tensor, device=tensor.sycl_queue),
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_a_cycle_of_an_owner_and_what_it_has_of_its_memory_is_collected(queue, keep):
    owner = TypedArray(allocate("shared", 64, queue))
    owner.tensor = keep(to_dlpack_tensor(owner))
    gone = [weakref.ref(owner), weakref.ref(owner.tensor)]
    del owner
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_a_tensor_of_a_tensor_keeps_the_memory_and_not_the_tensor(memory):
    tensor, kept = owned(memory)
    ways: list[Callable[[DLPackTensor], DLPackTensor]] = [
        from_dlpack,
        to_dlpack_tensor,
        partial(to_dlpack_tensor, shape=(12,)),
        partial(from_dlpack, device=(14, 0), copy=False),
    ]
    for way in ways:
        gone = weakref.ref(tensor)
        tensor = way(tensor)
        assert gone() is None
        assert kept() is not None
    del tensor
    assert kept() is None


@pytest.mark.parametrize("work", [pytest.param("alone", marks=pytest.mark.extended), "host-task"])
@pytest.mark.parametrize(("ways", "last"), [("copies", "cycle"), ("lent", "exported")])
def test_memory_goes_after_the_work_on_it(ways, last, work, succeed, project_root):
    program = str(project_root / "tests" / "python" / "support" / "pending_frees.py")
    assert succeed(arguments=(program, ways, work)).endswith(f"\n{last}\n")


@pytest.mark.parametrize("what", ["growth", "frees"])
def test_memory_of_many_queues(what, succeed, project_root):
    program = str(project_root / "tests" / "python" / "support" / "many_queues.py")
    assert succeed(arguments=(program, what)).endswith("\nall\n")


BEGIN = """
import ctypes, gc, sys, threading, time
import dpctl.memory, numpy as np, usm_dlpack
import extension_under_test
from capsules import OldArray, call_deleter, consume
from dpctl.memory import as_usm_memory
from memory_sources import TypedArray, new_queue, owned
from pending_frees import is_usm, zeros
from pending_work import PendingFill
from usm_dlpack import empty, from_dlpack, root_device, to_dlpack_tensor
"""

PROGRAMS = {
    # Each link would have a stack frame of its own if tensors dropped the tensors that they own.
    "a long chain of tensors ends on a small stack": """
def run(link):
    tensor, gone = owned(dpctl.memory.MemoryUSMShared(64))
    for _ in range(5000):
        tensor = link(tensor)
    assert gone() is not None
    del tensor
    assert gone() is None

root_device(0)
threading.stack_size(256 * 1024)
by_capsule = lambda tensor: from_dlpack(OldArray(tensor.__dlpack__()))
for link in (from_dlpack, to_dlpack_tensor, by_capsule):
    thread = threading.Thread(target=run, args=(link,))
    thread.start()
    thread.join()
""",
    # The backend's own free waits for kernels.
    "a copy goes without the GIL whatever kernel works": """
for in_order in (True, False):
    queue = new_queue(in_order=in_order)
    x = from_dlpack(np.zeros(12, np.int32), device=(14, 0))
    pending = PendingFill(queue, into=as_usm_memory(x))
    pending.memory = None
    threading.Timer(0.3, pending.open).start()  # a thread of Python, which needs the GIL
    del x
    queue.wait()
""",
    # Such a task of dpctl or dpnp, one after each kernel, may hold the last reference.
    "a copy goes in a host task of its queue": """
for in_order in (True, False):
    queue = new_queue(in_order=in_order)
    x = from_dlpack(zeros, device=queue)
    address = x.data
    queue._submit_keep_args_alive([x], [])  # which needs the GIL
    del x
    queue.wait()
    while is_usm(address):
        empty(1)  # frees what the host task left
""",
    # A submission of dpctl, with the GIL, would wait for a lock that the wait holds.
    "nobody waits while the main thread submits to opencl": """
extension, queue = extension_under_test.load(), new_queue(in_order=True)
tasks = []
for _ in range(2000):
    x = extension.zeros(queue, 12)
    tasks.append(queue._submit_keep_args_alive([x], []))
    del x
    if len(tasks) > 4:  # dpctl alone hangs behind thousands of host tasks (DPC++ 2026.2)
        tasks.pop(0).wait()
queue.wait()
""",
    "what a host task left waits for no other queue on opencl": """
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
""",
    "what a host task left is freed after the work on it on opencl": """
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
""",
    "the process ends while copies are pending": """
queues = [new_queue(in_order=in_order) for in_order in (True, False)]
arrays = [[empty(1 << 24, device=queue) for _ in range(2)] for queue in queues]
for _ in range(20):
    for queue, pair in zip(queues, arrays):
        queue.memcpy_async(*map(as_usm_memory, pair), 1 << 26)
taken = [pair[0].__dlpack__(stream=queue) for queue, pair in zip(queues, arrays)]
""",
    "deleters run when Python is gone": """
memory = dpctl.memory.MemoryUSMShared(64)
exit_handler = ctypes.CDLL(None).__cxa_atexit  # runs when Python is gone
keywords = [{}, {"max_version": (1, 3)}, {"dl_device": (1, 0)}, {"copy": True}]
for asked in keywords:
    managed = consume(to_dlpack_tensor(memory).__dlpack__(**asked))
    address = ctypes.c_void_p(ctypes.addressof(managed))
    assert exit_handler(ctypes.c_void_p(managed.deleter), address, None) == 0
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_goes_in_a_process_that_ends_in_silence(name, succeed):
    assert succeed(BEGIN + PROGRAMS[name]) == ""


# What is called in exit handlers that were registered before the package, hence run after its own.
DROPPED_AT_THE_END = """
import atexit, threading, time

def finish():
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
    tasks.put(lambda: usm_dlpack.from_dlpack(np.arange(3), device=(14, 0)).numpy())
    tasks.join()

atexit.register(finish)
threading.Thread(target=work, daemon=True).start()

import dpctl.memory, numpy as np, usm_dlpack
memory = dpctl.memory.MemoryUSMDevice(8)
memory.copy_from_host(b"\\1" * 8)
tensor = usm_dlpack.to_dlpack_tensor(memory, dtype="u1")
"""


def test_threads_work_as_long_as_the_exit_handlers_do(succeed):
    assert succeed(AT_EXIT) == "[1, 1, 1, 1, 1, 1, 1, 1]\n[0, 1, 2]\n"


DAEMONS = """
extension = extension_under_test.load()
memory = dpctl.memory.MemoryUSMShared(64)
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
CALLS = {
    "a refused import": "from_dlpack(np.zeros(3))",
    "an import": "from_dlpack(tensor)",
    "a copy": "from_dlpack(tensor, copy=True)",
    "an export": "to_dlpack_tensor(memory, shape=[3], dtype=np.float32)",
    "a text": "repr(tensor)",
    "values": "tensor.copy_from([1, 2, 3])",
    "a stream": "tensor.__dlpack__(stream=Stream())",
    "a copy for the host": "tensor.__dlpack__(dl_device=(1, 0), copy=True)",
    "a deleter": "call_deleter(consume(tensor.__dlpack__()))",
    "an extension": "extension.rank_one(np.zeros(3))",
    "a kernel of an extension": "extension.axpy(2, tensor, tensor)",
    "an owner that goes": "to_dlpack_tensor(Owner())",
}


# The others are extended.
QUICK_CALLS = {"a copy", "an extension", "an owner that goes"}


@pytest.mark.parametrize(
    "call",
    [pytest.param(c, marks=() if c in QUICK_CALLS else pytest.mark.extended) for c in CALLS],
)
def test_daemon_threads_may_be_inside_when_the_process_ends(call, succeed):
    """Python before 3.14 ends a thread that asks for the GIL then, by unwinding its stack."""
    assert succeed(BEGIN + DAEMONS.format(call=CALLS[call])) == ""


# What an interpreter has when it ends.
LEFT = {
    "objects in globals": """
a = make(); b = from_dlpack(a)
c = a.__dlpack__(); d = a.__dlpack__(max_version=(1, 3)); e = make().__dlpack__(max_version=(1, 3))
f = a.__dlpack__(copy=True); g = a.__dlpack__(dl_device=(1, 0))
h = np.from_dlpack(make(dpctl.memory.MemoryUSMShared), device='cpu')
import tvm_ffi; i = tvm_ffi.from_dlpack(make())
p = usm_dlpack.validate(make()); q = p.root_device; r = p.sycl_context
sys.keep = make(); usm_dlpack.keep = sys.keep.__dlpack__()
try:
    to_dlpack_tensor(dpctl.memory.MemoryUSMHost(8), shape=9)
except usm_dlpack.ConversionError as error:
    sys.last_refusal = error
sys.exit(0)
""",
    "cycles that nobody collects": """
gc.disable()
owner = TypedArray(dpctl.memory.MemoryUSMHost(64))
owner.tensor = to_dlpack_tensor(owner)
del owner
a = make()
class Holder: pass
a_holder = Holder()
a_holder.self, a_holder.tensor, a_holder.capsule = a_holder, a, a.__dlpack__()
del a, a_holder
""",
    "exports at the end": """
import atexit
a = make()
class Late:
    def __del__(self, tensor=a, take=from_dlpack):
        take(tensor)
late = Late()
atexit.register(lambda: from_dlpack(a))
""",
}
MAKE = """
def make(kind=dpctl.memory.MemoryUSMDevice):
    return to_dlpack_tensor(kind(64), dtype="float32")
"""


@pytest.mark.parametrize("name", LEFT)
def test_the_interpreter_ends_in_silence_and_leaves_nothing_of(name, succeed):
    assert succeed(BEGIN + MAKE + LEFT[name], USM_DLPACK_REPORT_LEAKS="1") == ""
