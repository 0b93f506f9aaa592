# SPDX-License-Identifier: Apache-2.0
"""What docs/tutorial.md shows: a round trip of real device USM, and the first refusal."""

# [begin round trip]
import dpctl
import dpctl.memory
import dpctl.program
import numpy as np
import tvm_ffi
import usm_dlpack

queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
values = np.arange(24, dtype="float32").reshape(4, 6)

x = usm_dlpack.from_dlpack(values, device=queue)  # 1: a copy in device USM
there = tvm_ffi.from_dlpack(x)  # 2: another library, without a copy
proof = usm_dlpack.validate(there)  # 3: what it says of itself, proved
back = usm_dlpack.from_dlpack(there, device=queue)  # 4: ours again, without a copy

source = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }"
program = dpctl.program.create_program_from_source(queue, source)
memory = dpctl.memory.as_usm_memory(back)
queue.submit(program.get_sycl_kernel("twice"), [memory], [back.size])  # 5: a kernel

print(back.data == x.data, proof.usm_type, proof.bounds)
print(np.array_equal(x.numpy(), 2 * values))  # 6: waits for the kernel
# [end round trip]

# [begin refusal]
try:
    usm_dlpack.to_dlpack_tensor(memory, shape=(5, 6), dtype="float32")
except usm_dlpack.ConversionError as error:
    print(error)
    print(error.code)
# [end refusal]
