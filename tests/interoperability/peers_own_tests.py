# SPDX-License-Identifier: Apache-2.0
"""Run the DLPack tests that the peers' wheels carry against this package: a pytest plugin.

The peers' test files are imported from where pip put them, and not changed. One side of the
exchange is exchanged for ours:

``--ours=producer``
    Every array of theirs is exported by our ``__dlpack__`` and ``__dlpack_device__``, and taken by
    their functions.
``--ours=consumer``
    Their arrays are exported by their own methods, and taken by our ``from_dlpack``; what it
    returns is shown to the test as an array of theirs in the same memory, without DLPack.

A case counts only if ours was called in it: what skips, or passes without ours, does not fit. A
case that fails must stand in `UNFIT` with the reason, and one that stands there must fail.
docs/consumers.md has the counts.
"""

import ctypes
import gc
import json
from collections import Counter
from collections.abc import Callable, Generator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dpctl.memory
import pytest
import usm_dlpack  # before anything asks for devices: it makes the CPU driver known
from capsules import OldArray, content_of
from memory_sources import TypedArray

TENSOR = import_module("dpctl.tensor" if find_spec("dpctl.tensor") else "dpnp.tensor")
CAPSULES = import_module(f"{TENSOR.__name__}._dlpack")
THEIR_FROM_DLPACK = TENSOR.from_dlpack
THEIR_FROM_CAPSULE = CAPSULES.from_dlpack_capsule
CALLS = Counter[str]()
COUNTS = Counter[str]()
KDL_CPU = 1
_COPY_IS_WRITABLE = "wants a copy of read-only memory to be read-only; ours is new memory"
_REFUSAL_IS_A_BUFFER_ERROR = (
    "wants a TypeError, which consumers take for an old producer; ours is a BufferError"
)
_ERROR_IS_A_BUFFER_ERROR = "wants a ValueError; ours is a BufferError"
# The functions whose cases cannot pass with ours.
UNFIT = {
    "producer": {
        "test_dlpack_capsule_readonly_array_to_kdlcpu": _COPY_IS_WRITABLE,
        "test_dlpack_dl_device": "wants the name 'kDLCPU' for a device type, and TypeErrors",
        "test_dlpack_kwargs": "wants copy=True to be ignored for a legacy capsule; ours copies",
        "test_dlpack_max_version_validation": _REFUSAL_IS_A_BUFFER_ERROR,
        "test_versioned_dlpack_capsule": _COPY_IS_WRITABLE,
        "test_invaid_stream": "wants a TypeError; ours is a ValueError",
        "test_wrong_copy": "wants an array to be taken for copy; ours refuses it",
    },
    "consumer": {
        "test_dldevice_conversion_arg_validation": (
            "wants checks of a function that takes (device_type, id); root_device takes an id"
        ),
        "test_from_dlpack_input_validation": (
            "wants a TypeError where __dlpack__ returns None; ours is a BufferError"
        ),
        "test_used_dlpack_capsule": _ERROR_IS_A_BUFFER_ERROR,
        "test_used_dlpack_capsule_from_numpy": _ERROR_IS_A_BUFFER_ERROR,
    },
}


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*arguments: Any, **keywords: Any) -> Any:
        CALLS["ours"] += 1
        return function(*arguments, **keywords)

    return called


def export_by_ours() -> None:
    """Let our methods stand for those of their arrays, and our device ids for theirs."""

    def export(array: Any, /, **keywords: Any) -> Any:
        return usm_dlpack.to_dlpack_tensor(array).__dlpack__(**keywords)

    def place(array: Any, /) -> tuple[int, int]:
        return usm_dlpack.to_dlpack_tensor(array).__dlpack_device__()

    kinds = [TENSOR.usm_ndarray]
    if TENSOR.__name__ == "dpnp.tensor":
        kinds.append(import_module("dpnp").ndarray)
    for kind in kinds:
        # Python sets no attribute of an extension type.
        (methods,) = gc.get_referents(vars(kind))
        methods |= {"__dlpack__": counted(export), "__dlpack_device__": counted(place)}
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    CAPSULES.to_dlpack_capsule = lambda array: array.__dlpack__()
    TENSOR.sycl_device_to_dldevice = counted(lambda device: (14, usm_dlpack.device_id(device)))


