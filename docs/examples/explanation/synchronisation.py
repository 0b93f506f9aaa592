# SPDX-License-Identifier: Apache-2.0
"""What docs/explanation/synchronisation.md shows; it ends in silence where all of it is true."""

# [begin producer]
import dpctl
import dpctl.memory
import numpy as np
import usm_dlpack

producer = dpctl.SyclQueue(property="in_order")
consumer = dpctl.SyclQueue(property="in_order")
host = np.arange(1024, dtype="float32")
memory = dpctl.memory.MemoryUSMDevice(host.nbytes, queue=producer)
written = producer.memcpy_async(memory, host, host.nbytes)  # pending, perhaps
# [end producer]

# [begin hand_over]
tensor = usm_dlpack.to_dlpack_tensor(memory, dtype="float32", queue=producer)
capsule = tensor.__dlpack__(stream=consumer)  # returns at once
result = np.empty_like(host)
# What `consumer` gets from now on is behind what `producer` had got until then.
read = consumer.memcpy_async(result, memory, host.nbytes)
read.wait()
assert np.array_equal(result, host)
# [end hand_over]

# [begin copies]
assert np.array_equal(tensor.numpy(), host)  # waits for `producer` by itself
# [end copies]
