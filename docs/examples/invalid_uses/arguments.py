# SPDX-License-Identifier: Apache-2.0
"""Arguments that are refused by Python's own TypeError and ValueError, before any memory is asked.

Each function is one use, and raises what docs/errors/python_arguments.md says.
"""

from __future__ import annotations

import ctypes
import pickle
from typing import Any

import dpctl
import dpctl.memory
import numpy as np
import usm_dlpack


class Interface:
    """An object that offers memory by dpctl's array interface, some fields of it changed."""

    def __init__(self, memory: Any, **changes: Any) -> None:
        self.memory = memory
        self.__sycl_usm_array_interface__ = {**memory.__sycl_usm_array_interface__, **changes}


def object_without_memory() -> None:
    """Describe an object that offers no USM."""
    # [begin object_without_memory]
    usm_dlpack.to_dlpack_tensor(np.zeros(3))
    # [end object_without_memory]


def object_without_dlpack() -> None:
    """Take an object that exports nothing."""
    # [begin object_without_dlpack]
    usm_dlpack.from_dlpack(dpctl.memory.MemoryUSMDevice(48))
    # [end object_without_dlpack]


def interface_without_a_field() -> None:
    """Describe an object whose array interface is no array interface."""
    # [begin interface_without_a_field]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(Interface(memory, typestr=None))
    # [end interface_without_a_field]


def context_that_is_none() -> None:
    """Describe an object whose array interface names no SYCL object."""
    # [begin context_that_is_none]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(Interface(memory, syclobj=0))
    # [end context_that_is_none]


def filter_string_of_no_device_in_an_interface() -> None:
    """Describe an object whose array interface names a device that there is not."""
    # [begin filter_string_of_no_device_in_an_interface]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(Interface(memory, syclobj="opencl:fpga"))
    # [end filter_string_of_no_device_in_an_interface]


def shape_of_something_else() -> None:
    """Pass a shape that is no sequence of integers."""
    # [begin shape_of_something_else]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, shape=("3", "4"))
    # [end shape_of_something_else]


def negative_shape() -> None:
    """Pass a negative extent."""
    # [begin negative_shape]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, shape=(3, -1))
    # [end negative_shape]


def strides_of_another_length() -> None:
    """Pass strides of fewer dimensions than the shape has."""
    # [begin strides_of_another_length]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), strides=(1,))
    # [end strides_of_another_length]


def strides_without_a_shape() -> None:
    """Pass strides and a dtype, from which no shape follows."""
    # [begin strides_without_a_shape]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, dtype="float32", strides=(1,))
    # [end strides_without_a_shape]


def dtype_that_does_not_fit_the_memory() -> None:
    """Read memory anew in elements that do not fill it."""
    # [begin dtype_that_does_not_fit_the_memory]
    memory = dpctl.memory.MemoryUSMDevice(50)
    usm_dlpack.to_dlpack_tensor(memory, dtype="float32")
    # [end dtype_that_does_not_fit_the_memory]


def dtype_of_an_array_with_gaps() -> None:
    """Read an array anew that has gaps between its elements."""
    # [begin dtype_of_an_array_with_gaps]
    memory = dpctl.memory.MemoryUSMDevice(48)
    array = Interface(memory, shape=(12,), strides=(4,))  # each fourth byte
    usm_dlpack.to_dlpack_tensor(array, dtype="float32")
    # [end dtype_of_an_array_with_gaps]


def offset_behind_the_memory() -> None:
    """Begin behind the last byte of the object."""
    # [begin offset_behind_the_memory]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, byte_offset=64)
    # [end offset_behind_the_memory]


def dtype_of_objects() -> None:
    """Name a dtype that DLPack has no number for."""
    # [begin dtype_of_objects]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, dtype=object)
    # [end dtype_of_objects]


def dtype_of_no_name() -> None:
    """Name a dtype that neither NumPy nor DLPack has."""
    # [begin dtype_of_no_name]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, dtype="float12")
    # [end dtype_of_no_name]


def queue_that_is_none() -> None:
    """Pass a device where a queue is wanted."""
    # [begin queue_that_is_none]
    memory = dpctl.memory.MemoryUSMDevice(48)
    usm_dlpack.to_dlpack_tensor(memory, queue=dpctl.SyclDevice())
    # [end queue_that_is_none]


def device_that_is_none() -> None:
    """Pass an id where a device is wanted."""
    # [begin device_that_is_none]
    usm_dlpack.device_id(0)
    # [end device_that_is_none]


