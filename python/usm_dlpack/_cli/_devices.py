# SPDX-License-Identifier: Apache-2.0
"""The root devices of this process, as a table or as JSON."""

import contextlib
import json
import os
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from usm_dlpack import ConversionError, _core
from usm_dlpack._cli import _doctor
from usm_dlpack._terminal import say_error, styled, wants_colour

_NO_DEVICE = (
    "install a driver, or the wheel intel-opencl-rt, and check OCL_ICD_FILENAMES, OCL_ICD_VENDORS "
    "and ONEAPI_DEVICE_SELECTOR"
)
_USM_KINDS = ("device", "host", "shared", "system")
# Variables that make the runtime or a driver hide devices.
_HIDING = (
    "ONEAPI_DEVICE_SELECTOR",
    "SYCL_DEVICE_ALLOWLIST",
    "ZE_AFFINITY_MASK",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)


def hiding_variables() -> dict[str, str]:
    """Return the variables that are set and may hide devices."""
    return {name: os.environ[name] for name in _HIDING if name in os.environ}


@contextlib.contextmanager
def _failing(answers: dict[str, Any]) -> Iterator[None]:
    """Add the text of an exception to the answers."""
    try:
        yield
    except Exception as error:  # a broken driver may fail at any query
        answers["failure"] = str(error) or type(error).__name__


def _described(row: dict[str, Any]) -> dict[str, Any]:
    number, device = row["device_id"], row["sycl_device"]
    answers = {
        "filter_string": device.get_filter_string,
        "name": lambda: str(device.name).strip(),
        "backend": lambda: device.backend.name,
        "device_type": lambda: device.device_type.name,
        "platform": lambda: device.sycl_platform.name,
        "usm": lambda: {k: getattr(device, f"has_aspect_usm_{k}_allocations") for k in _USM_KINDS},
    }
    described: dict[str, Any] = {"device_id": number, "failure": None}
    for name, ask in answers.items():
        described[name] = None
        with _failing(described):
            described[name] = ask()
    described["failure"] = row["failure"] or described["failure"]
    context: dict[str, Any] = {"available": False, "device_ids": [], "failure": None}
    with _failing(context):
        devices = _core.default_context(number).get_devices()
        context["device_ids"] = [_core.device_id(device) for device in devices]
        context["available"] = True
    parts: dict[str, Any] = {"most": 0, "by": [], "failure": None}
    with _failing(parts):
        parts["most"], parts["by"] = _core.partitions(number)
    usable = {"usable": described["failure"] is None}
    return described | usable | {"default_context": context, "sub_devices": parts}


def list_devices() -> list[dict[str, Any]]:
    """Describe each root device. Raises ConversionError if the runtime cannot list them."""
    return [_described(row) for row in _core.device_rows()]


def show(*, as_json: bool, colour: str = "auto", details: bool = True) -> int:
    if refusal := _doctor.refusal_of_two_majors():  # a device of dpctl may be no device of ours
        say_error(refusal)
        return 1
    try:
        devices = list_devices()
    except ConversionError as error:
        say_error(error)
        return 1
    coloured = wants_colour(sys.stdout, colour)
    if as_json:
        print(json.dumps({"variables": hiding_variables(), "devices": devices}, indent=2))
    else:
        _print_table(devices, coloured)
        if details:
            _print_all_details(devices, coloured)
    if not devices:
        remedy = _core.remedy_of_late_import() or _NO_DEVICE
        say_error(f"devices: expected at least one root device, found none; {remedy}")
    return 0 if any(device["usable"] for device in devices) else 1


def _print_table(devices: list[dict[str, Any]], colour: bool) -> None:
    title = "Root devices, by their DLPack device ids"
    print(styled(title, "bold", colour))
    rows: list[tuple[str, ...]] = [("id", "filter string", "backend", "name")]
    for device in devices:
        cells = (device[name] for name in ("device_id", "filter_string", "backend", "name"))
        rows.append(tuple("?" if cell is None else str(cell) for cell in cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(("  " + "  ".join(map(str.ljust, row, widths))).rstrip())
    for device in devices:
        if not device["usable"]:
            text = f"  device {device['device_id']} cannot be used: {device['failure']}"
            print(styled(text, "red", colour))


def _print_all_details(devices: list[dict[str, Any]], colour: bool) -> None:
    for device in devices:
        _print_details(device, colour)
    hiding = hiding_variables()
    if hiding:
        print()
    for name, value in hiding.items():
        print(f"{name}={value} is set: it may hide devices, and the ids count those that remain.")


def _print_details(device: dict[str, Any], colour: bool) -> None:
    number = device["device_id"]
    print("\n" + styled(f"Device {number} is (14, {number}) in DLPack", "bold", colour))
    context, usm, parts = device["default_context"], device["usm"], device["sub_devices"]
    ids = context["device_ids"]
    spans = f"spans device ids {', '.join(map(str, ids))}" if len(ids) > 1 else "spans it alone"
    spans += "; exchanged memory lives in it, and in no other context of the platform"
    kinds = ", ".join(kind for kind in _USM_KINDS if usm and usm[kind])
    of_root = f"at most {parts['most']} ({', '.join(parts['by'])}); they have the id of their root"
    facts = {
        "platform": device["platform"] or "?",
        "type": device["device_type"] or "?",
        "default context": spans if context["available"] else "cannot be made",
        "USM": "unknown" if usm is None else kinds or "none: nothing to exchange",
        "sub-devices": of_root if parts["by"] and parts["most"] > 1 else "none",
    }
    for name, text in facts.items():
        print(textwrap.fill(text, 96, initial_indent=f"  {name:17}", subsequent_indent=" " * 19))
