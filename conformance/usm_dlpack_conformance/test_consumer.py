# SPDX-License-Identifier: Apache-2.0
"""What a consumer must take, share, keep and release."""

import ctypes
import gc
import math
from functools import partial
from typing import Any

import numpy as np

from .adapter import NotSupportedError
from .cases import (
    ARRAY_API,
    DLPACK,
    GUIDE,
    LAYOUTS,
    PYTHON,
    VALUES,
    convention,
    growth,
    refused,
    run_in_threads,
    span,
    spec,
)
from .dlpack import (
    CPU,
    IS_COPIED,
    READ_ONLY,
    USED,
    Foreign,
    OldProducer,
    Producer,
    content_of,
    first_element,
    integers,
    name_of,
)


def foreign_of(adapter: Any, values: Any = VALUES, **keywords: Any) -> Foreign:
    """Return a tensor of another library, which keeps its memory."""
    data = values.tobytes()
    owner, address = memory_of(adapter, data + bytes(-len(data) % 4))
    keywords.setdefault("shape", values.shape)
    keywords.setdefault("dtype", values.dtype.name)
    return Foreign(address, device=(adapter.device_type, 0), owner=owner, **keywords)


def memory_of(adapter: Any, data: bytes) -> tuple[Any, int]:
    """Return memory with contents of the kind of device that the library takes, and its address."""
    if adapter.device_type != CPU:
        return adapter.allocate(data, adapter.kinds[0])
    owner = ctypes.create_string_buffer(len(data) + 64)
    address = (ctypes.addressof(owner) + 63) // 64 * 64
    ctypes.memmove(address, data, len(data))
    return owner, address


def take(adapter: Any, foreign: Foreign, kind: type = Producer, **keywords: Any) -> Any:
    return adapter.consume(kind(foreign), **keywords)


# What is taken.


@spec("take.shared", PYTHON, "The memory is shared, not copied.")
def test_the_memory_is_shared(adapter):
    foreign = foreign_of(adapter)
    array = take(adapter, foreign)
    assert adapter.address(array) == foreign.address
    assert adapter.to_bytes(array) == VALUES.tobytes()


@spec("take.legacy", PYTHON, "Older producers give the old struct.")
def test_a_legacy_capsule_is_taken(adapter):
    foreign = foreign_of(adapter, legacy=True)
    array = take(adapter, foreign)
    assert adapter.address(array) == foreign.address
    assert adapter.to_bytes(array) == VALUES.tobytes()


@convention(
    "take.old-producer", ARRAY_API, "A producer from before the keywords raises a TypeError."
)
def test_a_producer_without_keywords_is_taken(adapter):
    foreign = foreign_of(adapter, legacy=True)
    assert adapter.to_bytes(take(adapter, foreign, OldProducer)) == VALUES.tobytes()


@convention(
    "take.max-version", ARRAY_API, "Without it a producer may refuse, or give the old struct."
)
def test_the_producer_is_told_the_version(adapter):
    foreign = foreign_of(adapter)
    producer = Producer(foreign)
    adapter.consume(producer)
    version = producer.calls[0]["max_version"]
    assert version is not None
    assert version[0] >= 1


@spec("take.newer-minor", DLPACK, "Minor versions are compatible.")
def test_a_later_minor_version_is_taken(adapter):
    foreign = foreign_of(adapter)
    foreign.managed.minor = 99
    assert adapter.to_bytes(take(adapter, foreign)) == VALUES.tobytes()


@spec("take.null-strides", DLPACK, "Before version 1.2 null strides mean C order.", alone=True)
def test_null_strides_are_those_of_c_order(adapter):
    foreign = foreign_of(adapter)
    foreign.tensor.strides = None
    foreign.managed.minor = 0
    assert adapter.to_bytes(take(adapter, foreign)) == VALUES.tobytes()