def device_of_another_library() -> None:
    """Name the device by a pair that is not DLPack's for SYCL devices."""
    # [begin device_of_another_library]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.from_dlpack(tensor, device=(2, 0))
    # [end device_of_another_library]


def filter_string_of_no_device() -> None:
    """Name the device by a filter string that none has."""
    # [begin filter_string_of_no_device]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.from_dlpack(tensor, device="opencl:fpga")
    # [end filter_string_of_no_device]


def copy_that_is_no_bool() -> None:
    """Answer the question of a copy with something else than yes or no."""
    # [begin copy_that_is_no_bool]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.from_dlpack(tensor, copy="if needed")
    # [end copy_that_is_no_bool]


def usm_type_of_no_name() -> None:
    """Name a USM kind that there is not."""
    # [begin usm_type_of_no_name]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.validate(tensor, usm_types="managed")
    # [end usm_type_of_no_name]


def usm_type_that_is_no_text() -> None:
    """Name a USM kind by something else than a text."""
    # [begin usm_type_that_is_no_text]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.from_dlpack(tensor, usm_type=2)
    # [end usm_type_that_is_no_text]


def usm_types_that_are_no_texts() -> None:
    """Name USM kinds by something else than texts."""
    # [begin usm_types_that_are_no_texts]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.validate(tensor, usm_types=(1, 2))
    # [end usm_types_that_are_no_texts]


def direction_of_no_name() -> None:
    """Name a direction that is none of the two."""
    # [begin direction_of_no_name]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.explain(tensor, direction="both")
    # [end direction_of_no_name]


def keywords_of_both_directions() -> None:
    """Pass keywords of ``validate`` and of ``to_dlpack_tensor`` at once."""
    # [begin keywords_of_both_directions]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    usm_dlpack.explain(tensor, ndim=1, shape=(3, 4))
    # [end keywords_of_both_directions]


def pickled_tensor() -> None:
    """Send a tensor to another process by value."""
    # [begin pickled_tensor]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    pickle.dumps(tensor)
    # [end pickled_tensor]


def type_string_of_bfloat16() -> None:
    """Ask for the array interface of elements that it has no name for."""
    # [begin type_string_of_bfloat16]
    memory = dpctl.memory.MemoryUSMDevice(48)
    tensor = usm_dlpack.to_dlpack_tensor(memory, dtype="bfloat16")
    tensor.__sycl_usm_array_interface__  # noqa: B018
    # [end type_string_of_bfloat16]


def stream_of_another_library() -> None:
    """Pass a number of a stream, as CUDA has them."""
    # [begin stream_of_another_library]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMDevice(48))
    tensor.__dlpack__(stream=2)
    # [end stream_of_another_library]


def stream_for_the_host() -> None:
    """Pass a queue where the host takes the memory."""
    # [begin stream_for_the_host]
    tensor = usm_dlpack.to_dlpack_tensor(dpctl.memory.MemoryUSMHost(48))
    tensor.__dlpack__(stream=dpctl.SyclQueue(), dl_device=(1, 0))
    # [end stream_for_the_host]


# [begin exchange_api]
def exchange_function(place: int, first: Any) -> Any:
    """Return a function of the C exchange API of DLPackTensor, by its place in the table."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = usm_dlpack.DLPackTensor.__dlpack_c_exchange_api__
    table = (ctypes.c_void_p * 7).from_address(get_pointer(capsule, b"dlpack_exchange_api"))
    return ctypes.PYFUNCTYPE(ctypes.c_int, first, ctypes.c_void_p)(table[place])


# [end exchange_api]


def exchange_of_an_object_of_another_type() -> None:
    """Pass an object to the C exchange API that is not of the type which has it."""
    # [begin exchange_of_an_object_of_another_type]
    out = ctypes.c_void_p()
    managed_tensor_from_py_object = exchange_function(3, ctypes.py_object)
    managed_tensor_from_py_object(np.zeros(3), ctypes.addressof(out))
    # [end exchange_of_an_object_of_another_type]


def exchange_of_null() -> None:
    """Pass null to the C exchange API where it takes a managed tensor."""
    # [begin exchange_of_null]
    out = ctypes.c_void_p()
    managed_tensor_to_py_object = exchange_function(4, ctypes.c_void_p)
    managed_tensor_to_py_object(None, ctypes.addressof(out))
    # [end exchange_of_null]
