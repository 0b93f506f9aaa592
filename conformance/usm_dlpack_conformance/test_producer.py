# SPDX-License-Identifier: Apache-2.0
"""What a producer's device, capsule and tensor must say."""

import ctypes
from typing import Any

import numpy as np
import pytest

from .adapter import NotSupportedError
from .cases import (
    ARRAY_API,
    DLPACK,
    GUIDE,
    LAYOUTS,
    ORDER,
    PYTHON,
    SHAPE,
    VALUES,
    compact_strides,
    convention,
    each,
    make,
    make_layout,
    readable_kind,
    refused,
    spec,
)
from .dlpack import (
    CPU,
    DTYPES,
    IS_COPIED,
    KNOWN_FLAGS,
    LEGACY,
    ONEAPI,
    READ_ONLY,
    VERSIONED,
    content_of,
    first_element,
    integers,
    name_of,
)


def legacy_capsule(array: Any, **keywords: Any) -> Any:
    """Return a capsule for an old consumer, which a producer need not serve."""
    try:
        return array.__dlpack__(**keywords)
    except BufferError as error:
        raise NotSupportedError("it gives no legacy capsules") from error


def export(array: Any, **keywords: Any) -> Any:
    return content_of(array.__dlpack__(max_version=(1, 1), **keywords))


# The device.


@spec("device.pair", ARRAY_API, "Consumers decide by it before they export anything.")
def test_the_device_is_a_pair_of_integers(adapter):
    kind, number = make(adapter).__dlpack_device__()
    assert int(kind) == ONEAPI
    assert isinstance(number, int)
    assert number >= 0


@spec("device.agrees", ARRAY_API, "A consumer that looked at the one relies on the other.")
def test_the_tensor_names_the_device_of_the_array(adapter):
    array = make(adapter)
    tensor = export(array).dl_tensor
    kind, number = array.__dlpack_device__()
    assert (tensor.device_type, tensor.device_id) == (int(kind), number)


@convention("device.kinds", GUIDE, "Also host and shared USM belong to a device's context.")
def test_all_kinds_of_usm_are_kdloneapi(adapter):
    for kind in adapter.kinds:
        tensor = export(make(adapter, kind=kind)).dl_tensor
        assert (kind, tensor.device_type) == (kind, ONEAPI)


@convention("device.position", GUIDE, "The id is the root device's position in get_devices().")
def test_the_id_is_the_position_of_the_root_device(adapter):
    queues = adapter.queues()
    found = [export(make(adapter, queue=queue)).dl_tensor.device_id for queue in queues]
    assert found == list(range(len(queues)))


@convention("device.context", GUIDE, "A consumer looks for the pointer in the default context.")
def test_memory_of_another_context_is_not_exported(adapter):
    queue = adapter.queue_of_other_context()
    with refused():
        make(adapter, queue=queue).__dlpack__(max_version=(1, 1))


@convention("device.root", GUIDE, "A sub-device has no id: its root is named, or nothing exported.")
def test_a_sub_device_is_exported_as_its_root_or_not_at_all(adapter):
    queue = adapter.queue_of_sub_device()
    try:
        capsule = make(adapter, queue=queue).__dlpack__(max_version=(1, 1))
    except Exception:
        return
    assert content_of(capsule).dl_tensor.device_id == 0


# The capsule.


@spec("capsule.legacy", PYTHON, "An old consumer knows no other; BufferError is allowed.")
def test_without_a_version_the_capsule_is_a_legacy_one(adapter):
    assert name_of(legacy_capsule(make(adapter))) == LEGACY


@spec("capsule.old-version", PYTHON, "Before 1.0 there was no other; BufferError is allowed.")
def test_for_version_0_8_the_capsule_is_a_legacy_one(adapter):
    assert name_of(legacy_capsule(make(adapter), max_version=(0, 8))) == LEGACY


@convention("capsule.versioned", PYTHON, "Flags and version stand only there.")
def test_for_version_1_0_the_capsule_is_a_versioned_one(adapter):
    assert name_of(make(adapter).__dlpack__(max_version=(1, 0))) == VERSIONED


@spec("capsule.newer-minor", PYTHON, "Minor versions are compatible.")
def test_for_a_later_minor_version_the_capsule_is_of_version_1(adapter):
    content = content_of(make(adapter).__dlpack__(max_version=(1, 99)))
    assert content.major == 1


@spec("capsule.newer-major", PYTHON, "The version is the newest that the consumer knows.")
def test_for_a_later_major_version_a_capsule_of_version_1_comes(adapter):
    capsule = make(adapter).__dlpack__(max_version=(2, 0))
    assert name_of(capsule) == LEGACY or content_of(capsule).major == 1


@spec("capsule.flags", DLPACK, "Other bits are reserved.")
def test_only_known_flags_are_set(adapter):
    assert export(make(adapter)).flags & ~KNOWN_FLAGS == 0


