# SPDX-License-Identifier: Apache-2.0
"""Products and reorders of random layouts: as NumPy has them, nothing beside them, or refused.

``python random_layouts.py matmul 300`` runs 300 of them. Which implementation oneDNN takes depends
on the CPU, and on ONEDNN_MAX_CPU_ISA.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onednn_ops
import usm_dlpack
from conftest import new_queue
from dpctl import memory

FILL = 0x55
GUARD = 4096  # bytes on either side
DTYPES = {
    "float32": [("float32", "float32", "float32")],
    "bytes": [
        (left, right, product)
        for left in ("int8", "uint8")
        for right in ("int8", "uint8")
        for product in ("int32", "float32", "int8")
    ],
}
FOUR_BITS = {
    "uint4": list(range(16)),
    "int4": [*range(8), *range(-8, 0)],
    "float4_e2m1fn": [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6],
}
QUEUE = new_queue(in_order=True)


class Guarded:
    """A tensor in the middle of memory that is seen as a whole."""

    def __init__(self, shape: Sequence[int], strides: Sequence[int], dtype: str) -> None:
        self.bits = 4 if dtype in FOUR_BITS else 8 * np.dtype(dtype).itemsize
        self.positions = np.zeros(shape, "i8")
        for r, stride in enumerate(strides):
            index = np.arange(shape[r]) * stride
            self.positions += index.reshape([-1 if i == r else 1 for i in range(len(shape))])
        size = (int(self.positions.max()) + 1) * self.bits // 8 + 1
        owner = memory.MemoryUSMShared(size + 2 * GUARD, queue=QUEUE)
        self.bytes = np.asarray(owner).view("u1")
        self.bytes[:] = FILL
        self.tensor = usm_dlpack.to_dlpack_tensor(
            owner, shape=shape, strides=strides, dtype=dtype, byte_offset=GUARD
        )
        self.dtype = dtype

    def written(self, values: Any) -> Any:
        """Return what all bytes are with these values in the tensor."""
        made = self.bytes.copy()
        if self.bits > 4:
            elements = made[GUARD : made.size - made.size % 8].view(self.dtype)
            elements[self.positions] = values
            return made
        codes = np.array([FOUR_BITS[self.dtype].index(value) for value in values.flat])
        for position, code in zip(self.positions.flat, codes, strict=True):
            shift = 4 * (int(position) % 2)
            at = GUARD + int(position) // 2
            made[at] = made[at] & (0xF0 >> shift) | code << shift
        return made


def strides_of(rng: Any, shape: Sequence[int]) -> list[int]:
    """Return strides of C order, of swapped last axes, with gaps, permuted, or broadcast."""
    order = list(range(len(shape)))[::-1]
    kind = rng.choice(["C", "C", "swapped", "gaps", "swapped gaps", "permuted", "any"])
    if "swapped" in kind:
        order[:2] = order[:2][::-1]
    if kind in ("permuted", "any"):
        rng.shuffle(order)
    gaps = kind in ("gaps", "swapped gaps", "any")
    strides, step = [0] * len(shape), int(rng.integers(1, 3)) if gaps else 1
    for r in order:
        strides[r] = step
        step *= shape[r] + (int(rng.integers(0, 3)) if gaps else 0)
    return strides


def extent(rng: Any) -> int:
    """Return 1 often, and otherwise less than a vector, about one, or more."""
    return int(rng.choice([1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]))


def try_out(act: Callable[[], Any], out: Guarded, expected: Any) -> str:
    """Return what became of a call: "computed", or the code of the refusal."""
    untouched, wanted = out.bytes.copy(), out.written(expected)
    try:
        act().wait()
    except usm_dlpack.ConversionError as refusal:
        assert np.array_equal(out.bytes, untouched)
        return str(refusal.code)
    assert np.array_equal(out.bytes, wanted)
    return "computed"


def multiply(rng: Any, dtypes: str) -> tuple[str, str]:
    """Try a random product."""
    left, right, product = DTYPES[dtypes][rng.integers(len(DTYPES[dtypes]))]
    m, k, n = (extent(rng) for _ in range(3))
    batch = rng.integers(1, 4, rng.integers(0, 4))
    shapes = [
        [*np.where(rng.random(batch.size) < 0.25, 1, batch), *last] for last in ((m, k), (k, n))
    ]
    shapes = [[int(size) for size in shape] for shape in shapes]
    shapes.append([*np.broadcast_shapes(*(shape[:-2] for shape in shapes)), m, n])
    a, b, out = (
        Guarded(shape, strides_of(rng, shape), dtype)
        for shape, dtype in zip(shapes, (left, right, product), strict=True)
    )
    x, y = (
        rng.integers(0 if side.dtype == "uint8" else -2, 3, shape)
        for side, shape in zip((a, b), shapes, strict=False)
    )
    for side, values in ((a, x), (b, y)):
        side.bytes[:] = side.written(values)
    outcome = try_out(
        lambda: onednn_ops.matmul_into(a.tensor, b.tensor, out.tensor, queue=QUEUE),
        out,
        np.clip(x @ y, -128, 127) if product == "int8" else x @ y,
    )
    return f"rank {len(shapes[0])}", outcome


def convert(rng: Any, to_four_bits: bool) -> tuple[str, str]:
    """Try a random reorder from or to elements of 4 bits."""
    shape = [int(size) for size in rng.choice([1, 2, 3, 4, 5, 8, 9], rng.integers(0, 4))]
    dtype = str(rng.choice(list(FOUR_BITS)))
    values = np.array(FOUR_BITS[dtype], "f4")[rng.integers(0, 16, shape)]
    x, out = (
        Guarded(shape, strides_of(rng, shape) if len(shape) > 1 else [1] * len(shape), side)
        for side in (("float32", dtype) if to_four_bits else (dtype, "float32"))
    )
    x.bytes[:] = x.written(values)
    act = lambda: onednn_ops.reorder_into(x.tensor, out.tensor, queue=QUEUE)  # noqa: E731
    return "odd" if values.size % 2 else "even", try_out(act, out, values)


ACTS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "float32": lambda rng: multiply(rng, "float32"),
    "bytes": lambda rng: multiply(rng, "bytes"),
    "from 4 bits": lambda rng: convert(rng, to_four_bits=False),
    "to 4 bits": lambda rng: convert(rng, to_four_bits=True),
}


def main(act: str, count: int) -> None:
    """Try so many, and print how many had which outcome."""
    outcomes: Counter[tuple[str, str]] = Counter()
    for seed in range(count):
        try:
            outcomes[ACTS[act](np.random.default_rng(seed))] += 1
        except AssertionError:
            raise AssertionError(f"seed {seed}") from None
    for (kind, outcome), number in sorted(outcomes.items()):
        print(f"{kind}: {outcome}: {number}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
