# SPDX-License-Identifier: Apache-2.0
"""`explain`: lists the steps of an export or an import, and which one refuses."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from usm_dlpack import _core, _public
from usm_dlpack._arrays import Place
from usm_dlpack._core import DLPackTensor, UsmAllocation
from usm_dlpack._errors import ConversionError, error_text, shown, type_name
from usm_dlpack._terminal import styled

__all__ = ["Explanation", "explain"]

Direction = Literal["import", "export"]
Facts = dict[str, Any]

_STRUCTURE = (
    *("ndim_out_of_range", "shape_null", "dtype_unsupported", "shape_negative"),
    *("data_null", "span_overflow", "data_misaligned"),
)
# The steps, which docs/explanation/*_protocol.md describe, with the codes of their refusals. A code
# that two steps can raise is listed only at the earlier one, and an error with another code belongs
# to the first step: so a step is called "ok" only if the call passed it.
_STEPS: dict[str, dict[str, tuple[str, ...]]] = {
    "export": {
        "interface": (),
        "structure": _STRUCTURE,
        "context": ("pointer_unknown", "context_not_default"),
        "queue": ("queue_device_mismatch",),
        "bounds": ("out_of_bounds",),
    },
    "import": {
        "producer": (),
        "structure": _STRUCTURE,
        "requirements": ("dtype_mismatch", "rank_mismatch", "overlapping", "device_not_accepted"),
        "device": ("device_id_out_of_range", "device_failed"),
        "backend": ("backend_not_accepted",),
        "memory": (
            *("pointer_unknown", "usm_type_not_accepted", "device_mismatch"),
            "context_not_default",
        ),
        "bounds": ("out_of_bounds",),
    },
}
_STYLES = {"ok": "green", "refused": "red", "unknown": "faint"}


@dataclass(frozen=True)
class Step:
    """A step of a protocol: an item of `Explanation.steps`, which describes the attributes."""

    direction: str
    name: str
    outcome: str
    facts: Facts
    error: Exception | None


@dataclass(frozen=True)
class Explanation:
    """The steps of an exchange, and which of them refuses it. ``str`` gives `to_text()`.

    Attributes
    ----------
    subject
        What was explained: "an object of type ...".
    steps
        The steps of the export, of the import, or of both. Each has a ``direction`` ("export" or
        "import"), a ``name``, and an ``outcome``: "ok", "refused", or "unknown" after a refusal.
        ``facts`` is a dictionary of what the step found; it is empty if any step refused.
        ``error`` is the exception if this step refused, or else None.
    """

    subject: str
    steps: tuple[Step, ...]

    __module__ = "usm_dlpack"

    @property
    def error(self) -> Exception | None:
        """The exception of the first step that refused, or None."""
        return next((step.error for step in self.steps if step.error is not None), None)

    def to_text(self, *, every_step: bool = False, colour: bool = False) -> str:
        """Return the text: "ok" for each direction, or the step that refuses and its error.

        With `every_step` the text has all steps and what they found; with `colour` it has the
        escape sequences of a terminal.
        """
        lines: list[str] = []
        for direction in dict.fromkeys(step.direction for step in self.steps):
            steps = [step for step in self.steps if step.direction == direction]
            refused = [step for step in steps if step.outcome == "refused"]
            title = styled(f"{direction.capitalize()} of {self.subject}", "bold", colour)
            lines.append(title if refused else f"{title}: ok")
            for step in steps if every_step else refused:
                facts = ", ".join(f"{name} {value}" for name, value in step.facts.items())
                outcome = styled(f"{step.outcome:7}", _STYLES[step.outcome], colour)
                lines.append(f"  {outcome}  {step.name:12}  {facts}".rstrip())
                if step.error is not None:
                    error = f"{type(step.error).__name__}: {error_text(step.error)}"
                    lines.append(f"           {error}")
                if isinstance(step.error, ConversionError):
                    lines.append(f"           {step.error.code}: {step.error.page}")
        return "\n".join(lines)

    __str__ = to_text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, texts and numbers."""
        steps = [vars(step) | {"error": _error_as_dict(step.error)} for step in self.steps]
        return {"subject": self.subject, "passed": self.error is None, "steps": steps}


def _error_as_dict(error: Exception | None) -> Facts | None:
    """Convert an exception for JSON; errors of other libraries have no parts."""
    if error is None:
        return None
    parts = ("code", "field", "expected", "found", "remedy", "page")
    described = {part: getattr(error, part) for part in parts if isinstance(error, ConversionError)}
    return {"type": type(error).__name__, "text": error_text(error)} | described


