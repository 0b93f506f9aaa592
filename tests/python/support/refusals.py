# SPDX-License-Identifier: Apache-2.0
"""What every refusal must be: the type, the rule, the field, and the sentence made of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from usm_dlpack import ConversionError, UsmBindingError

SENTENCE = re.compile(r"[\w.\[\]]+: expected .+, found .+; [^A-Z].+[^.]", re.DOTALL)
BINDING = {"context_not_default", "device_without_id", "pointer_unknown", "device_mismatch"}


def check_refusal(
    error: Any,
    code: str,
    field: str,
    *,
    binding: bool | None = None,
    **parts: str,
) -> None:
    """Require the refusal by one rule, whose ``expected``, ``found`` or ``remedy`` hold words."""
    is_binding = code in BINDING if binding is None else binding
    assert type(error) is (UsmBindingError if is_binding else ConversionError)
    assert (error.code, error.field) == (code, field)
    for name, words in parts.items():
        assert words in getattr(error, name)
    sentence = f"{field}: expected {error.expected}, found {error.found}; {error.remedy}"
    assert str(error) == sentence
    assert SENTENCE.fullmatch(sentence)
    assert ", or in C++ " not in error.remedy  # for who wrote the function
    assert "0x" not in str(error)


@contextmanager
def refused(code: str, field: str, **parts: Any) -> Iterator[Any]:
    """Require that the block is refused by one rule; the parts are those of `check_refusal`."""
    with pytest.raises(ConversionError) as caught:
        yield caught
    check_refusal(caught.value, code, field, **parts)


@contextmanager
def wrong_argument(kind: type[Exception], field: str, part: str = "") -> Iterator[Any]:
    """Require that the block raises Python's own error for an argument, in a house sentence."""
    with pytest.raises(kind) as caught:
        yield caught
    assert type(caught.value) is kind
    sentence = str(caught.value)
    assert SENTENCE.fullmatch(sentence)
    assert sentence.startswith(f"{field}: expected ")
    assert part in sentence
