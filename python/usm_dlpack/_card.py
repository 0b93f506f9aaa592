# SPDX-License-Identifier: Apache-2.0
"""Cards for notebooks: small pieces of HTML that need no script and nothing from elsewhere.

What the runtime cannot be asked any more is a question mark: a card never raises.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from usm_dlpack import _drawing
from usm_dlpack._drawing import View
from usm_dlpack._explanation import code_words, error_text, escaped

if TYPE_CHECKING:
    from usm_dlpack import DLPackTensor, UsmAllocation
    from usm_dlpack._explanation import Explanation, Step

_BOX = (
    "font: 13px/1.45 system-ui, sans-serif; max-width: 44em; box-sizing: border-box; "
    "padding: 0.6em 0.8em; border: 1px solid rgba(128, 128, 128, 0.45); border-radius: 5px"
)
_MARKS = {"passed": "✓", "stopped": "✗", "not reached": "·"}
_CELL = "padding: 1px 10px 1px 0; text-align: left; vertical-align: top; background: none"
_TABLE = '<table style="border-collapse: collapse; border: none; margin: 0.3em 0 0">'
_SMALL = "font-size: 11px; opacity: 0.75"

Facts = list[tuple[str, str]]


def _boxed(content: str) -> str:
    name = f"usm-{uuid.uuid4().hex[:12]}"
    style = (
        f"#{name} {{ --usm-accent: #2f74c8 }} "
        f"@media (prefers-color-scheme: dark) {{ #{name} {{ --usm-accent: #6aaefc }} }}"
    )
    return f'<div id="{name}" style="{_BOX}"><style>{style}</style>{content}</div>'


def _asked(query: Callable[[], object]) -> str:
    try:
        return str(query())
    except Exception:  # of a driver that failed, or in a child of fork()
        return "?"


def _table(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f'<tr style="background: none"><th style="{_CELL}; font-weight: normal; opacity: 0.75; '
        f'white-space: nowrap">{escaped(name)}</th>'
        f'<td style="{_CELL}; overflow-wrap: anywhere">{escaped(text)}</td></tr>'
        for name, text in facts
    )
    return f"{_TABLE}<tbody>{rows}</tbody></table>"


def _bytes(count: int) -> str:
    return f"{count:,} byte" if count == 1 else f"{count:,} bytes"


def _scale(view: View) -> str:
    """Return the two ends of the drawing of the allocation, in words."""
    if view.nbytes == 0:
        ends = ("an empty view: no allocation was asked for", "")
    elif view.size:
        ends = (f"base {view.base:#x}", f"{_bytes(view.size)} allocated")
    else:
        ends = ("the allocation's base and size are not known", "")
    return (
        f'<div style="display: flex; flex-wrap: wrap; justify-content: space-between; {_SMALL}">'
        f"<span>{escaped(ends[0])}</span><span>{escaped(ends[1])}</span></div>"
    )


def _place(view: View) -> Facts:
    if view.nbytes == 0:
        return [("view", "no elements, no bytes")]
    if not view.size:
        return [("view", _bytes(view.nbytes))]
    start = view.lowest - view.base
    facts = [("view", f"bytes {start:,} to {start + view.nbytes - 1:,} of the allocation")]
    return [*facts, ("first element", f"at byte {view.first - view.base:,}")]


def _elements(view: View) -> str:
    each = _drawing.has_cells(view)
    drawn = _drawing.cells_drawing(view) if each else _drawing.spans_drawing(view)
    if not drawn:
        return ""
    rows = "".join(
        f'<tr style="background: none"><td style="{_CELL}; {_SMALL}; white-space: nowrap; '
        f'padding: 0 6px 0 0; line-height: 16px">{escaped(name)}</td>'
        f'<td style="padding: 0; width: 100%; background: none">{drawing}</td></tr>'
        for name, drawing in drawn
    )
    table = '<table style="border-collapse: collapse; border: none; width: 100%; margin: 0">'
    told = "each element where it stands" if each else "first and last of dimension 0"
    head = f'<div style="{_SMALL}; margin-top: 0.6em">{told} in the view</div>'
    return f"{head}{table}<tbody>{rows}</tbody></table>"


def _card(title: str, view: View, facts: Facts, *, has_shape: bool = True) -> str:
    parts = [f'<div style="font-weight: 600; margin-bottom: 0.3em">{escaped(title)}</div>']
    parts += [_drawing.allocation_drawing(view), _scale(view), _table([*_place(view), *facts])]
    parts.append(_elements(view) if has_shape else "")
    return _boxed("".join(parts))


def _guarded(make: Callable[[], str], x: object) -> str:
    try:
        return make()
    except Exception:
        return _boxed(escaped(_asked(lambda: repr(x))))


def of_tensor(tensor: DLPackTensor, base: int, size: int, lowest: int, bits: int) -> str:
    """Return the card of a tensor.

    Parameters
    ----------
    tensor
        The tensor.
    base, size
        Its allocation.
    lowest
        The lowest address of its elements.
    bits
        From one element to a neighbour of stride 1.
    """

    def make() -> str:
        shape, strides = tensor.shape, tensor.strides
        extent = tensor.byte_extent
        view = View(base, size, lowest, extent, tensor.data, shape, strides, bits)
        facts = [
            ("shape", str(shape)),
            ("strides", f"{strides} in elements" if shape else "()"),
            *_drawing.stride_words(view),
            ("dtype", _asked(lambda: tensor.dtype)),
            ("memory", f"{tensor.usm_type} USM{', read-only' if tensor.readonly else ''}"),
            ("device", _device(tensor, tensor.device[1])),
        ]
        return _card("DLPackTensor", view, facts)

    return _guarded(make, tensor)


def of_allocation(allocation: UsmAllocation, lowest: int) -> str:
    """Return the card of what was proved, of a view whose lowest address is given."""

    def make() -> str:
        proof = allocation
        view = View(proof.base, proof.size, lowest, proof.nbytes, proof.data)
        overlap = "may overlap" if proof.overlapping else "do not overlap"
        facts = [
            ("memory", f"{proof.usm_type} USM{', read-only' if proof.readonly else ''}"),
            ("elements", overlap),
            ("device", _device(proof, proof.device_id)),
            ("bounds proved", proof.bounds),
            ("device proved", proof.device_proof),
        ]
        return _card("UsmAllocation", view, facts, has_shape=False)

    return _guarded(make, allocation)


def _device(x: Any, number: int) -> str:
    name = _asked(lambda: str(x.sycl_device.name).strip())
    return f"(14, {number}) {name}"


def _step_row(step: Step) -> str:
    faint = "; opacity: 0.55" if step.outcome == "not reached" else ""
    bold = "; font-weight: 600" if step.outcome == "stopped" else ""
    told = ""
    if step.answer:
        told = f'<div style="{_SMALL}; font-weight: normal">{escaped(step.answer)}</div>'
    cell = _CELL + faint
    return (
        f'<tr title="{escaped(step.reason)}" style="background: none">'
        f'<td style="{cell}">{_MARKS[step.outcome]}</td>'
        f'<td style="{cell}; text-align: right">{step.number}</td>'
        f'<td style="{cell}{bold}; overflow-wrap: anywhere">{escaped(step.title)}{told}</td></tr>'
    )


def of_explanation(explanation: Explanation) -> str:
    """Return the card of an explanation: its steps, and where it stops."""

    def make() -> str:
        parts = []
        for walk in explanation.walks:
            title = f"{walk.direction.capitalize()} of {explanation.subject}"
            rows = "".join(_step_row(step) for step in walk.steps)
            parts.append(f'<div style="font-weight: 600">{escaped(title)}</div>')
            if walk.error is not None:
                said = escaped(error_text(walk.error))
                parts.append(f'<div style="margin: 0.3em 0; overflow-wrap: anywhere">{said}</div>')
                if (code := code_words(walk.error)) is not None:
                    parts.append(f'<div style="{_SMALL}">{escaped(code)}</div>')
            parts.append(f"{_TABLE}<tbody>{rows}</tbody></table>")
        return _boxed("".join(parts))

    return _guarded(make, explanation)
