# SPDX-License-Identifier: Apache-2.0
"""The page docs/protocol_speed.md and its plot, from what beside_queries.py measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import mean
from typing import Any

Times = dict[str, dict[str, tuple[float, float]]]
MOST = 1.15

_PREFACE = """\
# What the protocols cost beside the runtime's own queries

Written by `python3 benchmarks/protocols/beside_queries.py --write`. The test
`tests/cpp/sycl/test_backend_queries.cpp` counts the queries.

Each number is a ratio: a call of ours, divided by the queries that it cannot do without, made by
hand. Both are measured in one process, in {rounds} rounds that take turns, 256 calls each; the
first ratio is of the fastest rounds, the one in parentheses of the median ones. Each is the mean of
{places} programs, which are one, linked to other addresses: where code stands decides how well a
processor foretells its branches, and moves a single program's ratio by a tenth. The view has rank 4
and layout right. Several devices are copies of the CPU driver, each a platform of its own with one
root device; with several, the memory is that of the last one, so that a search is longest.

| protocol | the queries | why no fewer |
|---|---|---|
| export, context given | the backend's device of the pointer | it says at once that the context \
knows the pointer and which root device it is on; nothing else names the true device |
| export, queue given | the queue's context and device, then the same | a queue does not say \
otherwise that its context is the default one, nor where it works |
| export, neither | the backend's device, once for each platform until one names it | the pointer \
does not say whose it is |
| `validate` | the backend's kind, device, base and size of the pointer | a consumer chooses by \
the kind; the device must be the one named; base and size are the two ends of the allocation |

Host USM has no device, so its kind is asked too: one query more, and without a context given one
more for each platform. All of them are asked in the
platform's default context, whose native handle is kept: to get it costs fifty queries.

![Calls of ours by the queries' time](protocol_speed.svg)
"""


@dataclass
class Measured:
    """What one run found."""

    rounds: int  # of each program, in one thread
    rounds_at_once: int  # of each program, in several
    places: int  # programs
    instructions: dict[str, Any]
    alone: dict[tuple[int, int], list[Times]] = field(default_factory=dict)
    at_once: dict[int, list[Times]] = field(default_factory=dict)


def protocol_of(name: str) -> str:
    """Return the protocol of a group, whose device is named after it."""
    return name.rsplit("/", 1)[0]


def farthest(found: list[Times]) -> dict[str, tuple[float, float]]:
    """Return the ratios of the fastest and of the median rounds, on the last device there is."""

    def ratio(name: str, number: int) -> float:
        return mean(one[name]["ours"][number] / one[name]["queries"][number] for one in found)

    return {protocol_of(name): (ratio(name, 0), ratio(name, 1)) for name in found[0]}


def table(head: str, rows: list[tuple[str, list[Times]]]) -> list[str]:
    """Return a table: a row for each case, a column for each protocol."""
    protocols = list(farthest(rows[0][1]))
    lines = [f"| {head} | " + " | ".join(protocols) + " |", "|---|" + "---|" * len(protocols)]
    for title, found in rows:
        ratios = farthest(found)
        cells = " | ".join("{:.2f} ({:.2f})".format(*ratios[name]) for name in protocols)
        lines.append(f"| {title} | {cells} |")
    return lines


def plot(bars: list[tuple[str, dict[str, tuple[float, float]]]]) -> str:
    """Return the ratios as bars, from 1, which is the queries alone, to the most allowed."""
    left, row, scale = 260, 16, 2000.0
    lines, y = [], 30
    for title, ratios in bars:
        lines.append(f'<text x="8" y="{y + 4}" font-weight="bold">{title}</text>')
        for protocol, (fastest, _) in ratios.items():
            y += row
            width = max(fastest - 0.95, 0.0) * scale
            lines += [
                f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{protocol}</text>',
                f'<rect x="{left}" y="{y - 6}" width="{width:.0f}" height="10" fill="#1565c0"/>',
                f'<text x="{left + width + 6:.0f}" y="{y + 4}">{fastest:.2f}</text>',
            ]
        y += row + 8
    marks = [
        f'<path d="M{x:.0f} 14V{y - 12}" stroke="{colour}" stroke-dasharray="3 3"/>'
        f'<text x="{x + 3:.0f}" y="12">{name}</text>'
        for x, colour, name in (
            (left + 0.05 * scale, "#616161", "queries"),
            (left + (MOST - 0.95) * scale, "#c62828", f"{MOST:g}"),
        )
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {y}" '
            'font-family="sans-serif" font-size="12">',
            "<title>A call of ours by the time of its queries</title>",
            f'<rect width="760" height="{y}" fill="#fff"/>',
            *lines,
            *marks,
            "</svg>",
            "",
        ]
    )


def write_page(measured: Measured) -> tuple[str, str, list[str]]:
    """Return the text of the page, the plot, and what is above the most allowed."""
    alone = [
        (f"{count} device{'s' * (count > 1)}, {live:,} allocations", found)
        for (count, live), found in measured.alone.items()
    ]
    at_once = [(f"{count}", found) for count, found in measured.at_once.items()]
    promise = f"At most {MOST:g} is promised of the fastest rounds; a larger number misses it."
    lines = [_PREFACE.format(rounds=measured.rounds, places=measured.places), promise, ""]
    lines += [*table("time / the queries'", alone), ""]
    lines += ["## From several threads at once", ""]
    lines += [
        "The runtime serialises queries by itself: each call is divided by the queries of as many",
        f"threads. This machine has two processors. Of {measured.rounds_at_once} rounds of each",
        "program, 2048 calls of each thread; the fastest are those in which the threads met least,",
        "and differ more from run to run than the median ones.",
        "",
        *table("threads", at_once),
        "",
        "## In instructions",
        "",
        "| protocol | queries | ours besides |",
        "|---|---|---|",
    ]
    for name, group in measured.instructions.items():
        ours = group["ours"].instructions - group["queries"].instructions
        lines.append(f"| {protocol_of(name)} | {group['queries'].instructions} | {ours} |")
    missed = [
        f"{title}, {protocol}: expected at most {MOST:g} times the queries, found {ratio[0]:.3f}; "
        "look at what has grown"
        for title, found in alone
        for protocol, ratio in farthest(found).items()
        if ratio[0] > MOST
    ]
    bars = [(title, farthest(found)) for title, found in alone]
    bars += [(f"{title} threads", farthest(found)) for title, found in at_once if title != "1"]
    return "\n".join([*lines, ""]), plot(bars), missed
