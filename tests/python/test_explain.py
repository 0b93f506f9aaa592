# SPDX-License-Identifier: Apache-2.0
"""`explain` names the step that refuses, its facts are those of the proof, nothing is consumed."""

import ctypes
import gc
import json
import re
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from capsules import ForeignArray, ForeignTensor, consume, name_of
from memory_sources import TypedArray, address_of, allocate, new_queue
from refusals import wrong_argument
from usm_dlpack import ConversionError, _core, _explain, explain, to_dlpack_tensor, validate

STEPS = {
    "export": ["interface", "structure", "context", "queue", "bounds"],
    "import": [
        *("producer", "structure", "requirements", "device", "backend", "memory", "bounds"),
    ],
}

STEP = re.compile(r"^  (\w+) +(\w+)", re.MULTILINE)


def check(explanation: Any, direction: str, refusing: str | None) -> None:
    """Require one direction, refused by one step, or by none."""
    names = STEPS[direction]
    passed = len(names) if refusing is None else names.index(refusing)
    rest = [] if refusing is None else ["refused", *["unknown"] * (len(names) - passed - 1)]
    assert [(step.direction, step.name) for step in explanation.steps] == [
        (direction, name) for name in names
    ]
    assert [step.outcome for step in explanation.steps] == ["ok"] * passed + rest
    for step in explanation.steps:
        assert step.error is (explanation.error if step.outcome == "refused" else None)
        assert refusing is None or step.facts == {}
    assert (explanation.error is None) is (refusing is None)
    text = explanation.to_text(every_step=True)
    assert text.isascii()
    assert "0x" not in text
    shown = [(step.outcome, step.name) for step in explanation.steps]
    assert STEP.findall(text) == shown
    assert STEP.findall(str(explanation)) == [step for step in shown if step[0] == "refused"]
    assert json.loads(json.dumps(explanation.to_dict()))["passed"] is (refusing is None)


