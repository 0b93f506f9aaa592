# SPDX-License-Identifier: Apache-2.0
"""The C exchange API: our five functions as C calls them, and other types' tables as we do."""

import ctypes
import gc
import re
from typing import Any

import dpctl
import extension_under_test
import ml_dtypes
import numpy as np
import pytest
from c_exchange_api import ExchangeAPI, Table, capsule_of
from capsules import (
    IS_COPIED,
    IS_SUBBYTE_TYPE_PADDED,
    NEWEST,
    READ_ONLY,
    DLManagedTensorVersioned,
    DLTensor,
    ForeignArray,
    ForeignTensor,
    call_deleter,
    dpctl_queue,
    integers,
    new_capsule,
    package_queue,
)
from dpctl.memory import as_usm_memory
from memory_sources import TypedArray, address_of, allocate, new_queue
from pending_work import COUNT, answer_behind
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate
from usm_dlpack_conformance.dlpack import DLPackExchangeAPI, SetError

api = ExchangeAPI(DLPackTensor)
EXPORT = api.table.managed_tensor_from_py_object_no_sync
BORROW = api.table.dltensor_from_py_object_no_sync
TAKE = api.table.managed_tensor_to_py_object_no_sync


# --- export and borrow


def test_a_consumer_of_another_context_that_is_done_hinders_no_borrow(tensor, foreign_queue):
    device, context = foreign_queue.sycl_device, foreign_queue.sycl_context
    consumer = dpctl.SyclQueue(context, device, property="in_order")
    _taken = tensor.__dlpack__(stream=consumer)
    consumer.submit_barrier()
    tensor.wait()
    api.borrow(tensor)


@pytest.mark.parametrize(
    ("dtype", "flag", "code", "found"),
    [
        ("u1", READ_ONLY, "read_only", "read-only"),
        (ml_dtypes.float4_e2m1fn, IS_SUBBYTE_TYPE_PADDED, "dtype_unsupported", "padded"),
    ],
)
def test_what_an_export_says_of_a_tensor_and_a_borrow_cannot_is_not_lent(
    memory, dtype, flag, code, found
):
    array = TypedArray(memory, data=(address_of(memory), flag == READ_ONLY))
    tensor = to_dlpack_tensor(array, dtype=dtype)
    managed = api.export(tensor)
    assert managed.flags == flag
    call_deleter(managed)
    with refused(code, "flags", found=found):
        api.borrow(tensor)


OFFER = {"__dlpack_c_exchange_api__": DLPackTensor.__dlpack_c_exchange_api__}
IMITATION = type("Imitation", (), OFFER)()


@pytest.mark.parametrize("function", [api.export, api.borrow])
@pytest.mark.parametrize("wrong", [None, DLPackTensor, IMITATION], ids=["None", "class", "other"])
def test_what_is_no_tensor_is_refused(function, wrong):
    remedy = "look up the exchange API of the object's own type"
    part = f"found an object of type {type(wrong).__name__}; {remedy}"
    with wrong_argument(TypeError, "py_object", part):
        function(wrong)


# --- import


def test_a_managed_tensor_is_taken_with_its_flags_and_freed_once(memory):
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.flags = READ_ONLY | IS_COPIED
    made = api.take(foreign.managed)
    assert type(made) is DLPackTensor
    assert (made.data, made.shape, made.strides) == (address_of(memory), (3, 4), (4, 1))
    assert (made.sycl_queue, made.readonly) == (package_queue(), True)
    managed = api.export(made)
    assert managed.flags == READ_ONLY
    del made
    gc.collect()
    assert foreign.deletions == 0
    call_deleter(managed)
    assert foreign.deletions == 1


def test_a_refused_managed_tensor_is_stolen_all_the_same_and_freed_once(unpooled):
    foreign = ForeignTensor(address_of(unpooled), dtype=(2, 32, 4))
    with refused("out_of_bounds", "shape"):
        api.take(foreign.managed)
    assert foreign.deletions == 1
    foreign.managed.major, foreign.tensor.ndim = 2, -7  # which is not read
    with refused("version_unsupported", "version.major"):
        api.take(foreign.managed)
    assert foreign.deletions == 2


def test_null_is_no_object_and_no_place_for_a_result(tensor, memory):
    foreign = ForeignTensor(address_of(memory))
    out, nothing = ctypes.POINTER(DLManagedTensorVersioned)(), ctypes.py_object()
    calls: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
        (EXPORT, (tensor, None), ValueError, "out"),
        (EXPORT, (nothing, out), TypeError, "py_object"),
        (BORROW, (tensor, None), ValueError, "out"),
        (BORROW, (nothing, DLTensor()), TypeError, "py_object"),
        (api.table.current_work_stream, (14, 0, None), ValueError, "out"),
        (api.table.current_work_stream, (1, 0, None), ValueError, "out"),
        (TAKE, (None, ctypes.c_void_p()), ValueError, "tensor"),
        (TAKE, (ctypes.addressof(foreign.managed), None), ValueError, "out"),
    ]
    for function, arguments, kind, field in calls:
        remedy = "; pass the producer's" if field == "tensor" else ""
        with wrong_argument(kind, field, f"found null{remedy}"):
            function(*arguments)
    assert not out
    assert foreign.deletions == 1  # stolen all the same


