# SPDX-License-Identifier: Apache-2.0
"""Reads, once for each type, which keywords its ``__dlpack__`` takes and what its arrays have."""

import inspect
import re
import threading
from collections.abc import Callable
from typing import Any

_KEYWORDS = frozenset({"stream", "max_version", "dl_device", "copy"})
# The parser of Python 3.11 raises SystemError if two threads parse at once, and signatures of
# compiled code are parsed. Reentrant, because garbage collection may call this again.
parser = threading.RLock()

_SIGNATURE = re.compile(r"\s*(?:def )?(?:\w+\.)*__dlpack__\(")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
# Brackets in types or defaults, whose commas do not separate parameters.
_NESTED = re.compile(r"\([^][(){}]*\)|\[[^][(){}]*\]|\{[^][(){}]*\}")


def _keywords_in(line: str) -> frozenset[str] | None:
    """Return the keywords in a text that is a signature of ``__dlpack__``, or None.

    The text need not be Python. ``**kwargs`` is ignored: pybind11 writes it for overloads.
    """
    head = _SIGNATURE.match(line)
    if head is None:
        return None
    inside, removed = _QUOTED.sub("", line[head.end() :]), 1
    while removed:
        inside, removed = _NESTED.subn("", inside)
    inside, end, _ = inside.partition(")")
    if not end or "**" in inside:
        return None
    by_name = inside.rpartition("/")[2].split(",")
    return _KEYWORDS & {re.split(r"[:=]", parameter)[0].strip() for parameter in by_name}


def _written_keywords(method: object) -> frozenset[str] | None:
    """Return the keywords in a compiled method's signature; of overloads, the longest set.

    nanobind stores signatures as text; pybind11 and Cython begin the docstring with one.
    """
    overloads = getattr(method, "__nb_signature__", None)
    kept = overloads if isinstance(overloads, tuple) else ()
    texts = [overload[0] for overload in kept if isinstance(overload, tuple) and overload]
    doc = getattr(method, "__doc__", None)
    if not texts and isinstance(doc, str):
        texts = [doc.strip().partition("\n")[0]]
    named = [_keywords_in(text) for text in texts if isinstance(text, str)]
    return max((known for known in named if known is not None), key=len, default=None)


def _keywords_of(signature: inspect.Signature) -> frozenset[str]:
    parameters = signature.parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return _KEYWORDS
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = frozenset(parameter.name for parameter in parameters if parameter.kind in by_name)
    return named & _KEYWORDS


def _read_signature(method: Callable[..., Any]) -> frozenset[str]:
    """Return the keywords that ``__dlpack__`` takes, and "guessed" if that is not known.

    For a decorated method, only keywords that both the decorator and the method take.
    """
    try:
        with parser:
            signatures = [inspect.signature(method, follow_wrapped=own) for own in (True, False)]
    except Exception:  # Python's parser, or an attribute __signature__
        named = _written_keywords(method)
        return frozenset({"max_version", "guessed"}) if named is None else named
    return _keywords_of(signatures[0]) & _keywords_of(signatures[1])


def read_producer(owner: Any, method: Callable[..., Any]) -> frozenset[str] | None:
    """Return the properties of arrays with a ``__dlpack__``, by name, as producer.cpp uses them.

    `owner` is the type of the arrays, or an array with a method of its own. None for a type that
    has the method of its metaclass.
    """
    said = {
        "device": hasattr(owner, "__dlpack_device__"),
        "queue": hasattr(owner, "sycl_queue"),
        "usm": hasattr(owner, "__sycl_usm_array_interface__"),
        "lazy": all(callable(getattr(owner, name, None)) for name in ("is_conj", "is_neg")),
        "gradients": hasattr(owner, "requires_grad"),
    }
    if isinstance(owner, type):
        defined = [base.__dict__ for base in owner.__mro__]
        if not any("__dlpack__" in names for names in defined):
            return None
        # A class that overrides __dlpack__ alone is unknown to the API that it inherits.
        api = "__dlpack_c_exchange_api__"
        first = next(names for names in defined if api in names or "__dlpack__" in names)
        said["exchange_api"] = api in first
        reader: object = owner.__getattribute__
        computed = reader is not object.__getattribute__ or hasattr(owner, "__getattr__")
        said["queue"] |= computed
    return _read_signature(method) | {name for name, is_true in said.items() if is_true}
