# SPDX-License-Identifier: Apache-2.0
"""Root devices as a process with other environment variables sees them.

The runtime reads the variables once in a process, so each question is a child process, which runs
this file as a program: without the package, which may be what cannot be imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Those by which the runtime or a driver hides devices; what a release no longer reads changes
# nothing, and is then not spoken of.
HIDING = (
    "ONEAPI_DEVICE_SELECTOR",
    "SYCL_DEVICE_FILTER",
    "SYCL_DEVICE_ALLOWLIST",
    "ZE_AFFINITY_MASK",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)
_SECONDS = 60

Device = dict[str, Any]


def list_with(changes: Mapping[str, str | None]) -> list[Device]:
    """Return the root devices that a new process has with some variables changed or removed.

    Raises
    ------
    RuntimeError
        If the process fails; its text is the last line that it said.
    """
    environment = dict(os.environ)
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    try:
        done = subprocess.run(
            [sys.executable, __file__],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        devices: list[Device] = (
            json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else []
        )
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(str(error)) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(lines[-1])
    return devices


def _describe(device: Any) -> Device:
    described: Device = {}
    for name, ask in (
        ("filter_string", device.get_filter_string),
        ("backend", lambda: device.backend.name),
        ("name", lambda: str(device.name).strip()),
    ):
        try:
            described[name] = ask()
        except Exception:  # a broken driver may refuse any question
            described[name] = None
    return described | {"failure": _failure_of(device)}


def _failure_of(device: Any) -> str | None:
    import dpctl

    try:
        dpctl.SyclContext(device)
    except Exception as error:
        return str(error) or type(error).__name__
    return None


if __name__ == "__main__":
    import runpy

    sys.path.pop(0)  # this file's folder: the package's inside
    runpy.run_path(str(Path(__file__).with_name("_driver.py")))["register_cpu_driver"]()
    import dpctl

    print(json.dumps([_describe(device) for device in dpctl.get_devices()]))
