# SPDX-License-Identifier: Apache-2.0
"""What docs/explanation/proofs.md shows; it ends in silence where all of it is true."""

# [begin proof]
import dpctl.memory
import usm_dlpack

memory = dpctl.memory.MemoryUSMDevice(96)
tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
proof = usm_dlpack.validate(tensor)
assert (proof.usm_type, proof.device_id) == ("device", 0)
assert proof.device_proof == "backend"  # the backend itself named the device
assert proof.bounds in ("allocation", "chunk")  # and what the 48 bytes of the view lie in
assert (proof.base, proof.nbytes) == (tensor.data, 48)
assert proof.size >= memory.nbytes  # 96 of an allocation; a chunk may be rounded up
# [end proof]

# [begin empty]
empty = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 0), dtype="float32")
assert usm_dlpack.validate(empty).bounds == "none"  # no byte, hence nothing to prove
# [end empty]
