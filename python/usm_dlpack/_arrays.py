# SPDX-License-Identifier: Apache-2.0
"""The types of arrays in the signatures of extensions, for type checkers."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias


class SupportsDLPack(Protocol):
    """An object that exports its memory through DLPack, with any keywords."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a capsule."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Return device type and device id."""


class SupportsSyclUsm(Protocol):
    """An object that describes its USM, like dpctl's and dpnp's."""

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """Return data, shape, strides, typestr, offset, syclobj and version."""


#: The arguments that an extension function accepts for a view of USM.
UsmArray: TypeAlias = SupportsDLPack | SupportsSyclUsm