@spec("take.byte-offset", DLPACK, "The first element is at data + byte_offset.")
def test_the_byte_offset_is_added(adapter):
    foreign = foreign_of(adapter, shape=(8,))
    foreign.tensor.byte_offset = 16
    array = take(adapter, foreign)
    assert adapter.address(array) == foreign.address + 16
    assert adapter.to_bytes(array) == VALUES.tobytes()[16:]


@spec("take.dtypes", DLPACK, "Code and bits name the type.")
def test_the_dtypes_are_taken(adapter):
    for name in adapter.dtypes:
        values = np.arange(8).astype(name)
        array = take(adapter, foreign_of(adapter, values))
        assert (name, adapter.to_bytes(array)) == (name, values.tobytes())


@spec("take.rank-0", DLPACK, "A scalar has no extents; its strides may be null.", alone=True)
def test_a_tensor_of_rank_0_is_taken(adapter):
    foreign = foreign_of(adapter, np.float32(2.5).reshape(()))
    foreign.tensor.strides = None
    assert adapter.to_bytes(take(adapter, foreign)) == np.float32(2.5).tobytes()


def check_layout(adapter: Any, name: str) -> None:
    shape, strides, values = LAYOUTS[name]
    offset, elements = span(shape, strides)
    spanned = np.arange(24, dtype="f4")[:elements]
    foreign = foreign_of(adapter, spanned, shape=shape, strides=strides)
    foreign.tensor.byte_offset = 4 * offset
    array = take(adapter, foreign)
    assert adapter.to_bytes(array) == values.tobytes()


@spec("take.strided", DLPACK, "Strides are in elements.")
def test_a_strided_tensor_has_its_values(adapter):
    check_layout(adapter, "strided")


@spec("take.transposed", DLPACK, "The order of dimensions is in the strides.")
def test_a_transposed_tensor_has_its_values(adapter):
    check_layout(adapter, "transposed")


@spec("take.reversed", DLPACK, "Strides are signed.")
def test_a_reversed_tensor_has_its_values(adapter):
    check_layout(adapter, "reversed")


@spec("take.broadcast", DLPACK, "A stride may be 0.")
def test_a_broadcast_tensor_has_its_values(adapter):
    check_layout(adapter, "broadcast")


@spec("take.unit-extents", DLPACK, "The stride of an extent of 1 is never used.")
def test_any_stride_of_an_extent_of_1_is_taken(adapter):
    foreign = foreign_of(adapter, shape=(1, 12), strides=(2**40, 1))
    assert adapter.to_bytes(take(adapter, foreign)) == VALUES.tobytes()


@spec("take.empty", DLPACK, "An array without elements has a shape.")
def test_an_empty_tensor_is_taken(adapter):
    array = take(adapter, foreign_of(adapter, shape=(0, 4)))
    assert adapter.to_bytes(array) == b""


@spec("take.empty-null", DLPACK, "Its data should be null.", alone=True)
def test_an_empty_tensor_with_null_data_is_taken(adapter):
    foreign = foreign_of(adapter, shape=(0, 4))
    foreign.tensor.data = None
    assert adapter.to_bytes(take(adapter, foreign)) == b""


@spec("take.read-only", DLPACK, "What is marked may not be written.")
def test_a_read_only_tensor_stays_read_only(adapter):
    foreign = foreign_of(adapter)
    foreign.managed.flags = READ_ONLY
    assert adapter.is_readonly(take(adapter, foreign))


@convention("take.writable", DLPACK, "What is not marked may be written.")
def test_a_writable_tensor_stays_writable(adapter):
    assert not adapter.is_readonly(take(adapter, foreign_of(adapter)))


def copying(adapter: Any, foreign: Foreign) -> Producer:
    """Return an array that copies if it is asked for a copy."""

    class Copies(Producer):
        def __dlpack__(self, *, copy: Any = None, **keywords: Any) -> Any:
            if not copy:
                return super().__dlpack__(copy=copy, **keywords)
            copied = foreign_of(adapter)
            copied.managed.flags = IS_COPIED
            self.copied = Producer(copied)
            return self.copied.__dlpack__(copy=copy, **keywords)

    return Copies(foreign)


