# SPDX-License-Identifier: Apache-2.0
"""from_dlpack: USM is proved, then owned; host arrays, other kinds and orders are copied."""

import gc
from functools import partial
from typing import Any

import dpctl
import ml_dtypes
import numpy as np
import pytest
from c_exchange_api import ExchangeAPI
from capsules import (
    IS_COPIED,
    IS_SUBBYTE_TYPE_PADDED,
    NEWEST,
    READ_ONLY,
    ForeignArray,
    ForeignTensor,
    OldArray,
    content_of,
    dpctl_queue,
    name_of,
    package_queue,
)
from memory_sources import UNPOOLED, TypedArray, address_of, allocate, kept, new_queue
from pending_work import COUNT, VALUES, answer_behind, check_order
from place_cases import sub_device
from refusals import refused
from threads_at_once import THREADS, at_once
from usm_dlpack import ConversionError, DLPackTensor, empty, from_dlpack, to_dlpack_tensor, validate

HERE = (14, 0)

# --- arrays and capsules of USM


@pytest.fixture(params=[False, True], ids=["versioned", "legacy"])
def foreign(request: pytest.FixtureRequest, memory: Any) -> ForeignTensor:
    return ForeignTensor(address_of(memory), legacy=request.param)


@pytest.mark.parametrize("flags", [0, READ_ONLY, IS_COPIED])
def test_of_the_flags_read_only_is_kept(memory, flags):
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.flags = flags
    tensor = from_dlpack(ForeignArray(foreign))
    assert tensor.readonly is (flags == READ_ONLY)
    assert content_of(tensor.__dlpack__(max_version=NEWEST)).flags == flags & READ_ONLY


def test_a_bare_capsule_is_the_importers_who_runs_the_deleter_once(foreign):
    capsule = foreign.capsule()
    assert validate(capsule).data == foreign.tensor.data
    tensor = from_dlpack(capsule)
    assert (tensor.data, tensor.sycl_queue) == (foreign.tensor.data, package_queue())
    assert name_of(capsule) == b"used_" + foreign.name
    again = from_dlpack(tensor)
    del capsule, tensor
    gc.collect()
    assert foreign.deletions == 0
    del again
    gc.collect()
    assert foreign.deletions == 1


NO_DEVICES = [None, (14,), (14.0, 0), (2**40, 0), (14, 2**40), (14, -(2**40))]


@pytest.mark.parametrize("asked", [None, HERE], ids=str)
@pytest.mark.parametrize(
    ("device", "field"),
    [
        *((device, "device.device_type") for device in ((2, 63), (13, 63), (10, 0))),
        *((nonsense, "__dlpack_device__") for nonsense in NO_DEVICES),
    ],
)
def test_a_device_of_another_type_or_of_nonsense_is_refused_before_the_export(
    memory, asked, device, field
):
    array = ForeignArray(ForeignTensor(address_of(memory)), device=device)
    with refused("device_type_unsupported", field):
        from_dlpack(array, device=asked)
    assert array.asked == []


@pytest.mark.parametrize(
    "use",
    [
        *(from_dlpack, lambda raw: from_dlpack(raw, device=(14, 0)), validate, to_dlpack_tensor),
        *(DLPackTensor.__dlpack__, ExchangeAPI(DLPackTensor).export),
        *(ExchangeAPI(DLPackTensor).borrow, DLPackTensor.numpy, DLPackTensor.host_view),
        lambda raw: raw.__sycl_usm_array_interface__,
    ],
)
def test_a_tensor_that_was_never_made_is_refused(use):
    with refused("tensor_released", "data", found="one that was not initialised"):
        use(DLPackTensor.__new__(DLPackTensor))


