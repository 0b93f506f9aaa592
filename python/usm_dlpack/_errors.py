# SPDX-License-Identifier: Apache-2.0
"""The package's exceptions."""

import sys
from typing import Any

from usm_dlpack import _core


class ConversionError(BufferError):
    """A refusal of memory, an array or a request. Nothing was converted.

    Its text is ``<field>: expected <expected>, found <found>; <remedy>``.

    Attributes
    ----------
    code
        The name of the broken rule, as in ``usm_dlpack::errc`` of C++.
    field
        The field, as dlpack.h spells it.
    expected, found
        What the rule requires, and the actual value.
    remedy
        What to do.
    """

    __module__ = "usm_dlpack"

    def __init__(self, code: str, field: str, expected: str, found: str, remedy: str) -> None:
        super().__init__(f"{field}: expected {expected}, found {found}; {remedy}")
        self.code = code
        self.field = field
        self.expected = expected
        self.found = found
        self.remedy = remedy
        if sys.version_info >= (3, 11):
            self.add_note(f"{code}: {self.page}")

    @property
    def page(self) -> str:
        """The command that prints what the documentation says of the code."""
        return f"python -m usm_dlpack errors {self.code}"

    def _parts(self) -> tuple[str, str, str, str, str]:
        return self.code, self.field, self.expected, self.found, self.remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts, because they cannot be read from the text."""
        return type(self), self._parts(), {"args": self.args}


class UsmBindingError(ConversionError, TypeError):
    """The memory is of another context or device than is named, or its device has no id."""

    __module__ = "usm_dlpack"


_core._set_exceptions(ConversionError, UsmBindingError)
