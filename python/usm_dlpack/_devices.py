# SPDX-License-Identifier: Apache-2.0
"""The root devices of this process as a table, or as JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from usm_dlpack import ConversionError, _core

_NO_DEVICE = (
    "devices: expected at least one root device, found none; install a driver, or the wheel "
    "intel-opencl-rt, and check OCL_ICD_FILENAMES, OCL_ICD_VENDORS and ONEAPI_DEVICE_SELECTOR"
)


def _described(row: dict[str, Any]) -> dict[str, Any]:
    device = row["sycl_device"]
    described: dict[str, Any] = {"device_id": row["device_id"]}
    try:
        described |= {
            "filter_string": device.get_filter_string(),
            "name": device.name.strip(),
            "backend": device.backend.name,
            "device_type": device.device_type.name,
            "platform": device.sycl_platform.name,
        }
    except Exception as error:  # a broken driver may refuse any question
        unknown = dict.fromkeys(("filter_string", "name", "backend", "device_type", "platform"))
        described = unknown | described
        row["failure"] = row["failure"] or str(error)
    described["usable"] = row["failure"] is None
    described["failure"] = row["failure"]
    return described


def list_devices() -> list[dict[str, Any]]:
    """Return a dictionary for each root device, in the order of the DLPack ids."""
    return [_described(row) for row in _core.device_rows()]


def show(*, as_json: bool) -> int:
    """Print the root devices; return 0 if there is one that works."""
    try:
        devices = list_devices()
    except ConversionError as error:  # the runtime cannot even list them
        print(error, file=sys.stderr)
        return 1
    if as_json:
        selector = os.environ.get("ONEAPI_DEVICE_SELECTOR")
        print(json.dumps({"ONEAPI_DEVICE_SELECTOR": selector, "devices": devices}, indent=2))
    else:
        _print_table(devices)
    if not devices:
        print(_NO_DEVICE, file=sys.stderr)
    return 0 if any(device["usable"] for device in devices) else 1


def _print_table(devices: list[dict[str, Any]]) -> None:
    print("Root devices (their place is the DLPack device id)")
    columns = ("device_id", "filter_string", "backend", "name")
    rows: list[tuple[str, ...]] = [("id", "filter string", "backend", "name")]
    for device in devices:
        cells = (device[column] for column in columns)
        rows.append(tuple("?" if cell is None else str(cell) for cell in cells))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  " + "  ".join([*padded, row[3]]))
    for device in devices:
        if not device["usable"]:
            print(f"  device {device['device_id']} cannot be used: {device['failure']}")
