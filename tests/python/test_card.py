# SPDX-License-Identifier: Apache-2.0
"""Cards for notebooks: well-formed, of their own, and drawn to the real numbers."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import usm_dlpack
from capsules import ForeignArray, ForeignTensor
from hypothesis import given
from hypothesis import strategies as st
from memory_sources import address_of, allocate
from usm_dlpack import _card, _drawing, explain, to_dlpack_tensor, validate
from usm_dlpack._drawing import View

SVG = "{http://www.w3.org/2000/svg}"


def parsed(x: Any) -> ElementTree.Element:
    """Return an object's card, which must be well-formed, without scripts, and sufficient."""
    text = x._repr_html_()
    root = ElementTree.fromstring(text)
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names <= {
        *("div", "span", "style", "table", "tbody", "tr", "th", "td", "svg", "rect", "path"),
        "text",
    }
    assert not re.search(r"url\(|@import|href=|src=| on\w+=", text)
    assert re.findall(r"http\S+?\"", text) == ['http://www.w3.org/2000/svg"'] * text.count("xmlns=")
    return root


def rects(root: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    """Return place and width, as parts of the whole, of what is drawn of a kind."""
    found = (element for element in root.iter(f"{SVG}rect") if element.get("class") == kind)
    return [
        (float(e.attrib["x"].rstrip("%")) / 100, float(e.attrib["width"].rstrip("%")) / 100)
        for e in found
    ]


def table_of(root: ElementTree.Element) -> dict[str, str]:
    """Return the facts in a card's first table."""
    rows = (list(row) for row in next(root.iter("table")).iter("tr"))
    return {"".join(name.itertext()): "".join(fact.itertext()) for name, fact in rows}


def nearly(pairs: list[tuple[float, float]]) -> Any:
    """Return pairs to be compared with what is drawn to a ten-thousandth of a per cent."""
    return [pytest.approx(pair, abs=2e-6) for pair in pairs]


LAYOUTS: dict[str, dict[str, Any]] = {
    "compact": {"shape": (4, 6)},
    "down": {"shape": (3, 4), "strides": (-10, 2), "byte_offset": 160},
    "broadcast": {"shape": (2, 5), "strides": (5, 0), "byte_offset": 8},
    "one": {"shape": (), "byte_offset": 16},
    "three": {"shape": (2, 2, 3), "strides": (3, 20, -1), "byte_offset": 100},
    "gaps": {"shape": 5, "strides": (7,)},
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_allocation_view_and_elements_are_drawn_where_they_are(queue: Any, name: str) -> None:
    tensor = to_dlpack_tensor(allocate("device", 400, queue), dtype="f4", **LAYOUTS[name])
    proof = validate(tensor)
    root = parsed(tensor)
    steps = list(itertools.product(*map(range, tensor.shape)))
    places = {
        tensor.data + 4 * sum(i * s for i, s in zip(index, tensor.strides, strict=True))
        for index in steps
    }
    lowest, end = min(places), max(places) + 4
    assert rects(root, "allocation") == [(0, 1)]
    expected = ((lowest - proof.base) / 400, (end - lowest) / 400)
    assert rects(root, "view") == nearly([expected])
    (mark,) = (e for e in root.iter(f"{SVG}svg") if e.get("class") == "first")
    where = float(mark.attrib["x"].rstrip("%")) / 100
    assert where == pytest.approx((tensor.data - proof.base) / 400, abs=2e-6)
    whole = end - lowest
    drawn = nearly(sorted(((p - lowest) / whole, 4 / whole) for p in places))
    assert sorted(set(rects(root, "cell"))) == drawn
    facts = table_of(root)
    first, last = lowest - proof.base, end - proof.base - 1
    assert facts["view"] == f"bytes {first} to {last} of the allocation"
    assert facts["first element"] == f"at byte {tensor.data - proof.base}"
    assert facts["shape"] == str(tensor.shape)
    assert facts["memory"] == "device USM"
    own = parsed(proof)
    assert rects(own, "view") == nearly([expected])
    assert table_of(own)["bounds proved"] == "allocation"
    assert rects(own, "cell") == rects(own, "span") == []
    assert "in the view" not in "".join(own.itertext())  # whose shape a proof does not hold


def test_the_way_of_each_dimension_is_said(queue: Any) -> None:
    memory = allocate("shared", 400, queue)
    tensor = to_dlpack_tensor(
        memory, shape=(3, 4, 2, 1), strides=(-10, 2, 0, 5), byte_offset=160, dtype="f4"
    )
    facts = table_of(parsed(tensor))
    assert facts["dimension 0"] == "3 of them, ← 40 bytes down"
    assert facts["dimension 1"] == "4 of them, → 8 bytes up"
    assert facts["dimension 2"] == "2 of them, all at one place (broadcast)"
    assert facts["dimension 3"] == "1 element"


def test_elements_below_a_byte_are_drawn_to_the_bit(queue: Any) -> None:
    memory = allocate("device", 64, queue)
    tensor = to_dlpack_tensor(memory, shape=(2, 9), dtype="float4_e2m1fn")
    cells = rects(parsed(tensor), "cell")
    assert len(cells) == 18
    assert cells == nearly([(4 * n / 72, 4 / 72) for n in range(18)])
    padded = to_dlpack_tensor(memory, shape=8, dtype="int32")
    assert rects(parsed(padded), "cell") == nearly([(n / 8, 1 / 8) for n in range(8)])


def test_many_elements_are_drawn_by_what_the_first_dimension_spans(queue: Any) -> None:
    memory = allocate("device", 1 << 16, queue)
    tensor = to_dlpack_tensor(memory, shape=(100, 50), strides=(100, 1), dtype="f4")
    root = parsed(tensor)
    assert rects(root, "cell") == []
    whole = 4 * (99 * 100 + 50)
    expected = [(400 * n / whole, 200 / whole) for n in (0, 1, 99)]
    assert rects(root, "span") == nearly(expected)


@pytest.mark.parametrize(
    ("shape", "cells"),
    [((16, 32), 512), ((17, 32), 0), ((16, 33), 0), ((1, 32), 32), ((1, 33), 0), ((33,), 0)],
)
def test_each_element_is_drawn_of_so_many_rows_and_columns(
    queue: Any, shape: tuple[int, ...], cells: int
) -> None:
    root = parsed(to_dlpack_tensor(allocate("device", 1024, queue), shape=shape))
    assert len(rects(root, "cell")) == cells
    assert bool(rects(root, "span")) is (cells == 0)


@pytest.mark.parametrize(("stride", "told"), [(1, "do not overlap"), (0, "may overlap")])
def test_the_card_of_a_proof_says_whether_elements_overlap(
    queue: Any, stride: int, told: str
) -> None:
    tensor = to_dlpack_tensor(allocate("device", 8, queue), shape=8, strides=(stride,))
    assert table_of(parsed(validate(tensor)))["elements"] == told


@given(
    shape=st.lists(st.integers(1, 40), max_size=4),
    data=st.data(),
)
def test_nothing_is_drawn_outside(queue: Any, shape: list[int], data: Any) -> None:
    strides = [data.draw(st.integers(-50, 50)) for _ in shape]
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = (sum(r for r in reach if (r < 0) is down) for down in (True, False))
    size = 2 * (high - low + 1) + 14
    tensor = to_dlpack_tensor(
        allocate("device", size, queue),
        shape=shape,
        strides=strides,
        byte_offset=6 - 2 * low,
        dtype="i2",
    )
    root = parsed(tensor)
    drawn = [*rects(root, "cell"), *rects(root, "span")]
    assert drawn
    for x, width in [*drawn, *rects(root, "view")]:
        assert -1e-6 <= x <= x + width <= 1 + 1e-5
    assert min(x for x, _ in drawn) == pytest.approx(0, abs=1e-6)
    assert max(x + width for x, width in drawn) == pytest.approx(1, abs=1e-5)


def test_an_empty_view_is_a_card_without_a_view(queue: Any) -> None:
    tensor = to_dlpack_tensor(allocate("device", 64, queue), shape=(0, 4), dtype="f4")
    for x in (tensor, validate(tensor)):
        root = parsed(x)
        assert rects(root, "view") == rects(root, "cell") == rects(root, "span") == []
        assert table_of(root)["view"] == "no elements, no bytes"


def test_an_allocation_of_unknown_size_is_the_view_itself() -> None:
    view = View(0, 0, 1000, 40, 1016)
    root = ElementTree.fromstring(_card._card("x", view, []))
    assert rects(root, "view") == [(0, 1)]
    assert table_of(root)["view"] == "40 bytes"
    assert "are not known" in "".join(root.itertext())


def test_two_cards_on_a_page_have_names_of_their_own(queue: Any) -> None:
    tensor = to_dlpack_tensor(allocate("host", 8, queue))
    cards = [tensor._repr_html_() for _ in range(2)]
    ids = [name for card in cards for name in re.findall(r' id="([^"]+)"', card)]
    assert len(ids) == len(set(ids)) == 2
    for card, name in zip(cards, ids, strict=True):
        style = re.findall(r"<style>(.*?)</style>", card)
        assert re.findall(r"#([\w-]+)", re.sub(r"#[0-9a-f]{6}\b", "", style[0])) == [name, name]
        assert "prefers-color-scheme: dark" in style[0]


def test_texts_are_escaped() -> None:
    card = _card._card("<script>&'\"", View(0, 8, 0, 8, 0), [("<b>", "\x00\ud800]]>")])
    root = ElementTree.fromstring(card)
    assert "<script>" not in card
    assert "<b>" in table_of(root)
    assert "\\x00" in table_of(root)["<b>"]


def test_an_explanation_is_a_card_that_says_where_it_stops(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.device_id = 7
    explanation = explain(ForeignArray(foreign))
    root = parsed(explanation)
    words = "".join(root.itertext())
    assert str(explanation.error) in words
    marks = [next(row.itertext()) for row in root.iter("tr")]
    outcomes = {"✓": "passed", "✗": "stopped", "·": "not reached"}
    assert [outcomes[mark] for mark in marks] == [step.outcome for step in explanation.steps]


def test_a_card_that_cannot_be_drawn_is_the_text(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = to_dlpack_tensor(memory)
    monkeypatch.setattr(_drawing, "allocation_drawing", None)
    assert "".join(parsed(tensor).itertext()).endswith(repr(tensor))


def test_a_card_in_a_child_of_fork_shows_what_is_known(new_process: Callable[..., Any]) -> None:
    done = new_process(
        """
        import os, sys, dpctl.memory, usm_dlpack
        tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
        proof = usm_dlpack.validate(tensor)
        if os.fork() == 0:
            print(tensor._repr_html_(), proof._repr_html_(), flush=True)
            os._exit(0)
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(14, 0) ?") == 2
    assert done.stdout.count("bytes 0 to 47 of the allocation") == 2


def test_cards_of_another_device_name_it(
    succeed: Callable[..., str], driver: Path, driver_copies: Any
) -> None:
    printed = succeed(
        """
        import dpctl, usm_dlpack
        from dpctl import memory
        queue = dpctl.SyclQueue(usm_dlpack.root_device(1))
        print(usm_dlpack.to_dlpack_tensor(memory.MemoryUSMDevice(8, queue=queue))._repr_html_())
        """,
        OCL_ICD_FILENAMES=f"{driver}:{driver_copies['second']}",
    )
    assert f"(14, 1) {usm_dlpack.root_device(0).name.strip()}" in printed
