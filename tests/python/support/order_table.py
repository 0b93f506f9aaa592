# SPDX-License-Identifier: Apache-2.0
"""The table of order: who made an array, who works on it, on which queue, and who uses it next.

A maker gives an array with work pending on its memory. A use of the array must wait for that work,
or a queue that it is handed over to must come after it.
"""

import functools
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import extension_under_test
import numpy as np
import pytest
from c_exchange_api import ExchangeAPI, Table
from capsules import (
    NEWEST,
    ForeignArray,
    ForeignTensor,
    OldArray,
    Ordering,
    bytes_on_host,
    dpctl_queue,
    package_queue,
)
from dpctl.memory import as_usm_memory
from memory_sources import TypedArray, address_of, allocate, new_queue
from pending_work import (
    COUNT,
    PendingFill,
    Reader,
    answer_at_once,
    answer_behind,
    check_order,
    memory_at,
)
from usm_dlpack import DLPackTensor, empty, from_dlpack, to_dlpack_tensor

HOST, HERE = (1, 0), (14, 0)
WRITTEN = 3.0
Start = Callable[..., PendingFill]
api = ExchangeAPI(DLPackTensor)

QUEUES: dict[str, Callable[[], Any]] = {
    "in order": lambda: new_queue(in_order=True),
    "out of order": new_queue,
    "dpctl's": dpctl_queue,
    "the package's": package_queue,
}
NAMED = ("in order", "out of order")
# Behind the work of these stands a host task of dpctl, which takes the GIL.
WITH_HOST_TASK = tuple(f"{kind}, host task" for kind in NAMED)


def extension(binding: str) -> Any:
    names = {"nanobind": extension_under_test.NAME, "pybind11": "pybind11_under_test_module"}
    return extension_under_test.load(names[binding])


def now(x: Any) -> Any:
    """Return the values of a copy without a wait for the queues that its array knows."""
    return from_dlpack(OldArray(x.__dlpack__(stream=-1))).numpy()


# --- who made it


# For `start` and a queue: the array, the work that is pending on it, and what must be kept.
Make = Callable[[Start, Any], tuple[Any, ...]]


class Maker(NamedTuple):
    make: Make
    kinds: tuple[str, ...] = NAMED
    gives: str = "tensor"  # or "array", or "interface" if it has the SYCL array interface alone
    says_queue: bool = False  # whether the pending work is on the array's own queue


def foreign(memory: Any) -> ForeignTensor:
    return ForeignTensor(address_of(memory), shape=(COUNT,))


def by_property(memory: Any, queue: Any) -> Any:
    capsule = foreign(memory).capsule
    members = {
        "__dlpack__": lambda self, *, max_version=None: capsule(),
        "sycl_queue": property(lambda self: queue),
    }
    return type("Producer", (), members)()


def by_attribute(memory: Any, queue: Any) -> Any:
    return SimpleNamespace(__dlpack__=by_property(memory, queue).__dlpack__, sycl_queue=queue)


class Proxy:
    """An array whose type says nothing: `__getattr__` gives all that it has."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


def by_table(memory: Any, queue: Any) -> Any:
    """Return an array that says its queue in the table of its type, as PyTorch's tensors do."""
    table = Table(foreign(memory))
    table.stream = queue.addressof_ref() if queue else None
    array = table.array()
    array.table = table
    return array


LIBRARIES: dict[str, Callable[[Any, Any], Any]] = {
    "property": by_property,
    "attribute": by_attribute,
    "proxy": lambda memory, queue: Proxy(by_property(memory, queue)),
    "C exchange API": by_table,
}


def of_context(memory: Any, _queue: Any = None) -> Any:
    return TypedArray(memory, syclobj=memory.sycl_context)


def of_dpctl(give: Callable[[Any, Any], Any], *, named: bool = True) -> Make:
    """Return a maker of an array over memory of dpctl, which gets the queue or None."""

    def make(start: Start, queue: Any) -> tuple[Any, ...]:
        memory = allocate("device", 4 * COUNT, queue)
        memory.copy_from_host(np.zeros(4 * COUNT, np.uint8))
        x = give(memory, queue if named else None)
        return x, start(queue, into=memory)

    return make


def zeros(where: Any) -> DLPackTensor:
    return from_dlpack(np.zeros(COUNT, "f4"), device=where)


