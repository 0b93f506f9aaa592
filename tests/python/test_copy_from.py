# SPDX-License-Identifier: Apache-2.0
"""DLPackTensor.copy_from: values in USM or host memory go into the tensor's own memory."""

import array
import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi
from capsules import (
    IS_SUBBYTE_TYPE_PADDED,
    ForeignArray,
    ForeignTensor,
    OldArray,
    name_of,
)
from memory_sources import TypedArray, address_of, allocate, new_queue
from pending_work import FINISHED, Waiting, answer_behind
from refusals import refused, wrong_argument
from usm_dlpack import empty, from_dlpack, to_dlpack_tensor


def whole(owner: Any, dtype: Any = "i4") -> Any:
    return to_dlpack_tensor(owner, dtype=dtype).numpy()


def test_many_runs_arrive(queue):
    owner = allocate("device", 20_000, queue)
    tensor = to_dlpack_tensor(owner, shape=2500, strides=(2,), dtype="i4")
    mirror = whole(owner)
    mirror[::2] = values = np.arange(2500, dtype=np.int32)
    tensor.copy_from(values)
    assert np.array_equal(whole(owner), mirror)


class Interface:
    """An object that has NumPy's interface and nothing else."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.__array_interface__ = values.__array_interface__


SOURCES: dict[str, Callable[[Any], Any]] = {
    "NumPy": lambda values: values,
    "__array_interface__": Interface,
    "memoryview": memoryview,
    "array.array": lambda values: array.array("i", values.tolist()),
    "ctypes": lambda values: (ctypes.c_int32 * 12)(*values.tolist()),
    "DLPack": lambda values: OldArray(values.__dlpack__()),
    "DLPackTensor": lambda values: from_dlpack(values, device=(14, 0)),
    "DLPack of USM": lambda values: OldArray(from_dlpack(values, device=(14, 0)).__dlpack__()),
    "C exchange API": lambda values: tvm_ffi.from_dlpack(from_dlpack(values, device=(14, 0))),
    "SYCL array interface": lambda values: TypedArray(in_usm(values), typestr="<i4"),
}


def in_usm(values: Any, usm_type: str = "device", queue: Any = None) -> Any:
    """Return dpctl memory that holds the values."""
    memory = allocate(usm_type, values.nbytes, new_queue() if queue is None else queue)
    memory.copy_from_host(values.view("u1"))
    return memory


@pytest.mark.parametrize("name", SOURCES)
def test_values_of_every_kind_are_read(name, memory):
    values = np.arange(12, dtype=np.int32)
    to_dlpack_tensor(memory, dtype="i4").copy_from(SOURCES[name](values))
    assert np.array_equal(whole(memory), values)


@pytest.mark.parametrize("name", ["bool", "float16", "complex64", "bfloat16", "int4"])
def test_dtypes_of_numpy_and_ml_dtypes_are_read(name, memory):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    tensor = to_dlpack_tensor(memory, dtype=dtype)
    values = np.arange(tensor.size).reshape(tensor.shape).astype(dtype)
    tensor.copy_from(values)
    assert tensor.numpy().tobytes() == values.tobytes()


class Exporting(np.ndarray):  # type: ignore[type-arg]
    """A NumPy array whose own ``__dlpack__`` exports others."""

    exported: Any

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.exported.__dlpack__(**keywords)


@pytest.mark.parametrize(
    ("dtype", "said"), [("f8", "float32"), ("f4", "int32"), (ml_dtypes.bfloat16, "uint16")]
)
def test_the_dtype_of_an_export_counts_and_not_that_of_the_array(dtype, said, memory):
    values = np.zeros(6, dtype).view(Exporting)
    values.exported = np.arange(6, dtype=said)
    with refused("dtype_mismatch", "dtype", found=said):
        to_dlpack_tensor(memory, shape=6, dtype=dtype).copy_from(values)
    tensor = to_dlpack_tensor(memory, shape=6, dtype=said)
    tensor.copy_from(values)
    assert tensor.numpy().tolist() == [0, 1, 2, 3, 4, 5]


class Lying(np.ndarray):  # type: ignore[type-arg]
    """A NumPy array that lies about its dtype."""

    @property
    def dtype(self) -> Any:
        return ml_dtypes.bfloat16


def test_a_class_cannot_lie_about_the_dtype_of_an_array(memory):
    values = np.arange(12, dtype=np.int32)
    for read in (
        to_dlpack_tensor(memory, dtype="i4"),
        from_dlpack(np.zeros(12, np.int32), device=(14, 0)),
    ):
        read.copy_from(values.view(Lying))
        assert read.numpy().tolist() == values.tolist()
    taken = from_dlpack(values.view(Lying), device=(14, 0))
    assert taken.numpy().tolist() == values.tolist()


@pytest.mark.parametrize("legacy", [False, True])
def test_a_foreign_tensor_is_read_and_let_go(legacy, memory):
    values = np.arange(12, dtype=np.float32)
    foreign = ForeignTensor(values.ctypes.data, shape=(3,), legacy=legacy)
    foreign.tensor.device_type, foreign.tensor.strides = 1, None
    foreign.tensor.byte_offset = 16
    tensor = to_dlpack_tensor(memory, shape=3, dtype="f4")
    tensor.copy_from(ForeignArray(foreign, device=(1, 0)))
    assert foreign.deletions == 1
    assert tensor.numpy().tolist() == [4, 5, 6]


@pytest.mark.parametrize("kind", ["shared", "host"])
def test_values_in_the_same_memory_are_read_before_they_are_written(queue, kind):
    owner = allocate(kind, 48, queue)
    every = to_dlpack_tensor(owner)
    mirror = np.arange(48, dtype=np.uint8)
    seen = np.asarray(every.host_view())
    every.copy_from(seen[::-1])
    assert np.array_equal(seen, mirror[::-1])
    to_dlpack_tensor(owner, shape=47, byte_offset=1).copy_from(seen[:-1])
    assert seen.tolist() == [47, *range(47, 0, -1)]
    to_dlpack_tensor(owner, shape=24, strides=(2,)).copy_from(seen[:24])
    assert seen[::2].tolist() == [47, *range(47, 24, -1)]


def test_memory_of_dpctl_of_another_context_gives_its_bytes(foreign_queue, usm_type, start):
    pending = start(foreign_queue, usm_type)
    made = empty(48, "u1")
    answer_behind(pending, lambda: made.copy_from(pending.memory))
    assert made.numpy().view("i4").tolist() == [FINISHED] * 12


@pytest.mark.parametrize("strides", [None, (-3, 1), (1, -2)])
def test_an_interface_of_another_context_gives_its_elements(foreign_queue, usm_type, strides):
    memory = allocate(usm_type, 48, foreign_queue)
    numbers = np.arange(12, dtype="f4")
    memory.copy_from_host(numbers.view("u1"))
    array = TypedArray(memory, shape=(2, 3), strides=strides, offset=5)
    made = empty((2, 3), "f4")
    made.copy_from(array)
    in_bytes = None if strides is None else [4 * stride for stride in strides]
    expected = np.ndarray((2, 3), "f4", numbers, offset=20, strides=in_bytes)
    assert made.numpy().tolist() == expected.tolist()


def test_an_interface_of_another_context_is_read_again_and_again(foreign_queue):
    array = TypedArray(allocate("device", 48, foreign_queue))
    made = empty(12, "f4")
    for _ in range(5000):  # the CPU driver hangs soon if the queue of a read is out of order
        made.copy_from(array)
    assert made.numpy().tobytes() == bytes(range(48))


def test_an_interface_of_another_context_that_says_too_much_is_refused(foreign_queue):
    source = TypedArray(allocate("device", 48, foreign_queue), shape=(2**40,), typestr="|u1")
    written = empty(48, "u1")
    with refused("pointer_unknown", "data", binding=True):
        written.copy_from(source)


def test_a_copy_to_itself_needs_no_memory(succeed):
    code = """
