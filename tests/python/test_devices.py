# SPDX-License-Identifier: Apache-2.0
"""Device ids and root devices, in processes with one, two, three, a broken and no root device."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import pytest
from refusals import refused, wrong_argument
from usm_dlpack import device_id, root_device

# --- in this process, which has one root device


def test_ids_are_the_order_of_the_runtime() -> None:
    devices = dpctl.get_devices()
    assert devices
    for number, device in enumerate(devices):
        assert device_id(device) == number
        assert root_device(number) == device
        assert isinstance(root_device(number), dpctl.SyclDevice)


def test_an_opencl_sub_device_has_the_id_of_its_root(queue: Any) -> None:
    root = queue.sycl_device
    parts = root.create_sub_devices(partition=1)
    assert len(parts) >= 2
    for part in parts:
        assert part != root
        assert device_id(part) == 0


@pytest.mark.parametrize("device", [None, 0, "cpu:0", object(), dpctl.SyclDevice, (14, 0)])
def test_an_object_that_is_no_device_is_a_type_error(device: Any) -> None:
    with wrong_argument(TypeError, "device", "expected a dpctl.SyclDevice"):
        device_id(device)


def test_queues_and_contexts_are_no_devices(queue: Any) -> None:
    for wrong in (queue, queue.sycl_context, queue.sycl_device.sycl_platform):
        with wrong_argument(TypeError, "device", f"of type {type(wrong).__name__}"):
            device_id(wrong)


@pytest.mark.parametrize("number", [1, 2, 2**31 - 1, -1, -(2**31)])
def test_an_id_that_no_device_has_is_refused(number: int) -> None:
    with refused(
        "device_id_out_of_range",
        "device.device_id",
        expected="from 0 to 0 (root devices in this process)",
        found=str(number),
        remedy="check ONEAPI_DEVICE_SELECTOR",
    ):
        root_device(number)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**64, 10**30])
def test_an_id_that_dlpack_cannot_hold_is_refused(number: int) -> None:
    with refused(
        "device_id_out_of_range", "device.device_id", expected="an int32_t", found=str(number)
    ):
        root_device(number)


def test_an_id_of_more_digits_than_python_writes_is_refused() -> None:
    with refused("device_id_out_of_range", "device.device_id", found="an int of 16610 bits"):
        root_device(10**5000)


@pytest.mark.parametrize("number", [None, 0.0, "0", (14, 0), object()])
def test_an_id_that_is_no_integer_is_a_type_error(number: Any) -> None:
    with pytest.raises(TypeError, match="expected an int"):
        root_device(number)


# --- in processes of their own

BEGIN = """
import ctypes, json
import dpctl, dpctl.memory, numpy
import usm_dlpack
from usm_dlpack import ConversionError, UsmBindingError, device_id, root_device

KINDS = {
    "device": dpctl.memory.MemoryUSMDevice,
    "shared": dpctl.memory.MemoryUSMShared,
    "host": dpctl.memory.MemoryUSMHost,
}

def allocate(device, kind="device", nbytes=64):
    memory = KINDS[kind](nbytes, queue=dpctl.SyclQueue(device))
    memory.copy_from_host(numpy.arange(nbytes, dtype=numpy.uint8))
    return memory

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
        return json.loads(succeed(whole, **variables))

    return run


@pytest.fixture(scope="session", params=[2, 3], ids=["two devices", "three devices"])
def count(request: pytest.FixtureRequest) -> int:
    """Return how many root devices a process has: two, and three."""
    return int(request.param)


@pytest.fixture(scope="session")
def variables(count: int, several_devices: Callable[[int], dict[str, str]]) -> dict[str, str]:
    """Return the variables of a process with two and with three root devices."""
    return several_devices(count)


def test_several_devices_have_the_ids_of_their_order(
    variables: dict[str, str], count: int, answer: Callable[..., Any]
) -> None:
    found = answer(
        variables,
        """
devices = dpctl.get_devices()
answer = {
    "ids": [device_id(device) for device in devices],
    "roots": [root_device(number) == device for number, device in enumerate(devices)],
    "beyond": refusal(lambda: root_device(len(devices))),
}
""",
    )
    assert found["ids"] == list(range(count))
    assert found["roots"] == [True] * count
    expected = f"from 0 to {count - 1} (root devices in this process)"
    code = "device_id_out_of_range"
    assert found["beyond"] == ["ConversionError", code, "device.device_id", expected, str(count)]


