# SPDX-License-Identifier: Apache-2.0
"""The exceptions: hierarchy, attributes, sentence, and pickling."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import usm_dlpack
from memory_sources import TypedArray, address_of, allocate
from refusals import SENTENCE, check_refusal
from usm_dlpack import ArgumentError, ConversionError, UsmBindingError, _core, to_dlpack_tensor
from usm_dlpack._errors import from_parts, shown

PARTS = ("out_of_bounds", "shape", "a view of 3 bytes", "one of 4", "make it smaller")


@pytest.fixture(params=[ConversionError, UsmBindingError])
def error(request: pytest.FixtureRequest) -> ConversionError:
    """Return an exception of each type."""
    made: ConversionError = request.param(*PARTS)
    return made


def test_the_hierarchy_is_that_of_the_contract() -> None:
    assert ConversionError.__bases__ == (BufferError,)
    assert UsmBindingError.__bases__ == (ConversionError, TypeError)


def test_names_are_public() -> None:
    for kind in (ConversionError, UsmBindingError):
        assert kind.__module__ == "usm_dlpack"
        assert getattr(usm_dlpack, kind.__name__) is kind


def test_the_parts_are_attributes_and_make_the_sentence(error: ConversionError) -> None:
    assert (error.code, error.field, error.expected, error.found, error.remedy) == PARTS
    assert str(error) == "shape: expected a view of 3 bytes, found one of 4; make it smaller"
    assert error.args == (str(error),)
    assert SENTENCE.fullmatch(str(error))


def test_the_table_has_a_row_for_each_enumerator(project_root: Path) -> None:
    header = (project_root / "include" / "usm_dlpack" / "core" / "error.hpp").read_text()
    enum = header.partition("enum class errc {")[2].partition("};")[0]
    codes = [code for code, _, _ in _core.error_table()]
    assert codes == re.findall(r"^  (\w+)(?: = 1)?,$", enum, re.MULTILINE)


def test_a_refusal_has_the_class_that_the_table_says_and_its_page() -> None:
    for code, _, is_binding in _core.error_table():
        refusal = from_parts(code, *PARTS[1:])
        check_refusal(refusal, code, "shape", binding=is_binding)
        assert refusal.page == f"docs/errors/{code}.md"


def test_a_call_that_no_overload_took_has_a_page(project_root: Path) -> None:
    refusal = from_parts(*PARTS)
    overloads = ArgumentError("f: ...", (refusal,))
    assert overloads.page == "docs/errors/argument_error.md"
    assert (project_root / overloads.page).is_file()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_refusal_is_pickled_with_all_its_parts(error: ConversionError, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


def test_a_refusal_is_copied_with_all_its_parts(error: ConversionError) -> None:
    for again in (copy.copy(error), copy.deepcopy(error)):
        assert (type(again), vars(again), str(again)) == (type(error), vars(error), str(error))


def test_memory_bound_elsewhere_is_a_type_error_too() -> None:
    binding = {code for code, _, is_binding in _core.error_table() if is_binding}
    assert binding == {
        *("context_not_default", "device_without_id", "pointer_unknown", "device_mismatch")
    }


def test_a_real_refusal_is_pickled(unpooled: Any, foreign_queue: Any) -> None:
    sources = [
        TypedArray(unpooled, shape=(13,)),
        TypedArray(unpooled, data=(0, False)),
        allocate("device", 48, foreign_queue),
    ]
    for source in sources:
        with pytest.raises(ConversionError) as caught:
            to_dlpack_tensor(source)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), vars(again)) == (type(caught.value), vars(caught.value))


def test_a_refusal_names_no_address(unpooled: Any) -> None:
    source = TypedArray(unpooled, data=(address_of(unpooled) + 4, False))
    with pytest.raises(ConversionError) as caught:
        to_dlpack_tensor(source)
    assert str(address_of(unpooled)) not in str(caught.value)
    assert f"{address_of(unpooled) + 4:x}" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        ("é\ud800", r"'\xe9\ud800'"),
        ((1, 0), "(1, 0)"),
        ((10**5000,), "an object of type tuple"),
        (object(), "an object of type object"),
        ([object()], "an object of type list"),
        (print, "<built-in function print>"),
    ],
)
def test_values_are_shown_without_addresses(value: Any, text: str) -> None:
    assert shown(value) == text


def test_an_int_of_more_digits_than_python_writes_is_shown_by_its_size() -> None:
    assert shown(10**5000) == "an int of 16610 bits"


def test_a_value_that_cannot_be_printed_is_shown_by_its_type() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown(Silent()) == "an object of type Silent"
