# SPDX-License-Identifier: Apache-2.0
"""The steps of the two protocols, each with its reason, and at which of them a code stops.

The order is that of docs/checks.md. A code that no step has stops at the last one.
"""

from __future__ import annotations

from usm_dlpack._explanation import Rule

IMPORT = (
    Rule("request", "the process and the keywords", "after fork() the runtime must not be asked"),
    Rule("producer", "the array says where it is, and hands over a capsule",
         "only its producer knows the memory"),
    Rule("capsule", "the capsule is fresh", "a consumed one owns nothing any more"),
    Rule("header", "version and flags are known", "another major version has another layout"),
    Rule("device_type", "the device type is kDLOneAPI", "other types are not memory of SYCL"),
    Rule("structure", "the tensor is well formed", "no query is made of an overflowed address"),
    Rule("requirements", "it is what the caller asked for", "a consumer may not take everything"),
    Rule("root", "device_id names a root device that works",
         "the id is a position in sycl::device::get_devices() of this process, which "
         "ONEAPI_DEVICE_SELECTOR and the drivers change"),
    Rule("backend", "its backend is accepted", "a consumer may not support every backend"),
    Rule("pointer", "the default context of its platform knows the pointer",
         "the default context is the only one that producer and consumer can both name"),
    Rule("kind", "the USM kind is accepted", "device USM cannot be read by the host"),
    Rule("device", "the memory's root device is the one named",
         "work would be sent to a device that cannot reach the memory"),
    Rule("bounds", "every byte of the view lies in one allocation",
         "a query of a pointer looks at one byte"),
)  # fmt: skip

EXPORT = (
    Rule("interface", "the object describes its memory",
         "address, shape and context come from __sycl_usm_array_interface__"),
    Rule("request", "the process and the keywords", "after fork() the runtime must not be asked"),
    Rule("structure", "the view is well formed", "no query is made of an overflowed address"),
    Rule("context", "the object names a context", "the protocol begins with a bound pointer"),
    Rule("pointer", "that context knows the pointer",
         "memory that was freed, or is of another context, is nothing that it can name"),
    Rule("default", "it is the default context of its platform",
         "a consumer knows the device id only, and finds no other context by it"),
    Rule("device", "the device that the memory truly is on",
         "the backend's answer: SYCL's query names the first device of an OpenCL context"),
    Rule("root", "its root device has an id",
         "the id is a position in sycl::device::get_devices()"),
    Rule("queue", "the queue is one of the memory's root device",
         "its work would otherwise be on a device that cannot reach the memory"),
    Rule("bounds", "every byte of the view lies within the bytes of the object",
         "a query of a pointer looks at one byte"),
)  # fmt: skip

_STRUCTURE = (
    "ndim_out_of_range",
    "shape_null",
    "dtype_unsupported",
    "shape_negative",
    "data_null",
    "span_overflow",
    "data_misaligned",
)
IMPORT_STOPS = {
    "process_forked": "request",
    "capsule_unusable": "capsule",
    "version_unsupported": "header",
    "flags_unknown": "header",
    "read_only": "header",
    "device_type_unsupported": "device_type",
    **dict.fromkeys(_STRUCTURE, "structure"),
    "dtype_mismatch": "requirements",
    "rank_mismatch": "requirements",
    "overlapping": "requirements",
    "device_not_accepted": "requirements",
    "no_device": "root",
    "device_id_out_of_range": "root",
    "device_failed": "root",
    "backend_not_accepted": "backend",
    "pointer_unknown": "pointer",
    "context_not_default": "pointer",
    "usm_type_not_accepted": "kind",
    "device_mismatch": "device",
    "out_of_bounds": "bounds",
}


EXPORT_STOPS = {
    "process_forked": "request",
    **dict.fromkeys(_STRUCTURE, "structure"),
    "pointer_unknown": "pointer",
    "context_not_default": "default",
    "device_mismatch": "device",
    "no_device": "root",
    "device_id_out_of_range": "root",
    "device_failed": "root",
    "device_without_id": "queue",
    "queue_device_mismatch": "queue",
    "out_of_bounds": "bounds",
}
EXPORT_STOPS_OF_FIELD = {
    "obj": "interface",
    "__sycl_usm_array_interface__": "interface",
    "queue": "queue",
}