@spec("take.copy", ARRAY_API, "copy=True always gives other memory.")
def test_copy_true_gives_other_memory(adapter):
    foreign = foreign_of(adapter)
    array = adapter.consume(copying(adapter, foreign), copy=True)
    assert adapter.address(array) != foreign.address
    assert adapter.to_bytes(array) == VALUES.tobytes()


@spec("take.no-copy", ARRAY_API, "copy=False shares or fails.")
def test_copy_false_shares(adapter):
    foreign = foreign_of(adapter)
    assert adapter.address(take(adapter, foreign, copy=False)) == foreign.address


@spec("take.own-device", ARRAY_API, "The device that the array is on may be named.")
def test_the_device_may_be_named(adapter):
    foreign = foreign_of(adapter)
    array = take(adapter, foreign, device=foreign.device)
    assert adapter.to_bytes(array) == VALUES.tobytes()


# Who releases it.


@spec("release.name", PYTHON, "A consumed capsule is renamed, so that nobody takes it again.")
def test_the_capsule_is_marked(adapter):
    for legacy in (False, True):
        foreign = foreign_of(adapter, legacy=legacy)
        producer = Producer(foreign)
        array = adapter.consume(producer)
        assert name_of(producer.capsule) == USED[producer.name]
        del array


@spec("release.once", PYTHON, "The deleter runs once, when the array is gone.")
def test_the_deleter_runs_once_and_not_before(adapter):
    for legacy in (False, True):
        foreign = foreign_of(adapter, legacy=legacy)
        array = take(adapter, foreign)
        gc.collect()
        assert foreign.deletions == 0
        assert adapter.to_bytes(array) == VALUES.tobytes()
        del array
        gc.collect()
        assert foreign.deletions == 1


@spec("release.struct", PYTHON, "What a consumer keeps of a tensor goes with its array.")
def test_many_arrays_leave_nothing_behind(adapter):
    for legacy in (False, True):
        foreign = foreign_of(adapter, legacy=legacy)
        assert growth(lambda: take(adapter, foreign), 5_000) < 1 << 20  # noqa: B023


@spec("release.copy", ARRAY_API, "A copy is the consumer's, and goes with its array.")
def test_copies_are_freed(adapter):
    foreign = foreign_of(adapter, np.ones(2 << 20, "f4"))
    assert growth(lambda: take(adapter, foreign, copy=True), 32) < 64 << 20


@spec(
    "release.null-deleter", DLPACK, "A null deleter means that there is nothing to do.", alone=True
)
def test_a_null_deleter_is_not_called(adapter):
    foreign = foreign_of(adapter)
    foreign.managed.deleter = None
    array = take(adapter, foreign)
    assert adapter.to_bytes(array) == VALUES.tobytes()
    del array
    gc.collect()


@spec("release.passed-on", PYTHON, "A consumer may export what it took.")
def test_what_was_taken_can_be_exported(adapter):
    foreign = foreign_of(adapter)
    array = take(adapter, foreign)
    if not hasattr(array, "__dlpack__"):
        raise NotSupportedError("its arrays have no __dlpack__")
    capsule = array.__dlpack__(max_version=(1, 1))
    del array
    gc.collect()
    assert foreign.deletions == 0
    assert first_element(content_of(capsule).dl_tensor) == foreign.address
    del capsule
    gc.collect()
    assert foreign.deletions == 1


@spec("release.refused", PYTHON, "Who refuses a capsule does not consume it.")
def test_a_refused_capsule_still_owns_its_tensor(adapter):
    foreign = foreign_of(adapter)
    foreign.tensor.bits = 7
    producer = Producer(foreign)
    try:
        adapter.consume(producer)
    except NotSupportedError:
        raise
    except Exception:
        producer.capsule = None
    else:
        raise NotSupportedError("it takes elements of every width")
    gc.collect()
    assert producer.calls
    assert foreign.deletions == len(producer.calls)


