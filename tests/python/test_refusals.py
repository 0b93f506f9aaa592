# SPDX-License-Identifier: Apache-2.0
"""Runs refusals.txt, which has every refusal of the package in its words."""

import ctypes
import doctest
import gc
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpctl
import extension_under_test
import ml_dtypes
import numpy as np
import pytest
import usm_dlpack
from c_exchange_api import ExchangeAPI, Table
from capsules import IS_COPIED, ForeignArray, ForeignTensor, OldArray, new_capsule  # noqa: F401
from memory_sources import TypedArray, address_of, allocate
from refusals import SENTENCE, check_refusal
from usm_dlpack import ConversionError, DLPackTensor, from_dlpack, root_device, to_dlpack_tensor

PAGE = Path(__file__).with_name("refusals.txt")
EXAMPLES = doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8"))
API = ExchangeAPI(DLPackTensor)
HERE = (14, 0)
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)
FLAT = ROWS.reshape(12)
BYTES = FLAT.view(np.uint8)
MASKED = np.ma.masked_less(FLAT, 3)
INT4 = np.arange(16).astype(ml_dtypes.int4).reshape(4, 4)
RECORD = np.array([(x, 1) for x in FLAT], dtype=[("x", "f4"), ("y", "i2")])


class Memory:
    """USM that holds `ROWS`, and arrays over it, of this package and of others."""

    def __init__(self, queue: Any, foreign_queue: Any, start: Any) -> None:
        self.queue = queue
        self.busy = lambda queue: start(queue).queue
        self.foreign_queue = foreign_queue  # of another context
        self.usm = self.allocated("device")

    def allocated(self, kind: str = "device", queue: Any = None) -> Any:
        memory = allocate(kind, 48, self.queue if queue is None else queue)
        memory.copy_from_host(BYTES)
        return memory

    def tensor(self, shape: Any = (3, 4), *, kind: str = "device", **keywords: Any) -> DLPackTensor:
        usm = self.usm if kind == "device" else self.allocated(kind)
        return to_dlpack_tensor(usm, shape=shape, **({"dtype": "float32"} | keywords))

    def columns(self) -> DLPackTensor:
        return self.tensor((3, 4), strides=(1, 3))

    def broadcast(self) -> DLPackTensor:
        return self.tensor((3, 4), strides=(0, 1))

    def packed(self, strides: Any = None) -> DLPackTensor:
        return self.tensor((4, 4), strides=strides, dtype="int4")

    def pairs(self) -> DLPackTensor:
        """Return vectors, for which NumPy has no dtype, in Fortran order."""
        return self.tensor((3, 2), strides=(1, 3), dtype=(2, 16, 4))

    def read_only(self, shape: tuple[int, ...] = (3, 4)) -> DLPackTensor:
        return to_dlpack_tensor(self.passed_on(True, shape))

    def passed_on(self, readonly: bool, shape: tuple[int, ...] = (3, 4)) -> TypedArray:
        """Return an object that passes on the interface of the memory."""
        return self.interface(data=(address_of(self.usm), readonly), shape=shape)

    def interface(self, **fields: Any) -> TypedArray:
        return TypedArray(self.usm, **fields)

    def foreign(self, **fields: Any) -> ForeignArray:
        """Return an array of another library, some fields of whose tensor are other ones."""
        foreign = ForeignTensor(address_of(self.usm))
        for name, value in fields.items():
            place = foreign.managed if name in ("major", "flags") else foreign.tensor
            setattr(place, name, foreign.array(value) if isinstance(value, tuple) else value)
        return ForeignArray(foreign)

    def with_queue(self, queue: Any) -> ForeignArray:
        array = self.foreign()
        array.sycl_queue = queue
        return array

    def lazy(self, bit: str) -> ForeignArray:
        """Return an array as PyTorch's, which is conjugated or negated when it is read."""
        array = self.foreign()
        setattr(array, f"is_{bit}", lambda: True)
        setattr(array, f"resolve_{bit}", self.foreign)
        return array

    def table(self, **answers: Any) -> Any:
        """Return an array with a C exchange API of its own."""
        table = Table(ForeignTensor(address_of(self.usm)))
        vars(table).update(answers)
        return table.array(table=table)


def without(array: TypedArray, field: str) -> TypedArray:
    del array.interface[field]
    return array


def used_capsule(tensor: DLPackTensor) -> OldArray:
    array = OldArray(tensor.__dlpack__())
    from_dlpack(array)
    return array


def cleared(tensor: DLPackTensor) -> DLPackTensor:
    """Do what the garbage collector does with a tensor in a cycle."""
    slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    tp_clear = slot(("PyType_GetSlot", ctypes.pythonapi))(DLPackTensor, 51)
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(tp_clear)(tensor)
    return tensor


def held_outside_its_cycle(owner: TypedArray) -> DLPackTensor:
    owner.tensor = tensor = to_dlpack_tensor(owner)
    del owner
    gc.collect()
    return tensor


def recorded(when: str) -> None:
    """Wait for a tensor before, while or after its queue records a graph."""
    queue = dpctl.SyclQueue(root_device(0), property="in_order")
    tensor = from_dlpack(ROWS, device=queue)
    if when == "before":
        tensor.wait()
    recording = extension_under_test.load().Recording(queue)
    try:
        if when == "while":
            tensor.wait()
    finally:
        recording.end()
    if when == "after":
        tensor.wait()


