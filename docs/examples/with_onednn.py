# SPDX-License-Identifier: Apache-2.0
"""oneDNN on arrays of dpnp: docs/onednn.md."""

import dpnp
import numpy as np
import onednn_ops
import usm_dlpack

a = dpnp.reshape(dpnp.arange(12, dtype="float32"), (3, 4))
b = dpnp.ones((5, 4), dtype="float32").T  # a view: Fortran order
product = onednn_ops.matmul(a, b)  # behind what dpnp's queue has so far; nobody waits
# What dpnp's queue gets from now on is behind the primitive.
handed = usm_dlpack.from_dlpack(product, device=a.sycl_queue)
doubled = 2 * dpnp.from_dlpack(handed)  # no copy
assert np.array_equal(dpnp.asnumpy(doubled), 2 * dpnp.asnumpy(a) @ np.ones((4, 5)))

try:
    onednn_ops.matmul(a[::-1], b)
except usm_dlpack.ConversionError as error:
    print(error)
