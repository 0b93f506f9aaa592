# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/dpctl.md shows of dpctl.tensor, which dpctl has up to 0.21."""

# [begin exchange]
import dpctl.tensor as dpt
import usm_dlpack

a = dpt.reshape(dpt.arange(24, dtype="float32"), (4, 6))
tensor = usm_dlpack.from_dlpack(a[:, ::2])  # no copy, and it knows the queue of `a`
assert (tensor.strides, tensor.sycl_queue) == ((6, 2), a.sycl_queue)

there = dpt.from_dlpack(tensor)  # no copy: behind the work of the same queue
there += 1
print(dpt.asnumpy(a)[0])
# [end exchange]
