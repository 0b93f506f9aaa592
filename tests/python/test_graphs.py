# SPDX-License-Identifier: Apache-2.0
"""Functions of an extension while a queue records a graph, on OpenCL."""

from collections.abc import Callable
from typing import Any

import numpy as np
import order_table as table
import pytest
from capsules import dpctl_queue
from extension_under_test import load
from memory_sources import new_queue
from refusals import refused
from usm_dlpack import DLPackTensor, from_dlpack


def ones(queue: Any) -> DLPackTensor:
    return from_dlpack(np.ones(12, np.float32), device=queue)


@pytest.fixture(params=[True, False], ids=["in order", "out of order"])
def queue(request: pytest.FixtureRequest) -> Any:
    made = new_queue(in_order=request.param)
    load().axpy(1.0, ones(made), ones(made))  # builds the kernels
    return made


# With a queue that records, x and y of ones; and the values of y after each of two replays.
FUNCTIONS: dict[str, tuple[Callable[[Any, Any, Any], Any], tuple[float, float]]] = {
    "a plain view": (lambda queue, x, y: load().fill_after(queue, y), (3.0, 3.0)),
    "an owned view in a section": (lambda *given: load().copy_into_behind(*given), (2.0, 2.0)),
    "a launch": (lambda queue, x, y: load().axpy(2.0, x, y), (5.0, 9.0)),
}


@pytest.mark.parametrize("where", ["same", "other"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_recorded_once_and_replayed_on_opencl(name, where, queue):
    function, expected = FUNCTIONS[name]
    of_arguments = queue if where == "same" or name == "a launch" else new_queue()
    x, y = ones(of_arguments), ones(of_arguments)
    x.copy_from(np.full(12, 2, np.float32))
    recording = load().Recording(queue)
    function(queue, x, y)
    recording.end()
    assert y.numpy().tolist() == [1.0] * 12
    for value in expected:
        recording.replay()
        assert y.numpy().tolist() == [value] * 12


WAITING: table.Uses = {
    **(table.OF_ARRAYS | table.OF_TENSORS | table.WRITES),
    **{
        name: lambda x, hand=hand: hand(x, new_queue(in_order=True))
        for name, hand in (table.HANDS["tensor"] | table.HANDS_IN_C).items()
    },
}


@pytest.mark.parametrize("way", WAITING)
def test_nothing_waits_for_a_queue_that_records_and_no_queue_follows_it_on_opencl(way, queue):
    x = ones(queue)
    recording = load().Recording(queue)
    with refused("runtime_error", "queue", found="one that records a graph"):
        WAITING[way](x)
    recording.end()
    assert x.numpy().tolist() == [1.0] * 12


def test_a_queue_that_records_follows_no_other_on_opencl(queue):
    x = ones(dpctl_queue())
    recording = load().Recording(queue)
    with refused("runtime_error", "queue", found="one that records a graph"):
        x.__dlpack__(stream=queue)
    recording.end()
    assert x.__dlpack__(stream=queue) is not None


def test_a_tensor_goes_while_its_queue_records_on_opencl(queue):
    x = ones(queue)
    recording = load().Recording(queue)
    del x  # its memory is not freed
    recording.end()
