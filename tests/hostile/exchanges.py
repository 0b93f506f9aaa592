# SPDX-License-Identifier: Apache-2.0
"""One hostile exchange: who is asked for what, what may come of it, and who owns the memory then.

What DLPack lets a consumer read can always be read: ``shape`` has ``ndim`` entries. Everything else
may be anything, also a pointer that nobody may follow.
"""

import ctypes
import gc
import math
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

import dpctl
from capsules import (
    DLManagedTensorVersioned,
    ForeignTensor,
    OldArray,
    call_deleter,
    consume,
    forget_kept,
    name_of,
    new_capsule,
)
from memory_sources import address_of, allocate
from oracle import DTYPES, KINDS, judge
from refusals import SENTENCE
from usm_dlpack import ConversionError, DLPackTensor, _core, from_dlpack, root_device, validate

SHAPES = ((), (3,), (2, 3), (1, 1, 2), (1,) * 9, (1,) * 100, (0,), (2, 0))


# --- the tensor


class Allocation(NamedTuple):
    """USM of the default context of its device's platform; ``owner`` keeps it."""

    base: int
    size: int
    usm_type: str
    device_id: int
    owner: Any


class Places:
    """The process's root devices, one on each platform, its USM, and every other address."""

    def __init__(self) -> None:
        self.works = [row["failure"] is None for row in _core.device_rows()]
        if self.works != [True, True, False]:
            raise SystemExit(
                "OCL_ICD_FILENAMES: expected two root devices that work and a broken one, found "
                f"{self.works}; run `python3 dev.py hostile`, which names three drivers"
            )
        self.queues = [dpctl.SyclQueue(root_device(n)) for n in (0, 1)]
        self.allocations = []
        for device_id, queue in enumerate(self.queues):
            for size in (128, 1000, 4096):
                for kind in KINDS:
                    owner = allocate(kind, size, queue)
                    known = Allocation(address_of(owner), size, kind, device_id, owner)
                    self.allocations.append(known)
        device = self.queues[0].sycl_device
        other_context = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
        self._hidden = [allocate(kind, 256, other_context) for kind in KINDS]
        freed = [address_of(allocate(kind, 1 << 16, self.queues[0])) for kind in ("device", "host")]
        self._wild = [
            *(*freed, *map(address_of, self._hidden), id(self)),
            *(0x7FFF_FFFF_F000, 1, 8, 64, 4096, 2**47, 2**63, 2**64 - 1, 2**64 - 4096),
        ]

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that an address points into, its end excluded."""
        for known in self.allocations:
            if known.base <= address < known.base + known.size:
                return known
        return None

    def address(self, dice: random.Random) -> int:
        """Return an address: in, beside or far from USM."""
        known = dice.choice(self.allocations)
        beside = [known.base - 1, known.base + known.size - 1, known.base + known.size]
        inside = known.base + dice.choice([1, 2, 4, 8, dice.randrange(known.size)])
        return dice.choice([0, dice.choice(self._wild), dice.getrandbits(64), inside, *beside])


def valid_tensor(dice: random.Random, places: Places) -> ForeignTensor:
    """Return a tensor that lies in USM, at either end of its allocation or one element beyond."""
    known = dice.choice(places.allocations)
    dtype, shape = dice.choice(list(DTYPES)), dice.choice(SHAPES)
    foreign = ForeignTensor(known.base, shape=shape, dtype=dtype, legacy=dice.random() < 0.4)
    tensor = foreign.tensor
    tensor.device_id = known.device_id
    if dice.random() < 0.3:
        tensor.strides = None
    if isinstance(foreign.managed, DLManagedTensorVersioned):
        foreign.managed.minor = dice.choice((0, 1, 3, 4, 2**32 - 1))
        foreign.managed.flags = dice.randrange(8)
    step = DTYPES[dtype]
    room = known.size - math.prod(shape) * dtype[1] * dtype[2] // 8
    start = known.base + dice.choice([0, 0, room, room, room + step, dice.randrange(room + 1)])
    start -= start % step
    split = dice.choice((0, 0, dice.randrange(64), start - known.base))
    tensor.data, tensor.byte_offset = start - split, split
    return foreign


def spoil(dice: random.Random, foreign: ForeignTensor, places: Places) -> None:
    """Spoil a field without following a pointer: a tensor may hold wild ones by now."""
    tensor, small = foreign.tensor, dice.randrange(-64, 65)
    values: dict[str, list[Any]] = {
        "major": [0, 2, 3, 2**31, 2**32 - 1],
        "flags": [8, 2**63, 2**64 - 1, 1 << dice.randrange(64)],
        "data": [None, places.address(dice), places.address(dice)],
        "device_type": [*range(20), -1, -(2**31), 2**31 - 1],
        "device_id": [0, 1, 2, 0, 1, 2, 3, -1, -(2**31), 2**31 - 1],
        "dtype": [*DTYPES, (99, 8, 1), (2, 0, 1), (2, 32, 0), (0, 7, 1), (4, 8, 1)],
        "byte_offset": [small, tensor.byte_offset + small, 2**63, -1, 1, 2, 4096],
        "ndim": [-1, -(2**31)],
        "shape": [None, 0, -1, -(2**63), 1000, 2**31, 2**61, 2**63 - 1],
    }
    name = dice.choice(list(values))
    value = dice.choice(values[name])
    if name in ("major", "flags"):
        if isinstance(foreign.managed, DLManagedTensorVersioned):
            setattr(foreign.managed, name, value)
    elif name == "dtype":
        tensor.code, tensor.bits, tensor.lanes = value
    elif name == "byte_offset":
        tensor.byte_offset = value % 2**64
    elif name == "shape":
        entries = [value, *[1] * (tensor.ndim - 1)]
        tensor.shape = None if value is None else foreign.array(entries)
        tensor.strides = None
    else:
        setattr(tensor, name, value)


def hostile_tensor(dice: random.Random, places: Places) -> ForeignTensor:
    """Return a tensor with none, some or many fields spoiled."""
    foreign = valid_tensor(dice, places)
    for _ in range(dice.choice((0, 0, 0, 1, 1, 1, 1, 2, 3, 6))):
        spoil(dice, foreign, places)
    if dice.random() < 0.1:
        foreign.managed.deleter = None
    # Nothing may be read behind another major version, and no entry of arrays without any.
    if getattr(foreign.managed, "major", 1) != 1 or foreign.tensor.ndim <= 0:
        for name in ("shape", "strides"):
            if dice.random() < 0.3:
                wild = ctypes.cast(places.address(dice), ctypes.POINTER(ctypes.c_int64))
                setattr(foreign.tensor, name, wild)
    return foreign


# --- the producer


class Exotic(BaseException):
    """An exception that no ``except Exception`` sees, and that cannot be printed."""

    def __str__(self) -> str:
        raise self


EXCEPTIONS: list[Any] = [
    *(Exotic, KeyboardInterrupt, MemoryError, TypeError, BufferError, AttributeError),
    lambda: ConversionError("data_null", "\udc80", "", "\0", "%s{}"),
]
NAMES = [None, b"", b"used_dltensor", b"DLTENSOR", b"x" * 5000]


class Producer:
    """What one producer is going to do, what may come of it, and what it has done."""

    def __init__(self, dice: random.Random, places: Places) -> None:
        self.dice, self.places = dice, places
        self.foreign = hostile_tensor(dice, places)
        self.error = dice.choice(EXCEPTIONS)()
        self.deeds: list[str] = []
        self.answers: list[Any] = []  # instead of a capsule
        self.raises = False
        self.outcomes: set[str] = set()  # of which one must come, or a code of the oracle
        self.loose: set[str] = set()  # which may come as well
        self.given: Any = None  # held, so that it dies when no exception is on its way
        self.taken: Any = None  # the tensor, if the producer took its own capsule
        self.consumed = False  # by the producer, in C's way: its to free

    def capsule(self) -> Any:
        """Return the one capsule, the same each time."""
        if self.given is None:
            self.given = self.foreign.capsule()
        return self.given

    def give(self) -> Any:
        capsule = self.capsule()
        for deed in self.deeds:
            self.do(deed)
        if self.raises:
            raise self.error
        return self.answers[0] if self.answers else capsule

    def fail(self, *_: Any, **__: Any) -> Any:
        """Raise the producer's own exception, wherever this stands as a method."""
        raise self.error

    def do(self, deed: str) -> None:
        """Do something to the capsule or to its tensor, or exchange something else."""
        if deed == "spoil":
            spoil(self.dice, self.foreign, self.places)
        elif deed == "exchange another":
            other = ForeignTensor(self.places.allocations[4].base, shape=(2,))
            from_dlpack(OldArray(other.capsule()))
            assert other.deletions == 1, "another tensor was not let go"
        elif deed == "look":
            with suppress(ConversionError):
                validate(self.given)
        elif deed == "take" and not self.consumed:
            with suppress(ConversionError):
                self.taken = from_dlpack(OldArray(self.given))
                self.outcomes |= {"capsule_unusable"}
        elif deed == "consume" and not self.consumed and self.taken is None:
            consume(self.given)
            self.consumed = True
            self.outcomes |= {"capsule_unusable"}


