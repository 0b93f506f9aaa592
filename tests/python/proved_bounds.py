# SPDX-License-Identifier: Apache-2.0
"""What a proof says of the bounds of some memory, in the words of the backend at hand."""

from __future__ import annotations

import os
from typing import Any

import dpctl
from memory_sources import address_of

# The most bytes for which SYCL's pool on Level Zero makes an allocation; it makes no shared USM.
_MOST_POOLED = {"device": 4 << 20, "host": 2 << 20}
_SMALLEST_CHUNK = 512


def is_pooled(proof: Any, nbytes: int) -> bool:
    """Return whether SYCL's pool made an allocation of so many bytes, of a proof's kind."""
    return (
        proof.root_device.backend == dpctl.backend_type.level_zero
        and nbytes <= _MOST_POOLED.get(proof.usm_type, 0)
        and os.environ.get("UR_L0_DISABLE_USM_ALLOCATOR", "0") == "0"
    )


def check_bounds(proof: Any, owner: Any, *, first: int = 0) -> None:
    """Require the bounds of a memory for a view whose lowest byte is the ``first`` of it.

    A chunk is known from the lowest byte of the view; the pool rounds its end up.
    """
    address, nbytes = address_of(owner), int(owner.nbytes)
    found = (proof.bounds, proof.base)
    if is_pooled(proof, nbytes):
        assert found == ("chunk", address + first)
        end = proof.base + proof.size - address
        assert nbytes <= end <= max(2 * nbytes, _SMALLEST_CHUNK)
    else:
        assert (*found, proof.size) == ("allocation", address, nbytes)
