# SPDX-License-Identifier: Apache-2.0
"""Eight threads exchange at once, by every way, and each sees only what is its own."""

import sys
from collections.abc import Iterator

import dpctl
import numpy as np
import pytest
import tvm_ffi
from c_exchange_api import ExchangeAPI
from capsules import NEWEST, ForeignArray, ForeignTensor, OldArray, call_deleter, consume
from memory_sources import address_of, allocate, new_queue, owned
from threads_at_once import THREADS, at_once
from usm_dlpack import DLPackTensor, empty, from_dlpack, validate


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def test_threads_exchange_their_own_by_every_way(queue):
    api = ExchangeAPI(DLPackTensor)

    def work(number):
        memory = allocate("shared", 256, queue)
        own = np.full(256, number, np.uint8)
        memory.copy_from_host(own)
        address = address_of(memory)
        own_queue = new_queue(in_order=True)
        # Level Zero's adapter (DPC++ 2026.2) hangs if one thread waits for a queue while another
        # orders that queue behind an event.
        is_level_zero = queue.backend == dpctl.backend_type.level_zero
        consumer = new_queue() if is_level_zero else queue
        foreign = ForeignTensor(address)
        for turn in range(100):
            tensor, gone = owned(memory, queue=own_queue)
            assert from_dlpack(tensor).data == address
            assert from_dlpack(OldArray(tensor.__dlpack__(max_version=NEWEST))).data == address
            assert validate(tensor).base == address
            assert api.take(api.export(tensor)).data == address
            assert from_dlpack(tvm_ffi.from_dlpack(tensor)).data == address
            new_type = type("Producer", (ForeignArray,), {})
            assert from_dlpack(new_type(foreign)).data == address
            if turn % 4 == number % 4:
                tensor.__dlpack__(stream=consumer)
                assert from_dlpack(tensor, device=consumer).data == address
                there = from_dlpack(own, device=(14, 0), usm_type="device")
                made = empty(64, device=queue)
                made.copy_from(tensor)
                for copied in (made, from_dlpack(tensor, copy=True), from_dlpack(there, copy=True)):
                    assert copied.numpy().tobytes() == own.tobytes()
                assert np.from_dlpack(tensor, device="cpu").tobytes() == own.tobytes()
            call_deleter(consume(tensor.__dlpack__()))
            del tensor
            assert gone() is None
        return foreign.deletions

    assert at_once(work) == [100] * THREADS


FIRST_USE = """
import sys
import dpctl, dpctl.memory, numpy as np, tvm_ffi, usm_dlpack
from c_exchange_api import ExchangeAPI
from threads_at_once import at_once
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate

sys.setswitchinterval(1e-6)
host = np.arange(12, dtype=np.float32)

def make():
    return to_dlpack_tensor(dpctl.memory.MemoryUSMShared(48), dtype="f4")

firsts = [
    lambda: usm_dlpack.root_device(0).name,
    lambda: usm_dlpack.device_id(dpctl.SyclDevice()),
    lambda: make().numpy(),
    lambda: from_dlpack(host, device=(14, 0)).numpy(),
    lambda: ExchangeAPI(DLPackTensor).stream(0),
    lambda: from_dlpack(tvm_ffi.from_dlpack(make())).dtype,
    lambda: validate(make().__dlpack__()).root_device,
    lambda: make().__dlpack__(copy=True, stream=dpctl.SyclQueue()),
]
results = at_once(lambda number: firsts[number]())
assert not any(isinstance(result, BaseException) for result in results), results
assert results[3].tolist() == host.tolist()
assert results[1] == 0
"""


def test_the_first_use_of_everything_may_be_at_once(succeed):
    for _ in range(2):
        assert succeed(FIRST_USE) == ""