@spec("capsule.fresh", PYTHON, "A capsule is consumed once.")
def test_each_call_gives_a_new_capsule_and_struct(adapter):
    array = make(adapter)
    first, second = (array.__dlpack__(max_version=(1, 1)) for _ in range(2))
    assert first is not second
    assert ctypes.addressof(content_of(first)) != ctypes.addressof(content_of(second))


@spec("capsule.read-only", DLPACK, "A consumer may write to what is not marked.")
def test_a_read_only_array_has_the_flag(adapter):
    array = adapter.make_readonly(make(adapter))
    assert export(array).flags & READ_ONLY


@convention("capsule.read-only-legacy", PYTHON, "The old struct cannot say it, so it is not given.")
def test_a_read_only_array_has_no_legacy_capsule(adapter):
    array = adapter.make_readonly(make(adapter))
    with refused():
        array.__dlpack__()


@convention("capsule.writable", DLPACK, "An array that can be written says so.")
def test_a_writable_array_lacks_the_flag(adapter):
    for values in (VALUES, np.float32(2.5).reshape(())):
        assert not export(make(adapter, values)).flags & READ_ONLY


# The tensor.


@spec("tensor.address", DLPACK, "The first element is at data + byte_offset.")
def test_the_address_is_that_of_the_first_element(adapter):
    array = make(adapter)
    assert first_element(export(array).dl_tensor) == adapter.address(array)


@spec("tensor.legacy", DLPACK, "Both structs describe one array.")
def test_both_structs_say_the_same(adapter):
    array = make(adapter)
    tensors = [export(array).dl_tensor, content_of(legacy_capsule(array)).dl_tensor]
    assert len({first_element(tensor) for tensor in tensors}) == 1
    assert len({integers(tensor.shape, tensor.ndim) for tensor in tensors}) == 1


@spec("tensor.shape", DLPACK, "Extents are int64_t, the outermost first.")
def test_the_shape_is_that_of_the_array(adapter):
    tensor = export(make(adapter)).dl_tensor
    assert integers(tensor.shape, tensor.ndim) == SHAPE


@spec("tensor.strides", DLPACK, "Strides are in elements, and not null since version 1.2.")
def test_the_strides_are_in_elements_and_not_null(adapter):
    content = export(make(adapter))
    tensor = content.dl_tensor
    if not tensor.strides:
        assert (content.major, content.minor) < (1, 2)
    else:
        assert integers(tensor.strides, tensor.ndim) == compact_strides(SHAPE)


@spec("tensor.values", DLPACK, "The memory itself is passed.")
def test_the_memory_holds_the_values(adapter):
    array = make(adapter, kind=readable_kind(adapter))
    tensor = export(array).dl_tensor
    assert ctypes.string_at(first_element(tensor), VALUES.nbytes) == VALUES.tobytes()


@spec("tensor.lanes", DLPACK, "One element is a vector of lanes.")
def test_a_scalar_has_one_lane(adapter):
    assert export(make(adapter)).dl_tensor.lanes == 1


@spec("tensor.dtype", DLPACK, "Code and bits name the type; a complex number counts both parts.")
def test_the_dtypes_are_named(adapter):
    for name in adapter.dtypes:
        tensor = export(make(adapter, np.ones(4, name))).dl_tensor
        assert (name, tensor.code, tensor.bits) == (name, *DTYPES[name])


@spec("tensor.rank-0", DLPACK, "A scalar has no extents.")
def test_an_array_without_dimensions_has_rank_0(adapter):
    array = make(adapter, np.float32(2.5).reshape(()))
    tensor = export(array).dl_tensor
    assert tensor.ndim == 0
    assert first_element(tensor) == adapter.address(array)


@spec("tensor.empty", ARRAY_API, "Arrays without elements are arrays.")
def test_an_empty_array_keeps_its_shape(adapter):
    tensor = export(make(adapter, np.ones((0, 4), "f4"))).dl_tensor
    assert integers(tensor.shape, tensor.ndim) == (0, 4)


@each(
    "name",
    (spec("tensor.strided", DLPACK, "A view with gaps is the same memory."), "strided"),
    (spec("tensor.transposed", DLPACK, "The order of dimensions is in the strides."), "transposed"),
    (spec("tensor.reversed", DLPACK, "Strides are signed, from the first element."), "reversed"),
    (spec("tensor.broadcast", DLPACK, "A stride may be 0."), "broadcast"),
)
def test_a_view_keeps_its_strides_and_first_element(adapter, name):
    shape, strides, _ = LAYOUTS[name]
    array = make_layout(adapter, name)
    tensor = export(array).dl_tensor
    assert integers(tensor.shape, tensor.ndim) == shape
    assert integers(tensor.strides, tensor.ndim) == strides
    assert first_element(tensor) == adapter.address(array)


@spec("tensor.large-rank", DLPACK, "The rank is not bounded by the standard.")
def test_an_array_of_many_dimensions_is_exported(adapter):
    tensor = export(make(adapter, np.ones((1, 2) * 4, "f4"))).dl_tensor
    assert integers(tensor.shape, tensor.ndim) == (1, 2) * 4


# The keywords.


