# SPDX-License-Identifier: Apache-2.0
"""Root devices on one platform: two cards, four tiles of two cards, or three devices of PoCL."""

from typing import Any

import dpctl
import numpy as np
import usm_dlpack
from capsules import OldArray
from offers import offered, usm
from refusals import refused
from usm_dlpack import from_dlpack, to_dlpack_tensor, validate


def test_memory_goes_with_its_own_root_and_host_memory_with_any(
    devices: list[Any], usm_type: str
) -> None:
    assert len(devices) > 1
    assert len({device.sycl_platform for device in devices}) == 1
    for device_id, device in enumerate(devices):
        assert usm_dlpack.root_device(device_id) == device
        memory = usm(usm_type, 1 << 20, dpctl.SyclQueue(device))
        tensor = to_dlpack_tensor(memory)
        proof = validate(tensor)
        assert (proof.usm_type, proof.nbytes) == (usm_type, 1 << 20)
        assert from_dlpack(tensor).data == memory._pointer
        others = [offered(memory._pointer, n) for n in range(len(devices)) if n != device_id]
        capsule = tensor.__dlpack__(stream=dpctl.SyclQueue(devices[device_id - 1]))
        assert from_dlpack(capsule).sycl_queue == tensor.sycl_queue  # not one of another device
        assert tensor.__dlpack_device__() == to_dlpack_tensor(tensor).device == (14, device_id)
        if usm_type == "host":  # of all devices of the platform; that of the queue is named
            assert {validate(other).usm_type for other in others} == {"host"}
            continue
        assert proof.sycl_device == device
        assert proof.device_proof == "backend"
        for other in others:
            with refused("device_mismatch", "device.device_id"):
                validate(other)


def test_copies_reach_every_root_and_come_back(devices: list[Any], usm_type: str) -> None:
    # Tiles of one card are peers: one call copies. Others are none, and such a call would crash.
    if devices[0].backend == dpctl.backend_type.level_zero:  # on OpenCL the question would crash
        assert devices[0].can_access_peer(devices[1]) is (len(devices) == 4)
        assert not devices[0].can_access_peer(devices[-1])
    values = np.arange(1000, dtype=np.float32)
    source = from_dlpack(values, device=(14, 0), usm_type=usm_type)
    for device_id in range(1, len(devices)):
        there = from_dlpack(source, device=(14, device_id))
        assert (there.device, there.usm_type) == ((14, device_id), usm_type)
        assert np.array_equal(np.from_dlpack(there, device="cpu"), values)
        capsule = there.__dlpack__(dl_device=(14, 0), max_version=(1, 3))
        back = from_dlpack(OldArray(capsule))
        assert np.array_equal(np.from_dlpack(back, device="cpu"), values)
