# SPDX-License-Identifier: Apache-2.0
"""Imports, and lists of root devices, in a new process.

An import may crash its process, and the runtime reads its variables only once. The file runs itself
as a program without importing the package, which may be broken.
"""

import importlib
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Variables that make the runtime or a driver hide devices.
HIDING = (
    "ONEAPI_DEVICE_SELECTOR",
    "SYCL_DEVICE_FILTER",
    "SYCL_DEVICE_ALLOWLIST",
    "ZE_AFFINITY_MASK",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)
_SECONDS = 120
_LIBRARIES = re.compile(r"/[^\n]*/libsycl\.so[.\d]*$", re.MULTILINE)

Device = dict[str, Any]


@dataclass
class Probe:
    """The result of importing modules: a failure or None, and each libsycl in the process."""

    failure: str | None = None
    libraries: list[str] = field(default_factory=list)


def _answer(arguments: Iterable[str], changes: Mapping[str, str | None]) -> Any:
    """Run this file with some variables changed or removed, and return what it prints.

    If the process fails, the RuntimeError has the last line that it wrote, or how it ended.
    """
    merged = {**os.environ, **changes}
    environment = {name: value for name, value in merged.items() if value is not None}
    command = [sys.executable, __file__, *arguments]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace",
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(str(error)) from error
    if done.returncode < 0:
        raise RuntimeError(f"the process was ended by signal {-done.returncode}")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(lines[-1].strip())
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise RuntimeError("the process printed something else than was asked") from error


def import_in_child(modules: Iterable[str]) -> Probe:
    """Import modules in a new process, one after the other."""
    try:
        return Probe(None, _answer(["import", *modules], {}))
    except RuntimeError as error:
        return Probe(str(error))


def list_with(changes: Mapping[str, str | None]) -> list[Device]:
    """Return the root devices that a new process has with some variables changed or removed."""
    devices: list[Device] = _answer(["devices"], changes)
    return devices


def describe(device: Any) -> Device:
    """Describe a device; what a broken driver does not answer is None, beside the failure."""
    described: Device = {"failure": None}
    for name, ask in {
        "filter_string": device.get_filter_string,
        "name": lambda: str(device.name).strip(),
        "backend": lambda: device.backend.name,
        "device_type": lambda: device.device_type.name,
        "platform": lambda: device.sycl_platform.name,
    }.items():
        try:
            described[name] = ask()
        except Exception as error:
            described |= {name: None, "failure": str(error) or type(error).__name__}
    return described


# --- in the new process


def _described(device: Any) -> Device:
    import dpctl

    described = describe(device)
    try:
        dpctl.SyclContext(device)
    except Exception as error:
        described["failure"] = str(error) or type(error).__name__
    return described


def _list_devices() -> list[Device]:
    driver = Path(__file__).parents[1] / "_cpu_driver.py"
    runpy.run_path(str(driver))["register_cpu_driver"]()
    import dpctl

    return [_described(device) for device in dpctl.get_devices()]


def _import(modules: Iterable[str]) -> list[str]:
    try:
        for name in modules:
            importlib.import_module(name)
    except Exception as error:
        cause = error.__cause__ or error  # our error is raised from the loader's
        print(f"{type(cause).__name__}: {cause}", file=sys.stderr)
        raise SystemExit(1) from error
    return sorted(set(_LIBRARIES.findall(Path("/proc/self/maps").read_text(errors="replace"))))


if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder
    answer = _import(sys.argv[2:]) if sys.argv[1] == "import" else _list_devices()
    print("\n" + json.dumps(answer))
