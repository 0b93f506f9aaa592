# SPDX-License-Identifier: Apache-2.0
"""Sums of rows of an array in device USM."""

import dpctl
import numpy as np
import pytest
import row_sums
import usm_dlpack

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("place", ["cpu", dpctl.SyclQueue()], ids=["a device", "a queue"])
def test_rows_are_added_up(place):
    """Each row of x gives an element of the result."""
    x = usm_dlpack.from_dlpack(VALUES, device=place)
    assert list(row_sums.row_sums(x).numpy()) == [6, 22, 38]


def test_another_dtype_is_refused():
    """The error shows what the function takes."""
    with pytest.raises(TypeError, match="dtype='float32', shape=\\(None, None\\), order='C'"):
        row_sums.row_sums(usm_dlpack.from_dlpack(VALUES.astype("f8"), device="cpu"))
