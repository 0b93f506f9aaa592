# SPDX-License-Identifier: Apache-2.0
"""Objects that lie, and threads that meet: nothing is dereferenced, hung, freed twice or lost."""

from __future__ import annotations

import gc
from typing import Any

import dpctl
import pytest
import usm_dlpack
from capsules import ForeignArray, ForeignTensor
from memory_sources import address_of, allocate
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate


def test_a_method_of_a_stranger_or_of_a_blank_tensor_is_refused(memory: Any) -> None:
    # The allocation is of a compiled class too, so that it looks like a tensor from outside.
    for stranger in (42, object(), None, validate(to_dlpack_tensor(memory))):
        with pytest.raises(TypeError):
            DLPackTensor.__dlpack__(stranger)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            DLPackTensor.copy_from(stranger, bytes(96))  # type: ignore[arg-type]
    blank = DLPackTensor.__new__(DLPackTensor)
    with refused("tensor_released", "data"):
        blank.__dlpack__()


@pytest.mark.parametrize("kind", [dpctl.SyclQueue, dpctl.SyclDevice, dpctl.SyclContext])
def test_an_object_that_claims_to_be_dpctls_is_not_believed(memory: Any, kind: type) -> None:
    class Liar:
        __class__ = property(lambda self: kind)  # type: ignore[assignment]

        def addressof_ref(self) -> int:
            return 8

    for act in (
        lambda: to_dlpack_tensor(memory, queue=Liar()),
        lambda: usm_dlpack.device_id(Liar()),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="found an object of type Liar"):
            act()


def test_a_subclass_cannot_change_the_address(memory: Any) -> None:
    class Queue(dpctl.SyclQueue):  # type: ignore[misc]
        def addressof_ref(self) -> int:
            return 8

    assert to_dlpack_tensor(memory, queue=Queue()).data == address_of(memory)


def test_a_type_whose_name_cannot_be_printed_is_named_all_the_same() -> None:
    class Nameless(type):
        __name__ = property(lambda cls: "\udc80")  # type: ignore[assignment]

    class Thing(metaclass=Nameless):
        def __dlpack__(self, **keywords: Any) -> Any:
            return self

    with wrong_argument(TypeError, "device", "Thing"):
        usm_dlpack.device_id(Thing())  # type: ignore[arg-type]
    with refused("capsule_unusable", "capsule", found="Thing"):
        from_dlpack(Thing())


def test_a_copy_of_nothing_keeps_its_address_alive(queue: Any) -> None:
    owner = allocate("device", 64, queue)
    copied = from_dlpack(to_dlpack_tensor(owner, shape=(0, 4), dtype="f4"), copy=True)
    del owner
    gc.collect()
    assert validate(copied).usm_type == "device"


def test_keywords_are_those_of_the_method_that_is_there_now(memory: Any) -> None:
    class Odd(type):
        __hash__ = None  # type: ignore[assignment]

    class Unhashable(metaclass=Odd):
        def __dlpack__(self, *, max_version: Any = None) -> Any:
            return to_dlpack_tensor(memory).__dlpack__(max_version=max_version)

    class Replaced(ForeignArray):
        pass

    assert from_dlpack(Unhashable()).data == address_of(memory)
    array = Replaced(ForeignTensor(address_of(memory)))
    assert from_dlpack(array).data == address_of(memory)

    def old(self: Any) -> Any:
        return to_dlpack_tensor(memory).__dlpack__()

    Replaced.__dlpack__ = old  # type: ignore[assignment,method-assign]
    assert from_dlpack(array).data == address_of(memory)
