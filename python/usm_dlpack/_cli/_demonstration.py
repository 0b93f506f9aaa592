# SPDX-License-Identifier: Apache-2.0
"""A round trip of real device USM through another library, and refusals of bad tensors.

The consumer is apache-tvm-ffi. Every line that is printed as done was checked.
"""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dpctl
import numpy as np
from dpctl import memory

import usm_dlpack
from usm_dlpack import ConversionError, DLPackTensor, _core
from usm_dlpack._terminal import say_error

_ROWS, _COLUMNS = 4, 6
_COUNT = _ROWS * _COLUMNS
_DEFECT = "report this as a defect"


class _StepError(Exception):
    """A step that failed."""


def _check(claim: str, holds: bool) -> None:
    if not holds:
        raise _StepError(f"{claim}: expected to hold, found that it does not; {_DEFECT}")
    print(f"  ok  {claim}")


def _first_queue() -> Any:
    """Return a queue on the first device that works."""
    usable = (row["device_id"] for row in _core.device_rows() if row["failure"] is None)
    return dpctl.SyclQueue(usm_dlpack.root_device(next(usable)))


def _holds(produced: Any, expected: Any) -> bool:
    """Return whether memory has the values, by a copy of dpctl's."""
    return np.array_equal(produced.copy_to_host().view(np.float32), expected)


def _round_trip(queue: Any) -> DLPackTensor:
    """Let dpctl write, tvm-ffi take the tensor, a copy write there, and dpctl read."""
    import tvm_ffi

    print("\nRound trip of device USM: dpctl -> apache-tvm-ffi -> dpctl")
    produced = memory.MemoryUSMDevice(4 * _COUNT, queue=queue)
    values = 1.5 * np.arange(_COUNT, dtype=np.float32)
    queue.memcpy(produced, values, values.nbytes)
    _check("a copy from the host filled device USM", _holds(produced, values))

    tensor = usm_dlpack.to_dlpack_tensor(produced, shape=(_ROWS, _COLUMNS), dtype="float32")
    described = tensor.usm_type == "device" and tensor.data == produced._pointer
    _check(f"exported: {tensor!r}", described)

    consumed = tvm_ffi.from_dlpack(tensor)
    _check("the consumer's pointer is the producer's: no copy", consumed.data_ptr() == tensor.data)
    same = tuple(consumed.shape) == tensor.shape and tuple(consumed.strides) == tensor.strides
    _check("the consumer sees the same shape and strides", same)
    seen = np.from_dlpack(usm_dlpack.from_dlpack(consumed), device="cpu")
    _check("the consumer sees the same values", np.array_equal(seen.ravel(), values))

    returned = memory.as_usm_memory(usm_dlpack.from_dlpack(consumed))
    queue.memcpy(returned, -values, values.nbytes)
    _check("the producer's side sees what the consumer's side wrote", _holds(produced, -values))
    return tensor


def _refusals(queue: Any, tensor: DLPackTensor) -> None:
    """Show bad arrays and requests, and require that each is refused by the rule it breaks."""
    print("\nBad tensors, and their refusals")
    export, take, prove = usm_dlpack.to_dlpack_tensor, usm_dlpack.from_dlpack, usm_dlpack.validate
    own, root = memory.MemoryUSMDevice(4 * _COUNT, queue=queue), queue.sycl_device
    other = dpctl.SyclQueue(dpctl.SyclContext([root]), root)
    foreign = memory.MemoryUSMDevice(4 * _COUNT, queue=other)
    on_host = (ctypes.c_float * _COUNT)()
    interface = own.__sycl_usm_array_interface__
    interface |= {"data": (ctypes.addressof(on_host), False)}
    not_usm = SimpleNamespace(__sycl_usm_array_interface__=interface)
    bad_kind = "usm_type_not_accepted"
    cases: list[tuple[str, str, Callable[[], object]]] = [
        ("an array on the host", "device_type_unsupported", lambda: take(np.zeros(3))),
        ("USM of another context", "context_not_default", lambda: export(foreign)),
        ("a shape beyond its memory", "out_of_bounds", lambda: export(own, shape=97)),
        ("memory that is not USM", "pointer_unknown", lambda: export(not_usm)),
        ("a kind that the consumer cannot take", bad_kind, lambda: prove(tensor, usm_types="host")),
    ]
    for label, code, act in cases:
        found = "none"
        try:
            act()
        except ConversionError as error:
            if error.code == code:
                print(f"  {label}\n      {error}")
                continue
            found = f"{error.code}: {error}"
        raise _StepError(f"{label}: expected code {code}, found {found}; {_DEFECT}")


def show() -> int:
    try:
        import tvm_ffi  # noqa: F401
    except ImportError:
        say_error(
            "consumer: expected apache-tvm-ffi, found no such package; "
            "run `python -m pip install apache-tvm-ffi`"
        )
        return 1
    try:
        queue = _first_queue()
        _refusals(queue, _round_trip(queue))
    except _StepError as failed:
        say_error(failed)
        return 1
    print("\nAll of this happened on this machine.")
    return 0
