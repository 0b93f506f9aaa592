# SPDX-License-Identifier: Apache-2.0
"""Measures the effects of ONEAPI_DEVICE_SELECTOR and of other variables that hide devices.

A new process lists the devices without the selector. If several devices have the same name, the
selector is tried with each device added: a device that adds nothing was selected before.
"""

import os
from collections.abc import Callable
from typing import Any

from usm_dlpack._cli._child import HIDING, Device, list_with

SELECTOR = "ONEAPI_DEVICE_SELECTOR"


def terms_of(devices: list[Device]) -> list[str]:
    """Return the selector term of each device: its backend, and its position there."""
    places: dict[str, int] = {}
    terms = []
    for device in devices:
        backend = device["backend"] or "*"
        terms.append(f"{backend}:{places.get(backend, 0)}")
        places[backend] = places.get(backend, 0) + 1
    return terms


def _chosen(selector: str, devices: list[Device], everything: list[Device]) -> list[int] | None:
    """Return the positions, among all devices, of those that a selector selects.

    None if that is unknown, for example for a selector of sub-devices.
    """
    wanted = [(device["backend"], device["name"]) for device in devices]
    names = [(device["backend"], device["name"]) for device in everything]
    if len(set(names)) == len(names):
        chosen = [place for place, name in enumerate(names) if name in wanted]
    elif len(wanted) in (0, len(names)):
        chosen = list(range(len(wanted)))
    else:
        chosen = [
            place
            for place, term in enumerate(terms_of(everything))
            if len(list_with({SELECTOR: f"{selector};{term}"})) == len(devices)
        ]
    return chosen if [names[place] for place in chosen] == wanted else None


def changes_of_selector(
    devices: list[Device], progress: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Return what the variables that are set change in a process with these devices.

    ``value`` is the selector, or None; ``hidden`` the devices that it hides; ``without`` has by
    device id the id without the selector; ``failure`` is why that could not be found out; and
    ``others`` what other variables hide: how many root devices, or None if that is not known.
    """
    value = os.environ.get(SELECTOR)
    found: dict[str, Any] = {"value": value, "hidden": [], "without": None, "failure": None}
    found["others"] = _effects_of_others(len(devices), progress)
    if value is None:
        return found
    if "." in value:  # the runtime shows a sub-device that it lists as a root device
        failure = "it names sub-devices, which without it are no devices of their own"
        return found | {"failure": failure}
    progress(f"listing devices without {SELECTOR}")
    try:
        everything = list_with({SELECTOR: None})
        progress("finding out which devices it hides")
        chosen = _chosen(value, devices, everything)
    except RuntimeError as error:
        return found | {"failure": str(error)}
    if chosen is None:
        failure = "the devices without it cannot be told from each other"
        return found | {"failure": failure}
    rows = enumerate(everything)
    hidden = [{"device_id": n} | device for n, device in rows if n not in chosen]
    return found | {"hidden": hidden, "without": chosen}


def _effects_of_others(count: int, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    effects: list[dict[str, Any]] = []
    for name in HIDING[1:]:
        if name not in os.environ:
            continue
        progress(f"listing devices without {name}")
        try:
            backends = [device["backend"] for device in list_with({name: None})]
        except RuntimeError:
            continue
        # Tiles that ZE_AFFINITY_MASK selects are listed as root devices: no count tells.
        tiles = name == "ZE_AFFINITY_MASK" and "." in os.environ[name] and "level_zero" in backends
        if tiles or len(backends) != count:
            hides = None if tiles else len(backends) - count
            effects.append({"name": name, "value": os.environ[name], "hides": hides})
    return effects
