# SPDX-License-Identifier: Apache-2.0
"""Memory that is not what it is said to be, and objects that lie about what they are."""

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import dpctl
import extension_under_test
import pytest
import usm_dlpack
from capsules import ForeignArray, ForeignTensor, call_deleter, consume, name_of
from memory_sources import address_of, allocate
from refusals import refused, wrong_argument
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, to_dlpack_tensor, validate

WAYS: dict[str, Callable[..., Any]] = {
    "from_dlpack": from_dlpack,
    "from_dlpack with a copy": partial(from_dlpack, copy=True),
    "from_dlpack for a device": partial(from_dlpack, device=(14, 0), copy=False),
    "validate": validate,
    "an owned view of an extension": lambda x: extension_under_test.load().to_owned(x),
}


@pytest.mark.parametrize("take", WAYS.values(), ids=WAYS)
def test_memory_of_another_context_is_refused_where_its_array_says_the_queue(
    foreign_queue, usm_type, take
):
    """By the driver, which does not know it, or where that knows all contexts, by the queue."""
    hidden = allocate(usm_type, 48, foreign_queue)
    foreign = ForeignTensor(address_of(hidden), shape=(12,))
    array: Any = ForeignArray(foreign)
    array.sycl_queue = foreign_queue
    code, field = ("context_not_default", "context")
    if foreign_queue.backend == dpctl.backend_type.opencl:
        code, field = ("pointer_unknown", "data")
    with refused(code, field, expected="the default context"):
        take(array)
    assert foreign.deletions == 0


@pytest.mark.parametrize("address", [1, 64, 4096, 2**47, 2**63, 2**64 - 4096, id(WAYS)], ids=hex)
def test_a_pointer_to_no_usm_is_not_followed(address):
    capsule = ForeignTensor(address, shape=(1,), dtype=(1, 8, 1)).capsule()
    for take in (validate, from_dlpack):
        with refused("pointer_unknown", "data"):
            take(capsule)


# --- objects that lie about their types


def test_a_method_of_a_stranger_is_refused(memory):
    # The allocation is of a compiled class too, so that it looks like a tensor from outside.
    for stranger in (42, object(), None, validate(to_dlpack_tensor(memory))):
        for method, arguments in ((DLPackTensor.__dlpack__, ()), (DLPackTensor.copy_from, (b"",))):
            with pytest.raises(TypeError):
                method(stranger, *arguments)


@pytest.mark.parametrize("kind", [dpctl.SyclQueue, dpctl.SyclDevice, dpctl.SyclContext])
def test_an_object_that_claims_to_be_dpctls_is_not_believed(memory, kind):
    class Liar:
        __class__ = property(lambda self: kind)

        def addressof_ref(self):
            return 8

    for act in (usm_dlpack.device_id, lambda liar: to_dlpack_tensor(memory, queue=liar)):
        with pytest.raises(TypeError, match="found an object of type Liar"):
            act(Liar())


def test_a_subclass_cannot_change_the_address(memory):
    class Queue(dpctl.SyclQueue):
        def addressof_ref(self):
            return 8

    assert to_dlpack_tensor(memory, queue=Queue()).data == address_of(memory)


def test_a_type_whose_name_cannot_be_printed_is_named_all_the_same():
    class Nameless(type):
        __name__ = property(lambda cls: "\udc80")

    class Thing(metaclass=Nameless):
        def __dlpack__(self, **keywords):
            return self

    with wrong_argument(TypeError, "device", "Thing"):
        usm_dlpack.device_id(Thing())
    with refused("capsule_unusable", "capsule", found="Thing"):
        from_dlpack(Thing())


def test_a_finalizer_may_take_the_capsule_before_it_is_proved(memory):
    """Until Python 3.12, the garbage collector runs it where `from_dlpack` makes its tensor."""
    foreign, taken, thresholds = ForeignTensor(address_of(memory)), [], gc.get_threshold()
    # nanobind makes a tensor of the remains of another one, without the garbage collector.
    tensors = [to_dlpack_tensor(memory) for _ in range(100)]

    class Array:
        def __dlpack__(self):
            self.given = foreign.capsule()
            gc.callbacks.append(self.take)
            gc.set_threshold(1)
            return self.given

        def take(self, phase, _):
            if name_of(self.given) == foreign.name:
                taken.append(consume(self.given))

    array = Array()
    try:
        made: Any = from_dlpack(array)
    except ConversionError as error:
        made = error.code
    gc.callbacks.remove(array.take)
    gc.set_threshold(*thresholds)
    assert bool(taken) is (sys.version_info < (3, 12))
    if taken:
        assert (made, foreign.deletions) == ("capsule_unusable", 0)
        call_deleter(foreign.managed)
    del made, tensors
    assert foreign.deletions == 1
