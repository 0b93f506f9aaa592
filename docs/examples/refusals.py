# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/errors.md shows: a refusal's parts, and what an array can be asked for."""

# [begin parts]
import dpctl.memory
import usm_dlpack

memory = dpctl.memory.MemoryUSMDevice(96)
try:
    usm_dlpack.to_dlpack_tensor(memory, shape=(5, 6), dtype="float32")
except usm_dlpack.ConversionError as error:
    for part in ("code", "field", "expected", "found", "remedy"):
        print(f"{part}: {getattr(error, part)}")
# [end parts]

# [begin asked]
tensor = usm_dlpack.to_dlpack_tensor(memory, shape=(4, 6), dtype="float32")
usm_dlpack.validate(
    tensor,
    usm_types=("device", "shared"),
    dtype="float32",
    ndim=2,
    readonly=False,  # it may be written
    overlapping=False,  # no two elements share a byte
    device=(14, 0),
)
# [end asked]
