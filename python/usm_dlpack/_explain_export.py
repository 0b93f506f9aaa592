# SPDX-License-Identifier: Apache-2.0
"""The export protocol, walked: `to_dlpack_tensor` is called and says where it stops; the answers
beside each step come from queries of their own.
"""  # noqa: D205

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from usm_dlpack import _answers, _core, _exchange
from usm_dlpack._errors import ConversionError, shown, type_name
from usm_dlpack._explanation import Said, Walk, make_steps
from usm_dlpack._protocols import EXPORT, EXPORT_STOPS, EXPORT_STOPS_OF_FIELD


class _Recorded:
    """Memory whose interface was read once, for the call and for the explanation."""

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self._owner = owner
        self._interface = interface

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        return self._interface

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, name)


class ExportWalk:
    """One call of `to_dlpack_tensor`, and the answers to what it asks."""

    def __init__(self, obj: Any, keywords: dict[str, Any]) -> None:
        self._obj = obj
        self._keywords = keywords
        self._queue = keywords.get("queue")
        self._interface: SimpleNamespace | None = None
        self._tensor: Any = None
        self._given: dict[str, Any] | None = None

    def run(self) -> Walk:
        """Call `to_dlpack_tensor`, and explain what came of it."""
        offered = _answers.attempt(lambda: self._obj.__sycl_usm_array_interface__)
        subject = _Recorded(self._obj, offered) if isinstance(offered, dict) else self._obj
        error: Exception | None = None
        try:
            self._tensor = _exchange.to_dlpack_tensor(subject, **self._keywords)
        except Exception as raised:
            error = raised.with_traceback(None)  # whose frames keep the object alive
        self._error = error
        self._interface = _answers.attempt(
            lambda: SimpleNamespace(**_core.read_array_interface(subject))
        )
        stop = None if error is None else self._stop(error)
        words = "".join(f", {name}={shown(value)}" for name, value in self._keywords.items())
        steps = make_steps("export", EXPORT, stop, lambda name: getattr(self, f"_say_{name}")())
        return Walk("export", f"usm_dlpack.to_dlpack_tensor(obj{words})", steps, error)

    def _stop(self, error: Exception) -> str:
        if not isinstance(error, ConversionError):
            field = _answers.attempt(lambda: str(error).split(":", 1)[0])
            if field == "syclobj":
                return "context" if isinstance(error, TypeError) else "interface"
            return EXPORT_STOPS_OF_FIELD.get(field) or (
                "request" if self._interface else "interface"
            )
        if error.code == "runtime_error":
            return {"context": "pointer", "data": "device"}.get(error.field, "root")
        binding = error.code in ("pointer_unknown", "context_not_default")
        if binding and self._queue is not None and self._is_bound():
            return "queue"
        return EXPORT_STOPS.get(error.code, "bounds")

    # --- what was asked, and answered

    def _read(self) -> SimpleNamespace:
        if self._interface is None:
            raise ValueError("the interface could not be read")
        return self._interface

    def _address(self) -> int:
        base = self._read()
        moved = int(self._keywords.get("byte_offset") or 0)
        return int(base.data + base.offset * base.itemsize + moved)

    def _context(self) -> dict[str, Any]:
        """Return what the context that the object names says of the object's own address.

        Of an empty view the first element is meant, which need not be in any memory.
        """
        if self._given is None:
            base = self._read()
            address = self._address() if self._is_empty() else base.data
            self._given = dict(_core.ask_context(address, base.syclobj))
        return self._given

    def _is_bound(self) -> bool:
        """Return whether the object's own context passes, so that the queue's does not."""
        answer: dict[str, Any] = _answers.attempt(self._context, {})
        known = _answers.known_kind(answer) not in (None, "unknown")
        return bool(answer.get("default")) and (known or self._is_empty())

    def _shape(self) -> list[int]:
        if self._tensor is not None:
            return list(self._tensor.shape)
        shape = self._keywords.get("shape")
        return list(self._read().shape) if shape is None else _core.to_integers(shape)

    def _is_empty(self) -> bool:
        return 0 in self._shape()

    def _say_interface(self) -> Said:
        asked = "obj.__sycl_usm_array_interface__"
        if self._interface is None:
            return asked, f"nothing usable from an object of type {type_name(self._obj)}", {}
        base = self._interface
        names = ("data", "shape", "strides", "offset", "itemsize")
        facts = {name: getattr(base, name) for name in names}
        is_text = isinstance(base.syclobj, str)
        text = ascii(str.__str__(base.syclobj))[1:-1] if is_text else type_name(base.syclobj)
        facts["syclobj"] = text
        size = _answers.plural(base.itemsize, "byte")
        told = f"shape {tuple(base.shape)}, elements of {size}, offset {base.offset}"
        return asked, f"{told}, syclobj of type {type_name(base.syclobj)}", facts

    def _say_request(self) -> Said:
        given = ", ".join(f"{name}={shown(value)}" for name, value in self._keywords.items())
        stopped = self._error is not None and self._stop(self._error) == "request"
        told = "no" if stopped else "it may ask the SYCL runtime, and the keywords make sense"
        return f"this package; keywords: {given or 'none'}", told, {"asked": not stopped}

    def _say_structure(self) -> Said:
        asked = "dtype, shape, strides and byte_offset of the view, and the address"
        if self._tensor is None:
            told = f"shape {tuple(self._shape())}"
            null = ", at address null" if self._address() == 0 else ""
            return asked, told + null, {"shape": self._shape(), "data": self._address()}
        tensor = self._tensor
        told = f"{tensor.dtype}, shape {tensor.shape}, strides {tensor.strides}"
        facts = {"shape": list(tensor.shape), "strides": list(tensor.strides)}
        facts |= {"data": tensor.data, "byte_extent": tensor.byte_extent}
        count = _answers.plural(math.prod(tensor.shape), "element")
        return asked, f"{told}: {count} in {tensor.byte_extent} bytes", facts

    def _say_context(self) -> Said:
        asked = '__sycl_usm_array_interface__["syclobj"]'
        try:
            answer = self._context()
        except TypeError:
            return asked, f"an object of type {type_name(self._read().syclobj)}", {}
        facts = {name: answer.get(name) for name in ("platform", "devices", "default")}
        return asked, _answers.context_words(answer), facts

    def _say_pointer(self) -> Said:
        answer = self._context()
        facts = {"kind": _answers.known_kind(answer), "empty": self._is_empty(), "context": answer}
        told = _answers.pointer_words(answer)
        if facts["kind"] == "unknown" and not facts["empty"]:
            rows = _core.ask_platforms(self._address())
            facts["default_contexts"] = rows
            told += f"; {_answers.platforms_words(rows)}"
        return _answers.pointer_question(answer, "that context"), told, facts

    def _say_default(self) -> Said:
        answer = self._context()
        rows = _core.ask_platforms(self._address())
        facts = {"default": answer["default"], "context": answer, "default_contexts": rows}
        told = _answers.context_words(answer)
        if not answer["default"]:
            told += f"; what the default contexts say: {_answers.platforms_words(rows)}"
            if any(device.get("sub_device") for device in answer["devices"]):
                told += "; a queue made from a sub-device, by dpctl or on OpenCL, "
                told += "has a context of its own"
        asked = "is the context sycl::platform::khr_get_default_context() of its platform"
        return asked, told, facts

    def _say_device(self) -> Said:
        answer = self._context()
        facts = {"true": _answers.true_device(answer), "kind": _answers.known_kind(answer)}
        if self._is_empty() and facts["kind"] in (None, "unknown"):
            return "nothing: an empty view may point anywhere", "-", facts
        return _answers.device_question(answer), _answers.true_device_words(answer), facts

    def _say_root(self) -> Said:
        asked = "the root of that device in sycl::device::get_devices()"
        if self._tensor is not None:
            number = self._tensor.device[1]
            return asked, f"device_id {number}", {"device_id": number}
        true = _answers.true_device(self._context())
        number = None if true is None else true["device_id"]
        told = "any of the platform" if number is None else f"device_id {number}"
        return asked, told, {"device_id": number}

    def _say_queue(self) -> Said:
        if self._queue is None:
            return "nothing: no queue was passed", "-", {}
        device = _core.ask_queue(self._queue)
        asked = "the queue's device and context"
        if device is None:
            return asked, f"an object of type {type_name(self._queue)}", {}
        context = _core.ask_context(self._address(), self._queue)
        told = f"a queue on {_answers.device_words(device)}, in {_answers.context_words(context)}"
        facts = {"device": device, "context": context}
        return asked, f"{told}: {_answers.pointer_words(context)}", facts

    def _say_bounds(self) -> Said:
        begin, end = self._read().bytes
        facts = {"base": begin, "size": end - begin}
        told = f"the object has {_answers.plural(end - begin, 'byte')}"
        asked = "the array interface, and the memory that usm_data, base or data of the object is"
        return asked, f"{told}; the first element is at byte {self._address() - begin}", facts
