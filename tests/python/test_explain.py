# SPDX-License-Identifier: Apache-2.0
"""`explain` stops where the real call stops, its answers are true, and nothing is consumed."""

import ctypes
import gc
import json
import re
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import numpy as np
import pytest
from capsules import ForeignArray, ForeignTensor, consume, name_of
from memory_sources import TypedArray, address_of, allocate, kept
from refusals import wrong_argument
from usm_dlpack import _core, explain, to_dlpack_tensor, validate

IMPORT = ["request", "producer", "capsule", "header", "device_type", "structure"]
IMPORT += ["requirements", "root", "backend", "pointer", "kind", "device", "bounds"]
EXPORT = ["interface", "request", "structure", "context", "pointer", "default", "device", "root"]
EXPORT += ["queue", "bounds"]


def raised_by(act: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        act()
    return caught.value


def check_walk(walk: Any, stop: str | None) -> None:
    """Require that a walk stops at one step, or nowhere, and that its texts are whole."""
    names = IMPORT if walk.direction == "import" else EXPORT
    passed = len(names) if stop is None else names.index(stop)
    rest = [] if stop is None else ["stopped", *["not reached"] * (len(names) - passed - 1)]
    assert [step.name for step in walk.steps] == names
    assert [step.number for step in walk.steps] == list(range(1, len(names) + 1))
    assert [step.outcome for step in walk.steps] == ["passed"] * passed + rest
    assert (walk.error is None) is (stop is None)
    for step in walk.steps:
        assert step.title
        assert step.reason
        assert bool(step.question) is bool(step.answer) is (step.outcome != "not reached"), step
        assert "0x" not in step.answer
        assert "not known" not in step.answer
    json.dumps([step.facts for step in walk.steps])


def test_a_protocol_reports_every_step_in_order(memory):
    steps, _ = _core.observe(lambda: to_dlpack_tensor(memory))
    assert steps == EXPORT[2:]  # Python reads the interface and the keywords
    tensor = to_dlpack_tensor(memory)
    steps, _ = _core.observe(lambda: validate(tensor))
    assert steps == [*IMPORT[1:], "pointer"]  # again, of the queue that the producer names
    steps, _ = _core.observe(lambda: validate(tensor.__dlpack__()))
    assert steps == IMPORT[1:]


def test_an_export_names_the_bytes_of_the_object(memory):
    *_, queue, bounds = explain(memory, byte_offset=4, queue=memory.sycl_queue).steps
    told = f"the object has {memory.nbytes} bytes; the first element is at byte 4"
    assert (queue.answer, bounds.answer) == ("it is of root device 0", told)
    context = explain(memory, shape=4, byte_offset=2**40).steps[3]
    assert context.answer.startswith("the default context with root device 0, on the platform")
    assert context.facts["context"]["sycl"]["kind"] == "device"  # of the address that it names
    of_host = explain(to_dlpack_tensor(allocate("host", 48, memory.sycl_queue))).walks[0]
    assert of_host.steps[6].answer.startswith("host USM is of no single device")
    empty = explain(to_dlpack_tensor(memory, shape=0), direction="import")
    assert empty.steps[3].answer == "version 1.3, flags 0"
    assert empty.steps[9].answer == "an empty view has no memory"


@pytest.mark.parametrize("direction", ["export", "import"])
def test_the_steps_are_those_of_the_page(memory, project_root, direction):
    def plain(title):
        number, _, text = title.replace("`", "").partition(". ")
        return f"{number}. {text[0].lower()}{text[1:]}"

    (walk,) = explain(to_dlpack_tensor(memory), direction=direction).walks
    page = (project_root / "docs" / "explanation" / f"{direction}_protocol.md").read_text()
    headings = re.findall(r"^## (\d+\. .*)$", page, re.MULTILINE)
    steps = [plain(f"{step.number}. {step.title}") for step in walk.steps]
    assert [plain(heading) for heading in headings] == steps


def test_the_facts_of_the_steps_are_those_of_the_proof(unpooled):
    tensor = to_dlpack_tensor(unpooled, shape=(2, 3), strides=(-6, 2), dtype="f4", byte_offset=24)
    export, imported = (
        {step.name: step.facts for step in walk.steps} for walk in explain(tensor).walks
    )
    view = {"ndim": 2, "shape": [2, 3], "strides": [-6, 2], "nbytes": 44, "byte_offset": 24}
    assert imported["structure"].items() >= view.items()
    assert imported["root"] == {"device_id": 0, "count": 1, "failure": None}
    assert imported["device"]["true"] == {"device_id": 0}
    bounds = {"lowest": tensor.data - 24, "nbytes": 44, "base": tensor.data - 24, "size": 48}
    assert imported["bounds"] == bounds | {"empty": False, "bounds_proof": "allocation"}
    assert (export["default"]["default"], export["root"]) == (True, {"device_id": 0})
    interface = {"shape": [2, 3], "strides": [-6, 2], "typestr": "<f4", "offset": 0}
    assert export["interface"] == interface | {"syclobj": "SyclQueue"}


def test_what_a_producer_calls_meanwhile_is_not_reported(memory):
    class Nested(ForeignArray):
        def __dlpack__(self, **keywords):
            assert explain(memory, shape=49).error is not None
            validate(to_dlpack_tensor(memory))
            return super().__dlpack__(**keywords)

    steps, _ = _core.observe(lambda: validate(Nested(ForeignTensor(address_of(memory)))))
    assert steps == IMPORT[1:]


_FOREIGN = ctypes.create_string_buffer(64)
# The step that must see it, a field, and what is in it; of a tuple the address.
SPOILS: list[tuple[str | None, str, Any]] = [
    (None, "minor", 9),
    ("header", "major", 2),
    ("device_type", "device_type", 2),
    ("structure", "strides", (2**62, 2**62)),
    ("root", "device_id", 1),
    ("pointer", "data", ctypes.addressof(_FOREIGN) // 16 * 16 + 16),
    ("bounds", "byte_offset", 4),
    (None, "strides", None),
    (None, "shape", (0, 4)),
]
REQUESTS: list[tuple[str | None, dict[str, Any]]] = [
    (None, {"usm_types": ("device", "shared"), "dtype": "f4", "ndim": 2, "device": (14, 0)}),
    ("requirements", {"dtype": "f8"}),
    ("backend", {"backends": ["level_zero"]}),
    ("kind", {"usm_types": "host"}),
    ("request", {"ndim": "2"}),
]


@pytest.mark.parametrize(("stop", "field", "value"), SPOILS)
def test_an_import_stops_at_the_step_of_the_spoiled_field(memory, stop, field, value):
    foreign = ForeignTensor(address_of(memory))
    place = foreign.managed if field in ("major", "minor", "flags") else foreign.tensor
    setattr(place, field, foreign.array(value) if isinstance(value, tuple) else value)
    capsule = foreign.capsule()
    check_walk(explain(capsule).walks[0], stop)
    assert (name_of(capsule), foreign.deletions) == (foreign.name, 0)
    check_walk(explain(ForeignArray(foreign)).walks[0], stop)


@pytest.mark.parametrize(("stop", "request_"), REQUESTS)
def test_an_import_stops_at_what_the_caller_does_not_take(memory, stop, request_):
    array = ForeignArray(ForeignTensor(address_of(memory)))
    explanation = explain(array, direction="import", **request_)
    check_walk(explanation.walks[0], stop)
    assert array.asked == ([] if stop == "request" else [{"max_version": (1, 3)}])


@pytest.mark.parametrize(
    ("act", "keywords"), [(to_dlpack_tensor, {"shape": 49}), (validate, {"ndim": 3})]
)
def test_the_error_is_that_of_the_call(memory, act, keywords):
    tensor = to_dlpack_tensor(memory)
    real = raised_by(lambda: act(tensor, **keywords))
    (walk,) = explain(tensor, **keywords).walks  # the keywords say which direction
    told = walk.error
    assert walk.call.startswith(f"usm_dlpack.{act.__name__}(")
    assert (type(told), repr(told)) == (type(real), repr(real))
    assert vars(told) == vars(real)


@pytest.mark.parametrize("raised", [OSError("x: expected y, found z; w"), BufferError("\udc80")])
def test_what_a_producer_raises_is_the_stop(raised):
    class Raising:
        def __dlpack__(self, **keywords):
            raise raised

    explanation = explain(Raising())
    assert explanation.error is raised
    check_walk(explanation.walks[0], "producer")
    assert str(explanation).isascii()
    told = json.loads(explanation.as_json())["walks"][0]["error"]
    assert (told["type"], told["page"]) == (type(raised).__name__, None)
    assert "usm_dlpack errors" not in str(explanation)


def test_a_keyboard_interrupt_is_not_explained_away():
    class Interrupted:
        def __dlpack__(self, **keywords):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explain(Interrupted())


def test_strangers_and_consumed_capsules_stop_where_validate_stops(memory):
    for stranger in (None, 5, object(), np.zeros(3)):
        check_walk(explain(stranger).walks[0], "producer")
    capsule = to_dlpack_tensor(memory).__dlpack__()
    assert explain(capsule).steps[3].answer == "a legacy managed tensor has neither"
    consume(capsule)
    check_walk(explain(capsule).walks[0], "capsule")


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


def test_an_array_is_explained_in_the_directions_that_it_has(memory):
    tensor = to_dlpack_tensor(memory)
    itself = weakref.proxy(tensor)  # whose type has no protocol
    for x, directions in (
        (tensor, ["export", "import"]),
        (memory, ["export"]),
        (itself, ["import"]),
    ):
        walks = explain(x).walks
        assert [walk.direction for walk in walks] == directions
        for walk in walks:
            check_walk(walk, None)


def test_an_export_stops_at_the_broken_rule(memory, foreign_queue):
    exports: list[tuple[str | None, Any, dict[str, Any]]] = [
        (None, memory, {"shape": 0}),
        (None, memory, {"queue": memory.sycl_queue}),
        (None, TypedArray(memory, syclobj="cpu"), {}),
        ("interface", object(), {}),
        ("interface", Hostile(), {}),
        ("interface", types.SimpleNamespace(__sycl_usm_array_interface__=5), {}),
        ("request", memory, {"dtype": "nonsense"}),
        ("structure", memory, {"shape": 2, "dtype": "f4", "byte_offset": 2}),
        ("context", TypedArray(memory, syclobj=5), {}),
        ("pointer", TypedArray(memory, data=(4096, False)), {}),
        ("default", allocate("device", 48, foreign_queue), {}),
        ("queue", memory, {"queue": foreign_queue}),
        ("bounds", memory, {"shape": 4, "byte_offset": 2**40}),
    ]
    for stop, obj, keywords in exports:
        check_walk(explain(obj, direction="export", **keywords).walks[0], stop)


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
        assert explanation.as_json().isascii()
        assert explanation._repr_html_().replace("\n", "").isprintable()


def test_the_page_of_a_refusal_is_named_wherever_it_is_shown(memory):
    for keywords, code, name in (
        ({"shape": 49}, "out_of_bounds", "out_of_bounds"),
        ({"shape": "a"}, "TypeError", "python_arguments"),
    ):
        page = f"python -m usm_dlpack errors {name}"
        explanation = explain(memory, direction="export", **keywords)
        for text in (str(explanation), explanation._repr_html_()):
            assert text.count(f"{code}; {page}") == 1
        assert explanation.to_dict()["walks"][0]["error"]["page"] == page
        reason = "a query of a pointer looks at one byte"
        assert (explanation.walks[0].stop.reason == reason) is (name == "out_of_bounds")
    assert "usm_dlpack errors" not in str(explain(memory))


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros(3), "in host memory: __dlpack_device__ says so"),
        (5, "only its producer knows the memory"),
    ],
    ids=["NumPy", "a stranger"],
)
def test_a_stop_has_the_reason_that_fits_the_array(array, reason):
    assert reason in explain(array).walks[0].stop.reason