import pathlib, resource
from usm_dlpack import empty, from_dlpack

tensor = empty(2**28, "u1", usm_type="shared")
tensor.copy_from(tensor)  # starts the threads of the driver
used = 4096 * int(pathlib.Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, -1))
tensor.copy_from(tensor)
tensor.copy_from(from_dlpack(tensor))
"""
    assert succeed(code) == ""


def test_the_capsule_of_the_values_is_taken_while_it_waits(start):
    pending = start(new_queue())
    values = np.arange(12, dtype=np.int32)
    foreign = ForeignTensor(values.ctypes.data, shape=(12,), dtype=(0, 32, 1))
    foreign.tensor.device_type = 1
    source = ForeignArray(foreign, device=(1, 0))
    tensor = to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue)
    waiting = Waiting(lambda: tensor.copy_from(source))
    assert waiting.is_waiting()
    assert name_of(source.given) == b"used_dltensor_versioned"
    pending.open()
    waiting.end()
    assert (foreign.deletions, tensor.numpy().tolist()) == (1, values.tolist())


def test_the_first_broken_rule_is_refused_and_nothing_is_written(memory, foreign_queue):
    read_only = to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))
    overlapping = to_dlpack_tensor(memory, shape=(3, 4), strides=(0, 1), dtype="f4")
    tensor = to_dlpack_tensor(memory, shape=(3, 4), dtype="f4")
    foreign = ForeignTensor(address_of(memory))
    source = ForeignArray(foreign)
    with refused("read_only", "flags", found="read-only"):
        read_only.copy_from(source, queue=foreign_queue)
    scalar = to_dlpack_tensor(read_only, shape=(), strides=())  # as dpnp exports its scalars
    with refused("read_only", "flags", remedy="make it by to_dlpack_tensor(a)"):
        scalar.copy_from(source)
    remedy = 'write to a copy, made by from_dlpack(x, order="C")'
    with refused("overlapping", "strides", found="some may", remedy=remedy):
        overlapping.copy_from(source, queue=foreign_queue)
    with refused("context_not_default", "queue", binding=True):
        tensor.copy_from(source, queue=foreign_queue)
    assert source.asked == []
    foreign.tensor.shape, foreign.tensor.strides = foreign.array((3, 1)), foreign.array((1, 1))
    foreign.tensor.ndim, foreign.tensor.byte_offset = 1, 2
    foreign.tensor.bits, foreign.tensor.lanes = 64, 2
    foreign.tensor.device_type = 8
    for field, value, code, named, found in (
        ("device_type", 14, "device_type_unsupported", "device.device_type", "kDLMetal (8)"),
        ("byte_offset", 0, "data_misaligned", "byte_offset", ""),
        ("ndim", 2, "shape_mismatch", "ndim", "1"),
        ("bits", 32, "dtype_mismatch", "dtype", "float64"),
        ("lanes", 1, "dtype_mismatch", "dtype", "float32x2"),
        ("shape", foreign.array((3, 4)), "shape_mismatch", "shape[1]", "1"),
    ):
        with refused(code, named, found=found):
            tensor.copy_from(source)
        setattr(foreign.tensor, field, value)
    assert bytes(memory.copy_to_host()) == bytes(range(48))
    assert name_of(source.given) == foreign.name
    assert foreign.deletions == 5  # of the capsules that the source dropped before


def test_packed_elements_are_written_by_whole_bytes_in_c_order(memory):
    values = to_dlpack_tensor(memory, shape=(2, 4), dtype="int4")
    values_of_bytes = to_dlpack_tensor(memory, shape=4, dtype="uint8")
    values_of_bytes.copy_from(np.array([1, 2, 3, 4], "u1"))
    written = empty((2, 4), dtype="int4")
    written.copy_from(values)
    assert to_dlpack_tensor(written, dtype="uint8").numpy().tolist() == [1, 2, 3, 4]
    columns = to_dlpack_tensor(memory, shape=(2, 4), strides=(1, 2), dtype="int4")
    half_a_byte = to_dlpack_tensor(memory, shape=3, dtype="int4", byte_offset=8)
    written.copy_from(to_dlpack_tensor(written, dtype="int4"))
    next_bytes = to_dlpack_tensor(memory, shape=(2, 3), dtype="int4", byte_offset=1)
    to_dlpack_tensor(memory, shape=(2, 3), dtype="int4").copy_from(next_bytes)
    assert values_of_bytes.numpy().tolist() == [2, 3, 4, 4]
    for to, source in (
        (written, columns),
        (columns, written),
        (half_a_byte, empty(3, dtype="int4")),
    ):
        with refused("dtype_unsupported", "dtype", expected="whole bytes", found="packed int4"):
            to.copy_from(source)


def test_the_flag_of_padding_says_nothing_of_whole_bytes(memory):
    values = np.zeros(12, np.int8)
    foreign = ForeignTensor(values.ctypes.data, shape=(12,), dtype=(0, 8, 1))
    foreign.tensor.device_type, foreign.managed.flags = 1, IS_SUBBYTE_TYPE_PADDED
    source = ForeignArray(foreign, device=(1, 0))
    to_dlpack_tensor(memory, shape=12, dtype="i1").copy_from(source)


@pytest.mark.parametrize("name", ["__dlpack__", "__array_interface__"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_inside_a_property_of_the_values_is_raised(name, error, memory):
    def refuse(_: Any) -> Any:
        raise error("not today")

    values = type("Values", (), {name: property(refuse)})()
    with pytest.raises(error, match="not today"):
        to_dlpack_tensor(memory, dtype="f4").copy_from(values)


def test_usm_that_is_not_what_it_claims_to_be_is_refused(memory):
    tensor = to_dlpack_tensor(memory)
    nowhere = ForeignTensor(address_of(memory) + 2**40, shape=(48,), dtype=(1, 8, 1))
    source = ForeignArray(nowhere)
    with refused("pointer_unknown", "data"):
        tensor.copy_from(source)


class WithMask(np.ndarray):  # type: ignore[type-arg]
    """An array of another library than NumPy that has a mask."""

    mask = None


def test_a_mask_of_another_library_is_not_lost(memory):
    values = np.zeros(48, "u1").view(WithMask)
    with refused("copy_needed", "values", found="type WithMask, whose mask"):
        to_dlpack_tensor(memory).copy_from(values)
    with refused("copy_needed", "x", found="WithMask"):
        from_dlpack(values, device=(14, 0))


@pytest.mark.parametrize("mask", [np.ones(48, bool), None], ids=["masked", "unmasked"])
def test_a_mask_in_an_array_interface_is_not_lost(mask, memory):
    array = np.zeros(48, "u1")
    values = SimpleNamespace(__array_interface__=array.__array_interface__ | {"mask": mask})
    if mask is None:
        to_dlpack_tensor(memory).copy_from(values)
        assert not whole(memory).any()
    else:
        with refused("copy_needed", "values", found="whose mask would be lost"):
            to_dlpack_tensor(memory).copy_from(values)


@pytest.mark.parametrize(
    "values",
    [None, 3, [1.0] * 12, "a text", object(), np.ndarray, OldArray, SimpleNamespace(__dlpack__=5)],
    ids=str,
)
def test_what_is_no_array_is_a_type_error(values, memory):
    tensor = to_dlpack_tensor(memory, dtype="f4")
    with wrong_argument(TypeError, "values", "expected an array"):
        tensor.copy_from(values)
