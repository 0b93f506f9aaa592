# SPDX-License-Identifier: Apache-2.0
"""Device ids and root devices, in processes with one, two, three, a broken and no root device."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clean_environment
import dpctl
import pytest
from capsules import IS_COPIED
from refusals import refused, wrong_argument
from usm_dlpack import device_id, root_device

# --- in this process, which has one root device


def test_what_is_no_device_is_a_type_error(queue: Any) -> None:
    for wrong in (None, 0, "cpu:0", (14, 0), dpctl.SyclDevice, queue, queue.sycl_context):
        with wrong_argument(TypeError, "device", "expected a dpctl.SyclDevice"):
            device_id(wrong)


@pytest.mark.parametrize(
    ("number", "expected", "found"),
    [
        (1, "from 0 to 0 (root devices in this process)", "1"),
        (-1, "from 0 to 0 (root devices in this process)", "-1"),
        (-(2**31), "from 0 to 0", str(-(2**31))),
        (2**31, "an int32_t", str(2**31)),
        (-(2**31) - 1, "an int32_t", str(-(2**31) - 1)),
        (10**5000, "an int32_t", "an int of 16610 bits"),
    ],
    ids=lambda value: str(value)[-12:] if isinstance(value, str) else "",
)
def test_an_id_that_no_device_has_is_refused(number: int, expected: str, found: str) -> None:
    with refused("device_id_out_of_range", "device.device_id", expected=expected, found=found):
        root_device(number)


def test_an_id_that_is_no_integer_is_a_type_error() -> None:
    for number in (None, 0.0, "0", (14, 0)):
        with pytest.raises(TypeError, match="expected an int"):
            root_device(number)  # type: ignore[arg-type]


# --- in processes of their own

BEGIN = """
import json
import dpctl, dpctl.memory, numpy
import usm_dlpack
from capsules import ForeignTensor, OldArray, content_of
from memory_sources import new_queue
from usm_dlpack import ConversionError, device_id, from_dlpack, root_device, to_dlpack_tensor
from usm_dlpack import validate

devices = dpctl.get_devices()
KINDS = {
    "device": dpctl.memory.MemoryUSMDevice,
    "shared": dpctl.memory.MemoryUSMShared,
    "host": dpctl.memory.MemoryUSMHost,
}

def allocate(device, kind="device", nbytes=64):
    memory = KINDS[kind](nbytes, queue=new_queue(device))
    memory.copy_from_host(numpy.arange(nbytes, dtype=numpy.uint8))
    return memory

values = numpy.arange(64, dtype=numpy.uint8).view("f4").reshape(4, 4)

def make(number, kind):
    return to_dlpack_tensor(allocate(devices[number], kind), shape=(4, 4), dtype="f4")

class Claims:
    def __init__(self, memory, syclobj):
        interface = memory.__sycl_usm_array_interface__
        self.memory = memory
        self.__sycl_usm_array_interface__ = interface | {"syclobj": syclobj}

def refusal(action):
    try:
        action()
    except ConversionError as error:
        return [type(error).__name__, error.code, error.field, error.expected, error.found]
    return None
"""


@pytest.fixture(scope="session")
def answer(succeed: Callable[..., str]) -> Callable[..., Any]:
    """Return a function that runs code with some variables and gives the ``answer`` it leaves."""

    def run(variables: dict[str, str], code: str) -> Any:
        whole = f"{BEGIN}\n{code}\nprint(json.dumps(answer))\n"
        return json.loads(succeed(whole, PYTHONPATH=str(Path(__file__).parent), **variables))

    return run


@pytest.fixture(scope="session", params=[2, 3], ids=["two devices", "three devices"])
def count(request: pytest.FixtureRequest) -> int:
    """Return how many root devices a process has: two, and three."""
    return int(request.param)


@pytest.fixture(scope="session")
def variables(count: int, several_devices: Callable[[int], dict[str, str]]) -> dict[str, str]:
    """Return the variables of a process with two and with three root devices."""
    return several_devices(count)


def test_each_device_and_its_memory_have_the_id_of_its_place(
    variables: dict[str, str], count: int, answer: Callable[..., Any]
) -> None:
    found = answer(
        variables,
        """
answer = {"beyond": refusal(lambda: root_device(len(devices))), "exported": []}
for number, device in enumerate(devices):
    assert device_id(device) == number
    assert root_device(number) == device
    named = Claims(allocate(device), device.get_filter_string())
    assert to_dlpack_tensor(named).device == (14, number)
    for kind in KINDS:
        memory = allocate(device, kind)
        tensor = to_dlpack_tensor(memory, queue=dpctl.SyclQueue(device))
        again = from_dlpack(tensor)
        copied = from_dlpack(tensor, copy=True)
        proof = validate(copied)
        assert tensor.sycl_device == again.sycl_device == proof.root_device == device
        assert tensor.sycl_context == proof.sycl_context
        assert f"(14, {number}) {device.name.strip()}" in tensor._repr_html_()
        assert bytes(numpy.from_dlpack(copied, device="cpu")) == bytes(range(64))
        answer["exported"].append([tensor.device, again.device, copied.device, proof.usm_type])
