# SPDX-License-Identifier: Apache-2.0
"""The exceptions: hierarchy, attributes, sentence, and pickling."""

import copy
import pickle
import re

import guide
import pytest
import usm_dlpack
from refusals import BINDING
from usm_dlpack import ConversionError, UsmBindingError, _core

PARTS = ("out_of_bounds", "shape", "a view of 3 bytes", "one of 4", "make it smaller")


def test_the_hierarchy_is_that_of_the_contract():
    assert ConversionError.__bases__ == (BufferError,)
    assert UsmBindingError.__bases__ == (ConversionError, TypeError)
    for kind in (ConversionError, UsmBindingError):
        assert kind.__module__ == "usm_dlpack"
        assert getattr(usm_dlpack, kind.__name__) is kind


def test_the_table_has_a_row_for_each_enumerator(project_root):
    header = (project_root / "include" / "usm_dlpack" / "core" / "error.hpp").read_text()
    enum = header.partition("enum class errc {")[2].partition("};")[0]
    codes = [code for code, _ in _core.error_table()]
    assert codes == re.findall(r"^  (\w+)(?: = 1)?,$", enum, re.MULTILINE)


def test_the_table_names_the_codes_whose_class_is_a_type_error():
    assert {code for code, is_binding in _core.error_table() if is_binding} == BINDING


@pytest.mark.parametrize("code", [code for code, _ in _core.error_table()])
def test_each_code_has_one_section_that_says_what_to_do_and_shows_a_use(code):
    (section,) = [page for page in guide.PAGES if page.endswith(f"#`{code}`")]
    assert re.match(r"\n[A-Z`].+\.\n\n.*\*\*What to do:\*\* ", guide.text_of(section), re.DOTALL)
    assert [language for language, _ in guide.blocks_of(section)][-1] == "text"


def test_a_refusal_is_pickled_and_copied_with_all_its_parts():
    for error in (ConversionError(*PARTS), UsmBindingError(*PARTS)):
        copies = [pickle.loads(pickle.dumps(error, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)]
        for again in (*copies, copy.copy(error), copy.deepcopy(error)):
            assert type(again) is type(error)
            assert str(again) == str(error)
            assert vars(again).keys() == vars(error).keys()
            parts = (again.code, again.field, again.expected, again.found, again.remedy)
            assert parts == PARTS


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        ("é\ud800", r"'\xe9\ud800'"),
        ("cpu\0x", r"'cpu\x00x'"),
        ((1, 0), "(1, 0)"),
        ((10**5000,), "an object of type tuple"),
        ([object()], "an object of type list"),
        (print, "<built-in function print>"),
        (10**5000, "an int of 16610 bits"),
        (Silent(), "an object of type Silent"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_are_shown_without_addresses(value, text):
    assert _core.text_of(value) == text