def test_a_refusal_replaces_an_error_from_before_and_success_keeps_it(tensor, memory):
    room = ctypes.create_string_buffer(256)

    def call_with_error(function: Any, argument: int) -> None:
        address = ctypes.cast(function, ctypes.c_void_p).value
        extension_under_test.load().with_error(address, argument, ctypes.addressof(room))

    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.device_id = 99
    with refused("no_device", "device.device_id", found="99"):
        call_with_error(TAKE, ctypes.addressof(foreign.managed))
    for function in (EXPORT, BORROW):
        with wrong_argument(TypeError, "py_object", "found an object of type NoneType"):
            call_with_error(function, id(None))
    with pytest.raises(LookupError, match="from before"):
        call_with_error(BORROW, id(tensor))
    assert DLTensor.from_buffer(room).data == tensor.data


# --- the queue to work on


def test_the_work_stream_is_one_queue_of_a_root_device():
    assert api.stream(0) == api.stream(0)
    assert api.queue() == package_queue()
    assert api.queue().is_in_order  # for consumers with several commands
    assert api.stream(0, device_type=1) is None  # on the host
    with refused("device_type_unsupported", "device.device_type"):
        api.stream(0, 2)
    for number in (1, -1):
        with refused("no_device", "device.device_id", found=str(number)):
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
def test_the_allocator_gives_new_memory_like_a_prototype(shape, dtype, nbytes):
    managed = api.allocate(prototype_of(shape, dtype))
    inside = managed.dl_tensor
    assert (api.table.major, api.table.minor) == (managed.major, managed.minor) == NEWEST
    assert managed.flags == 0
    assert inside.data
    assert inside.byte_offset == 0
    assert (inside.code, inside.bits, inside.lanes) == dtype
    assert integers(inside.shape, inside.ndim) == shape
    proof = validate(api.take(managed))
    assert (proof.device_id, proof.nbytes) == (0, nbytes)
    if nbytes:
        assert (proof.usm_type, proof.data) == ("device", inside.data)


def test_the_allocator_refuses_null_and_also_for_who_hears_no_error():
    allocate = api.table.managed_tensor_allocator
    deaf = SetError()  # null
    of_the_host = prototype_of((3,))
    assert allocate(of_the_host, None, None, deaf) == -1
    of_the_host.device_type = 1
    for wrong in (None, of_the_host):
        out = ctypes.pointer(DLManagedTensorVersioned())
        assert allocate(wrong, out, None, deaf) == -1
        assert not out


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("device_type", 1, "BufferError: device.device_type: expected kDLOneAPI (14), found kDLC"),
        ("device_id", 9, "BufferError: device.device_id: expected 0 (the only"),
        ("shape", None, "BufferError: shape: "),
        ("lanes", 0, "BufferError: dtype: "),
        ("shape", (ctypes.c_int64 * 2)(2**45, 1), "MemoryError: data: expected memory for"),
    ],
)
def test_a_prototype_that_cannot_be_is_an_error_of_the_caller(field, value, said):
    prototype = prototype_of((3, 4))
    setattr(prototype, field, value)
    with pytest.raises(BufferError, match=f"^{re.escape(said)}"):
        api.allocate(prototype)


def test_a_managed_tensor_names_no_queue_and_is_taken_to_be_on_that_of_the_package(start):
    memory = allocate("device", 4 * COUNT, new_queue())
    foreign = ForeignTensor(address_of(memory), shape=(COUNT,), dtype=(0, 32, 1))
    for made in (api.take(foreign.managed), api.take(api.allocate(prototype_of((COUNT,))))):
        assert made.sycl_queue == package_queue()
        for queue in (package_queue(), dpctl_queue()):
            answer_behind(start(queue, into=as_usm_memory(made)), made.numpy)


# --- tables of other types


@pytest.fixture
def table(memory: Any) -> Table:
    return Table(ForeignTensor(address_of(memory)))


def test_a_table_is_used_instead_of_capsules(table, memory):
    """Also where `__dlpack_device__` counts as PyTorch's does on XPU."""
    array = table.array(__dlpack_device__=lambda self: (14, 7))
    made = from_dlpack(array)
    assert (made.data, made.sycl_queue) == (address_of(memory), package_queue())
    assert table.calls == ["export", "stream 14 0"]
    assert validate(array).data == address_of(memory)
    assert (array.asked, table.foreign.deletions) == ([], 1)
    del made
    gc.collect()
    assert table.foreign.deletions == 2
    table.foreign.tensor.device_id = 99
    with refused("no_device", "device.device_id", found="99"):
        from_dlpack(array)
    assert table.foreign.deletions == 3


