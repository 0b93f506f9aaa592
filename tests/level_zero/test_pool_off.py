# SPDX-License-Identifier: Apache-2.0
"""One root device without SYCL's memory pool: the driver's answers are exact."""

from __future__ import annotations

from typing import Any

import dpctl
import pytest
from refusals import refused
from simulated import offered, usm
from usm_dlpack import to_dlpack_tensor, validate


@pytest.fixture
def memory(devices: list[Any], usm_type: str) -> Any:
    """Return 1000 bytes of each kind."""
    return usm(usm_type, 1000, dpctl.SyclQueue(devices[0]))


def test_the_bounds_are_those_of_the_allocation(memory: Any) -> None:
    proof = validate(to_dlpack_tensor(memory))
    assert (proof.bounds, proof.base, proof.size) == ("allocation", memory._pointer, 1000)


def test_a_byte_too_many_is_refused(memory: Any) -> None:
    inside = validate(offered(memory._pointer + 900, 0, 100))
    assert (inside.base, inside.size) == (memory._pointer, 1000)
    with refused("out_of_bounds", "shape", expected="1000 bytes", found="900 to 1000"):
        validate(offered(memory._pointer + 900, 0, 101))


def test_freed_memory_is_unknown(devices: list[Any], usm_type: str) -> None:
    memory = usm(usm_type, 1000, dpctl.SyclQueue(devices[0]))
    array = offered(memory._pointer, 0)
    assert validate(array).usm_type == usm_type
    del memory
    with refused("pointer_unknown", "data", binding=True):
        validate(array)
