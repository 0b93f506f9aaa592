# SPDX-License-Identifier: Apache-2.0
"""DLPackTensor.__dlpack__: what each keyword gives, what it refuses, and who lives how long."""

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
    OldArray,
    bytes_on_host,
    content_of,
    name_of,
)
from memory_sources import TypedArray, address_of, allocate, check_bounds, owned
from refusals import refused
from usm_dlpack import _core, from_dlpack, to_dlpack_tensor, validate

HOST = (1, 0)


def flags_of(capsule: Any) -> int:
    return int(content_of(capsule).flags)


@pytest.mark.parametrize("version", [None, (0, 99), (1, 0), (1, 99), (2**70, 0)])
def test_the_capsule_is_one_that_the_consumer_knows(tensor, version):
    capsule = tensor.__dlpack__(max_version=version)
    managed = content_of(capsule)
    assert managed.deleter is not None
    if version is None or version[0] == 0:
        assert name_of(capsule) == LEGACY
    else:
        assert name_of(capsule) == VERSIONED
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


@pytest.mark.parametrize("keywords", [{}, {"max_version": (0, 8)}, {"copy": False}], ids=str)
def test_a_legacy_capsule_cannot_say_read_only_which_a_copy_is_not(memory, keywords):
    read_only = to_dlpack_tensor(TypedArray(memory, data=(address_of(memory), True)))
    assert flags_of(read_only.__dlpack__(max_version=NEWEST)) == READ_ONLY
    with refused("read_only", "flags", found="read-only", remedy="max_version=(1, 0)"):
        read_only.__dlpack__(**keywords)
    assert flags_of(read_only.__dlpack__(max_version=NEWEST, copy=True)) == IS_COPIED
    assert name_of(read_only.__dlpack__(copy=True)) == LEGACY


@pytest.mark.parametrize("copy", [None, True])
def test_a_legacy_capsule_cannot_say_padded_which_a_copy_is_too(memory, copy):
    padded = to_dlpack_tensor(memory, dtype=ml_dtypes.float4_e2m1fn)
    with refused("dtype_unsupported", "flags", found="padded"):
        padded.__dlpack__(copy=copy)
    copied = padded.__dlpack__(max_version=NEWEST, copy=True)
    assert flags_of(copied) == IS_SUBBYTE_TYPE_PADDED | IS_COPIED
    assert validate(copied).nbytes == 48


OF_THE_ARRAY_API = enum.Enum("DeviceType", {"ONE_API": 14})


@pytest.mark.parametrize("copy", [None, False, np.False_])
@pytest.mark.parametrize(
    "device", [None, (14, 0), (np.int32(14), 0), (OF_THE_ARRAY_API(14), 0)], ids=str
)
def test_the_own_device_may_be_named_and_gets_the_memory_itself(tensor, device, copy):
    content = content_of(tensor.__dlpack__(dl_device=device, max_version=NEWEST, copy=copy))
    inside = content.dl_tensor
    assert (content.flags, inside.device_type, inside.data) == (0, 14, tensor.data)


@pytest.mark.parametrize("copy", [None, False])
@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("kind", ["host", "shared"])
def test_memory_that_the_host_can_read_goes_there_without_a_copy(kind, readonly, copy, queue):
    owner = allocate(kind, 48, queue)
    tensor = to_dlpack_tensor(TypedArray(owner, data=(address_of(owner), readonly)))
    capsule = tensor.__dlpack__(dl_device=HOST, max_version=NEWEST, copy=copy)
    assert flags_of(capsule) == (READ_ONLY if readonly else 0)
    assert content_of(capsule).dl_tensor.data == tensor.data
    assert bytes_on_host(capsule) == bytes(range(48))
    array = np.from_dlpack(tensor, device="cpu")
    assert array.ctypes.data == tensor.data
    assert array.flags.writeable is not readonly


