# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/dpctl.md shows: arrays of dpnp, both ways."""

# [begin exchange]
import dpctl
import dpnp
import usm_dlpack

a = dpnp.reshape(dpnp.arange(24, dtype="float32"), (4, 6))
tensor = usm_dlpack.from_dlpack(a[:, ::2])  # no copy, and it knows the queue of `a`
assert (tensor.strides, tensor.sycl_queue) == ((6, 2), a.sycl_queue)

there = dpnp.from_dlpack(tensor)  # no copy: behind the work of the same queue
there += 1
print(a[0])
# [end exchange]

# [begin another queue]
queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
mine = usm_dlpack.from_dlpack(a, device=queue)  # `queue` waits for the work of `a`
# ... work of `queue` on `mine` ...
handed = usm_dlpack.from_dlpack(mine, device=a.sycl_queue)  # and dpnp's queue for that
doubled = 2 * dpnp.from_dlpack(handed)
# [end another queue]
assert mine.sycl_queue == queue
assert dpnp.asnumpy(doubled)[0].tolist() == [2, 2, 6, 6, 10, 10]

# [begin another context]
own_context = dpctl.SyclContext([usm_dlpack.root_device(0)])
apart = dpnp.arange(4, sycl_queue=dpctl.SyclQueue(own_context, usm_dlpack.root_device(0)))
rescued = usm_dlpack.from_dlpack(apart, device=queue)
assert dpnp.from_dlpack(rescued).sum() == 6
# [end another context]

# [begin reshape]
rows = dpnp.from_dlpack(tensor)[1:, ::-1]  # no copy
sliced = usm_dlpack.from_dlpack(dpnp.reshape(rows, -1), order="C")
assert (sliced.shape, sliced.strides) == ((9,), (1,))
# [end reshape]
assert sliced.numpy().tolist() == dpnp.asnumpy(a[1:, 4::-2]).ravel().tolist()
