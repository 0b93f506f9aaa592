# SPDX-License-Identifier: Apache-2.0
"""The C exchange API: our five functions as C calls them, and other types' tables as we do."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
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
    DLTensor,
    ForeignArray,
    ForeignTensor,
    call_deleter,
    integers,
    new_capsule,
)
from dpctl import memory as dpctl_memory
from memory_sources import UNPOOLED, TypedArray, address_of, allocate, new_queue
from pending_work import VALUES, ZEROS, PendingFill, Reader
from refusals import refused, wrong_argument
from threads_at_once import THREADS, at_once
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


def test_the_table_stands_at_the_type_and_stays_where_it_is(
    api: ExchangeAPI, tensor: DLPackTensor
) -> None:
    again = ExchangeAPI(type(tensor))
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


def test_an_export_says_what_a_borrow_cannot(
    api: ExchangeAPI, read_only: DLPackTensor, padded: DLPackTensor
) -> None:
    for tensor, flag in ((read_only, READ_ONLY), (padded, IS_SUBBYTE_TYPE_PADDED)):
        managed = api.export(tensor)
        assert managed.flags == flag
        call_deleter(managed)


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


def test_what_a_bare_tensor_cannot_say_is_not_lent(
    api: ExchangeAPI, read_only: DLPackTensor, padded: DLPackTensor
) -> None:
    with refused("read_only", "flags", found="read-only"):
        api.borrow(read_only)
    with refused("dtype_unsupported", "flags", found="padded"):
        api.borrow(padded)


def test_a_scalar_and_an_empty_tensor_are_exported_and_lent(api: ExchangeAPI, memory: Any) -> None:
    for shape in ((), (0, 4)):
        tensor = to_dlpack_tensor(memory, shape=shape, dtype="f4")
        managed = api.export(tensor)
        for inside in (managed.dl_tensor, api.borrow(tensor)):
            assert (inside.data, inside.ndim) == (address_of(memory), len(shape))
            assert integers(inside.shape, inside.ndim) == shape
        call_deleter(managed)


class Imitation:
    """An object of another type."""

    __dlpack_c_exchange_api__ = DLPackTensor.__dlpack_c_exchange_api__  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [None, 5, object(), DLPackTensor, Imitation(), np.zeros(2)])
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


def test_no_object_is_a_type_error(api: ExchangeAPI) -> None:
    functions = (
        api.table.managed_tensor_from_py_object_no_sync,
        api.table.dltensor_from_py_object_no_sync,
    )
    for function in functions:
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)
        room = (ctypes.c_char * 256)()
        with wrong_argument(TypeError, "py_object", "found null"):
            call(None, ctypes.addressof(room))
        assert bytes(room) == bytes(256)


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
        ("device_id", 99, "device_id_out_of_range"),
        ("data", 64, "pointer_unknown"),
        ("data", None, "data_null"),
        ("ndim", -1, "ndim_out_of_range"),
        ("shape", None, "shape_null"),
        ("lanes", 4, "out_of_bounds"),
        ("byte_offset", 2, "data_misaligned"),
    ],
)
def test_a_refused_managed_tensor_is_stolen_all_the_same_and_freed_once(
    api: ExchangeAPI, unpooled: Any, field: str, value: Any, code: str
) -> None:
    foreign = ForeignTensor(address_of(unpooled))
    setattr(foreign.tensor, field, value)
    with pytest.raises(BufferError) as caught:
        api.take(foreign.managed)
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert foreign.deletions == 1


def test_another_major_version_is_freed_unread(api: ExchangeAPI, memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.major, foreign.tensor.ndim = 2, -7
    with refused("version_unsupported", "version.major", found="2"):
        api.take(foreign.managed)
    assert foreign.deletions == 1


def test_a_null_deleter_is_left_uncalled(api: ExchangeAPI, memory: Any) -> None:
    for field, value in (("ndim", 2), ("ndim", -1)):
        foreign = ForeignTensor(address_of(memory))
        foreign.managed.deleter = None
        setattr(foreign.tensor, field, value)
        if value > 0:
            assert api.take(foreign.managed).shape == (3, 4)
        else:
            with refused("ndim_out_of_range", "ndim"):
                api.take(foreign.managed)
        assert foreign.deletions == 0


def test_no_managed_tensor_is_a_value_error(api: ExchangeAPI) -> None:
    out = ctypes.c_void_p()
    with wrong_argument(ValueError, "tensor", "found null"):
        api.table.managed_tensor_to_py_object_no_sync(None, out)
    assert out.value is None


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


@pytest.mark.parametrize(
    "name", ["managed_tensor_from_py_object_no_sync", "dltensor_from_py_object_no_sync"]
)
def test_no_place_for_what_is_exported_is_a_value_error(
    api: ExchangeAPI, tensor: DLPackTensor, name: str
) -> None:
    before = sys.getrefcount(tensor)
    with wrong_argument(ValueError, "out", "found null"):
        call(api, name, id(tensor), None)
    assert sys.getrefcount(tensor) == before


@pytest.mark.parametrize("device_type", [1, 14])
def test_no_place_for_a_stream_is_a_value_error(api: ExchangeAPI, device_type: int) -> None:
    with wrong_argument(ValueError, "out", "found null"):
        call(api, "current_work_stream", device_type, 0, None)


def test_no_place_for_an_object_is_a_value_error_and_the_tensor_is_freed(
    api: ExchangeAPI, memory: Any
) -> None:
    foreign = ForeignTensor(address_of(memory))
    with wrong_argument(ValueError, "out", "found null"):
        call(api, "managed_tensor_to_py_object_no_sync", ctypes.addressof(foreign.managed), None)
    assert foreign.deletions == 1


@pytest.mark.parametrize("hears", [True, False])
@pytest.mark.parametrize("null", ["prototype", "out"])
def test_the_allocator_refuses_null(api: ExchangeAPI, null: str, hears: bool) -> None:
    errors: list[tuple[bytes, bytes]] = []
    callback = api.table.managed_tensor_allocator.argtypes[3]
    listener = callback(lambda _, kind, message: errors.append((kind, message)))
    out = ctypes.c_void_p(1)
    arguments = {
        "prototype": ctypes.addressof(prototype_of((3,))),
        "out": ctypes.addressof(out),
        null: None,
    }
    heard = ctypes.cast(listener, ctypes.c_void_p).value if hears else None
    status = call(
        api, "managed_tensor_allocator", arguments["prototype"], arguments["out"], None, heard
    )
    assert status == -1
    if null == "prototype":
        assert out.value is None
    if hears:
        ((kind, message),) = errors
        assert kind == b"ValueError"
        assert message.startswith(f"{null}: expected ".encode())
        assert b", found null; " in message


# --- the queue to work on


def test_the_work_stream_is_one_queue_of_the_device(api: ExchangeAPI, tensor: DLPackTensor) -> None:
    address = api.stream(0)
    assert address == api.stream(0)
    # It is the address of a queue, as `stream` takes one.
    tensor.__dlpack__(stream=address)


def test_the_host_has_no_work_stream(api: ExchangeAPI) -> None:
    assert api.stream(0, device_type=1) is None


@pytest.mark.parametrize("device_type", [0, 2, 7, 15, -1])
def test_another_devices_work_stream_is_refused(api: ExchangeAPI, device_type: int) -> None:
    with refused("device_type_unsupported", "device.device_type"):
        api.stream(0, device_type)


@pytest.mark.parametrize("number", [1, -1, 2**31 - 1])
def test_the_work_stream_of_no_device_is_refused(api: ExchangeAPI, number: int) -> None:
    with refused("device_id_out_of_range", "device.device_id", found=str(number)):
        api.stream(number)


# --- the allocator


class Allocation:
    """What the allocator answers for a prototype: a managed tensor, or a kind and a message."""

    def __init__(self, api: ExchangeAPI, prototype: DLTensor, *, hears: bool = True) -> None:
        self.errors: list[tuple[str, str]] = []
        self.contexts: list[int] = []

        def set_error(context: int, kind: bytes, message: bytes) -> None:
            self.contexts.append(context)
            self.errors.append((kind.decode(), message.decode()))

        allocate = api.table.managed_tensor_allocator
        _, pointer_to_managed, _, callback = allocate.argtypes
        out = pointer_to_managed._type_()
        self.status = allocate(prototype, out, 77, callback(set_error) if hears else callback())
        self.managed = out.contents if out else None


def prototype_of(shape: tuple[int, ...], dtype: tuple[int, int, int] = (2, 32, 1)) -> Any:
    """Return a prototype, of which all that does not count is nonsense."""
    prototype = ForeignTensor(3, shape=shape, strides=[2**62] * len(shape), dtype=dtype).tensor
    prototype.byte_offset = 5
    return prototype


@pytest.mark.parametrize(
    ("shape", "dtype", "nbytes"),
    [
        ((3, 4), (2, 32, 1), 48),
        ((), (2, 64, 1), 8),
        ((5,), (4, 16, 1), 10),
        ((7,), (0, 8, 4), 28),
        ((9,), (17, 4, 1), 5),
        ((1 << 20,), (1, 8, 1), 1 << 20),
        ((0,), (2, 32, 1), 0),
        ((4, 0, 3), (2, 32, 1), 0),
    ],
)
def test_the_allocator_gives_new_memory_like_a_prototype(
    api: ExchangeAPI, shape: tuple[int, ...], dtype: tuple[int, int, int], nbytes: int
) -> None:
    made = Allocation(api, prototype_of(shape, dtype))
    assert (made.status, made.errors) == (0, [])
    managed = made.managed
    assert managed is not None
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


def test_the_allocator_refuses_also_for_who_hears_no_error(api: ExchangeAPI) -> None:
    prototype = prototype_of((3,))
    prototype.device_type = 1
    made = Allocation(api, prototype, hears=False)
    assert (made.status, made.managed, made.errors) == (-1, None, [])


def test_memory_of_the_allocator_is_freed_by_the_deleter(api: ExchangeAPI) -> None:
    managed = Allocation(api, prototype_of((UNPOOLED,))).managed
    assert managed is not None
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
        ("device_id", -1, "device.device_id: expected from 0 to 0"),
        ("ndim", -1, "ndim: "),
        ("shape", None, "shape: "),
        ("bits", 0, "dtype: "),
        ("code", 99, "dtype: "),
        ("lanes", 0, "dtype: "),
    ],
)
def test_a_prototype_that_cannot_be_is_an_error_of_the_caller(
    api: ExchangeAPI, field: str, value: Any, part: str
) -> None:
    prototype = prototype_of((3, 4))
    setattr(prototype, field, value)
    made = Allocation(api, prototype)
    assert (made.status, made.managed) == (-1, None)
    ((kind, message),) = made.errors
    assert kind == "BufferError"
    assert message.startswith(part)
    assert made.contexts == [77]


@pytest.mark.parametrize("shape", [(-1,), (2**62, 2**62), (2**62,)])
def test_a_shape_that_no_memory_holds_is_an_error_of_the_caller(
    api: ExchangeAPI, shape: tuple[int, ...]
) -> None:
    made = Allocation(api, prototype_of(shape))
    assert (made.status, made.managed) == (-1, None)
    assert [kind for kind, _ in made.errors] == ["BufferError"]


def test_a_prototype_that_there_is_no_memory_for_is_a_memory_error(api: ExchangeAPI) -> None:
    made = Allocation(api, prototype_of((2**45,)))
    assert (made.status, made.managed) == (-1, None)
    ((kind, message),) = made.errors
    assert kind == "MemoryError"
    assert message.startswith("data: expected memory for a managed tensor, found none; ")


# --- from other threads


def test_any_thread_that_holds_the_gil_may_call(api: ExchangeAPI, tensor: DLPackTensor) -> None:
    def work(_: int) -> None:
        for _ in range(100):
            assert api.borrow(tensor).data == tensor.data
            assert api.take(api.export(tensor)).data == tensor.data
            assert api.stream(0)
            made = Allocation(api, prototype_of((3,))).managed
            assert made is not None
            call_deleter(made)

    assert at_once(work) == [None] * THREADS


# --- consumers: one in C, and apache-tvm-ffi


@pytest.fixture(scope="session")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a consumer in plain C, built by the system's compiler."""
    source = Path(__file__).with_name("exchange_api_consumer.c")
    compiler = shutil.which("cc")
    assert compiler is not None
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    built = tmp_path_factory.mktemp("consumer") / f"exchange_api_consumer{suffix}"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    includes = [
        f"-isystem{sysconfig.get_path('include')}",
        f"-isystem{tvm_ffi.libinfo.find_dlpack_include_path()}",
    ]
    subprocess.run([compiler, *flags, *includes, str(source), "-o", str(built)], check=True)
    specification = importlib.util.spec_from_file_location("exchange_api_consumer", built)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_a_consumer_in_c_borrows_without_a_copy(consumer: Any, tensor: DLPackTensor) -> None:
    before = sys.getrefcount(tensor)
    expected = (tensor.data, (14, 0), (2, 32, 1), (3, 4), (4, 1), 0)
    assert consumer.borrow(tensor) == expected
    assert consumer.export_and_delete(tensor) == (NEWEST, 0, expected)
    assert sys.getrefcount(tensor) == before


