# SPDX-License-Identifier: Apache-2.0
"""What docs/explanation/device_id.md shows, in a process that has two root devices."""

# [begin position]
import dpctl
import dpctl.memory
import usm_dlpack

first, second = dpctl.get_devices()
assert usm_dlpack.device_id(first) == 0
assert usm_dlpack.device_id(second) == 1
assert usm_dlpack.root_device(1) == second
# [end position]

# [begin platform]
# The only device of its platform, and still not number 0.
assert second.sycl_platform.get_devices() == [second]
assert usm_dlpack.device_id(second) == 1
# [end platform]

# [begin parts]
part = second.create_sub_devices(partition=1)[0]
assert usm_dlpack.device_id(part) == 1
# [end parts]

# [begin host]
of_second = dpctl.memory.MemoryUSMHost(48, queue=dpctl.SyclQueue(second))
assert usm_dlpack.to_dlpack_tensor(of_second).device == (14, 1)
assert usm_dlpack.validate(usm_dlpack.to_dlpack_tensor(of_second)).device_proof == "none"
# [end host]
