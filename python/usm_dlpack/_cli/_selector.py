# SPDX-License-Identifier: Apache-2.0
"""Measures the effects of ONEAPI_DEVICE_SELECTOR and of other variables that hide devices.

A new process lists the devices without the selector. If several devices have the same name, the
selector is tried with each device added: a device that adds nothing was selected before.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

from usm_dlpack._cli._child import HIDING, Device, list_with

SELECTOR = "ONEAPI_DEVICE_SELECTOR"
_MOST_EMBEDDINGS = 10_000


def terms_of(devices: list[Device]) -> list[str]:
    """Return the selector term of each device: its backend, and its position there."""
    places: dict[str, int] = {}
    terms = []
    for device in devices:
        backend = device["backend"] or "*"
        terms.append(f"{backend}:{places.get(backend, 0)}")
        places[backend] = places.get(backend, 0) + 1
    return terms


def _embeddings(devices: list[Device], everything: list[Device]) -> list[list[int]]:
    """Return the ways to find some devices, in order, among all devices, by their names."""
    keys = [(device["backend"], device["name"]) for device in devices]
    known = [(device["backend"], device["name"]) for device in everything]
    ways = itertools.combinations(range(len(known)), len(keys))
    tried = itertools.islice(ways, _MOST_EMBEDDINGS)
    return [list(way) for way in tried if [known[place] for place in way] == keys]


def _chosen(selector: str, devices: list[Device], everything: list[Device]) -> list[int] | None:
    """Return the positions, among all devices, of those that a selector selects.

    None if that is unknown, for example for a selector of sub-devices.
    """
    ways = _embeddings(devices, everything)
    if len(ways) == 1:
        return ways[0]
    if not ways:
        return None
    chosen = [
        place
        for place, term in enumerate(terms_of(everything))
        if len(list_with({SELECTOR: f"{selector};{term}"})) == len(devices)
    ]
    return chosen if chosen in ways else None


def changes_of_selector(
    devices: list[Device], progress: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Return what the variables that are set change in a process with these devices.

    Returns
    -------
    :
        ``value`` of the selector, or None; ``hidden``, the devices that it hides; ``without``, by
        device id, the id without the selector; ``failure``, why that could not be found out; and
        ``others``, what other variables hide: how many root devices, or None if that is not known.
    """
    value = os.environ.get(SELECTOR)
    found: dict[str, Any] = {"value": value, "hidden": [], "without": None, "failure": None}
    found["others"] = _effects_of_others(len(devices), progress)
    if value is None:
        return found
    if "." in value:  # the runtime shows a sub-device that it lists as a root device
        text = "it names sub-devices, which without it are no devices of their own"
        return found | {"failure": text}
    progress(f"listing devices without {SELECTOR}")
    try:
        everything = list_with({SELECTOR: None})
        progress("finding out which devices it hides")
        chosen = _chosen(value, devices, everything)
    except RuntimeError as error:
        return found | {"failure": str(error)}
    if chosen is None:
        text = "the devices without it cannot be told from each other"
        return found | {"failure": text}
    found["hidden"] = [
        {"device_id": place} | device
        for place, device in enumerate(everything)
        if place not in chosen
    ]
    return found | {"without": chosen}


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
        value = os.environ[name]
        if name == "ZE_AFFINITY_MASK" and "." in value and "level_zero" in backends:
            # Selected tiles are listed as root devices, so the counts cannot be compared.
            effects.append({"name": name, "value": value, "hides": None})
        elif len(backends) != count:
            effects.append({"name": name, "value": value, "hides": len(backends) - count})
    return effects