DEEDS = ["spoil", "spoil", "consume", "take", "look", "exchange another"]


def hostile_array(producer: Producer, asked: dict[str, Any], imports: bool) -> Any:
    dice = producer.dice
    if dice.random() < 0.1:
        misnamed = new_capsule(64, dice.choice(NAMES))
        producer.answers = [dice.choice([misnamed, None, 64, [producer.capsule()]])]
        producer.outcomes |= {"capsule_unusable"}
    if dice.random() < 0.15 and not (imports and asked):  # which may ask twice
        producer.deeds = dice.choices(DEEDS, k=dice.choice((1, 1, 2, 3)))
    producer.raises = dice.random() < 0.08
    members: dict[str, Any] = {"__dlpack__": lambda self, **keywords: producer.give()}
    fails = ["__getattribute__"] if dice.random() < 0.025 else []
    own = (14, producer.foreign.tensor.device_id)
    said: Any = dice.choice([own, own, (14, 0), (14, 2**31 - 1)])
    place = dice.random()
    if place > 0.92:
        fails.append("__dlpack_device__")
    elif place > 0.8:
        said = dice.choice([(2, 0), (-1, 0), (2**64, 0), None, (14,), (14.0, 0), *[(1, 0)] * 6])
        # Where a device is named host memory is taken; the capsule then decides.
        if said != (1, 0) or not (imports and "device" in asked):
            producer.outcomes |= {"device_type_unsupported"}
    if place > 0.25:
        members["__dlpack_device__"] = lambda self: said
    if producer.raises or fails:
        producer.outcomes |= {"raised"}
    members |= dict.fromkeys(fails, producer.fail)
    return type("Array", (), members)()


