# SPDX-License-Identifier: Apache-2.0
"""from_dlpack: arrays of other libraries are proved, then owned; refused ones stay their own."""

import functools
import gc
import types
import weakref
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from c_exchange_api import ExchangeAPI
from capsules import (
    IS_COPIED,
    NEWEST,
    READ_ONLY,
    VERSIONED,
    ForeignArray,
    ForeignTensor,
    OldArray,
    content_of,
    name_of,
    new_capsule,
)
from memory_sources import TypedArray, address_of, allocate
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, from_dlpack, to_dlpack_tensor, validate
from usm_dlpack._producers import _read_signature


def same_view(first: DLPackTensor, second: DLPackTensor) -> bool:
    names = ["data", "shape", "strides", "dtype", "usm_type", "device", "readonly", "nbytes"]
    return all(getattr(first, name) == getattr(second, name) for name in names)


@pytest.fixture(params=[False, True], ids=["versioned", "legacy"])
def foreign(request: pytest.FixtureRequest, memory: Any) -> ForeignTensor:
    return ForeignTensor(address_of(memory), legacy=request.param)


@pytest.fixture
def versioned(memory: Any) -> ForeignTensor:
    return ForeignTensor(address_of(memory))


def test_what_tvm_ffi_holds_is_the_same_memory_kept_alive(usm_type, queue):
    memory = allocate(usm_type, 48, queue)
    owner = TypedArray(memory)
    gone = weakref.ref(owner)
    consumed = tvm_ffi.from_dlpack(to_dlpack_tensor(owner, shape=(3, 4)))
    del owner
    gc.collect()
    assert gone() is not None
    assert consumed.data_ptr() == address_of(memory)
    back = from_dlpack(consumed)
    del consumed
    gc.collect()
    assert gone() is not None
    assert same_view(back, to_dlpack_tensor(memory, shape=(3, 4), dtype="f4"))
    del back
    gc.collect()
    assert gone() is None


def test_an_empty_tensor_may_have_null_data(foreign, memory):
    foreign.tensor.shape[0] = 0
    for foreign.tensor.data in (None, address_of(memory)):
        address = foreign.tensor.data
        tensor = from_dlpack(ForeignArray(foreign))
        assert (tensor.shape, tensor.size, tensor.data) == ((0, 4), 0, address or 0)
        assert same_view(from_dlpack(tensor), tensor)


@pytest.mark.parametrize("minor", [0, 99])
@pytest.mark.parametrize("flags", [0, READ_ONLY, IS_COPIED])
def test_known_flags_of_any_minor_version_are_taken(versioned, flags, minor):
    versioned.managed.flags, versioned.managed.minor = flags, minor
    taken = from_dlpack(ForeignArray(versioned))
    assert taken.readonly is bool(flags & READ_ONLY)
    assert content_of(taken.__dlpack__(max_version=NEWEST)).flags == flags & READ_ONLY


def test_an_accepted_tensor_is_the_importers_who_runs_the_deleter_once(foreign):
    capsule = foreign.capsule()
    tensor = from_dlpack(OldArray(capsule))
    assert name_of(capsule) == b"used_" + foreign.name
    again = from_dlpack(tensor)
    del capsule, tensor
    gc.collect()
    assert foreign.deletions == 0
    del again
    gc.collect()
    assert foreign.deletions == 1


def hidden(doc: str) -> Any:
    """Return a method of whose signature only the documentation says anything, as compiled ones."""

    def method(self: Any, **keywords: Any) -> Any:
        return self.give(**keywords)

    method.__signature__ = 5
    method.__doc__ = doc
    return method


# A method, and which of the keywords it is given that it could be.
PRODUCERS: dict[str, tuple[Any, set[str]]] = {
    "none": (lambda self: self.give(), set()),
    "a stream": (lambda self, stream=None: self.give(stream=stream), {"stream"}),
    "the version": (lambda self, *, max_version: self.give(max_version=1), {"max_version"}),
    "any": (lambda self, **given: self.give(**given), {"stream", "max_version", "copy"}),
    "of a decorator": (functools.wraps(ForeignArray.__dlpack__)(lambda self: self.give()), set()),
    "prose": (hidden("Return a capsule (copy, stream).\nA dl_device may copy."), {"max_version"}),
    "pybind11": (
        hidden("__dlpack__(self: m.A, *, stream: object = None) -> capsule\n\nMay copy.\n"),
        {"stream"},
    ),
    "Cython": (
        hidden("A.__dlpack__(self, *, stream=None, max_version=None, copy=None)\nA dl_device."),
        {"stream", "max_version", "copy"},
    ),
    "types and defaults": (
        hidden(
            "__dlpack__(self, stream: F[[int, copy], None] = f(1, copy, ')') = {1, copy}, "
            "max_version: tuple[int, int] | None = (1, 0)) -> ndarray[]"
        ),
        {"stream", "max_version"},
    ),
    "by position": (hidden("__dlpack__(self, copy, /, *, max_version=None)"), {"max_version"}),
    "any, compiled": (hidden("__dlpack__(self, *args, **kwargs)"), {"max_version"}),
    "a line that is cut off": (hidden("__dlpack__(self, copy,\n max_version)"), {"max_version"}),
}


