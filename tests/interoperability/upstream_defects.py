# SPDX-License-Identifier: Apache-2.0
"""Why a cell of docs/consumers.md does not pass: a defect upstream, named in one sentence.

Each entry is (titles, direction, cell, sentence): the cell is a pattern, "dtype *" for all element
types, and the first entry that fits a cell explains it.
"""

from __future__ import annotations

Explanation = tuple[tuple[str, ...], str, str, str]

OUT = "ours to theirs"
IN = "theirs to ours"
BOTH = "both ways"

EXPLANATIONS: tuple[Explanation, ...] = (
    (
        ("apache-tvm-ffi",),
        OUT,
        "read-only",
        "apache-tvm-ffi drops the flag READ_ONLY: its tensors say of no memory that it must not be "
        "written.",
    ),
    (
        ("PyTorch CPU",),
        OUT,
        "*",
        'torch.from_dlpack(x, device="cpu") passes `dl_device` only to a producer that is on that '
        "device already, and then looks in the build for XPU, which the one for the CPU has not; "
        "pass `x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))`, the capsule, instead.",
    ),
    (
        ("PyTorch CPU, through a capsule",),
        OUT,
        "reversed",
        "PyTorch has no negative strides, and ends the process where a versioned capsule has them; "
        "copy the array first.",
    ),
    (
        ("PyTorch CPU, through a capsule",),
        OUT,
        "read-only",
        "PyTorch has no read-only tensors, and drops the flag READ_ONLY.",
    ),
    (
        ("JAX CPU",),
        OUT,
        "*",
        "jax.dlpack.from_dlpack knows no kDLOneAPI and asks for no `dl_device`; go through NumPy.",
    ),
    (
        ("JAX CPU, through NumPy",),
        OUT,
        "read-only",
        "jax.dlpack.from_dlpack passes no `max_version`, and NumPy has no legacy capsule for "
        "read-only memory; copy it first.",
    ),
    (
        ("JAX CPU, through NumPy",),
        OUT,
        "*",
        "jax.dlpack.from_dlpack takes compact arrays and their transpositions only; copy the array "
        "first.",
    ),
    (
        ("array-api-strict",),
        OUT,
        "*",
        "array_api_strict.from_dlpack calls np.from_dlpack(x) without the device that it was "
        "given; go through NumPy.",
    ),
    (
        ("mpi4py, two ranks",),
        IN,
        "read-only",
        "No defect: a message is not received into read-only memory.",
    ),
    (
        ("mpi4py, two ranks",),
        BOTH,
        "*",
        "mpi4py makes no MPI datatype of strides, and sends and receives compact arrays only; send "
        "a copy.",
    ),
)
