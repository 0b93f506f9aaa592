# SPDX-License-Identifier: Apache-2.0
"""Memory that is mapped in pieces, as PyTorch's expandable segments are.

test_level_zero.cpp has what else is proved of it.
"""

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint32, c_void_p
from typing import Any

import pytest
from offers import offered
from refusals import refused
from usm_dlpack import from_dlpack, validate

PIECE = 65536
READ_AND_WRITE = 1  # ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE


class Description(ctypes.Structure):
    """A ``ze_context_desc_t`` or ``ze_physical_mem_desc_t``."""

    _fields_ = (("stype", c_int), ("next", c_void_p), ("flags", c_uint32), ("size", c_size_t))


def made(function: Callable[..., int], *arguments: object) -> c_void_p:
    """Return what a function of Level Zero writes to its last argument."""
    result = c_void_p()
    assert function(*arguments, byref(result)) == 0
    return result


@pytest.fixture(scope="module")
def address(devices: list[Any]) -> int:
    """Reserve three pieces and map two; they stay until the process ends."""
    assert len(devices) == 1
    driver = ctypes.CDLL("libze_loader.so.1")  # SYCL has loaded it
    one = c_uint32(1)
    platform = made(driver.zeDriverGet, byref(one))
    device = made(driver.zeDeviceGet, platform, byref(one))
    context = made(driver.zeContextCreate, platform, byref(Description(0xD)))
    start = made(driver.zeVirtualMemReserve, context, None, c_size_t(3 * PIECE)).value
    assert start is not None
    for place in (start, start + PIECE):
        memory = Description(0x20, None, 0, PIECE)
        physical = made(driver.zePhysicalMemCreate, context, device, byref(memory))
        size, offset = c_size_t(PIECE), c_size_t(0)
        # The simulated driver maps the piece, and then fails to make it resident.
        driver.zeVirtualMemMap(context, c_void_p(place), size, physical, offset, READ_AND_WRITE)
    return start


def test_a_view_over_two_pieces_is_imported(address: int) -> None:
    array = offered(address + 8, 0, 2 * PIECE - 8)
    proof = validate(array)
    assert (proof.bounds, proof.base, proof.size) == ("block", address, 2 * PIECE)
    assert from_dlpack(array).data == address + 8


def test_a_view_that_ends_in_reserved_memory_is_refused(address: int) -> None:
    with refused("out_of_bounds", "shape", expected="the 131072 bytes of the driver's block"):
        validate(offered(address, 0, 2 * PIECE + 1))