@pytest.mark.parametrize("name", PRODUCERS)
def test_a_producer_is_asked_for_what_its_signature_takes(foreign, queue, name):
    method, takes = PRODUCERS[name]
    members = {"__dlpack__": method, "give": ForeignArray.__dlpack__}
    array = type("Array", (ForeignArray,), members)(foreign)
    taken = from_dlpack(array)
    assert set(array.asked[0]) - {"stream"} == takes & {"max_version"}
    copy = from_dlpack(array, device=queue, copy=True)
    assert set(array.asked[1]) == takes
    assert copy.data != taken.data  # made here, also where the producer was asked and made none
    assert copy.numpy().tobytes() == taken.numpy().tobytes()


def test_a_producer_of_unknown_keywords_is_asked_again_without_any(foreign):
    def give(self: Any, **keywords: Any) -> Any:
        if keywords:
            raise TypeError
        return foreign.capsule()

    give.__signature__ = 5  # type: ignore[attr-defined]
    array = type("Array", (), {"__dlpack__": give})()
    assert from_dlpack(array).shape == (3, 4)


@pytest.mark.parametrize("error", [TypeError, BufferError, KeyboardInterrupt])
def test_an_error_of_the_producer_reaches_the_caller_after_one_call(error):
    calls = 0

    class Raising:
        def __dlpack__(self, *, stream=None, max_version=None):
            nonlocal calls
            calls += 1
            raise error("unexpected keyword argument 'max_version'")

    with pytest.raises(error, match="unexpected keyword") as caught:
        from_dlpack(Raising())
    assert type(caught.value) is error
    assert calls == 1


def test_an_answer_that_is_no_fresh_capsule_is_refused():
    for answer in (None, "dltensor"):
        with refused("capsule_unusable", "capsule", found=f"of type {type(answer).__name__}"):
            from_dlpack(OldArray(answer))
    for name, found in (
        (None, "one without a name"),
        (b"used_dltensor_versioned", 'one named "used_dltensor_versioned"'),
        (b"SyclQueueRef", 'one named "SyclQueueRef"'),
    ):
        capsule = new_capsule(64, name)
        with refused("capsule_unusable", "capsule", expected="a fresh one", found=found):
            from_dlpack(OldArray(capsule))
        assert name_of(capsule) == name


def test_a_device_of_another_type_or_of_nonsense_is_refused_before_the_export(versioned):
    array = ForeignArray(versioned)
    for asked in (None, (14, 0)):
        array.device = (2, 0)
        with refused("device_type_unsupported", "device.device_type", found="kDLCUDA (2)"):
            from_dlpack(array, device=asked)
        for array.device in (None, (14,), (14.0, 0), (2**40, 0), (14, 2**40)):
            with refused("device_type_unsupported", "__dlpack_device__", found=repr(array.device)):
                from_dlpack(array, device=asked)
    assert array.asked == []


@pytest.mark.parametrize("keywords", [{}, {"device": (14, 0)}, {"copy": False}], ids=str)
def test_an_object_may_have_the_protocol_itself(memory, keywords):
    tensor = to_dlpack_tensor(memory)
    holder = types.SimpleNamespace(
        __dlpack__=tensor.__dlpack__, __dlpack_device__=tensor.__dlpack_device__
    )
    proxy = weakref.proxy(tensor)
    for x in (holder, proxy):
        assert same_view(from_dlpack(x, **keywords), tensor)
        assert validate(x).data == tensor.data


def test_what_an_object_itself_has_is_not_remembered_of_its_type(versioned):
    class Plain:
        pass

    plain: Any = Plain()
    plain.__dlpack__ = versioned.capsule
    assert from_dlpack(plain).shape == (3, 4)
    with wrong_argument(TypeError, "x", "found an object of type Plain"):
        from_dlpack(Plain())


def test_what_the_array_raises_before_its_export_reaches_the_caller():
    def lost(self):
        raise OSError("lost")

    by_property = type("Array", (), {"__dlpack__": property(lost)})
    by_device = type("Array", (OldArray,), {"__dlpack_device__": lost})
    for x in (by_property(), by_device(None)):
        for call in (from_dlpack, validate):
            with pytest.raises(OSError, match="lost"):
                call(x)


def test_the_methods_of_libraries_take_the_keywords_of_their_signatures():
    every = frozenset({"stream", "max_version", "dl_device", "copy"})
    # of NumPy, in __text_signature__; of nanobind, in __nb_signature__
    assert _read_signature(np.ndarray.__dlpack__) == every
    assert _read_signature(DLPackTensor.__dlpack__) == every


@pytest.mark.parametrize(
    "use",
    [
        *(from_dlpack, lambda raw: from_dlpack(raw, device=(14, 0)), validate, to_dlpack_tensor),
        *(DLPackTensor.__dlpack__, ExchangeAPI(DLPackTensor).export),
        ExchangeAPI(DLPackTensor).borrow,
    ],
)
def test_a_tensor_that_was_never_made_is_refused(use):
    with refused("tensor_released", "data", found="one that was not initialised"):
        use(DLPackTensor.__new__(DLPackTensor))


def test_what_has_no_dlpack_to_call_is_a_type_error(versioned):
    """Nor has a class, whose method is that of its instances."""
    uncallable = type("Array", (), {"__dlpack__": 5})()
    strangers = [None, memoryview(b"ab"), uncallable, types.SimpleNamespace(__dlpack__=5)]
    for x in (*strangers, DLPackTensor, np.ndarray, OldArray):
        for call in (from_dlpack, validate):
            with wrong_argument(TypeError, "x", f"found an object of type {type(x).__name__}"):
                call(x)
    capsule = versioned.capsule()
    with wrong_argument(TypeError, "x", "found an object of type PyCapsule"):
        from_dlpack(capsule)
    assert name_of(capsule) == VERSIONED
