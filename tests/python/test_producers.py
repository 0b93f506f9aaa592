# SPDX-License-Identifier: Apache-2.0
"""What `from_dlpack` asks of producers, what it makes of their errors, and what is an array."""

import itertools
import types
import weakref
from typing import Any

import numpy as np
import pytest
from capsules import (
    IS_COPIED,
    NEWEST,
    ForeignArray,
    ForeignTensor,
    OldArray,
    Ordering,
    dpctl_queue,
    package_queue,
)
from memory_sources import address_of, new_queue
from pending_work import COUNT, check_order
from refusals import refused
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate

KEYWORDS = ("stream", "max_version", "dl_device", "copy")
SUBSETS = [subset for count in range(5) for subset in itertools.combinations(KEYWORDS, count)]
SIGNATURES = {
    "keywords": "self, *, {}",
    "by position or keyword": "self, {}",
    "by position": "self, {}, /",
}


@pytest.fixture
def foreign(memory: Any) -> ForeignTensor:
    return ForeignTensor(address_of(memory))


def array_of(foreign: ForeignTensor, **members: Any) -> Any:
    """Return an array of a new class, some of whose members a test chooses."""
    return type("Array", (ForeignArray,), members)(foreign)


def method_of(signature: str) -> Any:
    """Return a ``__dlpack__`` of a signature, which passes its keywords on."""
    names = [name for name in KEYWORDS if f"{name}=" in signature]
    given = ", ".join(f"{name}={name}" for name in names)
    defined: dict[str, Any] = {"ForeignArray": ForeignArray}
    code = f"def __dlpack__({signature}): return ForeignArray.__dlpack__(self, {given})"
    exec(code, defined)
    return defined["__dlpack__"]


@pytest.mark.parametrize("has_queue", [True, False])
@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("subset", SUBSETS, ids=" ".join)
def test_a_producer_gets_the_keywords_that_it_takes(
    foreign, queue, subset, signature, copy, has_queue
):
    parameters = ", ".join(f"{name}=None" for name in subset)
    method = method_of(SIGNATURES[signature].format(parameters) if subset else "self")
    array = array_of(foreign, __dlpack__=method, __dlpack_device__=None)
    taken = from_dlpack(array, device=queue if has_queue else None, copy=copy)
    of_version: dict[str, Any] = {"max_version": NEWEST}
    if copy is False:
        of_version["copy"] = False
    of_stream = {"stream": queue} if has_queue else {}
    takes = set() if signature == "by position" else set(subset)
    forms = [of_version | of_stream, of_stream, of_version, {}]
    assert array.asked == [next(form for form in forms if set(form) <= takes)]
    assert (taken.data == foreign.tensor.data) is (copy is not True)
    assert taken.sycl_queue == (queue if has_queue else package_queue())
    assert taken.numpy().tobytes() == bytes(range(48))


# What a producer raises in turn, and the forms in which it is asked: with version and stream (0),
# with the stream (1), with the version (2), and with neither (3).
REFUSING_THE_STREAM = (ValueError, BufferError, NotImplementedError)
OTHERS = (LookupError, KeyboardInterrupt, RuntimeError, RecursionError)
ERRORS: list[tuple[list[type[BaseException]], list[int]]] = [
    ([TypeError] * 4, [0, 1, 2, 3]),
    *(([error, error], [0, 2]) for error in REFUSING_THE_STREAM),
    *(([TypeError, error, error], [0, 1, 3]) for error in REFUSING_THE_STREAM),
    *(([error], [0]) for error in OTHERS),
    *(([TypeError, error], [0, 1]) for error in OTHERS),
    *(([TypeError] * 3 + [error], [0, 1, 2, 3]) for error in OTHERS),
]


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize(("errors", "requests"), ERRORS)
def test_an_error_chooses_the_next_request_or_ends_them(foreign, queue, errors, requests, copy):
    of_version = {"max_version": NEWEST} | ({"copy": False} if copy is False else {})
    forms: list[Any] = [of_version | {"stream": queue}, {"stream": queue}, of_version, {}]
    raised = [error("no") for error in errors]
    asked = []

    def refuse(self: Any, **keywords: Any) -> Any:
        asked.append(keywords)
        raise raised[len(asked) - 1]

    with pytest.raises(errors[-1]) as caught:
        from_dlpack(array_of(foreign, __dlpack__=refuse), device=queue, copy=copy)
    assert caught.value is raised[-1]
    assert asked == [forms[request] for request in requests]