@spec("keywords.defaults", ARRAY_API, "A consumer passes what the standard names.")
def test_all_keywords_are_known(adapter):
    make(adapter).__dlpack__(stream=None, max_version=(1, 1), dl_device=None, copy=None)


@spec("keywords.own-device", ARRAY_API, "A consumer may name the device that the array is on.")
def test_the_own_device_may_be_asked_for(adapter):
    array = make(adapter)
    tensor = export(array, dl_device=array.__dlpack_device__()).dl_tensor
    assert first_element(tensor) == adapter.address(array)


@spec("keywords.no-copy", ARRAY_API, "copy=False never copies.")
def test_copy_false_gives_the_memory_itself(adapter):
    array = make(adapter)
    content = export(array, copy=False)
    assert first_element(content.dl_tensor) == adapter.address(array)
    assert not content.flags & IS_COPIED


@spec("keywords.copy", ARRAY_API, "copy=True always copies, and the flag says so.")
def test_copy_true_gives_other_memory_and_says_so(adapter):
    array = make(adapter)
    content = export(array, copy=True)
    assert first_element(content.dl_tensor) != adapter.address(array)
    assert content.flags & IS_COPIED


@spec("keywords.copy-values", ARRAY_API, "A copy has the values, and is independent.")
def test_a_copy_has_the_values(adapter):
    array = make(adapter, kind=readable_kind(adapter))
    tensor = export(array, dl_device=(CPU, 0), copy=True).dl_tensor
    assert tensor.device_type == CPU
    address = first_element(tensor)
    assert ctypes.string_at(address, VALUES.nbytes) == VALUES.tobytes()
    ctypes.memset(address, 0, VALUES.nbytes)
    assert adapter.to_bytes(array) == VALUES.tobytes()


@spec("keywords.other-device", ARRAY_API, "What cannot be done is a BufferError.")
def test_a_device_that_is_not_there_is_a_buffer_error(adapter):
    for device in ((2, 0), (ONEAPI, 99), (8, 0)):
        array = make(adapter)
        with refused(BufferError):
            array.__dlpack__(max_version=(1, 1), dl_device=device)


@spec("keywords.host", ARRAY_API, "dl_device=(1, 0) asks for memory of the host.")
def test_the_host_gets_the_values(adapter):
    for kind in adapter.kinds:
        content = export(make(adapter, kind=kind), dl_device=(1, 0))
        tensor = content.dl_tensor
        assert (kind, tensor.device_type, tensor.device_id) == (kind, 1, 0)
        assert ctypes.string_at(first_element(tensor), VALUES.nbytes) == VALUES.tobytes()


@spec("keywords.host-flag", ARRAY_API, "A copy that nobody asked for must be seen, too.")
def test_a_copy_on_the_host_says_so(adapter):
    for kind in adapter.kinds:
        array = make(adapter, kind=kind)
        content = export(array, dl_device=(1, 0))
        is_copy = first_element(content.dl_tensor) != adapter.address(array)
        assert (kind, bool(content.flags & IS_COPIED)) == (kind, is_copy)


@spec("keywords.host-no-copy", ARRAY_API, "A copy that is needed and forbidden is a BufferError.")
def test_device_usm_is_not_copied_to_the_host_if_that_is_forbidden(adapter):
    if "device" not in adapter.kinds:
        raise NotSupportedError("it makes no device USM")
    array = make(adapter, kind="device")
    with refused(BufferError):
        array.__dlpack__(max_version=(1, 1), dl_device=(1, 0), copy=False)


@spec("keywords.host-views", ARRAY_API, "Also views with gaps go to the host.")
def test_the_host_gets_the_values_of_views(adapter):
    for name, (_, _, values) in LAYOUTS.items():
        tensor = export(make_layout(adapter, name), dl_device=(1, 0)).dl_tensor
        assert tensor.device_type == CPU
        shape, strides = (integers(part, tensor.ndim) for part in (tensor.shape, tensor.strides))
        address = first_element(tensor)
        found = [
            ctypes.c_float.from_address(address + 4 * int(np.dot(index, strides))).value
            for index in np.ndindex(*shape)
        ]
        assert (name, found) == (name, values.reshape(-1).tolist())


# Streams.


@convention("stream.minus-one", ORDER, "-1 asks for no synchronisation, as for CUDA.")
def test_stream_minus_one_is_taken(adapter):
    make(adapter).__dlpack__(stream=-1, max_version=(1, 1))


@convention("stream.queue", GUIDE, "For SYCL the stream is a queue of dpctl.")
def test_a_queue_is_taken(adapter):
    queue = adapter.queues()[0]
    make(adapter, queue=queue).__dlpack__(stream=queue, max_version=(1, 1))


@pytest.mark.alone
@convention("stream.nonsense", ARRAY_API, "A stream that is none is refused.")
def test_a_stream_that_is_none_is_refused(adapter):
    array = make(adapter)
    for stream in ("queue", 1.5, object()):
        with refused():
            array.__dlpack__(stream=stream, max_version=(1, 1))
