# SPDX-License-Identifier: Apache-2.0
"""The table of order with dpnp or dpctl.tensor, which order their work by events of their own.

Either one of them works on an array that is used next, or it uses one of another row next. What
they do by themselves, with work on the queue of an array, stands in a table of
docs/how-to/dpctl.md, whose cells are measured here.
"""

import re
import signal
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import order_table as table
import pytest
from dpctl.utils import SequentialOrderManager
from memory_sources import new_queue
from pending_work import COUNT, LATE, ZEROS, PendingFill, Reader, Waiting
from usm_dlpack import from_dlpack, to_dlpack_tensor

HAS_DPNP = not find_spec("dpctl.tensor")
TENSOR = "dpnp.tensor" if HAS_DPNP else "dpctl.tensor"
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # dpctl.tensor announces that it moves
    XP = import_module("dpnp" if HAS_DPNP else TENSOR)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "dpctl.md"
AFTER = 7.0
SOON = 0.05  # seconds until the gate opens for a call that waits
KINDS = (*table.NAMED, "dpctl's")


@pytest.fixture
def start() -> Iterator[table.Start]:
    """Return a function that starts a fill with float32 of ``AFTER``, held back until it opens."""
    started: list[PendingFill] = []

    def begin(queue: Any, usm: str = "device", *, into: Any = None) -> PendingFill:
        value = int(np.float32(AFTER).view("i4"))
        started.append(PendingFill(queue, usm, into=into, value=value))
        return started[-1]

    yield begin
    for pending in started:
        pending.end()
        SequentialOrderManager[pending.queue].wait()
        pending.queue.wait()
    signal.alarm(0)  # of `PendingFill`


# --- who made it: dpnp or dpctl.tensor, or who gave them the array


class Held:
    """An operation that waits for a gate, as it waits for an earlier one: by an event."""

    has_host_task = True  # which keeps the operands

    def __init__(self, start: table.Start, queue: Any, operation: Callable[[], Any]) -> None:
        self._gate = start(new_queue())
        self.queue, self.values = queue, self._gate.values
        SequentialOrderManager[queue].add_event_pair(self._gate.event, self._gate.event)
        self.array = operation()
        assert self.is_pending
        self.memory = memory_of(self.array)
        self.open, self.open_later = self._gate.open, self._gate.open_later

    @property
    def is_pending(self) -> bool:
        return self._gate.is_pending


def memory_of(x: Any) -> Any:
    """Return the memory of an array; its array interface might wait."""
    return (x.get_array() if hasattr(x, "get_array") else x).usm_data


def full(value: float, queue: Any, size: int = COUNT) -> Any:
    made = XP.full(size, value, dtype="f4", sycl_queue=queue)
    queue.wait()
    return made


def increase(x: Any, y: Any) -> Any:
    x += y
    return x


# Give twelve of ``AFTER``, for twelve of a value and one of another. dpnp waits if it uses oneMKL,
# for two arrays of one shape, or a number.
OPERATIONS: dict[str, tuple[float, float, Callable[[Any, Any], Any]]] = {
    "in place": (0, AFTER, increase),
    "elementwise": (0, AFTER, lambda x, y: x + y),
    "copy": (AFTER, 1, lambda x, y: XP.asarray(x, copy=True)),
    "dot": (AFTER, 1, lambda x, y: XP.vecdot(XP.reshape(x, (COUNT, 1)), y)),
    "matmul": (AFTER, 1, lambda x, y: XP.matmul(XP.reshape(x, (COUNT, 1)), y)),
}


def held(start: table.Start, x: Any, operation: str = "in place") -> Held:
    of_x, of_y, function = OPERATIONS[operation]
    y = full(of_y, x.sycl_queue, 1)
    function(x, y)  # the first time is slow
    x[...] = of_x
    SequentialOrderManager[x.sycl_queue].wait()
    return Held(start, x.sycl_queue, lambda: function(x, y))


def of_operation(operation: str) -> table.Make:
    def make(start: table.Start, queue: Any) -> tuple[Any, ...]:
        pending = held(start, full(0, queue), operation)
        return pending.array, pending

    return make


def as_(share: Callable[[Any], Any]) -> table.Make:
    """Return a maker of what an array becomes, on which an operation is held then."""

    def make(start: table.Start, queue: Any) -> tuple[Any, ...]:
        array = full(0, queue)
        return share(array), held(start, array)

    return make


