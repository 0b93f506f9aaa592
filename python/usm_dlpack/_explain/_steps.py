# SPDX-License-Identifier: Apache-2.0
"""The steps of the two protocols, in the order of docs/checks.md, and the text of each.

`_core` reports which steps began, where the call stopped, and what was found. If a context or a
device id is refused, the answers of the others are added: SYCL's, as dictionaries, where a query
that fails gives the text of its failure.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from usm_dlpack import _core, _public
from usm_dlpack._errors import ConversionError, error_text, shown, type_name
from usm_dlpack._explain._explanation import Step, Walk
from usm_dlpack._interface import resolve_syclobj

_VIEW = ("ndim", "dtype_name", "shape", "strides", "has_strides", "data", "byte_offset")
_VIEW_FACTS = (*_VIEW, "nbytes", "empty")
_VIEW_WORDS = "{dtype_name}, shape {shape}, strides {strides}, byte_offset {byte_offset}: "
_VIEW_WORDS += "{nbytes} bytes"
_BACKEND = "the backend, or SYCL where the backend cannot be asked"
_READY = "it may ask the SYCL runtime, and the keywords make sense"
Facts = dict[str, Any]
Rule = tuple[str, str, str, str, str, tuple[str, ...]]
# Name, title, reason, question, answer if the step passed, and names of its facts.
_IMPORT: tuple[Rule, ...] = (
    ("request", "the process and the keywords",
     "the keywords must make sense, and after fork() the runtime must not be asked",
     "this package", _READY, ()),
    ("producer", "the array says where it is, and hands over a capsule",
     "only its producer knows the memory",
     "x.__dlpack_device__ and x.__dlpack__, or the C exchange API of its type",
     "a managed tensor", ()),
    ("capsule", "the capsule is fresh", "a consumed one owns nothing any more",
     "PyCapsule_GetName", 'it is fresh and named "{name}"', ("name",)),
    ("header", "version and flags are known", "another major version has another layout",
     "version and flags of the managed tensor", "{header}", ("version", "flags")),
    ("device_type", "the device type is kDLOneAPI", "other types are not memory of SYCL",
     "device.device_type", "{device_type_name}", ("device_type",)),
    ("structure", "the tensor is well formed", "no query is made of an overflowed address",
     "ndim, dtype, shape, strides, data and byte_offset of the DLTensor", _VIEW_WORDS, _VIEW_FACTS),
    ("requirements", "it is what the caller asked for", "a consumer may not take everything",
     "dtype, ndim, overlapping and device, as far as the caller says them",
     "{dtype_name}, ndim {ndim}, overlapping {overlapping}, device ({device_type}, {device_id})",
     ()),
    ("root", "device_id names a root device that works",
     "the id is a position in sycl::device::get_devices() of this process, which "
     "ONEAPI_DEVICE_SELECTOR and the drivers change",
     "sycl::device::get_devices(), and the default context of its platform", "{listed}",
     ("device_id", "count", "failure")),
    ("backend", "its backend is accepted", "a consumer may not support every backend",
     "sycl::device::get_backend()", "{backend}", ("backend",)),
    ("pointer", "the default context of its platform knows the pointer",
     "the default context is the only one that producer and consumer can both name",
     "the default context of the platform of device {device_id}", "{kind} USM", ("kind", "empty")),
    ("kind", "the USM kind is accepted", "device USM cannot be read by the host",
     "the answer of the step before", "{kind} USM", ("kind",)),
    ("device", "the memory's root device is the one named",
     "work would be sent to a device that cannot reach the memory", _BACKEND,
     "{device}; the tensor names {device_id}", ("true", "named", "kind", "device_proof")),
    ("bounds", "the view lies in one allocation, as far as it is known",
     "a query of a pointer looks at one byte",
     "the backend, for the memory's base and size",
     "the {bounds_proof} has {size} bytes; the view takes {from_base} to {to_base}",
     ("lowest", "nbytes", "empty", "base", "size", "bounds_proof")),
)  # fmt: skip

_EXPORT: tuple[Rule, ...] = (
    ("interface", "the object describes its memory",
     "address, shape and context come from __sycl_usm_array_interface__",
     "obj.__sycl_usm_array_interface__", "{interface}", ()),
    ("request", "the process and the keywords",
     "the keywords must make sense, and after fork() the runtime must not be asked",
     "this package", _READY, ()),
    ("structure", "the view is well formed", "no query is made of an overflowed address",
     "dtype, shape, strides and byte_offset of the view, and the address", _VIEW_WORDS,
     _VIEW_FACTS),
    ("context", "the object names a context", "the protocol begins with a bound pointer",
     '__sycl_usm_array_interface__["syclobj"]', "{named}", ("context",)),
    ("pointer", "that context knows the pointer",
     "the context does not know memory that was freed, or is of another context",
     "that context", "{kind} USM", ("kind", "empty", "context")),
    ("default", "that context is its platform's default",
     "a consumer knows the device id only, and finds no other context by it",
     "is the context sycl::platform::khr_get_default_context() of its platform", "{named}",
     ("default", "context")),
    ("device", "the device that the memory is on",
     "the backend's answer: SYCL's query names the first device of an OpenCL context", _BACKEND,
     "{device}", ("true", "kind", "device_proof")),
    ("root", "its root device has an id", "the id is a position in sycl::device::get_devices()",
     "the root of that device in sycl::device::get_devices()", "device_id {device_id}",
     ("device_id",)),
    ("queue", "the queue is on the memory's root device",
     "its work would otherwise be on a device that cannot reach the memory",
     "the queue's device and context, if one was passed", "{queue}", ()),
    ("bounds", "every byte of the view lies within the bytes of the object",
     "a query of a pointer looks at one byte",
     "the array interface, and the memory that usm_data, base or data of the object is",
     "the object has {object_size} bytes; the first element is at byte {from_object}",
     ("object_base", "object_size")),
)  # fmt: skip

_OF_MEMORY = ("pointer", "kind", "device", "bounds")


class Observed:
    """One call of `validate` or `to_dlpack_tensor`, the report of `_core`, and the exception."""

    steps: list[str]  # the names of those that began
    facts: Facts  # their findings

    def __init__(self, direction: str, x: Any, keywords: Facts) -> None:
        self.direction, self.x, self.keywords = direction, x, keywords
        self.error: Exception | None = None
        self.steps, self.facts = _core.observe(self._call)
        if (context := self.facts.get("context")) is not None:
            address = self.facts["first"] if self.facts["empty"] else self.facts["origin"]
            self.facts["context"] = ask_context(address, context)

    def _call(self) -> None:
        real = _public.validate if self.direction == "import" else _public.to_dlpack_tensor
        try:
            real(self.x, **self.keywords)
        except Exception as raised:
            self.error = raised
            link: BaseException | None = raised
            while link is not None and link.__traceback__:  # whose frames keep the array alive
                link = link.with_traceback(None).__cause__ or link.__context__

    @property
    def stop(self) -> str | None:
        """The name of the step that refused, or None."""
        if self.error is None:
            return None
        if self.steps:
            return self.steps[-1]
        if self.direction == "import":
            return "request"
        # Python reads the interface and the keywords before C++ begins.
        if isinstance(self.error, ConversionError):
            return "request" if self.error.code == "process_forked" else "structure"
        field = error_text(self.error).partition(":")[0]
        named = field in ("obj", "syclobj", "__sycl_usm_array_interface__")
        return "interface" if named or _interface(self.x) is None else "request"

    def walk(self) -> Walk:
        is_import = self.direction == "import"
        reached, steps = True, []
        words = self.facts | {"kind": self._kind(), "default": self.stop != "default"}
        if "context" in words:
            words["named"] = _context_words(words["context"])
        for number, rule in enumerate(_IMPORT if is_import else _EXPORT, 1):
            if reached:
                steps.append(self._said(number, rule, words))
            else:
                steps.append(Step(self.direction, number, *rule[:3], "", "", "not reached"))
            reached = reached and rule[0] != self.stop
        given = "".join(f", {name}={shown(value)}" for name, value in self.keywords.items())
        call = f"validate(x{given})" if is_import else f"to_dlpack_tensor(obj{given})"
        return Walk(self.direction, f"usm_dlpack.{call}", tuple(steps), self.error, self._instead())

    def _instead(self) -> str:
        """Return the call that copies through the host, where that is the remedy."""
        with contextlib.suppress(Exception):  # the array's own attributes
            if self.error is None or self.stop == "request":
                return ""
            if _public.is_out_of_reach(self.x, self.error) and hasattr(self.x, "__dlpack__"):
                call = "usm_dlpack.from_dlpack(x, device=x.__dlpack_device__())"
                return f"{call} copies it through the host, if its producer exports it there"
        return ""

    def _said(self, number: int, rule: Rule, words: Facts) -> Step:
        """Return a step that was reached, with its answer and its facts."""
        name, title, reason, asked, told, names = rule
        passed = name != self.stop
        with contextlib.suppress(Exception):  # a broken driver may fail at any query
            words |= getattr(self, f"_find_{name}", dict)()
        if passed:
            told = told.format_map(_Words(words))
            if name in _OF_MEMORY and self.direction == "import" and words["empty"]:
                told = "an empty view has no memory"
        elif isinstance(self.error, ConversionError):
            told = self.error.found
            if name == "producer" and self.error.field == "device.device_type":
                place = "host memory" if told == "kDLCPU (1)" else "no memory of SYCL"
                reason = f"the array is in {place}: __dlpack_device__ says so before a capsule is "
                reason += "asked for"
        else:
            told = type_name(self.error)
        facts = {fact: words[fact] for fact in names if fact in words} | words.pop("facts", {})
        told += words.pop("also", "")
        if not passed and name in ("pointer", "default"):
            more, rows = self._contexts()
            told, facts = told + more, facts | {"default_contexts": rows}
        asked = asked.replace("{device_id}", str(words.get("device_id")))
        outcome = "passed" if passed else "stopped"
        return Step(self.direction, number, name, title, reason, asked, told, outcome, facts)

    # --- words that are derived from the report, by the name of the step

    def _find_interface(self) -> Facts:
        offered = self.x.__sycl_usm_array_interface__
        names = ("shape", "strides", "typestr", "offset")
        facts = {name: _plain(offered.get(name)) for name in names}
        facts["syclobj"] = type_name(offered.get("syclobj"))
        told = ", ".join(f"{name} {value}" for name, value in facts.items())
        return {"interface": told, "facts": facts}

    def _find_header(self) -> Facts:
        if (version := self.facts.get("version")) is None:
            return {"header": "a legacy managed tensor has neither"}
        return {"header": f"version {'.'.join(map(str, version))}, flags {self.facts['flags']}"}

    def _find_device_type(self) -> Facts:
        inside, told = (self.facts["device_type"], self.facts["device_id"]), None
        with contextlib.suppress(Exception):
            told = tuple(int(getattr(part, "value", part)) for part in self.x.__dlpack_device__())
        if told in (None, inside):
            return {}
        also = f"; __dlpack_device__ says {told}, the capsule {inside}, which counts"
        return {"also": also, "facts": {"dlpack_device": list(told or ())}}

    def _find_root(self) -> Facts:
        rows, number = _core.device_rows(), self.facts["device_id"]
        found: Facts = {"count": len(rows), "failure": None}
        if 0 <= number < len(rows):
            device = rows[number]["sycl_device"]
            found |= {"failure": rows[number]["failure"], "backend": device.backend.name}
            found["listed"] = f'{device.get_filter_string()} "{device.name.strip()}"'
        else:
            listed = (row["sycl_device"].get_filter_string() for row in rows)
            found["also"] = f"; this process has {len(rows)}: {', '.join(listed) or 'none'}"
        return found

    def _kind(self) -> str:
        """Return the USM kind; if the call stopped before querying it, SYCL's answer."""
        kind: str = self.facts["kind"]
        context = self.facts.get("context")
        return str(context["sycl"]["kind"]) if context and kind == "unknown" else kind

    def _find_device(self) -> Facts:
        number = self.facts["device_id"]
        found: Facts = {"named": number, "true": None, "device": "no memory, no device"}
        kind = self._kind()
        if kind == "host":
            found["device"] = "host USM is of no single device: any id of its platform is true"
        elif kind != "unknown":
            found["device"] = f"root device {number}"
            found["true"] = None if self.stop == "device" else {"device_id": number}
        return found

    def _find_queue(self) -> Facts:
        given = self.keywords.get("queue") is not None
        told = f"it is of root device {self.facts['device_id']}"
        return {"queue": told if given else "no queue was passed"}

    def _find_bounds(self) -> Facts:
        facts = self.facts
        if self.direction == "export":
            return {"from_object": facts["first"] - facts["object_base"]}
        first = facts["lowest"] - facts["base"]
        return {"from_base": first, "to_base": first + facts["nbytes"] - 1}

    def _contexts(self) -> tuple[str, list[Facts]]:
        """Describe the pointer in the named context and in the default contexts."""
        facts, told, own = self.facts, "", self.facts.get("context")
        address = facts["first"] if facts["empty"] or not facts["origin"] else facts["origin"]
        with contextlib.suppress(Exception):
            place = (_interface(self.x) or {})["syclobj"]
            own = own or ask_context(address, _core.context_of(resolve_syclobj(place)))
            told = f"; the array itself names {_context_words(own)}: {_pointer_words(own)}"
            if any(device["sub_device"] for device in own["devices"]):
                told += "; a queue made from a sub-device, by dpctl or on OpenCL, has a context of "
                told += "its own"
        rows = ask_platforms(address)
        for row in filter(lambda row: "sycl" in row, rows):
            ids = ", ".join(str(device["device_id"]) for device in row["devices"])
            told += f'; default context of "{row["platform"]}" (device ids {ids}): '
            told += _pointer_words(row)
        return told, rows


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