def start_on(start: Start, x: DLPackTensor, queue: Any) -> PendingFill:
    """Start work on a tensor's memory of which the tensor is not told."""
    return start(queue, into=memory_at(x.data, x.nbytes, queue))


def ours(make: Callable[[Any], DLPackTensor]) -> Make:
    def made(start: Start, queue: Any) -> tuple[Any, ...]:
        x = make(queue)
        return x, start_on(start, x, queue)

    return made


def capsule_of_lent(start: Start, queue: Any) -> tuple[Any, ...]:
    """Make an array that has a capsule of a tensor, which was given to a consumer besides."""
    x = zeros(HERE)
    taken = from_dlpack(x, device=queue)
    return OldArray(x.__dlpack__(stream=-1)), start_on(start, x, queue), taken


MAKERS: dict[str, Maker] = {
    "tensor": Maker(
        of_dpctl(lambda memory, queue: to_dlpack_tensor(memory, dtype="f4", queue=queue)),
        (*NAMED, *WITH_HOST_TASK),
        says_queue=True,
    ),
    "tensor for another queue": Maker(
        of_dpctl(lambda memory, _: to_dlpack_tensor(memory, dtype="f4", queue=new_queue()))
    ),
    "tensor of dpctl.memory": Maker(
        of_dpctl(lambda memory, queue: to_dlpack_tensor(memory, dtype="f4")), says_queue=True
    ),
    "copy": Maker(ours(zeros), says_queue=True),
    "copy for a queue": Maker(
        ours(lambda queue: from_dlpack(OldArray(zeros(HERE).__dlpack__(copy=True, stream=queue)))),
        says_queue=True,
    ),
    **{
        f"result of {binding}": Maker(
            ours(lambda queue, binding=binding: extension(binding).copied(zeros(queue))),
            says_queue=True,
        )
        for binding in ("nanobind", "pybind11")
    },
    "tensor without a queue": Maker(
        of_dpctl(lambda memory, _: to_dlpack_tensor(of_context(memory))), ("dpctl's",)
    ),
    "tensor that has the package's": Maker(
        of_dpctl(lambda memory, _: to_dlpack_tensor(of_context(memory))),
        ("the package's",),
        says_queue=True,
    ),
    "memory": Maker(
        of_dpctl(lambda memory, _: TypedArray(memory)), gives="interface", says_queue=True
    ),
    "memory without a queue": Maker(of_dpctl(of_context), ("dpctl's",), "interface"),
    **{
        f"{name} with a queue": Maker(of_dpctl(library), gives="array", says_queue=True)
        for name, library in LIBRARIES.items()
    },
    **{
        f"{name} without a queue": Maker(of_dpctl(library, named=False), ("dpctl's",), "array")
        for name, library in LIBRARIES.items()
    },
    "library": Maker(
        of_dpctl(lambda memory, _: ForeignArray(foreign(memory))), ("dpctl's",), "array"
    ),
    "library that orders streams": Maker(
        of_dpctl(lambda memory, queue: Ordering(foreign(memory), queue)), gives="array"
    ),
    "legacy capsule": Maker(
        of_dpctl(lambda memory, _: OldArray(foreign(memory).capsule())), ("dpctl's",), "array"
    ),
    "capsule of a tensor that was given": Maker(capsule_of_lent, gives="array"),
}  # fmt: skip


# --- to whom a tensor was given, who works on it now


def third_of(x: DLPackTensor) -> DLPackTensor:
    """Return a tensor of every third element, backwards."""
    return to_dlpack_tensor(x, shape=(4,), strides=(-3,), byte_offset=44)


LENDS: dict[str, Callable[[Any, Any], Any]] = {
    "by stream": lambda x, queue: x.__dlpack__(stream=queue, max_version=NEWEST),
    "as a tensor": lambda x, queue: from_dlpack(x, device=queue),
    "as a view": lambda x, queue: to_dlpack_tensor(x, shape=COUNT, queue=queue),
}
LENDS_WITHOUT_QUEUE: dict[str, Callable[[Any], Any]] = {
    "without a stream": lambda x: x.__dlpack__(max_version=NEWEST),
    "by a capsule of it": lambda x: from_dlpack(x.__dlpack__()).__dlpack__(),
    "by a view of it": lambda x: third_of(x).__dlpack__(),
    "by its interface": as_usm_memory,
}
LENDS_OF_RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    f"by a result of {name}": lambda x, queue, name=name: LENDS["by stream"](
        extension(name).given_back(x), queue
    )
    for name in ("nanobind", "pybind11")
}
LENDS_IN_C = {"by the C exchange API": api.export, "as a DLTensor": api.borrow}
ORIGINS: dict[str, Callable[[], DLPackTensor]] = {
    "copy": lambda: zeros(new_queue(in_order=True)),
    "copy without a queue": lambda: zeros(HERE),
    "memory of dpctl": lambda: to_dlpack_tensor(
        allocate("device", 4 * COUNT, new_queue()), dtype="f4", queue=new_queue(in_order=True)
    ),
}


