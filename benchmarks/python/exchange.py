# SPDX-License-Identifier: Apache-2.0
"""What an exchange costs beside the peers', each with its own small array, in one run.

``python3 dev.py benchmark`` runs it with dpctl.tensor and with dpnp. Rounds of all subjects are
interleaved, so that a busy machine disturbs all alike; the table shows the fastest round, and
ratios of the fastest and of the median ones.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import usm_dlpack
from dpctl import memory
from usm_dlpack import _core

Subject = Callable[[], object]


@dataclass(frozen=True)
class Comparison:
    """A cost of ours, a peer's, and how many times the peer's ours may be.

    Attributes
    ----------
    ours, peers
        Names of subjects; their costs are summed.
    target
        The most that ``ours / peers`` may be, or None if nothing was promised.
    """

    title: str
    ours: tuple[str, ...]
    peers: tuple[str, ...]
    target: float | None = None


def measure(subjects: dict[str, Subject], rounds: int, calls: int) -> dict[str, list[float]]:
    """Return the nanoseconds a call of each subject, one number a round.

    Parameters
    ----------
    subjects
        What is called; the cost of an empty call is subtracted from none.
    rounds, calls
        How often all subjects take their turn, and the calls of a turn.
    """
    spent: dict[str, list[float]] = {name: [] for name in subjects}
    repeat = range(calls)
    for subject in subjects.values():
        subject()
    for _ in range(rounds):
        for name, subject in subjects.items():
            start = time.perf_counter_ns()
            for _ in repeat:
                subject()
            spent[name].append((time.perf_counter_ns() - start) / calls)
    return spent


class OnlyDLPack:
    """A foreign array: its tensor, without the C exchange API."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        """Return the tensor's capsule."""
        return self._tensor.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the tensor's device."""
        return (14, 0)


def make_caster_subjects(extension: Any, queue: Any, ours: Any) -> dict[str, Subject]:
    """Return functions of an extension with our casters, by nb::ndarray, and by hand."""
    foreign = OnlyDLPack(ours)
    held = extension.Memory(queue)
    return {
        "view of our tensor": lambda: extension.device_view(ours),
        "nb::ndarray of our tensor": lambda: extension.ndarray(ours),
        "view by hand of our tensor": lambda: extension.view_by_hand(ours),
        "proved view by hand of our tensor": lambda: extension.proved_by_hand(ours),
        "view of a foreign array": lambda: extension.device_view(foreign),
        "nb::ndarray of a foreign array": lambda: extension.ndarray(foreign),
        "view by hand of a foreign array": lambda: extension.view_by_hand(foreign),
        "proved view by hand of a foreign array": lambda: extension.proved_by_hand(foreign),
        "queue": lambda: extension.queue(queue),
        "queue by hand": lambda: extension.queue_by_hand(queue),
        "owned view returned": lambda: extension.make_owned(held),
        "nb::ndarray returned": lambda: extension.make_ndarray(held),
        "capsule by hand returned": lambda: extension.make_capsule(held),
    }


def make_subjects(peer_name: str, extension: Any) -> dict[str, Subject]:
    """Return what is measured with one peer: dpctl.tensor or dpnp."""
    queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
    owner = memory.MemoryUSMDevice(64, queue=queue)
    ours = usm_dlpack.to_dlpack_tensor(owner, shape=(4, 4), dtype="float32")
    host = np.zeros((4, 4), np.float32)
    peer = importlib.import_module(peer_name)
    theirs = peer.zeros((4, 4), dtype="float32", sycl_queue=queue)
    newest = (1, 3)
    kept = extension.keep(ours)
    subjects: dict[str, Subject] = {
        "ours __dlpack_device__": ours.__dlpack_device__,
        "ours __dlpack__": lambda: ours.__dlpack__(max_version=newest),
        "ours __dlpack__ stream": lambda: ours.__dlpack__(max_version=newest, stream=-1),
        "ours from_dlpack own": lambda: usm_dlpack.from_dlpack(ours),
        "ours from_dlpack peer": lambda: usm_dlpack.from_dlpack(theirs),
        "ours validate own": lambda: usm_dlpack.validate(ours),
        "peer __dlpack_device__": theirs.__dlpack_device__,
        "peer __dlpack__": lambda: theirs.__dlpack__(max_version=newest),
        "peer from_dlpack own": lambda: peer.from_dlpack(theirs),
        "numpy __dlpack_device__": host.__dlpack_device__,
        "numpy __dlpack__": lambda: host.__dlpack__(max_version=newest),
        "numpy from_dlpack own": lambda: np.from_dlpack(host),
        "nanobind take ours": lambda: extension.take(ours),
        "ours from_dlpack own, without its Python function": lambda: _core.from_dlpack(
            ours, None, None, None
        ),
        "nanobind call of nothing": lambda: extension.nothing(ours),
        "nanobind __dlpack__": lambda: kept.__dlpack__(max_version=newest),
    }
    subjects |= make_caster_subjects(extension, queue, ours)
    try:
        tvm_ffi = importlib.import_module("tvm_ffi")
    except ImportError:
        return subjects
    foreign = tvm_ffi.from_dlpack(ours)
    return subjects | {
        "tvm_ffi from_dlpack ours": lambda: tvm_ffi.from_dlpack(ours),
        "ours from_dlpack tvm_ffi": lambda: usm_dlpack.from_dlpack(foreign),
    }