class _Words(dict[str, Any]):
    """Words to fill a sentence with; "not known" if the driver did not answer."""

    def __missing__(self, name: str) -> str:
        return "not known"


def is_capsule(x: object) -> bool:
    """Return whether an object is a capsule of any name."""
    return type(x) is type(_core.DLPackTensor.__dlpack_c_exchange_api__)


def _interface(x: Any) -> Facts | None:
    with contextlib.suppress(Exception):
        offered = x.__sycl_usm_array_interface__
        return offered if isinstance(offered, dict) else None
    return None


def _plain(value: Any) -> Any:
    """Convert a value for JSON: integers and sequences of them, or a text."""
    if value is None or type(value) is int:
        return value
    if type(value) in (tuple, list) and all(type(part) is int for part in value):
        return list(value)
    return shown(value).strip("'")


def _context_words(context: Facts) -> str:
    spans = []
    for device in context["devices"]:
        part = "a sub-device of " if device["sub_device"] else ""
        spans.append(f"{part}root device {device['device_id']}")
    kind = "the default context" if context["default"] else "a context of its own"
    return f'{kind} with {", ".join(spans)}, on the platform "{context["platform"]}"'


def _pointer_words(answer: Facts) -> str:
    said = answer["sycl"]
    if said["kind"] is None:
        return f"SYCL's query throws {shown(said.get('failure'))}"
    return "SYCL says unknown" if said["kind"] == "unknown" else f"SYCL says {said['kind']} USM"
