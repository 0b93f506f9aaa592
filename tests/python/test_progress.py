# SPDX-License-Identifier: Apache-2.0
"""No call hangs: beside threads that submit work, where its queue goes, or in a recursion."""

from collections.abc import Callable
from pathlib import Path

import extension_under_test
import pytest
from beside_copies import CALLS

Run = Callable[..., str]
ORDERS = ["in_order", "default"]


@pytest.fixture
def run(succeed: Run, project_root: Path) -> Run:
    """Return a function that runs beside_copies.py, and requires that it ends in silence."""
    extension_under_test.build(extension_under_test.NAME)  # not within the limit of the process
    program = str(project_root / "tests" / "python" / "support" / "beside_copies.py")
    return lambda *arguments: succeed(arguments=(program, *map(str, arguments)))


LONG = [pytest.param(name, 5, marks=pytest.mark.extended) for name in [*CALLS, *["all"] * 4]]


@pytest.mark.parametrize(("name", "seconds"), [("all", 1), *LONG])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("where", ["same", "other"])
def test_calls_end_beside_a_thread_that_copies_on_opencl(
    where: str, order: str, name: str, seconds: int, run: Run
) -> None:
    run(where, order, name, 1, seconds)


@pytest.mark.parametrize("order", ORDERS)
def test_threads_wait_for_one_queue_beside_a_thread_that_copies_on_opencl(
    order: str, run: Run
) -> None:
    """The OpenCL CPU driver crashes in `clFinish` of several threads for one out-of-order queue."""
    run("same", order, "wait", 4, 1)


def test_calls_end_beside_a_thread_that_waits_for_host_tasks_of_their_queue(run: Run) -> None:
    """A section does not: its function submits with the GIL."""
    run("waited", "in_order", "wait,numpy,plain-view,capsule,copy_from", 3, 2)


LIMITED = """
import signal
signal.alarm(30)  # shows the threads, and ends the process
"""

QUEUES_THAT_GO = """
import dpctl
import numpy as np
from usm_dlpack import from_dlpack, root_device

values = np.arange(12)
for _ in range(1000):
    queue = dpctl.SyclQueue(root_device(0), property="{}")
    x = from_dlpack(values, device=queue)
    x.numpy()
    del queue, x
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_queue_goes_right_after_its_work_on_opencl(order: str, succeed: Run) -> None:
    """The OpenCL CPU driver hangs if its own thread destroys an out-of-order queue."""
    assert succeed(LIMITED + QUEUES_THAT_GO.format(order)) == ""


RECURSION = """
import sys
from capsules import OldArray
from usm_dlpack import empty, from_dlpack

class Producer:
    calls = 0

    def __dlpack__(self, **keywords):
        Producer.calls += 1
        if self.calls > 100_000:
            raise SystemExit("more than 100,000 calls")
        return from_dlpack(self, {arguments})

    def __dlpack_device__(self):
        return 14, 0

from_dlpack(OldArray(empty(3).__dlpack__()), {arguments})  # the first use needs more frames
sys.setrecursionlimit(100)
try:
    from_dlpack(Producer(), {arguments})
except RecursionError:
    assert 10 < Producer.calls <= 100, Producer.calls
else:
    raise AssertionError
"""


@pytest.mark.parametrize("arguments", ["", "device=(14, 0)"])
def test_a_producer_that_imports_itself_ends_in_a_recursion_error(
    arguments: str, succeed: Run
) -> None:
    """A second form of the call in each frame would double the calls with each frame."""
    assert succeed(LIMITED + RECURSION.format(arguments=arguments)) == ""
