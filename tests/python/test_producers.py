# SPDX-License-Identifier: Apache-2.0
"""What `from_dlpack` asks of a producer: stand-ins for all that producers are known to do."""

import itertools
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from c_exchange_api import Table, capsule_of
from capsules import (
    IS_COPIED,
    NEWEST,
    READ_ONLY,
    ForeignArray,
    ForeignTensor,
    OldArray,
    dpctl_queue,
    package_queue,
)
from memory_sources import TypedArray, address_of, new_queue
from pending_work import COUNT, VALUES, answer_behind, check_order
from refusals import wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate

KEYWORDS = ("stream", "max_version", "dl_device", "copy")
SUBSETS = [subset for count in range(5) for subset in itertools.combinations(KEYWORDS, count)]
SIGNATURES = {
    "keywords": "self, *, {}",
    "by position or keyword": "self, {}",
    "by position": "self, {}, /",
}


def method_of(signature: str) -> Any:
    """Return a function of a signature, which gives `give` all its keywords that are not None."""
    names = [name for name in KEYWORDS if f"{name}=" in signature]
    given = ", ".join(f"{name}={name}" for name in names)
    defined: dict[str, Any] = {}
    exec(f"def __dlpack__({signature}): return self.give({given})", defined)
    return defined["__dlpack__"]


class StandIn:
    """An array whose ``__dlpack__`` a test chooses, and which notes what it is asked for."""

    def __init__(self, foreign: ForeignTensor) -> None:
        self.foreign = foreign
        self.asked: list[dict[str, Any]] = []

    def give(self, **keywords: Any) -> Any:
        self.asked.append({name: value for name, value in keywords.items() if value is not None})
        return self.foreign.capsule()


@pytest.fixture
def foreign(memory: Any) -> ForeignTensor:
    return ForeignTensor(address_of(memory))


@pytest.mark.parametrize("has_queue", [True, False])
@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("subset", SUBSETS, ids=" ".join)
def test_a_producer_gets_the_keywords_that_it_takes(
    foreign, queue, subset, signature, copy, has_queue
):
    parameters = ", ".join(f"{name}=None" for name in subset)
    method = method_of(SIGNATURES[signature].format(parameters) if subset else "self")
    array = type("Array", (StandIn,), {"__dlpack__": method})(foreign)
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


class Refusing:
    """A producer that notes what it is asked for, and refuses it."""

    def __init__(self, *errors: BaseException) -> None:
        self.asked: list[dict[str, Any]] = []
        self.errors = list(errors)

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append(keywords)
        raise self.errors.pop(0) if self.errors else TypeError(len(self.asked))


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("has_queue", [True, False])
def test_the_order_of_the_requests(queue, copy, has_queue):
    of_version = {"max_version": NEWEST} | ({"copy": False} if copy is False else {})
    of_stream = {"stream": queue}
    requests: list[dict[str, Any]] = [of_version, {}]
    if has_queue:
        requests = [of_version | of_stream, of_stream, *requests]
    array = Refusing()
    with pytest.raises(TypeError) as caught:
        from_dlpack(array, copy=copy, device=queue if has_queue else None)
    assert array.asked == requests
    assert caught.value.args == (len(requests),)  # the last one


@pytest.mark.parametrize("error", [LookupError, KeyboardInterrupt, RuntimeError, RecursionError])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_an_error_of_another_kind_than_type_error_ends_the_requests(queue, error, before):
    array, refusal = Refusing(*[TypeError()] * before), error("no")
    array.errors.append(refusal)
    with pytest.raises(error) as caught:
        from_dlpack(array, device=queue)
    assert caught.value is refusal
    assert len(array.asked) == before + 1


def test_a_type_error_from_inside_is_what_the_caller_sees(queue):
    class Broken:
        def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
            return len(5)  # type: ignore[arg-type]

    for device in (queue, None):
        with pytest.raises(TypeError, match="object of type 'int' has no len"):
            from_dlpack(Broken(), device=device)


# --- the libraries


