# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/libraries.md shows: tensors of tvm-ffi over USM, both ways."""

# [begin exchange]
import dpctl
import dpctl.memory
import tvm_ffi
import usm_dlpack

queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
memory = dpctl.memory.MemoryUSMDevice(96, queue=queue)
tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(4, 6), dtype="float32")

there = tvm_ffi.from_dlpack(tensor)  # no copy; `there` keeps `memory`
assert there.data_ptr() == tensor.data
print(there.device, there.shape, there.dtype)

back = usm_dlpack.from_dlpack(there)  # no copy, everything proved again
assert (back.data, back.usm_type) == (tensor.data, "device")
# [end exchange]

# [begin function]
seen = []


@tvm_ffi.register_global_func("docs.remember")
def remember(x: tvm_ffi.Tensor) -> None:
    """Take a tensor as a function of a compiled library would."""
    seen.append(usm_dlpack.from_dlpack(x, device=queue))


tvm_ffi.get_global_func("docs.remember")(tensor)  # borrowed by the C exchange API
assert seen[0].data == tensor.data
# [end function]
