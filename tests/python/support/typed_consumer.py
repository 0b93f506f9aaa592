# SPDX-License-Identifier: Apache-2.0
"""A user's module that says the type of everything public, for type checkers and to be run.

``mypy --strict`` and pyright must find nothing here, with the package as it is installed.
"""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import usm_dlpack
from usm_dlpack import (
    ConversionError,
    DLPackTensor,
    Place,
    SupportsDLPack,
    SupportsSyclUsm,
    UsmAllocation,
    UsmArray,
    UsmBindingError,
    device_id,
    empty,
    from_dlpack,
    get_cmake_dir,
    get_include,
    root_device,
    to_dlpack_tensor,
    validate,
)

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, kind):
        return value


def describe(tensor: DLPackTensor) -> dict[str, object]:
    assert_type(tensor.shape, tuple[int, ...])
    assert_type(tensor.strides, tuple[int, ...])
    numbers: list[int] = [tensor.ndim, tensor.size, tensor.nbytes, tensor.byte_extent, tensor.data]
    assert all(type(number) is int for number in numbers)
    assert_type(tensor.dtype, "np.dtype[Any] | str")
    assert_type(tensor.readonly, bool)
    assert_type(tensor.usm_type, Literal["host", "device", "shared", "unknown"])
    assert_type(tensor.device, tuple[int, int])
    assert_type(tensor.__sycl_usm_array_interface__, dict[str, Any])
    values: npt.NDArray[Any] = tensor.numpy()
    places = (tensor.sycl_device, tensor.sycl_context, tensor.sycl_queue)
    return {"values": values, "places": places}


def exchange(tensor: DLPackTensor) -> DLPackTensor:
    own = assert_type(tensor.__dlpack_device__(), tuple[int, int])
    tensor.__dlpack__()
    tensor.__dlpack__(stream=None, max_version=(1, 3), dl_device=own, copy=False)
    tensor.__dlpack__(stream=-1, max_version=(1, 0), dl_device=(1, 0), copy=True)
    assert_type(from_dlpack(tensor), DLPackTensor)
    shared = assert_type(from_dlpack(tensor, copy=True, usm_type="shared"), DLPackTensor)
    libraries: list[SupportsDLPack] = [tensor, np.zeros(3), shared.host_view()]
    for array in libraries:
        from_dlpack(array, device=(14, 0), order="C")
    shared.copy_from(np.zeros(shared.shape, np.float32), queue=tensor.sycl_queue)
    made = assert_type(empty(tensor.shape, device=(14, 0), usm_type="host"), DLPackTensor)
    made.copy_from(shared)
    made.wait()
    for place in (tensor, tensor.sycl_queue or tensor, tensor.sycl_device, "cpu"):
        move(tensor, place)
    return from_dlpack(tensor, device=(14, device_id(root_device(0))), copy=None)


def move(array: UsmArray, place: Place) -> DLPackTensor:
    assert_type(device_id(place), int)
    return from_dlpack(array, device=place)


def prove(array: Any) -> UsmAllocation:
    proof = validate(
        array,
        usm_types=["device", "shared", "host"],
        backends=None,
        dtype=np.float32,
        ndim=2,
        readonly=False,
        overlapping=False,
        device=(14, 0),
    )
    numbers: list[int] = [proof.data, proof.base, proof.size, proof.nbytes, proof.device_id]
    words: list[str] = [proof.usm_type, proof.bounds, proof.device_proof]
    flags: list[bool] = [proof.readonly, proof.overlapping]
    places: list[object] = [proof.sycl_device, proof.root_device, proof.sycl_context]
    assert len([*numbers, *words, *flags, *places]) == 13
    return assert_type(proof, UsmAllocation)


def refusal(memory: SupportsSyclUsm) -> ConversionError:
    try:
        to_dlpack_tensor(memory, shape=10**6, dtype="float32", strides=(1,), byte_offset=0)
    except UsmBindingError:
        raise
    except ConversionError as error:
        parts: list[str] = [error.code, error.field, error.expected, error.found, error.remedy]
        assert all(parts)
        assert_type(error.page, str)
        return error
    raise AssertionError


def run(memory: SupportsSyclUsm) -> None:
    tensor = to_dlpack_tensor(memory, shape=(3, 4), dtype=np.float32, queue=None)
    assert describe(exchange(tensor))["values"] is not None
    assert prove(tensor).nbytes == 48
    assert refusal(memory).code == "out_of_bounds"
    views: list[UsmArray] = [tensor, memory]  # which an extension function takes
    assert_type([from_dlpack(view) for view in views[:1]], list[DLPackTensor])
    assert len(views) == 2
    places: list[str] = [get_include(), get_cmake_dir(), usm_dlpack.__version__]
    assert all(places)
