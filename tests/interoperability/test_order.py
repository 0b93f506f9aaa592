# SPDX-License-Identifier: Apache-2.0
"""Arrays go from dpnp or dpctl.tensor to functions of an extension and back, at once.

Nobody waits or says anything of queues. Work is held back: what does not wait for it uses values
that are not finished. Each way has a control, which is the same without the waits of this package.

What dpnp and dpctl.tensor do by themselves, with work on the queue of an array, stands in a table
of docs/how-to/dpctl.md, whose cells are measured here.
"""

import functools
import itertools
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dpctl
import extension_under_test
import numpy as np
import pytest
import usm_dlpack
from dpctl import memory, program
from dpctl.utils import SequentialOrderManager
from memory_sources import new_queue
from pending_work import COUNT, PendingFill, Waiting

HAS_DPNP = not find_spec("dpctl.tensor")
TENSOR = "dpnp.tensor" if HAS_DPNP else "dpctl.tensor"
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # dpctl.tensor announces that it moves
    XP = import_module("dpnp" if HAS_DPNP else TENSOR)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "dpctl.md"

# Seconds for work that should be held back to go wrong, and for work that is not to end.
SHORT, LONG = 0.05, 20.0
BEFORE, AFTER = 0.0, 7.0
_AFTER_BITS = int(np.float32(AFTER).view("i4"))

Operation = Callable[[Any, Any], Any]
Start = Callable[..., PendingFill]


def matrix(xp: Any, x: Any) -> Any:
    return xp.reshape(x[:9], (3, 3))


# For a library and a vector of twelve.
OPERATIONS: dict[str, Operation] = {
    "elementwise": lambda xp, x: xp.add(x, x),
    "copy": lambda xp, x: xp.asarray(x, copy=True),
    "dot": lambda xp, x: xp.vecdot(x, x),
    "matmul": lambda xp, x: xp.matmul(matrix(xp, x), matrix(xp, x)),
}
# Of dpnp, by oneMKL, which does not look at the queue.
BY_MKL = ("elementwise", "dot") if HAS_DPNP else ()

QUEUES: dict[str, Callable[[], Any]] = {
    "in order": functools.cache(lambda: new_queue(in_order=True)),
    "out of order": functools.cache(new_queue),
    "shared": lambda: XP.empty(1).sycl_queue,
}
OTHERS: dict[str, Callable[[], Any]] = {
    "to in order": functools.cache(lambda: new_queue(in_order=True)),
    "to out of order": functools.cache(new_queue),
}

OPERATION = pytest.mark.parametrize("operation", OPERATIONS)
QUEUE = pytest.mark.parametrize("kind", QUEUES)
HOST_TASK = pytest.mark.parametrize("host_task", [False, True], ids=["commands", "host task"])
IN_SECTION = pytest.mark.parametrize("in_section", [True, False], ids=["section", "control"])


