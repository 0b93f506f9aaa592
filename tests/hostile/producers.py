# SPDX-License-Identifier: Apache-2.0
"""Producers made from random numbers: what they answer, raise and do while they are asked.

Each choice says what may come of it, as a set of outcomes; one that may not matter says nothing.
An outcome is a code, the name of Python's own error, or ``raised``: the producer's own exception.
"""

from __future__ import annotations

import datetime
import enum
import gc
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from capsules import LEGACY, VERSIONED, ForeignTensor, OldArray, consume, new_capsule
from oracle import Requirements, Verdict
from tensors import MUTATIONS, Places
from usm_dlpack import ConversionError, from_dlpack, validate

ACCEPTED, RAISED = "accepted", "raised"


class Exotic(BaseException):
    """An exception that no ``except Exception`` sees, and that cannot be printed."""

    def __str__(self) -> str:
        raise self


EXCEPTIONS: list[Callable[[], BaseException]] = [
    *(Exotic, KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError, MemoryError),
    *(TypeError, ValueError, BufferError, AttributeError, StopIteration, AssertionError),
    *(RuntimeError, OSError, LookupError, StopAsyncIteration, SystemError, NotImplementedError),
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
    twin: Any = None  # a class that must stay as long
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


def fresh_capsule(plan: Plan) -> Any:
    """Return what every producer should."""
    plan.given = plan.foreign.capsule()
    return plan.given


def _same_each_time(plan: Plan) -> Any:
    return plan.given if plan.given is not None else fresh_capsule(plan)


def _nameless(plan: Plan) -> Any:
    names = [None, b"", b"used_dltensor", b"used_dltensor_versioned", b"dltensor ", b"DLTENSOR"]
    names += [b"dltensor_versione", b"\xff\xfe", b"numpy.dltensor", b"x" * 5000]
    return new_capsule(64, plan.dice.choice(names))


def _other_capsule(plan: Plan) -> Any:
    queue = plan.places.queues[0]._get_capsule()
    return plan.dice.choice([datetime.datetime_CAPI, queue])  # type: ignore[attr-defined]


class PyCapsule:
    """Only called like a capsule."""

    @property
    def __class__(self) -> Any:
        return type(datetime.datetime_CAPI)  # type: ignore[attr-defined]

    @__class__.setter
    def __class__(self, _: Any) -> None: ...


def _stranger(plan: Plan) -> Any:
    strangers = [None, 0, 64, 14.5, "dltensor", b"dltensor", (), [plan.foreign.capsule], {}, print]
    strangers += [NotImplemented, ..., plan, type, plan.exception, memoryview(b"ab"), iter(())]
    strangers += [PyCapsule(), plan.places.process.allocations[0].owner, (n for n in range(3))]
    return plan.dice.choice(strangers)


def _wrapped(plan: Plan) -> Any:
    capsule = fresh_capsule(plan)
    return plan.dice.choice([[capsule], (capsule,), {capsule: 1}, lambda: capsule])


UNUSABLE = [_nameless, _other_capsule, _stranger, _wrapped]


# --- what it does before it returns


def _collect(_: Plan) -> None:
    gc.collect()


def _mutate(plan: Plan) -> None:
    plan.dice.choice(MUTATIONS)(plan.dice, plan.foreign, plan.places)


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


DEEDS = [_collect, _mutate, _mutate, _consume, _take, _look, _exchange_another]


# --- what __dlpack_device__ answers


class Number(enum.IntEnum):
    """Numbers that are ints of another type."""

    ONEAPI = 14
    FIRST = 0


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


class Pair(tuple[Any, ...]):
    """A tuple that lies about everything."""

    def __len__(self) -> int:
        return 2**62

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        raise IndexError


def _endless() -> Any:
    while True:
        yield 14


GOOD_DEVICES: list[Callable[[Plan], Any]] = [
    lambda plan: (14, plan.foreign.tensor.device_id),
    lambda plan: (14, plan.foreign.tensor.device_id),
    lambda _: (14, 0),
    lambda _: (14, 2**31 - 1),
    lambda _: (np.int32(14), np.uint8(0)),
    lambda _: (Number.ONEAPI, Number.FIRST),
    lambda _: (Index(lambda: 14), Index(lambda: -1)),
    lambda _: Pair((14, 3)),
]
BAD_DEVICES: list[Callable[[Plan], Any]] = [
    lambda plan: (plan.dice.choice([0, *range(2, 14), 15, 99, -1, -(2**31), 2**31 - 1]), 0),
    lambda plan: (plan.dice.choice([2**31, 2**64, -(2**31) - 1, 10**5000]), 0),
    lambda plan: (14, plan.dice.choice([2**31, -(2**63), 10**4299, 10**5000])),
    lambda plan: plan.dice.choice(
        [None, 14, 14.0, "14", "ab", (), (14,), (14, 0, 0), b"\x0e\x00", [14, 0], {14: 0}, ...]
    ),
    lambda plan: plan.dice.choice([(14.0, 0), ("14", "0"), (None, None), ((14,), 0), (14, "0")]),
    lambda _: _endless(),
    lambda _: Bottomless(),
    lambda _: (Bottomless(), 0),
    lambda _: "\udc80\0" * 3,
    lambda _: (Index(lambda: "14"), 0),
    lambda _: [14] * 100000,
    lambda _: {},
]

# Taken where a device is named to which host memory is copied; the capsule then decides.
HOST_DEVICES: list[Callable[[Plan], Any]] = [lambda _: (1, 0), lambda _: (True, 2**31 - 1)]


def _raising_devices(plan: Plan) -> tuple[Any, set[str]]:
    """Return an answer that raises when it is looked into."""
    refusal = "device_type_unsupported"

    class RaisingRepr:
        __repr__ = plan.raise_it

    by_index = plan.dice.randrange(2) == 0
    quiet = isinstance(plan.exception, Exception)
    answer = (Index(plan.raise_it), 0) if by_index else RaisingRepr()
    return answer, {refusal if quiet else RAISED}


# --- the signature of __dlpack__; each takes its plan from the class


def _modern(
    self: Any,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: Any = None,
) -> Any:
    return self.plan.give()


def _version_alone(self: Any, *, max_version: Any = None) -> Any:
    return self.plan.give()


def _stream_alone(self: Any, stream: Any = None) -> Any:
    return self.plan.give()


def _bare(self: Any) -> Any:
    return self.plan.give()


def _any_keywords(self: Any, **keywords: Any) -> Any:
    return self.plan.give()


def _anything(*arguments: Any, **keywords: Any) -> Any:
    return arguments[0].plan.give()


def _positional_only(self: Any, stream: Any = None, max_version: Any = None, /) -> Any:
    return self.plan.give()


def _any_positional(self: Any, *arguments: Any) -> Any:
    assert not arguments
    return self.plan.give()


def _by_position_too(self: Any, stream: Any = None, max_version: Any = None, copy: Any = 0) -> Any:
    return self.plan.give()


def _refusing_keywords(self: Any, **keywords: Any) -> Any:
    if keywords:
        raise self.plan.exception
    return self.plan.give()


def _requiring_more(self: Any, needed: Any) -> Any:
    return self.plan.give()


SIGNATURES: list[Any] = [
    *(_modern, _modern, _modern, _modern, _version_alone, _stream_alone, _bare, _any_keywords),
    *(_anything, _positional_only, _any_positional, _by_position_too),
]


def _callable_without_signature(plan: Plan) -> Any:
    class Method:
        __signature__ = plan.dice.choice([5, "()", None])
        __doc__ = plan.dice.choice([None, "", "__dlpack__(stream, max_version)", "(no signature)"])

        def __call__(self, **keywords: Any) -> Any:
            if keywords and plan.raises and isinstance(plan.exception, TypeError):
                raise plan.exception  # it is asked again, and makes one capsule
            return plan.give()

    return Method()


# --- classes that are odd


class Unhashable(type):
    """A metaclass whose classes are keys of nothing."""

    __hash__ = None  # type: ignore[assignment]


class Alike(type):
    """A metaclass whose classes are all equal."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return 0


class Misnamed(type):
    """A metaclass whose classes have a name that no sentence can hold."""

    __name__ = property(lambda cls: "\udc80\0")  # type: ignore[assignment]


METACLASSES = [Unhashable, Alike, Misnamed]


def _class_of(plan: Plan, members: dict[str, Any]) -> type:
    meta = plan.dice.choice(METACLASSES)
    _see_twin(plan, meta)
    name = plan.dice.choice(["Array", "PyCapsule", "ndarray"])
    if name == "PyCapsule":  # validate takes it for one, which it is not
        plan.loose |= {"capsule_unusable"}
    made: type = meta(name, (), members)
    return made


def _see_twin(plan: Plan, meta: type) -> None:
    """Have a class imported that may be equal to the one which comes, and is another."""

    def empty(self: Any) -> None:
        return None

    twin = meta("Twin", (), {"__dlpack__": empty})
    with suppress(ConversionError):
        from_dlpack(twin())
    plan.twin = twin


def _raising_class(plan: Plan, members: dict[str, Any]) -> type:
    """Return a class that raises when it, or its instance, is looked into."""
    choice = plan.dice.randrange(6)
    if choice > 3:  # nobody needs to hash or compare a class
        plan.loose |= {RAISED}
    elif choice not in (1, 2) or not isinstance(plan.exception, AttributeError):
        plan.outcomes |= {RAISED}
    meta: Any = type
    if choice == 0:
        members["__getattribute__"] = plan.raise_it
    elif choice == 1:
        members["__dlpack_device__"] = property(plan.raise_it)
    elif choice == 2:
        members["__dlpack__"] = property(plan.raise_it)
        plan.outcomes |= {"TypeError"} if isinstance(plan.exception, AttributeError) else set()
    elif choice == 3:
        members.pop("__dlpack__")
        meta = type("Meta", (type,), {"__getattr__": plan.raise_it})
        plan.outcomes |= {"TypeError"} if isinstance(plan.exception, AttributeError) else set()
    elif choice == 4:
        meta = type("Meta", (type,), {"__hash__": plan.raise_it})
    else:
        meta = type("Meta", (type,), {"__hash__": lambda cls: 0, "__eq__": plan.raise_it})
        _see_twin(plan, meta)
    made: type = meta("Array", (), members)
    return made


# --- all of it together


def _choose_answer(plan: Plan) -> None:
    dice = plan.dice
    if dice.random() < 0.1:
        plan.make = dice.choice(UNUSABLE)
        plan.outcomes |= {"capsule_unusable"}
    elif dice.random() < 0.1:
        plan.make = _same_each_time
    if dice.random() < 0.15:
        plan.deeds = dice.choices(DEEDS, k=dice.choice((1, 1, 2, 3)))
    if dice.random() < 0.08:
        plan.raises = True
        plan.outcomes |= {RAISED}


def _choose_device(plan: Plan, members: dict[str, Any]) -> None:
    choice = plan.dice.random()
    if choice < 0.25:
        return
    if choice < 0.8:
        answer = plan.dice.choice(GOOD_DEVICES)
    elif choice < 0.83:
        answer, plan.says_host = plan.dice.choice(HOST_DEVICES), True
        plan.outcomes |= {"device_type_unsupported"}
    elif choice < 0.92:
        answer = plan.dice.choice(BAD_DEVICES)
        plan.outcomes |= {"device_type_unsupported"}
    elif choice < 0.96:
        raising, outcomes = _raising_devices(plan)
        plan.outcomes |= outcomes
        members["__dlpack_device__"] = lambda self: raising
        return
    else:
        plan.outcomes |= {RAISED}
        members["__dlpack_device__"] = plan.raise_it
        return
    members["__dlpack_device__"] = lambda self: answer(plan)


def _choose_method(plan: Plan) -> Any:
    choice = plan.dice.random()
    if choice < 0.9:
        return plan.dice.choice(SIGNATURES)
    if choice < 0.93:
        plan.outcomes |= {RAISED}
        return _refusing_keywords
    if choice < 0.95:
        plan.outcomes |= {"TypeError"}
        return plan.dice.choice([_requiring_more, None, 5, "abc", ()])
    if choice < 0.98:
        return _callable_without_signature(plan)
    return staticmethod(lambda **keywords: plan.give())


def fuzzed_producer(plan: Plan) -> Any:
    """Return an object with ``__dlpack__``."""
    _choose_answer(plan)
    members = {"__dlpack__": _choose_method(plan), "plan": plan}
    if plan.dice.random() < 0.05:
        return _raising_class(plan, members)()
    _choose_device(plan, members)
    if plan.dice.random() < 0.05:
        return _class_of(plan, members)()
    return type("Array", (), members)()


def swapped_capsule(foreign: ForeignTensor) -> tuple[Any, str]:
    """Return a capsule named like the other struct, and the code by which that is noticed."""
    legacy = foreign.name == LEGACY
    foreign.name = VERSIONED if legacy else LEGACY
    code = "version_unsupported" if legacy else "device_type_unsupported"
    return foreign.capsule(), code
