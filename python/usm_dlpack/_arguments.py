# SPDX-License-Identifier: Apache-2.0
"""Strict readers of arguments: a value of another kind is refused in a sentence that shows it."""

from __future__ import annotations

import contextlib
import enum
import operator
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NoReturn

from usm_dlpack import _core
from usm_dlpack._errors import ConversionError, shown

if TYPE_CHECKING:
    import dpctl

_KDL_CPU = 1
_KDL_ONEAPI = 14


def refuse(
    kind: type[Exception], field: str, expected: str, found: object, remedy: str
) -> NoReturn:
    """Raise ``<field>: expected <expected>, found <found>; <remedy>``."""
    raise kind(f"{field}: expected {expected}, found {found}; {remedy}") from None


def index(value: Any) -> int:
    """Return an integer, also of an Enum, which device types are in the array API."""
    return operator.index(value.value if isinstance(value, enum.Enum) else value)


def truth(value: Any) -> bool | None:
    """Return a bool of Python or NumPy, or 0 or 1, as a bool, and None for anything else."""
    if isinstance(value, int):
        return bool(value) if value in (0, 1) else None
    import numpy as np

    return bool(value) if isinstance(value, np.bool_) else None


def integer(field: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        refuse(TypeError, field, "an int", shown(value), "pass one")


def int32(field: str, value: Any) -> int:
    number = integer(field, value)
    if not -(2**31) <= number < 2**31:
        refuse(ValueError, field, "an int32_t", shown(number), "correct the value")
    return number


def integers(field: str, values: Any) -> list[int]:
    """Return a sequence of integers; one integer is a sequence of one, as for NumPy."""
    try:
        if isinstance(values, str | bytes | bytearray | dict | AbstractSet):
            raise TypeError
        try:
            return [operator.index(values)]
        except TypeError:
            return [operator.index(value) for value in values]
    except TypeError:
        refuse(TypeError, field, "a sequence of integers", shown(values), "pass a tuple of int")


def check_range(field: str, values: Sequence[int], lowest: int) -> None:
    """Refuse values below `lowest` or beyond int64_t."""
    for r, value in enumerate(values):
        if not lowest <= value < 2**63:
            expected = f"from {lowest} to {2**63 - 1} elements"
            refuse(ValueError, f"{field}[{r}]", expected, shown(value), "correct the value")


def names(field: str, values: Any) -> list[str]:
    read = [values] if isinstance(values, str) else values
    found: list[Any] = list(read) if isinstance(read, Iterable) else [None]
    if not all(isinstance(name, str) for name in found):
        refuse(TypeError, field, "a sequence of str", shown(values), "pass names")
    # Lone surrogates, which are names of nothing, cannot go to C++.
    return [name.encode("ascii", "backslashreplace").decode() for name in found]


def check_name(field: str, value: object, known: Sequence[str]) -> None:
    """Refuse what is neither None nor one of the known names."""
    is_name = isinstance(value, str)
    if value is not None and not (is_name and value in known):
        *others, last = ("None", *(f'"{name}"' for name in known))
        expected = f"{', '.join(others)} or {last}"
        kind = ValueError if is_name else TypeError
        refuse(kind, field, expected, shown(value), "pass one of these")


def flag(field: str, value: Any) -> bool | None:
    says = truth(value)
    if says is None and value is not None:
        refuse(TypeError, field, "None, True or False", shown(value), "pass one")
    return says


def filtered(text: str) -> dpctl.SyclDevice | None:
    """Return the device of a filter string, or None."""
    import dpctl

    # dpctl reads only up to the first zero character.
    with contextlib.suppress(dpctl.SyclDeviceCreationError, ValueError):
        return None if "\0" in text else dpctl.SyclDevice(str(text))
    return None


def _is_of_type(device: Any, device_type: int) -> bool:
    if not isinstance(device, tuple) or len(device) != 2:
        return False
    try:
        return index(device[0]) == device_type
    except TypeError:
        return False


def is_usm(device: Any) -> bool:
    """Return whether a pair of device type and id is of kDLOneAPI."""
    return _is_of_type(device, _KDL_ONEAPI)


def device_id(device: Any, kinds: str = "a filter string or a device") -> int:
    """Return the DLPack id of a device, of its filter string, or of ``(14, device_id)``."""
    import dpctl

    if isinstance(device, tuple):
        if not is_usm(device):
            remedy = "pass the pair that __dlpack_device__ gives"
            refuse(ValueError, "device", "(14, device_id)", shown(device), remedy)
        return int32("device", device[1])
    meant = filtered(device) if isinstance(device, str) else device
    if meant is None:
        if not _core.device_rows():
            _core.root_device(0)  # refuses: there is no device
        remedy = "`python -m usm_dlpack devices` shows them"
        refuse(
            ValueError, "device", "the filter string of a device that exists", shown(device), remedy
        )
    if not isinstance(meant, dpctl.SyclDevice):
        named = "device_id"
        with contextlib.suppress(TypeError):
            number = -1 if isinstance(device, bool) else index(device)
            named = str(number) if 0 <= number < 2**31 else named
        expected = f"(14, device_id), {kinds} of dpctl"
        refuse(TypeError, "device", expected, shown(device), f"pass (14, {named})")
    return int(_core.device_id(meant))


def destination(device: Any) -> tuple[int, dpctl.SyclQueue | None]:
    """Return the DLPack id of a device, or of a queue's device, and the queue."""
    import dpctl

    if _is_of_type(device, _KDL_CPU):
        expected = "a root device as (14, device_id), since a DLPackTensor is USM"
        remedy = 'copy to the host with numpy(), or numpy.from_dlpack(x, device="cpu")'
        raise ConversionError("request_unsupported", "device", expected, shown(device), remedy)
    if isinstance(device, dpctl.SyclQueue):
        return _core.device_id(device.sycl_device), device
    return device_id(device, "a filter string, a device or a queue"), None
