# SPDX-License-Identifier: Apache-2.0
"""The page docs/speed.md and its plot, from what beside_cccl.py measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_PREFACE = """\
# How fast the C++ core is

Written by `python3 benchmarks/core/beside_cccl.py --full --write`. `python3 dev.py speed`, a stage
of continuous integration, counts the instructions of a part of the same grid, and fails where a
conversion takes more than 1.3 times CCCL's.

*CCCL* is `cuda::to_dlpack_tensor` of a host view and its `get()`, and `cuda::to_host_mdspan`; both
check less. *The floor* is code by hand for one rank and one layout, with our checks and the same
fields stored (`benchmarks/core/by_hand.hpp`). A ratio of instructions is exact: callgrind counts
one call, and those of a call of nothing are taken off. A ratio of times is of the fastest of
{rounds} rounds in which all cells take turns, 256 calls each, a quarter of them at each place of a
cache line that a stack may begin at; in parentheses that of the median round. It holds for one
processor and one run; that of instructions for all. Times include the call itself, the same for
all. No cell allocates: the program ends if one does. Extents are those of a
(2, 3, 4, 2, 3, 2, 3, 2) array, as many as the rank. It is compact; views of layout stride are made
also of a slice with every second of its elements, and of columns, where the first stride is 1.
Flags: `{flags}`; each layout and rank is a translation unit of its own.

CCCL has no padded layouts, and `cuda::to_host_mdspan` makes only views of `int64_t` and dynamic
extents: where a cell says "none", there is nothing to compare with.

Not every promise is kept. The last column of each table of promises says in how many cells the
floor keeps it; that of `to_mdspan` takes ordinary tensors alone. The promises are of compact
tensors. A view of layout stride is made only of strides that are proved not to overlap, which CCCL
leaves to its caller; compact ones are proved soonest, columns last. A conversion has a
few instructions out of line, for a view of which a number is in doubt, which CCCL takes as it is.

![Instructions of one conversion, by rank](speed.svg)
"""

_SIZES = """\
Bytes of `.text`. *One alone* is a translation unit with nothing but one conversion, of rank 4:
where the type of the view leaves a number in doubt, it has all that a refusal is made of, once for
all conversions. *Seven more* are those of the ranks 1 to 7 beside that of rank 8.
"""

INDEXES = ("int32", "int64", "size_t")
# Tensors of layout stride beside the compact one that all cells have.
OTHER_TENSORS = ("dynamic, of a slice", "dynamic, of columns")


def ratio(group: dict[str, Any], of: str, subject: str, attribute: str = "instructions") -> float:
    """Return one cost divided by another's."""
    return float(getattr(group[of], attribute)) / float(getattr(group[subject], attribute))


def span_of(values: list[float]) -> str:
    """Return the range of some ratios, or the one that it is."""
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low}-{high}"


def compared(groups: list[dict[str, Any]], subject: str) -> tuple[str, str]:
    """Return the ratios of instructions and of times to a subject's, as two cells."""
    both = [group for group in groups if subject in group]
    if not both:
        return "none", "none"
    fastest = span_of([ratio(group, "ours", subject, "fastest") for group in both])
    median = span_of([ratio(group, "ours", subject, "median") for group in both])
    return span_of([ratio(group, "ours", subject) for group in both]), f"{fastest} ({median})"


