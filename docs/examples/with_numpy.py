# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/libraries.md shows: host memory to USM and back."""

# [begin to usm]
import dpctl
import numpy as np
import usm_dlpack

queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
values = np.arange(24, dtype="float32").reshape(4, 6)
on_device = usm_dlpack.from_dlpack(values, device=queue)  # a copy in device USM
shared = usm_dlpack.from_dlpack(values, device=queue, usm_type="shared")  # one in shared USM
# [end to usm]

# [begin to numpy]
copy = on_device.numpy()  # always a copy, compact and writable
same = np.asarray(shared.host_view())  # no copy: host and shared USM
assert same.ctypes.data == shared.data
another = np.from_dlpack(on_device, device="cpu")  # a copy, because it is device USM
# [end to numpy]

# [begin write]
on_device.copy_from(values + 1)  # complete when it returns
column = usm_dlpack.to_dlpack_tensor(on_device, shape=4, strides=(6,))
column.copy_from(np.zeros(4, dtype="float32"))
# [end write]
assert on_device.numpy()[1].tolist() == [0, 8, 9, 10, 11, 12]
assert np.array_equal(copy, values)
assert np.array_equal(another, values)
