# SPDX-License-Identifier: Apache-2.0
"""Cards for notebooks: well-formed, self-contained, and drawn to the real numbers."""

import re
import xml.etree.ElementTree as ElementTree
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


def places(root: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    """Return place and width, in percent of the whole, of what is drawn of a kind."""
    found = (element for element in root.iter() if element.get("class") == kind)
    return [(float(e.attrib["x"].strip("%")), float(e.attrib["width"].strip("%"))) for e in found]


def table_of(root: ElementTree.Element) -> dict[str, str]:
    rows = (list(row) for row in next(root.iter("table")).iter("tr"))
    return {"".join(name.itertext()): "".join(fact.itertext()) for name, fact in rows}


@pytest.mark.parametrize(
    ("layout", "lowest", "end", "first"),
    [
        ({"shape": (3, 4), "strides": (-10, 2), "byte_offset": 160}, 80, 188, 160),
        ({"shape": (2, 5), "strides": (5, 0), "byte_offset": 8}, 8, 32, 8),
    ],
)
def test_the_view_is_drawn_where_it_is_in_the_allocation(queue, layout, lowest, end, first):
    tensor = to_dlpack_tensor(allocate("device", 400, queue), dtype="f4", **layout)
    proof = validate(tensor)
    for x in (tensor, proof):
        root = parsed(x)
        assert places(root, "allocation") == [(0, 100)]
        assert places(root, "view") == [pytest.approx((lowest / 4, (end - lowest) / 4), abs=2e-4)]
        ((mark, _),) = places(root, "first")
        assert mark == pytest.approx(first / 4, abs=2e-4)
        facts = table_of(root)
        assert facts["view"] == f"bytes {lowest} to {end - 1} of the 400 of the allocation"
        assert facts["first element"] == f"at byte {first}"
        assert facts["memory"] == "device USM"
        assert facts["device"] == f"(14, 0) {tensor.sycl_device.name.strip()}"
    assert table_of(parsed(tensor))["shape"] == str(tensor.shape)
    facts = table_of(parsed(proof))
    assert facts["bounds proved"] == "allocation"
    assert facts["elements"] == ("may overlap" if proof.overlapping else "do not overlap")


def test_an_empty_view_is_a_card_without_a_view(queue):
    tensor = to_dlpack_tensor(allocate("device", 64, queue), shape=(0, 4), dtype="f4")
    for x in (tensor, validate(tensor)):
        root = parsed(x)
        assert places(root, "view") == []
        assert table_of(root)["view"] == "no elements, no bytes"


def test_an_allocation_of_unknown_size_is_the_view_itself():
    root = ElementTree.fromstring(_card._drawing(0, 0, 40, 16))
    assert places(root, "view") == [(0, 100)]
    assert "unknown size" in _card._place(0, 0, 40, 16)["view"]
    assert "stroke-dasharray" in ElementTree.tostring(root, encoding="unicode")


def test_texts_are_escaped():
    assert _card.escaped("<b>\x00\ud800]]>") == "&lt;b&gt;\\x00\\ud800]]&gt;"


def test_an_explanation_is_a_card_of_its_text(memory):
    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.device_id = 7
    explanation = explain(ForeignArray(foreign))
    assert "".join(parsed(explanation).itertext()) == str(explanation)
