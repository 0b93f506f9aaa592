# SPDX-License-Identifier: Apache-2.0
"""`explain` stops where the real call stops, its answers are true, and nothing is consumed."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest
from capsules import ForeignArray, ForeignTensor, OldArray, consume, name_of
from hypothesis import given
from hypothesis import strategies as st
from memory_sources import TypedArray, address_of, allocate, kept
from usm_dlpack import Explanation, _core, explain, to_dlpack_tensor, validate

OUTCOMES = ("passed", "stopped", "not reached")
IMPORT = ["request", "producer", "capsule", "header", "device_type", "structure"]
IMPORT += ["requirements", "root", "backend", "pointer", "kind", "device", "bounds"]
EXPORT = ["interface", "request", "structure", "context", "pointer", "default", "device", "root"]
EXPORT += ["queue", "bounds"]


def raised_by(act: Callable[[], object]) -> Exception | None:
    """Return the exception of a call, or None."""
    try:
        act()
    except Exception as error:
        return error
    return None


def parts_of(error: Exception | None) -> Any:
    """Return what makes two exceptions the same refusal."""
    names = ("code", "field", "expected", "found", "remedy")
    return type(error), str(error), [getattr(error, name, None) for name in names]


def check_walk(walk: Any, error: Exception | None) -> None:
    """Require one stop for an error, none without, and of passed steps answers that pass."""
    outcomes = [step.outcome for step in walk.steps]
    assert parts_of(walk.error) == parts_of(error)
    assert [step.name for step in walk.steps] == (IMPORT if walk.direction == "import" else EXPORT)
    assert [step.number for step in walk.steps] == list(range(1, len(outcomes) + 1))
    passed = outcomes.count("passed")
    rest = [] if error is None else ["stopped", *["not reached"] * (len(outcomes) - passed - 1)]
    assert outcomes == ["passed"] * passed + rest
    for step in walk.steps:
        assert step.title
        assert step.reason
        assert bool(step.question) is bool(step.answer) is (step.outcome != "not reached"), step
        assert "0x" not in step.answer
        assert not step.answer.startswith("could not be asked"), step
        if step.outcome == "passed":
            check_passed(step)
    json.dumps([step.facts for step in walk.steps])


def check_passed(step: Any) -> None:
    """Require that the raw answer of a step that was passed does not say the contrary."""
    facts = step.facts
    known = {"device", "shared", "host"}
    checks: dict[str, Callable[[], bool]] = {
        "capsule": lambda: facts["name"] in ("dltensor", "dltensor_versioned"),
        "header": lambda: not facts or (facts["version"][0] == 1 and facts["flags"] <= 7),
        "device_type": lambda: facts["device_type"] == 14,
        "pointer": lambda: facts["empty"] or facts["kind"] in known,
        "kind": lambda: facts["kind"] in (*known, None, "unknown"),
        "default": lambda: facts["default"] is True,
    }
    if step.direction == "import":
        checks |= {
            "structure": lambda: facts["nbytes"] is not None,
            "root": lambda: 0 <= facts["device_id"] < facts["count"] and facts["failure"] is None,
            "device": lambda: facts["true"] is None or facts["true"]["device_id"] == facts["named"],
            "bounds": lambda: (
                facts["empty"]
                or facts["base"]
                <= facts["lowest"]
                <= facts["base"] + facts["size"] - facts["nbytes"]
            ),
        }
    assert checks.get(step.name, lambda: True)(), step


def stop_of(explanation: Explanation) -> str | None:
    """Return the name of the step at which the first walk stops."""
    stop = explanation.walks[0].stop
    return None if stop is None else stop.name


# --- what the protocols report


def test_a_protocol_reports_every_step_in_order(memory: Any) -> None:
    steps, _ = _core.observe(lambda: to_dlpack_tensor(memory))
    assert steps == EXPORT[2:]  # Python reads the interface and the keywords
    tensor = to_dlpack_tensor(memory)
    steps, _ = _core.observe(lambda: validate(tensor))
    assert steps == [*IMPORT[1:], "pointer"]  # again, of the queue that the producer names
    steps, _ = _core.observe(lambda: validate(tensor.__dlpack__()))
    assert steps == IMPORT[1:]


def test_what_a_producer_calls_meanwhile_is_not_reported(memory: Any) -> None:
    class Nested(ForeignArray):
        def __dlpack__(self, **keywords: Any) -> Any:
            assert explain(memory, shape=49).error is not None
            validate(to_dlpack_tensor(memory))
            return super().__dlpack__(**keywords)

    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.device_id = 9
    steps, _ = _core.observe(lambda: raised_by(lambda: validate(Nested(foreign))))
    assert steps == IMPORT[1 : IMPORT.index("root") + 1]


# --- imports

_FOREIGN = ctypes.create_string_buffer(64)
SPOILS: dict[str, tuple[str | None, Callable[[ForeignTensor], None]]] = {}


def spoil(stop: str | None, *path: str, to: Any) -> None:
    """Add a way to spoil a tensor, and the step that must see it."""

    def act(foreign: ForeignTensor) -> None:
        place = foreign.managed
        for name in path[:-1]:
            place = getattr(place, name)
        setattr(place, path[-1], to(foreign) if callable(to) else to)

    SPOILS[f"{len(SPOILS)} {'.'.join(path)}={'…' if callable(to) else to}"] = stop, act


spoil(None, "minor", to=9)
spoil("header", "major", to=2)
spoil("header", "flags", to=1 << 40)
spoil("device_type", "dl_tensor", "device_type", to=2)
spoil("device_type", "dl_tensor", "device_type", to=77)
spoil("structure", "dl_tensor", "ndim", to=-1)
spoil("structure", "dl_tensor", "shape", to=None)
spoil("structure", "dl_tensor", "code", to=200)
spoil("structure", "dl_tensor", "shape", to=lambda foreign: foreign.array((-3, 4)))
spoil("structure", "dl_tensor", "data", to=None)
spoil("structure", "dl_tensor", "byte_offset", to=2)
spoil("structure", "dl_tensor", "byte_offset", to=2**64 - 1)
spoil("structure", "dl_tensor", "strides", to=lambda foreign: foreign.array((2**62, 2**62)))
spoil("root", "dl_tensor", "device_id", to=1)
spoil("root", "dl_tensor", "device_id", to=-1)
spoil("pointer", "dl_tensor", "data", to=ctypes.addressof(_FOREIGN) // 16 * 16 + 16)
spoil("bounds", "dl_tensor", "byte_offset", to=4)
spoil("bounds", "dl_tensor", "strides", to=lambda foreign: foreign.array((-4, 1)))
spoil(None, "dl_tensor", "strides", to=None)
spoil(None, "dl_tensor", "shape", to=lambda foreign: foreign.array((0, 4)))
REQUESTS: list[tuple[str | None, dict[str, Any]]] = [
    (None, {}),
    (None, {"usm_types": ("device", "shared"), "dtype": "f4", "ndim": 2, "device": (14, 0)}),
    ("requirements", {"dtype": "f8"}),
    ("requirements", {"ndim": 3}),
    ("requirements", {"device": (14, 7)}),
    ("backend", {"backends": ["level_zero"]}),
    ("kind", {"usm_types": "host"}),
    ("request", {"usm_types": "gpu"}),
    ("request", {"ndim": "2"}),
]


@pytest.mark.parametrize("name", SPOILS)
def test_an_import_stops_at_the_step_of_the_spoiled_field(memory: Any, name: str) -> None:
    stop, act = SPOILS[name]
    foreign = ForeignTensor(address_of(memory))
    act(foreign)
    capsule = foreign.capsule()
    explanation = explain(capsule)
    check_walk(explanation.walks[0], raised_by(lambda: validate(capsule)))
    assert stop_of(explanation) == stop
    assert (name_of(capsule), foreign.deletions) == (foreign.name, 0)
    array = ForeignArray(foreign)
    assert stop_of(explain(array)) == stop


@pytest.mark.parametrize(("stop", "request_"), REQUESTS)
def test_an_import_stops_at_what_the_caller_does_not_take(
    memory: Any, stop: str | None, request_: dict[str, Any]
) -> None:
    array = ForeignArray(ForeignTensor(address_of(memory)))
    explanation = explain(array, direction="import", **request_)
    assert stop_of(explanation) == stop
    assert len(array.asked) == (stop != "request")
    check_walk(explanation.walks[0], raised_by(lambda: validate(array, **request_)))


@given(
    spoils=st.lists(st.sampled_from(sorted(SPOILS)), max_size=3),
    asked=st.sampled_from([keywords for _, keywords in REQUESTS]),
    usm_type=st.sampled_from(["device", "shared", "host"]),
    legacy=st.booleans(),
    direct=st.booleans(),
)
def test_imports_never_drift_from_validate(
    queue: Any, spoils: list[str], asked: dict[str, Any], usm_type: str, legacy: bool, direct: bool
) -> None:
    owner = allocate(usm_type, 48, queue)
    foreign = ForeignTensor(address_of(owner), legacy=legacy)
    for name in spoils:
        if not legacy or " dl_tensor" in name:
            SPOILS[name][1](foreign)
    capsule = foreign.capsule()
    x = capsule if direct else OldArray(capsule)
    (walk,) = explain(x, direction="import", **asked).walks
    check_walk(walk, raised_by(lambda: validate(x, **asked)))
    assert (name_of(capsule), foreign.deletions) == (foreign.name, 0)


@pytest.mark.parametrize("code", [RuntimeError("busy"), TypeError("no"), BufferError("\udc80")])
def test_what_a_producer_raises_is_the_stop(code: Exception) -> None:
    class Raising:
        def __dlpack__(self, **keywords: Any) -> Any:
            raise code

    explanation = explain(Raising())
    assert explanation.error is code
    assert stop_of(explanation) == "producer"
    assert str(explanation).isascii()
    assert json.loads(explanation.as_json())["walks"][0]["error"]["type"] == type(code).__name__


def test_a_keyboard_interrupt_is_not_explained_away() -> None:
    class Interrupted:
        def __dlpack__(self, **keywords: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explain(Interrupted())


@pytest.mark.parametrize("stranger", [None, 5, "abc", object(), np.zeros(3), {}, explain])
def test_strangers_stop_where_validate_stops(stranger: Any) -> None:
    explanation = explain(stranger)
    check_walk(explanation.walks[0], raised_by(lambda: validate(stranger)))
    assert stop_of(explanation) == "producer"


def test_a_consumed_capsule_stops_at_the_capsule(memory: Any) -> None:
    capsule = to_dlpack_tensor(memory).__dlpack__()
    consume(capsule)
    explanation = explain(capsule)
    assert stop_of(explanation) == "capsule"
    check_walk(explanation.walks[0], raised_by(lambda: validate(capsule)))


def test_an_array_is_asked_once_and_without_a_stream(memory: Any) -> None:
    array = ForeignArray(ForeignTensor(address_of(memory)))
    explain(array)
    assert array.asked == [{"max_version": (1, 3)}]


def test_an_explanation_keeps_neither_array_nor_capsule_alive(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.device_id = 9
    array = ForeignArray(foreign)
    gone = weakref.ref(array)
    gc.disable()
    try:
        explanation = explain(array)
        del array
        assert gone() is None
    finally:
        gc.enable()
    assert foreign.deletions == 1
    assert explanation.error is not None


# --- exports


def test_an_array_of_both_kinds_is_explained_in_both_directions(memory: Any) -> None:
    explanation = explain(to_dlpack_tensor(memory))
    assert [walk.direction for walk in explanation.walks] == ["export", "import"]
    for walk in explanation.walks:
        check_walk(walk, None)
    assert explanation.error is None
    assert [walk.direction for walk in explain(memory).walks] == ["export"]


def test_an_object_that_has_the_protocols_itself_is_explained(memory: Any) -> None:
    tensor = to_dlpack_tensor(memory)
    holder = types.SimpleNamespace(
        __dlpack__=tensor.__dlpack__, __dlpack_device__=tensor.__dlpack_device__
    )
    (walk,) = explain(holder).walks
    assert walk.direction == "import"
    check_walk(walk, None)
    holder.__sycl_usm_array_interface__ = tensor.__sycl_usm_array_interface__
    explanation = explain(holder)
    assert [walk.direction for walk in explanation.walks] == ["export", "import"]
    assert explanation.error is None
    (walk,) = explain(weakref.proxy(tensor)).walks
    check_walk(walk, None)


def _with(memory: Any, **changes: Any) -> Any:
    return TypedArray(memory, **changes)


EXPORTS: dict[str, tuple[str | None, Callable[[Any, Any], tuple[Any, dict[str, Any]]]]] = {
    "good": (None, lambda memory, _: (memory, {})),
    "view": (None, lambda memory, _: (memory, {"shape": (3, 4), "dtype": "f4"})),
    "empty": (None, lambda memory, _: (memory, {"shape": 0})),
    "queue": (None, lambda memory, other: (memory, {"queue": memory.sycl_queue})),
    "foreign": ("default", lambda memory, other: (allocate("device", 48, other), {})),
    "foreign queue": ("queue", lambda memory, other: (memory, {"queue": other})),
    "no queue": ("queue", lambda memory, _: (memory, {"queue": 5})),
    "beyond": ("bounds", lambda memory, _: (memory, {"shape": 4, "byte_offset": 2**40})),
    "before": ("bounds", lambda memory, _: (memory, {"shape": 4, "byte_offset": -(2**16)})),
    "foreign and beyond": (
        "default",
        lambda memory, other: (allocate("device", 48, other), {"shape": 4, "byte_offset": 2**40}),
    ),
    "too long": ("bounds", lambda memory, _: (memory, {"shape": 49})),
    "misaligned": (
        "structure",
        lambda memory, _: (memory, {"shape": 2, "dtype": "f4", "byte_offset": 2}),
    ),
    "no dtype": ("request", lambda memory, _: (memory, {"dtype": "nonsense"})),
    "no shape": ("request", lambda memory, _: (memory, {"strides": (1,), "byte_offset": 4})),
    "nothing": ("interface", lambda memory, _: (object(), {})),
    "no dictionary": ("interface", lambda memory, _: (_interface(5), {})),
    "half": ("interface", lambda memory, _: (_interface({"data": (8, False)}), {})),
    "null": ("structure", lambda memory, _: (_with(memory, data=(0, False)), {})),
    "stack": ("pointer", lambda memory, _: (_with(memory, data=(4096, False)), {})),
    "no context": ("context", lambda memory, _: (_with(memory, syclobj=5), {})),
    "no device": ("interface", lambda memory, _: (_with(memory, syclobj="gpu:9"), {})),
    "filter string": (None, lambda memory, _: (_with(memory, syclobj="cpu"), {})),
    "foreign context": ("pointer", lambda memory, other: (_with(memory, syclobj=other), {})),
}


def _interface(value: Any) -> Any:
    class Offering:
        __sycl_usm_array_interface__ = value

    return Offering()


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_stops_at_the_broken_rule(memory: Any, foreign_queue: Any, name: str) -> None:
    stop, make = EXPORTS[name]
    obj, keywords = make(memory, foreign_queue)
    explanation = explain(obj, direction="export", **keywords)
    assert stop_of(explanation) == stop
    error = raised_by(lambda: to_dlpack_tensor(obj, **keywords))
    check_walk(explanation.walks[0], error)


@given(
    first=st.sampled_from(sorted(EXPORTS)),
    second=st.sampled_from(sorted(EXPORTS)),
)
def test_exports_never_drift_from_to_dlpack_tensor(
    queue: Any, foreign_queue: Any, first: str, second: str
) -> None:
    owner = allocate("shared", 48, queue)
    obj, keywords = EXPORTS[first][1](owner, foreign_queue)
    keywords = EXPORTS[second][1](owner, foreign_queue)[1] | keywords
    explanation = explain(obj, direction="export", **keywords)
    check_walk(explanation.walks[0], raised_by(lambda: to_dlpack_tensor(obj, **keywords)))


class Hostile:
    """Raises whatever is done with it, and has no text."""

    def _refuse(self, *arguments: Any) -> Any:
        raise LookupError("\udc80")

    __index__ = __int__ = __len__ = __iter__ = __eq__ = __bool__ = __repr__ = _refuse
    __getitem__ = __hash__ = __call__ = _refuse


@pytest.mark.parametrize("field", ["data", "shape", "strides", "offset", "typestr", "syclobj"])
@pytest.mark.parametrize(
    "value", [Hostile(), 2**200, -1, None, (Hostile(), 2), (), "\udc80", {}, (2**64, True)]
)
def test_hostile_interfaces_stop_where_the_call_stops(memory: Any, field: str, value: Any) -> None:
    obj = TypedArray(memory, **{field: value})
    explanation = explain(obj, direction="export")
    check_walk(explanation.walks[0], raised_by(lambda: to_dlpack_tensor(obj)))
    assert explanation.as_json().isascii()
    assert explanation._repr_html_().replace("\n", "").isprintable()


def test_a_hostile_property_is_the_stop() -> None:
    class Raising:
        @property
        def __sycl_usm_array_interface__(self) -> Any:
            raise LookupError("gone")

    explanation = explain(Raising())
    assert stop_of(explanation) == "interface"
    assert type(explanation.error) is LookupError
    assert explanation.error.args == ("gone",)


def test_a_type_whose_name_raises_is_explained() -> None:
    class Nameless(type):
        __name__ = property(Hostile._refuse)  # type: ignore[assignment]

    class Thing(metaclass=Nameless):
        pass

    explanation = explain(Thing())
    assert explanation.subject == "an object of type Thing"
    assert stop_of(explanation) == "producer"


def test_the_page_of_a_refusal_is_named_wherever_it_is_shown(memory: Any) -> None:
    for keywords, code, page in (
        ({"shape": 49}, "out_of_bounds", "docs/errors/out_of_bounds.md"),
        ({"shape": "a"}, "TypeError", "docs/errors/python_arguments.md"),
        ({"dtype": "nonsense"}, "TypeError", "docs/errors/python_arguments.md"),
        ({"shape": -1}, "ValueError", "docs/errors/python_arguments.md"),
    ):
        explanation = explain(memory, direction="export", **keywords)
        assert f"           code      {code}; {page}\n" in str(explanation)
        assert f"{code}; {page}" in explanation._repr_html_()
        assert explanation.to_dict()["walks"][0]["error"]["page"] == page


def test_no_page_is_named_for_what_a_producer_raises_or_what_passes(memory: Any) -> None:
    class Raising:
        def __dlpack__(self, **keywords: Any) -> Any:
            raise TypeError("no")

    explanation = explain(Raising())
    assert "docs/errors" not in str(explanation) + explanation._repr_html_()
    assert explanation.to_dict()["walks"][0]["error"]["page"] is None
    assert "docs/errors" not in str(explain(memory))


def test_an_array_that_says_where_it_is_stops_for_that_reason() -> None:
    class Elsewhere:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __dlpack__(self, **keywords: Any) -> Any:
            raise AssertionError

    reasons = []
    for array in (np.zeros(3), Elsewhere(), 5):
        stop = explain(array).walks[0].stop
        assert stop is not None
        assert stop.name == "producer"
        reasons.append(stop.reason)
    told = "__dlpack_device__ says so before a capsule is asked for"
    assert reasons == [
        f"the array is in host memory: {told}",
        f"the array is in no memory of SYCL: {told}",
        "only its producer knows the memory",
    ]


def test_another_device_in_the_capsule_is_shown_and_counts(memory: Any) -> None:
    foreign = ForeignTensor(address_of(memory))
    other, same = (explain(ForeignArray(foreign, device=device)) for device in ((14, 7), (14, 0)))
    assert (other.error, same.error) == (None, None)
    assert validate(ForeignArray(foreign, device=(14, 7))).device_id == 0
    (step,) = [step for step in other.steps if step.name == "device_type"]
    told = "__dlpack_device__ says (14, 7), the capsule (14, 0), which counts"
    assert step.answer == f"kDLOneAPI (14); {told}"
    assert step.facts == {"device_type": 14, "dlpack_device": [14, 7]}
    assert told in " ".join(str(other).split())
    (step,) = [step for step in same.steps if step.name == "device_type"]
    assert (step.answer, step.facts) == ("kDLOneAPI (14)", {"device_type": 14})


def test_a_foreign_context_is_named(queue: Any, foreign_queue: Any) -> None:
    stop = explain(allocate("device", 48, foreign_queue)).walks[0].stop
    assert stop is not None
    assert stop.facts["context"]["sycl"]["kind"] == "device"
    assert stop.facts["default"] is False
    (device,) = stop.facts["context"]["devices"]
    assert (device["device_id"], device["sub_device"]) == (0, False)
    (default,) = stop.facts["default_contexts"]
    assert default["sycl"]["kind"] == "unknown"
    assert "a context of its own with root device 0" in stop.answer


def test_the_context_of_a_sub_device_is_named(queue: Any) -> None:
    part, *_ = queue.sycl_device.create_sub_devices(partition=1)
    queue_on_part = kept(dpctl.SyclQueue(part))
    stop = explain(allocate("device", 48, queue_on_part)).walks[0].stop
    assert stop is not None
    (device,) = stop.facts["context"]["devices"]
    assert (device["device_id"], device["sub_device"]) == (0, True)
    assert "a sub-device of root device 0" in stop.answer
    assert (
        "a queue made from a sub-device, by dpctl or on OpenCL, has a context of its own"
        in stop.answer
    )


def test_an_import_from_another_context_names_the_one_that_the_array_names(
    foreign_queue: Any,
) -> None:
    owner = allocate("device", 48, foreign_queue)

    class Both(ForeignArray):
        __sycl_usm_array_interface__ = owner.__sycl_usm_array_interface__

    stop = explain(Both(ForeignTensor(address_of(owner))), direction="import").walks[0].stop
    assert stop is not None
    assert stop.name == "pointer"
    assert "the array itself names a context of its own with root device 0" in stop.answer
    assert "SYCL says device USM" in stop.answer


def test_two_platforms_are_told_apart(
    succeed: Callable[..., str], driver: Path, driver_copies: Any
) -> None:
    told = json.loads(
        succeed(
            """
            import dpctl, json, usm_dlpack
            from dpctl import memory
            first, second = (dpctl.SyclQueue(d) for d in dpctl.get_devices())
            there = memory.MemoryUSMDevice(48, queue=second)
            interface = dict(there.__sycl_usm_array_interface__, syclobj=first)
            wrong = type("Wrong", (), {"__sycl_usm_array_interface__": interface})()
            capsule = usm_dlpack.to_dlpack_tensor(there).__dlpack__()
            import ctypes
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
            ctypes.c_int32.from_address(get(capsule, b"dltensor") + 12).value = 0
            print(json.dumps([usm_dlpack.explain(x).to_dict() for x in (wrong, capsule)]))
            """,
            OCL_ICD_FILENAMES=f"{driver}:{driver_copies['second']}",
        )
    )
    exported, imported = (walk["walks"][0] for walk in told)
    (stop,) = [step for step in exported["steps"] if step["outcome"] == "stopped"]
    assert stop["name"] == "pointer"
    kinds = [row["sycl"]["kind"] for row in stop["facts"]["default_contexts"]]
    assert kinds == ["unknown", "device"]
    assert exported["error"]["code"] == "pointer_unknown"
    (stop,) = [step for step in imported["steps"] if step["outcome"] == "stopped"]
    assert (stop["name"], imported["error"]["code"]) == ("pointer", "device_mismatch")
    assert "(device ids 1): SYCL says device USM" in stop["answer"]


@pytest.mark.parametrize(
    "keywords",
    [{"direction": "both"}, {"shape": 3, "ndim": 2}, {"direction": "import", "byte_offset": 4}],
)
def test_keywords_of_two_directions_are_refused(memory: Any, keywords: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^direction: expected .*, found .*; \w"):
        explain(memory, **keywords)


# --- hostile producers, by the oracle of tests/hostile

_HOSTILE = """
import sys
sys.path[1:1] = [{hostile!r}, {python!r}]
import cases, run
from usm_dlpack import UsmAllocation, _exchange, explain

