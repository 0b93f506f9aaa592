# SPDX-License-Identifier: Apache-2.0
"""What every refusal must be: the type, the rule, the field, and the sentence made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from usm_dlpack import ConversionError, UsmBindingError

SENTENCE = re.compile(r"[\w.\[\]]+: expected .+, found .+; [^A-Z].+[^.]", re.DOTALL)


def check_refusal(
    error: BaseException,
    code: str,
    field: str,
    *,
    expected: str = "",
    found: str = "",
    remedy: str = "",
    binding: bool = False,
) -> None:
    """Require that an exception is the refusal by one rule, in words that hold some parts."""
    assert type(error) is (UsmBindingError if binding else ConversionError)
    assert isinstance(error, BufferError)
    assert isinstance(error, TypeError) is binding
    assert (error.code, error.field) == (code, field)
    assert expected in error.expected
    assert found in error.found
    assert remedy in error.remedy
    assert str(error) == f"{field}: expected {error.expected}, found {error.found}; {error.remedy}"
    assert SENTENCE.fullmatch(str(error))
    assert "0x" not in str(error)


@contextmanager
def refused(
    code: str,
    field: str,
    *,
    expected: str = "",
    found: str = "",
    remedy: str = "",
    binding: bool = False,
) -> Iterator[None]:
    """Require that the block is refused by one rule, in words that hold some parts."""
    with pytest.raises(ConversionError) as caught:
        yield
    check_refusal(
        caught.value, code, field, expected=expected, found=found, remedy=remedy, binding=binding
    )


@contextmanager
def wrong_argument(kind: type[Exception], field: str, part: str = "") -> Iterator[None]:
    """Require that the block raises Python's own error for an argument, in a house sentence."""
    with pytest.raises(kind) as caught:
        yield
    assert type(caught.value) is kind
    sentence = str(caught.value)
    assert SENTENCE.fullmatch(sentence)
    assert sentence.startswith(f"{field}: expected ")
    assert part in sentence
