# SPDX-License-Identifier: Apache-2.0
"""Device ids and root devices, and exchanges between three of them."""

import pytest

BEGIN = """
import dpctl, dpctl.memory, numpy
import usm_dlpack
from c_exchange_api import ExchangeAPI
from capsules import IS_COPIED, ForeignTensor, OldArray, content_of, package_queue
from memory_sources import TypedArray, address_of, allocate as make_memory, new_queue
from pending_work import VALUES, PendingFill, answer_behind
from refusals import refused
from usm_dlpack import device_id, empty, from_dlpack, root_device, to_dlpack_tensor, validate

devices = dpctl.get_devices()
KINDS = ("device", "shared", "host")
values = numpy.arange(64, dtype=numpy.uint8).view("f4").reshape(4, 4)
one_platform = len(devices) > 1 and devices[0].sycl_platform == devices[1].sycl_platform
OF_A_ROOT = KINDS[:2] if one_platform else KINDS  # host USM is of a whole platform
WAYS = [(start, 1 - start, kind) for start in (0, 1) for kind in OF_A_ROOT]

def allocate(number, kind="device"):
    return make_memory(kind, 64, new_queue(devices[number]))

def make(number, kind):
    return to_dlpack_tensor(allocate(number, kind), shape=(4, 4), dtype="f4")
"""

