# SPDX-License-Identifier: Apache-2.0
"""What docs/how-to/streams.md shows: who waits for whom."""

# [begin queues]
import dpctl
import dpctl.memory
import numpy as np
import usm_dlpack

producer, consumer = dpctl.SyclQueue(), dpctl.SyclQueue()
memory = dpctl.memory.MemoryUSMDevice(96, queue=producer)
tensor = usm_dlpack.to_dlpack_tensor(memory, dtype="float32")
assert tensor.sycl_queue == producer
# [end queues]

# [begin take]
mine = usm_dlpack.from_dlpack(tensor, device=consumer)
assert mine.sycl_queue == consumer
# [end take]

# [begin capsule]
capsule = tensor.__dlpack__(stream=consumer, max_version=(1, 3))
# [end capsule]

# [begin no queue]
memory = dpctl.memory.MemoryUSMDevice(96)
of_consumer = usm_dlpack.to_dlpack_tensor(memory, dtype="float32", queue=consumer)
# [end no queue]
assert of_consumer.sycl_queue == consumer

# [begin copies]
values = mine.numpy()  # waits for `consumer`; a copy on the host
back = usm_dlpack.from_dlpack(values, device=consumer)  # a copy in device USM, complete
assert np.array_equal(back.numpy(), values, equal_nan=True)
# [end copies]

# [begin refused]
try:
    tensor.__dlpack__(stream=3)
except ValueError as error:
    print(error)
# [end refused]
