# SPDX-License-Identifier: Apache-2.0
"""Invalid uses of a function of an extension: ``fill`` of docs/how-to/nanobind.md.

It takes a queue, a view of float32 in one dimension of device USM, and a number. The last five uses
are of functions of tests/python/extension_project/extension_under_test_module.cpp. Each function is
one use, and raises what a page in docs/errors/ says.
"""

from __future__ import annotations

import dpctl
import dpctl.memory
import extension_under_test_module
import guide_extension
import usm_dlpack


def array_of_another_dtype() -> None:
    """Pass an array whose elements no overload takes."""
    # [begin array_of_another_dtype]
    queue = dpctl.SyclQueue()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=queue)
    values = usm_dlpack.to_dlpack_tensor(memory, dtype="int32")
    guide_extension.fill(queue, values, 1.5)
    # [end array_of_another_dtype]


def array_of_another_rank() -> None:
    """Pass an array of more dimensions than any overload takes."""
    # [begin array_of_another_rank]
    queue = dpctl.SyclQueue()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=queue)
    values = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")
    guide_extension.fill(queue, values, 1.5)
    # [end array_of_another_rank]


def argument_of_another_name() -> None:
    """Pass an argument by a name that the function does not have."""
    # [begin argument_of_another_name]
    queue = dpctl.SyclQueue()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=queue)
    values = usm_dlpack.to_dlpack_tensor(memory, dtype="float32")
    guide_extension.fill(queue, x=values, value=1.5)
    # [end argument_of_another_name]


def number_for_an_array() -> None:
    """Pass what is no array at all."""
    # [begin number_for_an_array]
    guide_extension.fill(dpctl.SyclQueue(), 1.5, 1.5)
    # [end number_for_an_array]


def array_in_another_usm() -> None:
    """Pass host USM where the view is of device USM, which no overload can mend."""
    # [begin array_in_another_usm]
    queue = dpctl.SyclQueue()
    memory = dpctl.memory.MemoryUSMHost(48, queue=queue)
    values = usm_dlpack.to_dlpack_tensor(memory, dtype="float32")
    guide_extension.fill(queue, values, 1.5)
    # [end array_in_another_usm]


def queue_of_another_context() -> None:
    """Pass a queue that does not go with the array."""
    # [begin queue_of_another_context]
    device = dpctl.SyclDevice()
    memory = dpctl.memory.MemoryUSMDevice(48, queue=dpctl.SyclQueue(device))
    values = usm_dlpack.to_dlpack_tensor(memory, dtype="float32")
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    guide_extension.fill(queue, values, 1.5)
    # [end queue_of_another_context]


def result_that_was_released() -> None:
    """Return a view whose owner has gone elsewhere."""
    # [begin result_that_was_released]
    memory = dpctl.memory.MemoryUSMShared(48)
    values = usm_dlpack.to_dlpack_tensor(memory, dtype="float32")
    extension_under_test_module.released(values)
    # [end result_that_was_released]


def array_that_was_released() -> None:
    """Make an ``nb::ndarray`` of a view whose owner has gone elsewhere."""
    # [begin array_that_was_released]
    memory = dpctl.memory.MemoryUSMShared(48)
    values = usm_dlpack.to_dlpack_tensor(memory, dtype="float32")
    extension_under_test_module.released_to_ndarray(values)
    # [end array_that_was_released]


def ndarray_that_may_write_read_only_memory() -> None:
    """Make an ``nb::ndarray`` without ``nb::ro`` of memory that is read-only."""
    # [begin ndarray_that_may_write_read_only_memory]
    counter = extension_under_test_module.Counter()
    constant = extension_under_test_module.readonly_result(dpctl.SyclQueue(), counter)
    extension_under_test_module.constant_to_ndarray(constant)
    # [end ndarray_that_may_write_read_only_memory]


def ndarray_of_another_shape() -> None:
    """Make an ``nb::ndarray`` of ``nb::shape<-1, 4>`` of rows of three."""
    # [begin ndarray_of_another_shape]
    memory = dpctl.memory.MemoryUSMShared(48)
    values = usm_dlpack.to_dlpack_tensor(memory, shape=(4, 3), dtype="float32")
    extension_under_test_module.to_right_ndarray(values)
    # [end ndarray_of_another_shape]


def ndarray_of_another_order() -> None:
    """Make an ``nb::ndarray`` of ``nb::c_contig`` of columns."""
    # [begin ndarray_of_another_order]
    memory = dpctl.memory.MemoryUSMShared(48)
    values = usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), strides=(1, 3), dtype="float32")
    extension_under_test_module.to_right_ndarray(values)
    # [end ndarray_of_another_order]
