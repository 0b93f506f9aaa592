# SPDX-License-Identifier: Apache-2.0
"""empty: tensors in new memory, of any shape, dtype, place and kind, and what is refused."""

import dpctl
import ml_dtypes
import numpy as np
import pytest
from capsules import compact_strides, package_queue
from refusals import refused, stopped, wrong_argument
from usm_dlpack import empty, from_dlpack, validate


@pytest.mark.parametrize("shape", [(3, 4), [2, 1, 5], 7, np.int64(7), (), 0, (3, 0, 2)], ids=repr)
def test_the_memory_is_in_c_order_and_can_be_written_and_read(shape, usm_type):
    tensor = empty(shape, "i4", usm_type=usm_type)
    extents = np.empty(shape).shape
    assert (tensor.shape, tensor.dtype, tensor.readonly) == (extents, np.int32, False)
    assert tensor.strides == compact_strides([max(1, extent) for extent in extents])
    assert (tensor.usm_type, tensor.sycl_queue) == (usm_type, package_queue())
    assert tensor.data != 0
    assert validate(tensor, usm_types=usm_type, overlapping=False).nbytes == tensor.nbytes
    values = np.arange(tensor.size, dtype=np.int32).reshape(extents)
    tensor.copy_from(values)
    assert np.array_equal(from_dlpack(tensor).numpy(), values)


@pytest.mark.parametrize(
    ("dtype", "name", "nbytes"),
    [
        ("bfloat16", "bfloat16", 6),
        ("int4", "int4", 2),
        ((0, 4, 1), "int4", 2),
        (ml_dtypes.int4, "int4", 3),
        ("float32x4", "float32x4", 48),
        (bool, "bool", 3),
    ],
)
def test_every_dtype_is_packed_as_it_says(dtype, name, nbytes):
    tensor = empty(3, dtype)
    assert (str(tensor.dtype), tensor.nbytes, tensor.byte_extent) == (name, nbytes, nbytes)


def test_without_arguments_it_is_float32_in_device_memory_of_the_default_device():
    tensor = empty(3)
    assert (tensor.dtype, tensor.usm_type) == (np.float32, "device")
    assert empty(3, usm_type=None).usm_type == "device"
    assert tensor.sycl_device == dpctl.SyclDevice()


def test_every_form_of_a_device_is_read_and_a_queue_is_kept(queue):
    device = queue.sycl_device
    for place in ((14, 0), device, device.get_filter_string(), queue):
        tensor = empty(3, device=place)
        assert tensor.device == (14, 0)
        assert tensor.sycl_queue == (queue if place is queue else package_queue())


def test_each_root_device_has_its_memory(succeed, several_devices):
    code = """
import dpctl
from usm_dlpack import empty, validate

for number, device in enumerate(dpctl.get_devices()):
    for kind in ("device", "shared", "host"):
        tensor = empty(3, device=device, usm_type=kind)
        assert (tensor.device, tensor.sycl_device) == ((14, number), device)
        assert validate(tensor).usm_type == kind
assert empty(3).sycl_device == dpctl.SyclDevice()
"""
    assert succeed(code, **several_devices(2)) == ""


ARGUMENTS = [
    (ValueError, "shape[1]", "-1", {"shape": (2, -1)}),
    (ValueError, "shape[0]", "", {"shape": 2**63}),
    ("out_of_range", "shape", f"({2**62}, 4)", {"shape": (2**62, 4)}),
    (TypeError, "shape", "'3'", {"shape": "3"}),
    (TypeError, "shape", "None", {"shape": None}),
    (TypeError, "shape", "True", {"shape": True}),
    (TypeError, "dtype", "None", {"dtype": None}),
    (TypeError, "dtype", "dtype('O')", {"dtype": object}),
    (ValueError, "usm_type", "'usm'", {"usm_type": "usm"}),
    (TypeError, "device", "3", {"device": 3}),
    ("no_device", "device.device_id", "99", {"device": (14, 99)}),
]


@pytest.mark.parametrize(("rule", "field", "found", "keywords"), ARGUMENTS)
def test_what_cannot_be_is_refused(rule, field, found, keywords):
    with stopped(rule, field, found):
        empty(**({"shape": 3} | keywords))


def test_extents_as_in_pytorch_are_sent_to_a_tuple():
    with wrong_argument(TypeError, "dtype", "found 3; pass a shape of several extents as a tuple"):
        empty(2, 3)


def test_a_queue_of_another_context_is_refused(foreign_queue):
    with refused("context_not_default", "device", expected="a queue of the default context"):
        empty(3, device=foreign_queue)


def test_too_much_memory_is_a_memory_error(usm_type):
    with wrong_argument(MemoryError, "shape", f"found {2**60}; free some"):
        empty(2**60, "u1", usm_type=usm_type)


def test_without_a_device_there_is_no_memory(new_process):
    code = "import usm_dlpack; usm_dlpack.empty(3)"
    done = new_process(code, ONEAPI_DEVICE_SELECTOR="hip:*")
    assert "device.device_id: expected a root device of this process, found none" in done.stderr