@convention("release.threads", PYTHON, "Threads may take arrays.", alone=True)
def test_threads_may_take_arrays_at_once(adapter):
    made = [[foreign_of(adapter) for _ in range(50)] for _ in range(8)]

    def take_all(part: Any) -> None:
        for foreign in part:
            assert adapter.to_bytes(take(adapter, foreign)) == VALUES.tobytes()

    run_in_threads([partial(take_all, part) for part in made])
    gc.collect()
    assert {foreign.deletions for part in made for foreign in part} == {1}


class _Globals:
    left: Any = None


@convention("release.exit", PYTHON, "An array may live until the interpreter ends.", alone=True)
def test_the_interpreter_may_end_with_what_was_taken(adapter):
    _Globals.left = take(adapter, foreign_of(adapter))


# What must not be taken.


def check_refused(adapter: Any, foreign: Foreign, values: bytes | None = None) -> None:
    """Require a refusal, or, where values are given, an array of these values."""
    try:
        array = take(adapter, foreign)
    except NotSupportedError:
        raise
    except Exception:
        return
    assert values is not None, "it was taken"
    try:
        found = adapter.to_bytes(array)
    except Exception as error:
        raise NotSupportedError("what it took cannot be read") from error
    assert found == values


@spec("refuse.used", PYTHON, "A capsule that was consumed owns nothing.", alone=True)
def test_a_used_capsule_is_refused(adapter):
    class Used(Producer):
        def __dlpack__(self, **keywords: Any) -> Any:
            self.capsule = self.foreign.capsule(b"used_dltensor_versioned")
            return self.capsule

    with refused():
        adapter.consume(Used(foreign_of(adapter)))


@spec("refuse.other-name", PYTHON, "Another capsule holds another struct.", alone=True)
def test_a_capsule_of_another_name_is_refused(adapter):
    class Other(Producer):
        def __dlpack__(self, **keywords: Any) -> Any:
            self.capsule = self.foreign.capsule(b"some_tensor")
            return self.capsule

    with refused():
        adapter.consume(Other(foreign_of(adapter)))


@spec("refuse.no-capsule", PYTHON, "__dlpack__ returns a capsule.", alone=True)
def test_what_is_no_capsule_is_refused(adapter):
    class NoCapsule(Producer):
        def __dlpack__(self, **keywords: Any) -> Any:
            return 7

    with refused():
        adapter.consume(NoCapsule(foreign_of(adapter)))


@spec("refuse.major", DLPACK, "Of another major version only the deleter may be used.", alone=True)
def test_another_major_version_is_refused(adapter):
    foreign = foreign_of(adapter)
    foreign.managed.major = 2
    foreign.tensor.ndim = 1 << 20
    with refused():
        take(adapter, foreign)
    gc.collect()
    assert foreign.deletions == 1


@convention(
    "refuse.device-type",
    DLPACK,
    "Memory of another kind of device has other addresses.",
    alone=True,
)
def test_another_kind_of_device_is_refused(adapter):
    foreign = foreign_of(adapter)
    foreign.tensor.device_type = 8  # kDLMetal
    check_refused(adapter, foreign)


@convention("refuse.device-id", GUIDE, "No root device has this id.", alone=True)
def test_a_device_that_is_not_there_is_refused(adapter):
    if adapter.device_type == CPU:
        raise NotSupportedError("the host is one device")
    for number in (99, -1):
        foreign = foreign_of(adapter)
        foreign.tensor.device_id = number
        check_refused(adapter, foreign)


@convention("refuse.other-device", GUIDE, "The id must be that of the memory's device.", alone=True)
def test_the_id_of_another_device_is_refused(adapter):
    if len(adapter.queues()) < 2:
        raise NotSupportedError("there is one root device")
    foreign = foreign_of(adapter)
    foreign.tensor.device_id = 1
    check_refused(adapter, foreign)


