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


class Memory(memory.MemoryUSMDevice):  # type: ignore[misc]
    """Memory that can be watched."""


def new_queue(*, in_order: bool = False) -> Any:
    """Return a queue of the first root device, which is never destroyed."""
    queue = dpctl.SyclQueue(
        usm_dlpack.root_device(0), property="in_order" if in_order else "default"
    )
    _QUEUES.append(queue)
    return queue


_QUEUES: list[Any] = []


def make(values: Any, queue: Any, usm_type: str = "device") -> Any:
    """Return a tensor over dpctl memory that holds a copy of NumPy values."""
    owner = KINDS[usm_type](max(values.nbytes, 1), queue=queue)
    if values.size:
        owner.copy_from_host(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
    return usm_dlpack.to_dlpack_tensor(owner, shape=values.shape, dtype=values.dtype.name)


def floats(owner: Any, *shape: int, queue: Any = None) -> Any:
    """Return a tensor of float32 over some memory."""
    return usm_dlpack.to_dlpack_tensor(owner, shape=shape, dtype="float32", queue=queue)


class Library:
    """How arrays of a library are made of NumPy's values on a queue, and read again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._module = None if name == "dpctl" else importlib.import_module(name)
        # Where arrays of dpnp are that come through DLPack: its own queue of the device.
        self.queue = new_queue() if self._module is None else self._module.empty(1).sycl_queue

    def array(self, values: Any, queue: Any) -> Any:
        """Return an array in device USM."""
        if self._module is None:
            return make(values, queue)
        return self._module.asarray(values, usm_type="device", sycl_queue=queue)

    def view(self, array: Any, values: Any, view: Callable[[Any], Any]) -> Any:
        """Return the view of an array that `view` is of NumPy's values."""
        if self._module is not None:
            return view(array)
        seen = view(values)
        return usm_dlpack.to_dlpack_tensor(
            array,
            shape=seen.shape,
            strides=[step // seen.itemsize for step in seen.strides],
            byte_offset=seen.ctypes.data - values.ctypes.data,
        )

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        return int(usm_dlpack.from_dlpack(array).data)

    def take(self, tensor: Any) -> Any:
        """Return a tensor as the library's array: what the library's queue gets is behind it."""
        handed = usm_dlpack.from_dlpack(tensor, device=self.queue)
        return handed if self._module is None else self._module.from_dlpack(handed)

    def values(self, array: Any) -> Any:
        """Return a copy of an array on the host."""
        return array.numpy() if self._module is None else self._module.asnumpy(array)


def _is_here(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


@pytest.fixture(scope="session", params=["dpctl", *filter(_is_here, ("dpnp", "dpnp.tensor"))])
def library(request: pytest.FixtureRequest) -> Library:
    """Return each array library of this environment in turn; dpctl's memory is always here."""
    return Library(request.param)


@pytest.fixture(scope="session")
def in_order() -> Any:
    """Return an in-order queue: what it gets runs one after another."""
    return new_queue(in_order=True)


@pytest.fixture(scope="session")
def out_of_order() -> Any:
    """Return an out-of-order queue: only events and barriers order what it gets."""
    return new_queue()


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
_programs: dict[Any, Any] = {}


@pytest.fixture(scope="session")
def slow_fill() -> Callable[[Any, Any, float], Any]:
    """Return a function that fills floats, in a second or so, and gives the event."""

    def fill(queue: Any, owner: Any, value: float) -> Any:
        if queue not in _programs:
            _programs[queue] = program.create_program_from_source(queue, _SLOW_FILL)
        kernel = _programs[queue].get_sycl_kernel("slow_fill")
        sizes = [ctypes.c_int(owner.nbytes // 4), ctypes.c_int(200_000_000)]
        return queue.submit_async(kernel, [owner, ctypes.c_float(value), *sizes], [1])

    return fill


def is_complete(event: Any) -> bool:
    """Return whether an event is complete."""
    return bool(event.execution_status == dpctl.event_status_type.complete)
