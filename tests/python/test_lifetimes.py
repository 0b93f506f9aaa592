# SPDX-License-Identifier: Apache-2.0
"""Each managed tensor's deleter runs once, on any thread, however its capsule ends."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from c_exchange_api import ExchangeAPI
from capsules import ForeignArray, ForeignTensor, OldArray, consume
from counted_deleters import CountedDeleters
from memory_sources import UNPOOLED, TypedArray, address_of, allocate
from refusals import refused
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate

NEWEST = (1, 3)
_VERSIONS = pytest.mark.parametrize("version", [None, NEWEST], ids=["legacy", "versioned"])


@_VERSIONS
def test_a_consumed_capsule_runs_the_deleter_once(memory: Any, version: Any) -> None:
    deleters = CountedDeleters()
    capsule = deleters.count_capsule(to_dlpack_tensor(memory).__dlpack__(max_version=version))
    taken = from_dlpack(OldArray(capsule))
    del capsule
    gc.collect()
    assert deleters.deletions == 0
    del taken
    assert deleters.deletions == 1


@_VERSIONS
def test_a_half_consumed_capsule_runs_the_deleter_once(memory: Any, version: Any) -> None:
    deleters = CountedDeleters()
    capsule = deleters.count_capsule(to_dlpack_tensor(memory).__dlpack__(max_version=version))
    assert validate(capsule).data == address_of(memory)
    with refused("copy_needed", "copy"):
        from_dlpack(OldArray(capsule), usm_type="host", copy=False)
    gc.collect()
    assert deleters.deletions == 0
    del capsule
    assert deleters.deletions == 1


@_VERSIONS
def test_an_abandoned_capsule_runs_the_deleter_once(memory: Any, version: Any) -> None:
    deleters = CountedDeleters()
    capsule = deleters.count_capsule(to_dlpack_tensor(memory).__dlpack__(max_version=version))
    gc.collect()
    assert deleters.deletions == 0
    del capsule
    assert deleters.deletions == 1


def test_a_capsule_dies_beside_an_exception_that_stays_what_it_is(memory: Any) -> None:
    deleters = CountedDeleters()

    def fail() -> None:
        capsules = [deleters.count_capsule(to_dlpack_tensor(memory).__dlpack__())]
        capsules.append(from_dlpack(OldArray(capsules[0])))
        raise LookupError("the caller's")

    with pytest.raises(LookupError, match="the caller's"):
        fail()
    gc.collect()
    assert deleters.deletions == 1


@_VERSIONS
@pytest.mark.parametrize("kind", [ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE], ids=["without", "with"])
def test_a_deleter_runs_with_and_without_the_gil(memory: Any, version: Any, kind: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    managed = consume(to_dlpack_tensor(owner).__dlpack__(max_version=version))
    del owner
    gc.collect()
    assert gone() is not None
    kind(None, ctypes.c_void_p)(managed.deleter)(ctypes.addressof(managed))
    assert gone() is None


def test_a_managed_tensor_of_the_exchange_api_runs_its_deleter_once(memory: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    deleters = CountedDeleters()
    api = ExchangeAPI(DLPackTensor)
    managed = deleters.count(api.export(to_dlpack_tensor(owner)))
    taken = api.take(managed)
    del owner
    gc.collect()
    assert (taken.data, deleters.deletions) == (address_of(memory), 0)
    assert gone() is not None
    del taken
    assert deleters.deletions == 1
    assert gone() is None


def test_a_managed_tensor_that_the_exchange_api_refuses_runs_its_deleter_once() -> None:
    foreign = ForeignTensor(4096)  # no USM
    with refused("pointer_unknown", "data", binding=True):
        ExchangeAPI(DLPackTensor).take(foreign.managed)
    assert foreign.deletions == 1


def test_memory_that_the_exchange_api_allocates_goes_with_its_deleter(memory: Any) -> None:
    deleters = CountedDeleters()
    api = ExchangeAPI(DLPackTensor)
    prototype = ForeignTensor(address_of(memory), shape=(UNPOOLED // 4,))
    managed = deleters.count(api.allocate(prototype.tensor))
    address = managed.dl_tensor.data
    taken = api.take(managed)
    assert (taken.data, taken.shape) == (address, (UNPOOLED // 4,))
    assert validate(taken).size >= UNPOOLED
    del taken
    assert deleters.deletions == 1
    with refused("pointer_unknown", "data", binding=True):
        from_dlpack(ForeignArray(ForeignTensor(address)))


def test_what_was_imported_keeps_the_producer_until_the_last_export_dies(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    array = ForeignArray(foreign)
    capsule = from_dlpack(array).__dlpack__(max_version=NEWEST)
    array.given = None
    last = from_dlpack(from_dlpack(OldArray(capsule)))
    del capsule, array
    gc.collect()
    assert foreign.deletions == 0
    del last
    assert foreign.deletions == 1


def test_a_borrowed_tensor_keeps_nothing(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    before = sys.getrefcount(tensor)
    assert ExchangeAPI(DLPackTensor).borrow(tensor).data == address_of(memory)
    assert sys.getrefcount(tensor) == before


def test_a_cycle_of_tensors_and_their_producers_is_collected(memory: Any) -> None:
    first = TypedArray(memory)
    first.tensor = from_dlpack(from_dlpack(to_dlpack_tensor(first)))
    gone = [weakref.ref(first), weakref.ref(first.tensor)]
    del first
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


@pytest.mark.parametrize(
    "keywords",
    [{}, {"device": (14, 0)}, {"copy": False}, {"usm_type": "shared"}, {"device": "queue"}],
    ids=str,
)
def test_a_cycle_through_a_tensor_of_a_tensor_is_collected(queue: Any, keywords: Any) -> None:
    if keywords.get("device") == "queue":
        keywords = {"device": queue}
    owner = TypedArray(allocate("shared", 64, queue))
    owner.tensor = from_dlpack(to_dlpack_tensor(owner), **keywords)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


# --- chains of tensors


def test_a_tensor_of_a_tensor_keeps_the_memory_and_not_the_tensor(memory: Any) -> None:
    owner = TypedArray(memory)
    kept = weakref.ref(owner)
    ways: list[Callable[[DLPackTensor], DLPackTensor]] = [
        from_dlpack,
        to_dlpack_tensor,
        lambda tensor: to_dlpack_tensor(tensor, shape=(12,)),
        lambda tensor: from_dlpack(tensor, device=(14, 0), copy=False),
    ]
    tensor = to_dlpack_tensor(owner)
    del owner
    for way in ways:
        gone = weakref.ref(tensor)
        tensor = way(tensor)
        assert gone() is None
        assert kept() is not None
    del tensor
    assert kept() is None


def test_the_first_tensor_of_what_was_imported_is_kept_by_all(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    tensor = from_dlpack(ForeignArray(foreign))
    first = weakref.ref(tensor)
    tensor = from_dlpack(tensor)
    second = weakref.ref(tensor)
    tensor = to_dlpack_tensor(tensor)
    assert (first() is None, second() is None, foreign.deletions) == (False, True, 0)
    del tensor
    assert (first() is None, foreign.deletions) == (True, 1)


CHAIN = """
import sys, threading, weakref
import dpctl.memory, usm_dlpack
from usm_dlpack import from_dlpack, to_dlpack_tensor