COMPARISONS = [
    Comparison(
        "`__dlpack_device__` / NumPy's",
        ("ours __dlpack_device__",),
        ("numpy __dlpack_device__",),
        3,
    ),
    Comparison("`__dlpack__` / the peer's", ("ours __dlpack__",), ("peer __dlpack__",), 1 / 15),
    Comparison("`__dlpack__` / NumPy's", ("ours __dlpack__",), ("numpy __dlpack__",)),
    Comparison("`__dlpack__` / `nb::ndarray`'s", ("ours __dlpack__",), ("nanobind __dlpack__",)),
    Comparison(
        "`from_dlpack` of our own tensor / the peer's of its own",
        ("ours from_dlpack own",),
        ("peer from_dlpack own",),
        1 / 40,
    ),
    Comparison(
        "`from_dlpack` of our own tensor / (3 times NumPy's, unvalidated, + the backend's queries)",
        ("ours from_dlpack own",),
        ("numpy from_dlpack own",) * 3 + ("queries",),
        1,
    ),
    Comparison(
        "our share of `from_dlpack` of the peer's array / the peer's of its own",
        ("ours from_dlpack peer", "-peer __dlpack__"),
        ("peer from_dlpack own",),
        1 / 20,
    ),
    Comparison(
        "`from_dlpack` of our own tensor / `nb::ndarray`'s import of it, unvalidated",
        ("ours from_dlpack own",),
        ("nanobind take ours",),
    ),
]

CASTERS = [
    Comparison(
        "a view of our tensor as a parameter / `nb::ndarray`",
        ("view of our tensor",),
        ("nb::ndarray of our tensor",),
        1,
    ),
    Comparison(
        "a view of our tensor as a parameter / capsule code by hand, unproved",
        ("view of our tensor",),
        ("view by hand of our tensor",),
        1,
    ),
    Comparison(
        "a view of a foreign array / capsule code by hand that asks SYCL for kind and device",
        ("view of a foreign array",),
        ("proved view by hand of a foreign array",),
        1,
    ),
    Comparison(
        "a view of a foreign array / capsule code by hand, unproved",
        ("view of a foreign array",),
        ("view by hand of a foreign array",),
    ),
    Comparison(
        "a view of a foreign array / `nb::ndarray`, unproved",
        ("view of a foreign array",),
        ("nb::ndarray of a foreign array",),
    ),
    Comparison("a queue as a parameter / capsule code by hand", ("queue",), ("queue by hand",), 1),
    Comparison(
        "an array returned / a capsule by hand, and `from_dlpack` of it for an array",
        ("owned view returned",),
        ("capsule by hand returned", "ours from_dlpack own"),
        1,
    ),
    Comparison(
        "an array returned / `nb::ndarray`, unproved",
        ("owned view returned",),
        ("nb::ndarray returned",),
    ),
]


def cost(names: tuple[str, ...], of: dict[str, float]) -> float:
    """Return the sum of some subjects' costs; a name that begins with ``-`` is subtracted."""
    return sum(-of[name[1:]] if name.startswith("-") else of[name] for name in names)


PROFILE = [
    ("the backend's queries: kind and device, base and size", ("queries",)),
    (
        "the Python function",
        ("ours from_dlpack own", "-ours from_dlpack own, without its Python function"),
    ),
    ("nanobind's call", ("nanobind call of nothing",)),
    (
        "checks, the new object, its shape and strides, and its end",
        (
            "ours from_dlpack own, without its Python function",
            "-nanobind call of nothing",
            "-queries",
        ),
    ),
]


