# SPDX-License-Identifier: Apache-2.0
"""An OpenCL GPU, the OpenCL CPU device and Level Zero in one process, as on a machine with a GPU.

The two drivers of the GPU lay device USM out from the same address, so an address alone does not
tell which of them it belongs to.
"""

from typing import Any

import dpctl
import pytest
import usm_dlpack
from offers import offered, usm
from refusals import refused
from usm_dlpack import to_dlpack_tensor, validate

OPENCL_GPU, OPENCL_CPU, LEVEL_ZERO = "opencl gpu", "opencl cpu", "level_zero gpu"


@pytest.fixture(scope="session")
def queues(devices: list[Any]) -> dict[str, Any]:
    made = {f"{d.backend.name} {d.device_type.name}": dpctl.SyclQueue(d) for d in devices}
    assert set(made) == {OPENCL_GPU, OPENCL_CPU, LEVEL_ZERO}
    return made


@pytest.fixture(scope="session")
def twins(queues: dict[str, Any]) -> dict[str, dict[int, Any]]:
    """Return memory of both drivers of the GPU at the same addresses, by driver and address."""
    kept = {
        name: {m._pointer: m for m in (usm("device", 1 << 20, queues[name]) for _ in range(8))}
        for name in (OPENCL_GPU, LEVEL_ZERO)
    }
    both = kept[OPENCL_GPU].keys() & kept[LEVEL_ZERO].keys()
    assert both  # otherwise the tests here would prove little
    return {name: {address: made[address] for address in both} for name, made in kept.items()}


def id_of(queue: Any) -> int:
    return usm_dlpack.device_id(queue.sycl_device)


def test_the_context_tells_whose_memory_it_is(queues: dict[str, Any], usm_type: str) -> None:
    kept = {name: usm(usm_type, 1 << 20, queue) for name, queue in queues.items()}
    for name, memory in kept.items():
        for keywords in ({}, {"queue": queues[name]}):
            tensor = to_dlpack_tensor(memory, **keywords)
            assert tensor.__dlpack_device__() == (14, id_of(queues[name]))
            proof = validate(tensor)
            assert (proof.usm_type, proof.sycl_device) == (usm_type, queues[name].sycl_device)


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_memory_of_another_platform_is_refused(queues: dict[str, Any], kind: str) -> None:
    for owner in queues.values():
        memory = usm(kind, 5 << 20, owner)
        for other in map(id_of, queues.values()):
            array = offered(memory._pointer, other)
            if other == id_of(owner):
                assert validate(array).usm_type == kind
            else:
                with refused("device_mismatch", "device.device_id", found=str(other)):
                    validate(array)


def test_memory_of_the_context_that_an_array_names_is_refused(queues: dict[str, Any]) -> None:
    for name, queue in queues.items():
        device = queue.sycl_device
        foreign = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        memory = usm("shared", 5 << 20, foreign)
        array = offered(memory._pointer, id_of(queue))
        array.sycl_queue = foreign
        # GPU drivers know the memory of all contexts of their platform.
        code = "pointer_unknown" if name == OPENCL_CPU else "context_not_default"
        for ask in (validate, usm_dlpack.from_dlpack):
            with pytest.raises(usm_dlpack.UsmBindingError) as error:
                ask(array)
            assert error.value.code == code


def test_the_queue_of_an_array_tells_which_driver_its_address_is_of(
    queues: dict[str, Any], twins: dict[str, dict[int, Any]]
) -> None:
    for owner, made in twins.items():
        true = id_of(queues[owner])
        for named in map(id_of, queues.values()):
            array = offered(next(iter(made)), named)
            array.sycl_queue = queues[owner]
            for ask in (validate, usm_dlpack.from_dlpack):
                if named == true:
                    assert ask(array).usm_type == "device"
                    continue
                expected = "0 or 2" if named == id_of(queues[OPENCL_CPU]) else f"{true} (the root"
                with refused("device_mismatch", "device.device_id", expected=expected):
                    ask(array)


def test_a_queue_of_another_driver_is_refused_though_it_knows_the_address(
    queues: dict[str, Any], twins: dict[str, dict[int, Any]]
) -> None:
    for owner, made in twins.items():
        expected = f"a queue on device {id_of(queues[owner])}, where the memory is"
        for queue in (queues[name] for name in queues if name != owner):
            with refused("device_mismatch", "queue", expected=expected):
                to_dlpack_tensor(next(iter(made.values())), queue=queue)