class Owner:
    def __init__(self, memory):
        self.__sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__
        self.memory = memory

class Forwards:
    def __init__(self, tensor):
        self.tensor = tensor
    def __dlpack__(self, *, max_version=None, stream=None, dl_device=None, copy=None):
        return self.tensor.__dlpack__(max_version=max_version)
    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

links = {
    "from_dlpack": (100000, from_dlpack),
    "to_dlpack_tensor": (100000, to_dlpack_tensor),
    "a wrapper": (60000, lambda tensor: from_dlpack(Forwards(tensor))),
}
count, link = links[sys.argv[1]]

def run():
    owner = Owner(dpctl.memory.MemoryUSMShared(64))
    gone = weakref.ref(owner)
    tensor = to_dlpack_tensor(owner, dtype="float32")
    del owner
    for _ in range(count):
        tensor = link(tensor)
    assert gone() is not None
    del tensor
    assert gone() is None

if sys.argv[2] == "small stack":
    usm_dlpack.root_device(0)
    threading.stack_size(256 * 1024)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
print("all is gone")
"""


@pytest.mark.extended
@pytest.mark.parametrize("stack", ["main thread", "small stack"])
@pytest.mark.parametrize("link", ["from_dlpack", "to_dlpack_tensor", "a wrapper"])
def test_a_long_chain_of_tensors_ends_at_once(
    new_process: Callable[..., Any], link: str, stack: str
) -> None:
    done = new_process(arguments=("-c", CHAIN, link, stack))
    assert (done.returncode, done.stdout, done.stderr) == (0, "all is gone\n", "")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_refused_in_words(memory: Any, protocol: int) -> None:
    with pytest.raises(TypeError, match=r"DLPackTensor: expected .+, found .+; copy it with"):
        pickle.dumps(to_dlpack_tensor(memory), protocol)


# --- the end of the process

# --- memory that the package itself made goes after the work on it, without the GIL

PENDING = """
import faulthandler, gc, threading, time
faulthandler.dump_traceback_later(60, exit=True)
import ctypes, numpy as np
from dpctl.memory import MemoryUSMDevice, as_usm_memory
from c_exchange_api import ExchangeAPI
from capsules import ForeignTensor, OldArray, call_deleter, content_of, new_capsule
from memory_sources import UNPOOLED, new_queue
from pending_work import PendingFill, is_complete
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, root_device, validate
from usm_dlpack import to_dlpack_tensor

