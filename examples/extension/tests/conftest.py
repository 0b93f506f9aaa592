# SPDX-License-Identifier: Apache-2.0
"""Queues, arrays of the libraries that are here, and work that takes a while."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from typing import Any

import dpctl
import pytest
import usm_dlpack
from dpctl import program


def floats(owner: Any, *shape: int) -> Any:
    """Return a tensor over some memory, or some of it."""
    return usm_dlpack.to_dlpack_tensor(owner, shape=shape, dtype="float32")


def make(values: Any, queue: Any) -> Any:
    """Return a tensor in device USM that holds a copy of NumPy values."""
    return usm_dlpack.from_dlpack(values, device=queue)


@pytest.fixture(
    scope="session",
    params=["numpy", *(["dpnp"] if importlib.util.find_spec("dpnp") else [])],
)
def array(request: pytest.FixtureRequest) -> Callable[[Any, Any], Any]:
    """Return how each library makes an array in device USM of NumPy's values on a queue."""
    if request.param == "numpy":
        return make
    import dpnp

    return lambda values, queue: dpnp.asarray(values, usm_type="device", sycl_queue=queue)


@pytest.fixture(scope="session", params=["in_order", "default"])
def queue(request: pytest.FixtureRequest) -> Any:
    """Return an in-order and an out-of-order queue in turn."""
    return dpctl.SyclQueue(usm_dlpack.root_device(0), property=request.param)


_SLOW_FILL = """
__kernel void slow_fill(__global float *x, float value, int size, int turns) {
  volatile float none = 0;
  for (int i = 0; i < turns; ++i) none = none * 0.5f;
  for (int i = 0; i < size; ++i) x[i] = value + none;
}
"""


@pytest.fixture(scope="session")
def slow_fill() -> Callable[[Any, Any, float], Any]:
    """Return a function that fills floats, some tenths of a second later, and gives the event."""
    programs: dict[Any, Any] = {}

    def fill(queue: Any, owner: Any, value: float) -> Any:
        if queue not in programs:
            programs[queue] = program.create_program_from_source(queue, _SLOW_FILL)
        kernel = programs[queue].get_sycl_kernel("slow_fill")
        sizes = [ctypes.c_int(owner.nbytes // 4), ctypes.c_int(50_000_000)]
        return queue.submit_async(kernel, [owner, ctypes.c_float(value), *sizes], [1])

    return fill
