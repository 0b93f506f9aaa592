# SPDX-License-Identifier: Apache-2.0
"""Invalid uses of a function of an extension: ``fill`` of docs/how-to/nanobind.md.

It takes a queue, a view of float32 in one dimension of device USM, and a number. The last six uses
are of functions of tests/python/extension_project/extension_under_test_module.cpp.
"""

from __future__ import annotations

import dpctl
import dpctl.memory
import extension_under_test_module
import guide_extension
import usm_dlpack

queue = dpctl.SyclQueue()
memory = dpctl.memory.MemoryUSMDevice(48, queue=queue)
values = usm_dlpack.to_dlpack_tensor(memory, dtype="float32")


def array_of_another_dtype() -> None:
    guide_extension.fill(queue, usm_dlpack.to_dlpack_tensor(memory, dtype="int32"), 1.5)


def array_of_another_rank() -> None:
    matrix = usm_dlpack.to_dlpack_tensor(values, shape=(3, 4))
    guide_extension.fill(queue, matrix, 1.5)


def array_in_another_kind_of_usm() -> None:
    in_host_usm = usm_dlpack.from_dlpack(values, usm_type="host")
    guide_extension.fill(queue, in_host_usm, 1.5)


def result_that_was_released() -> None:
    extension_under_test_module.released(values)


def result_whose_owner_is_no_object() -> None:
    extension_under_test_module.result_of_nobody(queue)


def array_that_was_released() -> None:
    extension_under_test_module.released_to_ndarray(values)


def ndarray_that_may_write_read_only_memory() -> None:
    counter = extension_under_test_module.Counter()
    constant = extension_under_test_module.readonly_result(queue, counter)
    extension_under_test_module.constant_to_ndarray(constant)


def ndarray_of_another_shape() -> None:
    matrix = usm_dlpack.to_dlpack_tensor(values, shape=(4, 3))
    extension_under_test_module.to_right_ndarray(matrix)


def ndarray_of_another_order() -> None:
    columns = usm_dlpack.to_dlpack_tensor(values, shape=(3, 4), strides=(1, 3))
    extension_under_test_module.to_right_ndarray(columns)