def test_a_bare_capsule_is_copied_as_an_array_is(foreign):
    capsule = foreign.capsule()
    for keywords in ({"usm_type": "host"}, {"order": "C"}):
        foreign.tensor.strides = foreign.array((1, 3))
        with refused("copy_needed", "copy" if "usm_type" in keywords else "strides"):
            from_dlpack(capsule, copy=False, **keywords)
        assert (name_of(capsule), foreign.deletions) == (foreign.name, 0)
    copied = from_dlpack(capsule, order="C", usm_type="host", copy=True)
    assert (copied.strides, copied.usm_type, foreign.deletions) == ((4, 1), "host", 1)
    assert copied.data != foreign.tensor.data


def test_an_empty_tensor_is_of_every_kind_without_a_copy(foreign):
    foreign.tensor.shape = foreign.array((0, 3))
    assert from_dlpack(foreign.capsule(), usm_type="shared", copy=False).shape == (0, 3)


@pytest.mark.parametrize("device", [None, (14, 0)], ids=str)
def test_a_refused_bare_capsule_stays_fresh(foreign, device):
    foreign.tensor.data = 4096
    capsule = foreign.capsule()
    with refused("pointer_unknown", "data") as refusal:
        from_dlpack(capsule, device=device)
    assert refusal.value.__cause__ is None  # there is no array to ask for a copy
    assert (name_of(capsule), foreign.deletions) == (foreign.name, 0)


# --- other places, kinds of USM, and orders


@pytest.mark.parametrize("in_order", [None, True, False], ids=str)
def test_a_place_brings_a_host_array_there_and_leaves_usm(in_order, queue):
    device = HERE if in_order is None else new_queue(in_order=in_order)
    made = from_dlpack(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    assert (made.device, made.usm_type, made.shape) == (HERE, "device", (3, 4))
    assert made.sycl_queue == (device if isinstance(device, dpctl.SyclQueue) else package_queue())
    assert np.array_equal(made.numpy(), np.arange(12).reshape(3, 4))
    tensor = to_dlpack_tensor(allocate("shared", 48, queue), shape=(4, 3), dtype="f4")
    for x, copy in ((tensor, False), (OldArray(tensor.__dlpack__()), None)):
        there = from_dlpack(x, device=device, copy=copy, usm_type="shared")
        assert (there.data, there.usm_type, there.strides) == (tensor.data, "shared", (3, 1))


@pytest.mark.parametrize("of", ["the device", "an opencl sub-device"])
def test_a_wrong_queue_or_id_is_refused_before_anything_is_asked(foreign_queue, memory, queue, of):
    wrong = foreign_queue if of == "the device" else kept(dpctl.SyclQueue(sub_device(queue)))
    untouched = ForeignArray(ForeignTensor(address_of(memory)))
    for x in (untouched, np.zeros(3, ml_dtypes.bfloat16), to_dlpack_tensor(memory, shape=0)):
        for copy in (None, True, False):
            with refused("context_not_default", "device", found="one of another context"):
                from_dlpack(x, device=wrong, copy=copy)
    for number in (1, -1):
        with refused("no_device", "device.device_id", found=str(number)):
            from_dlpack(untouched, device=(14, number))
    assert untouched.asked == []


@pytest.mark.parametrize("legacy", [False, True])
def test_a_host_array_of_a_foreign_producer_is_copied_and_let_go(legacy):
    """The copy may be written."""
    values = np.arange(12, dtype=np.float32)
    foreign = ForeignTensor(values.ctypes.data, legacy=legacy)
    if not legacy:
        foreign.managed.flags = READ_ONLY
    foreign.tensor.device_type, foreign.tensor.strides = 1, None
    array, queue = ForeignArray(foreign, device=(1, 0)), new_queue()
    bare = foreign.capsule()
    with refused("device_type_unsupported", "device.device_type", found="kDLCPU"):
        from_dlpack(bare)
    for x in (array, OldArray(foreign.capsule()), bare):
        made = from_dlpack(x, device=queue)
        assert np.array_equal(made.numpy(), values.reshape(3, 4))
        assert (made.sycl_queue, made.readonly) == (queue, False)
    assert array.asked == [{"max_version": NEWEST}]  # the host is given no queue
    gc.collect()
    assert foreign.deletions == 3


def in_pool(owner: Any, *, legacy: bool = False, **changes: Any) -> ForeignTensor:
    """Return what a library for host memory exports of memory that is USM, as of a pinned pool."""
    foreign = ForeignTensor(address_of(owner), legacy=legacy, **changes)
    foreign.tensor.device_type = 1
    return foreign


def test_the_copy_of_a_host_array_has_no_queue_that_cannot_use_it(foreign_queue):
    class Array:
        sycl_queue = foreign_queue

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **keywords):
            return np.arange(3).__dlpack__(**keywords)

    assert from_dlpack(Array(), device=(14, 0)).sycl_queue == package_queue()


