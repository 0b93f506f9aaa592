# SPDX-License-Identifier: Apache-2.0
"""Why a cell of docs/consumers.md does not pass: a defect upstream, named in one sentence.

Each sentence has the patterns of its cells, ``<title> | <direction> | <cell>``; of the sentences
that fit a cell, the first one explains it.
"""

EXPLANATIONS: dict[str, tuple[str, ...]] = {
    "apache-tvm-ffi has no read-only tensors, and drops the flag READ_ONLY.": (
        "apache-tvm-ffi | ours to theirs | read-only",
    ),
    'torch.from_dlpack(x, device="cpu") passes `dl_device` only to a producer that is on the '
    "CPU already, so it gets XPU memory, which the build for the CPU cannot take; pass the "
    "capsule `x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))` instead.": (
        "PyTorch CPU | ours to theirs | *",
        "PyTorch CPU | keyword* | *",
    ),
    "PyTorch has no negative strides, and ends the process if a capsule has them; copy the "
    "array first.": (
        "PyTorch CPU, through a capsule | ours to theirs | reversed",
        "PyTorch CPU | * capsule | reversed",
    ),
    "PyTorch has no read-only tensors, and drops the flag READ_ONLY.": (
        "PyTorch CPU, through a capsule | ours to theirs | read-only",
    ),
    "jax.dlpack.from_dlpack takes kDLOneAPI only from Intel GPUs, with JAX 0.11 and "
    "jax-oneapi-plugin, and passes no `dl_device`; go through NumPy.": (
        "JAX CPU | ours to theirs | *",
        "JAX CPU | keyword* | *",
    ),
    "jax.dlpack.from_dlpack passes no `max_version`, and NumPy has no legacy capsule for "
    "read-only memory; copy it first.": ("JAX CPU, through NumPy | ours to theirs | read-only",),
    "No defect: it passes no `max_version`, so it expects a legacy capsule.": (
        "apache-tvm-ffi | versioned capsule* | *",
        "JAX CPU | versioned capsule* | *",
        "TensorFlow CPU | versioned capsule* | *",
        "Warp | versioned capsule* | *",
    ),
    "jax.dlpack.from_dlpack takes only compact and transposed arrays; copy the array first.": (
        "JAX CPU, through NumPy | ours to theirs | *",
        "JAX CPU | legacy capsule | *",
    ),
    "array_api_strict.from_dlpack does not pass its `device` on to np.from_dlpack; go through "
    "NumPy.": (
        "array-api-strict | ours to theirs | *",
        "array-api-strict | keyword* | *",
    ),
    "No defect: read-only memory cannot receive a message.": (
        "mpi4py, two ranks | theirs to ours | read-only",
    ),
    "mpi4py sends and receives only compact arrays; send a copy.": ("mpi4py, two ranks | * | *",),
    "oneDAL drops the flag of read-only memory in `__sycl_usm_array_interface__`.": (
        "oneDAL | ours to theirs | read-only",
    ),
    "It takes only legacy capsules, which cannot be read-only; copy the array first.": (
        "oneDAL, through DLPack | ours to theirs | read-only",
        "TensorFlow CPU | ours to theirs | read-only",
    ),
    "oneDAL takes only arrays of one or two dimensions, in C or F order without gaps, and not "
    "empty; reshape or copy the array first.": ("oneDAL* | * | *",),
    "No defect: it passes `max_version`, so it expects a versioned capsule.": (
        "pyarrow | legacy capsule* | *",
    ),
    "pyarrow has no negative strides; copy the array first.": ("pyarrow | * | reversed",),
    "No defect: awkward has no arrays without dimensions.": ("awkward | * capsule* | 0-d",),
    "awkward.from_dlpack knows no kDLOneAPI and passes no `dl_device`; go through NumPy.": (
        "awkward | ours to theirs | *",
    ),
    "Dr.Jit takes only compact arrays in C order; copy the array first.": (
        "Dr.Jit | *capsule* | *",
    ),
    "Dr.Jit knows no kDLOneAPI and passes no `dl_device`; go through NumPy.": (
        "Dr.Jit | ours to theirs | *",
    ),
    "TensorFlow takes only compact arrays in C order; copy the array first.": (
        "TensorFlow CPU | ours to theirs | *",
        "TensorFlow CPU | legacy capsule* | *",
    ),
    "warp.from_dlpack fails for arrays without dimensions; reshape them first.": (
        "Warp | legacy capsule* | 0-d",
    ),
    "warp.from_dlpack knows no kDLOneAPI and passes no `dl_device`; go through NumPy.": (
        "Warp | ours to theirs | *",
    ),
}
