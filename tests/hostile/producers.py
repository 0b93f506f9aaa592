# SPDX-License-Identifier: Apache-2.0
"""Producers made from random numbers: what they answer, raise and do while they are asked.

Each choice says what may come of it, as a set of outcomes; one that may not matter says nothing.
An outcome is a code, the name of Python's own error, or ``raised``: the producer's own exception.
"""

from __future__ import annotations

import ctypes
import datetime
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from capsules import DLManagedTensorVersioned, ForeignTensor, OldArray, consume, new_capsule
from oracle import Requirements, Verdict
from tensors import Places, mutate
from usm_dlpack import ConversionError, from_dlpack, validate

ACCEPTED, RAISED = "accepted", "raised"


class Exotic(BaseException):
    """An exception that no ``except Exception`` sees, and that cannot be printed."""

    def __str__(self) -> str:
        raise self


EXCEPTIONS: list[Callable[[], BaseException]] = [
    *(Exotic, KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError, MemoryError),
    *(TypeError, ValueError, BufferError, AttributeError, StopIteration, RuntimeError),
    lambda: TypeError("got an unexpected keyword argument 'max_version'"),
    lambda: ConversionError("data_null", "\udc80", "", "\0", "%s{}"),
]


@dataclass
class Plan:
    """What one producer is going to do, what may come of it, and what it has done."""

    foreign: ForeignTensor
    dice: random.Random
    places: Places
    exception: BaseException
    make: Callable[[Plan], Any]  # what ``__dlpack__`` returns
    deeds: list[Callable[[Plan], None]] = field(default_factory=list)
    raises: bool = False
    outcomes: set[str] = field(default_factory=set)  # of which one must come; none: acceptance
    loose: set[str] = field(default_factory=set)  # which may come as well
    given: Any = None  # the capsule; held, so that it dies when no exception is on its way
    taken: Any = None  # the tensor, if the producer took its own capsule
    consumed: bool = False  # by the producer, in C's way: its to free
    handed_over: bool = False  # without a capsule
    kept: list[Any] = field(default_factory=list)
    says_host: bool = False  # whether it says that it is in host memory
    steady: bool = False  # its tensor must not change while it is taken
    wanted: Requirements = field(default_factory=Requirements)
    verdicts: list[Verdict] = field(default_factory=list)  # before the tensor was changed

    def give(self) -> Any:
        """Do what ``__dlpack__`` does."""
        made = self.make(self)
        for deed in self.deeds:
            deed(self)
        if self.raises:
            raise self.exception
        return made

    def raise_it(self, *_: Any, **__: Any) -> Any:
        """Raise the producer's own exception, wherever this stands as a method."""
        raise self.exception


# --- what __dlpack__ returns


def own_capsule(plan: Plan) -> Any:
    """Return what every producer should: a new capsule, and the same one if it is asked again."""
    if plan.given is None:
        plan.given = plan.foreign.capsule()
    return plan.given


def _misnamed(plan: Plan) -> Any:
    names = [None, b"", b"used_dltensor", b"used_dltensor_versioned", b"DLTENSOR", b"x" * 5000]
    return new_capsule(64, plan.dice.choice(names))


def _stranger(plan: Plan) -> Any:
    capsule = datetime.datetime_CAPI  # type: ignore[attr-defined]
    return plan.dice.choice([None, 64, b"dltensor", NotImplemented, plan.exception, capsule])


def _wrapped(plan: Plan) -> Any:
    return plan.dice.choice([list, tuple, dict.fromkeys])([own_capsule(plan)])


UNUSABLE = [_misnamed, _stranger, _wrapped]


# --- what it does before it returns


def _consume(plan: Plan) -> None:
    if plan.given is not None and not plan.consumed and plan.taken is None:
        consume(plan.given)
        plan.consumed = True
        plan.outcomes |= {"capsule_unusable"}


def _take(plan: Plan) -> None:
    if plan.given is not None and not plan.consumed:
        with suppress(ConversionError):
            plan.taken = from_dlpack(OldArray(plan.given))
            plan.outcomes |= {"capsule_unusable"}


def _look(plan: Plan) -> None:
    if plan.given is not None:
        with suppress(ConversionError):
            validate(plan.given)


def _exchange_another(plan: Plan) -> None:
    known = plan.places.process.allocations[4]
    other = ForeignTensor(known.base, shape=(2,))
    from_dlpack(OldArray(other.capsule()))
    assert other.deletions == 1


DEEDS: list[Callable[[Plan], None]] = [
    *[lambda plan: mutate(plan.dice, plan.foreign, plan.places)] * 2,
    *(_consume, _take, _look, _exchange_another),
]


# --- what __dlpack_device__ answers


