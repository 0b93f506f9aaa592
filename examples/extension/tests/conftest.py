# SPDX-License-Identifier: Apache-2.0
"""Queues, arrays of the libraries that are here, and work that takes a while."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from typing import Any

import dpctl
import numpy as np
import pytest
import usm_dlpack
from dpctl import memory, program

KINDS = {
    "device": memory.MemoryUSMDevice,
    "shared": memory.MemoryUSMShared,
    "host": memory.MemoryUSMHost,
}


def floats(owner: Any, *shape: int) -> Any:
    """Return a tensor over some memory, or some of it."""
    return usm_dlpack.to_dlpack_tensor(owner, shape=shape, dtype="float32")


def make(values: Any, queue: Any, usm_type: str = "device") -> Any:
    """Return a tensor over dpctl memory that holds a copy of NumPy values."""
    owner = KINDS[usm_type](max(values.nbytes, 1), queue=queue)
    if values.size:
        owner.copy_from_host(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
    return usm_dlpack.to_dlpack_tensor(owner, shape=values.shape, dtype=values.dtype.name)


class Library:
    """How arrays of a library are made of NumPy's values on a queue, and read again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._module = None if name == "usm_dlpack" else importlib.import_module(name)

    def array(self, values: Any, queue: Any) -> Any:
        """Return an array in device USM."""
        if self._module is None:
            return make(values, queue)
        return self._module.asarray(values, usm_type="device", sycl_queue=queue)

    def values(self, array: Any) -> Any:
        """Return a copy of an array on the host."""
        return array.numpy() if self._module is None else self._module.asnumpy(array)


def _is_here(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


LIBRARIES = ["usm_dlpack", *filter(_is_here, ("dpctl.tensor", "dpnp"))]


@pytest.fixture(scope="session", params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    """Return each array library of this environment in turn."""
    return Library(request.param)


@pytest.fixture(scope="session")
def in_order() -> Any:
    """Return an in-order queue: what it gets runs one after another."""
    return dpctl.SyclQueue(usm_dlpack.root_device(0), property="in_order")


@pytest.fixture(scope="session")
def out_of_order() -> Any:
    """Return an out-of-order queue: only events order what it gets."""
    return dpctl.SyclQueue(usm_dlpack.root_device(0))


@pytest.fixture(scope="session", params=["in_order", "out_of_order"])
def queue(request: pytest.FixtureRequest) -> Any:
    """Return a queue of each order in turn."""
    return request.getfixturevalue(request.param)


_SLOW_FILL = """
__kernel void slow_fill(__global float *x, float value, int size, int turns) {
  volatile float none = 0;
  for (int i = 0; i < turns; ++i) none = none * 0.5f;
  for (int i = 0; i < size; ++i) x[i] = value + none;
}
"""


@pytest.fixture
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
