# SPDX-License-Identifier: Apache-2.0
"""Sums of rows of an array in device USM."""

import dpctl
import dpctl.memory
import numpy as np
import pytest
import row_sums
import usm_dlpack

QUEUE = dpctl.SyclQueue()


def on_device(values):
    """Copy values to device USM."""
    memory = dpctl.memory.MemoryUSMDevice(values.nbytes, queue=QUEUE)
    tensor = usm_dlpack.to_dlpack_tensor(memory, shape=values.shape, dtype=values.dtype)
    tensor.copy_from(values)
    return tensor


def test_rows_are_added_up():
    """Each row of x gives an element of the result."""
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert list(row_sums.row_sums(QUEUE, on_device(values)).numpy()) == [6, 22, 38]


def test_another_dtype_is_refused():
    """The error says what the function takes."""
    with pytest.raises(usm_dlpack.ConversionError, match="expected float32"):
        row_sums.row_sums(QUEUE, on_device(np.zeros((3, 4))))