def explain(
    x: Any,
    /,
    *,
    direction: Direction | None = None,
    dtype: Any = None,
    usm_types: Sequence[str] | str | None = None,
    backends: Sequence[str] | str | None = None,
    ndim: int | None = None,
    readonly: bool | None = None,
    overlapping: bool | None = None,
    device: Place | None = None,
    shape: Sequence[int] | int | None = None,
    strides: Sequence[int] | None = None,
    byte_offset: int | None = None,
    queue: Place | int | None = None,
) -> Explanation:
    """List the steps of an export or import of an array, and say which of them refuses it.

    Calls `validate` for an import and `to_dlpack_tensor` for an export, and catches what they
    raise. Waits for nothing, and consumes nothing: a capsule that you pass stays fresh, and an
    array is asked for a capsule of its own.

    Parameters
    ----------
    x
        For an import, an array with ``__dlpack__`` or a DLPack capsule. For an export, an object
        with ``__sycl_usm_array_interface__``.
    direction
        "import" or "export". None chooses by the other keywords, or else by which of the two
        attributes `x` has; if it has both, both are explained.
    dtype
        As in the function that is called.
    usm_types, backends, ndim, readonly, overlapping, device
        As in `validate`; None requires nothing. So `device` is where the memory must be: nothing is
        copied there, as `from_dlpack` would do.
    shape, strides, byte_offset, queue
        As in `to_dlpack_tensor`.

    Returns
    -------
    :
        The steps. Its ``error`` is the first exception that was caught, or None.

    Raises
    ------
    ValueError
        If the keywords belong to different directions.

    Examples
    --------
    >>> import dpctl.memory, usm_dlpack
    >>> why = usm_dlpack.explain(dpctl.memory.MemoryUSMDevice(48), shape=(5, 4), dtype="f4")
    >>> [step.name for step in why.steps if step.outcome == "refused"]
    ['bounds']
    >>> print(why.error)  # doctest: +ELLIPSIS
    shape: expected a view within the 48 bytes of the object, found one of 80 bytes from byte 0; ...
    >>> usm_dlpack.explain(why, direction="both")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: direction: expected None, "import" or "export", found 'both'; ...
    """
    imports = _given(
        usm_types=usm_types, backends=backends, ndim=ndim, readonly=readonly,
        overlapping=overlapping, device=device,
    )  # fmt: skip
    exports = _given(shape=shape, strides=strides, byte_offset=byte_offset, queue=queue)
    both = _given(dtype=dtype)
    steps: list[Step] = []
    for way in _directions(x, direction, imports, exports):
        if way == "export":
            steps += _steps(way, _public.to_dlpack_tensor, x, exports | both)
        else:
            steps += _steps(way, _public.validate, x, imports | both)
    return Explanation(f"an object of type {type_name(x)}", tuple(steps))


def _given(**keywords: Any) -> Facts:
    return {name: value for name, value in keywords.items() if value is not None}


def _directions(x: object, direction: object, imports: Facts, exports: Facts) -> list[str]:
    is_name = isinstance(direction, str)
    if direction is not None and not (is_name and direction in _STEPS):
        kind = ValueError if is_name else TypeError
        expected = 'None, "import" or "export"'
        raise kind(f"direction: expected {expected}, found {shown(direction)}; pass one of these")
    given = {"export": exports, "import": imports}
    implied = [way for way, keywords in given.items() if keywords or way == direction]
    if len(implied) > 1:
        raise ValueError(
            "direction: expected keywords of validate or of to_dlpack_tensor, found "
            f"{', '.join([*imports, *exports])}; explain one direction at a time"
        )
    names = {"export": "__sycl_usm_array_interface__", "import": "__dlpack__"}
    # Reading the interface of a tensor would wait for its queue.
    missing = object()
    offered = [n for n in names if inspect.getattr_static(x, names[n], missing) is not missing]
    return implied or offered or ["import"]


def _steps(direction: str, call: Callable[..., Any], x: Any, keywords: Facts) -> Iterator[Step]:
    """Make the call, and yield each of its steps."""
    error: Exception | None = None
    facts: dict[str, Facts] = {}
    refusing = None
    try:
        facts = _facts_of(call(x, **keywords))
    except Exception as raised:
        error = raised
        refusing = _step_of(direction, raised)
        _forget_frames(raised)  # they would keep the array alive
    outcome = "ok"
    for name in _STEPS[direction]:
        if name == refusing:
            yield Step(direction, name, "refused", {}, error)
            outcome = "unknown"
        else:
            yield Step(direction, name, outcome, facts.get(name, {}), None)


def _step_of(direction: str, error: Exception) -> str:
    """Return the name of the step that raised an error."""
    first, *later = _STEPS[direction]
    if not isinstance(error, ConversionError) or _passed_foreign_code(error.__traceback__):
        return first
    if error.field == "queue":
        return "queue"
    return next((step for step in later if error.code in _STEPS[direction][step]), first)


def _passed_foreign_code(place: TracebackType | None) -> bool:
    """Return whether an error came through the Python code of a producer."""
    package = __name__.partition(".")[0]
    while place is not None:
        if str(place.tb_frame.f_globals.get("__name__")).partition(".")[0] != package:
            return True
        place = place.tb_next
    return False


def _forget_frames(error: BaseException | None) -> None:
    while error is not None and error.__traceback__ is not None:
        error = error.with_traceback(None).__cause__ or error.__context__


def _facts_of(proof: DLPackTensor | UsmAllocation) -> dict[str, Facts]:
    """Return what each step found, by the name of the step."""
    base, size, lowest, nbytes, _ = _core.bounds_of(proof)
    facts: dict[str, Facts] = {"structure": {"nbytes": nbytes}}
    facts["bounds"] = {"size": size, "begin": lowest - base} if size else {}
    if isinstance(proof, DLPackTensor):
        facts["structure"] |= {"shape": proof.shape, "strides": proof.strides}
        facts["structure"] |= {"dtype": str(proof.dtype)}
        facts["context"] = {"usm_type": proof.usm_type, "device_id": proof.device[1]}
        return facts
    facts["producer"] = {"readonly": proof.readonly}
    facts["structure"] |= {"overlapping": proof.overlapping}
    facts["device"] = {"device_id": proof.device_id}
    facts["memory"] = {"usm_type": proof.usm_type, "device_proof": proof.device_proof}
    facts["bounds"] |= {"proof": proof.bounds}
    return facts
