# SPDX-License-Identifier: Apache-2.0
"""What the documentation says of a managed tensor, written without the code under test.

The tensors here are compact and of few dtypes: other views are those of tests/fuzz and of
test_properties.py.
"""

import math
from collections.abc import Iterator
from typing import Any

from capsules import IS_COPIED, IS_SUBBYTE_TYPE_PADDED, READ_ONLY

KNOWN_FLAGS = READ_ONLY | IS_COPIED | IS_SUBBYTE_TYPE_PADDED
KINDS = ("device", "shared", "host")
# What the bytes of an element are aligned to, by (code, bits, lanes).
DTYPES = {(2, 32, 1): 4, (1, 8, 1): 1, (0, 64, 1): 8, (5, 128, 1): 8, (2, 16, 4): 2}


def _rules(managed: Any, places: Any, asked: dict[str, Any], imports: bool) -> Iterator[Any]:
    """Give each rule's code and whether it is broken, in order; last what must be proved.

    Reads of the tensor what the rules before allow.
    """
    tensor = managed.dl_tensor
    flags = getattr(managed, "flags", 0)
    yield "version_unsupported", getattr(managed, "major", 1) != 1
    yield "flags_unknown", flags & ~KNOWN_FLAGS
    yield "read_only", flags & READ_ONLY and asked.get("readonly") is False
    yield "device_type_unsupported", tensor.device_type != 14
    yield "ndim_out_of_range", tensor.ndim < 0
    yield "shape_null", tensor.ndim and not tensor.shape
    dtype = tensor.code, tensor.bits, tensor.lanes
    yield "dtype_unsupported", dtype not in DTYPES
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    yield "shape_negative", any(n < 0 for n in shape)
    nbytes = math.prod(shape) * tensor.bits * tensor.lanes // 8
    first = tensor.data + tensor.byte_offset if tensor.data else 0
    yield "data_null", nbytes and not first
    yield "span_overflow", first and (first + nbytes >= 2**64 or nbytes >= 2**63)
    yield "data_misaligned", nbytes and first % DTYPES[dtype]
    yield "dtype_mismatch", asked.get("dtype", dtype) != dtype
    yield "rank_mismatch", asked.get("ndim", tensor.ndim) != tensor.ndim
    own = tensor.device_id
    _, device_id = asked.get("device", (14, own))
    yield "device_not_accepted", device_id != own and not imports
    yield "device_id_out_of_range", not 0 <= own < len(places.works)
    yield "device_failed", not places.works[own]
    yield "backend_not_accepted", "opencl" not in asked.get("backends", ["opencl"])
    there = places.find(first)
    kinds = asked.get("usm_types", KINDS)
    if nbytes:  # an empty tensor may point anywhere
        yield "pointer_unknown", there is None
        yield "device_mismatch", there.device_id != own
        yield "usm_type_not_accepted", there.usm_type not in kinds
        yield "out_of_bounds", first + nbytes > there.base + there.size
    elif there and (there.device_id != own or there.usm_type not in kinds):
        there = None  # another's, which begins where the view ends
    usm_type = there.usm_type if there else "unknown"
    elsewhere = device_id != own or (imports and asked.get("usm_type", usm_type) != usm_type)
    yield "copy_needed", asked.get("copy") is False and (elsewhere or flags & IS_COPIED)
    facts = {
        "data": first,
        "shape": shape,
        "usm_type": usm_type,
        "device_id": own,
        "readonly": bool(flags & READ_ONLY),
        "nbytes": nbytes,
        "base": there.base if there and nbytes else 0,
        "size": there.size if there and nbytes else 0,
        "copied": elsewhere or (asked.get("copy") is True and not flags & IS_COPIED),
    }
    yield facts, True


def judge(managed: Any, places: Any, asked: dict[str, Any], imports: bool) -> Any:
    """Return the code of the first broken rule, or what must be proved."""
    return next(said for said, holds in _rules(managed, places, asked, imports) if holds)
