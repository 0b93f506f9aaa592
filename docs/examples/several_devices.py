# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/devices.md shows; it needs two root devices."""

# [begin ids]
import dpctl
import numpy as np
import usm_dlpack

for device in dpctl.get_devices():
    print(usm_dlpack.device_id(device), device.get_filter_string())
# [end ids]

# [begin place]
first, second = usm_dlpack.root_device(0), usm_dlpack.root_device(1)
x = usm_dlpack.from_dlpack(np.arange(6.0), device=second)  # a copy on the second device
assert x.device == (14, 1)
assert usm_dlpack.device_id(x.sycl_device) == 1

y = usm_dlpack.from_dlpack(x, device=first)  # a copy on the first
same = usm_dlpack.from_dlpack(x, device=second)  # no copy: it is there
assert (y.device, same.data) == ((14, 0), x.data)
# [end place]
