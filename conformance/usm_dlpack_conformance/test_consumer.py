# SPDX-License-Identifier: Apache-2.0
"""What a consumer must take, share, keep and release."""

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest

from .adapter import NotSupportedError
from .cases import (
    ARRAY_API,
    DLPACK,
    LAYOUTS,
    PYTHON,
    VALUES,
    convention,
    each,
    growth,
    run_in_threads,
    span,
    spec,
)
from .dlpack import (
    IS_COPIED,
    READ_ONLY,
    USED,
    Foreign,
    OldProducer,
    Producer,
    content_of,
    first_element,
    foreign_of,
    name_of,
    take,
)

# What is taken.


@each(
    "legacy",
    (spec("take.shared", PYTHON, "The memory is shared, not copied."), False),
    (spec("take.legacy", PYTHON, "Older producers give the old struct."), True),
)
def test_the_memory_is_shared(adapter, legacy):
    foreign = foreign_of(adapter, legacy=legacy)
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


@pytest.mark.alone
@spec("take.null-strides", DLPACK, "Before version 1.2 null strides mean C order.")
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


@pytest.mark.alone
@spec("take.rank-0", DLPACK, "A scalar has no extents; its strides may be null.")
def test_a_tensor_of_rank_0_is_taken(adapter):
    foreign = foreign_of(adapter, np.float32(2.5).reshape(()))
    foreign.tensor.strides = None
    assert adapter.to_bytes(take(adapter, foreign)) == np.float32(2.5).tobytes()


@pytest.mark.alone
@each(
    "name",
    (spec("take.strided", DLPACK, "Strides are in elements."), "strided"),
    (spec("take.transposed", DLPACK, "The order of dimensions is in the strides."), "transposed"),
    (spec("take.reversed", DLPACK, "Strides are signed."), "reversed"),
    (spec("take.broadcast", DLPACK, "A stride may be 0."), "broadcast"),
)
def test_a_layout_has_its_values(adapter, name):
    shape, strides, values = LAYOUTS[name]
    offset, elements = span(shape, strides)
    spanned = np.arange(24, dtype="f4")[:elements]
    foreign = foreign_of(adapter, spanned, shape=shape, strides=strides)
    foreign.tensor.byte_offset = 4 * offset
    assert adapter.to_bytes(take(adapter, foreign)) == values.tobytes()


@spec("take.unit-extents", DLPACK, "The stride of an extent of 1 is never used.")
def test_any_stride_of_an_extent_of_1_is_taken(adapter):
    foreign = foreign_of(adapter, shape=(1, 12), strides=(2**40, 1))
    assert adapter.to_bytes(take(adapter, foreign)) == VALUES.tobytes()


@pytest.mark.alone
@each(
    "is_null",
    (spec("take.empty", DLPACK, "An array without elements has a shape."), False),
    (spec("take.empty-null", DLPACK, "Its data should be null."), True),
)
def test_an_empty_tensor_is_taken(adapter, is_null):
    foreign = foreign_of(adapter, shape=(0, 4))
    if is_null:
        foreign.tensor.data = None
    assert adapter.to_bytes(take(adapter, foreign)) == b""


@each(
    "flags",
    (spec("take.read-only", DLPACK, "What is marked may not be written."), READ_ONLY),
    (convention("take.writable", DLPACK, "What is not marked may be written."), 0),
)
def test_read_only_tensors_alone_stay_read_only(adapter, flags):
    foreign = foreign_of(adapter)
    foreign.managed.flags = flags
    assert bool(adapter.is_readonly(take(adapter, foreign))) == bool(flags)


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


@spec("take.position", DLPACK, "The array is on the tensor's device.")
def test_what_is_taken_is_of_the_device_in_its_position(adapter):
    for position, queue in enumerate(adapter.queues()):
        foreign = foreign_of(adapter, queue=queue)
        foreign.tensor.device_id = position
        array = take(adapter, foreign)
        if not hasattr(array, "__dlpack_device__"):
            raise NotSupportedError("its arrays have no __dlpack_device__")
        assert array.__dlpack_device__()[1] == position


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
    foreign = foreign_of(adapter, np.ones(1 << 20, "f4"))
    assert growth(lambda: take(adapter, foreign, copy=True), 32) < 64 << 20


@pytest.mark.alone
@spec("release.null-deleter", DLPACK, "A null deleter means that there is nothing to do.")
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
    except Exception:
        producer.capsule = None
    else:
        raise NotSupportedError("it takes elements of every width")
    gc.collect()
    assert producer.calls
    assert foreign.deletions == len(producer.calls)


@pytest.mark.alone
@convention("release.threads", PYTHON, "Threads may take arrays.")
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


@pytest.mark.alone
@convention("release.exit", PYTHON, "An array may live until the interpreter ends.")
def test_the_interpreter_may_end_with_what_was_taken(adapter):
    _Globals.left = take(adapter, foreign_of(adapter))