""",
    )
    expected = f"from 0 to {count - 1} (root devices in this process)"
    code = "device_id_out_of_range"
    assert found["beyond"] == ["ConversionError", code, "device.device_id", expected, str(count)]
    assert found["exported"] == [
        [*[[14, number]] * 3, kind]
        for number in range(count)
        for kind in ("device", "shared", "host")
    ]


def test_opencl_sub_devices_have_the_id_of_their_root(
    variables: dict[str, str], count: int, answer: Callable[..., Any]
) -> None:
    code = "answer = [device_id(d.create_sub_devices(partition=1)[1]) for d in devices]"
    assert answer(variables, code) == list(range(count))


def test_the_id_of_another_device_is_refused_unless_host_memory_is_of_its_platform(
    variables: dict[str, str], answer: Callable[..., Any]
) -> None:
    found = answer(
        variables,
        """
answer = {"device": [], "shared": [], "host": []}
for kind, codes in answer.items():
    memory = allocate(devices[1], kind)
    foreign = ForeignTensor(memory._pointer)
    array = OldArray(foreign.capsule())
    foreign.tensor.device_id = 1
    assert validate(array.answer).device_id == 1
    foreign.tensor.device_id = 0
    codes.append(refusal(lambda: validate(array.answer)))
    if kind != "host":
        codes.append(refusal(lambda: from_dlpack(array)))
answer["one platform"] = devices[0].sycl_platform == devices[1].sycl_platform
""",
    )
    refusal = ["UsmBindingError", "device_mismatch", "device.device_id"]
    assert found["device"] == found["shared"]
    assert found["shared"] == [[*refusal, "1 (the root device of the memory)", "0"]] * 2
    (host,) = found["host"]
    assert host is None if found["one platform"] else host[:3] == refusal


def test_a_queue_or_context_of_another_device_is_refused(
    variables: dict[str, str], answer: Callable[..., Any]
) -> None:
    found = answer(
        variables,
        """
memory = allocate(devices[1])
claims = Claims(memory, dpctl.SyclQueue(devices[0]))
answer = [
    refusal(lambda: to_dlpack_tensor(memory, queue=dpctl.SyclQueue(devices[0]))),
    refusal(lambda: to_dlpack_tensor(claims)),
]
if devices[0].sycl_platform == devices[1].sycl_platform:  # of one context, which knows the memory
    assert answer.pop() is None
    assert to_dlpack_tensor(claims).device == (14, 1)
assert to_dlpack_tensor(memory, queue=dpctl.SyclQueue(devices[1])).device == (14, 1)
""",
    )
    expected = [
        ["ConversionError", "queue_device_mismatch", "queue"],
        ["UsmBindingError", "pointer_unknown", "data"],
    ]
    assert [row[:3] for row in found] == expected[: len(found)]
    assert found


def test_the_selector_gives_new_ids(
    queue: Any, several_devices: Callable[[int], dict[str, str]], answer: Callable[..., Any]
) -> None:
    selector = f"{queue.sycl_device.backend.name}:1,2"
    found = answer(
        several_devices(3) | {"ONEAPI_DEVICE_SELECTOR": selector},
        "answer = [[device_id(d), to_dlpack_tensor(allocate(d)).device] for d in devices]",
    )
    assert found == [[0, [14, 0]], [1, [14, 1]]]


def test_a_broken_opencl_device_keeps_its_id_and_disturbs_no_other(
    driver: Path, driver_copies: Any, answer: Callable[..., Any]
) -> None:
    drivers = [driver, driver_copies["broken"], driver_copies["second"]]
    found = answer(
        {"OCL_ICD_FILENAMES": ":".join(map(str, drivers))},
        """
answer = {
    "ids": [device_id(device) for device in devices],
    "exported": [to_dlpack_tensor(allocate(devices[i])).device for i in (0, 2)],
    "root": refusal(lambda: root_device(1)),
}
""",
    )
    assert found["ids"] == [0, 1, 2]
    assert found["exported"] == [[14, 0], [14, 2]]
    kind, code, field, _, text = found["root"]
    assert (kind, code, field) == ("ConversionError", "device_failed", "device.device_id")
    assert text.startswith('device 1, for which it throws "')


@pytest.mark.parametrize(
    "variables",
    [
        {"USM_DLPACK_CPU_DRIVER": "0"},
        {"OCL_ICD_FILENAMES": "/nowhere/libnone.so"},
        {"ONEAPI_DEVICE_SELECTOR": "cuda:*"},
    ],
    ids=["no driver of opencl", "an opencl driver that is not there", "a selector that hides all"],
)
def test_a_process_without_a_device_says_what_to_do(
    variables: dict[str, str], answer: Callable[..., Any]
) -> None:
    remedy, *codes = answer(
        variables,
        """
