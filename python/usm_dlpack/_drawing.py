# SPDX-License-Identifier: Apache-2.0
"""Drawings of memory for cards: an allocation with a view in it, and where each element stands.

Places are per cent of the width, so that a drawing fits any, and its text is never scaled. Colours
are the page's own, and one that is readable on light and dark.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_ROWS, MOST_COLUMNS = 16, 32
_ACCENT = "var(--usm-accent, #3b82d6)"
_ROW_HEIGHT, _BAR_HEIGHT = 16, 34
_LABEL_FROM = 3.0  # per cent of the width below which a cell has no text


@dataclass(frozen=True)
class View:
    """Where a view's elements stand.

    Attributes
    ----------
    base, size
        The allocation, in bytes; the size is 0 where it is not known.
    lowest, nbytes
        The lowest address of the view, and the bytes from there to the end of the highest.
    first
        The address of the element whose indices are zero.
    shape, strides
        In elements.
    bits
        From one element to a neighbour of stride 1.
    """

    base: int
    size: int
    lowest: int
    nbytes: int
    first: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    bits: int = 8

    @property
    def start(self) -> int:
        """The address at which the drawing of the allocation begins."""
        return self.base if self.size else self.lowest

    @property
    def span(self) -> int:
        """How many bytes the drawing of the allocation is wide; at least 1."""
        return self.size or self.nbytes or 1


def percent(part: float, whole: float) -> str:
    """Return a length or a place in per cent."""
    return f"{100 * part / whole:.4f}".rstrip("0").rstrip(".") + "%"


def _rect(kind: str, x: str, y: float, width: str, height: float, paint: str) -> str:
    return (
        f'<rect class="{kind}" x="{x}" y="{y:g}" width="{width}" height="{height:g}" '
        f'style="{paint}"/>'
    )


def _svg(height: int, label: str, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" width="100%" '
        f'height="{height}" style="display: block; overflow: visible">{content}</svg>'
    )


def allocation_drawing(view: View) -> str:
    """Return the allocation as a bar, in it the view, and a mark at its first element."""
    known = "" if view.size else "; stroke-dasharray: 4 3"
    frame = "fill: currentColor; fill-opacity: 0.08; stroke: currentColor; stroke-opacity: 0.5"
    bar = _rect("allocation", "0%", 10, "100%", 20, frame + known)
    x, width = percent(view.lowest - view.start, view.span), percent(view.nbytes, view.span)
    paint = f"fill: {_ACCENT}; fill-opacity: 0.55; stroke: {_ACCENT}"
    inside = _rect("view", x, 10, width, 20, paint)
    place = percent(view.first - view.start, view.span)
    mark = (
        f'<svg class="first" x="{place}" y="1" width="1" height="8" style="overflow: visible">'
        f'<path d="M-5 0h10l-5 8z" style="fill: {_ACCENT}"/></svg>'
    )
    if view.nbytes == 0:  # an empty view has no place that means anything
        inside = mark = ""
    return _svg(_BAR_HEIGHT, "the view in its allocation", bar + inside + mark)


def has_cells(view: View) -> bool:
    """Return whether each element is drawn: there are some, and not too many."""
    rows, columns = math.prod(view.shape[:-1]), view.shape[-1] if view.shape else 1
    return view.nbytes > 0 and 0 < rows <= MOST_ROWS and 0 < columns <= MOST_COLUMNS


def _rows(view: View) -> Iterator[tuple[str, int]]:
    """Give the name and the offset, in elements, of each row along the last dimension."""
    for indices in itertools.product(*map(range, view.shape[:-1])):
        offset = sum(i * step for i, step in zip(indices, view.strides, strict=False))
        yield f"[{', '.join([*map(str, indices), ':'])}]" if view.shape else "[]", offset


def _track() -> str:
    paint = "fill: currentColor; opacity: 0.2"
    return _rect("track", "0%", _ROW_HEIGHT / 2 - 0.5, "100%", 1, paint)


def _label(columns: Sequence[int]) -> str:
    return str(columns[0]) if len(columns) == 1 else f"{columns[0]}…{columns[-1]}"


def _cells_of_row(view: View, offset: int, y: float, first: bool) -> str:
    step, columns = (view.strides[-1], view.shape[-1]) if view.shape else (0, 1)
    places: dict[int, list[int]] = {}
    for column in range(columns):
        places.setdefault(offset + column * step, []).append(column)
    whole, drawn = view.nbytes * 8, []
    before = (view.first - view.lowest) * 8
    for place, which in places.items():
        left = before + place * view.bits
        strong = 0.75 if first and 0 in which else 0.25
        paint = f"fill: {_ACCENT}; fill-opacity: {strong}; stroke: {_ACCENT}; stroke-width: 0.75"
        x, width = percent(left, whole), percent(view.bits, whole)
        drawn.append(_rect("cell", x, y, width, _ROW_HEIGHT - 4, paint))
        if 100 * view.bits / whole >= _LABEL_FROM:
            middle = percent(left + view.bits / 2, whole)
            drawn.append(
                f'<text x="{middle}" y="{y + 9.5:g}" text-anchor="middle" '
                f'style="font-size: 9px; fill: currentColor">{_label(which)}</text>'
            )
    return "".join(drawn)


def cells_drawing(view: View) -> list[tuple[str, str]]:
    """Return, for each row along the last dimension, its name and a drawing of its elements."""
    rows = []
    for number, (name, offset) in enumerate(_rows(view)):
        cells = _cells_of_row(view, offset, 2, number == 0)
        rows.append((name, _svg(_ROW_HEIGHT, f"elements {name}", _track() + cells)))
    return rows


def _span(view: View, offset: int) -> tuple[int, int]:
    """Return where the elements of one index of the first dimension begin and end, in bits."""
    reaches = [
        (extent - 1) * step for extent, step in zip(view.shape[1:], view.strides[1:], strict=True)
    ]
    low = offset + sum(reach for reach in reaches if reach < 0)
    high = offset + sum(reach for reach in reaches if reach > 0)
    before = (view.first - view.lowest) * 8
    return before + low * view.bits, before + (high + 1) * view.bits


def spans_drawing(view: View) -> list[tuple[str, str]]:
    """Return, for the first and the last indices of the first dimension, what each spans."""
    if view.nbytes == 0 or not view.shape:
        return []
    extent, rows = view.shape[0], []
    rest = ", …" if len(view.shape) > 1 else ""
    for index in sorted({0, min(1, extent - 1), extent - 1}):
        low, end = _span(view, index * view.strides[0])
        whole = view.nbytes * 8
        strong = 0.75 if index == 0 else 0.25
        paint = f"fill: {_ACCENT}; fill-opacity: {strong}; stroke: {_ACCENT}; stroke-width: 0.75"
        drawn = _track() + _rect(
            "span", percent(low, whole), 2, percent(end - low, whole), _ROW_HEIGHT - 4, paint
        )
        rows.append((f"[{index}{rest}]", _svg(_ROW_HEIGHT, f"index {index}", drawn)))
    return rows


def stride_words(view: View) -> list[tuple[str, str]]:
    """Return the name of each dimension, and how its elements follow each other."""
    words = []
    for r, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        bits = abs(stride) * view.bits
        far = f"{bits // 8} bytes" if bits % 8 == 0 else f"{bits} bits"
        if stride == 0:
            way = "all at one place (broadcast)"
        else:
            way = f"{'→' if stride > 0 else '←'} {far} {'up' if stride > 0 else 'down'}"
        words.append((f"dimension {r}", f"{extent} of them, {way}" if extent != 1 else "1 element"))
    return words