def profile(spent: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Return where the time of `from_dlpack` of our own tensor goes, as shares of it."""
    fastest = {name: min(times) for name, times in spent.items()}
    whole = fastest["ours from_dlpack own"]
    return [{"part": part, "share": cost(names, fastest) / whole} for part, names in PROFILE]


def growth(extension: Any, rounds: int) -> list[dict[str, Any]]:
    """Return what 10,000 live tensors, each of an allocation of its own, cost the others."""
    queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
    tensor = usm_dlpack.to_dlpack_tensor(memory.MemoryUSMDevice(64, queue=queue))
    subjects: dict[str, Subject] = {
        "`__dlpack__`": lambda: tensor.__dlpack__(max_version=(1, 3)),
        "`from_dlpack` of our own tensor": lambda: usm_dlpack.from_dlpack(tensor),
    }
    alone = measure(subjects, rounds, calls=200)
    alone["the backend's queries"] = [extension.time_queries(tensor.data, 0)]
    live = [
        usm_dlpack.to_dlpack_tensor(memory.MemoryUSMDevice(64, queue=queue)) for _ in range(10_000)
    ]
    among = measure(subjects, rounds, calls=200)
    among["the backend's queries"] = [extension.time_queries(tensor.data, 0)]
    del live
    return [
        {
            "comparison": f"{name} among 10,000 live tensors / alone",
            "ratio": min(among[name]) / min(alone[name]),
            "target": None,
        }
        for name in alone
    ]


def growth_of_refusals(extension: Any, rounds: int) -> dict[str, Any]:
    """Return what an array costs that one of many in a list is, each refused and then taken."""
    ours = usm_dlpack.to_dlpack_tensor(
        memory.MemoryUSMDevice(64, queue=dpctl.SyclQueue(usm_dlpack.root_device(0))),
        shape=(4, 4),
        dtype="float32",
    )
    spent = {}
    for count in (100, 10_000):
        arrays = [usm_dlpack.from_dlpack(ours) for _ in range(count)]

        def take(arrays: list[Any] = arrays) -> Any:
            return extension.variants(arrays)

        spent[count] = min(measure({"taken": take}, rounds, calls=1)["taken"]) / count
    return {
        "comparison": "an array of 10,000 in a list that a view refuses and another takes / of 100",
        "ratio": spent[10_000] / spent[100],
        "target": 4,
    }


def time_import(module: str) -> float:
    """Return the seconds that a process takes for importing a module, the fastest of some."""
    spent = []
    for _ in range(15):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        spent.append(time.perf_counter() - start)
    return min(spent)


def compare(spent: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Return a row for each comparison: its ratios, and the most that was promised."""
    fastest = {name: min(times) for name, times in spent.items()}
    median = {name: statistics.median(times) for name, times in spent.items()}
    return [
        {
            "comparison": row.title,
            "ratio": cost(row.ours, fastest) / cost(row.peers, fastest),
            "ratio of medians": cost(row.ours, median) / cost(row.peers, median),
            "target": row.target,
        }
        for row in [*COMPARISONS, *CASTERS]
    ]


def run(peer: str, folder: str, rounds: int) -> dict[str, Any]:
    """Measure everything with one peer.

    Parameters
    ----------
    peer
        The module of the peer: ``dpctl.tensor`` or ``dpnp``.
    folder
        Where the extension was built.
    rounds
        How many rounds; the more, the less a busy machine matters.
    """
    sys.path.insert(0, folder)
    extension = importlib.import_module("exchange_peers")
    spent = measure(make_subjects(peer, extension), rounds, calls=200)
    tensor = usm_dlpack.to_dlpack_tensor(memory.MemoryUSMDevice(64))
    spent["queries"] = [extension.time_queries(tensor.data, 0)]
    spent["borrow by the exchange API"] = [extension.time_borrow(tensor)]
    spent["managed tensor by the exchange API, made and deleted"] = [extension.time_managed(tensor)]
    rows = compare(spent)
    rows.append(
        {
            "comparison": "`import usm_dlpack` / `import dpctl`, a process each",
            "ratio": time_import("usm_dlpack") / time_import("dpctl"),
            "target": 2,
        }
    )
    rows.append(
        {
            "comparison": "borrowing by the exchange API / 50 ns",
            "ratio": min(spent["borrow by the exchange API"]) / 50,
            "target": 1,
        }
    )
    rows.append(growth_of_refusals(extension, rounds // 20))
    rows += growth(extension, rounds // 4)
    return {
        "peer": peer,
        "devices": dpctl.get_num_devices(),
        "profile": profile(spent),
        "nanoseconds": {name: round(min(times), 1) for name, times in spent.items()},
        "rows": rows,
    }


def as_text(result: dict[str, Any]) -> str:
    """Return a Markdown table of one run."""
    lines = [
        f"### Beside {result['peer']}, {result['devices']} root device(s)",
        "",
        "| ours / theirs | ratio | of medians | target |",
        "|---|---|---|---|",
    ]
    for row in result["rows"]:
        target = row["target"]
        promised = "" if target is None else f"≤ {target:.3g}"
        middle = row.get("ratio of medians")
        shown = "" if middle is None else f"{middle:.3g}"
        lines.append(f"| {row['comparison']} | {row['ratio']:.3g} | {shown} | {promised} |")
    lines += ["", "| part of `from_dlpack` of our own tensor | share |", "|---|---|"]
    lines += [f"| {row['part']} | {row['share']:.0%} |" for row in result["profile"]]
    return "\n".join(lines)


def missed(result: dict[str, Any]) -> list[str]:
    """Return the comparisons whose ratio is above its target."""
    return [
        row["comparison"]
        for row in result["rows"]
        if row["target"] is not None and row["ratio"] > row["target"]
    ]


def main() -> int:
    """Print the table; fail if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=["dpctl.tensor", "dpnp"])
    parser.add_argument("extension", help="the folder that exchange_peers was built in")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--table", type=Path, help="a file that gets the table as well")
    options = parser.parse_args()
    result = run(options.peer, options.extension, options.rounds)
    table = as_text(result)
    print(table)
    for name, nanoseconds in result["nanoseconds"].items():
        print(f"  {nanoseconds:10.1f} ns  {name}")
    if options.table:
        options.table.write_text(table + "\n", encoding="utf-8")
    for title in missed(result):
        print(f"missed: {title}", file=sys.stderr)
    return 1 if missed(result) else 0


if __name__ == "__main__":
    sys.exit(main())
