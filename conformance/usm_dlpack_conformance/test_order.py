# SPDX-License-Identifier: Apache-2.0
"""Work that is pending when an array is exported or taken.

A timer releases it: who does not wait for it sees the values of before.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from .cases import ARRAY_API, ORDER, SHAPE, convention, make, readable_kind, spec
from .dlpack import CPU, content_of, first_element

pytestmark = pytest.mark.alone
AFTER = np.full(SHAPE, 9, "f4")
SOON, LATE = 0.2, 10.0  # seconds until a timer releases the work


class Pending:
    """An array whose last write is pending."""

    def __init__(self, adapter: Any, kind: str) -> None:
        self.array = make(adapter, queue=adapter.queues()[0], kind=kind)
        self._release = adapter.write_pending(self.array, AFTER.tobytes())
        self.is_released = False

    def release(self) -> None:
        self._release()
        self.is_released = True


@contextmanager
def pending_array(
    adapter: Any, kind: str | None = None, seconds: float = SOON
) -> Iterator[Pending]:
    """Give an array whose last write a timer releases."""
    pending = Pending(adapter, kind or adapter.kinds[0])
    timer = threading.Timer(seconds, pending.release)
    timer.start()
    try:
        yield pending
    finally:
        timer.cancel()
        timer.join()
        if not pending.is_released:
            pending.release()
        adapter.to_bytes(pending.array)  # its memory stays until the write has ended


@convention("order.none", ORDER, "Who names no queue orders nothing, and gets finished memory.")
def test_without_a_stream_the_memory_is_ready(adapter):
    with pending_array(adapter, readable_kind(adapter)) as pending:
        tensor = content_of(pending.array.__dlpack__(max_version=(1, 1))).dl_tensor
        assert ctypes.string_at(first_element(tensor), AFTER.nbytes) == AFTER.tobytes()


@convention("order.minus-one", ORDER, "-1 forbids any synchronisation, as for CUDA.")
def test_with_minus_one_nobody_waits(adapter):
    with pending_array(adapter, seconds=LATE) as pending:
        pending.array.__dlpack__(stream=-1, max_version=(1, 1))
        assert not pending.is_released


@convention("order.queue", ORDER, "The consumer's queue comes after the producer's work.")
def test_a_command_of_the_named_queue_sees_the_work(adapter):
    with pending_array(adapter) as pending:
        queue = adapter.queues()[0]
        capsule = pending.array.__dlpack__(stream=queue, max_version=(1, 1))
        address = first_element(content_of(capsule).dl_tensor)
        assert adapter.read_behind(queue, address, AFTER.nbytes) == AFTER.tobytes()


@convention("order.copy", ORDER, "A copy has the values that the array has by then.")
def test_a_copy_has_the_values_of_the_work(adapter):
    with pending_array(adapter, readable_kind(adapter)) as pending:
        keywords = {"max_version": (1, 1), "dl_device": (CPU, 0), "copy": True}
        tensor = content_of(pending.array.__dlpack__(**keywords)).dl_tensor
        assert tensor.device_type == CPU
        assert ctypes.string_at(first_element(tensor), AFTER.nbytes) == AFTER.tobytes()


@spec("order.host", ARRAY_API, "The host has no queue that it could wait with.")
def test_memory_for_the_host_has_the_values_of_the_work(adapter):
    for kind in adapter.kinds:
        with pending_array(adapter, kind) as pending:
            capsule = pending.array.__dlpack__(max_version=(1, 1), dl_device=(1, 0))
            assert content_of(capsule).dl_tensor.device_type == CPU
            address = first_element(content_of(capsule).dl_tensor)
            assert (kind, ctypes.string_at(address, AFTER.nbytes)) == (kind, AFTER.tobytes())


@convention("order.import", ORDER, "The importing library uses the array after the work.")
def test_what_is_taken_has_the_values_of_the_work(adapter):
    with pending_array(adapter) as pending:
        assert adapter.to_bytes(adapter.consume(pending.array)) == AFTER.tobytes()
