# SPDX-License-Identifier: Apache-2.0
"""A round trip of real device USM through another library, and refusals of bad tensors.

Kernels run on the device. If none can be built, the host computes and copies, and the program says
so. The consumer is apache-tvm-ffi. Every line that is printed as done was checked.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dpctl
import numpy as np
from dpctl import memory, program

import usm_dlpack
from usm_dlpack import ConversionError, DLPackTensor, _core
from usm_dlpack._terminal import Progress, say_error

_ROWS, _COLUMNS = 4, 6
_COUNT = _ROWS * _COLUMNS

_KERNELS = """
__kernel void fill(__global float *x) { size_t i = get_global_id(0); x[i] = 1.5f * i; }
__kernel void negate(__global float *x) { size_t i = get_global_id(0); x[i] = -x[i]; }
__kernel void add_one(__global const float *x, __global float *y) {
  size_t i = get_global_id(0); y[i] = x[i] + 1.0f;
}
"""

# The kernels' host versions, for a device that no kernel can be built for.
_ON_HOST: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "fill": lambda x: 1.5 * np.arange(x.size, dtype=np.float32),
    "negate": np.negative,
    "add_one": lambda x: x + np.float32(1),
}


_DEFECT = "report this as a defect"


class _StepError(Exception):
    """A step that failed."""


def _check(claim: str, holds: bool) -> None:
    if not holds:
        raise _StepError(f"{claim}: expected to hold, found that it does not; {_DEFECT}")
    print(f"  ok  {claim}")


class _Device:
    """A queue on the first device that works, and the kernels built for it, if any can be."""

    def __init__(self) -> None:
        usable = (row["device_id"] for row in _core.device_rows() if row["failure"] is None)
        self.queue = dpctl.SyclQueue(usm_dlpack.root_device(next(usable)))
        self.program, self.worker = None, "a copy from the host"
        with Progress() as progress:
            progress.show("building kernels")
            # dpctl builds source code only for OpenCL.
            with contextlib.suppress(program.SyclProgramCompilationError):
                self.program = program.create_program_from_source(self.queue, _KERNELS)
                self.worker = "a kernel"

    def allocate(self, queue: Any = None) -> Any:
        return memory.MemoryUSMDevice(4 * _COUNT, queue=queue or self.queue)

    def run(self, name: str, *arguments: Any) -> None:
        """Let a kernel, or the host, compute the last memory from the first."""
        if self.program is None:
            values = _ON_HOST[name](self.values(arguments[0]))
            self.queue.memcpy(arguments[-1], values, values.nbytes)
            return
        kernel = self.program.get_sycl_kernel(name)
        self.queue.submit(kernel, list(arguments), [_COUNT])
        self.queue.wait()

    def values(self, of: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        host: np.ndarray[Any, np.dtype[np.float32]] = np.empty(_COUNT, np.float32)
        self.queue.memcpy(host, of, host.nbytes)
        return host


def _round_trip(device: _Device) -> DLPackTensor:
    """Kernel -> DLPack -> tvm-ffi -> kernel on tvm-ffi's memory -> kernel on the producer's.

    If no kernel can be built, copies from the host replace them.
    """
    import tvm_ffi

    print("\nRound trip of device USM: dpctl -> apache-tvm-ffi -> dpctl")
    if device.program is None:
        told = f"dpctl builds no kernels from source for {device.queue.backend.name}"
        print(f"  ..  {told}: the host computes and copies")
    produced = device.allocate()
    device.run("fill", produced)
    expected = 1.5 * np.arange(_COUNT, dtype=np.float32)
    _check(f"{device.worker} filled device USM", np.array_equal(device.values(produced), expected))

    tensor = usm_dlpack.to_dlpack_tensor(produced, shape=(_ROWS, _COLUMNS), dtype="float32")
    described = tensor.usm_type == "device" and tensor.data == produced._pointer
    _check(f"exported: {tensor!r}", described)

    consumed = tvm_ffi.from_dlpack(tensor)
    _check("the consumer's pointer is the producer's: no copy", consumed.data_ptr() == tensor.data)
    same = tuple(consumed.shape) == tensor.shape and tuple(consumed.strides) == tensor.strides
    _check("the consumer sees the same shape and strides", same)
    seen = np.from_dlpack(usm_dlpack.from_dlpack(consumed), device="cpu")
    _check("the consumer sees the same values", np.array_equal(seen.ravel(), expected))

    returned = memory.as_usm_memory(usm_dlpack.from_dlpack(consumed))
    device.run("negate", returned)
    print(f"  ..  {device.worker} wrote through the consumer's side")
    result = device.allocate()
    device.run("add_one", produced, result)
    written = np.array_equal(device.values(result), 1 - expected)
    _check(f"{device.worker} on the producer's side sees what the consumer's side wrote", written)
    return tensor


def _refusals(device: _Device, tensor: DLPackTensor) -> None:
    """Show bad arrays and requests, and require that each is refused by the rule it breaks."""
    print("\nBad tensors, and their refusals")
    export, take, prove = usm_dlpack.to_dlpack_tensor, usm_dlpack.from_dlpack, usm_dlpack.validate
    on_host = (ctypes.c_float * _COUNT)()
    own, root = device.allocate(), device.queue.sycl_device
    foreign = device.allocate(dpctl.SyclQueue(dpctl.SyclContext([root]), root))
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
        try:
            act()
        except ConversionError as error:
            if error.code != code:
                found = f"{error.code}: {error}"
                raise _StepError(f"{label}: expected code {code}, found {found}") from error
            print(f"  {label}\n      {error}")
        else:
            raise _StepError(f"{label}: expected a refusal, found none; {_DEFECT}")


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
        device = _Device()
        _refusals(device, _round_trip(device))
    except _StepError as failed:
        say_error(failed)
        return 1
    print("\nAll of this happened on this machine.")
    return 0
