# SPDX-License-Identifier: Apache-2.0
"""What docs/explanation/default_context.md shows; it ends in silence where all of it is true."""

# [begin which]
import dpctl
import dpctl.memory
import usm_dlpack

device = usm_dlpack.root_device(0)
default = dpctl.SyclContext(device)  # the default context of the device's platform
own = dpctl.SyclContext([device])  # a new one, of the same device
assert dpctl.SyclQueue(device).sycl_context == default
assert default != own
# [end which]

# [begin memory]
of_default = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(device))
of_own = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(own, device))
assert of_default.get_usm_type(default) == "device"
assert of_own.get_usm_type(own) == "device"
try:
    usm_dlpack.to_dlpack_tensor(of_own)
except usm_dlpack.UsmBindingError as error:
    code = error.code
assert code == "context_not_default"  # the same device, and nobody would find the context
# [end memory]

# [begin found]
tensor = usm_dlpack.to_dlpack_tensor(of_default)
assert tensor.sycl_context == default
assert usm_dlpack.validate(tensor).sycl_context == default
# [end found]
