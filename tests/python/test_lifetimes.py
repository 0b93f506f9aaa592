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
from memory_sources import TypedArray, address_of, allocate
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
    managed = deleters.count(api.allocate(ForeignTensor(address_of(memory)).tensor))
    address = managed.dl_tensor.data
    taken = api.take(managed)
    assert (taken.data, taken.shape, validate(taken).size >= 48) == (address, (3, 4), True)
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
memory.memset(1)
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
