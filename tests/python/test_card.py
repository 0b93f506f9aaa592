# SPDX-License-Identifier: Apache-2.0
"""Cards for notebooks: well-formed, self-contained, and drawn to the real numbers."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest
from capsules import ForeignArray, ForeignTensor
from memory_sources import address_of, allocate
from usm_dlpack import _card, explain, to_dlpack_tensor, validate

SVG = "{http://www.w3.org/2000/svg}"


def parsed(x: Any) -> ElementTree.Element:
    """Return an object's card, which must be well-formed, without scripts, and sufficient."""
    text = x._repr_html_()
    root = ElementTree.fromstring(text)
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names <= {*("div", "pre", "table", "tbody", "tr", "th", "td"), *("svg", "rect", "path")}
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
    """Return the facts in a card's table."""
    rows = (list(row) for row in next(root.iter("table")).iter("tr"))
    return {"".join(name.itertext()): "".join(fact.itertext()) for name, fact in rows}


LAYOUTS: dict[str, dict[str, Any]] = {
    "compact": {"shape": (4, 6)},
    "down": {"shape": (3, 4), "strides": (-10, 2), "byte_offset": 160},
    "broadcast": {"shape": (2, 5), "strides": (5, 0), "byte_offset": 8},
    "scalar": {"shape": (), "byte_offset": 16},
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_view_is_drawn_where_it_is_in_the_allocation(queue: Any, name: str) -> None:
    tensor = to_dlpack_tensor(allocate("device", 400, queue), dtype="f4", **LAYOUTS[name])
    proof = validate(tensor)
    places = {
        tensor.data + 4 * sum(i * s for i, s in zip(index, tensor.strides, strict=True))
        for index in itertools.product(*map(range, tensor.shape))
    }
    lowest, end = min(places) - proof.base, max(places) + 4 - proof.base
    first = tensor.data - proof.base
    for x in (tensor, proof):
        root = parsed(x)
        assert rects(root, "allocation") == [(0, 1)]
        assert rects(root, "view") == [
            pytest.approx((lowest / 400, (end - lowest) / 400), abs=2e-6)
        ]
        (mark,) = (e for e in root.iter(f"{SVG}svg") if e.get("class") == "first")
        assert float(mark.attrib["x"].rstrip("%")) / 100 == pytest.approx(first / 400, abs=2e-6)
        facts = table_of(root)
        assert facts["view"] == f"bytes {lowest} to {end - 1} of the 400 of the allocation"
        assert facts["first element"] == f"at byte {first}"
        assert facts["memory"] == "device USM"
        assert facts["device"] == f"(14, 0) {tensor.sycl_device.name.strip()}"
    assert table_of(parsed(tensor))["shape"] == str(tensor.shape)
    facts = table_of(parsed(proof))
    assert facts["bounds proved"] == "allocation"
    assert facts["elements"] == ("may overlap" if name == "broadcast" else "do not overlap")


def test_an_empty_view_is_a_card_without_a_view(queue: Any) -> None:
    tensor = to_dlpack_tensor(allocate("device", 64, queue), shape=(0, 4), dtype="f4")
    for x in (tensor, validate(tensor)):
        root = parsed(x)
        assert rects(root, "view") == []
        assert table_of(root)["view"] == "no elements, no bytes"


def test_an_allocation_of_unknown_size_is_the_view_itself() -> None:
    root = ElementTree.fromstring(_card._drawing(0, 0, 40, 16))
    assert rects(root, "view") == [(0, 1)]
    assert "stroke-dasharray" in ElementTree.tostring(root, encoding="unicode")


def test_texts_are_escaped() -> None:
    assert _card.escaped("<b>\x00\ud800]]>") == "&lt;b&gt;\\x00\\ud800]]&gt;"


def test_an_explanation_is_a_card_of_its_text(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.device_id = 7
    explanation = explain(ForeignArray(foreign))
    assert "".join(parsed(explanation).itertext()) == str(explanation)


def test_a_card_that_cannot_be_drawn_is_the_text(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = to_dlpack_tensor(memory)
    monkeypatch.setattr(_card, "_drawing", None)
    assert "".join(parsed(tensor).itertext()) == repr(tensor)


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
    assert done.stdout.count("bytes 0 to 47 of the 48 of the allocation") == 2
