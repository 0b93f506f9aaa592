# SPDX-License-Identifier: Apache-2.0
"""Makes the error of a call that no overload of an extension's function took."""

import ast
import contextlib
import difflib
import functools
import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy

from usm_dlpack._errors import (
    ArgumentError,
    ConversionError,
    from_parts,
    is_our_sentence,
    shown,
    type_name,
)
from usm_dlpack._producers import parser

_MISSING = object()
_VIEW = "typing.Annotated[usm_dlpack.UsmArray, "
# What the caller can do, where the remedy of a rule is for the author of the extension. A copy has
# a name, because the function may write into it.
_COPY = "y = usm_dlpack.from_dlpack({array}, device={queue}"
_REMEDIES = {
    "device_type_unsupported": "pass a copy, " + _COPY + "{kind}){output}",
    "usm_type_not_accepted": "pass a copy, " + _COPY + ", usm_type='{word}'){output}",
    "read_only": "pass a copy, " + _COPY + ", copy=True){output}",
    "context_not_default": "pass a copy, " + _COPY + "){output}",
    "dtype_mismatch": "convert it,{condition} for example "
    "y = usm_dlpack.from_dlpack({values}.astype('{word}'), device={queue}{kind}){output}",
    "no_conversion": "pass an array of that dtype",
    "raw_memory": "give raw memory a dtype, "
    "y = usm_dlpack.to_dlpack_tensor({name}, shape={shape}, dtype='{word}')",
    "rank_mismatch": "reshape it, for example "
    "y = usm_dlpack.to_dlpack_tensor({compact}, shape={shape}){output}",
    "no_rank": "pass an array of one element",
    "extent_mismatch": "pass an array of that extent",
    "index_type_too_small": "pass an array of fewer elements",
    "f_order": "copy it to F order, y = usm_dlpack.from_dlpack(numpy.asfortranarray({on_host}), "
    "device={queue}{kind}){output}",
    "layout_mismatch": "copy it to C order, y = usm_dlpack.from_dlpack({array}, order='C'){output}",
}
_TYPES_OF_PYTHON: dict[str, Any] = {
    "float": Real,
    "int": Integral,
    "bool": bool,
    "str": str,
    "collections.abc.Mapping": Mapping,
}


@dataclass
class _Parameter:
    """A parameter of an overload, and the argument for it."""

    position: int | str  # without a signature the name of a keyword
    name: str | None  # None if it takes no keyword
    annotation: str
    value: Any = _MISSING
    has_default: bool = False
    by_position: bool = True

    def place(self, path: str = "") -> str:
        """Return the text of its place, or of that of an element of the argument."""
        return f"argument {self.position}" + (f" ({self.name}{path})" if self.name else path)

    @property
    def is_ours(self) -> bool:
        """Whether the parameter is a view or a SYCL object, whose casters record a refusal."""
        return self.annotation.startswith((_VIEW, "dpctl."))

    @property
    def wanted(self) -> str:
        if self.annotation.startswith(_VIEW):
            array = self.annotation.removeprefix(_VIEW + "dict(").partition(")]")[0]
            # A writable array is accepted, too.
            return "an array of " + array.replace(", writable=False", "")
        return f"an object of type {self.annotation}"

    @property
    def is_taken(self) -> bool:
        """Whether the argument is the SYCL object that is wanted."""
        return self.annotation.partition(" ")[0] == f"dpctl.{type(self.value).__name__}"

    def has_type(self) -> bool | None:
        """Return whether the argument has the wanted type; None for a type unknown here."""
        kind = self.annotation.partition("[")[0]
        if kind in ("collections.abc.Sequence", "list", "tuple"):
            return isinstance(self.value, Sequence) and not isinstance(self.value, str)
        expected = _TYPES_OF_PYTHON.get(kind)
        return None if expected is None else isinstance(self.value, expected)


