# SPDX-License-Identifier: Apache-2.0
"""empty: tensors in new memory, of any shape, place and kind."""

import dpctl
import numpy as np
import pytest
from capsules import compact_strides, package_queue
from usm_dlpack import empty, from_dlpack, validate


@pytest.mark.parametrize("shape", [(3, 4), [2, 1, 5], 7, np.int64(7), (), 0, (3, 0, 2)], ids=repr)
def test_the_memory_is_in_c_order_and_can_be_written_and_read(shape, usm_type):
    tensor = empty(shape, "i4", usm_type=usm_type)
    extents = np.empty(shape).shape
    assert (tensor.shape, tensor.dtype, tensor.readonly) == (extents, np.int32, False)
    assert tensor.strides == compact_strides([max(1, extent) for extent in extents])
    assert (tensor.usm_type, tensor.sycl_queue) == (usm_type, package_queue())
    assert tensor.data != 0
    assert validate(tensor, usm_types=usm_type, overlapping=False).nbytes == tensor.nbytes
    values = np.arange(tensor.size, dtype=np.int32).reshape(extents)
    tensor.copy_from(values)
    assert np.array_equal(from_dlpack(tensor).numpy(), values)


def test_without_arguments_it_is_float32_in_device_memory_of_the_default_device():
    tensor = empty(3)
    assert (tensor.dtype, tensor.usm_type) == (np.float32, "device")
    assert tensor.sycl_device == dpctl.SyclDevice()
