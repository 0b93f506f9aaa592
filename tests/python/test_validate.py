# SPDX-License-Identifier: Apache-2.0
"""validate: what is proved of arrays and capsules, and what a consumer may require."""

import gc
import weakref

import pytest
from capsules import IS_COPIED, READ_ONLY, ForeignArray, ForeignTensor, dpctl_queue, name_of
from memory_sources import TypedArray, address_of, allocate, check_bounds
from refusals import refused
from usm_dlpack import UsmAllocation, to_dlpack_tensor, validate


def test_everything_that_was_proved_is_said(usm_type, queue):
    owner = allocate(usm_type, 64, queue)
    tensor = to_dlpack_tensor(owner, shape=(2, 3), strides=(-6, 2), dtype="f4", byte_offset=32)
    proof = validate(tensor)
    assert isinstance(proof, UsmAllocation)
    assert proof.data == address_of(owner) + 32
    assert proof.usm_type == usm_type
    assert proof.device_id == 0
    assert proof.sycl_device == proof.root_device == queue.sycl_device
    assert proof.sycl_context == queue.sycl_context
    assert proof.readonly is False
    assert proof.nbytes == (6 + 4 + 1) * 4
    assert proof.overlapping is False
    check_bounds(proof, owner)
    assert proof.device_proof == ("none" if usm_type == "host" else "backend")


def test_an_array_is_asked_for_one_capsule_that_is_let_go(memory):
    array = ForeignArray(ForeignTensor(address_of(memory)))
    foreign = array.foreign
    assert validate(array).data == address_of(memory)
    assert array.asked == [{"stream": dpctl_queue(), "max_version": (1, 3)}]
    del array
    assert foreign.deletions == 1


@pytest.mark.parametrize("legacy", [False, True])
def test_a_capsule_is_never_consumed(memory, legacy):
    foreign = ForeignTensor(address_of(memory), legacy=legacy)
    capsule = foreign.capsule()
    for _ in range(3):
        assert validate(capsule).data == address_of(memory)
        assert name_of(capsule) == foreign.name
    foreign.tensor.device_id = 9
    with refused("no_device", "device.device_id", found="9"):
        validate(capsule)
    assert name_of(capsule) == foreign.name
    assert foreign.deletions == 0
    del capsule
    gc.collect()  # the refusal above holds the frames that it came through
    assert foreign.deletions == 1


@pytest.mark.parametrize("flags", [0, READ_ONLY, IS_COPIED])
def test_read_only_memory_is_said_and_no_other_flag_says_it(memory, flags):
    foreign = ForeignTensor(address_of(memory))
    foreign.managed.flags = flags
    assert validate(foreign.capsule(), readonly=True).readonly is (flags == READ_ONLY)


def test_a_proof_keeps_nothing_alive(memory):
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    tensor = to_dlpack_tensor(owner)
    proof = validate(tensor)
    del owner, tensor
    gc.collect()
    assert gone() is None
    assert proof.data == address_of(memory)


def test_proofs_are_made_by_validate_only_and_do_not_change(memory):
    with pytest.raises(TypeError):
        UsmAllocation()
    with pytest.raises(TypeError):
        type("Derived", (UsmAllocation,), {})
    proof = validate(to_dlpack_tensor(memory))
    names = [name for name in dir(UsmAllocation) if not name.startswith("_")]
    assert len(names) >= 13
    for name in names:
        with pytest.raises(AttributeError):
            setattr(proof, name, getattr(proof, name))


def test_repr_says_what_was_proved(unpooled):
    proof = validate(to_dlpack_tensor(unpooled, shape=12, dtype="f4"))
    assert repr(proof) == (
        f"UsmAllocation(usm_type='shared', device_id=0, nbytes=48, size=48, "
        f"bounds={proof.bounds!r}, device_proof='backend')"
    )