def shown(tensor: usm_dlpack.DLPackTensor) -> Any:
    """Return an array of theirs over the bytes that a tensor of ours spans."""
    shape, strides, itemsize = tensor.shape, tensor.strides, tensor.dtype.itemsize
    reaches = [] if 0 in shape else [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    before = -sum(min(0, reach) for reach in reaches)
    count = before + 1 + sum(max(0, reach) for reach in reaches)
    first = tensor.data - before * itemsize
    span = {"data": (first, False), "shape": (count * itemsize,), "strides": None, "typestr": "|u1"}
    memory = dpctl.memory.as_usm_memory(TypedArray(tensor, **span))
    place = {"dtype": tensor.dtype, "strides": strides, "buffer": memory, "offset": before}
    array = TENSOR.usm_ndarray(shape, **place)
    if tensor.readonly:
        array.flags["W"] = False
    return array


def take(x: Any, device: Any = None, copy: bool | None = None) -> Any:
    """Take an array by our `from_dlpack`, and show it as one of theirs."""
    place = getattr(device, "sycl_queue", device)
    if isinstance(place, tuple):
        place = tuple(int(part) for part in place)
    to_host = isinstance(place, tuple) and place[0] == KDL_CPU
    ask = getattr(x, "__dlpack_device__", None)
    if (device is None or to_host) and ask is not None and int(ask()[0]) == KDL_CPU:
        # From the host to the host: nothing that this package does, so theirs does it, uncounted.
        return THEIR_FROM_DLPACK(x, device=device, copy=copy)
    CALLS["ours"] += 1
    if to_host:
        return usm_dlpack.from_dlpack(x).numpy()
    return shown(usm_dlpack.from_dlpack(x, device=place, copy=copy))


def consume_capsule(capsule: Any) -> Any:
    """Take a capsule of USM as an array of before all keywords, and any other by theirs."""
    if content_of(capsule).dl_tensor.device_type == KDL_CPU:
        return THEIR_FROM_CAPSULE(capsule)
    return take(OldArray(capsule))


def import_by_ours() -> None:
    """Let our functions stand for theirs that take arrays, capsules and device ids."""
    TENSOR.from_dlpack = take  # which dpnp.from_dlpack calls
    CAPSULES.from_dlpack_capsule = consume_capsule
    TENSOR.dldevice_to_sycl_device = counted(lambda device: usm_dlpack.root_device(device[1]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn what pytest says of a case into what this run wants of it."""
    if call.when == "setup":
        CALLS.clear()
    report = yield
    if call.when == "teardown" or (call.when == "setup" and report.outcome == "passed"):
        return report
    reason = UNFIT[item.config.option.ours].get(item.originalname)  # type: ignore[attr-defined]
    reached = report.outcome == "passed" and CALLS["ours"] > 0
    if reached and reason is not None:
        report.outcome = "failed"
        report.longrepr = "expected a case that does not fit, found one that passes"
    elif report.outcome == "failed" and reason is not None:
        report.outcome = "skipped"
        report.wasxfail = reason
    COUNTS["passed" if reached else "unfit"] += 1
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ours", choices=["producer", "consumer"], required=True)
    parser.addoption("--counts", type=Path, required=True, help="write how many passed, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    (export_by_ours if config.option.ours == "producer" else import_by_ours)()


def pytest_sessionfinish(session: pytest.Session) -> None:
    package = TENSOR.__name__.split(".")[0]
    counts = {name: str(COUNTS[name]) for name in ("passed", "unfit")}
    side = session.config.option.ours
    found = {"release": f"{package} {version(package)}", "side": side, **counts}
    session.config.option.counts.write_text(json.dumps(found))