@pytest.mark.parametrize(("kind", "copy"), [("device", None), ("device", True), ("host", True)])
def test_what_goes_to_the_host_as_a_copy(kind, copy, queue):
    source = to_dlpack_tensor(allocate(kind, 48, queue))
    capsule = source.__dlpack__(dl_device=HOST, max_version=NEWEST, copy=copy)
    assert flags_of(capsule) == IS_COPIED
    assert content_of(capsule).dl_tensor.data != source.data
    assert content_of(capsule).dl_tensor.data % 256 == 0
    assert bytes_on_host(capsule) == bytes(range(48))


def test_the_host_copy_of_device_memory_is_of_its_own_and_must_be_allowed(tensor, memory):
    np.from_dlpack(tensor, device="cpu")[:] = 7
    assert bytes(memory.copy_to_host()) == bytes(range(48))
    with refused("copy_needed", "copy", expected="for device USM on the host", found="False"):
        tensor.__dlpack__(dl_device=HOST, copy=False)


def test_a_copy_is_other_memory_of_the_same_kind(usm_type, queue):
    tensor = to_dlpack_tensor(allocate(usm_type, 48, queue), shape=(3, 4), dtype="f4")
    capsule = tensor.__dlpack__(max_version=NEWEST, copy=np.True_)
    assert flags_of(capsule) == IS_COPIED
    proof = validate(capsule)
    assert (proof.usm_type, proof.device_id) == (usm_type, 0)
    assert proof.data != tensor.data
    copied = from_dlpack(OldArray(capsule))
    check_bounds(proof, copied)
    assert copied.numpy().tobytes() == bytes(range(48))


def test_a_copy_does_not_need_the_tensor_any_more(memory):
    tensor, gone = owned(memory)
    copied = tensor.__dlpack__(copy=True, max_version=NEWEST)
    capsule = tensor.__dlpack__(dl_device=HOST, max_version=NEWEST)
    del tensor
    assert gone() is None
    memory.copy_from_host(np.zeros(48, np.uint8))
    assert bytes_on_host(capsule) == bytes(range(48))
    again = from_dlpack(OldArray(copied)).__dlpack__(dl_device=HOST)
    assert bytes_on_host(again) == bytes(range(48))


def test_what_ends_the_program_is_no_refusal(tensor):
    with pytest.raises(KeyboardInterrupt):
        tensor.__dlpack__(max_version=(1, BadIndex(KeyboardInterrupt)))


BEGIN = """
import atexit, gc, sys
import dpctl.memory, numpy, usm_dlpack
from memory_sources import TypedArray

def make(kind=dpctl.memory.MemoryUSMDevice):
    return usm_dlpack.to_dlpack_tensor(kind(64), dtype="float32")
"""

ENDS: dict[str, str] = {
    "objects in globals": """
a = make(); b = usm_dlpack.from_dlpack(a)
c = a.__dlpack__(); d = a.__dlpack__(max_version=(1, 3)); e = make().__dlpack__(max_version=(1, 3))
f = a.__dlpack__(copy=True); g = a.__dlpack__(dl_device=(1, 0))
h = numpy.from_dlpack(make(dpctl.memory.MemoryUSMShared), device='cpu')
import tvm_ffi; i = tvm_ffi.from_dlpack(make())
p = usm_dlpack.validate(make()); q = p.root_device; r = p.sycl_context
sys.keep = make(); usm_dlpack.keep = sys.keep.__dlpack__()
try:
    usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMHost(8), shape=9)
except usm_dlpack.ConversionError as error:
    sys.last_refusal = error
sys.exit(0)
""",
    "cycles that nobody collects": """
gc.disable()
owner = TypedArray(dpctl.memory.MemoryUSMHost(64))
owner.tensor = usm_dlpack.to_dlpack_tensor(owner)
del owner
a = make()
class Holder: pass
a_holder = Holder()
a_holder.self, a_holder.tensor, a_holder.capsule = a_holder, a, a.__dlpack__()
del a, a_holder
""",
    "exports at the end": """
a = make()
class Late:
    def __del__(self, tensor=a, take=usm_dlpack.from_dlpack):
        take(tensor)
late = Late()
atexit.register(lambda: usm_dlpack.from_dlpack(a))
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_in_silence_and_frees_all_with(end, succeed):
    assert succeed(f"{BEGIN}\n{ENDS[end]}\n", USM_DLPACK_REPORT_LEAKS="1") == ""