class Library(ForeignArray):
    """A stand-in: memory with work on a queue of its own, and one library's ``__dlpack__``."""

    on_host, orders = False, True

    def __init__(self, foreign: ForeignTensor, own: Any) -> None:
        super().__init__(foreign, (1, 0) if self.on_host else (14, 0))
        foreign.tensor.device_type = self.device[0]
        self.own = own

    def order(self, stream: Any) -> None:
        if stream is not None:
            stream.submit_barrier([self.own.submit_barrier()])


class Nanobind(Library):
    """`nb::ndarray` knows no queue, and ignores the stream."""

    orders = False


class NumPy(Library):
    on_host, orders = True, False

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        capsule = super().__dlpack__(stream=stream, **keywords)
        if stream is not None:
            raise RuntimeError("NumPy only supports stream=None.")
        return capsule


class TorchOnCpu(NumPy):
    """With pinned memory, which SYCL allocated."""

    def __dlpack__(self, *, stream: Any = -1, **keywords: Any) -> Any:
        capsule = super().__dlpack__(stream=None if stream == -1 else stream, **keywords)
        assert stream in (-1, None), "stream should be None on cpu."
        return capsule


class Jax(Library):
    """It takes integers as streams, and nothing else."""

    orders = False

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        capsule = super().__dlpack__(stream=stream, **keywords)
        if stream is not None:
            int(stream)
        return capsule


class PyAMReX(Library):
    """It takes no stream, and works on no queue that is pending when it exports."""

    orders = False

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        capsule = super().__dlpack__(stream=stream, **keywords)
        if stream is not None:
            raise NotImplementedError("stream")
        return capsule


class OfSycl(Library):
    """dpctl and dpnp: an array that says its queue and orders the consumer's behind it."""

    def __init__(self, foreign: ForeignTensor, own: Any) -> None:
        super().__init__(foreign, own)
        self.sycl_queue = own

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        self.order(stream)
        return super().__dlpack__(stream=stream, **keywords)


class Delegating(Library):
    """A class that has a dpnp array on a queue of its own, and passes `__dlpack__` on."""

    def __init__(self, foreign: ForeignTensor, own: Any) -> None:
        super().__init__(foreign, own)
        self.array = OfSycl(foreign, own)
        self.asked = self.array.asked

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)


class StreamAlone(Library):
    """A class from before ``max_version``."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        self.order(stream)
        return super().__dlpack__(stream=stream)


class Exchanging(Library):
    """tvm-ffi, and PyTorch on XPU: the C exchange API of the type gives the queue."""

    def __init__(self, foreign: ForeignTensor, own: Any) -> None:
        super().__init__(foreign, own)
        self.table = Table(foreign)
        self.table.stream = own.addressof_ref()
        type(self).__dlpack_c_exchange_api__ = capsule_of(self.table.struct)  # type: ignore[attr-defined]


class TorchOnXpu(Exchanging):
    """`__dlpack_device__` counts by PyTorch's own index."""

    def __dlpack_device__(self) -> Any:
        return (14, 7)

    def is_conj(self) -> bool:
        return False


LIBRARIES = (Nanobind, NumPy, TorchOnCpu, Jax, PyAMReX, OfSycl, Delegating, StreamAlone)
LIBRARIES += (Exchanging, TorchOnXpu)


def of_library(library: Any, pending: Any) -> Any:
    foreign = ForeignTensor(address_of(pending.memory), shape=(COUNT,), dtype=(0, 32, 1))
    foreign.managed.flags = READ_ONLY
    return library(foreign, pending.queue)


@pytest.mark.parametrize("copy", [None, False])
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_memory_of_each_library_is_shared_in_order(library, copy, consumer, start):
    pending = start(new_queue(), "shared")
    array = of_library(library, pending)
    taken = from_dlpack(array, device=consumer, copy=copy)
    assert (taken.data, taken.sycl_queue) == (address_of(pending.memory), consumer)
    assert taken.readonly
    assert len(array.asked) <= 4
    if library.on_host or library is OfSycl:
        assert [asked.get("stream") for asked in array.asked] == [None]
    if library.orders:
        check_order(consumer, pending)