def table(groups: dict[str, dict[str, Any]], direction: str, layouts: tuple[str, ...]) -> list[str]:
    """Return a table of one direction: a row for each layout, kind of extents and rank."""
    lines = [
        "| layout | extents | rank | instructions | / CCCL | / floor | time / CCCL | / floor |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for layout in layouts:
        for extents in ("dynamic", *OTHER_TENSORS, "static"):
            for rank in range(9):
                found = [
                    groups[name]
                    for index in INDEXES
                    if (name := f"{direction}/{layout}/{index}/{extents}/{rank}") in groups
                ]
                if not found:
                    continue
                counts = sorted(group["ours"].instructions for group in found)
                spread = f"{counts[0]}-{counts[-1]}" if counts[0] != counts[-1] else f"{counts[0]}"
                cccl, time_of_cccl = compared(found, "CCCL")
                floor, time_of_floor = compared(found, "floor")
                lines.append(
                    f"| {layout} | {extents} | {rank} | {spread} | {cccl} | {floor} "
                    f"| {time_of_cccl} | {time_of_floor} |"
                )
    return lines


Wanted = Callable[[str, dict[str, Any]], bool]


def rank_of(name: str) -> int:
    """Return the rank of a group."""
    return int(name.rsplit("/", 1)[1])


# What was promised: a sentence, which cells it is of, the subject, what is compared, the most.
PROMISES: list[tuple[str, Wanted, str, str, float]] = [
    (
        "`to_dlpack_tensor`: instructions / CCCL's",
        lambda name, _: name.startswith("to_dlpack_tensor/"),
        *("CCCL", "instructions", 1.0),
    ),
    (
        "`to_dlpack_tensor` from rank 3: time / CCCL's",
        lambda name, _: name.startswith("to_dlpack_tensor/") and rank_of(name) >= 3,
        *("CCCL", "fastest", 0.5),
    ),
    (
        "`to_dlpack_tensor`, rank 8, layout right: time / CCCL's",
        lambda name, _: name.startswith("to_dlpack_tensor/right/") and rank_of(name) == 8,
        *("CCCL", "fastest", 0.25),
    ),
    (
        "`to_dlpack_tensor`: instructions / the floor's",
        lambda name, _: name.startswith("to_dlpack_tensor/"),
        *("floor", "instructions", 1.5),
    ),
    (
        "`to_dlpack_tensor`: time / the floor's",
        lambda name, _: name.startswith("to_dlpack_tensor/"),
        *("floor", "fastest", 1.5),
    ),
    *(
        (
            f"`to_mdspan`, layout {layout}: {what} / CCCL's",
            lambda name, _, layout=layout: (
                name.startswith(f"to_mdspan/{layout}/") and name.split("/")[3] not in OTHER_TENSORS
            ),
            *("CCCL", attribute, 0.5),
        )
        for layout in ("right", "left", "stride")
        for what, attribute in (("instructions", "instructions"), ("time", "fastest"))
    ),
    *(
        (
            f"`to_mdspan`: {what} / the floor's",
            lambda name, _: name.startswith("to_mdspan/"),
            *("floor", attribute, 1.5),
        )
        for what, attribute in (("instructions", "instructions"), ("time", "fastest"))
    ),
]


def verdicts(groups: dict[str, dict[str, Any]]) -> list[str]:
    """Return a table of what was promised, the worst cell, and how many cells keep it."""
    lines = [
        "| promise | at most | worst | cells that keep it | cells where code by hand would |",
        "|---|---|---|---|---|",
    ]
    for sentence, wanted, subject, attribute, most in PROMISES:
        ratios = {
            name: ratio(group, "ours", subject, attribute)
            for name, group in groups.items()
            if subject in group and wanted(name, group)
        }
        worst = max(ratios, key=lambda name: ratios[name])
        kept = sum(value <= most for value in ratios.values())
        where = worst.split("/", 1)[1].replace("/", ", ")
        floors = [
            ratio(groups[name], "floor", subject, attribute) <= most
            for name in ratios
            if subject != "floor" and "floor" in groups[name]
        ]
        by_hand = f"{sum(floors)} of {len(floors)}" if floors else "none"
        lines.append(
            f"| {sentence} | {most:g} | {ratios[worst]:.2f} ({where}) "
            f"| {kept} of {len(ratios)} | {by_hand} |"
        )
    return lines


CHECKED_TENSORS = {
    "compact": "dynamic",
    "a slice": "dynamic, of a slice",
    "columns": "dynamic, of columns",
    "swapped dimensions": "dynamic, of swapped dimensions",
}


def structure_lines(groups: dict[str, dict[str, Any]]) -> list[str]:
    """Return what the check of a tensor's structure takes, beside CCCL's import."""
    lines = [
        "Instructions, and nanoseconds of the fastest round.",
        "",
        "| rank | " + " | ".join(CHECKED_TENSORS) + " | compact: time / CCCL's whole import |",
        "|---|" + "---|" * (len(CHECKED_TENSORS) + 1),
    ]
    for rank in range(9):
        names = [f"check_structure/any/int64/{kind}/{rank}" for kind in CHECKED_TENSORS.values()]
        cells = [
            f"{cost.instructions}, {cost.fastest:.1f} ns" if (cost := found.get("ours")) else "none"
            for found in (groups.get(name, {}) for name in names)
        ]
        ours, cccl = (
            groups[names[0]]["ours"],
            groups[f"to_mdspan/right/int64/dynamic/{rank}"]["CCCL"],
        )
        lines.append(f"| {rank} | " + " | ".join(cells) + f" | {ours.fastest / cccl.fastest:.2f} |")
    return lines


def compile_lines(measured: dict[str, Any]) -> list[str]:
    """Return what the headers cost with each compiler."""
    lines = [
        "| instructions of the compiler | " + " | ".join(measured) + " | at most |",
        "|---|" + "---|" * (len(measured) + 1),
    ]
    for title, of, to, less, most in (
        ("our headers / SYCL's and mdspan's beside them", "sycl and ours", "sycl", 1, 0.05),
        ("`core.hpp` / `<cuda/mdspan>`", "core", "cuda", 0, 0.25),
    ):
        ratios = [one["compiled"][of] / one["compiled"][to] - less for one in measured.values()]
        lines.append(f"| {title} | " + " | ".join(f"{r:.3f}" for r in ratios) + f" | {most:g} |")
    return lines


def size_lines(sizes: dict[tuple[str, str, str], dict[str, tuple[int, int]]]) -> list[str]:
    """Return the bytes of code of conversions, beside CCCL's, over the index types."""
    lines = [
        "| layout | extents | one alone, bytes | CCCL's | seven more / CCCL's | by hand / CCCL's |",
        "|---|---|---|---|---|---|",
    ]
    for layout, extents in dict.fromkeys((layout, extents) for layout, _, extents in sizes):
        found = [one for kind, one in sizes.items() if kind[0] == layout and kind[2] == extents]
        alone = [
            f"{min(counts)}-{max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
            for counts in ([one[subject][0] for one in found] for subject in ("ours", "CCCL"))
        ]
        more = [
            span_of([one[subject][1] / one["CCCL"][1] for one in found])
            for subject in ("ours", "floor")
        ]
        lines.append(f"| {layout} | {extents} | " + " | ".join([*alone, *more]) + " |")
    return lines


_LEFT, _TOP, _WIDTH, _HEIGHT = 60, 40, 300, 220
COLOURS = {"ours": "#1565c0", "CCCL": "#c62828", "floor": "#616161"}


def panel(groups: dict[str, dict[str, Any]], direction: str, layout: str, number: int) -> list[str]:
    """Return one diagram: instructions of a call by rank, a line for each subject."""
    named = {rank: f"{direction}/{layout}/int64/dynamic/{rank}" for rank in range(9)}
    points = {rank: groups[name] for rank, name in named.items() if name in groups}
    most = max(cost.instructions for group in points.values() for cost in group.values())
    left = _LEFT + number * (_WIDTH + 70)
    right, bottom = left + _WIDTH, _TOP + _HEIGHT
    drawn = [
        f'<text x="{left}" y="{_TOP - 14}">{direction}, layout {layout}, int64, dynamic</text>',
        f'<path d="M{left} {_TOP}V{bottom}H{right}" fill="none" stroke="#000"/>',
        f'<text x="{left - 6}" y="{_TOP + 5}" text-anchor="end">{most}</text>',
        f'<text x="{left - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{left + _WIDTH / 2}" y="{bottom + 34}" text-anchor="middle">rank</text>',
    ]
    drawn += [
        f'<text x="{left + rank * _WIDTH / 8}" y="{bottom + 16}" text-anchor="middle">{rank}</text>'
        for rank in range(9)
    ]
    for subject, colour in COLOURS.items():
        line = [
            (
                left + rank * _WIDTH / 8,
                bottom - group[subject].instructions / most * _HEIGHT,
            )
            for rank, group in points.items()
            if subject in group
        ]
        if not line:
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = line[-1]
        drawn.append(f'<text x="{x + 5:.1f}" y="{y + 4:.1f}" fill="{colour}">{subject}</text>')
    return drawn


def plot(groups: dict[str, dict[str, Any]], compiler: str) -> str:
    """Return the plot as SVG."""
    panels = [
        ("to_dlpack_tensor", "right"),
        ("to_dlpack_tensor", "stride"),
        ("to_mdspan", "right"),
        ("to_mdspan", "stride"),
    ]
    width = _LEFT + len(panels) * (_WIDTH + 70)
    height = _TOP + _HEIGHT + 50
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>Instructions of one call, {compiler}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (direction, layout) in enumerate(panels):
        lines += panel(groups, direction, layout, number)
    return "\n".join([*lines, "</svg>", ""])


def write_page(measured: dict[str, Any], flags: list[str], rounds: int) -> tuple[str, str]:
    """Return the text of the page and the plot."""
    lines = [_PREFACE.format(flags=" ".join(flags), rounds=rounds)]
    lines += ["## What the headers cost to compile", ""]
    lines += [
        "Counted by cachegrind. Those of clang move by some tenths of a percent of the whole with",
        "the length of a path, because its tables go by addresses: from run to run, its first row",
        "did by 0.007.",
        "",
        *compile_lines(measured),
        "",
    ]
    for compiler, one in measured.items():
        groups = one["groups"]
        lines += [f"## {compiler}: {one['version']}", "", *verdicts(groups), ""]
        lines += ["### Code of `to_dlpack_tensor(view, device)` and `get()`", "", _SIZES]
        lines += [*size_lines(one["sizes"]), ""]
        lines += ["### `to_dlpack_tensor(view, device)` and `get()`", ""]
        layouts = ("right", "left", "stride", "right padded", "left padded")
        lines += [*table(groups, "to_dlpack_tensor", layouts), ""]
        lines += ["### `to_mdspan`, all checks included", ""]
        lines += [*table(groups, "to_mdspan", ("right", "left", "stride")), ""]
        lines += ["### `check_structure`, the part of `validate` that asks no device", ""]
        lines += [*structure_lines(groups), ""]
    first = next(iter(measured))
    return "\n".join(lines), plot(measured[first]["groups"], first)