def test_opencl_sub_devices_have_the_id_of_their_root(
    variables: dict[str, str], count: int, answer: Callable[..., Any]
) -> None:
    found = answer(
        variables,
        """
answer = [
    device_id(device.create_sub_devices(partition=1)[1]) for device in dpctl.get_devices()
]
""",
    )
    assert found == list(range(count))


def test_memory_of_each_device_is_exported_with_its_id(
    variables: dict[str, str], count: int, answer: Callable[..., Any]
) -> None:
    found = answer(
        variables,
        """
answer = []
for number, device in enumerate(dpctl.get_devices()):
    for kind in KINDS:
        memory = allocate(device, kind)
        tensor = usm_dlpack.to_dlpack_tensor(memory, queue=dpctl.SyclQueue(device))
        again = usm_dlpack.from_dlpack(tensor)
        copied = usm_dlpack.from_dlpack(tensor, copy=True)
        proof = usm_dlpack.validate(copied)
        assert tensor.sycl_device == again.sycl_device == proof.root_device == device
        assert tensor.sycl_context == proof.sycl_context
        assert bytes(numpy.from_dlpack(copied, device="cpu")) == bytes(range(64))
        answer.append([kind, tensor.device, again.device, copied.device, proof.usm_type])
""",
    )
    assert found == [
        [kind, *[[14, number]] * 3, kind]
        for number in range(count)
        for kind in ("device", "shared", "host")
    ]


def test_the_id_of_another_device_is_refused(
    variables: dict[str, str], answer: Callable[..., Any], project_root: Path
) -> None:
    found = answer(
        variables,
        f"""
import sys
sys.path.insert(0, {str(project_root / "tests" / "python")!r})
from capsules import ForeignTensor, OldArray
devices = dpctl.get_devices()
answer = []
for kind in ("device", "shared"):
    memory = allocate(devices[1], kind)
    foreign = ForeignTensor(memory._pointer)
    foreign.tensor.device_id = 0
    array = OldArray(foreign.capsule())
    answer.append(refusal(lambda: usm_dlpack.from_dlpack(array)))
    answer.append(refusal(lambda: usm_dlpack.validate(array.answer)))
    foreign.tensor.device_id = 1
    assert usm_dlpack.validate(array.answer).device_id == 1
""",
    )
    refusal = ["UsmBindingError", "device_mismatch", "device.device_id"]
    assert found == [[*refusal, "1 (the root device of the memory)", "0"]] * 4


def test_host_memory_has_the_ids_of_its_platform(
    variables: dict[str, str], answer: Callable[..., Any], project_root: Path
) -> None:
    found = answer(
        variables,
        f"""
import sys
sys.path.insert(0, {str(project_root / "tests" / "python")!r})
from capsules import ForeignTensor
devices = dpctl.get_devices()
memory = allocate(devices[1], "host")
foreign = ForeignTensor(memory._pointer)
answer = []
for number, device in enumerate(devices):
    foreign.tensor.device_id = number
    capsule = foreign.capsule()
    code = refusal(lambda: usm_dlpack.validate(capsule))
    is_there = device.sycl_platform == devices[1].sycl_platform
    answer.append([is_there, code and code[1]])
""",
    )
    assert found[1] == [True, None]
    assert all(code == (None if is_there else "device_mismatch") for is_there, code in found)


def test_a_queue_or_context_of_another_device_is_refused(
    variables: dict[str, str], answer: Callable[..., Any]
) -> None:
    found = answer(
        variables,
        """
devices = dpctl.get_devices()
memory = allocate(devices[1])
class Claims:
    __sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__ | {
        "syclobj": dpctl.SyclQueue(devices[0])
    }
answer = [
    refusal(lambda: usm_dlpack.to_dlpack_tensor(memory, queue=dpctl.SyclQueue(devices[0]))),
    refusal(lambda: usm_dlpack.to_dlpack_tensor(Claims())),
]
if devices[0].sycl_platform == devices[1].sycl_platform:  # of one context, which knows the memory
    assert answer.pop() is None
    assert usm_dlpack.to_dlpack_tensor(Claims()).device == (14, 1)
assert usm_dlpack.to_dlpack_tensor(memory, queue=dpctl.SyclQueue(devices[1])).device == (14, 1)
""",
    )
    expected = [
        [
            "ConversionError",
            "queue_device_mismatch",
            "queue",
            "a queue on device 1, where the memory is",
            "one on device 0",
        ],
        [
            "UsmBindingError",
            "pointer_unknown",
            "data",
            "USM of the given context",
            "an allocation unknown to it",
        ],
    ]
    assert found == expected[: len(found)]
    assert found


