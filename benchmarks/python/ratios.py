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
from functools import partial
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
from usm_dlpack import from_dlpack, root_device, to_dlpack_tensor, validate

Call = Callable[[], object]


# Keywords of `to_dlpack_tensor`, as they are written in a call.
SPELLINGS: dict[str, dict[str, Any]] = {
    'dtype="float32"': {"dtype": "float32"},
    'dtype="f4"': {"dtype": "f4"},
    "dtype=numpy.float32": {"dtype": np.float32},
    'dtype="bfloat16"': {"dtype": "bfloat16"},
    "shape=[4, 16]": {"shape": [4, 16]},
    "shape=(4, 4), strides=(16, 1)": {"shape": (4, 4), "strides": (16, 1)},
    "byte_offset=16": {"byte_offset": 16},
}


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


def comparisons(peer: Any, extension: Any) -> list[tuple[str, float | None, Call, Call]]:
    """Return of each comparison the title, the most that the ratio may be, our call, the other."""
    queue = dpctl.SyclQueue(root_device(0))
    memory = dpctl.memory.MemoryUSMDevice(64, queue=queue)
    ours = to_dlpack_tensor(memory, shape=(4, 4), dtype="float32")
    theirs = peer.zeros((4, 4), dtype="float32", sycl_queue=queue)
    host = np.zeros((4, 4), np.float32)
    matrix = extension.Matrix(queue)
    take = partial(from_dlpack, ours)
    take_theirs = partial(peer.from_dlpack, theirs)
    idle = dpctl.SyclQueue(root_device(0), property="in_order")
    alone, plain = (from_dlpack(host, device=(14, 0)) for _ in range(2))
    foreign = OnlyDLPack(plain)
    export = partial(alone.__dlpack__, stream=-1, max_version=(1, 3))
    export_again, export_in_order, export_out_of_order, export_theirs, export_host = (
        partial(array.__dlpack__, max_version=(1, 3))
        for array in (plain, to_dlpack_tensor(ours, queue=idle), ours, theirs, host)
    )
    return [
        ("`__dlpack__(stream=-1)` of a tensor, which waits for nobody / of the peer's array",
         1 / 15, export, export_theirs),
        ("`__dlpack__()` of a tensor on the package's queue / of the peer's array", None,
         export_again, export_theirs),
        ("of a tensor on an idle in-order queue / of the peer's array", None,
         export_in_order, export_theirs),
        ("of a tensor on an idle out-of-order queue / of the peer's array", None,
         export_out_of_order, export_theirs),
        ("`__dlpack__(stream=-1)` of a tensor / of a NumPy array", None, export, export_host),
        ("`from_dlpack` of a tensor / the peer's of its own array", 1 / 40, take, take_theirs),
        ("`from_dlpack` of the peer's array / the peer's of it", 1 / 3,
         partial(from_dlpack, theirs), take_theirs),
        ("`from_dlpack` of a tensor / NumPy's of its own array, where nothing is validated", None,
         take, partial(np.from_dlpack, host)),
        ("`to_dlpack_tensor` of dpctl.memory / `from_dlpack` of a tensor", 3.3,
         partial(to_dlpack_tensor, memory), take),
        *(
            (f"the same with `{spelling}` / `from_dlpack` of a tensor", 5,
             partial(to_dlpack_tensor, memory, **keywords), take)
            for spelling, keywords in SPELLINGS.items()
        ),
        ("`to_dlpack_tensor` of the peer's array / its `__sycl_usm_array_interface__`", 3.5,
         partial(to_dlpack_tensor, theirs),
         partial(getattr, theirs, "__sycl_usm_array_interface__")),
        ("`to_dlpack_tensor` of a tensor / `from_dlpack` of a tensor", 3,
         partial(to_dlpack_tensor, ours), take),
        ("`validate` of a tensor / `from_dlpack` of a tensor", 2, partial(validate, ours), take),
        ("a C++ function takes a tensor as a view / as `nb::ndarray`, which waits", 1,
         partial(extension.take_view, alone), partial(extension.take_ndarray, plain)),
        ("a C++ function takes it by its second overload, as a view / likewise", 1,
         partial(extension.overloaded_view, alone), partial(extension.overloaded_ndarray, plain)),
        ("a C++ function takes a foreign array as a view / as `nb::ndarray`, not validated", None,
         partial(extension.take_view, foreign), partial(extension.take_ndarray, foreign)),
        ("a C++ function returns an `owned_view` / an `nb::ndarray`", None,
         matrix.owned, matrix.ndarray),
        ("C++, 20 times: `to_dlpack_tensor(view, queue)` / SYCL's queries of kind and device", 1,
         matrix.export, partial(matrix.query, 1)),
        ("C++, 20 times: `validate(tensor)` / SYCL's queries of the first and the last element", 1,
         matrix.validate, partial(matrix.query, 2)),
        *waits(idle), *many(memory), *transposed(peer),
        ("`sycl_queue` of a tensor / of the peer's array", 3,
         partial(getattr, ours, "sycl_queue"), partial(getattr, theirs, "sycl_queue")),
        ("`sycl_device` of a tensor / of the peer's array", 3,
         partial(getattr, ours, "sycl_device"), partial(getattr, theirs, "sycl_device")),
    ]  # fmt: skip


