# SPDX-License-Identifier: Apache-2.0
"""Arguments that Python's own TypeError and ValueError refuse."""

from __future__ import annotations

import pickle

import dpctl
import dpctl.memory
import numpy as np
import usm_dlpack
from on_device import Interface, memory, tensor


def object_without_memory() -> None:
    usm_dlpack.to_dlpack_tensor(np.zeros(3))


def object_without_dlpack() -> None:
    usm_dlpack.from_dlpack(dpctl.memory.MemoryUSMDevice(48))


def interface_without_a_field() -> None:
    usm_dlpack.to_dlpack_tensor(Interface(memory, typestr=None))


def context_that_is_none() -> None:
    usm_dlpack.to_dlpack_tensor(Interface(memory, syclobj=0))


def filter_string_of_no_device_in_an_interface() -> None:
    usm_dlpack.to_dlpack_tensor(Interface(memory, syclobj="opencl:fpga"))


def shape_of_something_else() -> None:
    usm_dlpack.to_dlpack_tensor(memory, shape=("3", "4"))


def negative_shape() -> None:
    usm_dlpack.to_dlpack_tensor(memory, shape=(3, -1))


def strides_of_another_length() -> None:
    usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), strides=(1,))


def strides_without_a_shape() -> None:
    usm_dlpack.to_dlpack_tensor(memory, dtype="float32", strides=(1,))


def dtype_that_does_not_fit_the_memory() -> None:
    memory = dpctl.memory.MemoryUSMDevice(50)
    usm_dlpack.to_dlpack_tensor(memory, dtype="float32")


def dtype_of_an_array_with_gaps() -> None:
    array = Interface(memory, shape=(12,), strides=(4,))  # each fourth byte
    usm_dlpack.to_dlpack_tensor(array, dtype="float32")


def offset_behind_the_memory() -> None:
    usm_dlpack.to_dlpack_tensor(memory, byte_offset=64)


def dtype_of_objects() -> None:
    usm_dlpack.to_dlpack_tensor(memory, dtype=object)


def dtype_of_no_name() -> None:
    usm_dlpack.to_dlpack_tensor(memory, dtype="float12")


def queue_that_is_none() -> None:
    usm_dlpack.to_dlpack_tensor(memory, queue=dpctl.SyclDevice())


def device_that_is_none() -> None:
    usm_dlpack.device_id(0)


def device_of_another_library() -> None:
    usm_dlpack.from_dlpack(tensor, device=(2, 0))


def filter_string_of_no_device() -> None:
    usm_dlpack.from_dlpack(tensor, device="opencl:fpga")


def copy_that_is_no_bool() -> None:
    usm_dlpack.from_dlpack(tensor, copy="if needed")


def usm_type_of_no_name() -> None:
    usm_dlpack.validate(tensor, usm_types="managed")


def usm_type_that_is_no_text() -> None:
    usm_dlpack.from_dlpack(tensor, usm_type=2)


def usm_types_that_are_no_texts() -> None:
    usm_dlpack.validate(tensor, usm_types=(1, 2))


def direction_of_no_name() -> None:
    usm_dlpack.explain(tensor, direction="both")


def keywords_of_both_directions() -> None:
    usm_dlpack.explain(tensor, ndim=1, shape=(3, 4))


def pickled_tensor() -> None:
    pickle.dumps(tensor)


def type_string_of_bfloat16() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(memory, dtype="bfloat16")
    tensor.__sycl_usm_array_interface__  # noqa: B018


def stream_of_another_library() -> None:
    tensor.__dlpack__(stream=2)


def stream_for_the_host() -> None:
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMHost(48))
    tensor.__dlpack__(stream=dpctl.SyclQueue(), dl_device=(1, 0))