api = ExchangeAPI(DLPackTensor)
zeros = np.zeros(UNPOOLED // 4, np.int32)  # no pool keeps it known when it is freed
queue, other = new_queue(root_device(0), in_order={in_order}), new_queue(root_device(0))

def foreign_at(address):
    return ForeignTensor(address, shape=zeros.shape, dtype=(0, 32, 1))

def is_usm(address):
    try:
        return bool(validate(foreign_at(address).capsule()))
    except ConversionError as error:
        assert error.code == "pointer_unknown"
        return False

def array_of(managed):  # keeps nothing
    return from_dlpack(OldArray(foreign_at(managed.dl_tensor.data).capsule()))

def delete_with_the_gil(managed):
    delete = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)
    delete(ctypes.addressof(managed))

def run(get, last):  # work is pending when the last of what keeps the memory of get() goes
    x = get()  # as an argument, Python 3.10 would keep it until the end of the call
    pending = PendingFill(queue, behind_host_task={host_task}, into=as_usm_memory(x))
    pending.memory = None
    address = x.data
    del x
    seen = []
    def let_it_go_on():
        time.sleep(0.3)
        seen.extend([is_usm(address), pending.is_pending])
        pending.open()
    thread = threading.Thread(target=let_it_go_on)
    thread.start()
    last()
    seen.append(is_complete(pending.event))
    thread.join()
    queue.wait()
    assert (seen, is_usm(address)) == ([True, True, True], False), (seen, is_usm(address))

{act}
print("fine")
"""


@pytest.fixture
def run_pending(succeed: Callable[..., str]) -> Callable[..., None]:
    """Return a function that drops memory with work pending, in a process of its own."""

    def run(act: str, in_order: bool, host_task: bool) -> None:
        code = PENDING.format(act=act, in_order=in_order, host_task=host_task)
        assert succeed(code, PYTHONPATH=str(Path(__file__).parent)) == "fine\n"

    return run


BEHIND = pytest.mark.parametrize(
    "host_task",
    [
        pytest.param(False, id="alone", marks=pytest.mark.extended),
        pytest.param(True, id="behind a host task"),
    ],
)
ORDERS = pytest.mark.parametrize("in_order", [False, True], ids=["out of order", "in order"])

COPIES = {
    "of an array in host memory": """
held = [from_dlpack(zeros, device=queue)]
run(lambda: held[0], held.clear)
""",
    "of USM": """
