# SPDX-License-Identifier: Apache-2.0
"""Three OpenCL devices of PoCL in one default context, alone or beside one of another platform.

PoCL names the context's first device for host USM, and cannot be asked which devices are peers.
"""

import ctypes
from typing import Any

import numpy as np
import pytest
from capsules import OldArray
from dpctl.memory import as_usm_memory
from dpctl.program import create_program_from_source
from memory_sources import allocate, new_queue
from offers import offered
from refusals import refused
from usm_dlpack import DLPackTensor, from_dlpack, root_device, to_dlpack_tensor, validate

VALUES = np.arange(1000, dtype=np.float32)


@pytest.fixture(scope="session")
def roots(devices: list[Any]) -> list[Any]:
    """Return the devices of PoCL, which come first."""
    made = [device for device in devices if "Portable" in device.sycl_platform.name]
    assert made == devices[:3]
    return made


@pytest.fixture(scope="session")
def queues(devices: list[Any]) -> list[Any]:
    return [new_queue(device) for device in devices]


def test_memory_goes_with_queues_of_its_device_and_host_memory_with_each(
    roots: list[Any], queues: list[Any], usm_type: str
) -> None:
    for owner in range(len(roots)):
        memory = allocate(usm_type, 48, queues[owner])
        for number, queue in enumerate(queues[: len(roots)]):
            if usm_type == "host" or number == owner:
                tensor = to_dlpack_tensor(memory, queue=queue)
                assert (tensor.device, tensor.sycl_device) == ((14, number), roots[number])
                assert validate(tensor).usm_type == usm_type
                continue
            there, here = f"a queue on device {owner}", f"one on device {number}"
            with refused("device_mismatch", "queue", expected=there, found=here):
                to_dlpack_tensor(memory, queue=queue)


def test_queues_and_ids_of_another_platform_are_refused(
    roots: list[Any], queues: list[Any], usm_type: str
) -> None:
    for owner, queue in enumerate(queues):
        memory = allocate(usm_type, 48, queue)
        for number in range(len(queues)):
            if (number < len(roots)) == (owner < len(roots)):
                continue
            with refused("device_mismatch", "queue", found=f"one on device {number}"):
                to_dlpack_tensor(memory, queue=queues[number])
            with refused("device_mismatch", "device.device_id", found=str(number)):
                validate(offered(memory._pointer, number))


def test_a_byte_beyond_the_memory_is_refused(queues: list[Any], usm_type: str) -> None:
    for number, queue in enumerate(queues):
        memory = allocate(usm_type, 48, queue)
        assert validate(offered(memory._pointer, number)).size == 48
        with refused(
            "out_of_bounds", "shape", expected="the 48 bytes", found="49 bytes from byte 0"
        ):
            validate(offered(memory._pointer, number, 49))


def test_copies_reach_every_device(queues: list[Any], usm_type: str) -> None:
    for start in range(len(queues)):
        source = from_dlpack(VALUES, device=(14, start), usm_type=usm_type)
        for end, queue in enumerate(queues):
            named = [(14, end), root_device(end), queue]
            made = [from_dlpack(source, device=name, copy=True) for name in named]
            made.append(from_dlpack(OldArray(source.__dlpack__(dl_device=(14, end), copy=True))))
            for tensor in made:
                assert (tensor.device, tensor.usm_type) == ((14, end), usm_type)
                assert np.array_equal(tensor.numpy(), VALUES)


def run_kernel(source: DLPackTensor, result: DLPackTensor, added: int) -> None:
    """Write ``2 * source + added`` on the result's device, and wait."""
    queue = new_queue(result.sycl_device)
    program = create_program_from_source(
        queue,
        """
        __kernel void scale(__global const float *source, __global float *result, int added) {
          const size_t i = get_global_id(0);
          result[i] = 2 * source[i] + added;
        }
        """,
    )
    arguments = [as_usm_memory(source), as_usm_memory(result), ctypes.c_int(added)]
    queue.submit_async(program.get_sycl_kernel("scale"), arguments, [VALUES.size]).wait()


def test_kernels_compute_on_the_device_that_a_tensor_names(
    queues: list[Any], usm_type: str
) -> None:
    for number, queue in enumerate(queues):
        source = from_dlpack(VALUES, device=queue, usm_type=usm_type)
        result = from_dlpack(np.zeros_like(VALUES), device=queue, usm_type=usm_type)
        run_kernel(source, result, number)
        assert np.array_equal(result.numpy(), 2 * VALUES + number)
