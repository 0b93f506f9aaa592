# SPDX-License-Identifier: Apache-2.0
"""oneDNN's primitives on arrays of any library: USM, without a copy.

Each function runs on the queue that is passed, or else on the array's own, behind what the queues
of its arrays have so far. Nobody waits: a result keeps the arrays, and knows its queue. That is an
in-order queue made for it, if the queue is out of order. dtypes are named as in DLPack: "bfloat16".
"""

from __future__ import annotations

from typing import Any

import dpctl
import usm_dlpack

from onednn_ops import _extension

__all__ = ["describe", "matmul", "reorder"]


def _queue(queue: dpctl.SyclQueue | None, x: Any) -> dpctl.SyclQueue:
    """Return the queue that was passed, or that of the array."""
    found = queue if queue is not None else usm_dlpack.from_dlpack(x).sycl_queue
    if found is None:
        raise ValueError("queue: expected one for an array without sycl_queue, found None; pass it")
    return found


def matmul(
    a: Any, b: Any, *, dtype: str | None = None, queue: dpctl.SyclQueue | None = None
) -> usm_dlpack.DLPackTensor:
    """Return the product of matrices, or of batches in C order; the dtype is that of `a`."""
    return _extension.matmul(_queue(queue, a), a, b, dtype)


def reorder(
    x: Any, *, dtype: str | None = None, queue: dpctl.SyclQueue | None = None
) -> usm_dlpack.DLPackTensor:
    """Return a copy in C order, of the same dtype or another."""
    return _extension.reorder(_queue(queue, x), x, dtype)


def describe(x: Any, *, queue: dpctl.SyclQueue | None = None) -> dict[str, Any]:
    """Return what oneDNN says of the memory object over an array, its engine and its stream."""
    return dict(_extension.describe(_queue(queue, x), x))
