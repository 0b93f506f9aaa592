# SPDX-License-Identifier: Apache-2.0
"""The cases of the peers' DLPack tests that do not fit this package, and why.

For each side of ours (see `peers_own_tests`), a case by its node id, or all cases of a function by
the function's.
"""

from __future__ import annotations

_NO_SUB_DEVICE = "skips: the OpenCL runtime has no queue for a sub-device in the default context"
_ONLY_NUMPY = "nothing of ours in it: NumPy's arrays alone are exchanged"
_ONLY_EXPORT = "nothing of ours in it: capsules are made, and not taken"
_ONLY_THEIRS = "nothing of ours in it: what a function of theirs refuses"
_COPY_IS_WRITABLE = "wants a copy of read-only memory to be read-only; ours is new memory"

_TENSOR: dict[str, dict[str, str]] = {
    "producer": {
        "test_copy_via_host_gh_1789": _ONLY_NUMPY,
        "test_dlpack_capsule_readonly_array_to_kdlcpu": _COPY_IS_WRITABLE,
        "test_dlpack_dl_device": "wants the name 'kDLCPU' for a device type, and TypeErrors",
        "test_dlpack_from_subdevice": _NO_SUB_DEVICE,
        "test_dlpack_from_subdevice_to_kdlcpu": _NO_SUB_DEVICE,
        "test_dlpack_kwargs": "wants copy=True to be ignored for a legacy capsule; ours copies",
        "test_dlpack_max_version_validation": (
            "wants a TypeError, which consumers take for an old producer; ours is a BufferError"
        ),
        "test_dlpack_size_0_on_kdlcpu": _ONLY_NUMPY,
        "test_from_dlpack_input_validation": _ONLY_THEIRS,
        "test_generic_container_legacy_np": _ONLY_NUMPY,
        "test_legacy_dlpack_capsule_from_numpy": _ONLY_NUMPY,
        "test_versioned_dlpack_capsule": _COPY_IS_WRITABLE,
    },
    "consumer": {
        "test_dldevice_conversion_arg_validation": (
            "wants checks of a function that takes (device_type, id); root_device takes an id"
        ),
        "test_dlpack_capsule_readonly_array_to_kdlcpu": _ONLY_NUMPY,
        "test_dlpack_deleters": _ONLY_EXPORT,
        "test_dlpack_device": _ONLY_EXPORT,
        "test_dlpack_dl_device": _ONLY_EXPORT,
        "test_dlpack_exporter": _ONLY_EXPORT,
        "test_dlpack_exporter_empty": _ONLY_EXPORT,
        "test_dlpack_exporter_stream": _ONLY_EXPORT,
        "test_dlpack_from_subdevice": _NO_SUB_DEVICE,
        "test_dlpack_from_subdevice_to_kdlcpu": _NO_SUB_DEVICE,
        "test_dlpack_max_version_validation": _ONLY_EXPORT,
        "test_dlpack_size_0_on_kdlcpu": _ONLY_NUMPY,
        "test_from_dlpack_input_validation": (
            "wants a TypeError where __dlpack__ returns None; ours is a BufferError"
        ),
        "test_legacy_dlpack_capsule_from_numpy": _ONLY_NUMPY,
        "test_sycl_device_to_dldevice": "is for the producer's side",
        "test_used_dlpack_capsule": "wants a ValueError; ours is a BufferError",
        "test_used_dlpack_capsule_from_numpy": (
            "takes arrays that are on the host, of which nothing reaches ours"
        ),
    },
}

_NUMPY_WITH_ITSELF = {
    f"TestDLPack::test_dtype_passthrough[{dtype}-numpy]": _ONLY_NUMPY
    for dtype in ("bool", "int32", "int64", "float32", "float64", "complex64", "complex128")
} | {
    "TestDLPack::test_non_contiguous[numpy]": _ONLY_NUMPY,
    "TestDLPack::test_numpy_input": _ONLY_NUMPY,
}

_DPNP: dict[str, dict[str, str]] = {
    "producer": {
        **_NUMPY_WITH_ITSELF,
        "TestDLPack::test_invaid_stream": (
            "wants a TypeError, which consumers take for an old producer; ours is a ValueError"
        ),
        "TestDLPack::test_wrong_copy": "wants an array to be taken for copy; ours refuses it",
    },
    "consumer": {
        **_NUMPY_WITH_ITSELF,
        "TestDLPack::test_copy": _ONLY_EXPORT,
        "TestDLPack::test_invaid_stream": _ONLY_EXPORT,
        "TestDLPack::test_stream": _ONLY_EXPORT,
        "TestDLPack::test_wrong_copy": _ONLY_EXPORT,
    },
}

_SKIPPED = "skips, whoever exports"
_CUPY_SKIPS = {
    "TestDLPackConversion::test_conversion": _SKIPPED,
    "TestDLTensorMemory::test_multiple_consumption_error": _SKIPPED,
    "TestNewDLPackConversion::test_conversion_device_to_cpu": _SKIPPED,
    "TestNewDLPackConversion::test_from_dlpack_and_conv_errors": _SKIPPED,
}
_CUPY: dict[str, dict[str, str]] = {
    "producer": _CUPY_SKIPS,
    "consumer": {
        **_CUPY_SKIPS,
        "TestDLTensorMemory::test_deleter": _ONLY_EXPORT,
        "TestNewDLPackConversion::test_conversion_bad_device": _ONLY_EXPORT,
    },
}

# The modules of each wheel, and what does not fit in them.
MODULES: dict[str, dict[str, dict[str, dict[str, str]]]] = {
    "dpctl-tensor": {"dpctl.tests.test_usm_ndarray_dlpack": _TENSOR},
    "dpnp": {
        "dpnp.tests.tensor.test_usm_ndarray_dlpack": _TENSOR,
        "dpnp.tests.test_dlpack": _DPNP,
        "dpnp.tests.third_party.cupy.core_tests.test_dlpack": _CUPY,
    },
}

UNFIT: dict[str, dict[str, str]] = {
    side: {
        f"{module}::{case}": reason
        for modules in MODULES.values()
        for module, sides in modules.items()
        for case, reason in sides[side].items()
    }
    for side in ("producer", "consumer")
}
