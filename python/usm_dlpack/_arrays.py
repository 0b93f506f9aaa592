# SPDX-License-Identifier: Apache-2.0
"""What counts as an array, for type checkers: signatures of extensions name it."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias


class SupportsDLPack(Protocol):
    """An object that hands out its memory by DLPack, with whatever keywords."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a capsule."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Return device type and device id."""


class SupportsSyclUsm(Protocol):
    """An object that says where its USM is, as dpctl's and dpnp's do."""

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """Return data, shape, strides, typestr, offset, syclobj and version."""


#: What an extension function takes where its C++ parameter is a view of USM.
UsmArray: TypeAlias = SupportsDLPack | SupportsSyclUsm
