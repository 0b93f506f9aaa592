# SPDX-License-Identifier: Apache-2.0
"""The C exchange API of a type, ``__dlpack_c_exchange_api__``, if it has one."""

from typing import Any

import pytest

from .adapter import NotSupportedError
from .cases import DLPACK, SHAPE, convention, growth, make, refused, spec
from .dlpack import (
    KNOWN_FLAGS,
    ONEAPI,
    ExchangeAPI,
    call_deleter,
    content_of,
    first_element,
    integers,
    name_of,
)


def api_of(array: Any) -> ExchangeAPI:
    if not hasattr(type(array), "__dlpack_c_exchange_api__"):
        raise NotSupportedError("its arrays have no C exchange API")
    return ExchangeAPI(type(array))


@spec("api.capsule", DLPACK, "Consumers look for this name.")
def test_the_table_is_in_a_capsule_of_the_type(adapter):
    array = make(adapter)
    api_of(array)
    assert name_of(type(array).__dlpack_c_exchange_api__) == b"dlpack_exchange_api"


@spec("api.version", DLPACK, "The table begins with the version of DLPack.")
def test_the_table_is_of_version_1(adapter):
    assert api_of(make(adapter)).table.major == 1


@spec("api.export", DLPACK, "It describes what __dlpack__ does.")
def test_an_export_says_what_the_capsule_says(adapter):
    array = make(adapter)
    content = api_of(array).export(array)
    tensor, by_method = (
        content.dl_tensor,
        content_of(array.__dlpack__(max_version=(1, 1))).dl_tensor,
    )
    assert content.flags & ~KNOWN_FLAGS == 0
    assert first_element(tensor) == first_element(by_method)
    assert integers(tensor.shape, tensor.ndim) == SHAPE
    assert (tensor.device_type, tensor.device_id) == (by_method.device_type, by_method.device_id)
    call_deleter(content)


@spec("api.borrow", DLPACK, "A borrowed tensor describes the array without owning it.")
def test_a_borrowed_tensor_says_what_the_capsule_says(adapter):
    array = make(adapter)
    api = api_of(array)
    tensor = api.borrow(array)
    assert first_element(tensor) == adapter.address(array)
    assert integers(tensor.shape, tensor.ndim) == SHAPE
    assert (tensor.device_type, tensor.code, tensor.bits, tensor.lanes) == (ONEAPI, 2, 32, 1)


@spec("api.deleter", DLPACK, "The deleter of an export frees all that belongs to it.")
def test_exports_leave_nothing_behind(adapter):
    array = make(adapter)
    api = api_of(array)
    assert growth(lambda: call_deleter(api.export(array)), 20_000) < 1 << 20


@spec("api.take", DLPACK, "A managed tensor becomes an object of the library, which owns it.")
def test_a_managed_tensor_becomes_an_object(adapter):
    array = make(adapter)
    api = api_of(array)
    taken = api.take(api.export(array))
    assert type(taken) is type(array)
    assert adapter.address(taken) == adapter.address(array)


@spec("api.allocate", DLPACK, "New memory of the prototype's shape, dtype and device.")
def test_the_allocator_gives_compact_memory(adapter):
    array = make(adapter)
    api = api_of(array)
    exported = api.export(array)
    prototype = exported.dl_tensor
    prototype.data = None
    content = api.allocate(prototype)
    tensor = content.dl_tensor
    assert integers(tensor.shape, tensor.ndim) == SHAPE
    assert (tensor.device_type, tensor.code, tensor.bits) == (ONEAPI, 2, 32)
    assert first_element(tensor)
    call_deleter(content)
    call_deleter(exported)


@pytest.mark.alone
@spec("api.allocate-refused", DLPACK, "A failure is told by the caller's function.")
def test_the_allocator_refuses_a_device_that_is_not_there(adapter):
    array = make(adapter)
    api = api_of(array)
    exported = api.export(array)
    prototype = exported.dl_tensor
    prototype.device_id = 99
    with refused(BufferError):
        api.allocate(prototype)
    call_deleter(exported)


@convention("api.stream", DLPACK, "For kDLOneAPI the stream is a sycl::queue*, as PyTorch's.")
def test_there_is_a_work_stream(adapter):
    assert api_of(make(adapter)).stream(0)
