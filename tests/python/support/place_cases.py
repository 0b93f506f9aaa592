# SPDX-License-Identifier: Apache-2.0
"""What each keyword for a place takes: the table of docs/how-to/places.md, with an object to try.

The objects of dpnp and PyTorch are stand-ins of the same shape; those of the libraries themselves
are tried in tests/interoperability.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import dpctl
import numpy as np
from c_exchange_api import Table
from capsules import ForeignArray, ForeignTensor
from dpctl import memory
from memory_sources import Carrier
from usm_dlpack import DLPackTensor, to_dlpack_tensor

KEYWORDS = (
    "`device` of `from_dlpack` and `empty`",
    "`device` of `validate` and `device_id`",
    "`queue` of `to_dlpack_tensor` and `copy_from`",
    "`stream` of `__dlpack__`",
)
KNOWS_A_QUEUE = ("device and queue", "device", "queue", "queue")
NAMES_A_DEVICE = ("device", "device", "TypeError", "ValueError")
IS_AN_ADDRESS = ("TypeError", "TypeError", "queue", "queue")
IS_ON_THE_HOST = ("`request_unsupported`", "`request_unsupported`", "TypeError", "ValueError")
IS_NO_PLACE = ("TypeError", "TypeError", "TypeError", "ValueError")


@dataclass(frozen=True)
class Case:
    """A row of the table: what is passed, and what each keyword makes of it."""

    what: str
    cells: tuple[str, ...]
    make: tuple[Callable[[Any], Any], ...]  # from a queue of root device 0, as the row says
    backend: str = ""  # the only one that has such an object


class DeviceType(enum.Enum):
    """What the array API calls a device type, which need be no int."""

    ONE_API = 14
    NONE = "none"


class TorchDevice:
    """A ``torch.device``: it says nothing of DLPack itself."""

    __module__ = "torch"

    def __init__(self, type: str) -> None:  # noqa: A002
        self.type = type


TorchDevice.__name__ = "device"


def torch_tensor(kind: str) -> Any:
    """Return a tensor whose ``__dlpack_device__`` gives an index of PyTorch's own, as there."""
    foreign = ForeignTensor(0, shape=(0,))
    foreign.tensor.data = None
    foreign.tensor.device_type = {"xpu": 14, "cpu": 1}[kind]
    table = Table(foreign)
    return table.array(table=table, __dlpack_device__=lambda self: (14, 7))


def sub_device(queue: Any) -> Any:
    return queue.sycl_device.create_sub_devices(partition=1)[1]


def with_queue(sycl_queue: Any) -> Any:
    return SimpleNamespace(sycl_queue=sycl_queue)


def device_of_array(queue: Any) -> Any:
    """Return what the attribute ``device`` of dpctl's and dpnp's arrays is like."""
    names = ("sycl_queue", "sycl_device", "sycl_context")
    of_queue = {name: getattr(queue, name) for name in names[1:]}
    return SimpleNamespace(sycl_queue=queue, **of_queue)


CASES = (
    Case("`dpctl.SyclQueue`", KNOWS_A_QUEUE, (lambda queue: queue,)),
    Case('capsule "SyclQueueRef"', KNOWS_A_QUEUE, (lambda queue: queue._get_capsule(),)),
    Case("object with `_get_capsule()`, which returns such a capsule", KNOWS_A_QUEUE, (Carrier,)),
    Case(
        "object with `sycl_queue`, one of the above or an address (`torch.xpu.Stream`)",
        KNOWS_A_QUEUE,
        (
            with_queue,
            lambda queue: with_queue(queue._get_capsule()),
            lambda queue: with_queue(Carrier(queue)),
            lambda queue: with_queue(queue.addressof_ref()),
        ),
    ),
    Case(
        "array with a queue, such as a `DLPackTensor`, or dpnp's; the `device` of dpnp's",
        KNOWS_A_QUEUE,
        (
            device_of_array,
            lambda queue: memory.MemoryUSMDevice(4, queue=queue),
            lambda queue: to_dlpack_tensor(memory.MemoryUSMHost(4), queue=queue),
        ),
    ),
    Case(
        "array without a queue, such as PyTorch's",
        NAMES_A_DEVICE,
        (lambda queue: ForeignArray(ForeignTensor(0)), lambda queue: torch_tensor("xpu")),
    ),
    Case(
        "`dpctl.SyclDevice`, or an object with `sycl_device`",
        NAMES_A_DEVICE,
        (
            lambda queue: queue.sycl_device,
            lambda queue: SimpleNamespace(sycl_device=queue.sycl_device, sycl_queue=None),
        ),
    ),
    Case("sub-device, which means its root", NAMES_A_DEVICE, (sub_device,), "opencl"),
    Case(
        "filter string, such as `gpu:0`",
        NAMES_A_DEVICE,
        (lambda queue: queue.sycl_device.get_filter_string(),),
    ),
    Case(
        "`(14, device_id)`",
        NAMES_A_DEVICE,
        (
            lambda queue: (14, 0),
            lambda queue: (np.int32(14), np.int64(0)),
            lambda queue: (DeviceType.ONE_API, 0),
        ),
    ),
    Case(
        "`(1, 0)`, an array in host memory",
        IS_ON_THE_HOST,
        (lambda queue: (1, 0), lambda queue: np.zeros(2), lambda queue: torch_tensor("cpu")),
    ),
    Case("address of a `sycl::queue`", IS_AN_ADDRESS, (lambda queue: queue.addressof_ref(),)),
    Case(
        "other number, such as an id alone",
        IS_NO_PLACE,
        tuple(
            lambda queue, number=number: number for number in (0, 1, 2, 4097, True, np.int64(-1))
        ),
    ),
    Case(
        "`torch.device`, `dpctl.SyclContext`, a class, anything else",
        IS_NO_PLACE,
        (
            lambda queue: TorchDevice("xpu"),
            lambda queue: queue.sycl_context,
            lambda queue: queue.sycl_context._get_capsule(),
            lambda queue: dpctl.SyclQueue,
            lambda queue: DLPackTensor,
            lambda queue: [14, 0],
            lambda queue: object(),
        ),
    ),
)


def table() -> str:
    """Return the table of the page."""
    heads = ("what you pass", *KEYWORDS)
    lines = [heads, ["---"] * len(heads), *([case.what, *case.cells] for case in CASES)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(table())
