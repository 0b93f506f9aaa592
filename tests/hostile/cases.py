# SPDX-License-Identifier: Apache-2.0
"""One hostile exchange: who is asked for what, what may come of it, and who owns the memory then.

A case depends on nothing but its seed. `run_case` returns its outcome, or raises
`DisagreementError`.
"""

from __future__ import annotations

import functools
import gc
import random
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from capsules import (
    LEGACY,
    VERSIONED,
    ForeignTensor,
    OldArray,
    call_deleter,
    consume,
    forget_kept,
    name_of,
)
from oracle import DTYPES, Requirements, Verdict, judge
from producers import (
    ACCEPTED,
    EXCEPTIONS,
    RAISED,
    Plan,
    fuzzed_producer,
    own_capsule,
)
from refusals import SENTENCE
from tensors import KINDS, Places, fuzzed_tensor, mutate
from usm_dlpack import (
    ConversionError,
    DLPackTensor,
    from_dlpack,
    root_device,
    validate,
)

KDL_CPU = 1
ADDRESS = re.compile(r"\b0x[0-9a-f]")


class DisagreementError(AssertionError):
    """The library did what the documentation does not say."""


def require(holds: bool, sentence: str) -> None:
    """Raise `DisagreementError` unless something holds."""
    if not holds:
        raise DisagreementError(sentence)


@dataclass
class Call:
    """What is called with which keywords, and what these make of it."""

    act: Callable[..., Any]
    x: Any
    keywords: dict[str, Any] = field(default_factory=dict)
    wanted: Requirements = field(default_factory=Requirements)


# --- keywords


def _requirements(plan: Plan) -> tuple[dict[str, Any], Requirements]:
    """Return keywords of ``validate`` that make sense, and what they stand for."""
    dice, tensor = plan.dice, plan.foreign.tensor
    keywords: dict[str, Any] = {}
    meant: dict[str, Any] = {}
    if dice.random() < 0.3:
        kinds = dice.sample(KINDS, dice.randrange(4))
        keywords["usm_types"] = dice.choice([list, tuple, set, dict.fromkeys, iter])(kinds)
        meant["usm_types"] = frozenset(kinds)
    if dice.random() < 0.2:
        names = dice.sample(["opencl", "level_zero", "cuda", "hip"], dice.randrange(1, 5))
        keywords["backends"], meant["backends"] = names, frozenset(names)
    if dice.random() < 0.2:
        same = (tensor.code, tensor.bits, tensor.lanes)
        dtype = same if same in DTYPES and dice.random() < 0.6 else dice.choice(list(DTYPES))
        keywords["dtype"] = meant["dtype"] = dtype
    if dice.random() < 0.2:
        keywords["ndim"] = meant["ndim"] = dice.choice([tensor.ndim, tensor.ndim, 0, 3, -1])
    if dice.random() < 0.3:
        keywords["readonly"] = dice.choice([None, True, False, False])
        meant["writable"] = keywords["readonly"] is False
    if dice.random() < 0.2:
        number = dice.choice([0, 1])
        keywords["device"] = dice.choice([(14, number), root_device(number)])
        meant["device_id"] = number
    return keywords, Requirements(**meant)


def _validation(plan: Plan, x: Any) -> Call:
    keywords, wanted = _requirements(plan)
    return Call(validate, x, keywords, wanted)


def _import(plan: Plan, x: Any) -> Call:
    if plan.dice.random() < 0.25:
        return Call(from_dlpack, x, *_destination(plan))
    return Call(from_dlpack, x)


def _destination(plan: Plan) -> tuple[dict[str, Any], Requirements]:
    """Ask for a copy, for none, or for another place, which may not be there."""
    dice = plan.dice
    keywords: dict[str, Any] = {}
    meant: dict[str, Any] = {}
    if dice.random() < 0.6:
        keywords["copy"] = meant["copy"] = dice.choice([None, True, False, False])
    if dice.random() < 0.2:
        keywords["usm_type"] = meant["to_usm_type"] = dice.choice(KINDS)
    if dice.random() < 0.2:
        number = meant["to_device"] = dice.choice([0, 0, 1, 1, 2, 3, -1, 2**31 - 1])
        known = number in (0, 1)
        places: list[Any] = [root_device(number), plan.places.queues[number]] if known else []
        keywords["device"] = dice.choice([(14, number), *places])
        if not known:
            plan.outcomes |= {"device_failed" if number == 2 else "device_id_out_of_range"}
        if plan.says_host:
            plan.outcomes -= {"device_type_unsupported"}
        # An array in host memory is read where a device is named: its pointer must be one.
        if plan.foreign.tensor.device_type == KDL_CPU:
            plan.foreign.tensor.device_type = 2
    plan.deeds, plan.steady = [], True
    return keywords, Requirements(**meant)


