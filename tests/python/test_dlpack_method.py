# SPDX-License-Identifier: Apache-2.0
"""DLPackTensor.__dlpack__: what each keyword gives, and what it refuses."""

import enum
import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from capsules import (
    IS_COPIED,
    IS_SUBBYTE_TYPE_PADDED,
    LEGACY,
    NEWEST,
    READ_ONLY,
    VERSIONED,
    bytes_on_host,
    content_of,
    name_of,
)
from memory_sources import TypedArray, address_of, allocate, owned
from refusals import refused
from usm_dlpack import _core, to_dlpack_tensor, validate

HOST = (1, 0)
OF_THE_ARRAY_API = enum.Enum("DeviceType", {"ONE_API": 14})


def flags_of(capsule: Any) -> int:
    return int(content_of(capsule).flags)


@pytest.mark.parametrize("version", [(0, 99), (1, 99), (2**70, 0)])
def test_the_capsule_is_of_the_newest_version_that_both_know(tensor, version):
    capsule = tensor.__dlpack__(max_version=version)
    assert name_of(capsule) == (VERSIONED if version[0] else LEGACY)
    if version[0]:
        managed = content_of(capsule)
        assert ((managed.major, managed.minor), managed.flags) == (NEWEST, 0)


class BadIndex:
    """An object that promises to be an integer and fails."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __index__(self) -> int:
        raise self.error("no integer")


SENSELESS = {
    "max_version": ["1.3", (1, 3, 0), (1.0, 0), (-1, 0), (1, -1), [1, 3], (1, BadIndex(OSError))],
    "dl_device": [(1, 1), (2, 63), "cpu", (1.0, 0), (14, 2**31), (14, 2**70), [14, 0]],
    "copy": ["no", 2, 1.0, (), np.array([1, 0]), np.int64(1), 10**5000, BadIndex(TypeError)],
}


@pytest.mark.parametrize(
    ("keyword", "value"),
    [(name, value) for name in SENSELESS for value in SENSELESS[name]],
    ids=_core.text_of,
)
def test_a_value_that_makes_no_sense_is_a_buffer_error(memory, keyword, value):
    """NumPy and dpctl take a TypeError for "old producer", and ask again without keywords."""
    tensor, gone = owned(memory)
    with refused("request_unsupported", keyword, found=_core.text_of(value)):
        tensor.__dlpack__(**{keyword: value})
    del tensor
    gc.collect()
    assert gone() is None


def test_what_ends_the_program_is_no_refusal(tensor):
    with pytest.raises(KeyboardInterrupt):
        tensor.__dlpack__(max_version=(1, BadIndex(KeyboardInterrupt)))


@pytest.mark.parametrize("copy", [None, True])
def test_the_flags_are_those_of_the_memory_or_of_the_copy(memory, copy):
    array = TypedArray(memory, data=(address_of(memory), True))
    read_only, padded = to_dlpack_tensor(array), to_dlpack_tensor(memory, dtype=ml_dtypes.int4)
    copied = IS_COPIED if copy else 0
    keywords = {"max_version": NEWEST, "copy": copy}
    assert flags_of(read_only.__dlpack__(**keywords)) == (copied or READ_ONLY)
    capsule = padded.__dlpack__(**keywords)
    assert flags_of(capsule) == IS_SUBBYTE_TYPE_PADDED | copied
    assert validate(capsule).nbytes == 48


@pytest.mark.parametrize("copy", [None, False, np.False_])
@pytest.mark.parametrize("device", [(np.int32(14), 0), (OF_THE_ARRAY_API(14), 0)], ids=str)
def test_integers_and_flags_may_be_of_other_types(tensor, device, copy):
    content = content_of(tensor.__dlpack__(dl_device=device, max_version=NEWEST, copy=copy))
    inside = content.dl_tensor
    assert (content.flags, inside.device_type, inside.data) == (0, 14, tensor.data)


@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize("readonly", [False, True])
def test_the_host_gets_the_memory_itself_or_a_copy(usm_type, readonly, copy, queue):
    owner = allocate(usm_type, 48, queue)
    tensor = to_dlpack_tensor(TypedArray(owner, data=(address_of(owner), readonly)))
    keywords = {"dl_device": HOST, "max_version": NEWEST, "copy": copy}
    if usm_type == "device" and copy is False:
        with refused("copy_needed", "copy", expected="for device USM on the host", found="False"):
            tensor.__dlpack__(**keywords)
        return
    capsule = tensor.__dlpack__(**keywords)
    is_copy = usm_type == "device" or copy is True
    assert flags_of(capsule) == (IS_COPIED if is_copy else READ_ONLY * readonly)
    assert bytes_on_host(capsule) == bytes(range(48))
    address = content_of(capsule).dl_tensor.data
    assert (address == tensor.data) is not is_copy
    assert address % 256 == 0 or not is_copy
    array = np.from_dlpack(tensor, device="cpu", copy=copy)
    assert (array.ctypes.data == tensor.data) is not is_copy
    assert array.flags.writeable is (is_copy or not readonly)
