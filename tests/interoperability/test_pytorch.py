# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors: not computed yet, not handed over, or of dtypes that NumPy lacks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import usm_dlpack


def copied(tensor: Any) -> Any:
    """Return what a tensor is after a copy to USM and back."""
    return usm_dlpack.from_dlpack(tensor, device=(14, 0)).numpy()


def numbers() -> Any:
    """Return two numbers, as PyTorch computes them."""
    return torch.tensor([1 + 2j, 3 - 4j])


@pytest.mark.parametrize(
    ("make", "remedy", "values"),
    [
        (lambda: torch.conj(numbers()), "resolve_conj", [1 - 2j, 3 + 4j]),
        (lambda: torch.conj(numbers()).imag, "resolve_neg", [-2, 4]),
    ],
    ids=["conjugates", "negatives"],
)
def test_numbers_that_are_not_computed_are_refused(
    make: Callable[[], Any], remedy: str, values: list[Any]
) -> None:
    for look in (usm_dlpack.validate, copied):
        with pytest.raises(usm_dlpack.ConversionError, match=remedy) as info:
            look(make())
        assert info.value.code == "copy_needed"
    assert np.array_equal(copied(getattr(make(), remedy)()), values)
    assert np.array_equal(copied(numbers()), [1 + 2j, 3 - 4j])


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, requires_grad=True),
        lambda: torch.nn.Parameter(torch.ones(2)),
        lambda: torch.sparse_coo_tensor([[0]], [1.0], size=(1,), check_invariants=True),
    ],
    ids=["requires_grad", "parameter", "sparse"],
)
def test_what_pytorch_refuses_is_refused_in_its_words(make: Callable[[], Any]) -> None:
    tensor = make()
    with pytest.raises(BufferError) as theirs:
        tensor.__dlpack__()
    with pytest.raises(BufferError) as ours:
        copied(tensor)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("place", [torch.zeros(2), torch.nn.Parameter(torch.ones(2))], ids=type)
def test_a_place_of_pytorch_on_the_host_is_refused_as_the_host(place: Any) -> None:
    with pytest.raises(usm_dlpack.ConversionError, match="kDLCPU") as info:
        usm_dlpack.from_dlpack(np.zeros(2), device=place)
    assert info.value.code == "request_unsupported"
    with pytest.raises(ValueError, match="stream: expected"):
        usm_dlpack.from_dlpack(np.zeros(2), device=(14, 0)).__dlpack__(stream=place)


@pytest.mark.parametrize("kind", ["cpu", "xpu"])
def test_a_device_of_pytorch_is_no_place(kind: str) -> None:
    with pytest.raises(TypeError, match=r"device: expected a place: .* or an array of SYCL"):
        usm_dlpack.device_id(torch.device(kind))


def test_a_capsule_of_pytorch_is_taken() -> None:
    taken = usm_dlpack.from_dlpack(torch.arange(3).__dlpack__(), device=(14, 0))
    assert taken.numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "name",
    [
        *("bfloat16", "complex32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
        *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
    ],
)
def test_a_dtype_that_numpy_lacks_goes_both_ways(name: str) -> None:
    raw = torch.arange(16, dtype=torch.uint8)
    theirs = raw.view(getattr(torch, name))
    ours = usm_dlpack.from_dlpack(theirs, device=(14, 0), usm_type="shared")
    back = torch.from_dlpack(ours.host_view())
    assert (back.dtype, back.shape, back.data_ptr()) == (theirs.dtype, theirs.shape, ours.data)
    assert torch.equal(back.view(torch.uint8), raw)
