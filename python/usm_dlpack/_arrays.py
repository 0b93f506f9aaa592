# SPDX-License-Identifier: Apache-2.0
"""The types of arrays, devices and queues in signatures, for type checkers."""

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias


class SupportsDLPack(Protocol):
    """An object that exports its memory through DLPack; any keywords are accepted."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a capsule."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Return device type and device id."""


class SupportsSyclUsm(Protocol):
    """An object that describes its USM, like dpctl's and dpnp's."""

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """Return data, shape, strides, typestr, offset, syclobj and version."""


#: The kinds of USM.
UsmType: TypeAlias = Literal["host", "device", "shared"]

#: The arguments that an extension function accepts for a view of USM.
UsmArray: TypeAlias = SupportsDLPack | SupportsSyclUsm


class _OfDpctl(Protocol):
    """A class of dpctl, which has no types: it may have any attribute."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class SyclDevice(_OfDpctl, Protocol):
    """A ``dpctl.SyclDevice``."""


class SyclContext(_OfDpctl, Protocol):
    """A ``dpctl.SyclContext``."""


class SyclQueue(_OfDpctl, Protocol):
    """A ``dpctl.SyclQueue``."""


class _KnowsQueue(Protocol):
    """An array, a stream of PyTorch, or another object with a queue."""

    @property
    def sycl_queue(self) -> Any: ...


class _CarriesQueue(Protocol):
    """An object that exports a capsule of its queue."""

    def _get_capsule(self) -> Any: ...


class _KnowsDevice(Protocol):
    @property
    def sycl_device(self) -> Any: ...


class _KnowsNumpy(Protocol):  # noqa: PYI046  (the stub of _core uses it)
    @property
    def __array_interface__(self) -> dict[str, Any]: ...


#: An object that names a root device, and perhaps a queue on it: a device, a queue, an array or its
#: ``device``, a filter string, or ``(14, device_id)``. :doc:`/how-to/places` lists them all.
Place: TypeAlias = (
    SyclDevice
    | SyclQueue
    | _KnowsQueue
    | _CarriesQueue
    | _KnowsDevice
    | SupportsDLPack
    | tuple[int, int]
    | str
)

SupportsDLPack.__module__ = SupportsSyclUsm.__module__ = "usm_dlpack"
SyclDevice.__module__ = SyclContext.__module__ = SyclQueue.__module__ = "dpctl"