def lent(origin: str, lend: Callable[[Any, Any], Any]) -> Make:
    def make(start: Start, queue: Any) -> tuple[Any, ...]:
        x = ORIGINS[origin]()
        taken = lend(x, queue)
        return x, start_on(start, x, queue), taken

    return make


def without_queue(lend: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, _: lend(x)


for _origin in ORIGINS:
    _lends = (
        *((name, lend, NAMED) for name, lend in LENDS.items()),
        *((name, lend, ("in order",)) for name, lend in LENDS_OF_RESULTS.items()),
        *((name, without_queue(f), ("dpctl's",)) for name, f in LENDS_WITHOUT_QUEUE.items()),
        *((name, without_queue(f), ("the package's",)) for name, f in LENDS_IN_C.items()),
    )
    for _name, _lend, _kinds in _lends:
        # A tensor without a queue has the package's, on which C works.
        _is_own = _kinds == ("the package's",) and _origin == "copy without a queue"
        MAKERS[f"{_origin}, given {_name}"] = Maker(
            lent(_origin, _lend), _kinds, says_queue=_is_own
        )


# --- who uses it next: what the host waits for, with the values that it gets, if any


def copied_from(x: Any) -> Any:
    made = empty(COUNT, "f4")
    made.copy_from(x)
    return now(made)


def on_host(capsule: Any) -> Any:
    return np.frombuffer(bytes_on_host(capsule), "f4")


def in_capsule(x: DLPackTensor, **keywords: Any) -> Any:
    return now(from_dlpack(OldArray(x.__dlpack__(copy=True, **keywords))))


Uses = dict[str, Callable[[Any], Any]]
# As parameters of extensions.
_PLAIN: Uses = {
    "a view": lambda ext, x: ext.rank_one(x),
    "an optional": lambda ext, x: ext.maybe(x),
    "a pointer": lambda ext, x: ext.maybe_pointer(x),
    "in a list": lambda ext, x: ext.sizes([x]),
}
OF_INTERFACES: Uses = {
    "copy_from it": copied_from,
    **{
        f"{name} of {binding}": lambda x, call=call, binding=binding: call(extension(binding), x)
        for name, call in _PLAIN.items()
        for binding in ("nanobind", "pybind11")
    },
    "section of nanobind": lambda x: now(extension("nanobind").copied(x)),
    "section of pybind11": lambda x: now(extension("pybind11").copied(x)),
}
# They wait for all queues but their own.
OWNED: Uses = {
    f"an owned view of {binding}": lambda x, binding=binding: extension(binding).given_back(x)
    for binding in ("nanobind", "pybind11")
}
OF_ARRAYS: Uses = {
    "from_dlpack": lambda x: from_dlpack(x).numpy(),
    "copy=True": lambda x: now(from_dlpack(x, copy=True)),
    "copy for a queue": lambda x: now(from_dlpack(x, copy=True, device=new_queue())),
    "copy of another kind": lambda x: now(from_dlpack(x, usm_type="host")),
}
OF_TENSORS: Uses = {
    "numpy": lambda x: x.numpy(),
    "numpy with gaps": lambda x: np.tile(third_of(x).numpy(), 3),
    "wait": lambda x: x.wait(),
    "no stream": lambda x: x.__dlpack__(),
    "stream=None": lambda x: x.__dlpack__(stream=None, max_version=NEWEST),
    "the own device": lambda x: x.__dlpack__(dl_device=x.device, copy=False),
    "interface": lambda x: x.__sycl_usm_array_interface__,
    "dpctl.memory": as_usm_memory,
    "host": lambda x: on_host(x.__dlpack__(dl_device=HOST)),
    "copy for the host": lambda x: on_host(x.__dlpack__(dl_device=HOST, copy=True, stream=-1)),
    "copy in a capsule": in_capsule,
    "copy in a capsule for a queue": lambda x: in_capsule(x, stream=new_queue()),
    "copy_from itself": lambda x: x.copy_from(x),
    "copy with gaps": lambda x: np.tile(now(from_dlpack(third_of(x), copy=True)), 3),
}
WRITES: Uses = {
    "write": lambda x: x.copy_from(np.full(COUNT, WRITTEN, "f4")),
    "write of USM": lambda x: x.copy_from(from_dlpack(np.full(COUNT, WRITTEN, "f4"), device=HERE)),
}
USES = {
    "interface": OF_INTERFACES,
    "array": OF_INTERFACES | OF_ARRAYS,
    "tensor": OF_INTERFACES | OF_ARRAYS | OF_TENSORS | WRITES,
}

# --- to whose queue it is handed over

CONSUMERS = ("in order", "out of order, by a kernel")
Hand = Callable[[Any, Any], Any]
HANDS: dict[str, dict[str, Hand]] = {"interface": {}, "array": {"device": LENDS["as a tensor"]}}
HANDS["tensor"] = HANDS["array"] | {
    "stream": LENDS["by stream"],
    "capsule": lambda x, queue: from_dlpack(x.__dlpack__(stream=-1), device=queue),
}
HANDS_IN_C: dict[str, Hand] = {name: without_queue(give) for name, give in LENDS_IN_C.items()}


# --- which cells run: all in the extended run, otherwise the rows and columns of these

ROWS = ("tensor",)
COLUMNS = ("numpy", "copy_from it", "from_dlpack", "a view of nanobind", "device", "stream")


def cells(
    makers: dict[str, Maker], uses: Callable[[Maker], dict[str, Any]], *others: tuple[str, ...]
) -> list[Any]:
    """Return the parameters of a test: a maker, a kind of queue, a use, and others."""
    params = []
    for name, maker in makers.items():
        for kind, use, *rest in itertools.product(maker.kinds, uses(maker), *others):
            marks = () if name in ROWS or use in COLUMNS else pytest.mark.extended
            id_ = " - ".join((name, kind, use, *rest))
            params.append(pytest.param(maker, kind, uses(maker)[use], *rest, id=id_, marks=marks))
    return params


def uses_of(maker: Maker) -> Uses:
    return USES[maker.gives] if maker.says_queue else USES[maker.gives] | OWNED


def hands_of(maker: Maker) -> dict[str, Hand]:
    return HANDS[maker.gives]


def begin(maker: Maker, kind: str, start: Start) -> tuple[Any, ...]:
    """Return what a maker gives, with a host task behind the work if its kind says so."""
    array, pending, *kept = maker.make(start, QUEUES[kind.removesuffix(", host task")]())
    if kind in WITH_HOST_TASK:
        pending.keep_alive()
    return array, pending, *kept


def bits(values: Any) -> list[int]:
    found: list[int] = np.asarray(values, "f4").view("i4").tolist()
    return found


def check_use(maker: Maker, kind: str, use: Callable[[Any], Any], start: Start) -> None:
    """Require that a use waits for the pending work, and gets its values or writes after it."""
    x, pending, *_kept = begin(maker, kind, start)
    answer = answer_behind(pending, lambda: use(x))
    if not isinstance(answer, np.ndarray):
        answer = np.array(Reader(new_queue(), pending.memory).seen, "i4").view("f4")
    assert bits(answer) == (bits([WRITTEN] * COUNT) if use in WRITES.values() else pending.values)


def check_hand(maker: Maker, kind: str, hand: Hand, consumer: Any, start: Start) -> None:
    """Require that a consumer's queue comes behind pending work, and that the host does not wait.

    To an out-of-order queue it waits for a host task: `queue::memcpy` would overtake a barrier.
    """
    x, pending, *_kept = begin(maker, kind, start)
    call = functools.partial(hand, x, consumer)
    if consumer.is_in_order or not pending.has_host_task:
        _taken = answer_at_once(pending, call)
        check_order(consumer, pending)
    else:
        _taken = answer_behind(pending, call)
        assert Reader(consumer, pending.memory, copies=True).seen == pending.values