class RefusesStreams:
    """A producer that has no queue, and accepts no stream."""

    def __init__(self, array: Any, error: type[Exception]) -> None:
        self.array, self.error = array, error
        self.__dlpack_device__ = array.__dlpack_device__

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        if stream is not None:
            raise self.error("stream: expected None")
        return self.array.__dlpack__(**keywords)


class Delegating:
    """A class of a user, which has no queue."""

    def __init__(self, array: Any) -> None:
        self.__dlpack_device__ = array.__dlpack_device__
        self._array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)


TAKES: dict[str, Callable[[Any], Any]] = {
    f"{name}.{function}": getattr(import_module(name), function)
    for name in dict.fromkeys((XP.__name__, TENSOR))
    for function in ("from_dlpack", "asarray")
}
SHARING = {name: take for name, take in TAKES.items() if name != "dpnp.asarray"}  # which copies


def given(make: Callable[[Any], Any], take: Callable[[Any], Any]) -> table.Make:
    """Return a maker of a tensor that dpnp or dpctl.tensor took, and work on."""

    def made(start: table.Start, queue: Any) -> tuple[Any, ...]:
        x = make(queue)
        return x, held(start, take(x))

    return made


GIVEN: dict[str, Callable[[Any], Any]] = {
    "tensor": table.zeros,
    "tensor without a queue": lambda _: table.zeros(table.HERE),
    "result": lambda queue: table.extension("nanobind").zeros(queue, COUNT),
    "class": lambda queue: table.extension("nanobind").SelfOwned(queue, COUNT).values,
}
MAKERS: dict[str, table.Maker] = {
    **{
        f"array, {name}": table.Maker(of_operation(name), KINDS, "array", says_queue=True)
        for name in OPERATIONS
        if (HAS_DPNP, name) != (True, "dot")
    },
    "tensor of an array": table.Maker(as_(to_dlpack_tensor), KINDS, says_queue=True),
    "tensor for a queue": table.Maker(as_(lambda x: from_dlpack(x, device=new_queue())), KINDS),
    **{
        f"array that refuses streams by {error.__name__}": table.Maker(
            as_(lambda x, error=error: RefusesStreams(x, error)), ("dpctl's",), "array"
        )
        for error in (ValueError, BufferError, NotImplementedError)
    },
    "array in a class": table.Maker(as_(Delegating), KINDS, "array"),
    **{
        f"{name}, given by {take}": table.Maker(given(make, function), table.NAMED)
        for name, make in GIVEN.items()
        for take, function in SHARING.items()
    },
}


def uses_of(maker: table.Maker) -> table.Uses:
    return {name: use for name, use in table.uses_of(maker).items() if "pybind11" not in name}


@pytest.mark.parametrize(("maker", "kind", "use"), table.cells(MAKERS, uses_of))
def test_a_use_waits_for_pending_work(maker, kind, use, start):
    table.check_use(maker, kind, use, start)


# These order a consumer's queue themselves, by a barrier.
HANDED = {name: maker for name, maker in MAKERS.items() if name != "array in a class"}


@pytest.mark.parametrize(
    ("maker", "kind", "hand", "to"), table.cells(HANDED, table.hands_of, table.NAMED)
)
def test_a_queue_comes_behind_pending_work(maker, kind, hand, to, start):
    table.check_hand(maker, kind, hand, table.QUEUES[to](), start)


# --- who uses it next


# Each gives twelve of ``AFTER`` for as many.
NEXT: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: XP.negative(XP.negative(x)),
    "copy": lambda x: XP.asarray(x, copy=True),
    "dot": lambda x: XP.vecdot(XP.reshape(x, (COUNT, 1)), XP.ones_like(x[:1])),
    "matmul": lambda x: XP.matmul(XP.reshape(x, (COUNT, 1)), XP.ones_like(x[:1])),
}
USES: table.Uses = {
    f"{take}, {name}": lambda x, take=take, act=act: XP.asnumpy(act(TAKES[take](x)))
    for take in TAKES
    for name, act in NEXT.items()
} | {"numpy.from_dlpack": lambda x: np.from_dlpack(x, device="cpu")}
OURS = {
    name: maker
    for name, maker in table.MAKERS.items()
    if maker.gives == "tensor" and "pybind11" not in name
}


@pytest.mark.parametrize(("maker", "kind", "use"), table.cells(OURS, lambda _: USES))
def test_their_use_waits_for_pending_work(maker, kind, use, start):
    table.check_use(maker, kind, use, start)