@convention("refuse.not-usm", GUIDE, "The default context must know the pointer.", alone=True)
def test_memory_of_the_host_is_no_usm(adapter):
    if adapter.device_type == CPU:
        raise NotSupportedError("it takes memory of the host")
    foreign = foreign_of(adapter)
    buffer = ctypes.create_string_buffer(4096)
    foreign.tensor.data = ctypes.addressof(buffer)
    check_refused(adapter, foreign)


@convention("refuse.context", GUIDE, "The default context must know the pointer.", alone=True)
def test_memory_of_another_context_is_refused(adapter):
    queue = adapter.queue_of_other_context()
    foreign = foreign_of(adapter)
    foreign.owner, foreign.tensor.data = adapter.allocate(VALUES.tobytes(), adapter.kinds[0], queue)
    check_refused(adapter, foreign, VALUES.tobytes())


@convention("refuse.null", DLPACK, "Only an empty tensor has null data.", alone=True)
def test_null_data_with_elements_is_refused(adapter):
    foreign = foreign_of(adapter)
    foreign.tensor.data = None
    check_refused(adapter, foreign)


@convention("refuse.negative-extent", DLPACK, "An extent is a number of elements.", alone=True)
def test_a_negative_extent_is_refused(adapter):
    foreign = foreign_of(adapter)
    foreign.tensor.shape = foreign.array((3, -4))
    check_refused(adapter, foreign)


@convention("refuse.negative-rank", DLPACK, "A rank is a number of dimensions.", alone=True)
def test_a_negative_rank_is_refused(adapter):
    foreign = foreign_of(adapter)
    foreign.tensor.ndim = -1
    check_refused(adapter, foreign)


@convention("refuse.null-shape", DLPACK, "Only rank 0 has no shape.", alone=True)
def test_a_null_shape_is_refused(adapter):
    foreign = foreign_of(adapter)
    foreign.tensor.shape = None
    check_refused(adapter, foreign)


@convention("refuse.overflow", DLPACK, "A size beyond 64 bits is no size.", alone=True)
def test_a_size_that_overflows_is_refused(adapter):
    foreign = foreign_of(adapter, shape=(2**32, 2**32))
    check_refused(adapter, foreign)


@convention("refuse.bounds", GUIDE, "Every element must be in the allocation.", alone=True)
def test_a_tensor_beyond_its_allocation_is_refused(adapter):
    if adapter.device_type == CPU:
        raise NotSupportedError("nobody knows the bounds of memory of the host")
    foreign = foreign_of(adapter, shape=(1 << 24,))
    check_refused(adapter, foreign)


@convention(
    "refuse.misaligned", DLPACK, "An element must be aligned, or be read as it is.", alone=True
)
def test_a_misaligned_tensor_has_its_values_or_is_refused(adapter):
    foreign = foreign_of(adapter, shape=(2,))
    foreign.tensor.byte_offset = 1
    check_refused(adapter, foreign, VALUES.tobytes()[1:9])


@convention("refuse.lanes", DLPACK, "A vector is not a scalar.", alone=True)
def test_a_vector_is_not_read_as_a_scalar(adapter):
    foreign = foreign_of(adapter, shape=(3,))
    foreign.tensor.lanes = 4
    try:
        array = take(adapter, foreign)
    except NotSupportedError:
        raise
    except Exception:
        return
    if not hasattr(array, "__dlpack__"):
        raise NotSupportedError("its arrays have no __dlpack__")
    try:
        seen = content_of(array.__dlpack__(max_version=(1, 1))).dl_tensor
    except Exception:
        return
    assert math.prod(integers(seen.shape, seen.ndim)) * seen.lanes == VALUES.size


@spec("refuse.producers-error", ARRAY_API, "What a producer raises tells the user why.")
def test_the_error_of_a_producer_comes_out(adapter):
    class Fails(Producer):
        def __dlpack__(self, **keywords: Any) -> Any:
            raise BufferError("not exported")

    with refused(BufferError):
        adapter.consume(Fails(foreign_of(adapter)))