def test_a_consumer_in_c_brings_a_tensor_back(consumer: Any, memory: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    back = consumer.round_trip(to_dlpack_tensor(owner))
    del owner
    gc.collect()
    assert gone() is not None
    assert (type(back), back.data) == (DLPackTensor, address_of(memory))
    del back
    gc.collect()
    assert gone() is None


def test_a_consumer_in_c_meets_refusals_as_exceptions(
    consumer: Any, read_only: DLPackTensor
) -> None:
    for function in (consumer.borrow, lambda x: consumer.time_borrows(x, 3)):
        with refused("read_only", "flags"):
            function(read_only)
    with pytest.raises(AttributeError):
        consumer.borrow(object())
    assert consumer.export_and_delete(read_only)[1] == READ_ONLY


def test_a_consumer_in_c_can_measure_borrows(consumer: Any, tensor: DLPackTensor) -> None:
    nanoseconds, checksum = consumer.time_borrows(tensor, 1001)
    assert nanoseconds > 0
    assert checksum == tensor.data + 2


ELEMENTS = [
    "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16",
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", (2, 32, 4),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ELEMENTS, ids=str)
def test_tvm_ffi_takes_every_dtype_by_the_table(memory: Any, dtype: Any) -> None:
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


def test_tvm_ffi_keeps_the_memory_alive(memory: Any) -> None:
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    taken = tvm_ffi.from_dlpack(to_dlpack_tensor(owner))
    del owner
    gc.collect()
    assert gone() is not None
    del taken
    gc.collect()
    assert gone() is None


def test_tvm_ffi_takes_read_only_memory_if_it_can(read_only: DLPackTensor) -> None:
    assert tvm_ffi.from_dlpack(read_only).data_ptr() == read_only.data


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
    assert array.asked == []
    del made
    gc.collect()
    assert table.foreign.deletions == 1


def test_validate_uses_the_table_and_gives_back_what_it_got(table: Table, memory: Any) -> None:
    assert validate(array_of(table)).data == address_of(memory)
    assert table.foreign.deletions == 1


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


@pytest.mark.parametrize("way", ["borrow", "export"])
def test_who_gets_a_tensor_works_on_its_queue(way: str) -> None:
    api = ExchangeAPI(DLPackTensor)
    producer = new_queue(root_device(0), in_order=True)
    pending = PendingFill(producer)
    try:
        tensor = to_dlpack_tensor(pending.memory, dtype="i4", queue=producer)
        got = getattr(api, way)(tensor)
        assert work_stream(api) == producer
        reader = Reader(work_stream(api), pending.memory)
        assert pending.is_pending
        pending.open()
        assert reader.seen == VALUES
        if way == "export":
            call_deleter(got)
    finally:
        pending.end()


# The work stream does not wait for host tasks: `queue::memcpy` of an out-of-order queue overtakes
# work behind one, and a kernel does not (DPC++ 2026.2).
STREAM_ORDERS = ["out of order, by kernels", "in order"]
AFTERWARDS = pytest.mark.parametrize("host_task", [False, True], ids=["no more", "host task"])


def borrow_pending(api: ExchangeAPI, pending: PendingFill) -> None:
    """Borrow a tensor whose queue works on it."""
    api.borrow(to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue))


@pytest.fixture
def start() -> Iterator[Callable[..., PendingFill]]:
    """Return a function that starts work on a new queue, which goes on at the end of the test."""
    started: list[PendingFill] = []

    def begin(in_order: bool) -> PendingFill:
        started.append(PendingFill(new_queue(root_device(0), in_order=in_order)))
        return started[-1]

    yield begin
    for pending in started:
        pending.end()
        pending.queue.wait()


@pytest.mark.parametrize("in_order", [False, True], ids=STREAM_ORDERS)
@AFTERWARDS
def test_the_work_stream_is_behind_the_work_of_the_tensor(
    host_task: bool, in_order: bool, start: Any
) -> None:
    api = ExchangeAPI(DLPackTensor)
    pending = start(in_order)
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
    pending = start(False)
    assert Reader(pending.queue, pending.memory).seen == ZEROS
    assert pending.is_pending


@pytest.mark.parametrize("second", [False, True], ids=STREAM_ORDERS)
@pytest.mark.parametrize("in_order", [False, True])
@AFTERWARDS
def test_the_work_stream_is_behind_the_work_of_all_tensors_that_were_borrowed_for_it(
    host_task: bool, in_order: bool, second: bool, start: Any
) -> None:
    api = ExchangeAPI(DLPackTensor)
    api.stream(0)
    all_pending = [start(in_order), start(not in_order), start(second)]
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
    later, earlier = start(True), start(True)
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


def test_a_work_stream_that_fails_without_an_error_is_refused(table: Table) -> None:
    table.stream_status = -1
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
    if name == "no name":
        return new_capsule(ctypes.addressof(table.struct), None)
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
        "another name",
        "no name",
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


class Lazy(ForeignArray):
    """An array whose elements may be computed when they are read, as PyTorch's are."""

    conjugate, negative = False, False

    def is_conj(self) -> bool:
        """Return whether the elements are the conjugates of those in memory."""
        return self.conjugate

    def is_neg(self) -> bool:
        """Return whether the elements are the negatives of those in memory."""
        return self.negative


@pytest.mark.parametrize("offers", [False, True], ids=["capsules", "table"])
@pytest.mark.parametrize(
    ("bit", "found", "remedy"),
    [
        ("conjugate", "conjugates", "x.resolve_conj()"),
        ("negative", "negatives", "x.resolve_neg()"),
    ],
)
def test_elements_that_are_not_those_in_memory_are_refused(
    table: Table, offers: bool, bit: str, found: str, remedy: str
) -> None:
    table_of_type = {"__dlpack_c_exchange_api__": table.capsule()} if offers else {}
    array = type("Array", (Lazy,), table_of_type)(table.foreign)
    assert from_dlpack(array).shape == (3, 4)
    table.calls.clear()
    array.asked.clear()
    setattr(array, bit, True)
    for look in (from_dlpack, validate):
        with refused("copy_needed", "x", found=found, remedy=remedy):
            look(array)
    assert (table.calls, array.asked) == ([], [])


def test_questions_that_are_no_methods_say_nothing(table: Table) -> None:
    array = type("Flagged", (ForeignArray,), {"is_conj": True, "is_neg": True})(table.foreign)
    assert from_dlpack(array).shape == (3, 4)


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


def test_the_dtype_of_a_table_is_taken(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory), shape=(24,), dtype=(4, 16, 1))
    assert from_dlpack(array_of(Table(foreign))).dtype == np.dtype(ml_dtypes.bfloat16)


def test_kinds_of_memory_are_known_through_a_table(queue: Any, usm_type: str) -> None:
    owner = allocate(usm_type, 48, queue)
    assert from_dlpack(array_of(Table(ForeignTensor(address_of(owner))))).usm_type == usm_type