try:
    root_device(0)
except ConversionError as error:
    answer = [error.remedy]
array = OldArray(ForeignTensor(64).capsule())
for act in (lambda: root_device(0), lambda: from_dlpack(array), lambda: validate(array.answer)):
    answer.append(refusal(act)[1:3])
""",
    )
    assert codes == [["no_device", "device.device_id"]] * 3
    assert "intel-opencl-rt" in remedy
    assert "OCL_ICD_FILENAMES" in remedy


# --- copies from one root device to another

# Host USM is of a whole platform, and all simulated devices are of one.
OF_A_ROOT = ["device", "shared"] if clean_environment.IS_SIMULATED else ["device", "shared", "host"]


def test_arrays_are_copied_between_root_devices_of_each_kind(
    several_devices: Callable[[int], dict[str, str]], answer: Callable[..., Any]
) -> None:
    found = answer(
        several_devices(2),
        f"OF_A_ROOT = {OF_A_ROOT}"
        """
answer = []
for start, end in ((0, 1), (1, 0)):
    queue = new_queue(devices[end])
    for kind in OF_A_ROOT:
        tensor = make(start, kind)
        for wanted in (None, *KINDS):
            for device in ((14, end), devices[end], queue, devices[end].get_filter_string()):
                made = from_dlpack(tensor, device=device, usm_type=wanted)
                assert (made.device, made.sycl_device) == ((14, end), devices[end])
                assert made.usm_type == (wanted or kind)
                assert validate(made).device_id == end
                assert numpy.array_equal(made.numpy(), values)
                assert made.sycl_queue == (queue if device is queue else None)
            assert from_dlpack(values[::-1], device=(14, end), usm_type=wanted).device == (14, end)
        answer.append(refusal(lambda: from_dlpack(tensor, device=(14, end), copy=False))[1:3])
        gaps = dict(shape=(2, 2), strides=(-8, 2), dtype="f4", byte_offset=32)
        made = from_dlpack(to_dlpack_tensor(allocate(devices[start], kind), **gaps), device=queue)
        assert (made.strides, made.numpy().tolist()) == ((2, 1), values[2::-2, ::2].tolist())
        empty = from_dlpack(to_dlpack_tensor(tensor, shape=(0, 3)), device=(14, end))
        assert (empty.shape, empty.device) == ((0, 3), (14, end))
""",
    )
    assert found == [["copy_needed", "copy"]] * 2 * len(OF_A_ROOT)


def test_dl_device_of_another_root_device_is_a_copy_there(
    several_devices: Callable[[int], dict[str, str]], answer: Callable[..., Any]
) -> None:
    found = answer(
        several_devices(2),
        f"OF_A_ROOT = {OF_A_ROOT}"
        """
answer = []
for start, end in ((0, 1), (1, 0)):
    for kind in OF_A_ROOT:
        tensor = make(start, kind)
        for copy in (None, True):
            capsule = tensor.__dlpack__(dl_device=(14, end), max_version=(1, 3), copy=copy)
            inside = content_of(capsule)
            assert inside.dl_tensor.device_id == end and validate(capsule).usm_type == kind
            answer.append(inside.flags)
            made = from_dlpack(OldArray(capsule))
            assert numpy.array_equal(made.numpy(), values)
            assert made.sycl_device == devices[end]
        legacy = tensor.__dlpack__(dl_device=(14, end), stream=new_queue(devices[end]))
        assert numpy.array_equal(from_dlpack(OldArray(legacy)).numpy(), values)
        same = tensor.__dlpack__(dl_device=(14, start), max_version=(1, 3))
        assert content_of(same).flags == 0
        refused = refusal(lambda: tensor.__dlpack__(dl_device=(14, end), copy=False))
        assert refused[1:3] == ["copy_needed", "copy"]
        assert refusal(lambda: tensor.__dlpack__(dl_device=(14, 2)))[1] == "device_id_out_of_range"
""",
    )
    assert found == [IS_COPIED] * 4 * len(OF_A_ROOT)


def test_pending_work_is_waited_for_before_a_copy_to_another_root_device(
    several_devices: Callable[[int], dict[str, str]], answer: Callable[..., Any]
) -> None:
    found = answer(
        several_devices(2),
        """
from pending_work import PendingFill, VALUES, Waiting
answer = []
for start, end in ((0, 1), (1, 0)):
    for kind in KINDS:
        pending = PendingFill(new_queue(devices[start]), kind)
        tensor = to_dlpack_tensor(pending.memory, dtype="i4", queue=pending.queue)
        queue = new_queue(devices[end])
        copying = Waiting(lambda: from_dlpack(tensor, device=queue).numpy().tolist())
        assert copying.is_waiting() and pending.is_pending
        pending.end()
        answer.append(copying.end() == VALUES)
""",
    )
    assert found == [True] * 6
