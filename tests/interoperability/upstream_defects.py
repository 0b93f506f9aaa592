# SPDX-License-Identifier: Apache-2.0
"""Why a cell of docs/consumers.md does not pass: a defect upstream, named in one sentence.

Each entry is (titles, directions, cell, sentence): the cell is a pattern, "dtype *" for all element
types, "*, versioned" for all views as versioned capsules for the host, and the first entry that
fits a cell explains it.
"""

from __future__ import annotations

Explanation = tuple[tuple[str, ...], tuple[str, ...], str, str]

OUT = ("ours to theirs",)
IN = ("theirs to ours",)
CAPSULE = ("by capsule",)
KEYWORD = ("by keyword",)
ONEDAL = ("oneDAL", "oneDAL, through DLPack")

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
        OUT + KEYWORD,
        "*",
        'torch.from_dlpack(x, device="cpu") passes `dl_device` only to a producer that is on that '
        "device already, and then looks in the build for XPU, which the one for the CPU has not; "
        "pass `x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))`, the capsule, instead.",
    ),
    (
        ("PyTorch CPU, through a capsule", "PyTorch CPU"),
        OUT + CAPSULE,
        "reversed*",
        "PyTorch has no negative strides, and ends the process where a capsule has them; copy the "
        "array first.",
    ),
    (
        ("PyTorch CPU, through a capsule",),
        OUT,
        "read-only",
        "PyTorch has no read-only tensors, and drops the flag READ_ONLY.",
    ),
    (
        ("JAX CPU",),
        OUT + KEYWORD,
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
        ("apache-tvm-ffi", "JAX CPU", "TensorFlow CPU", "Warp"),
        CAPSULE,
        "*, versioned",
        "No defect: it passes no `max_version`, and takes the legacy capsule that it then gets.",
    ),
    (
        ("JAX CPU, through NumPy", "JAX CPU"),
        OUT + CAPSULE,
        "*",
        "jax.dlpack.from_dlpack takes compact arrays and their transpositions only; copy the array "
        "first.",
    ),
    (
        ("array-api-strict",),
        OUT + KEYWORD,
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
        OUT + IN,
        "*",
        "mpi4py makes no MPI datatype of strides, and sends and receives compact arrays only; send "
        "a copy.",
    ),
    (
        ("oneDAL",),
        OUT,
        "read-only",
        "oneDAL drops the flag of read-only memory in `__sycl_usm_array_interface__`.",
    ),
    (
        ("oneDAL, through DLPack", "TensorFlow CPU"),
        OUT,
        "read-only",
        "It takes legacy capsules, and there is none for read-only memory; copy the array first.",
    ),
    (
        ONEDAL,
        OUT + IN + CAPSULE,
        "*",
        "oneDAL has tables of rows and columns in C or in F order without gaps, and no empty ones; "
        "reshape or copy the array first.",
    ),
    (
        ("pyarrow",),
        CAPSULE,
        "*, legacy",
        "No defect: it passes `max_version`, and takes the versioned capsule that it then gets.",
    ),
    (
        ("pyarrow",),
        OUT + CAPSULE + KEYWORD,
        "reversed*",
        "pyarrow has no negative strides; copy the array first.",
    ),
    (
        ("awkward",),
        CAPSULE,
        "0-d*",
        "No defect: awkward has no arrays without dimensions.",
    ),
    (
        ("awkward",),
        OUT,
        "*",
        "awkward.from_dlpack knows no kDLOneAPI and asks for no `dl_device`; go through NumPy.",
    ),
    (
        ("Dr.Jit",),
        CAPSULE,
        "*",
        "Dr.Jit takes compact arrays in C order only; copy the array first.",
    ),
    (
        ("Dr.Jit",),
        OUT,
        "*",
        "Dr.Jit knows no kDLOneAPI and asks for no `dl_device`; go through NumPy.",
    ),
    (
        ("TensorFlow CPU",),
        OUT + CAPSULE,
        "*",
        "TensorFlow takes compact arrays in C order only; copy the array first.",
    ),
    (
        ("Warp",),
        CAPSULE,
        "0-d*",
        "warp.from_dlpack fails for arrays without dimensions; reshape them first.",
    ),
    (
        ("Warp",),
        OUT,
        "*",
        "warp.from_dlpack knows no kDLOneAPI and asks for no `dl_device`; go through NumPy.",
    ),
)