def filled(tensor: DLPackTensor, values: Any = ROWS) -> DLPackTensor:
    tensor.copy_from(values)
    return tensor


def astype(x: Any, dtype: Any) -> DLPackTensor:
    return usm_dlpack.from_dlpack(usm_dlpack.from_dlpack(x).numpy().astype(dtype), device=x)


def on_host(capsule: Any) -> Any:
    """Return the array that NumPy makes of a capsule for the host."""
    return np.from_dlpack(
        SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0))
    )


def equal(x: Any, values: Any = ROWS) -> None:
    seen = x.numpy() if isinstance(x, DLPackTensor) else x
    np.testing.assert_array_equal(seen, values, strict=True)


def check_output(example: doctest.Example, code: str, sentence: str) -> None:
    """Require a refusal in the words that follow the line."""
    assert SENTENCE.fullmatch(sentence)
    output = f"{code}: {sentence}\n"
    assert doctest.OutputChecker().check_output(example.want, output, doctest.ELLIPSIS), output


def line_of(example: doctest.Example) -> str:
    return f"line {example.lineno + 1}"


HERE_TOO = [example for example in EXAMPLES if "  # with " not in example.source]
ELSEWHERE = [example for example in EXAMPLES if "  # with " in example.source]


@pytest.mark.parametrize("example", HERE_TOO, ids=line_of)
def test_a_line_of_the_page_is_refused_in_its_words_or_taken(example, queue, foreign_queue, start):
    memory = Memory(queue, foreign_queue, start)
    names = globals() | vars(usm_dlpack) | {name: getattr(memory, name) for name in dir(memory)}
    names["EXT"] = extension_under_test.load()  # of nanobind, whose functions raise the reason
    if not example.want:
        eval(example.source, names)
        return
    kinds = (ConversionError, TypeError, ValueError, AttributeError, MemoryError)
    with pytest.raises(kinds) as caught:
        eval(example.source, names)
    error = caught.value
    code = getattr(error, "code", type(error).__name__)
    check_output(example, code, str(error))
    assert str(address_of(memory.usm)) not in str(error)
    if isinstance(error, ConversionError):
        check_refusal(error, code, error.field)


# A refusal in C++, a string in it, which may stand in pieces, and a piece.
SITE = re.compile(r"\b(?:refuse(?:_\w+)?|throw nb::\w+)\((.*?)\);", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*')
PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"')
# CUDA's are in tests/cuda; these need Python without ml_dtypes, and a null pointer.
NOT_HERE = ("install ml_dtypes, or", "tensor: expected a managed tensor, found null")


def test_the_page_has_the_words_of_each_refusal_of_the_bindings(project_root):
    page = PAGE.read_text(encoding="utf-8")
    for source in (project_root / "bindings").rglob("*.cpp"):
        for site in SITE.findall(source.read_text(encoding="utf-8")):
            for string in STRING.findall(site):
                words = "".join(PIECE.findall(string)).replace('\\"', '"').rstrip(' "')
                if source.stem != "cuda_streams" and not words.startswith(NOT_HERE):
                    assert words in page, f"{source}: {words}"


IN_A_PROCESS = """
import multiprocessing
import sys
import numpy as np
from capsules import ForeignArray, ForeignTensor
from usm_dlpack import *

def use(device=(14, 0)):
    x = from_dlpack(np.arange(3), device=device)
    assert x.numpy().tolist() == [0, 1, 2]
    return x

def named(x, number):
    foreign = ForeignTensor(x.data, shape=(3,))
    foreign.tensor.device_id = number
    return from_dlpack(ForeignArray(foreign))

def in_pool(method, function, *arguments):
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.apply(function, arguments)

try:
    {}
except ConversionError as error:
    print(error.code, error, sep=": ", end="", file=sys.stderr)
"""


@pytest.mark.parametrize("example", ELSEWHERE, ids=line_of)
def test_a_line_of_the_page_is_refused_in_a_process_or_taken(
    example, driver, driver_copies, several_devices, new_process
):
    with_broken = {"OCL_ICD_FILENAMES": f"{driver}:{driver_copies['broken']}"}
    variables: dict[str, dict[str, str]] = {
        "one": {},
        "two": several_devices(2),
        "none": {"ONEAPI_DEVICE_SELECTOR": "level_zero:*"},
        "none, since SYCL was used first": {},
        "a broken one": with_broken,
        "the broken one hidden": with_broken | {"ONEAPI_DEVICE_SELECTOR": "opencl:0"},
        "a wrong selector": {"ONEAPI_DEVICE_SELECTOR": "nonsense"},
        "a selector": {"ONEAPI_DEVICE_SELECTOR": "*:cpu"},
    }
    source, _, condition = example.source.strip().partition("  # with ")
    begin = "import dpctl\n" + "dpctl.get_devices()" * condition.endswith("first")
    done = new_process(begin + IN_A_PROCESS.format(source), **variables[condition])
    if example.want:
        check_output(example, *done.stderr.split(": ", 1))
    assert (done.returncode, done.stderr == "") == (0, not example.want)
