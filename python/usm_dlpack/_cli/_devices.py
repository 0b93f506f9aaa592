# SPDX-License-Identifier: Apache-2.0
"""The root devices of this process, as a table or as JSON."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from typing import Any

from usm_dlpack import ConversionError, _core
from usm_dlpack._cli._selector import changes_of_selector
from usm_dlpack._driver import remedy_of_late_import
from usm_dlpack._explain._answers import ask_default_context, ask_partition
from usm_dlpack._terminal import Progress, say_error, styled, wants_colour

_NO_DEVICE = (
    "install a driver, or the wheel intel-opencl-rt, and check OCL_ICD_FILENAMES, OCL_ICD_VENDORS "
    "and ONEAPI_DEVICE_SELECTOR"
)
_USM_KINDS = ("device", "host", "shared", "system")


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
    except Exception as error:  # a broken driver may fail at any query
        unknown = dict.fromkeys(("filter_string", "name", "backend", "device_type", "platform"))
        described = unknown | described
        row["failure"] = row["failure"] or str(error)
    described["usable"] = row["failure"] is None
    described["failure"] = row["failure"]
    return described


def _usm_of(device: Any) -> dict[str, bool] | None:
    try:
        return {
            kind: bool(getattr(device, f"has_aspect_usm_{kind}_allocations")) for kind in _USM_KINDS
        }
    except Exception:  # a broken driver may fail at any query
        return None


def list_devices() -> list[dict[str, Any]]:
    """Return a dictionary for each root device, in the order of the DLPack ids."""
    return [_described(row) for row in _core.device_rows()]


def list_details() -> list[dict[str, Any]]:
    """Return `list_devices` with each device's default context, USM kinds and sub-devices."""
    details = []
    for row in _core.device_rows():
        number = row["device_id"]
        context, parts = ask_default_context(number), ask_partition(number)
        further = {
            "default_context": {name: context[name] for name in sorted(context)},
            "usm": _usm_of(row["sycl_device"]),
            "sub_devices": {name: parts[name] for name in sorted(parts)},
        }
        details.append(_described(row) | further)
    return details


def _add_ids(devices: list[dict[str, Any]], changes: dict[str, Any]) -> None:
    """Add each device's id without the selector; None if it is not known."""
    for device in devices:
        number = device["device_id"]
        if changes["value"] is None:
            device["device_id_without_selector"] = number
        else:
            known = changes["without"]
            device["device_id_without_selector"] = None if known is None else known[number]


def show(*, as_json: bool, colour: str = "auto", details: bool = True) -> int:
    """Print the root devices; return 0 if there is one that works."""
    try:
        devices = list_details()
    except ConversionError as error:  # the runtime cannot list devices
        say_error(error)
        return 1
    if not details:
        _print_table(devices, wants_colour(sys.stdout, colour))
        return _status(devices)
    with Progress() as progress:
        changes = changes_of_selector(devices, progress.show)
    _add_ids(devices, changes)
    if as_json:
        selector = os.environ.get("ONEAPI_DEVICE_SELECTOR")
        listed = {"ONEAPI_DEVICE_SELECTOR": selector, "selector": changes, "devices": devices}
        print(json.dumps(listed, indent=2))
    else:
        coloured = wants_colour(sys.stdout, colour)
        _print_table(devices, coloured)
        for device in devices:
            _print_details(device, coloured)
        _print_changes(changes)
    return _status(devices)


def _status(devices: list[dict[str, Any]]) -> int:
    if not devices:
        remedy = remedy_of_late_import() or _NO_DEVICE
        say_error(f"devices: expected at least one root device, found none; {remedy}")
    return 0 if any(device["usable"] for device in devices) else 1


def _print_table(devices: list[dict[str, Any]], colour: bool) -> None:
    title = "Root devices (their place is the DLPack device id)"
    print(styled(title, "bold", colour))
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
            text = f"  device {device['device_id']} cannot be used: {device['failure']}"
            print(styled(text, "red", colour))


def _context_words(context: dict[str, Any]) -> str:
    if not context["available"]:
        return "cannot be made"
    ids = context["device_ids"]
    spans = f"spans device ids {', '.join(map(str, ids))}" if len(ids) > 1 else "of it alone"
    return f"{spans}; exchanged memory lives in it, and in no other context of the platform"


def _usm_words(usm: dict[str, bool] | None) -> str:
    if usm is None:
        return "unknown"
    return ", ".join(kind for kind in _USM_KINDS if usm[kind]) or "none: nothing to exchange"


def _parts_words(parts: dict[str, Any]) -> str:
    if not parts["by"] or parts["most"] < 2:
        return "none"
    return f"at most {parts['most']} ({', '.join(parts['by'])}); they have the id of their root"


def _print_details(device: dict[str, Any], colour: bool) -> None:
    number = device["device_id"]
    print("\n" + styled(f"Device {number} is (14, {number}) in DLPack", "bold", colour))
    facts = [("platform", device["platform"] or "?"), ("type", device["device_type"] or "?")]
    facts += [
        ("default context", _context_words(device["default_context"])),
        ("USM", _usm_words(device["usm"])),
        ("sub-devices", _parts_words(device["sub_devices"])),
    ]
    other = device["device_id_without_selector"]
    if other is not None and other != number:
        facts.append(("selector", f"without it, this device would be {other}"))
    for name, text in facts:
        print(textwrap.fill(text, 96, initial_indent=f"  {name:17}", subsequent_indent=" " * 19))


def _print_changes(changes: dict[str, Any]) -> None:
    value = changes["value"]
    print()
    if value is None:
        told = "it hides no device" if changes["others"] else "every root device is listed"
        print(f"ONEAPI_DEVICE_SELECTOR is not set: {told}.")
    elif changes["failure"] is not None:
        text = f"ONEAPI_DEVICE_SELECTOR={value}: its effect is not known: {changes['failure']}."
        print(textwrap.fill(text, 96, subsequent_indent="  "))
    elif not changes["hidden"]:
        print(f"ONEAPI_DEVICE_SELECTOR={value} changes nothing: it hides no device.")
    else:
        hidden = ", ".join(
            f"{device['device_id']} ({device['filter_string']})" for device in changes["hidden"]
        )
        text = f"ONEAPI_DEVICE_SELECTOR={value} hides what without it would be device {hidden}."
        print(textwrap.fill(text, 96, subsequent_indent="  "))
    for other in changes["others"]:
        hides, setting = other["hides"], f"{other['name']}={other['value']}"
        if hides is None:
            text = f"{setting} names sub-devices: what it hides, and the ids without it, "
            text += "are not known."
            print(textwrap.fill(text, 96, subsequent_indent="  "))
        else:
            effect = f"hides {hides}" if hides > 0 else f"adds {-hides}"
            print(f"{setting} {effect} of the root devices.")
