# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/nanobind.md shows: calls of the extension, which a test builds."""

# [begin calls]
import dpctl
import guide_extension
import usm_dlpack

queue = dpctl.SyclQueue(usm_dlpack.root_device(0), property="in_order")
made = guide_extension.filled(queue, 3, 1.5)  # a DLPackTensor
event = guide_extension.fill(queue, made, 2)
print(made.numpy())  # waits for `made.sycl_queue`, which is `queue`

matrix = usm_dlpack.to_dlpack_tensor(made, shape=(3, 1))
try:
    guide_extension.fill(queue, matrix, 2)
except usm_dlpack.ArgumentError as error:
    print(error)
# [end calls]