@pytest.fixture(scope="module")
def extension() -> Any:
    return extension_under_test.load()


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a fill with float32 of ``AFTER``, held back until it opens."""
    started: list[PendingFill] = []

    def begin(queue: Any, *, host_task: bool = False, into: Any = None) -> PendingFill:
        keywords = {"behind_host_task": host_task, "into": into, "value": _AFTER_BITS}
        started.append(PendingFill(queue, **keywords))
        if host_task:
            started[-1].keep_alive()
        return started[-1]

    yield begin
    for pending in started:
        pending.end()
        pending.queue.wait()
    signal.alarm(0)  # of `PendingFill`


def seen(x: Any) -> Any:
    """Return the values of an array of any library, after its work."""
    if isinstance(x, np.ndarray | np.generic):
        return x
    return x.numpy() if isinstance(x, usm_dlpack.DLPackTensor) else XP.asnumpy(x)


def outcome(pending: PendingFill, call: Callable[[], tuple[Any, ...]], *, early: bool) -> Any:
    """Return the values of an array that a call makes, which begins while work is held back.

    ``call`` returns it with the events behind which it is finished, and what these need. If it is
    expected to be that ``early``, the gate opens then, otherwise after a short time.
    """
    pending.open_later(LONG if early else SHORT)
    made, events, *_used = call()
    if early:
        dpctl.SyclEvent.wait_for(events)
        pending.open()
    for queue in (QUEUES | OTHERS).values():
        queue().wait()
    return seen(made)


def with_events(x: Any) -> tuple[Any, Any]:
    """Return an array of dpnp or dpctl.tensor with the events by which they order their work."""
    on_host = isinstance(x, np.ndarray | np.generic)
    return x, [] if on_host else SequentialOrderManager[x.sycl_queue].submitted_events


def applied(operation: str, x: Any) -> tuple[Any, Any]:
    return with_events(OPERATIONS[operation](x.__array_namespace__(), x))


def expected(operation: str, value: float) -> Any:
    return OPERATIONS[operation](np, np.full(COUNT, value, "f4"))


def full(value: float, queue: Any) -> Any:
    made = XP.full(COUNT, value, dtype="f4", sycl_queue=queue)
    queue.wait()
    return made


# --- results


TAKES: dict[str, Callable[[Any], Any]] = {
    f"{name}.{function}": getattr(import_module(name), function)
    for name in dict.fromkeys((XP.__name__, TENSOR))
    for function in ("from_dlpack", "asarray")
}
ON_HOST: dict[str, Callable[[Any], Any]] = {
    "numpy.from_dlpack": lambda x: np.from_dlpack(x, device="cpu"),
    "numpy()": lambda x: x.numpy(),
    "copy_from": lambda x: copied(x).numpy(),
}


def copied(x: Any) -> usm_dlpack.DLPackTensor:
    """Return a copy in new USM."""
    made = usm_dlpack.empty(x.shape, x.dtype)
    made.copy_from(x)
    return made


class Unwaited:
    """A tensor that is handed over without a wait."""

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.sycl_queue = tensor, tensor.sycl_queue
        self.__sycl_usm_array_interface__ = tensor.__sycl_usm_array_interface__

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.tensor.__dlpack__(**keywords | {"stream": -1})

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


@HOST_TASK
@QUEUE
@OPERATION
@pytest.mark.parametrize("take", TAKES | ON_HOST)
def test_a_result_is_finished_when_it_is_taken(take, operation, kind, host_task, extension, start):
    queue = QUEUES[kind]()
    result = extension.zeros(queue, COUNT)
    pending = start(queue, host_task=host_task, into=memory.as_usm_memory(result))
    found = outcome(
        pending, lambda: applied(operation, (TAKES | ON_HOST)[take](result)), early=False
    )
    assert np.array_equal(found, expected(operation, AFTER))


@HOST_TASK
@OPERATION
# asarray works on the queue of the tensor, which may be in order.
@pytest.mark.parametrize(
    ("take", "kind"),
    [(t, k) for t in TAKES for k in QUEUES if t.endswith("from_dlpack") or k != "in order"],
)
def test_a_result_that_is_taken_without_the_wait_is_not(
    take, operation, kind, host_task, extension, start
):
    queue = QUEUES[kind]()
    result = extension.zeros(queue, COUNT)
    taken = Unwaited(result)
    pending = start(queue, host_task=host_task, into=memory.as_usm_memory(result))
    found = outcome(pending, lambda: applied(operation, TAKES[take](taken)), early=True)
    assert np.array_equal(found, expected(operation, BEFORE))


# --- a tensor that was taken


USES: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x.numpy(),
    "the same array, taken again": lambda x: seen(XP.from_dlpack(x)),
    "copy_from": lambda x: x.copy_from(np.full(COUNT, BEFORE, "f4")),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("place", ["(14, 0)", *QUEUES])
@pytest.mark.parametrize("take", TAKES)
def test_a_tensor_waits_for_the_work_on_the_array_that_was_made_of_it(take, place, use, start):
    device = QUEUES[place]() if place in QUEUES else (14, 0)
    x = usm_dlpack.from_dlpack(np.full(COUNT, BEFORE, "f4"), device=device)
    array = TAKES[take](x)
    if usm_dlpack.from_dlpack(array).data != x.data:
        assert take == "dpnp.asarray"  # which copies
        return
    pending = start(array.sycl_queue, into=memory.as_usm_memory(array))
    using = Waiting(lambda: USES[use](x))
    assert using.is_waiting()
    pending.open()
    found = using.end()
    assert ((x.numpy() if found is None else found) == (BEFORE if found is None else AFTER)).all()


class Delegating:
    """A class of a user, which says no queue."""

    def __init__(self, array: Any) -> None:
        self.__dlpack_device__ = array.__dlpack_device__
        self._array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)


def in_a_capsule(x: Any) -> Any:
    return x.__dlpack__()


@pytest.mark.parametrize(
    ("wrap", "kind"), [*((Delegating, kind) for kind in QUEUES), (in_a_capsule, "shared")]
)
def test_an_array_behind_what_says_no_queue_is_finished(wrap, kind, start):
    x = full(BEFORE, QUEUES[kind]())
    pending = start(x.sycl_queue, into=memory.as_usm_memory(x))
    using = Waiting(lambda: usm_dlpack.from_dlpack(wrap(x)).numpy())
    assert using.is_waiting()
    pending.open()
    assert (using.end() == AFTER).all()


# --- outputs, and arguments that are overwritten


def held_back(start: Start, host_task: bool) -> tuple[PendingFill, Any]:
    """Return held work of a queue of its own, and an event that is complete after it."""
    pending = start(new_queue())
    return pending, pending.keep_alive() if host_task else pending.event


@IN_SECTION
@HOST_TASK
@QUEUE
@OPERATION
def test_an_output_is_finished_when_it_is_used(
    operation, kind, host_task, in_section, extension, start
):
    queue = QUEUES[kind]()
    x, out = full(AFTER, queue), full(BEFORE, queue)
    pending, event = held_back(start, host_task)

    def call() -> tuple[Any, ...]:
        extension.copy_into_behind(queue, x, out, [event], in_section)
        return applied(operation, out)

    early = not in_section and (kind != "in order" or operation in BY_MKL)
    found = outcome(pending, call, early=early)
    assert np.array_equal(found, expected(operation, BEFORE if early else AFTER))


def fill(x: Any, y: Any) -> None:
    x[...] = 0


def assign(x: Any, y: Any) -> None:
    x[...] = y


def increment(x: Any, y: Any) -> None:
    x += y


# Into x, of values that differ.
OVERWRITES: dict[str, Callable[[Any, Any], Any]] = {
    "increment": increment,
    "fill": fill,
    "assign": assign,
    "elementwise": lambda x, y: XP.add(y, y, out=x),
    "matmul": lambda x, y: XP.matmul(matrix(XP, y), matrix(XP, y), out=matrix(XP, x)),
}
if HAS_DPNP:  # dpctl.tensor has no dot with an output
    OVERWRITES["dot"] = lambda x, y: XP.dot(y, y, out=XP.reshape(x[:1], ()))


@IN_SECTION
@HOST_TASK
@QUEUE
@pytest.mark.parametrize("overwrite", OVERWRITES)
def test_an_argument_may_be_overwritten_at_once(
    overwrite, kind, host_task, in_section, extension, start
):
    queue = QUEUES[kind]()
    x, y = full(AFTER, queue), full(BEFORE + 1, queue)
    OVERWRITES[overwrite](full(0, queue), y)
    queue.wait()
    pending, event = held_back(start, host_task)

    def call() -> tuple[Any, ...]:
        result = extension.copied_behind(queue, x, [event], in_section)
        OVERWRITES[overwrite](x, y)
        return result, with_events(x)[1]

    early = not in_section and (kind != "in order" or overwrite in BY_MKL)
    found = outcome(pending, call, early=early)
    assert (found == AFTER).all() != early


# --- arrays that dpnp or dpctl.tensor just made


# Operations for which the host waits: those of oneMKL, and copies of host memory.
ON_RETURN = {"elementwise" if HAS_DPNP else "", "asarray of NumPy"}
MADE = OPERATIONS | {
    "asarray of NumPy": lambda xp, x: xp.asarray(xp.asnumpy(x), sycl_queue=x.sycl_queue)
}
JUST_MADE = pytest.mark.parametrize("operation", MADE)
# Different for each test: memory that is used again holds the values of an earlier one.
numbers = itertools.count(1)


def just_made(operation: str, queue: Any, start: Start) -> tuple[PendingFill, Any, Any, Any]:
    """Return held work, a function that makes a vector behind it, its values, and zeros."""
    x, number = full(0, queue), float(next(numbers))
    x[...] = number
    out = full(0, queue)
    pending = start(new_queue())

    def make() -> Any:
        SequentialOrderManager[queue].add_event_pair(pending.event, pending.event)
        return XP.reshape(MADE[operation](XP, x), (-1,))

    on_host = np.full(COUNT, number, "f4")
    values = OPERATIONS[operation](np, on_host) if operation in OPERATIONS else on_host
    return pending, make, np.reshape(values, -1), out


@pytest.mark.parametrize("function", ["result", "output", "control"])
@pytest.mark.parametrize("working", ["to itself", *OTHERS])
@QUEUE
@JUST_MADE
def test_what_was_just_made_is_finished_for_a_function(
    operation, kind, working, function, extension, start
):
    queue = QUEUES[kind]()
    on = OTHERS.get(working, lambda: queue)()
    pending, make, values, out = just_made(operation, queue, start)

    def call() -> tuple[Any, ...]:
        x = make()
        if function == "result":
            return extension.copied_behind(on, x), []
        return out, [extension.copy_into_behind(on, x, out, [], function == "output")], x

    # A parameter waits for dpctl's queue, which is the shared one.
    in_order = kind == "shared" or (kind == "in order" and working == "to itself")
    early = function == "control" and not in_order and operation not in ON_RETURN
    found = outcome(pending, call, early=early)
    assert np.array_equal(found[: values.size], values) != early


@functools.cache
def copy_kernel(context: Any, queue: Any) -> Any:
    source = """
    __kernel void copy(__global const float *x, __global float *out) {
      out[get_global_id(0)] = x[get_global_id(0)];
    }
    """
    return program.create_program_from_source(queue, source).get_sycl_kernel("copy")


def memory_of(x: Any) -> Any:
    """Return the memory of an array; its array interface would wait."""
    return (x.get_array() if HAS_DPNP else x).usm_data


@pytest.mark.parametrize("handed", [True, False], ids=["handed over", "control"])
@pytest.mark.parametrize("by", ["memcpy", "kernel"])
@pytest.mark.parametrize("working", OTHERS)
@QUEUE
@JUST_MADE
def test_what_was_just_made_is_finished_for_a_queue_that_takes_it(
    operation, kind, working, by, handed, extension, start
):
    queue, on = QUEUES[kind](), OTHERS[working]()
    pending, make, values, out = just_made(operation, queue, start)
    kernel = copy_kernel(on.sycl_context, on)

    def call() -> tuple[Any, ...]:
        made = make()
        x = usm_dlpack.from_dlpack(made, device=on if handed else None)
        if by == "memcpy":
            return out, [extension.copy_into_behind(on, x, out, [], False)], x
        return out, [on.submit_async(kernel, [memory_of(made), memory_of(out)], [made.size])], x

    waits = kind == "shared" and by == "memcpy"  # as a parameter, for dpctl's queue
    early = not handed and not waits and operation not in ON_RETURN
    found = outcome(pending, call, early=early)
    assert np.array_equal(found[: values.size], values) != early


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


@HOST_TASK
@pytest.mark.parametrize(("operation", "column", "word"), cells())
def test_the_page_says_which_operations_look_at_the_queue(
    operation, column, word, host_task, start
):
    kind, barrier = COLUMNS[column]
    queue = QUEUES[kind]()
    tensor = import_module(TENSOR)

    def of(t: Any) -> Any:
        names = {"dpnp": XP, "dpctl": dpctl, "t": t}
        if HAS_DPNP:
            names["x"] = XP.asarray(t)  # neither copies nor waits
            names["m"] = matrix(XP, names["x"])
        return eval(operation, names)

    def over(of_memory: Any) -> Any:
        return tensor.usm_ndarray((COUNT,), dtype="f4", buffer=of_memory)

    finished = seen(of(tensor.full(COUNT, AFTER, dtype="f4", sycl_queue=queue)))
    pending = start(queue, host_task=host_task or barrier)
    if barrier:
        queue.submit_barrier()
    early = WORDS[word]
    found = outcome(pending, lambda: with_events(of(over(pending.memory))), early=early)
    assert np.array_equal(found, finished) != early
