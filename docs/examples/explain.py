# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/errors.md shows: memory that is refused, and the step that refuses it."""

# [begin memory]
import dpctl
import dpctl.memory
import usm_dlpack

root = usm_dlpack.root_device(0)
own_context = dpctl.SyclQueue(dpctl.SyclContext([root]), root)
elsewhere = dpctl.memory.MemoryUSMDevice(96, queue=own_context)
# [end memory]

# [begin explain]
explained = usm_dlpack.explain(elsewhere)
for step in explained.steps:
    print(step.number, step.outcome, "-", step.title)
print(explained.error.code)
# [end explain]

# [begin keywords]
own = dpctl.memory.MemoryUSMDevice(96)
exported = usm_dlpack.explain(own, shape=(5, 6), dtype="float32")  # as to_dlpack_tensor
tensor = usm_dlpack.to_dlpack_tensor(own)
imported = usm_dlpack.explain(tensor, usm_types=("shared",))  # as validate
for walk in (*exported.walks, *imported.walks):
    print(walk.direction, "stops at", walk.stop.number, "-", walk.error.code)
# [end keywords]
