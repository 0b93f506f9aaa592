# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/devices.md shows: a sub-device's id, and the way of its results."""

# [begin id]
import dpctl
import dpctl.memory
import usm_dlpack

root = usm_dlpack.root_device(0)
part, *others = root.create_sub_devices(partition=1)  # of one compute unit each, on a CPU
assert usm_dlpack.device_id(part) == usm_dlpack.device_id(root) == 0
# [end id]

# [begin refused]
queue = dpctl.SyclQueue(part)  # has a context of its own
memory = dpctl.memory.MemoryUSMDevice(96, queue=queue)
try:
    usm_dlpack.to_dlpack_tensor(memory)
except usm_dlpack.UsmBindingError as error:
    print(error.code)
# [end refused]

# [begin copy]
queue.wait()  # for the kernels that wrote `memory`
of_root = dpctl.memory.MemoryUSMDevice(96, queue=dpctl.SyclQueue(root))
of_root.copy_from_device(memory)  # complete when it returns
tensor = usm_dlpack.to_dlpack_tensor(of_root, shape=(4, 6), dtype="float32")
assert tensor.device == (14, 0)
# [end copy]