def _parameters(signature: str) -> list[_Parameter] | None:
    """Read the parameters of a signature as nanobind prints it; None if it is of another form."""
    signature = re.sub(r"\\\d+", "...", signature)
    # The annotation of an nb::ndarray is no expression.
    signature = re.sub(r"[\w.]*ndarray\[[^]]*\]", lambda found: repr(found[0]), signature)
    try:
        with parser:
            (function,) = ast.parse(signature + ": ...").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(function, ast.FunctionDef) or function.args.vararg or function.args.kwarg:
        return None
    arguments = function.args
    named = arguments.posonlyargs + arguments.args
    is_self = named and named[0].annotation is None and named[0].arg == "self"
    if is_self or function.name == "__new__":
        named = named[1:]
    required = [None] * (len(named) - len(arguments.defaults))
    defaults = [*required, *arguments.defaults, *arguments.kw_defaults]
    only_positional = {argument.arg for argument in arguments.posonlyargs}
    return [
        _Parameter(
            position,
            None if argument.arg in only_positional else argument.arg,
            ast.unparse(argument.annotation).strip("'\"") if argument.annotation else "",
            has_default=default is not None,
            by_position=position <= len(named),
        )
        for position, (argument, default) in enumerate(
            zip(named + arguments.kwonlyargs, defaults, strict=True), 1
        )
    ]


def _path(value: Any, wanted: Any) -> str | None:
    """Return how to get an object out of lists, tuples and dictionaries, such as ``[0]``.

    It is empty if the value is the object, and None if it does not hold it.
    """
    left, seen = [(value, "")], set()
    while left:
        here, path = left.pop()
        if here is wanted:
            return path
        if id(here) not in seen and isinstance(here, list | tuple | dict):
            seen.add(id(here))
            items = dict.items(here) if isinstance(here, dict) else enumerate(here)
            left += [(item, f"{path}[{shown(key)}]") for key, item in items]
    return None


def _view(annotation: str) -> tuple[str, int] | None:
    """Return the dtype and the rank of a view."""
    found = re.search(r"dtype='(\w+)', shape=\((.*?),?\)", annotation)
    return None if found is None else (found[1], len(found[2].split(", ")) if found[2] else 0)


def _refuses(annotation: str, parts: list[Any]) -> bool:
    """Return whether a view may have refused an array with these parts of an error, if any."""
    view = _view(annotation)
    if view is None or not parts or parts[1] not in ("dtype_mismatch", "rank_mismatch"):
        return True
    return parts[3].partition(" ")[0] in map(str, view)


