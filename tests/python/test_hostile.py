# SPDX-License-Identifier: Apache-2.0
"""Objects that lie about their types, names and methods, and capsules that others use too."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import dpctl
import pytest
import usm_dlpack
from capsules import ForeignArray, ForeignTensor, OldArray, call_deleter, consume, name_of
from memory_sources import address_of
from refusals import refused, wrong_argument
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, to_dlpack_tensor, validate


def test_a_method_of_a_stranger_is_refused(memory):
    # The allocation is of a compiled class too, so that it looks like a tensor from outside.
    for stranger in (42, object(), None, validate(to_dlpack_tensor(memory))):
        with pytest.raises(TypeError):
            DLPackTensor.__dlpack__(stranger)
        with pytest.raises(TypeError):
            DLPackTensor.copy_from(stranger, bytes(96))


@pytest.mark.parametrize("kind", [dpctl.SyclQueue, dpctl.SyclDevice, dpctl.SyclContext])
def test_an_object_that_claims_to_be_dpctls_is_not_believed(memory, kind):
    class Liar:
        __class__ = property(lambda self: kind)

        def addressof_ref(self):
            return 8

    for act in (
        lambda: to_dlpack_tensor(memory, queue=Liar()),
        lambda: usm_dlpack.device_id(Liar()),
    ):
        with pytest.raises(TypeError, match="found an object of type Liar"):
            act()


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


# What a producer does with its capsule before it gives it.
DEEDS: dict[str, Callable[[Any], Any]] = {
    "look": validate,
    "take": lambda capsule: from_dlpack(OldArray(capsule)),
    "consume": consume,
}


@pytest.mark.parametrize("call", [from_dlpack, validate])
@pytest.mark.parametrize("deed", DEEDS)
def test_a_capsule_that_its_producer_uses_before_is_proved_or_refused(memory, deed, call):
    foreign = ForeignTensor(address_of(memory))

    class Array:
        def __dlpack__(self):
            self.given = foreign.capsule()
            self.used = DEEDS[deed](self.given)
            return self.given

    array = Array()
    if deed == "look":
        assert call(array).data == address_of(memory)
    else:
        with refused("capsule_unusable", "capsule", found='"used_dltensor_versioned"'):
            call(array)
        gc.collect()
        assert foreign.deletions == 0
    if deed == "consume":
        call_deleter(array.used)
    del array
    gc.collect()
    assert foreign.deletions == 1


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


@pytest.mark.parametrize("address", [1, 64, 4096, 2**47, 2**63, 2**64 - 4096, id(DEEDS)], ids=hex)
def test_a_pointer_to_no_usm_is_not_followed(address):
    capsule = ForeignTensor(address, shape=(1,), dtype=(1, 8, 1)).capsule()
    with refused("pointer_unknown", "data"):
        validate(capsule)
    with refused("pointer_unknown", "data"):
        from_dlpack(OldArray(capsule))


def test_a_tensor_without_a_deleter_is_let_go_in_silence(memory):
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.deleter = None
    assert from_dlpack(ForeignArray(foreign)).data == address_of(memory)
    assert from_dlpack(ForeignArray(foreign), copy=True).shape == (3, 4)