validate, proofs, walked = _exchange.validate, [], 0

def recorded(x, /, **keywords):
    proofs.append(validate(x, **keywords))
    return proofs[-1]

def explained(x, /, **keywords):
    global walked
    if keywords.get("usm_types", ()) is None or "stranger" in keywords:
        return validate(x, **keywords)  # explain has no such keyword
    proofs.clear()
    walk = explain(x, direction="import", **keywords).walks[0]
    walked += 1
    outcomes = [step.outcome for step in walk.steps]
    assert outcomes.count("stopped") == (walk.error is not None)
    if walk.error is not None:
        try:
            raise walk.error
        finally:
            del walk  # with its error, whose traceback is this frame
    return proofs.pop()

_exchange.validate = recorded
cases.validate = explained
sys.argv = ["run.py", "--count=3000", "--seed=11"]
status = run.main()
assert walked > 1000, walked
sys.exit(status)
"""


def test_hostile_producers_are_explained_as_the_oracle_says(
    new_process: Callable[..., Any], project_root: Path, driver: Path, driver_copies: Any
) -> None:
    code = _HOSTILE.format(
        hostile=str(project_root / "tests" / "hostile"),
        python=str(project_root / "tests" / "python"),
    )
    drivers = [driver, driver_copies["second"], driver_copies["broken"]]
    done = new_process(code, OCL_ICD_FILENAMES=os.pathsep.join(map(str, drivers)))
    assert done.returncode == 0, done.stdout + done.stderr
