# SPDX-License-Identifier: Apache-2.0
"""oneDNN's primitives on arrays of any library: USM, without a copy.

Each function runs on a queue: the one that is passed, or else the array's own. The names of dtypes
are NumPy's and DLPack's: "float32", "bfloat16", "float8_e4m3fn".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dpctl
import usm_dlpack

from onednn_ops import _extension

__all__ = [
    "describe",
    "eltwise",
    "eltwise_into",
    "matmul",
    "matmul_into",
    "reorder",
    "reorder_into",
]


def _queue(queue: dpctl.SyclQueue | None, x: Any) -> dpctl.SyclQueue:
    """Return the queue that was passed, or that of the array."""
    if queue is not None:
        return queue
    found = usm_dlpack.from_dlpack(x).sycl_queue
    if found is None:
        raise ValueError("queue: expected one for an array without sycl_queue, found None; pass it")
    return found


def matmul(
    a: Any, b: Any, *, dtype: str | None = None, queue: dpctl.SyclQueue | None = None
) -> usm_dlpack.DLPackTensor:
    """Return the product of matrices, or of batches of them.

    Runs behind what the queues of both arrays have got so far. Nobody waits: the result keeps both
    arrays and knows its queue, which is ``queue`` if that is in order, and otherwise an in-order
    one that is made for it. The dtype is that of `a`; int32 for int8 and uint8, float32 for
    float8, unless ``dtype`` says another.

    Arrays of more than 3 dimensions must be compact, in C order or with the last two dimensions
    swapped; a batch of `b` must be compact too, if each matrix of it has one row.
    """
    return _extension.matmul(_queue(queue, a), a, b, dtype)


def matmul_into(
    a: Any,
    b: Any,
    out: Any,
    *,
    queue: dpctl.SyclQueue | None = None,
    depends: Sequence[dpctl.SyclEvent] = (),
) -> dpctl.SyclEvent:
    """Write the product to `out`, behind the events; return the event of this.

    The caller keeps the arrays until the event is complete, and gives an `out` that shares no
    element with `a` and `b`: that is not checked. The arrays are as `matmul` wants them, `out` too;
    one column of int8 or uint8 products needs a compact `out`.
    """
    return _extension.matmul_into(_queue(queue, out), a, b, out, list(depends))


def eltwise(
    function: str,
    x: Any,
    *,
    alpha: float = 0.0,
    beta: float = 0.0,
    queue: dpctl.SyclQueue | None = None,
) -> usm_dlpack.DLPackTensor:
    """Apply a function to each element: a new array, in C order, of the same dtype.

    The functions are "abs", "clip" (from alpha to beta), "exp", "gelu_erf", "linear"
    (alpha x + beta), "log", "logistic", "relu" (alpha x below 0), "sqrt", "square" and "tanh".
    Ordered and kept as `matmul` does.
    """
    return _extension.eltwise(_queue(queue, x), function, x, alpha, beta)


def eltwise_into(
    function: str,
    x: Any,
    out: Any,
    *,
    alpha: float = 0.0,
    beta: float = 0.0,
    queue: dpctl.SyclQueue | None = None,
    depends: Sequence[dpctl.SyclEvent] = (),
) -> dpctl.SyclEvent:
    """Write to `out` as `matmul_into` does; `out` has the layout of `x`, and may be `x` itself."""
    return _extension.eltwise_into(_queue(queue, out), function, x, out, list(depends), alpha, beta)


def reorder(
    x: Any, *, dtype: str | None = None, queue: dpctl.SyclQueue | None = None
) -> usm_dlpack.DLPackTensor:
    """Return a copy in C order, of the same dtype or another; ordered and kept as `matmul` does.

    Arrays whose elements have 4 bits must be compact in C order, with an even number of elements.
    """
    return _extension.reorder(_queue(queue, x), x, dtype)


def reorder_into(
    x: Any,
    out: Any,
    *,
    queue: dpctl.SyclQueue | None = None,
    depends: Sequence[dpctl.SyclEvent] = (),
) -> dpctl.SyclEvent:
    """Copy to an array of another dtype or layout, as `matmul_into` does."""
    return _extension.reorder_into(_queue(queue, out), x, out, list(depends))


def describe(x: Any, *, queue: dpctl.SyclQueue | None = None) -> dict[str, Any]:
    """Return what oneDNN says of the memory object over an array, its engine and its stream."""
    return dict(_extension.describe(_queue(queue, x), x))