def raised_by(act: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        act()
    return caught.value


@pytest.mark.parametrize("direction", STEPS)
def test_the_steps_are_those_of_the_page(memory, project_root, direction):
    explanation = explain(to_dlpack_tensor(memory), direction=direction)
    check(explanation, direction, None)
    page = (project_root / "docs" / "explanation" / f"{direction}_protocol.md").read_text()
    headings = re.findall(r"^## (\d+)\. (\w+): ", page, re.MULTILINE)
    assert headings == [(str(n), step.name) for n, step in enumerate(explanation.steps, 1)]


def test_every_code_of_a_step_exists_and_stands_at_one_step():
    known = {code for code, *_ in _core.error_table()}
    for steps in _explain._STEPS.values():
        codes = [code for of_step in steps.values() for code in of_step]
        assert len(codes) == len(set(codes))
        assert set(codes) <= known


def test_the_facts_are_those_of_the_proof(unpooled):
    tensor = to_dlpack_tensor(unpooled, shape=(2, 3), strides=(-6, 2), dtype="f4", byte_offset=24)
    facts = {(step.direction, step.name): step.facts for step in explain(tensor).steps}
    layout = {"shape": (2, 3), "strides": (-6, 2), "dtype": "float32", "nbytes": 44}
    assert facts["export", "structure"] == layout
    assert facts["export", "context"] == {"usm_type": "shared", "device_id": 0}
    proof = validate(tensor)
    assert facts["import", "producer"] == {"readonly": False}
    assert facts["import", "structure"] == {"nbytes": 44, "overlapping": False}
    assert facts["import", "device"] == {"device_id": 0}
    memory = {"usm_type": "shared", "device_proof": proof.device_proof}
    assert facts["import", "memory"] == memory
    bounds = {"size": 48, "begin": 0}
    assert facts["export", "bounds"] == bounds
    assert facts["import", "bounds"] == bounds | {"proof": "allocation"}


_FOREIGN = ctypes.create_string_buffer(64)
# The step that must see it, a field, and what is in it; of a tuple the address.
SPOILS: list[tuple[str | None, str, Any]] = [
    (None, "minor", 9),
    ("producer", "major", 2),
    ("producer", "flags", 64),
    ("producer", "device_type", 8),
    ("structure", "strides", (2**62, 2**62)),
    ("device", "device_id", 1),
    ("memory", "data", ctypes.addressof(_FOREIGN) // 16 * 16 + 16),
    ("bounds", "byte_offset", 4),
    (None, "strides", None),
    (None, "shape", (0, 4)),
]
REQUESTS: list[tuple[str | None, dict[str, Any]]] = [
    (None, {"usm_types": ("device", "shared"), "dtype": "f4", "ndim": 2, "device": (14, 0)}),
    ("requirements", {"dtype": "f8"}),
    ("requirements", {"device": (14, 9)}),
    ("backend", {"backends": ["level_zero"]}),
    ("memory", {"usm_types": "host"}),
    ("producer", {"ndim": "2"}),
]


@pytest.mark.parametrize(("refusing", "field", "value"), SPOILS)
def test_an_import_is_refused_by_the_step_of_the_spoiled_field(memory, refusing, field, value):
    foreign = ForeignTensor(address_of(memory))
    place = foreign.managed if field in ("major", "minor", "flags") else foreign.tensor
    setattr(place, field, foreign.array(value) if isinstance(value, tuple) else value)
    capsule = foreign.capsule()
    check(explain(capsule), "import", refusing)
    assert (name_of(capsule), foreign.deletions) == (foreign.name, 0)
    check(explain(ForeignArray(foreign)), "import", refusing)


@pytest.mark.parametrize(("refusing", "request_"), REQUESTS)
def test_an_import_is_refused_by_the_step_of_the_request(memory, refusing, request_):
    array = ForeignArray(ForeignTensor(address_of(memory)))
    check(explain(array, **request_), "import", refusing)
    assert len(array.asked) == (0 if refusing == "producer" else 1)


def exports(memory: Any, foreign_queue: Any) -> list[tuple[str | None, Any, dict[str, Any]]]:
    return [
        (None, memory, {"shape": 0}),
        (None, memory, {"queue": memory.sycl_queue}),
        (None, TypedArray(memory, syclobj="cpu"), {}),
        ("interface", object(), {}),
        ("interface", types.SimpleNamespace(__sycl_usm_array_interface__=5), {}),
        ("interface", memory, {"dtype": "nonsense"}),
        ("interface", TypedArray(memory, syclobj=5), {}),
        ("structure", memory, {"shape": 2, "dtype": "f4", "byte_offset": 2}),
        ("context", TypedArray(memory, data=(4096, False)), {}),
        ("context", allocate("device", 48, foreign_queue), {}),
        ("queue", memory, {"queue": foreign_queue}),
        ("bounds", memory, {"shape": 4, "byte_offset": 2**40}),
    ]


@pytest.mark.parametrize("case", range(12))
def test_an_export_is_refused_by_the_step_of_the_broken_rule(memory, foreign_queue, case):
    refusing, obj, keywords = exports(memory, foreign_queue)[case]
    check(explain(obj, direction="export", **keywords), "export", refusing)


@pytest.mark.parametrize(
    ("act", "keywords"), [(to_dlpack_tensor, {"shape": 49}), (validate, {"ndim": 3})]
)
def test_the_error_is_that_of_the_call(memory, act, keywords):
    tensor = to_dlpack_tensor(memory)
    real: Any = raised_by(lambda: act(tensor, **keywords))
    explanation = explain(tensor, **keywords)  # the keywords say which direction
    told = explanation.error
    assert (type(told), repr(told), vars(told)) == (type(real), repr(real), vars(real))
    (described,) = [s["error"] for s in explanation.to_dict()["steps"] if s["error"]]
    assert (described["code"], described["text"]) == (real.code, str(real))
    assert f"ConversionError: {real}\n           {real.code}: {real.page}" in str(explanation)


@pytest.mark.parametrize("raised", [OSError("x: expected y, found z; w"), BufferError("\udc80")])
def test_what_a_producer_raises_is_the_error_of_the_first_step(raised):
    class Raising:
        def __dlpack__(self, **keywords):
            raise raised

    explanation = explain(Raising())
    assert explanation.error is raised
    check(explanation, "import", "producer")
    assert "usm_dlpack errors" not in str(explanation)


@pytest.mark.parametrize("name", ["__dlpack__", "__sycl_usm_array_interface__"])
def test_a_refusal_from_inside_a_producer_is_the_producers(memory, name):
    class Refusing:
        def refuse(self, **keywords):
            return to_dlpack_tensor(memory, shape=49).__dlpack__(**keywords)

    setattr(Refusing, name, Refusing.refuse if name == "__dlpack__" else property(Refusing.refuse))
    explanation = explain(Refusing())
    error: Any = explanation.error
    assert error.code == "out_of_bounds"
    direction = "import" if name == "__dlpack__" else "export"
    check(explanation, direction, STEPS[direction][0])


def test_a_keyboard_interrupt_is_not_explained_away():
    class Interrupted:
        def __dlpack__(self, **keywords):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explain(Interrupted())


@pytest.mark.parametrize("stranger", [None, 5, object(), np.zeros(3)], ids=repr)
def test_a_stranger_is_refused_by_the_first_step(stranger):
    check(explain(stranger), "import", "producer")


def test_a_consumed_capsule_is_refused_by_the_first_step(memory):
    capsule = to_dlpack_tensor(memory).__dlpack__()
    consume(capsule)
    check(explain(capsule), "import", "producer")


def test_work_that_is_pending_is_not_waited_for(start):
    pending = start(new_queue())
    tensor = to_dlpack_tensor(pending.memory, queue=pending.queue)
    explanation = explain(tensor)
    assert pending.is_pending
    assert explanation.error is None


@pytest.mark.parametrize("keywords", [{}, {"dtype": "nothing"}, {"ndim": "two"}])
def test_an_explanation_keeps_neither_array_nor_capsule_alive(keywords, memory):
    foreign = ForeignTensor(address_of(memory))
    foreign.tensor.device_id = 9
    array = ForeignArray(foreign)
    gone = weakref.ref(array)
    gc.disable()
    try:
        explanation = explain(array, **keywords)
        del array
        assert gone() is None
    finally:
        gc.enable()
    assert foreign.deletions == (0 if keywords else 1)  # such a keyword is read first
    assert explanation.error is not None


@pytest.mark.parametrize("direction", [1, np.array(["import", "export"])])
def test_a_direction_that_is_no_str_is_a_type_error(memory, direction):
    with wrong_argument(TypeError, "direction"):
        explain(memory, direction=direction)


def test_keywords_of_both_directions_are_refused(memory):
    with wrong_argument(ValueError, "direction", "ndim, shape"):
        explain(memory, ndim=1, shape=(3, 4))


def test_an_array_is_explained_in_the_directions_that_it_has(memory):
    tensor = to_dlpack_tensor(memory)
    itself = weakref.proxy(tensor)  # whose type has no protocol
    for x, directions in (
        (tensor, ["export", "import"]),
        (memory, ["export"]),
        (itself, ["import"]),
    ):
        steps = [(step.direction, step.name, step.outcome) for step in explain(x).steps]
        assert steps == [(way, name, "ok") for way in directions for name in STEPS[way]]


class Hostile:
    """Raises whatever is done with it, and has no text."""

    def _refuse(self, *arguments: Any) -> Any:
        raise LookupError("\udc80")

    __index__ = __int__ = __len__ = __iter__ = __eq__ = __bool__ = __repr__ = _refuse
    __getitem__ = __hash__ = __call__ = _refuse
    __sycl_usm_array_interface__ = property(_refuse)


@pytest.mark.parametrize("field", ["data", "shape", "typestr", "syclobj"])
def test_hostile_interfaces_are_explained(memory, field):
    for value in (Hostile(), 2**200, (Hostile(), 2), "\udc80", b"\x80"):
        obj = TypedArray(memory, **{field: value})
        explanation = explain(obj, direction="export")
        assert repr(explanation.error) == repr(raised_by(lambda obj=obj: to_dlpack_tensor(obj)))
        assert json.dumps(explanation.to_dict()).isascii()
        assert explanation._repr_html_().replace("\n", "").isprintable()


def test_an_import_from_another_context_is_refused_by_the_step_of_the_memory(foreign_queue):
    """On Level Zero only the array's queue shows it, after all other checks."""
    owner = allocate("device", 48, foreign_queue)
    array: Any = ForeignArray(ForeignTensor(address_of(owner)))
    array.sycl_queue = foreign_queue
    explanation = explain(array)
    assert isinstance(explanation.error, ConversionError)
    check(explanation, "import", "memory")