@pytest.mark.parametrize("copy", [None, False])
@pytest.mark.parametrize("kind", ["host", "shared"])
def test_an_array_for_the_host_whose_memory_is_usm_is_shared(kind, copy, queue):
    owner = allocate(kind, 48, queue)
    foreign, wanted = in_pool(owner), new_queue()
    array = ForeignArray(foreign, device=(1, 0))
    for x, device in ((array, HERE), (array, wanted), (foreign.capsule(), HERE)):
        made = from_dlpack(x, device=device, copy=copy)
        assert (made.data, made.usm_type, made.device) == (address_of(owner), kind, HERE)
        assert made.sycl_queue == (wanted if device is wanted else package_queue())
        assert made.numpy().tobytes() == bytes(range(48))
        assert not made.readonly
        del made, x
    gc.collect()
    assert foreign.deletions == 3
    for keywords in ({"copy": True}, {"usm_type": "device"}):
        made = from_dlpack(array, device=HERE, **keywords)
        assert (made.data != address_of(owner), made.readonly) == (True, False)
        assert made.numpy().tobytes() == bytes(range(48))


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_numpys_views_of_usm_are_shared_and_stay_read_only(kind, queue):
    owner = to_dlpack_tensor(allocate(kind, 48, queue), dtype="f4", shape=(3, 4))
    values = np.asarray(owner.host_view())[::2, ::-1]
    made = from_dlpack(values, device=HERE)
    assert (made.data, made.strides) == (values.ctypes.data, (8, -1))
    assert from_dlpack(values[:0], device=HERE, copy=False).shape == (0, 4)
    values.flags.writeable = False
    assert from_dlpack(values, device=HERE).readonly
    bits = np.asarray(owner.host_view()).view(ml_dtypes.bfloat16)
    assert from_dlpack(bits, device=HERE).data == owner.data


def test_an_array_for_the_host_in_usm_of_another_context_is_copied_on_opencl(foreign_queue):
    """GPU drivers know the memory of all contexts."""
    elsewhere = allocate("host", 48, foreign_queue)
    made = from_dlpack(ForeignArray(in_pool(elsewhere), device=(1, 0)), device=HERE)
    assert (made.usm_type, made.numpy().tobytes()) == ("device", bytes(range(48)))


def test_an_array_for_the_host_that_reaches_out_of_its_usm_is_refused(queue):
    owner = allocate("host", UNPOOLED, queue)
    capsule = in_pool(owner, shape=(2 * UNPOOLED,)).capsule()
    with refused("out_of_bounds", "shape"):
        from_dlpack(capsule, device=HERE)
    assert name_of(capsule) == b"dltensor_versioned"


@pytest.mark.parametrize("of", ["a library for the host", "a tensor"])
def test_one_of_many_threads_takes_a_capsule_behind_pending_work(of, start):
    """While one is ordered behind pending work, others run."""
    own = dpctl_queue() if of == "a library for the host" else new_queue(in_order=True)
    pending = start(own, "shared")
    tensor = to_dlpack_tensor(pending.memory, queue=own)
    consumer = new_queue(in_order=True)
    kept = []  # on CUDA the end of an array for the host waits for its queues
    for _ in range(50):
        if of == "a tensor":
            capsule = tensor.__dlpack__(stream=own)
        else:
            capsule = in_pool(pending.memory).capsule()
        takes = at_once(lambda _, capsule=capsule: from_dlpack(capsule, device=consumer))
        refusals = [take for take in takes if isinstance(take, ConversionError)]
        assert [error.code for error in refusals] == ["capsule_unusable"] * (THREADS - 1)
        kept.append(takes)
    pending.open()