def test_a_filter_string_names_the_device_of_the_memory(
    variables: dict[str, str], count: int, answer: Callable[..., Any]
) -> None:
    found = answer(
        variables,
        """
answer = []
for device in dpctl.get_devices():
    memory = allocate(device)
    class Named:
        __sycl_usm_array_interface__ = memory.__sycl_usm_array_interface__ | {
            "syclobj": device.get_filter_string()
        }
    answer.append(usm_dlpack.to_dlpack_tensor(Named()).device[1])
""",
    )
    assert found == list(range(count))


def test_the_selector_gives_new_ids(
    queue: Any, several_devices: Callable[[int], dict[str, str]], answer: Callable[..., Any]
) -> None:
    selector = f"{queue.sycl_device.backend.name}:1,2"
    found = answer(
        several_devices(3) | {"ONEAPI_DEVICE_SELECTOR": selector},
        """
devices = dpctl.get_devices()
answer = [[device_id(device), usm_dlpack.to_dlpack_tensor(allocate(device)).device]
          for device in devices]
answer.append(refusal(lambda: root_device(len(devices)))[3])
""",
    )
    expected = "from 0 to 1 (root devices in this process)"
    assert found == [[0, [14, 0]], [1, [14, 1]], expected]


def test_a_broken_opencl_device_keeps_its_id_and_disturbs_no_other(
    driver: Path, driver_copies: Any, answer: Callable[..., Any]
) -> None:
    drivers = [driver, driver_copies["broken"], driver_copies["second"]]
    found = answer(
        {"OCL_ICD_FILENAMES": ":".join(map(str, drivers))},
        """
devices = dpctl.get_devices()
answer = {
    "ids": [device_id(device) for device in devices],
    "exported": [usm_dlpack.to_dlpack_tensor(allocate(devices[i])).device for i in (0, 2)],
    "root": refusal(lambda: root_device(1)),
}
""",
    )
    assert found["ids"] == [0, 1, 2]
    assert found["exported"] == [[14, 0], [14, 2]]
    kind, code, field, expected, text = found["root"]
    assert (kind, code, field) == ("ConversionError", "device_failed", "device.device_id")
    assert expected == "a device that the SYCL runtime can use"
    assert text.startswith('device 1, for which it throws "')


NO_DEVICE = {
    "no opencl driver": {"USM_DLPACK_CPU_DRIVER": "0"},
    "an opencl driver that is not there": {"OCL_ICD_FILENAMES": "/nowhere/libnone.so"},
    "a selector that hides all": {"ONEAPI_DEVICE_SELECTOR": "cuda:*"},
}


@pytest.mark.parametrize("reason", NO_DEVICE)
def test_a_process_without_a_device_says_what_to_do(
    reason: str, succeed: Callable[..., str]
) -> None:
    code = f"""{BEGIN}
class Claims:
    def __dlpack__(self):
        raise AssertionError
answer = refusal(lambda: root_device(0))
try:
    root_device(0)
except ConversionError as error:
    answer.append(error.remedy)
print(json.dumps(answer))
"""
    found = json.loads(succeed(code, **NO_DEVICE[reason]))
    assert found[:2] == ["ConversionError", "no_device"]
    assert found[2:5] == ["device.device_id", "a root device of this process", "none at all"]
    assert "intel-opencl-rt" in found[5]
    assert "OCL_ICD_FILENAMES" in found[5]


def test_an_array_is_refused_where_there_is_no_device(
    succeed: Callable[..., str], project_root: Path
) -> None:
    code = f"""{BEGIN}
import sys
sys.path.insert(0, {str(project_root / "tests" / "python")!r})
from capsules import ForeignTensor, OldArray
array = OldArray(ForeignTensor(64).capsule())
answer = [refusal(lambda: usm_dlpack.from_dlpack(array))[1],
          refusal(lambda: usm_dlpack.validate(array.answer))[1]]
print(json.dumps(answer))
"""
    assert json.loads(succeed(code, ONEAPI_DEVICE_SELECTOR="cuda:*")) == ["no_device"] * 2
