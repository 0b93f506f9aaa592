# SPDX-License-Identifier: Apache-2.0
"""The C exchange API: our five functions as C calls them, and other types' tables as we do."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import threading
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from c_exchange_api import DLPackExchangeAPI, ExchangeAPI
from capsules import (
    IS_COPIED,
    IS_SUBBYTE_TYPE_PADDED,
    READ_ONLY,
    ForeignArray,
    ForeignTensor,
    call_deleter,
    integers,
    new_capsule,
)
from dpctl import memory as dpctl_memory
from memory_sources import UNPOOLED, TypedArray, address_of, new_queue
from pending_work import VALUES, ZEROS, PendingFill, Reader
from refusals import refused, wrong_argument
from usm_dlpack import (
    DLPackTensor,
    explain,
    from_dlpack,
    root_device,
    to_dlpack_tensor,
    validate,
)

NEWEST = (1, 3)


@pytest.fixture(scope="session")
def api() -> ExchangeAPI:
    """Return our table."""
    return ExchangeAPI(DLPackTensor)


@pytest.fixture
def tensor(memory: Any, queue: Any) -> DLPackTensor:
    """Return (3, 4) float32 in device USM, which knows a queue."""
    return to_dlpack_tensor(memory, shape=(3, 4), dtype="f4", queue=queue)


@pytest.fixture
def read_only(memory: Any) -> DLPackTensor:
    """Return a tensor that must not be written."""
    return to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))


@pytest.fixture
def padded(memory: Any) -> DLPackTensor:
    """Return a tensor of 4-bit elements in a byte each."""
    return to_dlpack_tensor(memory, shape=(48,), dtype=np.dtype(ml_dtypes.float4_e2m1fn))


# --- the table


def test_the_table_is_of_the_newest_version_and_complete(api: ExchangeAPI) -> None:
    assert (api.table.major, api.table.minor) == NEWEST
    assert api.table.prev_api is None
    for name, _ in DLPackExchangeAPI._fields_[3:]:
        assert ctypes.cast(getattr(api.table, name), ctypes.c_void_p).value
    again = ExchangeAPI(DLPackTensor)
    assert ctypes.addressof(again.table) == ctypes.addressof(api.table)


# --- export and borrow


def test_an_export_describes_the_tensor_and_keeps_it_alive(api: ExchangeAPI, memory: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    managed = api.export(to_dlpack_tensor(owner, shape=(2, 3), strides=(1, 4), dtype="f4"))
    del owner
    gc.collect()
    inside = managed.dl_tensor
    assert gone() is not None
    assert ((managed.major, managed.minor), managed.flags) == (NEWEST, 0)
    assert (inside.data, inside.byte_offset) == (address_of(memory), 0)
    assert (inside.device_type, inside.device_id) == (14, 0)
    assert (integers(inside.shape, 2), integers(inside.strides, 2)) == ((2, 3), (1, 4))
    call_deleter(managed)
    gc.collect()
    assert gone() is None


def test_what_an_export_says_of_a_tensor_and_a_borrow_cannot_is_not_lent(
    api: ExchangeAPI, read_only: DLPackTensor, padded: DLPackTensor
) -> None:
    refusals = [
        (read_only, READ_ONLY, "read_only", "read-only"),
        (padded, IS_SUBBYTE_TYPE_PADDED, "dtype_unsupported", "padded"),
    ]
    for tensor, flag, code, found in refusals:
        managed = api.export(tensor)
        assert managed.flags == flag
        call_deleter(managed)
        with refused(code, "flags", found=found):
            api.borrow(tensor)


def test_a_borrow_describes_the_tensor_and_takes_no_reference(
    api: ExchangeAPI, tensor: DLPackTensor
) -> None:
    before = sys.getrefcount(tensor)
    lent = api.borrow(tensor)
    assert sys.getrefcount(tensor) == before
    assert (lent.data, lent.byte_offset, lent.ndim) == (tensor.data, 0, 2)
    assert (lent.device_type, lent.device_id) == (14, 0)
    assert (lent.code, lent.bits, lent.lanes) == (2, 32, 1)
    assert (integers(lent.shape, 2), integers(lent.strides, 2)) == ((3, 4), (4, 1))


class Imitation:
    """An object of another type."""

    __dlpack_c_exchange_api__ = DLPackTensor.__dlpack_c_exchange_api__  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [None, DLPackTensor, Imitation()])
def test_an_object_of_another_type_is_a_type_error(api: ExchangeAPI, wrong: Any) -> None:
    found = f"found an object of type {type(wrong).__name__}"
    with wrong_argument(TypeError, "py_object", found):
        api.export(wrong)
    with wrong_argument(TypeError, "py_object", found):
        api.borrow(wrong)


def test_a_tensor_that_was_never_made_is_refused(api: ExchangeAPI) -> None:
    raw = DLPackTensor.__new__(DLPackTensor)
    for function in (api.export, api.borrow):
        with refused("tensor_released", "data", found="one that was not initialised"):
            function(raw)


# --- import


def test_a_managed_tensor_is_taken_and_freed_once(api: ExchangeAPI, memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    made = api.take(foreign.managed)
    assert type(made) is DLPackTensor
    assert (made.data, made.shape, made.strides) == (address_of(memory), (3, 4), (4, 1))
    assert made.sycl_queue is None
    assert foreign.deletions == 0
    del made
    gc.collect()
    assert foreign.deletions == 1


def test_flags_of_a_managed_tensor_are_kept(api: ExchangeAPI, memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.flags = READ_ONLY | IS_COPIED
    made = api.take(foreign.managed)
    assert made.readonly
    managed = api.export(made)
    assert managed.flags == READ_ONLY
    call_deleter(managed)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("device_type", 1, "device_type_unsupported"),
        ("data", 64, "pointer_unknown"),
        ("lanes", 4, "out_of_bounds"),
        ("major", 2, "version_unsupported"),
    ],
)
def test_a_refused_managed_tensor_is_stolen_all_the_same_and_freed_once(
    api: ExchangeAPI, unpooled: Any, field: str, value: Any, code: str
) -> None:
    foreign = ForeignTensor(address_of(unpooled))
    if field == "major":
        foreign.managed.major, foreign.tensor.ndim = 2, -7  # which is not read
    else:
        setattr(foreign.tensor, field, value)
    with pytest.raises(BufferError) as caught:
        api.take(foreign.managed)
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert foreign.deletions == 1


def test_a_null_deleter_is_left_uncalled(api: ExchangeAPI, memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.deleter = None
    assert api.take(foreign.managed).shape == (3, 4)
    foreign.tensor.ndim = -1
    with refused("ndim_out_of_range", "ndim"):
        api.take(foreign.managed)
    assert foreign.deletions == 0


# --- null


def call(api: ExchangeAPI, name: str, *arguments: int | None) -> int:
    """Call a function with addresses, or null; it raises what it has set as the Python error."""
    function = getattr(api.table, name)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    types = [ctypes.c_void_p] * len(arguments)
    if name == "current_work_stream":
        types[:2] = [ctypes.c_int32, ctypes.c_int32]
    return int(ctypes.PYFUNCTYPE(ctypes.c_int, *types)(address)(*arguments))


NO_PLACE = [
    ("managed_tensor_from_py_object_no_sync", "out"),
    ("dltensor_from_py_object_no_sync", "out"),
    ("managed_tensor_from_py_object_no_sync", "py_object"),
    ("dltensor_from_py_object_no_sync", "py_object"),
]


@pytest.mark.parametrize(("name", "null"), NO_PLACE)
def test_null_is_no_object_and_no_place_for_its_tensor(
    api: ExchangeAPI, tensor: DLPackTensor, name: str, null: str
) -> None:
    before = sys.getrefcount(tensor)
    room = (ctypes.c_char * 256)()
    arguments = {"py_object": id(tensor), "out": ctypes.addressof(room)} | {null: None}
    with wrong_argument(TypeError if null == "py_object" else ValueError, null, "found null"):
        call(api, name, *arguments.values())
    assert sys.getrefcount(tensor) == before
    assert bytes(room) == bytes(256)


def test_null_is_no_place_for_a_stream_and_no_managed_tensor(api: ExchangeAPI) -> None:
    for device_type in (1, 14):
        with wrong_argument(ValueError, "out", "found null"):
            call(api, "current_work_stream", device_type, 0, None)
    out = ctypes.c_void_p()
    with wrong_argument(ValueError, "tensor", "found null"):
        api.table.managed_tensor_to_py_object_no_sync(None, out)
    assert out.value is None


def test_no_place_for_an_object_is_a_value_error_and_the_tensor_is_freed(
    api: ExchangeAPI, memory: Any
) -> None:
    foreign = ForeignTensor(address_of(memory))
    with wrong_argument(ValueError, "out", "found null"):
        call(api, "managed_tensor_to_py_object_no_sync", ctypes.addressof(foreign.managed), None)
    assert foreign.deletions == 1


# --- the queue to work on


def test_the_work_stream_is_one_queue_of_a_root_device(
    api: ExchangeAPI, tensor: DLPackTensor
) -> None:
    address = api.stream(0)
    assert address == api.stream(0)
    tensor.__dlpack__(stream=address)  # which takes the address of a queue
    assert api.stream(0, device_type=1) is None  # on the host
    with refused("device_type_unsupported", "device.device_type"):
        api.stream(0, 2)
    for number in (1, -1):
        with refused("device_id_out_of_range", "device.device_id", found=str(number)):
            api.stream(number)


# --- the allocator


def prototype_of(shape: tuple[int, ...], dtype: tuple[int, int, int] = (2, 32, 1)) -> Any:
    """Return a prototype, of which all that does not count is nonsense."""
    prototype = ForeignTensor(3, shape=shape, strides=[2**62] * len(shape), dtype=dtype).tensor
    prototype.byte_offset = 5
    return prototype


@pytest.mark.parametrize(
    ("shape", "dtype", "nbytes"),
    [
        ((3, 4), (2, 32, 1), 48),
        ((7,), (0, 8, 4), 28),
        ((9,), (17, 4, 1), 5),
        ((1 << 20,), (1, 8, 1), 1 << 20),
        ((4, 0, 3), (2, 32, 1), 0),
    ],
)
def test_the_allocator_gives_new_memory_like_a_prototype(
    api: ExchangeAPI, shape: tuple[int, ...], dtype: tuple[int, int, int], nbytes: int
) -> None:
    managed = api.allocate(prototype_of(shape, dtype))
    inside = managed.dl_tensor
    assert ((managed.major, managed.minor), managed.flags) == (NEWEST, 0)
    assert inside.data % 256 == 0
    assert inside.data
    assert inside.byte_offset == 0
    assert (inside.code, inside.bits, inside.lanes) == dtype
    assert integers(inside.shape, inside.ndim) == shape
    tensor = api.take(managed)
    assert (tensor.device, tensor.nbytes) == ((14, 0), nbytes)
    if nbytes:
        assert tensor.usm_type == "device"
        assert validate(tensor).base == tensor.data
        assert validate(tensor).size >= nbytes


def test_the_allocator_refuses_null_and_also_for_who_hears_no_error(api: ExchangeAPI) -> None:
    prototype = prototype_of((3,))
    out = ctypes.c_void_p(1)
    address = ctypes.addressof(out)
    name = "managed_tensor_allocator"
    assert call(api, name, ctypes.addressof(prototype), None, None, None) == -1
    assert call(api, name, None, address, None, None) == -1
    assert out.value is None
    prototype.device_type = 1
    out.value = 1
    assert call(api, name, ctypes.addressof(prototype), address, None, None) == -1
    assert out.value is None


def test_memory_of_the_allocator_is_freed_by_the_deleter(api: ExchangeAPI) -> None:
    managed = api.allocate(prototype_of((UNPOOLED,)))
    there = ForeignTensor(managed.dl_tensor.data)
    assert validate(there.capsule()).usm_type == "device"
    call_deleter(managed)
    with refused("pointer_unknown", "data", binding=True):
        validate(there.capsule())


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("device_type", 1, "device.device_type: expected kDLOneAPI (14), found kDLCPU (1)"),
        ("device_id", 9, "device.device_id: expected from 0 to 0"),
        ("shape", None, "shape: "),
        ("shape", (-1, 4), "shape[0]: "),
        ("shape", (2**62, 2**62), "strides: "),
        ("lanes", 0, "dtype: "),
    ],
)
def test_a_prototype_that_cannot_be_is_an_error_of_the_caller(
    api: ExchangeAPI, field: str, value: Any, part: str
) -> None:
    prototype = prototype_of((3, 4))
    spoiled = (ctypes.c_int64 * 2)(*value) if isinstance(value, tuple) else value
    setattr(prototype, field, spoiled)
    with pytest.raises(BufferError, match=f"^BufferError: {re.escape(part)}"):
        api.allocate(prototype)


def test_a_prototype_that_there_is_no_memory_for_is_a_memory_error(api: ExchangeAPI) -> None:
    with pytest.raises(BufferError, match=r"^MemoryError: data: expected memory for"):
        api.allocate(prototype_of((2**45,)))


# --- a consumer: apache-tvm-ffi


@pytest.mark.parametrize("dtype", ["?", "c16", "bfloat16", (2, 32, 4)], ids=str)
def test_tvm_ffi_takes_dtypes_by_the_table(memory: Any, dtype: Any) -> None:
    tensor = to_dlpack_tensor(memory, dtype=dtype)
    taken = tvm_ffi.from_dlpack(tensor)
    assert (taken.data_ptr(), tuple(taken.shape)) == (tensor.data, tensor.shape)
    back = from_dlpack(taken)
    assert (back.data, back.dtype, back.strides) == (tensor.data, tensor.dtype, tensor.strides)


def test_tvm_ffi_takes_a_tensor_as_the_argument_of_a_function(tensor: DLPackTensor) -> None:
    seen: list[Any] = []
    before = sys.getrefcount(tensor)
    function = tvm_ffi.convert(lambda x: seen.append((x.data_ptr(), tuple(x.shape), x.strides)))
    function(tensor)
    assert seen == [(tensor.data, (3, 4), (4, 1))]
    del function
    gc.collect()
    assert sys.getrefcount(tensor) == before


# --- tables of other types


class Table:
    """The table of a type that a test makes; it counts, and answers what the test sets."""

    def __init__(self, foreign: ForeignTensor) -> None:
        self.foreign = foreign
        self.status = 0
        self.gives = True
        self.stream: int | None = None
        self.stream_status = 0
        self.calls: list[str] = []
        types = {name: kind for name, kind, *_ in DLPackExchangeAPI._fields_}
        self.struct = DLPackExchangeAPI()
        self.struct.major, self.struct.minor = NEWEST
        self.struct.managed_tensor_from_py_object_no_sync = types[
            "managed_tensor_from_py_object_no_sync"
        ](self._export)
        self.struct.current_work_stream = types["current_work_stream"](self._stream)

    def _export(self, _: Any, out: Any) -> int:
        self.calls.append("export")
        if self.gives:
            out[0] = ctypes.pointer(self.foreign.managed)
        return self.status

    def _stream(self, device_type: int, device_id: int, out: Any) -> int:
        self.calls.append(f"stream {device_type} {device_id}")
        out[0] = self.stream
        return self.stream_status

    def capsule(self) -> Any:
        """Return the capsule for the type."""
        return new_capsule(ctypes.addressof(self.struct), b"dlpack_exchange_api")


def array_of(table: Table, capsule: Any = None) -> Any:
    """Return an object of a new type that offers a table, and `__dlpack__` besides."""
    kind = type(
        "Offering",
        (ForeignArray,),
        {"__dlpack_c_exchange_api__": table.capsule() if capsule is None else capsule},
    )
    return kind(table.foreign)


@pytest.fixture
def table(memory: Any) -> Table:
    """Return a table that exports (3, 4) float32."""
    return Table(ForeignTensor(address_of(memory)))


def test_a_table_is_used_instead_of_capsules(table: Table, memory: Any) -> None:
    array = array_of(table)
    made = from_dlpack(array)
    assert (made.data, made.sycl_queue) == (address_of(memory), None)
    assert table.calls == ["export", "stream 14 0"]
    assert validate(array).data == address_of(memory)
    assert (array.asked, table.foreign.deletions) == ([], 1)
    del made
    gc.collect()
    assert table.foreign.deletions == 2


def test_the_work_stream_is_the_queue_of_the_tensor(table: Table) -> None:
    queue = new_queue(root_device(0))
    table.stream = queue.addressof_ref()
    made = from_dlpack(array_of(table))
    assert made.sycl_queue == queue
    asked = new_queue(root_device(0))
    assert from_dlpack(array_of(table), device=asked).sycl_queue == asked


@pytest.mark.parametrize(
    "to_in_order", [True, False], ids=["to in order", "to out of order behind a kernel"]
)
@pytest.mark.parametrize("in_order", [True, False])
def test_an_import_for_a_queue_is_ordered_behind_the_work_stream(
    in_order: bool, to_in_order: bool
) -> None:
    device = root_device(0)
    producer = new_queue(device, in_order=in_order)
    consumer = new_queue(device, in_order=to_in_order)
    pending = PendingFill(producer)
    try:
        foreign = ForeignTensor(address_of(pending.memory), shape=(12,), dtype=(0, 32, 1))
        table = Table(foreign)
        table.stream = producer.addressof_ref()
        made = from_dlpack(array_of(table), device=consumer)
        assert pending.is_pending
        reader = Reader(consumer, pending.memory)
        assert reader.is_held
        pending.open()
        assert reader.seen == VALUES
        assert made.numpy().tolist() == VALUES
    finally:
        pending.end()


def work_stream(api: ExchangeAPI) -> Any:
    """Return the queue that consumers of our tensors are to work on."""
    address = api.stream(0)
    assert address is not None
    capsule = new_capsule(address, b"SyclQueueRef")
    return to_dlpack_tensor(dpctl_memory.MemoryUSMHost(4), queue=capsule).sycl_queue


def test_who_is_given_an_export_works_on_the_queue_of_the_tensor(memory: Any) -> None:
    api = ExchangeAPI(DLPackTensor)
    producer = new_queue(root_device(0))
    managed = api.export(to_dlpack_tensor(memory, queue=producer))
    assert work_stream(api) == producer
    call_deleter(managed)


# The work stream does not wait for host tasks: `queue::memcpy` of an out-of-order queue overtakes
# work behind one, and a kernel does not (DPC++ 2026.2).
STREAM_ORDERS = ["out of order, by kernels", "in order"]
AFTERWARDS = pytest.mark.parametrize("host_task", [False, True], ids=["no more", "host task"])


def borrow_pending(api: ExchangeAPI, pending: PendingFill) -> None:
    """Borrow a tensor whose queue works on it."""
    api.borrow(to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue))


@AFTERWARDS
def test_an_out_of_order_work_stream_is_behind_its_own_work_by_a_kernel(
    host_task: bool, start: Any
) -> None:
    api = ExchangeAPI(DLPackTensor)
    pending = start(new_queue(root_device(0)))
    if host_task:
        pending.keep_alive()
    borrow_pending(api, pending)
    stream = work_stream(api)
    assert stream == pending.queue
    reader = Reader(stream, pending.memory)
    assert reader.is_held
    assert pending.is_pending
    pending.open()
    assert reader.seen == VALUES


def test_an_out_of_order_queue_that_is_no_work_stream_is_not_behind_its_work(start: Any) -> None:
    pending = start(new_queue(root_device(0)))
    assert Reader(pending.queue, pending.memory).seen == ZEROS
    assert pending.is_pending


@pytest.mark.parametrize("second", [False, True], ids=STREAM_ORDERS)
@AFTERWARDS
def test_the_work_stream_is_behind_the_work_of_all_tensors_that_were_borrowed_for_it(
    host_task: bool, second: bool, start: Any
) -> None:
    api = ExchangeAPI(DLPackTensor)
    api.stream(0)
    all_pending = [
        start(new_queue(root_device(0), in_order=True)),
        start(new_queue(root_device(0))),
        start(new_queue(root_device(0), in_order=second)),
    ]
    for pending in all_pending:
        if host_task:
            pending.keep_alive()
        borrow_pending(api, pending)
    stream = work_stream(api)
    assert stream == all_pending[-1].queue
    readers = [Reader(stream, pending.memory) for pending in all_pending]
    for pending, reader in zip(reversed(all_pending), reversed(readers), strict=True):
        assert reader.is_held  # by those that are opened later
        pending.open()
    assert [reader.seen for reader in readers] == [VALUES] * 3


def test_the_work_stream_is_behind_no_tensor_of_an_earlier_question(start: Any) -> None:
    api = ExchangeAPI(DLPackTensor)
    later, earlier = (
        start(new_queue(root_device(0), in_order=True)),
        start(new_queue(root_device(0), in_order=True)),
    )
    borrow_pending(api, earlier)
    api.stream(0)
    borrow_pending(api, later)
    reader = Reader(work_stream(api), earlier.memory)
    later.open()
    assert reader.seen == ZEROS
    assert earlier.is_pending


@pytest.mark.parametrize("look", [validate, explain, from_dlpack], ids=lambda f: f.__name__)
def test_who_only_looks_at_a_tensor_leaves_the_work_stream(memory: Any, look: Any) -> None:
    api = ExchangeAPI(DLPackTensor)
    known, other = new_queue(root_device(0)), new_queue(root_device(0))
    borrowed = to_dlpack_tensor(memory, queue=known)
    api.borrow(borrowed)
    look(to_dlpack_tensor(memory, queue=other))
    assert work_stream(api) == known


def test_the_queue_of_another_context_is_no_work_stream_on_opencl(
    foreign_queue: Any, memory: Any
) -> None:
    """On Level Zero an array that says such a queue is refused."""
    api = ExchangeAPI(DLPackTensor)
    known = new_queue(root_device(0))
    api.borrow(to_dlpack_tensor(memory, queue=known))

    class Working(ForeignArray):
        sycl_queue = foreign_queue

    api.borrow(from_dlpack(Working(ForeignTensor(address_of(memory)))))
    assert work_stream(api) == known


def test_each_thread_has_a_work_stream_of_its_own(memory: Any) -> None:
    api = ExchangeAPI(DLPackTensor)
    mine, other = new_queue(root_device(0)), new_queue(root_device(0))
    api.borrow(to_dlpack_tensor(memory, queue=mine))
    seen = []

    def work() -> None:
        api.borrow(to_dlpack_tensor(memory, queue=other))
        seen.append(work_stream(api))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (seen, work_stream(api)) == ([other], mine)


def test_a_refused_tensor_of_a_table_is_freed_once(table: Table) -> None:
    table.foreign.tensor.device_id = 99
    with pytest.raises(BufferError):
        from_dlpack(array_of(table))
    assert table.foreign.deletions == 1


@pytest.mark.parametrize("copy", [True, False])
def test_copy_is_kept_with_a_table(table: Table, copy: bool, memory: Any) -> None:
    made = from_dlpack(array_of(table), copy=copy)
    assert (made.data == address_of(memory)) is not copy
    table.foreign.managed.flags = IS_COPIED
    if copy:
        assert from_dlpack(array_of(table), copy=True).data == address_of(memory)
    else:
        with refused("copy_needed", "copy", found="a copy that it made"):
            from_dlpack(array_of(table), copy=False)


def test_a_host_array_of_a_table_is_copied_to_a_device(table: Table) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    table.foreign.tensor.data, table.foreign.tensor.device_type = values.ctypes.data, 1
    with refused("device_type_unsupported", "device.device_type", found="kDLCPU (1)"):
        from_dlpack(array_of(table))
    made = from_dlpack(array_of(table), device=(14, 0))
    assert np.array_equal(made.numpy(), values)
    assert table.foreign.deletions == 2
    assert "stream 1 0" not in table.calls


def test_a_table_that_gives_nothing_without_an_error_is_refused(table: Table) -> None:
    table.gives = False
    for status in (0, -1):
        table.status = status
        with refused("capsule_unusable", "__dlpack_c_exchange_api__", remedy="the producer"):
            from_dlpack(array_of(table))
    assert table.foreign.deletions == 0
    table.gives, table.status, table.stream_status = True, 0, -1
    with refused("capsule_unusable", "__dlpack_c_exchange_api__", remedy="the producer"):
        from_dlpack(array_of(table))
    assert table.foreign.deletions == 1


def test_an_error_of_a_table_reaches_the_caller(memory: Any) -> None:
    # Our own table at another type: it refuses the object, and sets the error.
    kind = type("Other", (ForeignArray,), {"__dlpack_c_exchange_api__": api_capsule()})
    with wrong_argument(TypeError, "py_object", "of type Other"):
        from_dlpack(kind(ForeignTensor(address_of(memory))))


def api_capsule() -> Any:
    """Return the capsule of our own type."""
    return DLPackTensor.__dlpack_c_exchange_api__  # type: ignore[attr-defined]


def test_an_older_table_behind_a_newer_one_is_used(table: Table) -> None:
    newest = DLPackExchangeAPI()
    newest.major, newest.prev_api = 3, ctypes.addressof(table.struct)
    newer = DLPackExchangeAPI()
    newer.major, newer.prev_api = 2, ctypes.addressof(newest)
    capsule = new_capsule(ctypes.addressof(newer), b"dlpack_exchange_api")
    array = array_of(table, capsule)
    assert from_dlpack(array).shape == (3, 4)
    assert (table.calls[0], array.asked) == ("export", [])


def falling_back(name: str, table: Table) -> Any:
    """Return what is no usable table, by its name."""
    if name == "no capsule":
        return 5
    if name == "another name":
        return new_capsule(ctypes.addressof(table.struct), b"dltensor")
    spoiled = DLPackExchangeAPI.from_buffer_copy(table.struct)
    if name == "a newer version alone":
        spoiled.major = 2
    else:
        # A function pointer is set to null by its bytes.
        field = getattr(DLPackExchangeAPI, name)
        ctypes.memset(ctypes.addressof(spoiled) + field.offset, 0, field.size)
    table.spoiled = spoiled  # type: ignore[attr-defined]
    return new_capsule(ctypes.addressof(spoiled), b"dlpack_exchange_api")


@pytest.mark.parametrize(
    "name",
    [
        "no capsule",
        "a newer version alone",
        "managed_tensor_from_py_object_no_sync",
        "current_work_stream",
    ],
)
def test_without_a_usable_table_the_capsule_is_asked_for(
    name: str, table: Table, memory: Any
) -> None:
    array = array_of(table, falling_back(name, table))
    assert from_dlpack(array).data == address_of(memory)
    assert (table.calls, array.asked) == ([], [{"max_version": NEWEST}])


def test_the_table_is_looked_up_on_the_type(table: Table) -> None:
    array = ForeignArray(table.foreign)
    array.__dlpack_c_exchange_api__ = table.capsule()  # type: ignore[attr-defined]
    from_dlpack(array)
    assert (table.calls, array.asked) == ([], [{"max_version": NEWEST}])


def test_a_class_that_overrides_dlpack_is_asked_by_it(table: Table) -> None:
    class Overriding(type(array_of(table))):  # type: ignore[misc]
        def __dlpack__(self, **keywords: Any) -> Any:
            raise BufferError("the class says no")

    class Below(Overriding):
        pass

    for kind in (Overriding, Below):
        with pytest.raises(BufferError, match="the class says no"):
            from_dlpack(kind(table.foreign))
    assert table.calls == []


@pytest.mark.parametrize("offers", [False, True], ids=["capsules", "table"])
@pytest.mark.parametrize(("bit", "found"), [("is_conj", "conjugates"), ("is_neg", "negatives")])
def test_elements_that_are_not_those_in_memory_are_refused(
    table: Table, offers: bool, bit: str, found: str
) -> None:
    """As PyTorch's, which may be computed when they are read."""
    attributes = {"is_conj": lambda self: False, "is_neg": lambda self: False}
    attributes |= {"__dlpack_c_exchange_api__": table.capsule()} if offers else {}
    assert from_dlpack(type("Array", (ForeignArray,), attributes)(table.foreign)).shape == (3, 4)
    table.calls.clear()
    lazy = type("Lazy", (ForeignArray,), attributes | {bit: lambda self: True})(table.foreign)
    for look in (from_dlpack, validate):
        with refused("copy_needed", "x", found=found, remedy=f"x.resolve_{bit[3:]}()"):
            look(lazy)
    assert (table.calls, lazy.asked) == ([], [])


def test_an_array_that_takes_part_in_a_gradient_is_asked_by_dlpack(table: Table) -> None:
    kind = type(
        "Tracked",
        (ForeignArray,),
        {"__dlpack_c_exchange_api__": table.capsule(), "requires_grad": False},
    )
    array = kind(table.foreign)
    from_dlpack(array)
    assert (table.calls, array.asked) == (["export", "stream 14 0"], [])
    table.calls.clear()
    array.requires_grad = True
    from_dlpack(array)
    assert (table.calls, array.asked) == ([], [{"max_version": NEWEST}])
