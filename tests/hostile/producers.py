# SPDX-License-Identifier: Apache-2.0
"""Producers made from random numbers: what they answer, raise and do while they are asked.

Each choice says what may come of it, as a set of outcomes; one that may not matter says nothing.
An outcome is a code, the name of Python's own error, or ``raised``: the producer's own exception.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from capsules import ForeignTensor, OldArray, consume, new_capsule
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


def _choose_device(plan: Plan, members: dict[str, Any]) -> None:
    choice = plan.dice.random()
    own = (14, plan.foreign.tensor.device_id)
    answer: Any = plan.dice.choice([own, own, (14, 0), (14, 2**31 - 1)])
    if choice < 0.25:
        return
    if choice > 0.92:
        plan.outcomes |= {RAISED}
        members["__dlpack_device__"] = plan.raise_it
        return
    if choice > 0.86:
        answer = plan.dice.choice([(2, 0), (-1, 0), (2**64, 0), None, (14,), (14.0, 0)])
    elif choice > 0.8:
        # Taken where a device is named to which host memory is copied; the capsule then decides.
        answer, plan.says_host = (1, 0), True
    if choice > 0.8:
        plan.outcomes |= {"device_type_unsupported"}
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
