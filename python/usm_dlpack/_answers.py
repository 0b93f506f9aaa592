# SPDX-License-Identifier: Apache-2.0
"""Words for what the runtime and the backends answer about devices, contexts and pointers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from usm_dlpack._errors import shown

_DEVICE_TYPES = {
    1: "kDLCPU",
    2: "kDLCUDA",
    3: "kDLCUDAHost",
    4: "kDLOpenCL",
    7: "kDLVulkan",
    8: "kDLMetal",
    9: "kDLVPI",
    10: "kDLROCM",
    11: "kDLROCMHost",
    12: "kDLExtDev",
    13: "kDLCUDAManaged",
    14: "kDLOneAPI",
    15: "kDLWebGPU",
    16: "kDLHexagon",
    17: "kDLMAIA",
    18: "kDLTrn",
}
_FLAGS = {1: "READ_ONLY", 2: "IS_COPIED", 4: "IS_SUBBYTE_TYPE_PADDED"}


def attempt(query: Callable[[], Any], failed: Any = None) -> Any:
    """Return what a query answers, or a value in its place if it raises."""
    try:
        return query()
    except Exception:
        return failed


def device_type_words(number: int) -> str:
    """Return DLPack's name of a device type, and its number."""
    return f"{_DEVICE_TYPES.get(number, 'a device type that DLPack does not have')} ({number})"


def flags_words(flags: int) -> str:
    """Return the names of DLPack's flags, and the number."""
    names = [name for bit, name in _FLAGS.items() if flags & bit]
    names += ["bits that DLPack does not define"] if flags & ~sum(_FLAGS) else []
    return f"flags {flags} ({', '.join(names) or 'none'})"


def plural(count: int, noun: str) -> str:
    """Return a number and a noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def device_words(device: dict[str, Any]) -> str:
    """Return which root device a device is, or is a part of."""
    number = device.get("device_id")
    root = "a root device without an id" if number is None else f"root device {number}"
    name = device.get("name")
    named = f' "{name.strip()}"' if name else ""
    return f"a sub-device of {root}{named}" if device.get("sub_device") else f"{root}{named}"


def context_words(context: dict[str, Any]) -> str:
    """Return which devices a context spans, and whether it is a default context."""
    devices = context.get("devices", [])
    spans = ", ".join(device_words(device) for device in devices) or "no device"
    kind = "the default context" if context.get("default") else "a context of its own"
    platform = context.get("platform")
    of = f' of the platform "{platform}"' if context.get("default") else ""
    on = "" if context.get("default") else f', on the platform "{platform}"'
    return f"{kind}{of} with {spans}{on}"


def known_kind(answer: dict[str, Any]) -> str | None:
    """Return the USM kind that a context knows a pointer as; None if nobody could say."""
    kind = answer.get("backend_answer", {}).get("kind") or answer.get("sycl", {}).get("kind")
    return None if kind is None else str(kind)


def pointer_question(answer: dict[str, Any] | None, context: str) -> str:
    """Return by which queries a context was asked for a pointer."""
    asked = f"sycl::get_pointer_type(data, {context})"
    query = (answer or {}).get("backend_answer", {}).get("query")
    if query == "clGetMemAllocInfoINTEL":
        asked += f" and {query}(CL_MEM_ALLOC_TYPE_INTEL)"
    return asked


def pointer_words(answer: dict[str, Any]) -> str:
    """Return what a context knows of a pointer."""
    sycl = answer.get("sycl", {})
    told = []
    if sycl.get("kind") is not None:
        told.append(f"SYCL says {_kind_words(sycl['kind'])}")
    elif sycl.get("failure"):
        told.append(f"SYCL's query throws {shown(sycl['failure'])}")
    backend = answer.get("backend_answer", {})
    if backend.get("kind") is not None:
        told.append(f"OpenCL says {_kind_words(backend['kind'])}")
    elif backend.get("failure"):
        told.append(f"the backend fails with {shown(backend['failure'])}")
    return ", ".join(told) or "no answer"


def _kind_words(kind: str) -> str:
    return "unknown: no USM of this context" if kind == "unknown" else f"{kind} USM"


def device_question(answer: dict[str, Any]) -> str:
    """Return by which queries the device of the memory was asked for."""
    if answer.get("backend_answer", {}).get("query") == "clGetMemAllocInfoINTEL":
        return (
            "clGetMemAllocInfoINTEL(CL_MEM_ALLOC_DEVICE_INTEL), and beside it "
            "sycl::get_pointer_device, which on OpenCL names the first device of the context"
        )
    return "sycl::get_pointer_device"


def true_device(answer: dict[str, Any]) -> dict[str, Any] | None:
    """Return the device that the memory truly is on: the backend's answer, or else SYCL's."""
    if known_kind(answer) not in ("device", "shared"):
        return None
    backend = answer.get("backend_answer", {})
    if "device_id" in backend:
        return {"device_id": backend["device_id"], "sub_device": backend["sub_device"]}
    device = answer.get("sycl", {}).get("device")
    return None if device is None else dict(device)


def true_device_words(answer: dict[str, Any]) -> str:
    """Return on which device the memory is, and who says so."""
    kind = known_kind(answer)
    if kind == "host":
        return "host USM belongs to no single device; any id of its platform is true of it"
    if kind not in ("device", "shared"):
        return "no memory, no device"
    told = []
    backend = answer.get("backend_answer", {})
    if "device_id" in backend:
        told.append(f"OpenCL says {device_words(backend)}")
    if answer.get("sycl", {}).get("device"):
        told.append(f"SYCL says {device_words(answer['sycl']['device'])}")
    return "; ".join(told) or "no answer"


def platforms_words(rows: list[dict[str, Any]]) -> str:
    """Return what every platform's default context knows of a pointer."""
    told = []
    for row in rows:
        if "sycl" not in row:
            told.append("a platform whose default context cannot be made")
            continue
        devices = ", ".join(str(device.get("device_id")) for device in row.get("devices", []))
        of = f'default context of "{row.get("platform")}" (device ids {devices or "none"})'
        told.append(f"{of}: {pointer_words(row)}")
    return "; ".join(told) or "no platform"
