# SPDX-License-Identifier: Apache-2.0
"""Makes the error of a call that no overload of an extension's function took."""

import ast
import copy
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from usm_dlpack._errors import ArgumentError, ConversionError, from_parts, type_name
from usm_dlpack._producers import parser

_MISSING = object()
_VIEW = "typing.Annotated[usm_dlpack.UsmArray, "
# What the caller can do, where the remedy of a rule is for the author of the extension. A copy has
# a name, because the function may write into it.
_REMEDIES = {
    "device_type_unsupported": "pass a copy, y = usm_dlpack.from_dlpack({array}, device={queue})",
    "usm_type_not_accepted": "pass a copy, y = usm_dlpack.from_dlpack({array}, device={queue}, "
    "usm_type='{word}')",
    "read_only": "pass a copy, y = usm_dlpack.from_dlpack({array}, device={queue}, copy=True), "
    "which gets the result",
    "dtype_mismatch": "convert it, for example "
    "y = usm_dlpack.from_dlpack({values}.astype('{word}'), device={queue})",
    "raw_memory": "give raw memory a dtype, "
    "y = usm_dlpack.to_dlpack_tensor({usm}, shape=..., dtype='{word}')",
    "rank_mismatch": "reshape it, for example y = usm_dlpack.to_dlpack_tensor({usm}, shape=...)",
    "extent_mismatch": "pass an array of that extent",
    "index_type_too_small": "pass an array of fewer elements",
    "layout_mismatch": "copy it; y = usm_dlpack.from_dlpack({array}, order='C') makes C order",
}
_TYPES_OF_PYTHON: dict[str, Any] = {"float": Real, "int": Integral, "bool": bool, "str": str}


@dataclass
class _Parameter:
    """A parameter of an overload, and the argument for it."""

    position: int | str  # without a signature the name of a keyword
    name: str | None  # None if it takes no keyword
    annotation: str
    value: Any = _MISSING
    has_default: bool = False
    by_position: bool = True

    @property
    def place(self) -> str:
        return f"argument {self.position}" + (f" ({self.name})" if self.name else "")

    @property
    def is_ours(self) -> bool:
        """Whether the parameter is a view or a SYCL object, whose casters record a refusal."""
        return self.annotation.startswith((_VIEW, "dpctl."))

    def looks_wrong(self) -> bool:
        kind = self.annotation.partition("[")[0]
        if kind in ("collections.abc.Sequence", "list"):
            return not isinstance(self.value, Sequence) or isinstance(self.value, str)
        expected = _TYPES_OF_PYTHON.get(kind)
        return expected is not None and not isinstance(self.value, expected)


def _parameters(signature: str) -> list[_Parameter]:
    """Read the parameters of a signature as nanobind prints it; none if it is of another form."""
    try:
        with parser:
            (function,) = ast.parse(re.sub(r"\\\d+", "...", signature) + ": ...").body
    except (SyntaxError, ValueError):
        return []
    if not isinstance(function, ast.FunctionDef) or function.args.vararg or function.args.kwarg:
        return []
    arguments = function.args
    named = arguments.posonlyargs + arguments.args
    if named and named[0].annotation is None and named[0].arg == "self":
        named = named[1:]
    required = [None] * (len(named) - len(arguments.defaults))
    defaults = [*required, *arguments.defaults, *arguments.kw_defaults]
    only_positional = {argument.arg for argument in arguments.posonlyargs}
    return [
        _Parameter(
            position,
            None if argument.arg in only_positional else argument.arg,
            ast.unparse(argument.annotation) if argument.annotation else "",
            has_default=default is not None,
            by_position=position <= len(named),
        )
        for position, (argument, default) in enumerate(
            zip(named + arguments.kwonlyargs, defaults, strict=True), 1
        )
    ]


def _holds(value: Any, wanted: Any) -> bool:
    """Return whether a value is an object, or holds it in lists, tuples and dictionaries."""
    left, seen = [value], set()
    while left:
        here = left.pop()
        if here is wanted:
            return True
        if id(here) not in seen and isinstance(here, list | tuple | dict):
            seen.add(id(here))
            left += dict.values(here) if isinstance(here, dict) else here
    return False