class StreamAlone(Ordering):
    """An array from before ``max_version``."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        return super().__dlpack__(stream=stream)


@pytest.mark.parametrize("kind", [Ordering, StreamAlone])
def test_a_consumer_is_behind_the_work_of_who_takes_its_queue(kind, consumer, start):
    pending = start(new_queue(), "shared")
    foreign = ForeignTensor(address_of(pending.memory), shape=(COUNT,), dtype=(0, 32, 1))
    taken = from_dlpack(kind(foreign, pending.queue), device=consumer)
    assert (taken.data, taken.sycl_queue) == (address_of(pending.memory), consumer)
    check_order(consumer, pending)


@pytest.mark.parametrize("strides", [(4, 1), (0, 1)], ids=["unique", "overlapping"])
def test_a_copy_that_the_producer_made_unasked_is_the_copy(memory, strides):
    """Unless elements overlap, as those of dpctl's and dpnp's copies of a broadcast."""
    foreign = ForeignTensor(address_of(memory), strides=strides)
    foreign.managed.flags = IS_COPIED
    array = ForeignArray(foreign)
    made = from_dlpack(array, copy=True)
    assert (made.data == address_of(memory)) is (strides == (4, 1))
    assert (made.strides, made.byte_extent) == ((4, 1), 48)
    assert from_dlpack(array).data == address_of(memory)
    assert array.asked == [{"stream": dpctl_queue(), "max_version": NEWEST}] * 2
    with refused("copy_needed", "copy", found="a copy that it made"):
        from_dlpack(array, copy=False)


# --- errors of an array's own code


def fail(error: type[BaseException]) -> Any:
    raise error("of the array")


PROPERTIES = ["__dlpack__", "__dlpack_device__", "sycl_queue", "is_conj", "is_neg"]


@pytest.mark.parametrize("error", [AttributeError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("call", [from_dlpack, validate])
@pytest.mark.parametrize("name", PROPERTIES)
def test_what_a_property_raises_reaches_the_caller(foreign, name, call, error):
    """Also an AttributeError, which does not mean that there is no such attribute."""
    array = array_of(foreign, **{name: property(lambda self: fail(error))})
    with pytest.raises(error, match="of the array") as caught:
        call(array)
    assert type(caught.value) is error


@pytest.mark.parametrize("call", [from_dlpack, validate])
def test_what_the_method_for_the_device_raises_reaches_the_caller(foreign, call):
    with pytest.raises(OSError, match="of the array"):
        call(array_of(foreign, __dlpack_device__=lambda self: fail(OSError)))


def test_what_getattr_gives_counts_where_a_property_fails(foreign, queue):
    broken = property(lambda self: fail(AttributeError))
    array = array_of(foreign, sycl_queue=broken, __getattr__=lambda self, name: queue)
    assert from_dlpack(array).sycl_queue == queue


@pytest.mark.parametrize("error", [LookupError, KeyboardInterrupt])
@pytest.mark.parametrize("name", [None, *PROPERTIES])
def test_a_proxy_is_what_its_getattr_gives_or_raises(foreign, name, error):
    own = ForeignArray(foreign)

    class Proxy:
        def __getattr__(self, asked: str) -> Any:
            return fail(error) if asked == name else getattr(own, asked)

    if name is None:
        assert from_dlpack(Proxy()).sycl_queue == package_queue()
        return
    with pytest.raises(error, match="of the array"):
        from_dlpack(Proxy())


@pytest.mark.parametrize("name", [*PROPERTIES, "__dlpack_c_exchange_api__"])
def test_an_interrupt_in_a_metaclass_reaches_the_caller(foreign, name):
    class Meta(type):
        def __getattribute__(cls, asked: str) -> Any:
            return fail(KeyboardInterrupt) if asked == name else super().__getattribute__(asked)

    with pytest.raises(KeyboardInterrupt):
        from_dlpack(Meta("Array", (ForeignArray,), {})(foreign))


# --- what an array is


# Objects without a `__dlpack__` to call, and whether NumPy makes an array of them.
STRANGERS: dict[str, tuple[Any, bool]] = {
    "None": (None, False),
    "a memoryview": (memoryview(b"ab"), True),
    "a list": ([1.0, 2.0], True),
    "a number": (5.0, True),
    "an address": (2**40, False),
    "a converter": (type("Array", (), {"__array__": lambda *_, **__: np.ones(2)})(), True),
    "bytes": (b"ab", False),
    "a generator": ((number for number in range(3)), False),
    "a method that cannot be called": (type("Array", (), {"__dlpack__": 5})(), False),
    "its own, that cannot be called": (types.SimpleNamespace(__dlpack__=5), False),
    # whose method is that of its instances
    "our class": (DLPackTensor, False),
    "NumPy's class": (np.ndarray, False),
    "a class": (OldArray, False),
}


@pytest.mark.parametrize(("x", "numpy_converts"), STRANGERS.values(), ids=STRANGERS)
def test_what_has_no_dlpack_to_call_is_a_type_error_that_names_numpy_if_that_helps(
    x, numpy_converts
):
    remedies = ["pass an array", "pass an array"]
    if numpy_converts:
        remedies[0] = "copy it with from_dlpack(numpy.asarray(x), device=(14, 0))"
        remedies[1] += ", such as numpy.asarray(x)"
        assert from_dlpack(np.asarray(x), device=(14, 0)).shape == np.asarray(x).shape
    calls = [(from_dlpack, {}), (validate, {}), (from_dlpack, {"device": (14, 0)})]
    for (call, keywords), remedy in zip(calls, (remedies[0], *remedies), strict=True):
        with pytest.raises(TypeError) as caught:
            call(x, **keywords)
        found = f"found an object of type {type(x).__name__}"
        assert str(caught.value) == f"x: expected an array with __dlpack__, {found}; {remedy}"


def holder(tensor: DLPackTensor) -> Any:
    return types.SimpleNamespace(
        __dlpack__=tensor.__dlpack__, __dlpack_device__=tensor.__dlpack_device__
    )


@pytest.mark.parametrize("keywords", [{}, {"device": (14, 0)}, {"copy": False}], ids=str)
@pytest.mark.parametrize("kind", [holder, weakref.proxy])
def test_an_object_may_have_the_protocol_itself(memory, kind, keywords):
    tensor = to_dlpack_tensor(memory, shape=(3, 4), dtype="f4", strides=(1, 3))
    x = kind(tensor)
    taken = from_dlpack(x, **keywords)
    assert (taken.data, taken.shape, taken.strides) == (tensor.data, (3, 4), (1, 3))
    assert validate(x).data == tensor.data
