# SPDX-License-Identifier: Apache-2.0
"""Cards for notebooks: the view drawn in its allocation, and a table, in HTML without scripts."""

import html
from typing import Any

from usm_dlpack._core import DLPackTensor, UsmAllocation, bounds_of
from usm_dlpack._explain import Explanation

_BOX = (
    "font: 13px/1.45 system-ui, sans-serif; max-width: 44em; box-sizing: border-box; "
    "padding: 0.6em 0.8em; border: 1px solid rgba(128, 128, 128, 0.45); border-radius: 5px"
)
_CELL = "padding: 1px 10px 1px 0; text-align: left; vertical-align: top; background: none"
_ACCENT = "#3b82d6"  # readable on light and dark pages

Rows = dict[str, object]


def escaped(text: object) -> str:
    """Escape a text for HTML; replaces characters that XML forbids."""
    shown = str(text).encode("utf-8", "backslashreplace").decode()
    printable = (c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in shown)
    return html.escape("".join(printable))


def card(x: DLPackTensor | UsmAllocation | Explanation) -> str:
    """Return the card of an object; never raises."""
    try:
        content = _content(x)
    except Exception:  # the driver failed
        content = escaped(repr(x))
    return f'<div style="{_BOX}">{content}</div>'


def _content(x: DLPackTensor | UsmAllocation | Explanation) -> str:
    if isinstance(x, Explanation):
        style = "margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; background: none"
        return f'<pre style="{style}">{escaped(x)}</pre>'
    base, size, lowest, nbytes, first = bounds_of(x)
    start = base if size else lowest
    rows = _place(size, lowest - start, nbytes, first - start) | _facts(x)
    head = f"{_CELL}; font-weight: normal; opacity: 0.75; white-space: nowrap"
    table = "".join(
        f'<tr style="background: none"><th style="{head}">{escaped(name)}</th>'
        f'<td style="{_CELL}; overflow-wrap: anywhere">{escaped(text)}</td></tr>'
        for name, text in rows.items()
    )
    return (
        f'<div style="font-weight: 600; margin-bottom: 0.3em">{type(x).__name__}</div>'
        + _drawing(size, lowest - start, nbytes, first - start)
        + '<table style="border-collapse: collapse; border: none; margin: 0.3em 0 0">'
        f"<tbody>{table}</tbody></table>"
    )


def _drawing(size: int, begin: int, nbytes: int, first: int) -> str:
    """Return the allocation as a bar, the view in it, and a mark at the view's first element.

    Positions are percentages, to fit any width. The frame is dashed if the allocation's size is
    unknown.
    """
    whole = size or nbytes or 1

    def percent(part: int) -> str:
        return f"{100 * part / whole:.4f}".rstrip("0").rstrip(".") + "%"

    def rect(kind: str, x: int, width: int, paint: str) -> str:
        place = f'x="{percent(x)}" y="10" width="{percent(width)}" height="20"'
        return f'<rect class="{kind}" {place} style="{paint}"/>'

    dashed = "" if size else "; stroke-dasharray: 4 3"
    frame = "fill: currentColor; fill-opacity: 0.08; stroke: currentColor; stroke-opacity: 0.5"
    drawn = rect("allocation", 0, whole, frame + dashed)
    if nbytes:
        drawn += rect("view", begin, nbytes, f"fill: {_ACCENT}; fill-opacity: 0.55")
        drawn += (
            f'<svg class="first" x="{percent(first)}" y="1" width="1" height="8" '
            f'style="overflow: visible"><path d="M-5 0h10l-5 8z" style="fill: {_ACCENT}"/></svg>'
        )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" width="100%" height="34" '
        'aria-label="the view in its allocation" style="display: block; overflow: visible">'
        f"{drawn}</svg>"
    )


def _place(size: int, begin: int, nbytes: int, first: int) -> Rows:
    if nbytes == 0:
        return {"view": "no elements, no bytes"}
    if not size:
        return {"view": f"{nbytes:,} bytes of an allocation of unknown size"}
    view = f"bytes {begin:,} to {begin + nbytes - 1:,} of the {size:,} of the allocation"
    return {"view": view, "first element": f"at byte {first:,}"}


def _facts(x: Any) -> Rows:
    rows: Rows = {}
    is_tensor = isinstance(x, DLPackTensor)
    if is_tensor:
        rows |= {"shape": x.shape, "strides": f"{x.strides} in elements", "dtype": x.dtype}
    rows["memory"] = f"{x.usm_type} USM{', read-only' if x.readonly else ''}"
    try:
        name = x.sycl_device.name.strip()
    except Exception:  # in a child of fork(), or the driver is broken
        name = "?"
    rows["device"] = f"(14, {x.device[1] if is_tensor else x.device_id}) {name}"
    if not is_tensor:
        rows["elements"] = "may overlap" if x.overlapping else "do not overlap"
        rows |= {"bounds proved": x.bounds, "device proved": x.device_proof}
    return rows