def test_a_host_array_of_a_table_is_copied_to_a_device(table):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    table.foreign.tensor.data, table.foreign.tensor.device_type = values.ctypes.data, 1
    with refused(
        "device_type_unsupported",
        "device.device_type",
        remedy="from_dlpack(x, device=(14, 0))",
    ):
        from_dlpack(table.array())
    made = from_dlpack(table.array(), device=(14, 0))
    assert np.array_equal(made.numpy(), values)
    assert table.foreign.deletions == 2
    assert "stream 1 0" not in table.calls


@pytest.mark.parametrize(
    ("gives", "status", "stream_status"), [(False, 0, 0), (False, -1, 0), (True, 0, -1)]
)
def test_a_table_that_fails_is_refused(table, gives, status, stream_status):
    table.gives, table.status, table.stream_status = gives, status, stream_status
    with refused("capsule_unusable", "__dlpack_c_exchange_api__", remedy="the producer"):
        from_dlpack(table.array())
    assert table.foreign.deletions == gives


def test_the_error_that_a_table_sets_is_kept(table):
    # Our own table at another type refuses the object, and sets the error.
    with wrong_argument(TypeError, "py_object", "of type Offering"):
        from_dlpack(table.array(DLPackTensor.__dlpack_c_exchange_api__))


@pytest.mark.parametrize("of_pytorch", [True, False])
@pytest.mark.parametrize("error", [RuntimeError, LookupError])
def test_a_runtime_error_of_the_table_of_pytorch_is_told_by_dlpack(table, error, of_pytorch):
    """A function of Python stands for the one that exports: it raises what ``__bool__`` does."""

    def fail(_):
        raise error("by the table")

    field = DLPackExchangeAPI.managed_tensor_from_py_object_no_sync
    failing = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
    ctypes.c_void_p.from_buffer(table.struct, field.offset).value = failing.value
    said = {"requires_grad": False} if of_pytorch else {}
    array = table.array(__bool__=fail, **said)
    if of_pytorch and error is RuntimeError:
        assert from_dlpack(array).data == table.foreign.tensor.data
    else:
        with pytest.raises(error, match="by the table"):
            from_dlpack(array)
        assert array.asked == []


def test_a_table_that_gives_another_major_version_is_not_asked_for_a_stream(table):
    table.foreign.managed.major = 2
    with refused("version_unsupported", "version.major"):
        from_dlpack(table.array())
    assert table.calls == ["export"]


def test_an_older_table_behind_a_newer_one_is_used(table):
    newest = DLPackExchangeAPI(3, prev_api=ctypes.addressof(table.struct))
    newer = DLPackExchangeAPI(2, prev_api=ctypes.addressof(newest))
    array = table.array(capsule_of(newer))
    assert from_dlpack(array).shape == (3, 4)
    assert (table.calls[0], array.asked) == ("export", [])


def test_without_a_usable_table_on_the_type_the_capsule_is_asked_for(table):
    spoiled = [DLPackExchangeAPI.from_buffer_copy(table.struct) for _ in range(3)]
    spoiled[0].major = 2
    needed = ("managed_tensor_from_py_object_no_sync", "current_work_stream")
    for struct, name in zip(spoiled[1:], needed, strict=True):
        field = getattr(DLPackExchangeAPI, name)
        ctypes.memset(ctypes.addressof(struct) + field.offset, 0, field.size)
    capsules = [5, new_capsule(ctypes.addressof(table.struct), b"dltensor")]
    arrays = [table.array(offered) for offered in [*capsules, *map(capsule_of, spoiled)]]
    plain = ForeignArray(table.foreign)
    plain.__dlpack_c_exchange_api__ = capsule_of(table.struct)  # of the object
    for array in (*arrays, plain):
        assert from_dlpack(array).shape == (3, 4)
        assert (table.calls, array.asked) == (
            [],
            [{"stream": dpctl_queue(), "max_version": NEWEST}],
        )


@pytest.mark.parametrize("offers", [False, True], ids=["capsules", "table"])
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(("bit", "found"), [("is_conj", "conjugates"), ("is_neg", "negatives")])
def test_elements_that_are_not_those_in_memory_are_refused(table, offers, bit, alone, found):
    """As PyTorch's, which may be computed when they are read."""
    said = {name: lambda self: False for name in ("is_conj", "is_neg") if name == bit or not alone}
    capsule = None if offers else 5
    assert from_dlpack(table.array(capsule, **said)).shape == (3, 4)
    table.calls.clear()
    lazy = table.array(capsule, **(said | {bit: lambda self: True}))
    for look in (from_dlpack, validate):
        with refused("copy_needed", "x", found=found, remedy=f"x.resolve_{bit[3:]}()"):
            look(lazy)
    assert (table.calls, lazy.asked) == ([], [])


def test_an_array_that_takes_part_in_a_gradient_is_asked_by_dlpack(table):
    array = table.array(requires_grad=False)
    from_dlpack(array)
    assert (table.calls, array.asked) == (["export", "stream 14 0"], [])
    array.requires_grad = True
    from_dlpack(array)
    assert (len(table.calls), array.asked) == (
        2,
        [{"stream": dpctl_queue(), "max_version": NEWEST}],
    )
