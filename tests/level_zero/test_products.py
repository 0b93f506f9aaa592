# SPDX-License-Identifier: Apache-2.0
"""Other GPUs than Ponte Vecchio: devices are listed, memory is allocated and asked about."""

from __future__ import annotations

from typing import Any

import dpctl
import numpy as np
import usm_dlpack
from refusals import refused
from simulated import offered, output_of, usm
from usm_dlpack import from_dlpack, to_dlpack_tensor, validate


def test_it_is_listed_with_its_id(devices: list[Any]) -> None:
    (device,) = devices
    assert usm_dlpack.device_id(device) == 0
    assert usm_dlpack.root_device(0) == device
    printed = output_of("import sys, usm_dlpack.__main__ as m; sys.exit(m.main(['devices']))")
    assert device.name in printed


def test_memory_of_each_kind_is_exported_and_imported(devices: list[Any], usm_type: str) -> None:
    memory = usm(usm_type, 1000, dpctl.SyclQueue(devices[0]))
    tensor = to_dlpack_tensor(memory, dtype="f4", shape=(10, 25))
    proof = validate(tensor)
    assert (proof.usm_type, proof.device_id, proof.nbytes) == (usm_type, 0, 1000)
    assert proof.sycl_device == devices[0]
    assert from_dlpack(tensor).data == memory._pointer


def test_memory_that_is_no_usm_is_refused() -> None:
    array = np.zeros(48, np.uint8)
    with refused("pointer_unknown", "data", binding=True):
        validate(offered(array.ctypes.data, 0))
