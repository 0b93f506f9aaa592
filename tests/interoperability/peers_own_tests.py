# SPDX-License-Identifier: Apache-2.0
"""Run the DLPack tests that the peers' wheels carry against this package: a pytest plugin.

The peers' test files are imported from where pip put them, and not changed. In the modules that
they call ``dpt``, ``dpnp`` or ``cupy`` one side of the exchange is exchanged for ours:

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

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Generator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import usm_dlpack  # before anything asks for devices: it makes the CPU driver known

with warnings.catch_warnings():
    # dpctl.tensor announces that it moves to dpnp.
    warnings.simplefilter("ignore", DeprecationWarning)
    import dpctl.memory

    TENSOR = import_module("dpctl.tensor" if find_spec("dpctl.tensor") else "dpnp.tensor")
    CAPSULES = import_module(f"{TENSOR.__name__}._dlpack")

from capsules import OldArray, content_of

CALLS = Counter[str]()
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


def _our_dlpack(array: Any, /, **keywords: Any) -> Any:
    CALLS["ours"] += 1
    return usm_dlpack.to_dlpack_tensor(array).__dlpack__(**keywords)


def _our_dlpack_device(array: Any, /) -> tuple[int, int]:
    CALLS["ours"] += 1
    return usm_dlpack.to_dlpack_tensor(array).__dlpack_device__()


class ArrayExportedByUs(TENSOR.usm_ndarray):  # type: ignore[misc, name-defined]
    """An array of theirs, whose DLPack methods are ours."""

    __dlpack__ = _our_dlpack
    __dlpack_device__ = _our_dlpack_device

    def __getitem__(self, key: Any) -> Any:
        return exported_by_us(super().__getitem__(key))

    @property
    def T(self) -> Any:  # noqa: N802
        return exported_by_us(super().T)

    @property
    def mT(self) -> Any:  # noqa: N802
        return exported_by_us(super().mT)


def exported_by_us(value: Any) -> Any:
    """Return an array of theirs as one that ours exports; anything else as it is."""
    if type(value) is TENSOR.usm_ndarray:
        return array_over(value, value.shape, value.dtype, value.strides, ArrayExportedByUs)
    return value


class Span:
    """The bytes that an array sees, as memory."""

    def __init__(self, array: Any, shape: Any, strides: Any, itemsize: int) -> None:
        interface = array.__sycl_usm_array_interface__
        first = interface["data"][0] + interface.get("offset", 0) * itemsize
        reach = [(n - 1) * s * itemsize for n, s in zip(shape, strides, strict=True)]
        below = sum(min(0, step) for step in reach) if 0 not in shape else 0
        above = sum(max(0, step) for step in reach) if 0 not in shape else 0
        self.array = array
        self.before_first = -below // itemsize
        self.__sycl_usm_array_interface__ = {
            "data": (first + below, False),
            "shape": (above - below + itemsize,),
            "strides": None,
            "typestr": "|u1",
            "version": 1,
            "syclobj": interface["syclobj"],
        }


def array_over(array: Any, shape: Any, dtype: Any, strides: Any, kind: Any) -> Any:
    """Return an array of theirs in the memory of another object."""
    span = Span(array, shape, strides, np.dtype(dtype).itemsize)
    memory = dpctl.memory.as_usm_memory(span)
    made = kind(shape, dtype=dtype, strides=strides, buffer=memory, offset=span.before_first)
    if array.__sycl_usm_array_interface__["data"][1]:
        made.flags["W"] = False
    return made


def _is_on_host(x: Any) -> bool:
    ask = getattr(x, "__dlpack_device__", None)
    return ask is not None and int(ask()[0]) == KDL_CPU


def _ours_of_capsule(capsule: Any) -> Any:
    if content_of(capsule).dl_tensor.device_type == KDL_CPU:
        return CAPSULES.from_dlpack_capsule(capsule)
    return _ours(OldArray(capsule))


def _counted_device_id(device: Any) -> tuple[int, int]:
    CALLS["ours"] += 1
    return 14, usm_dlpack.device_id(device)


def _counted_root_device(dl_device: tuple[int, int]) -> Any:
    CALLS["ours"] += 1
    return usm_dlpack.root_device(dl_device[1])


def _ours(x: Any, device: Any = None, copy: bool | None = None) -> Any:
    """Take an array by our `from_dlpack`, and show it as one of theirs."""
    place = getattr(device, "sycl_queue", device)
    to_host = isinstance(place, tuple) and len(place) == 2 and int(place[0]) == KDL_CPU
    if (device is None or to_host) and _is_on_host(x):
        # From the host to the host: nothing that this package does, so theirs does it, uncounted.
        return TENSOR.from_dlpack(x, device=device, copy=copy)
    CALLS["ours"] += 1
    if to_host:
        return usm_dlpack.from_dlpack(x).numpy()
    if isinstance(place, tuple):
        place = tuple(int(part) for part in place)
    tensor = usm_dlpack.from_dlpack(x, device=place, copy=copy)
    return array_over(tensor, tensor.shape, tensor.dtype, tensor.strides, TENSOR.usm_ndarray)


def _ours_for_dpnp(x: Any, /, **keywords: Any) -> Any:
    import dpnp

    taken = _ours(x, **keywords)
    if isinstance(taken, np.ndarray):
        return taken
    return dpnp.asarray(taken, copy=False)


class Exchanged(ModuleType):
    """A namespace of theirs with some names exchanged."""

    def __init__(self, namespace: ModuleType, names: dict[str, Any], pass_on: Any = None) -> None:
        super().__init__(namespace.__name__)
        self.__dict__.update(_namespace=namespace, _names=names, _pass_on=pass_on)

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        value = getattr(self._namespace, name)
        if not callable(value) or isinstance(value, type):
            return value

        def called(*arguments: Any, **keywords: Any) -> Any:
            made = value(*arguments, **keywords)
            return made if self._pass_on is None else self._pass_on(made)

        return called


def exchange_names(side: str) -> dict[ModuleType, ModuleType]:
    """Return what stands for each namespace of theirs."""
    if side == "producer":
        capsules: dict[str, Any] = {"to_dlpack_capsule": lambda array: array.__dlpack__()}
        tensor: dict[str, Any] = {"sycl_device_to_dldevice": _counted_device_id}
        top: dict[str, Any] = {}
    else:
        capsules = {"from_dlpack_capsule": _ours_of_capsule}
        tensor = {"from_dlpack": _ours, "dldevice_to_sycl_device": _counted_root_device}
        top = {"from_dlpack": _ours_for_dpnp}
    made: dict[ModuleType, ModuleType] = {
        TENSOR: Exchanged(TENSOR, tensor, exported_by_us if side == "producer" else None),
        CAPSULES: Exchanged(CAPSULES, capsules),
    }
    if TENSOR.__name__ == "dpnp.tensor":
        import dpnp

        made[dpnp] = Exchanged(dpnp, top)
    return made


class Verdicts:
    """Says of each case whether it passed as it should."""

    def __init__(self, side: str, report: Path) -> None:
        self.side = side
        self.report = report
        self.counts = Counter[str]()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        made = exchange_names(self.side)
        if self.side == "producer" and TENSOR.__name__ == "dpnp.tensor":
            # The type of its public arrays is a Python class.
            import dpnp

            dpnp.ndarray.__dlpack__ = _our_dlpack
            dpnp.ndarray.__dlpack_device__ = _our_dlpack_device
        for module in {item.module for item in items}:  # type: ignore[attr-defined]
            for name, value in vars(module).items():
                if isinstance(value, ModuleType) and value in made:
                    setattr(module, name, made[value])
        for item in items:
            parameters = getattr(getattr(item, "callspec", None), "params", {})
            for name, value in parameters.items():
                if isinstance(value, ModuleType) and value in made:
                    parameters[name] = made[value]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        if call.when == "setup":
            CALLS.clear()
        report = yield
        if call.when == "call" or (call.when == "setup" and report.outcome != "passed"):
            self.judge(item, report)
        return report

    def judge(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Turn what pytest says of a case into what this run wants of it."""
        reason = UNFIT[self.side].get(item.originalname)  # type: ignore[attr-defined]
        reached = report.outcome == "passed" and CALLS["ours"] > 0
        if reached and reason is not None:
            report.outcome = "failed"
            report.longrepr = "expected a case that does not fit, found one that passes"
        elif report.outcome == "failed" and reason is not None:
            report.outcome = "skipped"
            report.wasxfail = reason
        self.counts["passed" if reached else "unfit"] += 1

    def pytest_sessionfinish(self) -> None:
        package = TENSOR.__name__.split(".")[0]
        counts = {name: str(self.counts[name]) for name in ("passed", "unfit")}
        found = {"release": f"{package} {version(package)}", "side": self.side, **counts}
        self.report.write_text(json.dumps(found))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ours", choices=["producer", "consumer"], required=True)
    parser.addoption("--counts", type=Path, required=True, help="write how many passed, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Verdicts(config.option.ours, config.option.counts))