def test_a_capsule_of_a_tensor_for_the_host_has_its_queue_and_waits_for_it(start):
    pending = start(new_queue(), "shared")
    tensor = to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue)

    def capsule() -> Any:
        return tensor.__dlpack__(dl_device=(1, 0), stream=-1, max_version=NEWEST)

    made = from_dlpack(capsule(), device=HERE)  # kept: on CUDA its end waits for the queue
    assert made.sycl_queue == pending.queue
    copied = empty(COUNT, "i4")
    answer_behind(pending, lambda: copied.copy_from(OldArray(capsule())))
    assert copied.numpy().tolist() == VALUES


@pytest.mark.parametrize("copy", [None, True])
def test_a_read_of_usm_of_an_array_for_the_host_waits_for_dpctls_queue(copy, start):
    pending = start(dpctl_queue(), "shared")
    array = ForeignArray(in_pool(pending.memory, dtype=(0, 32, 1)), device=(1, 0))
    queue = new_queue()

    def read() -> Any:
        return from_dlpack(array, device=queue, copy=copy).numpy().ravel().tolist()

    assert answer_behind(pending, read) == VALUES


def test_the_queue_of_an_array_for_the_host_waits_for_dpctls(consumer, start):
    pending = start(dpctl_queue(), "shared")
    array = ForeignArray(in_pool(pending.memory), device=(1, 0))
    made = from_dlpack(array, device=consumer)  # kept: on CUDA its end waits for the queue
    assert made.data == address_of(pending.memory)
    check_order(consumer, pending)


@pytest.mark.parametrize("give", [OldArray, lambda capsule: capsule], ids=["array", "bare"])
@pytest.mark.parametrize("legacy", [False, True])
def test_a_copy_that_cannot_be_made_leaves_the_capsule_fresh(legacy, give):
    values = np.zeros(12, np.float32)
    foreign = ForeignTensor(values.ctypes.data, shape=(2**43,), legacy=legacy)
    foreign.tensor.device_type = 1
    capsule = foreign.capsule()
    with refused("copy_needed", "copy", expected=f"a copy of {2**45} bytes", found="none"):
        from_dlpack(give(capsule), device=HERE)
    foreign.tensor.shape, foreign.tensor.byte_offset = foreign.array((12,)), 2
    with refused("data_misaligned", "byte_offset"):
        from_dlpack(give(capsule), device=HERE)
    assert (name_of(capsule), foreign.deletions) == (foreign.name, 0)
    foreign.tensor.byte_offset = 0
    assert from_dlpack(give(capsule), device=HERE).numpy().tolist() == [0] * 12
    assert foreign.deletions == 1


def test_device_usm_whose_gaps_are_large_is_copied_in_pieces():
    step = 12 << 20  # elements; 64 MiB are copied at once
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    tensor = to_dlpack_tensor(
        empty(2 * step + 2), shape=(3, 2), strides=(-step, 1), byte_offset=8 * step
    )
    tensor.copy_from(values)
    assert np.array_equal(tensor.numpy(), values)


def test_a_copy_of_read_only_memory_may_be_written(memory):
    tensor = to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))
    array = tensor.numpy()
    assert (array.flags.writeable, array.flags.c_contiguous, array.base) == (True, True, None)
    array[:] = 0
    assert bytes(memory.copy_to_host()) == bytes(range(48))
    assert from_dlpack(tensor, usm_type="device").readonly
    assert not from_dlpack(tensor, usm_type="host").readonly
    assert not from_dlpack(tensor, copy=True).readonly


