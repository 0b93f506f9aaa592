# SPDX-License-Identifier: Apache-2.0
"""Queues, arrays of the libraries that are here, and work that takes a while."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from typing import Any

import dpctl
import numpy as np
import pytest
import usm_dlpack
from dpctl import memory, program


def new_queue(*, in_order: bool = True) -> Any:
    """Return a queue of the first root device, which is never destroyed."""
    queue = dpctl.SyclQueue(
        usm_dlpack.root_device(0), property="in_order" if in_order else "default"
    )
    _QUEUES.append(queue)
    return queue


_QUEUES: list[Any] = []


class Memory(memory.MemoryUSMDevice):  # type: ignore[misc]
    """Memory that can be watched by a weak reference."""


@pytest.fixture(scope="session", params=["in_order", "out_of_order"])
def queue(request: pytest.FixtureRequest) -> Any:
    """Return a queue of each order in turn."""
    return new_queue(in_order=request.param == "in_order")


@pytest.fixture(
    scope="session",
    params=["numpy", *(["dpnp"] if importlib.util.find_spec("dpnp") else [])],
)
def array(request: pytest.FixtureRequest) -> Callable[[Any, Any], Any]:
    """Return how each library makes an array in device USM of NumPy's values on a queue."""
    if request.param == "numpy":
        return lambda values, queue: usm_dlpack.from_dlpack(values, device=queue)
    import dpnp

    return lambda values, queue: dpnp.asarray(values, usm_type="device", sycl_queue=queue)


_SLOW_FILL = """
__kernel void slow_fill(__global float *x, float value, int size, int turns) {
  volatile float none = 0;
  for (int i = 0; i < turns; ++i) none = none * 0.5f;
  for (int i = 0; i < size; ++i) x[i] = value + none;
}
"""


@pytest.fixture(scope="session")
def slow_fill() -> Callable[[Any, Any, float], Any]:
    """Return a function that fills floats, in a second or so, and returns the event."""
    programs: dict[Any, Any] = {}

    def fill(queue: Any, owner: Any, value: float) -> Any:
        if queue not in programs:
            programs[queue] = program.create_program_from_source(queue, _SLOW_FILL)
        kernel = programs[queue].get_sycl_kernel("slow_fill")
        sizes = [ctypes.c_int(owner.nbytes // 4), ctypes.c_int(200_000_000)]
        return queue.submit_async(kernel, [owner, ctypes.c_float(value), *sizes], [1])

    return fill


def tensor(shape: tuple[int, ...], queue: Any, **keywords: Any) -> Any:
    """Return a tensor over 256 zero bytes of device USM."""
    owner = usm_dlpack.from_dlpack(np.zeros(256, "u1"), device=queue)
    return usm_dlpack.to_dlpack_tensor(owner, shape=shape, **keywords)