# --- the call


def _requirements(dice: random.Random, tensor: Any) -> dict[str, Any]:
    same = (tensor.code, tensor.bits, tensor.lanes)
    backends = ["opencl", "level_zero", "cuda", "hip"]
    dtypes = list(DTYPES)
    drawn = {
        "usm_types": dice.sample(KINDS, dice.randrange(4)),
        "backends": dice.sample(backends, dice.randrange(1, 5)),
        "dtype": same if same in DTYPES and dice.random() < 0.6 else dice.choice(dtypes),
        "ndim": dice.choice([tensor.ndim, tensor.ndim, 0, 3, -1]),
        "readonly": dice.choice([None, True, False, False]),
        "device": (14, dice.choice([0, 1])),
    }
    return {name: value for name, value in drawn.items() if dice.random() < 0.24}


def _destination(producer: Producer) -> dict[str, Any]:
    """Return keywords of ``from_dlpack``, which may ask for a place that is not there."""
    dice, tensor = producer.dice, producer.foreign.tensor
    number = dice.choice([0, 0, 1, 1, 2, 3, -1, 2**31 - 1])
    drawn = {
        "copy": dice.choice([None, True, False, False]),
        "usm_type": dice.choice(KINDS),
        "device": (14, number),
    }
    asked = {name: value for name, value in drawn.items() if dice.random() < 0.33}
    if "device" in asked:
        if number not in (0, 1):
            producer.outcomes |= {"device_failed" if number == 2 else "device_id_out_of_range"}
        # An array in host memory is read where a device is named: its pointer must be one.
        if tensor.device_type == 1:
            tensor.device_type = 2
    return asked


@contextmanager
def meddling(producer: Producer) -> Iterator[None]:
    """Do something to the capsule when the garbage collector runs in the middle of the call."""
    deeds = [producer.dice.choice(["take", "consume"])]
    producer.deeds = []

    def meddle(phase: str, _: Any) -> None:
        if phase == "start" and deeds and producer.given is not None:
            deed = deeds.pop()
            if name_of(producer.given) == producer.foreign.name:
                outcomes = set(producer.outcomes)
                producer.do(deed)
                producer.loose |= producer.outcomes - outcomes
                producer.outcomes = outcomes

    threshold = gc.get_threshold()
    gc.callbacks.append(meddle)
    gc.set_threshold(producer.dice.choice((1, 1, 2, 5)))
    gc.enable()
    try:
        yield
    finally:
        gc.disable()
        gc.set_threshold(*threshold)
        gc.callbacks.remove(meddle)


