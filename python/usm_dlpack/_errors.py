# SPDX-License-Identifier: Apache-2.0
"""The exceptions: what was refused, by which rule, and what to do about it."""

from __future__ import annotations

from typing import Any

# What dpctl's guide to the protocol words as type errors: memory of no or of another context or
# device than the one named, and a device that has no id.
_BINDING_CODES = frozenset(
    {"context_not_default", "device_without_id", "pointer_unknown", "device_mismatch"}
)


class ConversionError(BufferError):
    """Memory, an array or a request that was refused; nothing was converted, consumed or freed.

    Its text is ``<field>: expected <expected>, found <found>; <remedy>``.

    Attributes
    ----------
    code
        The rule that was broken; the enumerator of ``usm_dlpack::errc`` in C++.
    field
        What was looked at, as dlpack.h spells it.
    expected, found
        What the rule wants, and what is there.
    remedy
        What to do about it.
    """

    __module__ = "usm_dlpack"

    def __init__(self, code: str, field: str, expected: str, found: str, remedy: str) -> None:
        super().__init__(f"{field}: expected {expected}, found {found}; {remedy}")
        self.code = code
        self.field = field
        self.expected = expected
        self.found = found
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the parts, which the text alone does not give back."""
        return type(self), (self.code, self.field, self.expected, self.found, self.remedy)


class UsmBindingError(ConversionError, TypeError):
    """The memory is not bound to what names it: another context or device, or no device id."""

    __module__ = "usm_dlpack"


def type_name(value: object) -> str:
    """Return the name of an object's type in ASCII, whatever its metaclass says."""
    name = type.__dict__["__name__"].__get__(type(value))
    return ascii(name)[1:-1]


def shown(value: object) -> str:
    """Return the text of a value for a sentence: in ASCII, without addresses, and never failing."""
    try:
        text = ascii(value)
    except Exception:
        text = "0x"
    return f"an object of type {type_name(value)}" if "0x" in text else text


def from_parts(code: str, field: str, expected: str, found: str, remedy: str) -> ConversionError:
    """Make the exception of a C++ ``conversion_error``."""
    kind = UsmBindingError if code in _BINDING_CODES else ConversionError
    return kind(code, field, expected, found, remedy)
