# SPDX-License-Identifier: Apache-2.0
"""What docs/index.md shows: eight lines from NumPy to another library and back."""

import dpctl
import numpy as np
import tvm_ffi
import usm_dlpack

queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
x = usm_dlpack.from_dlpack(np.ones(6, "float32"), device=queue)  # a copy in device USM
there = tvm_ffi.from_dlpack(x)  # another library; no copy
back = usm_dlpack.from_dlpack(there, device=queue)  # validated, then taken; no copy

print(back.usm_type, back.data == x.data)