Comparison = tuple[str, "float | None", Call, Call]


def waits(queue: Any) -> list[Comparison]:
    """Compare `wait` with that of a queue, idle and behind a copy."""
    source, target = (dpctl.memory.MemoryUSMDevice(1 << 16, queue=queue) for _ in range(2))
    x = to_dlpack_tensor(target, queue=queue)

    def copy(wait: Call) -> None:
        queue.memcpy_async(target, source, 1 << 16)
        wait()

    return [
        ("`wait` of a tensor on an idle in-order queue / dpctl's of the queue", None,
         x.wait, queue.wait),
        ("a copy of 64 KiB, and `wait` of the tensor / dpctl's of the queue", 2,
         partial(copy, x.wait), partial(copy, queue.wait)),
    ]  # fmt: skip


def many(memory: Any) -> list[Comparison]:
    """Compare calls beside many tensors and queues with the same calls beside none."""
    x, y = (from_dlpack(np.zeros(16, np.uint8), device=(14, 0)) for _ in range(2))
    of_same_bytes = [to_dlpack_tensor(memory) for _ in range(10_000)]
    for _ in range(1000):
        y.__dlpack__(stream=dpctl.SyclQueue(root_device(0), property="in_order"))
    return [
        ("`wait` beside 10,000 tensors of the same bytes / beside none", 2,
         of_same_bytes[0].wait, x.wait),
        ("`wait` of a tensor that was given to 1,000 queues / to none", 2, y.wait, x.wait),
    ]  # fmt: skip


def transposed(peer: Any) -> list[Comparison]:
    """Compare writes to transposed matrices."""
    rows: list[Comparison] = []
    for n in (64, 512, 1024):
        values = np.ones((n, n), np.float32)
        ours = to_dlpack_tensor(from_dlpack(values, device=(14, 0)), shape=(n, n), strides=(1, n))
        theirs = peer.zeros((n, n), dtype="float32")

        def assign(to: Any = theirs, values: Any = values) -> None:
            to.T[...] = peer.asarray(values)
            to.sycl_queue.wait()

        rows.append(
            (f"`copy_from` of a NumPy array, transposed, {n}² / the peer's assignment", 3,
             partial(ours.copy_from, values), assign)
        )  # fmt: skip
    return rows


def fastest(calls: list[Call]) -> list[float]:
    """Return the time that each call takes in its fastest of many rounds."""
    spent = [float("inf")] * len(calls)
    for turn in range(400):
        for number, call in enumerate(calls):
            repeat = 100 if turn and spent[number] < 2e-5 else 1
            call()
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            spent[number] = min(spent[number], (time.perf_counter() - start) / repeat)
    return spent


def write_ratios(compared: list[Comparison], folder: Path) -> None:
    """Measure, and write the rows to ratios.json: title, microseconds of ours, ratio, limit."""
    spent = fastest([call for row in compared for call in row[2:]])
    rows = [
        (title, ours * 1e6, ours / theirs, limit)
        for (title, limit, *_), ours, theirs in zip(compared, spent[::2], spent[1::2], strict=True)
    ]
    (folder / "ratios.json").write_text(json.dumps(rows), encoding="utf-8")


def main() -> None:
    """Measure beside the peer that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=["dpctl.tensor", "dpnp"])
    parser.add_argument("folder", type=Path, help="holds the extension, and gets ratios.json")
    options = parser.parse_args()
    sys.path.insert(0, str(options.folder))
    modules = map(importlib.import_module, (options.peer, "benchmark_extension"))
    write_ratios(comparisons(*modules), options.folder)


if __name__ == "__main__":
    main()