@dataclass
class _Call:
    """A call: its function, its arguments, and the parameters of the overloads that fit it."""

    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    signatures: list[str]
    overloads: list[list[_Parameter]] = field(init=False)
    forms: list[list[_Parameter]] = field(init=False)  # all overloads, if none fits
    parameters: list[_Parameter] = field(init=False)  # those of an overload, if all share them

    def __post_init__(self) -> None:
        if self.signatures[:1] and self.signatures[0].startswith("def __new__("):
            self.args = self.args[1:]  # without the class
        read = [_parameters(signature) for signature in self.signatures]
        self.overloads = [overload or [] for overload in read]
        self.forms = [] if None in read else self.overloads  # otherwise one takes any arguments
        if fitting := list(filter(self._fits, self.forms)):
            self.forms, self.overloads = [], fitting
        names = {tuple((p.name, p.by_position) for p in overload) for overload in self.overloads}
        self.parameters = self.overloads[0] if len(names) == 1 else []

    @property
    def queue(self) -> str:
        """What a remedy calls the queue: the author's name of it if the caller has one."""
        given = (*self.args, *self.kwargs.values())
        has_queue = any(type(value).__name__ == "SyclQueue" for value in given)
        return "queue" if has_queue else "dpctl.SyclQueue()"

    def _fits(self, overload: list[_Parameter]) -> bool:
        """Return whether an overload takes as many arguments, and these keywords."""
        left = overload[len(self.args) :]
        required = {parameter.name for parameter in left if not parameter.has_default}
        fits = len(self.args) <= sum(parameter.by_position for parameter in overload)
        return fits and required <= set(self.kwargs) <= {parameter.name for parameter in left}

    def bind(self) -> str | None:
        """Give the parameters their arguments; return the fault of an argument that has none."""
        most = sum(parameter.by_position for parameter in self.parameters)
        named = {parameter.name: parameter for parameter in self.parameters if parameter.name}
        if self.parameters and len(self.args) > most:
            found = f"{len(self.args)}; see help({self.function})"
            return f"argument {most + 1}: expected at most {most} by position, found {found}"
        bound = dict(zip((p.position for p in self.parameters), self.args, strict=False))
        for name, value in self.kwargs.items() if self.parameters else ():
            if not named:
                return f"{name}: expected arguments by position, found a keyword; omit its name"
            if name not in named:
                wanted = ", ".join(map(str, named))
                near = difflib.get_close_matches(name, map(str, named), 1)
                remedy = f"use {near[0]}" if near else "correct its name"
                return f"{name}: expected a keyword of {wanted}, found another; {remedy}"
            if named[name].position in bound:
                found = "one by position and one by keyword"
                return f"{named[name].place()}: expected one argument, found {found}; omit one"
            bound[named[name].position] = value
        for parameter in (p for overload in self.overloads for p in overload):
            parameter.value = bound.get(parameter.position, _MISSING)
        return None

    def places(self, argument: Any) -> list[tuple[_Parameter, str, str]]:
        """Find the arguments that are or hold an object: parameter, name, path to the object."""
        places: list[tuple[_Parameter, str, str]] = []
        every: list[tuple[int | str, Any]] = [*enumerate(self.args, 1), *self.kwargs.items()]
        for key, value in every:
            if (path := _path(value, argument)) is not None:
                matching = [p for p in self.parameters if key in (p.position, p.name)]
                parameter = (matching or [_Parameter(key, None, "")])[0]
                name = parameter.name or (key if isinstance(key, str) else f"argument_{key}")
                places.append((parameter, name, path))
        return places

    def is_twice(self, argument: Any) -> bool:
        """Return whether the only overload that fits took an object, and refused it elsewhere."""
        return len(self.overloads) == 1 and len(self.places(argument)) > 1

    def find(self, argument: Any, parts: list[Any]) -> tuple[str, str, list[str]]:
        """Find the argument that is or holds an object that was refused, by the error's parts.

        Returns its place, what a remedy calls the object, and the annotations of the overloads.
        """
        places = self.places(argument)
        # If several arguments hold it, views are the likelier ones.
        likely = [place for place in places if place[0].is_ours] or places[:1]
        if len(self.overloads) == 1:
            likely = [p for p in likely if _refuses(p[0].annotation, parts)] or likely
        name = next((name + path for _, name, path in likely), "array")
        positions = {parameter.position for parameter, *_ in likely}
        annotations = [p.annotation for o in self.overloads for p in o if p.position in positions]
        place = " or ".join(parameter.place(path) for parameter, _, path in likely)
        return place or "an argument", name, annotations

    def at_fault(self, overload: list[_Parameter], refused: list[Any]) -> Iterator[_Parameter]:
        """Find the parameter of an overload whose argument it did not take."""
        given = [p for p in overload if p.value is not _MISSING]
        missing = [p for p in overload if p.value is _MISSING and not p.has_default]
        none = [p for p in given if p.value is None and "None" not in p.annotation.split(" | ")]
        others = [p for p in given if not p.is_ours]
        # An array for a SYCL object: the caller may have forgotten that.
        of_sycl = [p for p in given if p.annotation.startswith("dpctl.")]
        yield from (p for p in of_sycl if hasattr(type(p.value), "__dlpack__"))
        yield from missing + none
        for argument in refused:
            yield from (p for p in given if p.is_ours and p.value is argument and not p.is_taken)
            yield from (p for p in others if _path(p.value, argument) is not None)
        yield from (p for p in others if p.has_type() is False)
        yield from others if len(others) == len(self.overloads) == 1 else ()

    def wrong_type(self, faults: list[_Parameter]) -> ArgumentError:
        """Make the error of an argument that is missing or of another Python type.

        `faults` is its parameter in each overload.
        """
        parameter = faults[0]
        annotation, value = parameter.annotation, parameter.value
        expected = " or ".join(dict.fromkeys(fault.wanted for fault in faults))
        name = parameter.name or f"argument {parameter.position}"
        remedy = f"see help({self.function})"
        if annotation.startswith(_VIEW):
            remedy = "pass such an array"
            remedy = remedy if value is None else "pass an array with __dlpack__ or USM"
            view = _view(annotation)
            if isinstance(value, list | tuple) and view and _is_of_numpy(view[0]):
                array = f"numpy.asarray({name.replace(' ', '_')}, '{view[0]}')"
                parts = _kind_and_output([fault.annotation for fault in faults])
                remedy += ", " + _COPY.format(array=array, queue=self.queue)
                remedy += "{kind}){output}".format_map(parts)
        elif annotation.startswith("dpctl."):
            remedy = f"pass a {annotation.partition(' ')[0]}"
        found = "None" if value is None else f"an object of type {type_name(value)}"
        if parameter.has_type():
            found = (shown(value) if isinstance(value, int) else found) + ", which does not fit"
        if type_name(value) == annotation and not parameter.has_type():  # numpy.bool
            found = f"an object of type {type(value).__module__}.{annotation}"
        found = "no argument" if value is _MISSING else found
        reason = from_parts("request_unsupported", name, expected, found, remedy)
        sentence = f"expected {expected}, found {found}; {remedy}"
        return ArgumentError(f"{self.function}: {parameter.place()}: {sentence}", (reason,))

    def without_reason(self) -> ArgumentError:
        types = [type_name(value) for value in self.args]
        types += [f"{name}={type_name(value)}" for name, value in self.kwargs.items()]
        found = f"({', '.join(types)}); see help({self.function})"
        expected = "arguments of one of its signatures"
        if self.forms:
            names = [[p.name or f"argument {p.position}" for p in o] for o in self.forms]
            expected = " or ".join(dict.fromkeys(f"({', '.join(form)})" for form in names))
        sentence = f"expected {expected}, found {found}"
        return ArgumentError(f"{self.function}: {sentence}", ())


