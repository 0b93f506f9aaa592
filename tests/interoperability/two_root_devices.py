# SPDX-License-Identifier: Apache-2.0
"""Exchange arrays with a peer in a process that has two root devices.

The second one is a copy of the CPU driver, which the OpenCL loader takes as another platform. Both
must be named before anything asks for devices, so this is a program, which the tests run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "devices"))

from driver_copies import copy_driver

DRIVER = Path(sys.prefix, "lib", "libintelocl.so")
SECOND = copy_driver(DRIVER, Path(sys.prefix, "driver_copies", "second"), siblings=True)
os.environ["OCL_ICD_FILENAMES"] = f"{DRIVER}:{SECOND}"

import dpctl  # noqa: E402
import dpctl.memory  # noqa: E402
import numpy as np  # noqa: E402
import usm_dlpack  # noqa: E402
from peers import Peer, load_peer  # noqa: E402
from usm_here import USM_TYPES, HeldCapsule, allocate, described, read  # noqa: E402

VALUES = np.arange(12, dtype="i4")


def exchange_on(peer: Peer, device_id: int, device: dpctl.SyclDevice) -> list[object]:
    """Exchange in both directions on one device; return the arrays."""
    queue = dpctl.SyclQueue(device)
    kept: list[object] = []
    for usm_type in USM_TYPES:
        theirs = peer.from_numpy(VALUES, usm_type=usm_type, sycl_queue=queue)
        assert theirs.__dlpack_device__() == (14, device_id)
        for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor):
            ours = take(theirs)
            assert ours.device == (14, device_id)
            assert ours.sycl_device == device
            assert ours.data == peer.address(theirs)
            assert (read(ours) == VALUES).all()
        memory = allocate(VALUES, usm_type, queue)
        ours = usm_dlpack.to_dlpack_tensor(memory, dtype="i4", queue=queue)
        assert ours.device == (14, device_id)
        back = peer.namespace.from_dlpack(ours)
        assert back.sycl_device == device
        assert peer.address(back) == ours.data
        assert (peer.to_numpy(back) == VALUES).all()
        kept += [theirs, ours, back]
    return kept


def refused_code(take: Callable[..., object], *arguments: object, **keywords: object) -> str:
    """Return the code of the refusal that a call ends in."""
    try:
        take(*arguments, **keywords)
    except usm_dlpack.ConversionError as refused:
        return refused.code
    return "not refused"


def refuse_the_other_device(peer: Peer, device: dpctl.SyclDevice, other_id: int) -> None:
    """See that neither a capsule nor a queue can take memory to a device that it is not of."""
    theirs = peer.from_numpy(VALUES, sycl_queue=dpctl.SyclQueue(device))
    for max_version in (None, (1, 0)):
        capsule = theirs.__dlpack__(max_version=max_version)
        described(capsule).device_id = other_id
        for take, argument in (
            (usm_dlpack.validate, capsule),
            (usm_dlpack.from_dlpack, HeldCapsule(capsule)),
        ):
            assert refused_code(take, argument) == "device_mismatch"
        described(capsule).device_id = 2
        assert refused_code(usm_dlpack.validate, capsule) == "device_id_out_of_range"
    other = dpctl.SyclQueue(usm_dlpack.root_device(other_id))
    code = refused_code(usm_dlpack.to_dlpack_tensor, theirs, queue=other)
    assert code == "queue_device_mismatch"


def main() -> list[object]:
    """Run all of it with the peer that the command line names; return what is alive at exit."""
    peer = load_peer(sys.argv[1])
    devices = dpctl.get_devices()
    assert len(devices) == 2
    kept = []
    for device_id, device in enumerate(devices):
        assert usm_dlpack.device_id(device) == device_id
        assert usm_dlpack.root_device(device_id) == device
        kept += exchange_on(peer, device_id, device)
        refuse_the_other_device(peer, device, 1 - device_id)
    print(len(devices), "root devices")
    return kept


# Interpreter exit has to free what is still exchanged.
ALIVE = main()
