# SPDX-License-Identifier: Apache-2.0
"""from_dlpack with `device` reads USM that only its producer can reach through the host."""

from collections.abc import Callable
from typing import Any

import dpctl
import numpy as np
import pytest
from capsules import NEWEST, ForeignArray, ForeignTensor, package_queue
from memory_sources import address_of, allocate, kept, new_queue
from pending_work import VALUES, answer_behind
from refusals import refused
from usm_dlpack import (
    UsmBindingError,
    empty,
    from_dlpack,
    root_device,
    validate,
)

HERE = (14, 0)
BYTES = np.arange(48, dtype=np.uint8).view(np.float32).reshape(3, 4)


class CreationError(Exception):
    """What dpctl and dpnp raise, which is no BufferError."""


class ContextArray(ForeignArray):
    """An array in dpctl memory of any context, which its producer copies to the host.

    ``export`` gives what it exports as USM, and may raise; so may ``export_host``.
    """

    def __init__(self, owner: Any, export: Callable[[Any], Any]) -> None:
        super().__init__(ForeignTensor(address_of(owner)))
        self.owner, self.export, self.export_host = owner, export, lambda x: x
        self.sycl_queue = owner.sycl_queue
        interface = owner.__sycl_usm_array_interface__
        self.__sycl_usm_array_interface__ = interface | {"shape": (3, 4), "typestr": "<f4"}

    def __dlpack__(self, **keywords: Any) -> Any:
        capsule = super().__dlpack__(**keywords)
        if keywords.get("dl_device") != (1, 0):
            return self.export(capsule)
        values = np.frombuffer(self.owner.copy_to_host(), np.float32).reshape(3, 4)
        return self.export_host(values.__dlpack__(max_version=keywords["max_version"]))


def refuse(capsule: Any) -> Any:
    raise CreationError("USM of another context")


def refuse_host(capsule: Any) -> Any:
    raise LookupError("no host memory")


def interrupt(capsule: Any) -> Any:
    raise KeyboardInterrupt


EXPORTS: dict[str, Callable[[Any], Any]] = {"it refuses": refuse, "we refuse": lambda x: x}


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("place", ["another context", "an opencl sub-device"])
def test_usm_that_only_its_producer_reaches_is_copied_through_the_host(
    foreign_queue, place, export, usm_type
):
    queue, elsewhere = new_queue(), foreign_queue
    if place != "another context":
        elsewhere = kept(dpctl.SyclQueue(root_device(0).create_sub_devices(partition=1)[0]))
    for copy, device in ((None, HERE), (True, queue), (np.True_, root_device(0))):
        array = ContextArray(allocate(usm_type, 48, elsewhere), EXPORTS[export])
        made = from_dlpack(array, device=device, copy=copy)
        assert array.asked[1:] == [{"max_version": NEWEST, "dl_device": (1, 0)}]
        assert (made.device, made.usm_type, validate(made).usm_type) == (HERE, "device", "device")
        assert made.sycl_queue == (queue if device is queue else package_queue())
        assert made.numpy().tobytes() == BYTES.tobytes()


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize(
    "keywords", [{}, {"copy": True}, {"device": HERE, "copy": False}, {"usm_type": "host"}], ids=str
)
def test_without_a_device_or_a_copy_the_refusal_stands(foreign_queue, export, keywords):
    array = ContextArray(allocate("device", 48, foreign_queue), EXPORTS[export])
    with pytest.raises(CreationError if export == "it refuses" else BufferError):
        from_dlpack(array, **keywords)
    assert len(array.asked) == 1


def test_an_error_of_a_producer_whose_memory_is_within_reach_is_raised(queue):
    array = ContextArray(allocate("device", 48, queue), refuse)
    for call in (lambda: from_dlpack(array, device=queue), lambda: empty((3, 4)).copy_from(array)):
        array.asked.clear()
        with pytest.raises(CreationError):
            call()
        assert len(array.asked) == 1


def test_the_queue_of_an_array_says_its_context_too(foreign_queue):
    array = ContextArray(allocate("device", 48, foreign_queue), refuse)
    del array.__sycl_usm_array_interface__
    assert from_dlpack(array, device=HERE).numpy().tobytes() == BYTES.tobytes()
    made = empty((3, 4))
    made.copy_from(array)
    assert made.numpy().tobytes() == BYTES.tobytes()


@pytest.mark.parametrize("interface", [{}, "text", {"syclobj": 3}, {"syclobj": "nosuch"}], ids=str)
def test_nonsense_in_an_interface_does_not_hide_the_error_of_the_producer(queue, interface):
    array = ContextArray(allocate("device", 48, queue), refuse)
    del array.sycl_queue
    array.__sycl_usm_array_interface__ = interface
    with pytest.raises(CreationError):
        from_dlpack(array, device=HERE)


def give(capsule: Any) -> Any:
    return capsule


@pytest.mark.parametrize(
    ("export", "export_host", "raised", "exports"),
    [
        (refuse, refuse_host, CreationError, 2),  # the first refusal
        (give, refuse_host, UsmBindingError, 2),
        (interrupt, give, KeyboardInterrupt, 1),
        (refuse, interrupt, KeyboardInterrupt, 2),
        (give, lambda _: ForeignTensor(4096).capsule(), UsmBindingError, 2),  # not for the host
    ],
)
def test_what_is_raised_if_the_host_is_refused_too(
    foreign_queue, export, export_host, raised, exports
):
    array = ContextArray(allocate("device", 48, foreign_queue), export)
    array.export_host = export_host
    with pytest.raises(raised):
        from_dlpack(array, device=HERE)
    assert len(array.asked) == exports


def test_other_refusals_are_not_answered_by_asking_again(memory):
    array = ContextArray(memory, EXPORTS["we refuse"])
    array.foreign.tensor.device_id = 9
    with refused("no_device", "device.device_id", found="9"):
        from_dlpack(array, device=HERE)
    on_host = ForeignArray(ForeignTensor(BYTES.ctypes.data), device=(1, 0))
    on_host.foreign.capsule = lambda: refuse(None)
    with pytest.raises(CreationError):
        from_dlpack(on_host, device=HERE)
    assert len(array.asked) == len(on_host.asked) == 1


@pytest.mark.parametrize(
    ("error", "raised"), [(LookupError, CreationError), (KeyboardInterrupt, KeyboardInterrupt)]
)
def test_an_array_that_does_not_say_where_it_is_keeps_its_refusal(error, raised):
    class Nowhere:
        def __dlpack__(self, **keywords):
            raise CreationError

        @property
        def __sycl_usm_array_interface__(self):
            raise error

    with pytest.raises(raised):
        from_dlpack(Nowhere(), device=HERE)


def test_it_waits_for_the_queue_of_the_array_before_the_producer_copies(foreign_queue, start):
    pending = start(foreign_queue)
    array = ContextArray(pending.memory, refuse)
    taken = answer_behind(pending, lambda: from_dlpack(array, device=HERE))
    assert taken.numpy().view("i4").ravel().tolist() == VALUES
