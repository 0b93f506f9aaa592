# SPDX-License-Identifier: Apache-2.0
"""from_dlpack: arrays of other libraries are proved, then owned; refused ones stay their own."""

import ctypes
import gc
import weakref
from typing import Any

import pytest
import tvm_ffi
from c_exchange_api import ExchangeAPI
from capsules import (
    IS_COPIED,
    NEWEST,
    READ_ONLY,
    ForeignArray,
    ForeignTensor,
    OldArray,
    content_of,
    name_of,
    new_capsule,
    package_queue,
)
from memory_sources import TypedArray, address_of, allocate
from refusals import refused
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate


def same_view(first: DLPackTensor, second: DLPackTensor) -> bool:
    names = ["data", "shape", "strides", "dtype", "usm_type", "device", "readonly", "nbytes"]
    return all(getattr(first, name) == getattr(second, name) for name in names)


@pytest.fixture(params=[False, True], ids=["versioned", "legacy"])
def foreign(request: pytest.FixtureRequest, memory: Any) -> ForeignTensor:
    return ForeignTensor(address_of(memory), legacy=request.param)


@pytest.fixture
def versioned(memory: Any) -> ForeignTensor:
    return ForeignTensor(address_of(memory))


def test_what_tvm_ffi_holds_is_the_same_memory_kept_alive(usm_type, queue):
    memory = allocate(usm_type, 48, queue)
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    consumed = tvm_ffi.from_dlpack(to_dlpack_tensor(owner, shape=(3, 4)))
    del owner
    gc.collect()
    assert gone() is not None
    assert consumed.data_ptr() == address_of(memory)
    back = from_dlpack(consumed)
    del consumed
    gc.collect()
    assert gone() is not None
    assert same_view(back, to_dlpack_tensor(memory, shape=(3, 4), dtype="f4"))
    del back
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("is_null", [True, False])
def test_an_empty_tensor_may_have_null_data(foreign, memory, is_null):
    foreign.tensor.shape[0] = 0
    foreign.tensor.data = None if is_null else address_of(memory)
    tensor = from_dlpack(ForeignArray(foreign))
    assert (tensor.shape, tensor.size, tensor.data) == ((0, 4), 0, foreign.tensor.data or 0)
    assert same_view(from_dlpack(tensor), tensor)


@pytest.mark.parametrize("minor", [0, 99])
@pytest.mark.parametrize("flags", [0, READ_ONLY, IS_COPIED])
def test_known_flags_of_any_minor_version_are_taken(versioned, flags, minor):
    versioned.managed.flags, versioned.managed.minor = flags, minor
    taken = from_dlpack(ForeignArray(versioned))
    assert taken.readonly is bool(flags & READ_ONLY)
    assert content_of(taken.__dlpack__(max_version=NEWEST)).flags == flags & READ_ONLY


of_array_or_bare = pytest.mark.parametrize("give", [OldArray, lambda x: x], ids=["array", "bare"])


@of_array_or_bare
def test_an_accepted_tensor_is_the_importers_who_runs_the_deleter_once(foreign, give):
    capsule = foreign.capsule()
    assert validate(capsule).data == foreign.tensor.data
    tensor = from_dlpack(give(capsule))
    assert (tensor.data, tensor.sycl_queue) == (foreign.tensor.data, package_queue())
    assert name_of(capsule) == b"used_" + foreign.name
    again = from_dlpack(tensor)
    del capsule, tensor
    gc.collect()
    assert foreign.deletions == 0
    del again
    gc.collect()
    assert foreign.deletions == 1


@pytest.mark.parametrize("answer", [None, "dltensor"])
def test_an_answer_that_is_no_capsule_is_refused(answer):
    found, remedy = f"of type {type(answer).__name__}", "have __dlpack__() return a capsule"
    with refused("capsule_unusable", "capsule", found=found, remedy=remedy):
        from_dlpack(OldArray(answer))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (None, "one without a name"),
        (b"used_dltensor_versioned", 'one named "used_dltensor_versioned"'),
        (b"SyclQueueRef", 'one named "SyclQueueRef"'),
        (b"\xff", r'one named "\xff"'),
    ],
)
@of_array_or_bare
def test_a_capsule_that_is_not_fresh_is_refused(name, found, give):
    capsule = new_capsule(64, name)
    for keywords in ({}, {"device": (14, 0)}):
        remedy = "ask the producer for a new one"
        with refused("capsule_unusable", "capsule", found=found, remedy=remedy):
            from_dlpack(give(capsule), **keywords)
    assert name_of(capsule) == name


@pytest.mark.parametrize("asked", [None, (14, 0)], ids=str)
@pytest.mark.parametrize(
    ("device", "field", "found"),
    [
        ((2, 63), "device.device_type", "kDLCUDA (2) of CUDA device 63, which is none"),
        ((13, 63), "device.device_type", "kDLCUDAManaged (13) of CUDA device 63, which is none"),
        ((10, 0), "device.device_type", "kDLROCM (10)"),
        *(
            (nonsense, "__dlpack_device__", repr(nonsense))
            for nonsense in (None, (14,), (14.0, 0), (2**40, 0), (14, 2**40), (14, -(2**40)))
        ),
    ],
)
def test_a_device_of_another_type_or_of_nonsense_is_refused_before_the_export(
    versioned, asked, device, field, found
):
    array = ForeignArray(versioned, device=device)
    with refused("device_type_unsupported", field, found=found):
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


def test_a_tensor_that_the_garbage_collector_cleared_is_refused(tensor):
    slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    tp_clear = slot(("PyType_GetSlot", ctypes.pythonapi))(DLPackTensor, 51)
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(tp_clear)(tensor)
    with refused("tensor_released", "data", found="part of a cycle that was collected"):
        tensor.__dlpack__()


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


@pytest.mark.parametrize("device", [None, (14, 0)], ids=str)
def test_a_refused_bare_capsule_stays_fresh(foreign, device):
    foreign.tensor.data = 4096
    capsule = foreign.capsule()
    with refused("pointer_unknown", "data") as refusal:
        from_dlpack(capsule, device=device)
    assert refusal.value.__cause__ is None  # there is no array to ask for a copy
    assert (name_of(capsule), foreign.deletions) == (foreign.name, 0)


def test_a_bare_capsule_of_ours_goes_there_and_back(tensor):
    for version in (None, NEWEST):
        back = from_dlpack(tensor.__dlpack__(max_version=version))
        assert same_view(back, tensor)