@dataclass
class _Call:
    """A call: its function, its arguments, and the parameters that all overloads share."""

    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    parameters: list[_Parameter] = field(default_factory=list)

    def bind(self) -> str | None:
        """Give the parameters their arguments; return the fault of an argument that has none."""
        most = sum(parameter.by_position for parameter in self.parameters)
        named = {parameter.name: parameter for parameter in self.parameters if parameter.name}
        if self.parameters and len(self.args) > most:
            found = f"{len(self.args)}; see help({self.function})"
            return f"argument {most + 1}: expected at most {most} by position, found {found}"
        for parameter, value in zip(self.parameters, self.args, strict=False):
            parameter.value = value
        for name, value in self.kwargs.items() if self.parameters else ():
            if not named:
                return f"{name}: expected arguments by position, found a keyword; omit its name"
            if name not in named:
                wanted = ", ".join(map(str, named))
                return f"{name}: expected a keyword of {wanted}, found another; correct its name"
            if named[name].value is not _MISSING:
                found = "one by position and one by keyword"
                return f"{named[name].place}: expected one argument, found {found}; omit one"
            named[name].value = value
        return None

    def find(self, argument: Any) -> tuple[str, str | None]:
        """Return the place of the argument that is or holds an object, and its name if it is."""
        places: list[tuple[_Parameter, str | None]] = []
        every: list[tuple[int | str, Any]] = [*enumerate(self.args, 1), *self.kwargs.items()]
        for key, value in every:
            if _holds(value, argument):
                matching = [p for p in self.parameters if key in (p.position, p.name)]
                parameter = (matching or [_Parameter(key, None, "")])[0]
                places.append((parameter, parameter.name if value is argument else None))
        # If several arguments hold it, views are the likelier ones.
        likely = [place for place in places if place[0].is_ours] or places[:1]
        name = next((name for _, name in likely if name), None)
        return " or ".join(parameter.place for parameter, _ in likely) or "an argument", name

    def at_fault(self, refused: list[Any]) -> Iterator[_Parameter]:
        """Find the parameter of the only overload whose argument it did not take."""
        given = [p for p in self.parameters if p.value is not _MISSING]
        missing = [p for p in self.parameters if p.value is _MISSING and not p.has_default]
        none = [p for p in given if p.value is None and "None" not in p.annotation.split(" | ")]
        others = [p for p in given if not p.is_ours]
        # An array for a SYCL object: the caller may have forgotten that.
        of_sycl = [p for p in given if p.annotation.startswith("dpctl.")]
        yield from (p for p in of_sycl if hasattr(type(p.value), "__dlpack__"))
        yield from missing + none
        for argument in refused:
            yield from (p for p in given if p.is_ours and p.value is argument)
            yield from (p for p in others if _holds(p.value, argument))
        yield from (p for p in others if p.looks_wrong())
        yield from others if len(others) == 1 else ()

    def wrong_type(self, parameter: _Parameter) -> ArgumentError:
        """Make the error of an argument that is missing or of another Python type."""
        annotation, value = parameter.annotation, parameter.value
        expected, remedy = f"an object of type {annotation}", f"see help({self.function})"
        if annotation.startswith(_VIEW):
            expected = "an array of " + annotation.removeprefix(_VIEW + "dict(").partition(")]")[0]
            remedy = "pass such an array"
            remedy = remedy if value is None else "pass an array with __dlpack__ or USM"
        elif annotation.startswith("dpctl."):
            remedy = f"pass a {annotation.partition(' ')[0]}"
        fits = "" if parameter.is_ours or parameter.looks_wrong() else " that does not fit"
        found = "None" if value is None else f"an object of type {type_name(value)}{fits}"
        found = "no argument" if value is _MISSING else found
        name = parameter.name or f"argument {parameter.position}"
        reason = from_parts("request_unsupported", name, expected, found, remedy)
        sentence = f"expected {expected}, found {found}; {remedy}"
        return ArgumentError(f"{self.function}: {parameter.place}: {sentence}", (reason,))

    def without_reason(self) -> ArgumentError:
        types = [type_name(value) for value in self.args]
        types += [f"{name}={type_name(value)}" for name, value in self.kwargs.items()]
        found = f"({', '.join(types)}); see help({self.function})"
        sentence = f"expected arguments of one of its signatures, found {found}"
        return ArgumentError(f"{self.function}: {sentence}", ())


def _reason(call: _Call, argument: Any, name: str, *parts: str) -> ConversionError:
    """Make the error of an array, with a remedy for the caller."""
    given = (*call.args, *call.kwargs.values())
    has_queue = any(type(value).__name__ == "SyclQueue" for value in given)
    queue = "queue" if has_queue else "dpctl.SyclQueue()"
    code, field, expected, found, remedy = parts
    has = functools.partial(hasattr, type(argument))
    has_usm = has("__sycl_usm_array_interface__")
    array = name if has("__dlpack__") or not has_usm else f"usm_dlpack.to_dlpack_tensor({name})"
    on_queue = f"usm_dlpack.from_dlpack({array}, device={queue})"
    usm = name if has_usm else on_queue
    values = name if has("astype") else f"{on_queue}.numpy()"
    # from_dlpack copies from the host, and from no other device type.
    is_foreign = code == "device_type_unsupported" and not found.startswith("kDLCPU")
    is_raw = code == "dtype_mismatch" and array != name and found.startswith("uint8 ")
    if not is_foreign and (of_caller := _REMEDIES.get("raw_memory" if is_raw else code)):
        word = expected.partition(" ")[0]
        remedy = of_caller.format(queue=queue, array=array, usm=usm, values=values, word=word)
    return from_parts(code, field, expected, found, remedy)


def from_arguments(
    function: str,
    signatures: list[str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    refusals: list[tuple[Any, ...]],
    taken: list[Any],
) -> BaseException:
    """Make the exception of a call that no overload took.

    A refusal is the argument; of an array also what it raised, or whether another view type could
    accept it and the error's parts. An overload that was tried twice is recorded twice. `taken` are
    the arguments that some overload took.
    """
    overloads = [_parameters(signature) for signature in signatures]
    names = {tuple((p.name, p.by_position) for p in overload) for overload in overloads}
    call = _Call(function, args, kwargs, overloads[0] if len(names) == 1 else [])
    ids = {id(argument) for argument in taken}
    told: dict[str, ConversionError] = {}
    for argument, *parts in refusals:
        if id(argument) in ids or not parts:
            continue
        place, name = call.find(argument)
        raised = parts[0] if isinstance(parts[0], BaseException) else None
        error = _reason(call, argument, name or "x", *parts[1:]) if raised is None else raised
        if not isinstance(error, ConversionError):
            return error
        text = f"{function}: {place}: {error}"
        if raised is not None or not parts[0]:  # no other view type could accept it
            error = copy.copy(error)  # the producer may raise it again
            error.args = (text,)
            return error
        told.setdefault(text, error)
    if told:
        return ArgumentError("\n".join(told), tuple(told.values()))
    if (sentence := call.bind()) is not None:
        return ArgumentError(f"{function}: {sentence}", ())
    if len(signatures) == 1:
        refused = [refusal[0] for refusal in refusals if len(refusal) == 1]
        if (fault := next(call.at_fault(refused), None)) is not None:
            return call.wrong_type(fault)
    return call.without_reason()
