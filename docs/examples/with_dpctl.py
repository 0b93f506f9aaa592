# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/dpctl.md shows of dpctl.memory."""

# [begin out]
import dpctl
import dpctl.memory
import usm_dlpack

device = usm_dlpack.root_device(0)
queue = dpctl.SyclQueue(device)
memory = dpctl.memory.MemoryUSMShared(96, queue=queue)
tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(4, 6), dtype="float32")
assert (tensor.usm_type, tensor.sycl_queue) == ("shared", queue)

# Every other column, from the second on: the same memory.
columns = usm_dlpack.to_dlpack_tensor(tensor, shape=(4, 3), strides=(6, 2), byte_offset=4)
assert columns.data == tensor.data + 4
# [end out]

# [begin back]
bytes_of_it = dpctl.memory.as_usm_memory(tensor)  # for dpctl's kernels and copies
assert bytes_of_it.nbytes == 96
assert bytes_of_it.reference_obj is tensor  # which keeps `memory`
# [end back]

# [begin refused]
own_context = dpctl.SyclContext([device])  # a list: a new context, which nobody else can find
elsewhere = dpctl.memory.MemoryUSMDevice(96, queue=dpctl.SyclQueue(own_context, device))
try:
    usm_dlpack.to_dlpack_tensor(elsewhere)
except usm_dlpack.UsmBindingError as error:
    print(error.code)
memory.copy_from_device(elsewhere)  # the remedy, where the allocation cannot be changed
# [end refused]
