# SPDX-License-Identifier: Apache-2.0
"""Who keeps a producer's memory, and for how long: capsules, deleters, threads, and processes."""

import ctypes
import gc
import os
from functools import partial
from typing import Any

import numpy as np
import pytest

from .cases import (
    PYTHON,
    VALUES,
    convention,
    growth,
    make,
    readable_kind,
    run_in_threads,
    spec,
)
from .dlpack import call_deleter, consume, content_of, first_element


def capsule_of(adapter: Any) -> Any:
    """Return a capsule whose array nobody else keeps."""
    array = make(adapter, kind=readable_kind(adapter))
    return array.__dlpack__(max_version=(1, 1))


def bytes_of(content: Any) -> bytes:
    return ctypes.string_at(first_element(content.dl_tensor), VALUES.nbytes)


def reuse_freed_memory(adapter: Any) -> None:
    """Overwrite what may have been freed."""
    gc.collect()
    for _ in range(8):
        make(adapter, np.full(VALUES.shape, 77, "f4"), kind=readable_kind(adapter))


@pytest.mark.alone
@spec("owner.capsule", PYTHON, "A fresh capsule owns the tensor.")
def test_a_capsule_keeps_the_memory(adapter):
    capsule = capsule_of(adapter)
    reuse_freed_memory(adapter)
    assert bytes_of(content_of(capsule)) == VALUES.tobytes()


@pytest.mark.alone
@spec("owner.consumed", PYTHON, "A consumed tensor lives until its deleter runs.")
def test_a_consumed_tensor_outlives_its_capsule(adapter):
    capsule = capsule_of(adapter)
    content = consume(capsule)
    del content.capsule, capsule
    reuse_freed_memory(adapter)
    assert bytes_of(content) == VALUES.tobytes()
    call_deleter(content)


LARGE = np.ones(1 << 20, "f4")  # 4 MiB


def check_memory_returns(adapter: Any, use: Any) -> None:
    kind = readable_kind(adapter)
    grown = growth(lambda: use(make(adapter, LARGE, kind=kind)), 32)
    assert grown < 8 * LARGE.nbytes, "the memory of exported arrays stays"


@spec("owner.abandoned", PYTHON, "The destructor of a capsule that nobody took runs the deleter.")
def test_an_abandoned_capsule_frees_its_memory(adapter):
    check_memory_returns(adapter, lambda array: array.__dlpack__(max_version=(1, 1)))


@spec("owner.abandoned-legacy", PYTHON, "The same for the old struct.")
def test_an_abandoned_legacy_capsule_frees_its_memory(adapter):
    check_memory_returns(adapter, lambda array: array.__dlpack__())


@spec("owner.deleter", PYTHON, "Whoever took the tensor runs the deleter.")
def test_the_deleter_frees_the_memory(adapter):
    def use(array: Any) -> None:
        call_deleter(consume(array.__dlpack__(max_version=(1, 1))))

    check_memory_returns(adapter, use)


@spec("owner.struct", PYTHON, "The structs of a capsule go with it.")
def test_many_capsules_leave_nothing_behind(adapter):
    array = make(adapter)

    def use() -> None:
        array.__dlpack__()
        array.__dlpack__(max_version=(1, 1))
        call_deleter(consume(array.__dlpack__(max_version=(1, 1))))

    assert growth(use, 20_000) < 1 << 20


@pytest.mark.alone
@spec("owner.deleter-once", PYTHON, "The destructor of a consumed capsule does nothing.")
def test_a_consumed_capsule_runs_no_deleter(adapter):
    for _ in range(100):
        capsule = capsule_of(adapter)
        content = consume(capsule)
        del content.capsule, capsule
        assert bytes_of(content) == VALUES.tobytes()
        call_deleter(content)


@pytest.mark.alone
@spec("owner.thread", PYTHON, "A consumer in C runs the deleter on any thread.")
def test_a_deleter_may_run_on_a_thread_without_the_gil(adapter):
    contents = [consume(capsule_of(adapter)) for _ in range(64)]
    run_in_threads([partial(call_deleter, content) for content in contents])


@pytest.mark.alone
@convention("owner.threads-export", PYTHON, "Threads may export one array.")
def test_threads_may_export_one_array_at_once(adapter):
    array = make(adapter)

    def export() -> None:
        for _ in range(200):
            capsule = array.__dlpack__(max_version=(1, 1))
            assert first_element(content_of(capsule).dl_tensor) == adapter.address(array)

    run_in_threads([export] * 8)


class _Globals:
    left: Any = None


@pytest.mark.alone
@convention("owner.exit", PYTHON, "A capsule may live until the interpreter ends.")
def test_the_interpreter_may_end_with_capsules(adapter):
    _Globals.left = [capsule_of(adapter), consume(capsule_of(adapter))]


@pytest.mark.alone
@convention("owner.fork", PYTHON, "A child of fork() may drop what it inherited.")
def test_a_child_of_fork_may_drop_a_capsule(adapter):
    capsule = capsule_of(adapter)
    child = os.fork()
    if child == 0:
        del capsule
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert bytes_of(content_of(capsule)) == VALUES.tobytes()