# What a process with three root devices does, in silence.
PROGRAMS = {
    "each device and its memory have the id of its place": """
places = "from 0 to 2 (root devices in this process)"
with refused("no_device", "device.device_id", expected=places, found="3"):
    root_device(3)
api = ExchangeAPI(usm_dlpack.DLPackTensor)
for number, device in enumerate(devices):
    assert device_id(device) == number
    assert root_device(number) == device
    assert api.queue(number).sycl_device == device
    assert api.queue(number) == package_queue(number)
    named = TypedArray(allocate(number), syclobj=device.get_filter_string())
    assert to_dlpack_tensor(named).device == (14, number)
    for kind in KINDS:
        tensor = to_dlpack_tensor(allocate(number, kind), queue=new_queue(device))
        again = from_dlpack(tensor)
        copied = from_dlpack(tensor, copy=True)
        proof = validate(copied)
        assert tensor.device == again.device == copied.device == (14, number)
        assert tensor.sycl_device == again.sycl_device == proof.root_device == device
        assert (tensor.sycl_context, kind) == (proof.sycl_context, proof.usm_type)
        assert bytes(numpy.from_dlpack(copied, device="cpu")) == bytes(range(64))
""",
    "an array for the host in shared usm of another root device is copied": """
owner = allocate(1, "shared")
foreign = ForeignTensor(address_of(owner), shape=(4, 4))
foreign.tensor.device_type = 1
here, there = (from_dlpack(foreign.capsule(), device=(14, number)) for number in (1, 0))
assert (here.data, here.device) == (address_of(owner), (14, 1))
assert (there.data != address_of(owner), there.device) == (True, (14, 0))
assert numpy.array_equal(there.numpy(), values)
for kind in KINDS:
    for source in (owner, allocate(1, "host")):
        written = empty((4, 4), "f4", device=(14, 0), usm_type=kind)
        written.copy_from(numpy.asarray(memoryview(source)).view("f4").reshape(4, 4))
        assert numpy.array_equal(written.numpy(), values)
""",
    "from_dlpack copies to another device": """
for start, end, kind in WAYS:
    queue = new_queue(devices[end])
    tensor = make(start, kind)
    for wanted in (None, *KINDS):
        for device in ((14, end), devices[end], queue, devices[end].get_filter_string()):
            made = from_dlpack(tensor, device=device, usm_type=wanted)
            assert (made.device, made.sycl_device) == ((14, end), devices[end])
            assert made.usm_type == (wanted or kind)
            assert validate(made).device_id == end
            assert numpy.array_equal(made.numpy(), values)
            assert made.sycl_queue == (queue if device is queue else package_queue(end))
        assert from_dlpack(values[::-1], device=(14, end), usm_type=wanted).device == (14, end)
    with refused("copy_needed", "copy", found="False"):
        from_dlpack(tensor, device=(14, end), copy=False)
    gaps = dict(shape=(2, 2), strides=(-8, 2), dtype="f4", byte_offset=32)
    made = from_dlpack(to_dlpack_tensor(allocate(start, kind), **gaps), device=queue)
    assert (made.strides, made.numpy().tolist()) == ((2, 1), values[2::-2, ::2].tolist())
    none = from_dlpack(to_dlpack_tensor(tensor, shape=(0, 3)), device=(14, end))
    assert (none.shape, none.device) == ((0, 3), (14, end))
""",
    "copy_from copies to another device": """
for start, end, kind in WAYS:
    for wanted in KINDS:
        made = empty((4, 4), device=(14, end), usm_type=wanted)
        assert made.device == (14, end)
        made.copy_from(make(start, kind))
        assert numpy.array_equal(made.numpy(), values)
        into = empty((4, 8), device=(14, end), usm_type=wanted)
        every = dict(shape=(4, 4), strides=(8, 2), byte_offset=4)
        to_dlpack_tensor(into, **every).copy_from(make(start, kind))
        assert numpy.array_equal(into.numpy()[:, 1::2], values)
        reversed_ = dict(shape=(4, 4), strides=(-4, -1), byte_offset=60)
        made.copy_from(to_dlpack_tensor(make(start, kind), **reversed_))
        assert numpy.array_equal(made.numpy(), values[::-1, ::-1])
""",
    "dl_device of another device is a copy there": """
for start, end, kind in WAYS:
    tensor = make(start, kind)
    for copy in (None, True):
        capsule = tensor.__dlpack__(dl_device=(14, end), max_version=(1, 3), copy=copy)
        inside = content_of(capsule)
        assert (inside.flags, inside.dl_tensor.device_id) == (IS_COPIED, end)
        assert validate(capsule).usm_type == kind
        made = from_dlpack(OldArray(capsule))
        assert numpy.array_equal(made.numpy(), values)
        assert made.sycl_device == devices[end]
    legacy = tensor.__dlpack__(dl_device=(14, end), stream=new_queue(devices[end]))
    assert numpy.array_equal(from_dlpack(OldArray(legacy)).numpy(), values)
    same = tensor.__dlpack__(dl_device=(14, start), max_version=(1, 3))
    assert content_of(same).flags == 0
    with refused("copy_needed", "copy", found="False"):
        tensor.__dlpack__(dl_device=(14, end), copy=False)
    with refused("no_device", "device.device_id", found="3"):
        tensor.__dlpack__(dl_device=(14, 3))
""",
    "pending work is waited for before a copy to another device": """
for start, end, kind in {*WAYS, (0, 1, "host"), (1, 0, "host")}:
    pending = PendingFill(new_queue(devices[start]), kind)
    tensor = to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue)
    queue = new_queue(devices[end])
    call = lambda: from_dlpack(tensor, device=queue).numpy().tolist()
    assert answer_behind(pending, call) == VALUES
""",
    "the id of another device is refused unless host memory is of its platform": """
for kind in KINDS:
    memory = allocate(1, kind)
    foreign = ForeignTensor(address_of(memory))
    capsule = foreign.capsule()
    foreign.tensor.device_id = 1
    assert validate(capsule).device_id == 1
    foreign.tensor.device_id = 0
    if kind not in OF_A_ROOT:
        assert validate(capsule).device_id == 0
        continue
    for act in (validate, from_dlpack):
        with refused("device_mismatch", "device.device_id", expected="1 (the root", found="0"):
            act(capsule)
""",
    "a queue or context of another device is refused": """
memory, queue = allocate(1), new_queue(devices[0])
with refused("device_mismatch", "queue"):
    to_dlpack_tensor(memory, queue=queue)
claims = TypedArray(memory, syclobj=queue)
if one_platform:  # of one context, which knows the memory
    assert to_dlpack_tensor(claims).device == (14, 1)
else:
    with refused("pointer_unknown", "data"):
        to_dlpack_tensor(claims)
assert to_dlpack_tensor(memory, queue=new_queue(devices[1])).device == (14, 1)
# No queue works on an empty tensor.
to_dlpack_tensor(memory, shape=0).copy_from(b"", queue=queue)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_among_three_root_devices(name, succeed, several_devices):
    assert succeed(BEGIN + PROGRAMS[name], **several_devices(3)) == ""