@pytest.mark.parametrize("use", table.WRITES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_write_comes_after_a_pending_read(kind, use, start):
    array = full(0, table.QUEUES[kind]())
    x, reading = to_dlpack_tensor(array), held(start, array, "elementwise")
    waiting = Waiting(lambda: table.WRITES[use](x))
    assert waiting.is_waiting()
    reading.open()
    waiting.end()
    assert (XP.asnumpy(reading.array) == AFTER).all()
    assert (x.numpy() == table.WRITTEN).all()


def test_what_is_behind_a_host_task_is_waited_for():
    x = XP.asarray(np.arange(1, 300_001, dtype=np.float32))
    values = XP.asnumpy(x / XP.mean(x))
    from_dlpack(x / XP.mean(x)).numpy()  # now the package has met a host task
    for _ in range(300):
        assert np.array_equal(from_dlpack(x / XP.mean(x)).numpy(), values)


@pytest.mark.parametrize("kind", KINDS)
def test_without_this_package_a_use_is_too_early(kind, start):
    pending = held(start, full(0, table.QUEUES[kind]()))
    assert Reader(new_queue(), pending.memory).seen == ZEROS
    assert pending.is_pending


# The kernels of functions are built by the runtime of dpnp's release.
if HAS_DPNP:

    @pytest.mark.parametrize("kind", KINDS)
    def test_from_an_array_to_functions_and_back_without_naming_a_queue(kind, start):
        extension, array = table.extension("nanobind"), full(0, table.QUEUES[kind]())
        total = full(1, array.sycl_queue)
        extension.axpy(0.0, array, total)  # builds the kernel
        pending = held(start, array)
        pending.open_later(0.05)
        extension.axpy(2.0, array, total)
        total += full(1, total.sycl_queue)
        extension.Field(total).scale(2.0)
        assert (XP.asnumpy(total) == 2 * (1 + 2 * AFTER + 1)).all()


# --- the table of docs/how-to/dpctl.md


WORDS = {"waits": False, "too early": True}
# The order of the queue, and whether it gets a barrier.
COLUMNS = {
    "in order": ("in order", False),
    "out of order": ("out of order", False),
    "out of order, barrier": ("out of order", True),
}


def cells() -> list[tuple[str, str, str]]:
    """Return each operation of the page with a column and its word."""
    section = PAGE.read_text().partition("\n## Order\n")[2].partition("\n## ")[0]
    head, _, *rows = [line.strip("| ").split(" | ") for line in re.findall(r"^\|.*", section, re.M)]
    assert head[1:] == list(COLUMNS)
    return [
        (operation.replace("dpnp.tensor", TENSOR), column, word)
        for operations, *words in rows
        for operation in re.findall(r"`(.*?)`", operations)
        for column, word in zip(COLUMNS, words, strict=True)
        if HAS_DPNP or "dpnp.tensor" in operation
    ]


@pytest.mark.parametrize("host_task", [False, True], ids=["commands", "host task"])
@pytest.mark.parametrize(("operation", "column", "word"), cells())
def test_the_page_says_which_operations_look_at_the_queue(
    operation, column, word, host_task, start
):
    kind, barrier = COLUMNS[column]
    queue = table.QUEUES[kind]()
    tensor = import_module(TENSOR)

    def seen(x: Any) -> Any:
        return x if isinstance(x, np.ndarray | np.generic) else XP.asnumpy(x)

    def of(t: Any) -> Any:
        names = {"dpnp": XP, "dpctl": dpctl, "t": t}
        if HAS_DPNP:
            names["x"] = XP.asarray(t)  # neither copies nor waits
            names["m"] = XP.reshape(names["x"][:9], (3, 3))
        return eval(operation, names)

    finished = seen(of(tensor.full(COUNT, AFTER, dtype="f4", sycl_queue=queue)))
    pending = start(queue)
    if host_task or barrier:
        pending.keep_alive()
    if barrier:
        queue.submit_barrier()
    array = tensor.usm_ndarray((COUNT,), dtype="f4", buffer=pending.memory)
    pending.open_later(LATE if WORDS[word] else SOON)
    found = of(array)
    if WORDS[word] and not isinstance(found, np.ndarray | np.generic):
        dpctl.SyclEvent.wait_for(SequentialOrderManager[found.sycl_queue].submitted_events)
    if WORDS[word]:
        pending.open()
    queue.wait()
    assert np.array_equal(seen(found), finished) != WORDS[word]
