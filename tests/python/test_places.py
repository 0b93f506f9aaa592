# SPDX-License-Identifier: Apache-2.0
"""One vocabulary of places: what each keyword makes of each object, and of hostile ones."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import dpctl
import numpy as np
import place_cases
import pytest
from capsules import ForeignArray, ForeignTensor, package_queue
from memory_sources import address_of, allocate, kept, new_queue
from place_cases import CASES, KEYWORDS, with_queue
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, device_id, empty, from_dlpack, to_dlpack_tensor, validate

HERE = (14, 0)
Call = Callable[[Any], Any]


def export(place: Any) -> Any:
    return to_dlpack_tensor(allocate("shared", 48, new_queue())).__dlpack__(stream=place)


def copy(place: Any) -> None:
    to_dlpack_tensor(allocate("shared", 4, new_queue())).copy_from(b"abcd", queue=place)


def bring(place: Any) -> DLPackTensor:
    return from_dlpack(np.arange(3), device=place)


def make_new(place: Any) -> DLPackTensor:
    return empty(3, device=place)


def describe(place: Any) -> DLPackTensor:
    return to_dlpack_tensor(allocate("shared", 48, new_queue()), queue=place)


def prove(place: Any) -> Any:
    return validate(describe(new_queue()), device=place)


# The field that each keyword's refusals name, and the functions that have it.
FUNCTIONS: dict[str, tuple[str, tuple[Call, ...]]] = {
    KEYWORDS[0]: ("device", (bring, make_new)),
    KEYWORDS[1]: ("device", (prove, device_id)),
    KEYWORDS[2]: ("queue", (describe, copy)),
    KEYWORDS[3]: ("stream", (export,)),
}


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what + case.backend)
def test_each_cell_of_the_table_is_what_happens(case, keyword):
    cell = case.cells[KEYWORDS.index(keyword)]
    field, functions = FUNCTIONS[keyword]
    queue = new_queue(in_order=True)
    for make in case.make:
        place = make(queue)
        for call in functions:
            if cell.endswith("Error"):
                kind = {"TypeError": TypeError, "ValueError": ValueError}[cell]
                with wrong_argument(kind, field):
                    call(place)
            elif cell == "`request_unsupported`":
                with refused("request_unsupported", field, expected="a root device"):
                    call(place)
            else:
                made = call(place)
                if call is device_id:
                    assert made == 0
                elif call in (bring, make_new, describe):
                    assert made.device == HERE
                    assert made.sycl_queue == (queue if "queue" in cell else package_queue())


def test_the_page_has_the_table(project_root):
    assert place_cases.table() in (project_root / "docs" / "how-to" / "places.md").read_text()


# --- hostile objects


class Selfish:
    """An object that answers every question with itself."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self) -> Any:
        return self


@pytest.mark.parametrize("place", [Mock(), MagicMock(), Selfish(), with_queue(5), with_queue(True)])
def test_an_object_whose_queue_is_nonsense_is_refused(place):
    for call in (bring, prove, device_id, describe, copy, export):
        with wrong_argument(ValueError, "sycl_queue"):
            call(place)


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("sycl_device", SimpleNamespace(sycl_device=5)),
        ("device", SimpleNamespace(device=5)),
        ("device", with_queue(None)),
    ],
)
def test_an_object_whose_device_is_nonsense_is_refused(field, place):
    for call in (bring, prove, device_id):
        with wrong_argument(TypeError, field):
            call(place)
    for call in (describe, copy):
        with wrong_argument(TypeError, "queue"):
            call(place)
    with wrong_argument(ValueError, "stream"):
        export(place)


def test_an_array_that_names_its_device_by_nonsense_is_refused():
    place = ForeignArray(ForeignTensor(0), device=(14, "x"))
    for call in (bring, prove, device_id):
        with refused("device_type_unsupported", "__dlpack_device__"):
            call(place)


def raising(name: str, error: type[BaseException]) -> Any:
    """Return an object with one attribute, which raises an error."""

    def fail(_: Any) -> Any:
        raise error("of its own")

    return type("Raising", (), {name: property(fail)})()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, TypeError, AttributeError])
def test_an_error_of_the_object_is_raised_and_is_the_cause_of_the_refusal_of_a_stream(error):
    ends = not issubclass(error, Exception)
    place = raising("sycl_queue", error)
    for name in ("sycl_queue", "__dlpack_device__", "sycl_device", *["_get_capsule"] * ends):
        for call in (bring, prove, device_id):
            with pytest.raises(error, match="of its own"):
                call(raising(name, error))
    for call in (describe, copy, *[export] * ends):
        with pytest.raises(error, match="of its own"):
            call(place)
    if not ends:
        with pytest.raises(ValueError, match=r"stream: expected .* which raises an") as info:
            export(place)
        assert isinstance(info.value.__cause__, error)


def test_a_tensor_that_was_never_made_is_no_place():
    for call in (bring, prove, device_id, describe, copy, export):
        with refused("tensor_released", "data", found="one that was not initialised"):
            call(DLPackTensor.__new__(DLPackTensor))


# --- queues that are no place for memory, and devices that are not here


def test_a_queue_of_another_context_names_its_device_and_takes_no_memory(foreign_queue):
    for place in (foreign_queue, with_queue(foreign_queue)):
        assert device_id(place) == prove(place).device_id == 0
        assert export(place) is not None
        for call in (bring, make_new, describe, copy):
            with refused("context_not_default", "queue" if call in (describe, copy) else "device"):
                call(place)


def test_an_id_that_no_device_has_is_refused():
    for call in (bring, make_new, device_id):
        with refused("no_device", "device.device_id", found="99"):
            call((14, 99))


def test_the_queue_of_an_opencl_sub_device_names_the_root(queue):
    of_part = kept(dpctl.SyclQueue(place_cases.sub_device(queue)))
    for place in (of_part, with_queue(of_part)):
        assert device_id(place) == prove(place).device_id == 0
        for call in (bring, make_new):
            with refused("context_not_default", "device"):
                call(place)


# --- what a producer gets as `stream`


FORMS = [case for case in CASES if case.cells == place_cases.KNOWS_A_QUEUE]


@pytest.mark.parametrize("case", FORMS, ids=lambda case: case.what)
def test_a_producer_gets_the_queue_as_an_object_of_dpctl(case, memory):
    for make in case.make:
        queue = new_queue(in_order=True)
        array = ForeignArray(ForeignTensor(address_of(memory)))
        assert from_dlpack(array, device=make(queue)).sycl_queue == queue
        assert type(array.asked[-1]["stream"]) is dpctl.SyclQueue
        assert array.asked[-1]["stream"] == queue
