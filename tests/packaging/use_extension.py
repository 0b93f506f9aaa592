# SPDX-License-Identifier: Apache-2.0
"""Uses the installed extension of tests/packaging/extension, at each depth that it stands at.

Each module is imported in a process of its own before anything else, so that nothing but its run
path leads it to libsycl.
"""

from __future__ import annotations

import subprocess
import sys

USE = """
from {module} import sum_of_column  # first: nothing has loaded libsycl

import dpctl.memory
import numpy
import usm_dlpack

memory = dpctl.memory.MemoryUSMShared(24, queue=dpctl.SyclQueue(usm_dlpack.root_device(0)))
memory.copy_from_host(numpy.arange(6, dtype=numpy.float32).view(numpy.uint8))
tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(2, 3), dtype="float32")
assert sum_of_column(tensor.__dlpack__(max_version=(1, 0)), 1) == 1 + 4

on_device = dpctl.memory.MemoryUSMDevice(24, queue=memory.sycl_queue)
tensor = usm_dlpack.to_dlpack_tensor(on_device, shape=(2, 3), dtype="float32")
try:
    sum_of_column(tensor.__dlpack__(max_version=(1, 0)), 1)
except (BufferError, ValueError) as refusal:  # ours, if both share one nanobind, or std's
    assert "expected host or shared USM, found device USM" in str(refusal), refusal
else:
    raise AssertionError("device USM was read on the host")
"""

for module in ("columns_of_usm", "columns.columns_of_usm", "columns.deeper.columns_of_usm"):
    subprocess.run([sys.executable, "-c", USE.format(module=module)], check=True)
    print(f"{module}: sums a column of shared USM, refuses device USM")