def test_another_device_in_the_capsule_is_shown_and_counts(memory):
    foreign = ForeignTensor(address_of(memory))
    for said in ((14, 7), (14, 0)):
        explanation = explain(ForeignArray(foreign, device=said))
        assert explanation.error is None
        (step,) = [step for step in explanation.steps if step.name == "device_type"]
        differs = said != (14, 0)
        assert ("__dlpack_device__ says (14, 7), the capsule (14, 0)" in step.answer) is differs
        assert step.facts == {"device_type": 14} | ({"dlpack_device": [14, 7]} if differs else {})


@pytest.mark.parametrize("of_sub_device", [False, True])
def test_a_foreign_context_is_named(queue, foreign_queue, of_sub_device):
    if of_sub_device:
        part, *_ = queue.sycl_device.create_sub_devices(partition=1)
        foreign_queue = kept(dpctl.SyclQueue(part))
    (walk,) = explain(allocate("device", 48, foreign_queue)).walks
    assert walk.steps[4].answer == "device USM"
    stop = walk.stop
    assert stop.facts["context"]["sycl"]["kind"] == "device"
    assert stop.facts["default"] is False
    (device,) = stop.facts["context"]["devices"]
    assert (device["device_id"], device["sub_device"]) == (0, of_sub_device)
    (default,) = stop.facts["default_contexts"]
    assert default["sycl"]["kind"] == "unknown"
    assert stop.facts["context"]["sycl"]["device"] == device
    part = "a sub-device of " if of_sub_device else ""
    assert f"a context of its own with {part}root device 0, on the platform" in stop.answer
    told = "a queue made from a sub-device, by dpctl or on OpenCL, has a context of its own"
    assert (told in stop.answer) is of_sub_device
    assert stop.answer.endswith("SYCL says unknown")


