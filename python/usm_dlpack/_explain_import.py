# SPDX-License-Identifier: Apache-2.0
"""The import protocol, walked: `validate` is called and says where it stops; the answers beside
each step come from queries of their own.
"""  # noqa: D205

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from typing import Any

from usm_dlpack import _answers, _core, _exchange
from usm_dlpack._errors import ConversionError, shown, type_name
from usm_dlpack._explanation import Said, Walk, error_text, make_steps
from usm_dlpack._protocols import IMPORT, IMPORT_STOPS


class _Recorder:
    """Stands between `validate` and the array: asks it once, and keeps the capsule fresh."""

    def __init__(self, array: object) -> None:
        self._array = array
        self.asked = False
        self.given = False
        self.capsule: Any = None

    def __dlpack__(self, *, max_version: Any = None) -> Any:
        """Ask the array as `validate` itself asks one."""
        self.asked = True
        self.capsule = _core.ask_capsule(self._array)
        self.given = True
        return self.capsule


def is_capsule(x: object) -> bool:
    """Return whether an object is a capsule, of whatever name."""
    return type(x) is type(_core.DLPackTensor.__dlpack_c_exchange_api__)


class ImportWalk:
    """One call of `validate`, and the answers to what it asks."""

    def __init__(self, x: Any, keywords: dict[str, Any]) -> None:
        self._x = x
        self._keywords = keywords
        self._fields: dict[str, Any] = {}
        self._trouble: str | None = None
        self._answers: list[dict[str, Any]] | None = None

    def run(self) -> Walk:
        """Call `validate`, and explain what came of it."""
        recorder = _Recorder(self._x)
        self._direct = is_capsule(self._x)
        error: Exception | None = None
        try:
            _exchange.validate(self._x if self._direct else recorder, **self._keywords)
        except Exception as raised:
            error = raised.with_traceback(None)  # whose frames keep the array alive
        self._error = error
        self._asked = recorder.asked or self._direct
        self._capsule = self._x if self._direct else recorder.capsule
        given = recorder.given or self._direct
        if given:
            try:
                self._fields = _core.read_fields(self._capsule)
            except Exception as trouble:
                self._trouble = error_text(trouble)
        stop = None if error is None else self._stop(error, recorder.asked, given)
        words = "".join(f", {name}={shown(value)}" for name, value in self._keywords.items())
        steps = make_steps("import", IMPORT, stop, lambda name: getattr(self, f"_say_{name}")())
        if (place := self._place_told()) is not None:
            reason = f"{place}: __dlpack_device__ says so before a capsule is asked for"
            steps = tuple(
                replace(step, reason=reason) if step.outcome == "stopped" else step
                for step in steps
            )
        return Walk("import", f"usm_dlpack.validate(x{words})", steps, error)

    def _place_told(self) -> str | None:
        """Return where the array is, if that it said so itself is why it was refused."""
        error = self._error
        if not isinstance(error, ConversionError) or self._capsule is not None:
            return None
        if error.code != "device_type_unsupported" or error.field != "device.device_type":
            return None
        host = error.found == "kDLCPU (1)"
        return "the array is in host memory" if host else "the array is in no memory of SYCL"

    def _stop(self, error: Exception, asked: bool, given: bool) -> str:
        if not given:
            return "producer" if asked else "request"
        if not isinstance(error, ConversionError):
            return "request"
        if error.code == "runtime_error":
            return "root" if error.field == "device" else "pointer"
        if error.code == "device_mismatch" and self._kind() in (None, "unknown"):
            return "pointer"  # another platform knows it
        if error.code == "device_without_id":
            return "request"
        return IMPORT_STOPS.get(error.code, "bounds")

    # --- what was asked, and answered

    def _platform(self) -> dict[str, Any]:
        """Return what the default context that the device id leads to says of the pointer."""
        if self._answers is None:
            self._answers = _core.ask_platforms(self._fields["first"])
        number = self._fields["device_id"]
        for row in self._answers:
            if any(d.get("device_id") == number for d in row["devices"]):
                return row
        return {}

    def _kind(self) -> str | None:
        row: dict[str, Any] = _answers.attempt(self._platform, {})
        return _answers.known_kind(row)

    def _say_request(self) -> Said:
        told = "it may ask the SYCL runtime, and the keywords make sense"
        return "this package", told if self._asked else "no", {"asked": self._asked}

    def _say_producer(self) -> Said:
        if self._direct:
            return "nobody: a capsule was passed, which stays as it is", "a capsule", {}
        kind = type(self._x)
        asked = "x.__dlpack_device__() and x.__dlpack__(), with the keywords that it takes"
        if inspect.getattr_static(kind, "__dlpack_c_exchange_api__", None) is not None:
            asked = "managed_tensor_from_py_object_no_sync of its type's C exchange API"
        answer = "no capsule"
        if isinstance(self._error, ConversionError) and self._error.field.startswith("device"):
            answer = f"no capsule was asked for: __dlpack_device__ says {self._error.found}"
        if self._capsule is not None:
            answer = f"an object of type {type_name(self._capsule)}"
        return asked, answer, {"type": type_name(self._x)}

    def _say_capsule(self) -> Said:
        name = self._fields.get("name")
        answer = f'it is fresh and named "{name}"' if name else self._trouble or "none"
        return "PyCapsule_GetName", answer, {"name": name}

    def _say_header(self) -> Said:
        fields = self._fields
        if "version" not in fields:
            told = "a legacy managed tensor says nothing of version and flags"
            return "nothing of a DLManagedTensor", told, {}
        version = ".".join(map(str, fields["version"]))
        facts = {"version": list(fields["version"]), "flags": fields.get("flags")}
        flags = _answers.flags_words(fields["flags"]) if "flags" in fields else "no more was read"
        asked = "version and flags of the DLManagedTensorVersioned"
        return asked, f"version {version}, {flags}", facts

    def _say_device_type(self) -> Said:
        number = self._fields["device_type"]
        inside = (number, self._fields["device_id"])
        facts: dict[str, Any] = {"device_type": number}
        told = _answers.device_type_words(number)
        named = None if self._direct else _answers.attempt(lambda: _core.device_of(self._x))
        if named not in (None, inside):
            facts["dlpack_device"] = list(named)
            told += f"; __dlpack_device__ says {named}, the capsule {inside}, which counts"
        return "device.device_type", told, facts

    def _say_structure(self) -> Said:
        fields = self._fields
        names = ("ndim", "dtype_name", "shape", "strides", "data", "byte_offset", "nbytes")
        facts = {name: fields.get(name) for name in names}
        facts |= {"has_strides": fields["has_strides"], "empty": fields.get("empty")}
        many = f"{fields['ndim']} dimensions"
        readable = fields["has_shape"] and 0 <= fields["ndim"] == len(fields["shape"])
        shape = f"shape {fields['shape']}" if readable or fields["ndim"] == 0 else many
        strides = f"strides {fields['strides']}" if fields["has_strides"] else "strides null"
        null = ", data null" if fields["data"] == 0 else ""
        told = f"{fields['dtype_name']}, {shape}, {strides if readable else 'no strides'}"
        told += f", byte_offset {fields['byte_offset']}{null}"
        if "nbytes" in fields:
            told += f": {_answers.plural(math.prod(fields['shape']), 'element')}"
            told += f" in {_answers.plural(fields['nbytes'], 'byte')}"
        return "ndim, dtype, shape, strides, data and byte_offset of the DLTensor", told, facts

    def _say_requirements(self) -> Said:
        names = ("dtype", "ndim", "overlapping", "device")
        wanted = {name: shown(self._keywords[name]) for name in names if name in self._keywords}
        if not wanted:
            return "nothing: the caller takes any", "-", {}
        asked = ", ".join(f"{name}={value}" for name, value in wanted.items())
        fields = self._fields
        overlap = "elements may overlap" if fields.get("overlapping") else "no overlap"
        told = f"{fields['dtype_name']}, ndim {fields['ndim']}, {overlap}"
        return asked, f"{told}, device ({fields['device_type']}, {fields['device_id']})", wanted

    def _say_root(self) -> Said:
        number = self._fields["device_id"]
        rows = _core.device_rows()
        listed = [f"{row['device_id']} is {_listed(row)}" for row in rows]
        facts: dict[str, Any] = {"device_id": number, "count": len(rows)}
        asked = f"sycl::device::get_devices()[{number}], and the default context of its platform"
        if not 0 <= number < len(rows):
            count = _answers.plural(len(rows), "root device")
            return asked, f"this process has {count}: {'; '.join(listed) or 'none'}", facts
        facts |= {"failure": rows[number]["failure"]}
        return asked, listed[number], facts

    def _say_backend(self) -> Said:
        backend = _core.device_rows()[self._fields["device_id"]]["sycl_device"].backend.name
        accepted = self._keywords.get("backends")
        asked = "sycl::device::get_backend()"
        told = f"{backend}; accepted: {'all' if accepted is None else shown(accepted)}"
        return asked, told, {"backend": backend}

    def _say_pointer(self) -> Said:
        context = f"the default context of device {self._fields['device_id']}"
        if self._fields["first"] == 0:
            return "nothing: an empty tensor without memory", "-", {"empty": True, "kind": None}
        row = self._platform()
        facts = {"empty": self._fields["empty"], "kind": _answers.known_kind(row)}
        facts |= {"default_contexts": self._answers}
        told = _answers.pointer_words(row)
        if facts["kind"] == "unknown":
            others = [other for other in self._answers or () if other is not row]
            told += f"; {_answers.platforms_words(others)}" if others else ""
            told += self._named_context()
        return _answers.pointer_question(row, context), told, facts

    def _named_context(self) -> str:
        """Return what the context says that the array itself names in its array interface."""
        interface = _answers.attempt(lambda: _core.read_array_interface(self._x))
        if interface is None:
            return ""
        place = interface["syclobj"]
        answer = _answers.attempt(lambda: _core.ask_context(self._fields["first"], place))
        if answer is None:
            return ""
        words = f"{_answers.context_words(answer)}: {_answers.pointer_words(answer)}"
        return f"; the array itself names {words}"

    def _say_kind(self) -> Said:
        kind = self._kind()
        accepted = self._keywords.get("usm_types")
        told = f"{kind}; accepted: {'all' if accepted is None else shown(accepted)}"
        return "the answer of the step before", told, {"kind": kind}

    def _say_device(self) -> Said:
        row = self._platform() if self._fields["first"] else {}
        named = self._fields["device_id"]
        facts = {"named": named, "true": _answers.true_device(row), "kind": self._kind()}
        told = _answers.true_device_words(row)
        return _answers.device_question(row), f"{told}; the tensor names {named}", facts

    def _say_bounds(self) -> Said:
        fields = self._fields
        facts = {name: fields.get(name) for name in ("lowest", "nbytes", "empty")}
        if fields["empty"]:
            return "nothing: an empty view has no bytes", "-", facts
        backend = self._platform().get("backend_answer", {})
        if not backend.get("size"):
            return "the first and the last byte", f"a view of {fields['nbytes']} bytes", facts
        facts |= {"base": backend["base"], "size": backend["size"]}
        first = fields["lowest"] - backend["base"]
        end = first + fields["nbytes"]
        told = f"the allocation has {backend['size']} bytes; the view takes {first} to {end - 1}"
        query = backend["query"]
        if query == "clGetMemAllocInfoINTEL":
            query += "(CL_MEM_ALLOC_BASE_PTR_INTEL, CL_MEM_ALLOC_SIZE_INTEL)"
        return query, told, facts


def _listed(row: dict[str, Any]) -> str:
    device = row["sycl_device"]
    name = _answers.attempt(lambda: f'{device.get_filter_string()} "{device.name.strip()}"')
    failed = f", which fails: {row['failure']}" if row["failure"] else ""
    return f"{name or 'a device without a name'}{failed}"