class Index:
    """A number by ``__index__`` only."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def __index__(self) -> Any:
        return self.act()


class Bottomless:
    """Its repr never ends; iterating and comparing it does not work."""

    def __repr__(self) -> str:
        return repr(self)


def _good_device(plan: Plan) -> Any:
    own = (14, plan.foreign.tensor.device_id)
    answers = [own, own, (14, 0), (14, 2**31 - 1), (np.int32(14), np.uint8(0))]
    return plan.dice.choice([*answers, (Index(lambda: 14), Index(lambda: -1))])


def _bad_device(plan: Plan) -> Any:
    kind = plan.dice.choice([0, *range(2, 14), 15, -1, 2**31 - 1, 2**31, 2**64, 10**5000])
    answers = [(kind, 0), (14, 2**31), None, "14", (14,), (14, 0, 0), (14.0, 0), "\udc80\0" * 3]
    answers += [[14, 0], b"\x0e\x00", {14: 0, 0: 0}, iter(lambda: 14, 0)]
    return plan.dice.choice([*answers, Bottomless(), (Bottomless(), 0)])


def _raising_device(plan: Plan) -> Any:
    """Return an answer that raises when it is printed, or taken for a number."""
    refused = isinstance(plan.exception, Exception)
    plan.outcomes |= {"device_type_unsupported" if refused else RAISED}
    unprintable = type("Raising", (), {"__repr__": plan.raise_it})()
    return plan.dice.choice([unprintable, (Index(plan.raise_it), 0)])


def _choose_device(plan: Plan, members: dict[str, Any]) -> None:
    choice = plan.dice.random()
    if choice < 0.25:
        return
    if choice < 0.8:
        answer = _good_device(plan)
    elif choice < 0.83:
        # Taken where a device is named to which host memory is copied; the capsule then decides.
        answer, plan.says_host = plan.dice.choice([(1, 0), (True, 2**31 - 1)]), True
        plan.outcomes |= {"device_type_unsupported"}
    elif choice < 0.92:
        answer = _bad_device(plan)
        plan.outcomes |= {"device_type_unsupported"}
    elif choice < 0.96:
        answer = _raising_device(plan)
    else:
        plan.outcomes |= {RAISED}
        members["__dlpack_device__"] = plan.raise_it
        return
    members["__dlpack_device__"] = lambda self: answer


def _modern(
    self: Any,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: Any = None,
) -> Any:
    return self.plan.give()


# Each takes its plan from the class.
SIGNATURES: list[Any] = [
    *[_modern] * 4,
    lambda self, *, max_version=None: self.plan.give(),
    lambda self, stream=None: self.plan.give(),
    lambda self: self.plan.give(),
    lambda *arguments, **keywords: arguments[0].plan.give(),
    lambda self, stream=None, max_version=None, /: self.plan.give(),
]


def fuzzed_producer(plan: Plan) -> Any:
    """Return an object with ``__dlpack__``."""
    dice = plan.dice
    if dice.random() < 0.1:
        plan.make = dice.choice(UNUSABLE)
        plan.outcomes |= {"capsule_unusable"}
    if dice.random() < 0.15:
        plan.deeds = dice.choices(DEEDS, k=dice.choice((1, 1, 2, 3)))
    if dice.random() < 0.08:
        plan.raises = True
        plan.outcomes |= {RAISED}
    members = {"__dlpack__": dice.choice(SIGNATURES), "plan": plan}
    if dice.random() < 0.05:
        plan.outcomes |= {RAISED}
        members[dice.choice(["__dlpack__", "__getattribute__"])] = plan.raise_it
    _choose_device(plan, members)
    return type("Array", (), members)()


# --- DLPack's C exchange API. A managed tensor that comes this way has no capsule: whoever got it
# frees it, refused or not.

_FromPyObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_WorkStream = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class ExchangeTable(ctypes.Structure):
    """``DLPackExchangeAPI`` of dlpack.h, with its header; functions that nobody calls are 1."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("prev_api", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", _FromPyObject),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", _WorkStream),
    )


def api_producer(plan: Plan) -> Any:
    """Return an object whose type has the C exchange API, which may fail, if its tensor can."""
    fails = plan.dice.random() < 0.2
    status = plan.dice.choice([0, -1, 1]) if fails else 0
    stream = plan.dice.choice([None, plan.places.queues[0].addressof_ref()])

    def give(_: int, out: Any) -> int:
        if not fails:
            out[0] = ctypes.addressof(plan.foreign.managed)
            plan.handed_over = True
        return status

    def tell(kind: int, number: int, out: Any) -> int:
        out[0] = stream
        return 0

    table = ExchangeTable((1, 3), None, 1, _FromPyObject(give), 1, 1, _WorkStream(tell))
    members = {"__dlpack__": lambda self, *, max_version=None: plan.give()}
    if isinstance(plan.foreign.managed, DLManagedTensorVersioned):
        plan.outcomes |= {"capsule_unusable"} if fails else set()
        members["__dlpack_c_exchange_api__"] = new_capsule(
            ctypes.addressof(table), b"dlpack_exchange_api"
        )
    plan.kept.append(table)
    plan.steady = True
    return type("Exchanged", (), members)()