@pytest.mark.parametrize("library", [library for library in LIBRARIES if library.orders])
def test_a_copy_waits_for_the_work_of_the_library(library, start):
    pending = start(new_queue(), "shared")
    array, queue = of_library(library, pending), new_queue(in_order=True)
    copied = answer_behind(pending, lambda: from_dlpack(array, device=queue, copy=True))
    assert copied.numpy().tolist() == VALUES


@pytest.mark.parametrize("error", [ValueError, BufferError, NotImplementedError])
def test_an_array_whose_producer_refuses_every_stream_is_taken_without(foreign, error):
    class Alone(ForeignArray):
        def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
            if stream is not None:
                raise error("only None")
            return super().__dlpack__(**keywords)

    array = Alone(foreign)
    made = from_dlpack(array)
    assert (made.data, made.sycl_queue) == (foreign.tensor.data, package_queue())
    assert array.asked == [{"max_version": NEWEST}]


# --- copies


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


def test_no_copy_is_refused_by_the_producer_where_it_can_be(foreign):
    class Copying(ForeignArray):
        def __dlpack__(self, *, copy: Any = None, **keywords: Any) -> Any:
            capsule = super().__dlpack__(copy=copy, **keywords)
            if copy is False:
                raise BufferError("not without a copy")
            return capsule

    array = Copying(foreign)
    with pytest.raises(BufferError, match="not without a copy"):
        from_dlpack(array, copy=False)
    alone = {"max_version": NEWEST, "copy": False}
    assert array.asked == [alone | {"stream": dpctl_queue()}, alone]


@pytest.mark.parametrize("error", [BufferError, ValueError, NotImplementedError])
def test_an_error_without_a_stream_ends_the_requests(queue, error):
    array = Refusing(error("a stream"), refusal := error("nothing"))
    with pytest.raises(error) as caught:
        from_dlpack(array, device=queue)
    assert caught.value is refusal
    assert array.asked == [{"max_version": NEWEST, "stream": queue}, {"max_version": NEWEST}]


# --- what an array is


def raising(error: type[BaseException]) -> Any:
    @property  # type: ignore[misc]
    def attribute(self: Any) -> Any:
        raise error("of the property")

    return attribute


PROPERTIES = ["__dlpack__", "__dlpack_device__", "sycl_queue", "is_conj", "is_neg"]