held = [from_dlpack(from_dlpack(zeros, device=other), device=queue, copy=True)]
run(lambda: held[0], held.clear)
""",
    "of another kind": """
held = [from_dlpack(from_dlpack(zeros, device=other), device=queue, usm_type="shared")]
run(lambda: held[0], held.clear)
""",
    "by a tensor that was made of it": """
held = [from_dlpack(from_dlpack(zeros, device=other), device=queue)]
run(lambda: held[0], held.clear)
""",
    "whose tensor for the queue went before": """
held = [from_dlpack(zeros, device=other)]
held.append(from_dlpack(held[0], device=queue))
run(lambda: held[1], lambda: [held.pop() for _ in range(2)].clear())
""",
    "in a capsule for the queue": """
held = [from_dlpack(zeros, device=other).__dlpack__(copy=True, stream=queue, max_version=(1, 3))]
run(lambda: array_of(content_of(held[0])), held.clear)
""",
    "in a legacy capsule that was taken": """
capsule = from_dlpack(zeros, device=other).__dlpack__(copy=True)
held = [from_dlpack(OldArray(capsule), device=(14, 0))]
held.append(from_dlpack(held[0], device=queue))
del capsule
run(lambda: held[1], held.clear)
""",
    "whose capsule was handed to the queue": """
held = [from_dlpack(zeros, device=other).__dlpack__(stream=queue, max_version=(1, 3))]
run(lambda: array_of(content_of(held[0])), held.clear)
""",
    "in a legacy capsule, taken for the queue": """
capsule = from_dlpack(zeros, device=other).__dlpack__()
held = [from_dlpack(OldArray(capsule), device=queue)]
del capsule
run(lambda: held[0], held.clear)
""",
    "by an array of another library that says the queue": """
class Wrapper:
    def __init__(self, x):
        self.x, self.sycl_queue = x, queue
    def __dlpack__(self, *, max_version=None):
        return self.x.__dlpack__(max_version=max_version)

held = [from_dlpack(Wrapper(from_dlpack(zeros, device=(14, 0))))]
run(lambda: held[0], held.clear)
""",
    "in a cycle": """
class Node:
    pass

node = Node()
node.node, node.x = node, from_dlpack(zeros, device=queue)
held = [node]
del node
gc.disable()
run(lambda: held[0].x, lambda: (held.clear(), gc.collect()))
""",
}


@BEHIND
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_goes_after_the_work_of_its_queue(
    way: str, host_task: bool, run_pending: Callable[..., None]
) -> None:
    in_order = (list(COPIES).index(way) % 2 == 0) is host_task  # both, with each kind of work
    run_pending(COPIES[way], in_order, host_task)


ALLOCATED = """
if {follows}:
    api.borrow(to_dlpack_tensor(MemoryUSMDevice(48, queue=queue), dtype="i4", queue=queue))
else:
    address = new_capsule(api.stream(0), b"SyclQueueRef")
    queue = to_dlpack_tensor(MemoryUSMDevice(48, queue=other), queue=address).sycl_queue
