# SPDX-License-Identifier: Apache-2.0
"""Two root devices in one process: each array's engine is on its device, and no other is taken."""

from __future__ import annotations

from typing import Any

import dpctl
import dpctl.memory
import numpy as np
import onednn_ops
import usm_dlpack


def code_of(act: Any, *arguments: Any, **keywords: Any) -> str:
    """Return the code of the refusal that a call ends in."""
    try:
        act(*arguments, **keywords)
    except usm_dlpack.ConversionError as refused:
        return refused.code
    return "not refused"


def array_on(queue: dpctl.SyclQueue, values: Any) -> Any:
    """Return a tensor in device USM of a queue's device."""
    return usm_dlpack.from_dlpack(values, device=queue)


def main() -> list[Any]:
    """Run all of it; return what is alive at exit."""
    devices = dpctl.get_devices()
    queues = [dpctl.SyclQueue(device) for device in devices]
    values = np.arange(9, dtype="f4").reshape(3, 3)
    arrays = [array_on(queue, values) for queue in queues]
    kept = [*queues, *arrays]
    for i, (queue, x) in enumerate(zip(queues, arrays, strict=True)):
        said = onednn_ops.describe(x)
        assert said["device"] == devices[i] == usm_dlpack.root_device(i)
        assert (said["queue"], said["handle"]) == (queue, x.data)
        product = onednn_ops.matmul(x, x)
        assert product.device == (14, i)
        assert np.array_equal(product.numpy(), values @ values)
        other = arrays[1 - i]
        assert code_of(onednn_ops.matmul, x, other) == "device_not_accepted"
        assert code_of(onednn_ops.matmul, x, x, queue=queues[1 - i]) == "device_not_accepted"
        assert code_of(onednn_ops.matmul_into, x, x, other, queue=queue) == "device_not_accepted"
        kept.append(product)
    print(len(devices), "root devices")
    return kept


# Interpreter exit has to free what is still there.
ALIVE = main()