def _is_of_numpy(name: str) -> bool:
    try:
        numpy.dtype(name)
    except TypeError:
        return False
    return True


def _kind_and_output(annotations: list[str]) -> dict[str, str]:
    """Return what a remedy says of the USM kind of a copy, and of one that is an output."""
    kinds = {kind for text in annotations for kind in re.findall(r"usm_type='(\w+)'", text)}
    reads = not annotations or any("writable=False" in text for text in annotations)
    return {
        "kind": f", usm_type='{kinds.pop()}'" if kinds in ({"shared"}, {"host"}) else "",
        "output": "" if reads else ", into which the function may write",
    }


def _has(array: Any, name: str) -> bool:
    return inspect.getattr_static(array, name, None) is not None


def _size(array: Any) -> int:
    shape = array.shape if hasattr(array, "shape") else array.__sycl_usm_array_interface__["shape"]
    return math.prod(shape)


def _is_vector(array: Any) -> bool:
    with contextlib.suppress(Exception):  # the array's own attribute
        return len(array.shape) == 1
    return False


def _shape(argument: Any, rule: str, word: str, annotations: list[str]) -> str:
    """Return the text of a shape, the last extent of which has all elements of an argument."""
    with contextlib.suppress(Exception):  # the array's own attributes, or another dtype
        if rule == "rank_mismatch":
            return str((*(1,) * (int(word) - 1), _size(argument)))
        if view := _view(annotations[0]):
            return str((*(1,) * (view[1] - 1), argument.nbytes // numpy.dtype(word).itemsize))
    return "..."


def _reason(
    call: _Call, argument: Any, name: str, annotations: list[str], *parts: str
) -> ConversionError:
    """Make the error of an array, with a remedy for the caller."""
    queue = call.queue
    code, field, expected, found, remedy = parts
    has = functools.partial(_has, argument)
    has_usm = has("__sycl_usm_array_interface__")
    has_dlpack = has("__dlpack__")
    array = name if has_dlpack or not has_usm else f"usm_dlpack.to_dlpack_tensor({name})"
    on_queue = f"usm_dlpack.from_dlpack({array}, device={queue})"
    word = expected.partition(" ")[0]
    rule = code
    if code == "dtype_mismatch" and array != name and found.startswith("uint8 "):
        rule = "raw_memory"
    if code == "dtype_mismatch" and found.startswith("complex") > word.startswith("complex"):
        rule = "no_conversion"  # which would drop the imaginary part
    if code == "layout_mismatch" and (field, word) == ("strides[0]", "1"):
        rule = code if _is_vector(argument) else "f_order"
    if code == "rank_mismatch" and word == "0":
        rule = "no_rank"
    # from_dlpack copies what its producer copies to the host, and from no other device type.
    is_foreign = code == "device_type_unsupported" and not found.startswith("kDLCPU")
    is_alone = code == "context_not_default" and not has_dlpack
    if not is_foreign and not is_alone and (of_caller := _REMEDIES.get(rule)):
        dtypes = (word, found.partition(" ")[0])
        device = "" if has_usm else f", device={queue}"
        remedy = of_caller.format(
            name=name,
            array=array,
            queue=queue,
            word=word,
            # A new shape is one of the memory, so the elements must stand in C order.
            compact=f"usm_dlpack.from_dlpack({array}{device}, order='C')",
            on_host=f"{on_queue}.numpy()",
            values=name if has("astype") else f"{on_queue}.numpy()",
            shape=_shape(argument, rule, word, annotations),
            condition="" if all(map(_is_of_numpy, dtypes)) else " with ml_dtypes installed,",
            **_kind_and_output(annotations),
        )
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
    call = _Call(function, args, kwargs, signatures)
    ids = {id(argument) for argument in taken}
    told: dict[str, ConversionError] = {}
    for argument, *given in refusals:
        if not given or (id(argument) in ids and not call.is_twice(argument)):
            continue
        parts, raised = given, given[0]
        if isinstance(raised, ConversionError):
            parts = [False, *raised._parts()]
        elif isinstance(raised, BaseException):
            place = call.find(argument, [])[0]
            is_ours = type(raised) in (TypeError, ValueError) and is_our_sentence(raised)
            return type(raised)(f"{function}: {place}: {raised}") if is_ours else raised
        place, name, annotations = call.find(argument, parts)
        error = _reason(call, argument, name, annotations, *parts[1:])
        text = f"{function}: {place}: {error}"
        if not parts[0]:  # no other view type could accept it
            error.args = (text,)
            return error
        told.setdefault(text, error)
    if told:
        return ArgumentError("\n".join(told), tuple(told.values()))
    if (sentence := call.bind()) is not None:
        return ArgumentError(f"{function}: {sentence}", ())
    refused = [argument for argument, *parts in refusals if not parts and id(argument) not in ids]
    faults = [next(call.at_fault(overload, refused), None) for overload in call.overloads]
    known = [fault for fault in faults if call.parameters and fault is not None]
    if known and len(known) == len(faults) and len({fault.position for fault in known}) == 1:
        return call.wrong_type(known)
    return call.without_reason()
