# SPDX-License-Identifier: Apache-2.0
"""Answers of the SYCL runtime as dictionaries; a query that fails gives the text of its failure."""

import contextlib
from collections.abc import Iterator
from typing import Any

from usm_dlpack import _core

Facts = dict[str, Any]


@contextlib.contextmanager
def failing(answers: Facts) -> Iterator[None]:
    """Add the text of an exception to the answers."""
    try:
        yield
    except Exception as error:  # a broken driver may fail at any query
        answers["failure"] = str(error)


def _describe_device(device: Any) -> Facts:
    """Describe a device; its id is that of its root, or None."""
    answers: Facts = {"device_id": None, "sub_device": device.parent_device is not None}
    answers["name"] = None
    with failing(answers):
        answers["device_id"] = _core.device_id(device)
        answers["name"] = device.name
    return answers


def ask_context(address: int, context: Any) -> Facts:
    """Describe a context, its devices and a pointer in it."""
    defaults = [known for known, *_ in _core.platforms() if known is not None]
    answers: Facts = {"default": context in defaults, "platform": None, "devices": []}
    with failing(answers):
        devices = context.get_devices()
        answers["platform"] = devices[0].sycl_platform.name
        answers["devices"] = [_describe_device(device) for device in devices]
    said: Facts = {"kind": None}
    with failing(said):
        said["kind"], device = _core.ask_pointer(address, context)
        if device is not None:
            said["device"] = _describe_device(device)
    return answers | {"sycl": said}


def ask_platforms(address: int) -> list[Facts]:
    """Describe a pointer in each default context, in the order of the device ids."""
    rows = []
    for context, backend, first_device in _core.platforms():
        row: Facts = {"failure": "no default context", "devices": []}
        if context is not None:
            row = ask_context(address, context)
        rows.append(row | {"backend": backend, "first_device": first_device})
    return rows
