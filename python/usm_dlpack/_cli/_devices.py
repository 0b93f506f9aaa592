# SPDX-License-Identifier: Apache-2.0
"""The root devices of this process, as a table or as JSON."""

import json
import sys
import textwrap
from contextlib import suppress
from typing import Any

from usm_dlpack import ConversionError, _core
from usm_dlpack._cli._child import describe
from usm_dlpack._cli._selector import changes_of_selector
from usm_dlpack._cpu_driver import remedy_of_late_import
from usm_dlpack._explain._steps import Facts, failing
from usm_dlpack._terminal import Progress, say_error, styled, wants_colour

_NO_DEVICE = (
    "install a driver, or the wheel intel-opencl-rt, and check OCL_ICD_FILENAMES, OCL_ICD_VENDORS "
    "and ONEAPI_DEVICE_SELECTOR"
)
_USM_KINDS = ("device", "host", "shared", "system")


def _described(row: dict[str, Any]) -> dict[str, Any]:
    number, device = row["device_id"], row["sycl_device"]
    described = {"device_id": number} | describe(device)
    described["failure"] = row["failure"] or described["failure"]
    context: Facts = {"available": False, "device_ids": [], "failure": None}
    with failing(context):
        devices = _core.default_context(number).get_devices()
        context["device_ids"] = [_core.device_id(device) for device in devices]
        context["available"] = True
    usm: dict[str, bool] | None = None
    with suppress(Exception):  # a broken driver may fail at any query
        usm = {kind: getattr(device, f"has_aspect_usm_{kind}_allocations") for kind in _USM_KINDS}
    parts: Facts = {"most": 0, "by": [], "failure": None}
    with failing(parts):
        parts["most"], parts["by"] = _core.partitions(number)
    usable = {"usable": described["failure"] is None}
    return described | usable | {"default_context": context, "usm": usm, "sub_devices": parts}


def show(*, as_json: bool, colour: str = "auto", details: bool = True) -> int:
    try:
        devices = [_described(row) for row in _core.device_rows()]
    except ConversionError as error:  # the runtime cannot list devices
        say_error(error)
        return 1
    coloured = wants_colour(sys.stdout, colour)
    if not details:
        _print_table(devices, coloured)
        return _status(devices)
    with Progress() as progress:
        changes = changes_of_selector(devices, progress.show)
    ids = changes["without"]
    for device in devices:
        number = device["device_id"]
        unchanged = number if changes["value"] is None else None
        device["device_id_without_selector"] = unchanged if ids is None else ids[number]
    if as_json:
        listed = {"ONEAPI_DEVICE_SELECTOR": changes["value"]}
        print(json.dumps(listed | {"selector": changes, "devices": devices}, indent=2))
    else:
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
    other = device["device_id_without_selector"]
    if other not in (None, number):
        facts["selector"] = f"without it, this device would be {other}"
    for name, text in facts.items():
        print(textwrap.fill(text, 96, initial_indent=f"  {name:17}", subsequent_indent=" " * 19))


def _print_changes(changes: dict[str, Any]) -> None:
    setting = f"ONEAPI_DEVICE_SELECTOR={changes['value']}"
    if changes["value"] is None:
        told = "it hides no device" if changes["others"] else "every root device is listed"
        lines = [f"ONEAPI_DEVICE_SELECTOR is not set: {told}."]
    elif changes["failure"] is not None:
        lines = [f"{setting}: its effect is not known: {changes['failure']}."]
    elif not changes["hidden"]:
        lines = [f"{setting} changes nothing: it hides no device."]
    else:
        named = (f"{one['device_id']} ({one['filter_string']})" for one in changes["hidden"])
        lines = [f"{setting} hides what without it would be device {', '.join(named)}."]
    for other in changes["others"]:
        hides, setting = other["hides"], f"{other['name']}={other['value']}"
        told = "names sub-devices: what it hides, and the ids without it, are not known"
        if hides is not None:
            effect = f"hides {hides}" if hides > 0 else f"adds {-hides}"
            told = f"{effect} of the root devices"
        lines.append(f"{setting} {told}.")
    print()
    for line in lines:
        print(textwrap.fill(line, 96, subsequent_indent="  "))