managed = api.allocate(foreign_at(4096).tensor)
run(lambda: array_of(managed), lambda: {delete}(managed))
"""


@BEHIND
@pytest.mark.parametrize("follows", [False, True], ids=["the package's", "a tensor's"])
@pytest.mark.parametrize("delete", ["call_deleter", "delete_with_the_gil", "api.take"])
def test_memory_that_the_exchange_api_allocates_goes_after_the_work_of_its_stream(
    delete: str, follows: bool, host_task: bool, run_pending: Callable[..., None]
) -> None:
    run_pending(ALLOCATED.format(delete=delete, follows=follows), True, host_task)


LENT = """
x = from_dlpack(zeros, device=(14, 0))
assert x.sycl_queue is None
api.borrow(x)
address = new_capsule(api.stream(0), b"SyclQueueRef")
queue = to_dlpack_tensor(MemoryUSMDevice(48, queue=other), queue=address).sycl_queue
held = [x]
del x
run(lambda: held[0], held.clear)
"""


@BEHIND
def test_a_copy_without_a_queue_goes_after_the_work_of_the_stream_that_it_was_lent_for(
    host_task: bool, run_pending: Callable[..., None]
) -> None:
    run_pending(LENT, True, host_task)


LENT_FIRST = """
mine = {mine}
of_the_queue = to_dlpack_tensor(MemoryUSMDevice(48, queue=queue), dtype="i4", queue=queue)
api.borrow(of_the_queue)
assert api.stream(0)
run(lambda: array_of(mine), lambda: call_deleter(mine))
"""

MINE = {
    "a new tensor": "api.allocate(foreign_at(4096).tensor)",
    "a copy": "api.export(from_dlpack(zeros, device=(14, 0)))",
    "a copy for another queue": "api.export(from_dlpack(zeros, device=other))",
}


@BEHIND
@pytest.mark.parametrize("mine", MINE)
def test_memory_goes_after_the_work_of_the_stream_that_a_consumer_asked_for_afterwards(
    mine: str, host_task: bool, run_pending: Callable[..., None]
) -> None:
    """The stream moved to the queue of a tensor that the consumer got later."""
    run_pending(LENT_FIRST.format(mine=MINE[mine]), True, host_task)


UNKNOWN = """
x = from_dlpack(zeros, device=(14, 0))
pending = PendingFill(queue, into=as_usm_memory(x))
pending.memory = None
threading.Timer(0.3, pending.open).start()  # a thread of Python, which needs the GIL
del x
queue.wait()
"""


@ORDERS
def test_a_copy_goes_without_the_gil_whatever_kernel_works(
    in_order: bool, run_pending: Callable[..., None]
) -> None:
    """The backend's own free waits for kernels."""
    run_pending(UNKNOWN, in_order, False)


AT_THE_END = """
import dpctl.program
source = "kernel void slow(global float *x) {{ int i = get_global_id(0); float a = x[i];"
source += " for (int k = 0; k < 300; ++k) a = sin(a); x[i] = a; }}"
slow = dpctl.program.create_program_from_source(queue, source).get_sycl_kernel("slow")
memory = MemoryUSMDevice(4000000, queue=queue)
x = from_dlpack(np.zeros(1000000, np.float32), device=queue)
event = queue.submit_async(slow, [memory], [1000000])
{keep}event = queue._submit_keep_args_alive([memory], [event])  # it needs the GIL
event = queue.submit_async(slow, [as_usm_memory(x)], [1000000], dEvents=[event])
{drop}
"""


@ORDERS
@pytest.mark.parametrize("dropped", [False, True], ids=["the end drops it", "dropped before"])
def test_the_interpreter_ends_with_a_kernel_pending_on_a_copy(
    dropped: bool, in_order: bool, run_pending: Callable[..., None]
) -> None:
    """A host task of dpctl that is pending at the end crashes the process without us, too."""
    keep, drop = ("", "del x") if dropped else ("# ", "")
    run_pending(AT_THE_END.format(keep=keep, drop=drop), in_order, False)


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


def test_a_deleter_may_run_when_python_is_gone(succeed: Callable[..., str]) -> None:
    assert succeed(AFTER_PYTHON, PYTHONPATH=str(Path(__file__).parent)) == ""


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


def test_threads_work_as_long_as_the_exit_handlers_do(succeed: Callable[..., str]) -> None:
    assert succeed(AT_EXIT) == "[1, 1, 1, 1, 1, 1, 1, 1]\n[0, 1, 2]\n"


def test_the_interpreter_ends_while_threads_export_copy_and_let_go(
    new_process: Callable[..., Any],
) -> None:
    for _ in range(3):
        done = new_process(BUSY_END, PYTHONPATH=str(Path(__file__).parent))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- fifty thousand of the cycles that ``python3 dev.py cycles`` runs by the million


def test_cycles_leave_nothing_behind(new_process: Callable[..., Any], project_root: Path) -> None:
    program = str(project_root / "tests" / "cycles" / "run.py")
    done = new_process(arguments=(program, "--count", "50000"))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