# --- what came of it


ADDRESS = re.compile(r"\b0x[0-9a-f]")


def _check_facts(value: Any, facts: dict[str, Any], asked: dict[str, Any]) -> None:
    repr(value)
    if facts["copied"]:
        places = {name: asked[name] for name in ("usm_type", "device") if name in asked}
        facts = {"shape": facts["shape"], **places}
    elif isinstance(value, DLPackTensor):
        facts.pop("size")  # it counts elements there
    found = {name: getattr(value, name, fact) for name, fact in facts.items()}
    assert found == facts, f"expected {facts}, found {found}"


def _drop(dice: random.Random, holder: list[Any], foreign: ForeignTensor) -> None:
    """Let go of the only reference to a tensor: alone, in a cycle, or by what it exported."""
    way = dice.choice(["alone", "cycle", "capsule", "thread"])
    if way == "cycle":
        cycle = [holder.pop()]
        cycle.append(cycle)
    elif way != "alone":
        capsule = holder.pop().__dlpack__(max_version=(1, 3))
        assert foreign.deletions == 0, "the deleter ran under an exported capsule"
        if way == "thread":
            thread = threading.Thread(target=call_deleter, args=(consume(capsule),))
            thread.start()
            thread.join()
    holder.clear()


def _settle(producer: Producer, holder: list[Any], copied: bool) -> None:
    """Let everything go, and require that the deleter ran once, and not before its owner went.

    ``holder`` has the only reference to what the call returned; ``copied``: that is a copy of what
    the capsule owned.
    """
    foreign, capsule = producer.foreign, producer.given
    owned = isinstance(holder[0], DLPackTensor)
    runs = 1 if foreign.managed.deleter and capsule is not None else 0
    if capsule is not None:
        used = owned or producer.consumed or producer.taken is not None
        expected = b"used_" + foreign.name if used else foreign.name
        assert name_of(capsule) == expected, f"the capsule is named {name_of(capsule)!r}"
    now = runs if copied else 0
    assert foreign.deletions == now, f"deletions after the call: {foreign.deletions}, not {now}"
    del capsule
    if owned and not copied:
        _drop(producer.dice, holder, foreign)
        gc.collect()
        assert foreign.deletions == runs, f"deletions with the tensor: {foreign.deletions}"
    holder.clear()
    producer.taken = None
    if producer.consumed and foreign.managed.deleter:
        call_deleter(foreign.managed)
    producer.given, producer.answers = None, []
    gc.collect()
    assert foreign.deletions == runs, f"deletions in the end: {foreign.deletions}, not {runs}"


def _exchange(dice: random.Random, places: Places) -> str:
    producer = Producer(dice, places)
    kind = dice.random()
    imports = kind < 0.45
    if not imports:
        asked = _requirements(dice, producer.foreign.tensor)
    else:
        asked = _destination(producer) if kind < 0.12 else {}
    x = hostile_array(producer, asked, imports) if kind < 0.6 else producer.capsule()
    value, sentence = None, ""
    circumstances = meddling(producer) if dice.random() < 0.04 else nullcontext()
    try:
        with circumstances:
            value = (from_dlpack if imports else validate)(x, **asked)
        outcome = "accepted"
    except BaseException as error:  # not kept: it holds every frame that it came through
        if error is producer.error:
            outcome = "raised"
        elif isinstance(error, ConversionError):
            outcome, sentence = error.code, str(error)
        else:
            outcome = repr(error)
    producer.error.__traceback__ = producer.error.__context__ = None
    said = judge(producer.foreign.managed, places, asked, imports)
    accepted = set() if producer.outcomes else {"accepted"}
    allowed = producer.outcomes | producer.loose | ({said} if isinstance(said, str) else accepted)
    assert outcome in allowed, f"expected {sorted(allowed)}, found {outcome!r} {sentence}"
    if sentence:
        assert SENTENCE.fullmatch(sentence) is not None, f"no sentence: {sentence!r}"
        assert ADDRESS.search(sentence) is None, f"an address: {sentence!r}"
    if outcome == "accepted":
        _check_facts(value, said, asked)
    holder = [value]
    del value, x, circumstances
    _settle(producer, holder, imports and outcome == "accepted" and said["copied"])
    return outcome


def run_case(seed: str, places: Places) -> str:
    """Make a case of its seed, run it, and return its outcome; nothing of it is left then."""
    outcome = _exchange(random.Random(seed), places)
    forget_kept()
    gc.collect()
    return outcome
