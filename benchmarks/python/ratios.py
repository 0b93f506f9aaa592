# SPDX-License-Identifier: Apache-2.0
"""Measure what calls cost beside those of one peer, dpctl.tensor or dpnp, NumPy and nanobind.

beside_peers.py runs it in the peer's environment. All calls take turns in one process, so a busy
machine disturbs all of them alike.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import usm_dlpack

Call = Callable[[], object]


class OnlyDLPack:
    """A foreign array, which has no C exchange API."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **keywords: Any) -> Any:
        """Return the tensor's capsule."""
        return self._tensor.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        """Return the tensor's device."""
        return self._tensor.__dlpack_device__()


def comparisons(peer_name: str, extension: Any) -> dict[str, tuple[Call, Call, float | None]]:
    """Return our call, the other's and the most that their ratio may be, by title."""
    peer = importlib.import_module(peer_name)
    queue = dpctl.SyclQueue(usm_dlpack.root_device(0))
    memory = dpctl.memory.MemoryUSMDevice(64, queue=queue)
    ours = usm_dlpack.to_dlpack_tensor(memory, shape=(4, 4), dtype="float32")
    foreign = OnlyDLPack(ours)
    theirs = peer.zeros((4, 4), dtype="float32", sycl_queue=queue)
    host = np.zeros((4, 4), np.float32)
    matrix = extension.Matrix(queue)

    def export(array: Any) -> Call:
        return lambda: array.__dlpack__(max_version=(1, 3))

    return {
        "`__dlpack__` of a tensor / of the peer's array": (export(ours), export(theirs), 1 / 15),
        "`__dlpack__` of a tensor / of a NumPy array": (export(ours), export(host), None),
        "`from_dlpack` of a tensor / the peer's of its own array": (
            lambda: usm_dlpack.from_dlpack(ours),
            lambda: peer.from_dlpack(theirs),
            1 / 40,
        ),
        "`from_dlpack` of the peer's array / the peer's of it": (
            lambda: usm_dlpack.from_dlpack(theirs),
            lambda: peer.from_dlpack(theirs),
            1 / 3,
        ),
        "`from_dlpack` of a tensor / NumPy's of its own array, where nothing is validated": (
            lambda: usm_dlpack.from_dlpack(ours),
            lambda: np.from_dlpack(host),
            None,
        ),
        **{
            f"{title} / `from_dlpack` of a tensor": (
                call,
                lambda: usm_dlpack.from_dlpack(ours),
                limit,
            )
            for title, call, limit in (
                (
                    "`to_dlpack_tensor` of dpctl.memory",
                    lambda: usm_dlpack.to_dlpack_tensor(memory),
                    3.3,
                ),
                (
                    "`to_dlpack_tensor` of dpctl.memory with shape and dtype",
                    lambda: usm_dlpack.to_dlpack_tensor(memory, shape=(4, 4), dtype="float32"),
                    4.5,
                ),
                (
                    "`to_dlpack_tensor` of a tensor",
                    lambda: usm_dlpack.to_dlpack_tensor(ours),
                    3,
                ),
                ("`validate` of a tensor", lambda: usm_dlpack.validate(ours), 2),
            )
        },
        "a C++ function takes a tensor as a view / as `nb::ndarray`": (
            lambda: extension.take_view(ours),
            lambda: extension.take_ndarray(ours),
            1,
        ),
        "a C++ function takes a foreign array as a view / as `nb::ndarray`, not validated": (
            lambda: extension.take_view(foreign),
            lambda: extension.take_ndarray(foreign),
            None,
        ),
        "a C++ function returns an `owned_view` / an `nb::ndarray`": (
            matrix.owned,
            matrix.ndarray,
            None,
        ),
        "C++: `to_dlpack_tensor(view, queue)` / SYCL's queries of kind and device": (
            matrix.export,
            matrix.query_first,
            1,
        ),
        "C++: `validate(tensor)` / SYCL's queries of the first and of the last element": (
            matrix.validate,
            matrix.query_first_and_last,
            1,
        ),
    }


def fastest(calls: list[Call], rounds: int) -> list[float]:
    """Return the time that each call takes in its fastest round."""
    spent = [float("inf")] * len(calls)
    repeat = range(100)
    for _ in range(rounds):
        for number, call in enumerate(calls):
            call()
            start = time.perf_counter()
            for _ in repeat:
                call()
            spent[number] = min(spent[number], time.perf_counter() - start)
    return spent


def main() -> None:
    """Write the rows: title, ratio, limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=["dpctl.tensor", "dpnp"])
    parser.add_argument("folder", type=Path, help="holds the extension, and gets ratios.json")
    parser.add_argument("--rounds", type=int, default=400)
    options = parser.parse_args()
    sys.path.insert(0, str(options.folder))
    compared = comparisons(options.peer, importlib.import_module("benchmark_extension"))
    spent = fastest([call for row in compared.values() for call in row[:2]], options.rounds)
    rows = [
        (title, ours / theirs, limit)
        for (title, (_, _, limit)), ours, theirs in zip(
            compared.items(), spent[::2], spent[1::2], strict=True
        )
    ]
    (options.folder / "ratios.json").write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