def test_an_empty_array_of_any_extents_is_in_c_order(memory):
    huge = to_dlpack_tensor(memory, shape=(0, 2**62, 2**62), strides=(1, 2**62, 1), dtype="i2")
    assert from_dlpack(huge, order="C", copy=False).shape == huge.shape


def test_a_copy_of_the_producer_in_another_order_is_copied_again(memory):
    foreign = ForeignTensor(address_of(memory), strides=(1, 3))
    foreign.managed.flags = IS_COPIED
    made = from_dlpack(ForeignArray(foreign), copy=True, order="C")
    assert made.strides == (4, 1)
    assert made.data != address_of(memory)


def export_zeros(_: Any, **keywords: Any) -> Any:
    return np.zeros(3, np.float32).__dlpack__(**keywords)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e8m0fnu", "float6_e2m3fn", "int4"])
def test_numpy_arrays_of_ml_dtypes_come_and_go_as_the_same_bits(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = np.arange(24 * dtype.itemsize, dtype=np.uint8) % 4
    whole = np.ndarray((4, 6), dtype, bits.tobytes())
    asked = new_queue()
    viewing = whole.view(type("Viewing", (np.ndarray,), {"view": lambda *_: np.zeros(3)}))
    for values in (whole, whole[::-1, 1::2], whole[1, 2, ...], viewing):
        made = from_dlpack(values, device=asked)
        for tensor in (made, from_dlpack(made)):
            back = tensor.numpy()
            assert (tensor.dtype, tensor.sycl_queue, back.dtype) == (dtype, asked, dtype)
            assert (back.shape, back.tobytes()) == (values.shape, values.tobytes())
    with pytest.raises(BufferError):  # NumPy's own
        from_dlpack(whole)
    exporting = whole.view(type("Exporting", (np.ndarray,), {"__dlpack__": export_zeros}))
    assert from_dlpack(exporting, device=asked).dtype == np.float32


BIG_ENDIAN = np.dtype(ml_dtypes.bfloat16).newbyteorder(">")


@pytest.mark.parametrize("dtype", [BIG_ENDIAN, "U2", "O", "M8[s]", np.longdouble], ids=str)
def test_dtypes_of_numpy_that_no_tensor_has_are_refused(dtype):
    for call in (partial(from_dlpack, device=HERE), empty(12).copy_from, from_dlpack, validate):
        with refused("dtype_unsupported", "dtype"):
            call(np.zeros(12, dtype))


@pytest.mark.parametrize("dtype", ["f8", ml_dtypes.bfloat16], ids=str)
def test_strides_of_numpy_that_count_no_elements_are_refused(dtype):
    values = np.zeros(4, [("x", dtype), ("name", "u1")])["x"]
    for call in (partial(from_dlpack, device=HERE), empty(4, dtype).copy_from):
        with refused("layout_mismatch", "strides"):
            call(values)
    one_record = values[:1]
    assert from_dlpack(one_record, device=HERE).numpy() == one_record


def test_padded_elements_of_another_host_library_are_read_by_their_strides():
    values = np.arange(24, dtype=np.uint8) % 8
    foreign = ForeignTensor(values.ctypes.data, shape=(12,), strides=(2,), dtype=(0, 4, 1))
    foreign.tensor.device_type, foreign.managed.flags = 1, IS_SUBBYTE_TYPE_PADDED
    made = from_dlpack(ForeignArray(foreign, device=(1, 0)), device=HERE)
    assert made.numpy().view(np.uint8).tolist() == values[::2].tolist()


def test_a_filter_string_without_any_device_is_no_device(new_process):
    code = "import usm_dlpack; usm_dlpack.from_dlpack([], device='opencl:cpu:0')"
    done = new_process(code, ONEAPI_DEVICE_SELECTOR="opencl:gpu")
    assert "found none at all; install a driver, correct what hides it" in done.stderr