def _swapped(plan: Plan) -> Call:
    """Return a call with a capsule that is named like the other struct."""
    base = plan.places.process.allocations[4].base
    plan.foreign = ForeignTensor(base, legacy=plan.dice.random() < 0.5)
    legacy = plan.foreign.name == LEGACY
    plan.foreign.name = VERSIONED if legacy else LEGACY
    plan.outcomes |= {"version_unsupported" if legacy else "device_type_unsupported"}
    return Call(validate, own_capsule(plan))


def choose_call(plan: Plan) -> Call:
    """Return one of all the calls there are."""
    kind = plan.dice.random()
    if kind < 0.45:
        return _import(plan, fuzzed_producer(plan))
    if kind < 0.6:
        return _validation(plan, fuzzed_producer(plan))
    if kind < 0.97:
        return _validation(plan, own_capsule(plan))
    return _swapped(plan)


# --- under which circumstances


def _plainly(_: Plan, act: Callable[[], None]) -> None:
    act()


def _in_a_thread(_: Plan, act: Callable[[], None]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def _with_a_busy_collector(plan: Plan, act: Callable[[], None]) -> None:
    """Do something to the capsule when the garbage collector runs in the middle of the call."""
    plan.deeds = []
    deed = plan.dice.choice(["take", "consume"] if plan.steady else ["take", "mutate", "consume"])
    seen: list[str] = []

    def meddle(phase: str, _: Any) -> None:
        if phase != "start" or seen or plan.given is None or plan.consumed:
            return
        seen.append(deed)
        plan.verdicts.append(judge(plan.foreign.managed, plan.places.process, plan.wanted))
        if deed == "mutate":
            mutate(plan.dice, plan.foreign, plan.places)
        elif name_of(plan.given) == plan.foreign.name and plan.taken is None:
            plan.loose |= {"capsule_unusable"}
            if deed == "take":
                with suppress(ConversionError):
                    plan.taken = from_dlpack(OldArray(plan.given))
            else:
                consume(plan.given)
                plan.consumed = True

    threshold = gc.get_threshold()
    gc.callbacks.append(meddle)
    gc.set_threshold(plan.dice.choice((1, 1, 2, 5)))
    gc.enable()
    try:
        act()
    finally:
        gc.disable()
        gc.set_threshold(*threshold)
        gc.callbacks.remove(meddle)


CIRCUMSTANCES = [*[_plainly] * 22, _in_a_thread, _with_a_busy_collector]


# --- what came of it


@dataclass
class Result:
    """What a call returned, or how its exception is called."""

    value: Any = None
    outcome: str = ""
    text: str = ""
    refused: bool = False

    def receive(self, call: Call, plan: Plan) -> None:
        """Make the call. The exception is not kept: it holds every frame that it came through."""
        try:
            self.value = call.act(call.x, **call.keywords)
            self.outcome = ACCEPTED
        except BaseException as error:
            if error is plan.exception:
                self.outcome = RAISED
            elif isinstance(error, ConversionError):
                self.outcome, self.text, self.refused = error.code, str(error), True
            else:
                self.outcome, self.text = type(error).__name__, str(error)

    def check(self, plan: Plan, verdicts: list[Verdict]) -> None:
        """Require an outcome that is allowed, and of a refusal a sentence without addresses."""
        allowed = plan.outcomes | {verdict.code for verdict in verdicts if verdict.code is not None}
        if not plan.outcomes and any(verdict.code is None for verdict in verdicts):
            allowed |= {ACCEPTED}
        allowed |= plan.loose
        sentence = f"expected {sorted(allowed)}, found {self.outcome!r} {self.text}"
        require(self.outcome in allowed, sentence)
        if self.refused:
            require(SENTENCE.fullmatch(self.text) is not None, f"no sentence: {self.text!r}")
            require(ADDRESS.search(self.text) is None, f"an address: {self.text!r}")


def check_facts(value: Any, verdicts: list[Verdict], wanted: Requirements) -> None:
    """Require that what was proved is what one of the verdicts says."""
    repr(value)
    differences = []
    for verdict in verdicts:
        facts = dict(verdict.facts)
        if verdict.copied:
            facts = {"shape": facts["shape"]}
            facts |= {} if wanted.to_usm_type is None else {"usm_type": wanted.to_usm_type}
            facts |= {} if wanted.to_device is None else {"device": (14, wanted.to_device)}
        if isinstance(value, DLPackTensor):
            facts.pop("size", None)  # it counts elements there
        differences.append({n: f for n, f in facts.items() if getattr(value, n, f) != f})
    require({} in differences, f"other facts: {differences}")


# --- who frees it


def _drop(holder: list[Any], _: ForeignTensor) -> None:
    holder.clear()


def _drop_in_a_cycle(holder: list[Any], _: ForeignTensor) -> None:
    cycle = [holder.pop()]
    cycle.append(cycle)
    del cycle
    gc.collect()


def _drop_what_it_exported(holder: list[Any], foreign: ForeignTensor) -> None:
    holder.append(holder[0].__dlpack__(max_version=(1, 3)))
    del holder[0]
    require(foreign.deletions == 0, "the deleter ran under an exported capsule")
    holder.clear()


def _drop_what_c_code_took(holder: list[Any], foreign: ForeignTensor) -> None:
    holder.append(holder[0].__dlpack__(max_version=(1, 3)))
    content = consume(holder[1])
    holder.clear()
    require(foreign.deletions == 0, "the deleter ran under an exported tensor")
    thread = threading.Thread(target=call_deleter, args=(content,))
    thread.start()
    thread.join()


DROPS = [_drop, _drop_in_a_cycle, _drop_what_it_exported, _drop_what_c_code_took]


def settle(plan: Plan, holder: list[Any], owned: bool, copied: bool) -> None:
    """Let everything go, and require that the deleter ran once, and not before its owner went.

    ``holder`` has the only reference to what the call returned; ``owned``: that took what the
    capsule owned; ``copied``: it copied that, and gave it back.
    """
    foreign, capsule = plan.foreign, plan.given
    runs = 1 if foreign.managed.deleter and capsule is not None else 0
    if capsule is not None:
        used = owned or plan.consumed or plan.taken is not None
        expected = b"used_" + foreign.name if used else foreign.name
        require(name_of(capsule) == expected, f"the capsule is named {name_of(capsule)!r}")
    now = runs if copied else 0
    require(foreign.deletions == now, f"deletions after the call: {foreign.deletions}, not {now}")
    del capsule
    if owned:
        drop = _drop if copied else plan.dice.choice(DROPS)
        drop(holder, foreign)
        gc.collect()
        require(foreign.deletions == runs, f"deletions with the tensor: {foreign.deletions}")
    holder.clear()
    plan.taken = None
    if plan.consumed and foreign.managed.deleter:
        call_deleter(foreign.managed)
    plan.given = None
    gc.collect()
    require(foreign.deletions == runs, f"deletions in the end: {foreign.deletions}, not {runs}")


def _exchange(dice: random.Random, places: Places) -> str:
    foreign = fuzzed_tensor(dice, places)
    plan = Plan(foreign, dice, places, dice.choice(EXCEPTIONS)(), own_capsule)
    call = choose_call(plan)
    plan.wanted = call.wanted
    result = Result()
    dice.choice(CIRCUMSTANCES)(plan, functools.partial(result.receive, call, plan))
    plan.exception.__traceback__ = plan.exception.__context__ = None
    verdicts = [*plan.verdicts, judge(plan.foreign.managed, places.process, call.wanted)]
    result.check(plan, verdicts)
    owned = isinstance(result.value, DLPackTensor)
    copied = owned and verdicts[-1].copied
    if result.outcome == ACCEPTED:
        check_facts(result.value, verdicts, call.wanted)
    holder, outcome = [result.value], result.outcome
    del call, result
    settle(plan, holder, owned, copied)
    return outcome


def run_case(seed: str, places: Places) -> str:
    """Make a case of its seed, run it, and return its outcome; nothing of it is left then."""
    outcome = _exchange(random.Random(seed), places)
    forget_kept()
    gc.collect()
    return outcome