def test_an_import_from_another_context_names_the_one_that_the_array_names(foreign_queue):
    owner = allocate("device", 48, foreign_queue)
    array = ForeignArray(ForeignTensor(address_of(owner)))
    array.__sycl_usm_array_interface__ = owner.__sycl_usm_array_interface__
    stop = explain(array, direction="import").walks[0].stop
    assert stop.name == "pointer"
    assert "the array itself names a context of its own with root device 0" in stop.answer
    assert "SYCL says device USM" in stop.answer


def test_two_platforms_are_told_apart(succeed, several_devices):
    told = succeed(
        """
        import dpctl, json, usm_dlpack
        from capsules import ForeignTensor
        from memory_sources import TypedArray, address_of, allocate
        first, second = (dpctl.SyclQueue(device) for device in dpctl.get_devices())
        there = allocate("device", 48, second)
        wrong = TypedArray(there, syclobj=first)
        capsule = ForeignTensor(address_of(there)).capsule()
        print(json.dumps([usm_dlpack.explain(x).to_dict()["walks"][0] for x in (wrong, capsule)]))
        """,
        PYTHONPATH=str(Path(__file__).parent),
        **several_devices(2),
    )
    for walk, code in zip(json.loads(told), ("pointer_unknown", "device_mismatch"), strict=True):
        (stop,) = [step for step in walk["steps"] if step["outcome"] == "stopped"]
        assert (stop["name"], walk["error"]["code"]) == ("pointer", code)
        kinds = [row["sycl"]["kind"] for row in stop["facts"]["default_contexts"]]
        assert kinds == ["unknown", "device"]
        assert "(device ids 1): SYCL says device USM" in stop["answer"]
