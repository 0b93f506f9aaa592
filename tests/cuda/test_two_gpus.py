# SPDX-License-Identifier: Apache-2.0
"""Two NVIDIA GPUs: arrays of PyTorch on the one that is not its current device."""

from typing import Any

import dpctl
import numpy as np
import pytest
import usm_dlpack
from libraries import COUNT, ByMethod, Torch
from usm_dlpack import device_id, empty, from_dlpack, validate


@pytest.fixture
def torch() -> Any:
    torch = Torch().torch
    torch.cuda.set_device(0)
    return torch


@pytest.fixture
def array(torch: Any) -> Any:
    return torch.arange(COUNT, dtype=torch.int32, device="cuda:1")


@pytest.mark.parametrize("form", [lambda array: array, ByMethod], ids=["itself", "by __dlpack__"])
def test_an_array_on_the_other_gpu_is_shared(torch: Any, array: Any, form: Any) -> None:
    queue = dpctl.SyclQueue(usm_dlpack.root_device(1))
    torch.cuda.set_device(0)  # the queue has changed it
    assert device_id(form(array)) == 1
    assert validate(form(array)).device_id == 1
    for tensor in (from_dlpack(form(array)), from_dlpack(form(array), device=queue)):
        assert torch.cuda.current_device() == 0
        assert (tensor.device, tensor.data) == ((14, 1), array.data_ptr())
        assert tensor.numpy().tolist() == list(range(COUNT))
        assert torch.cuda.current_device() == 0
        back = torch.from_dlpack(tensor.cuda_view())
        assert torch.cuda.current_device() == 0
        assert (back.device, back.data_ptr()) == (array.device, array.data_ptr())


def test_calls_leave_the_current_device(torch: Any, array: Any) -> None:
    tensor = from_dlpack(array)
    allocated = [empty(COUNT, "int32", device=array)]
    calls = {
        "empty": lambda: empty(COUNT, "int32", device=array),
        "copy": lambda: from_dlpack(array, copy=True),
        "copy_from": lambda: tensor.copy_from(np.arange(COUNT, dtype="i4")),
        "numpy": tensor.numpy,
        "wait": tensor.wait,
        "end": allocated.clear,
    }
    for name, call in calls.items():
        call()
        assert torch.cuda.current_device() == 0, name


def test_a_copy_goes_to_the_other_gpu(torch: Any, array: Any) -> None:
    with pytest.raises(usm_dlpack.ConversionError):
        from_dlpack(array, device=(14, 0), copy=False)
    moved = from_dlpack(array, device=(14, 0))
    assert moved.device == (14, 0)
    assert moved.numpy().tolist() == list(range(COUNT))
    assert torch.cuda.current_device() == 0