@pytest.mark.parametrize("error", [AttributeError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("call", [from_dlpack, validate])
@pytest.mark.parametrize("name", PROPERTIES)
def test_what_a_property_raises_reaches_the_caller(foreign, name, call, error):
    """Also an AttributeError, which does not mean that there is no such attribute."""
    array = type("Array", (ForeignArray,), {name: raising(error)})(foreign)
    with pytest.raises(error, match="of the property") as caught:
        call(array)
    assert type(caught.value) is error


def test_what_getattr_gives_counts_where_a_property_fails(foreign, queue):
    members = {"sycl_queue": raising(AttributeError), "__getattr__": lambda self, name: queue}
    array = type("Array", (ForeignArray,), members)(foreign)
    assert from_dlpack(array).sycl_queue == queue


def test_a_device_method_that_is_none_is_no_method(foreign):
    array = type("Array", (ForeignArray,), {"__dlpack_device__": None})(foreign)
    assert from_dlpack(array).data == foreign.tensor.data


def test_a_proxy_without_a_queue_has_none(foreign):
    own = ForeignArray(foreign)

    class Proxy:
        def __getattr__(self, name: str) -> Any:
            return getattr(own, name)

    assert from_dlpack(Proxy()).sycl_queue == package_queue()


@pytest.mark.parametrize("error", [LookupError, KeyboardInterrupt])
@pytest.mark.parametrize("name", PROPERTIES)
def test_what_the_getattr_of_a_proxy_raises_reaches_the_caller(foreign, name, error):
    own = ForeignArray(foreign)

    class Proxy:
        def __getattr__(self, asked: str) -> Any:
            if asked == name:
                raise error("of the proxy")
            return getattr(own, asked)

    with pytest.raises(error, match="of the proxy"):
        from_dlpack(Proxy())


@pytest.mark.parametrize("name", [*PROPERTIES, "__dlpack_c_exchange_api__"])
def test_an_interrupt_in_a_metaclass_reaches_the_caller(foreign, name):
    class Meta(type):
        def __getattribute__(cls, asked: str) -> Any:
            if asked == name:
                raise KeyboardInterrupt
            return super().__getattribute__(asked)

    array = Meta("Array", (ForeignArray,), {})(foreign)
    with pytest.raises(KeyboardInterrupt):
        from_dlpack(array)


def test_what_the_device_of_an_array_raises_reaches_the_caller(foreign):
    def lost(self: Any) -> Any:
        raise OSError("lost")

    array = type("Array", (ForeignArray,), {"__dlpack_device__": lost})(foreign)
    for call in (from_dlpack, validate):
        with pytest.raises(OSError, match="lost"):
            call(array)


def test_a_method_that_is_replaced_is_the_one_that_counts(foreign):
    class Array(StandIn):
        def __dlpack__(self, *, max_version: Any = None) -> Any:
            return self.give(max_version=max_version)

    array = Array(foreign)
    assert from_dlpack(array).data == foreign.tensor.data
    Array.__dlpack__ = lambda self, stream=None: self.give(stream=stream)
    assert from_dlpack(array).data == foreign.tensor.data
    del Array.__dlpack__
    with wrong_argument(TypeError, "x", "found an object of type Array"):
        from_dlpack(array)
    array.__dlpack__ = array.give
    assert from_dlpack(array).data == foreign.tensor.data
    assert array.asked == [{"max_version": NEWEST}, {}, {"max_version": NEWEST}]


STRANGERS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "a memoryview": lambda: memoryview(b"ab"),
    "a list": lambda: [1.0, 2.0],
    "a number": lambda: 5.0,
    "an address": lambda: 2**40,
    "a converter": type("Array", (), {"__array__": lambda *_, **__: np.ones(2)}),
    "bytes": lambda: b"ab",
    "a generator": lambda: (number for number in range(3)),
    "a method that cannot be called": type("Array", (), {"__dlpack__": 5}),
    "its own, that cannot be called": lambda: types.SimpleNamespace(__dlpack__=5),
    # whose method is that of its instances
    "our class": lambda: DLPackTensor,
    "NumPy's class": lambda: np.ndarray,
    "a class": lambda: OldArray,
}
NUMPY_CONVERTS = {"a memoryview", "a list", "a number", "a converter"}


@pytest.mark.parametrize("call", [from_dlpack, validate])
@pytest.mark.parametrize("name", STRANGERS)
def test_what_has_no_dlpack_to_call_is_a_type_error(name, call):
    x = STRANGERS[name]()
    remedy = "pass an array"
    if name in NUMPY_CONVERTS:
        remedy = "copy it with from_dlpack(numpy.asarray(x), device=(14, 0))"
    with pytest.raises(TypeError) as caught:
        call(x)
    found = f"found an object of type {type(x).__name__}"
    assert str(caught.value) == f"x: expected an array with __dlpack__, {found}; {remedy}"


@pytest.mark.parametrize("name", STRANGERS)
def test_numpy_is_named_where_it_makes_an_array(name):
    x = STRANGERS[name]()
    remedy = ", such as numpy.asarray(x)"
    with wrong_argument(TypeError, "x", "; pass an array") as caught:
        from_dlpack(x, device=(14, 0))
    assert (remedy in str(caught.value)) is (name in NUMPY_CONVERTS)
    if name in NUMPY_CONVERTS:
        assert from_dlpack(np.asarray(x), device=(14, 0)).numpy().tolist() == np.asarray(x).tolist()


@pytest.mark.parametrize("give", [lambda memory: memory, TypedArray])
def test_memory_alone_is_sent_to_to_dlpack_tensor(memory, give):
    with wrong_argument(TypeError, "x", "; use to_dlpack_tensor(x)"):
        from_dlpack(give(memory), device=(14, 0))


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
