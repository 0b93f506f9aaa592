# SPDX-License-Identifier: Apache-2.0
"""What a refusal says to do is done here, and helps.

A row of `TABLE` refuses a call, and then does exactly what the remedy says. Each remedy that Python
can apply has a row, but for those that only say to correct a value.
"""

import ctypes
import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import dpctl
import extension_under_test
import ml_dtypes
import numpy as np
import pytest
import usm_dlpack
from c_exchange_api import ExchangeAPI, Table
from capsules import IS_COPIED, ForeignArray, ForeignTensor, OldArray, call_deleter
from memory_sources import KINDS, TypedArray, address_of
from refusals import refused, wrong_argument
from usm_dlpack import DLPackTensor, empty, from_dlpack, root_device, to_dlpack_tensor, validate

ROOT = Path(__file__).resolve().parents[2]
EXT = extension_under_test.load()  # of nanobind, whose functions raise the reason
HERE = (14, 0)
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)
FLAT = ROWS.reshape(12)
BYTES = FLAT.view(np.uint8)
SQUARE = FLAT[:9].reshape(3, 3)
BROADCAST = np.broadcast_to(FLAT[:4], (3, 4))
MASKED = np.ma.masked_less(FLAT, 3)
NIBBLES = np.stack([BYTES & 15, BYTES >> 4], axis=1)[:8].reshape(4, 4)  # 16 numbers of 4 bits
INT4 = np.where(NIBBLES < 8, NIBBLES, NIBBLES.astype(np.int8) - 16).astype(ml_dtypes.int4)
RECORD = np.array([(x, 1) for x in FLAT], dtype=[("x", "f4"), ("y", "i2")])


class Memory:
    """USM that holds `ROWS`, and arrays over it, of this package and of others."""

    def __init__(self, queue: Any, foreign_queue: Any) -> None:
        self.queue = queue
        self.foreign_queue = foreign_queue  # of another context
        self.usm = self.allocate("device")

    def allocate(self, kind: str = "device", queue: Any = None, nbytes: int = 48) -> Any:
        made = KINDS[kind](nbytes, queue=self.queue if queue is None else queue)
        made.copy_from_host(BYTES[:nbytes])
        return made

    def tensor(self, shape: Any = (3, 4), *, kind: str = "device", **keywords: Any) -> DLPackTensor:
        usm = self.usm if kind == "device" else self.allocate(kind)
        return to_dlpack_tensor(usm, shape=shape, **({"dtype": "float32"} | keywords))

    def columns(self, **keywords: Any) -> DLPackTensor:
        return self.tensor((3, 4), strides=(1, 3), **keywords)

    def broadcast(self) -> DLPackTensor:
        return self.tensor((3, 4), strides=(0, 1))

    def packed(self, strides: Any = None) -> DLPackTensor:
        return self.tensor((4, 4), strides=strides, dtype="int4")

    def foreign(self, **fields: Any) -> ForeignArray:
        """Return an array of another library, some fields of whose tensor are other ones."""
        made = ForeignTensor(address_of(self.usm))
        for name, value in fields.items():
            place = made.managed if name in ("major", "flags") else made.tensor
            setattr(place, name, made.array(value) if isinstance(value, tuple) else value)
        return ForeignArray(made)

    def read_only(self, shape: tuple[int, ...] = (3, 4)) -> DLPackTensor:
        return to_dlpack_tensor(self.passed_on(True, shape))

    def passed_on(self, readonly: bool, shape: tuple[int, ...] = (3, 4)) -> TypedArray:
        """Return an object that passes on the interface of a memory."""
        return TypedArray(self.usm, data=(address_of(self.usm), readonly), shape=shape)


class Lazy(ForeignArray):
    """An array of PyTorch that may be conjugated or negated when it is read."""

    def __init__(self, m: Memory, bit: str, value: bool = True) -> None:
        super().__init__(ForeignTensor(address_of(m.usm)))
        setattr(self, f"is_{bit}", lambda: value)
        setattr(self, f"resolve_{bit}", lambda: Lazy(m, bit, False))


class OnHost:
    """A capsule of the host, as an array for NumPy."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def taken(function: Callable[[Any], Any], array: Any) -> Any:
    """Pass an array to a function of an extension, and return the array."""
    function(array)
    return array


def filled(tensor: DLPackTensor, values: Any = ROWS, **keywords: Any) -> DLPackTensor:
    tensor.copy_from(values, **keywords)
    return tensor


def made_of(capsule: Any, **keywords: Any) -> DLPackTensor:
    return from_dlpack(OldArray(capsule), **keywords)


def astype(x: Any, dtype: Any) -> DLPackTensor:
    return usm_dlpack.from_dlpack(usm_dlpack.from_dlpack(x).numpy().astype(dtype), device=x)


def as_columns(x: Any) -> DLPackTensor:
    return usm_dlpack.from_dlpack(np.asfortranarray(usm_dlpack.from_dlpack(x).numpy()), device=x)


def with_strides(x: DLPackTensor, strides: tuple[int, ...]) -> DLPackTensor:
    memory = empty(12, x.dtype)
    return filled(to_dlpack_tensor(memory, shape=x.shape, strides=strides), x)


def foreign_on(m: Memory, queue: Any) -> ForeignArray:
    m.usm = m.allocate(queue=queue)
    return m.foreign()


def on_device(device_id: int) -> DLPackTensor:
    return from_dlpack(ROWS, device=root_device(device_id))


def used_capsule(m: Memory) -> OldArray:
    array = OldArray(m.tensor().__dlpack__())
    from_dlpack(array)
    return array


def cleared(tensor: DLPackTensor) -> DLPackTensor:
    """Do what the garbage collector does with a tensor in a cycle."""
    slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    tp_clear = slot(("PyType_GetSlot", ctypes.pythonapi))(DLPackTensor, 51)
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(tp_clear)(tensor)
    return tensor


def held_outside_its_cycle(m: Memory) -> DLPackTensor:
    owner = m.passed_on(False)
    owner.tensor = tensor = to_dlpack_tensor(owner)
    del owner
    gc.collect()
    return tensor


def recorded(m: Memory, when: str) -> DLPackTensor:
    """Wait for a tensor before, while or after its queue records a graph."""
    queue = dpctl.SyclQueue(root_device(0), property="in_order")
    tensor = from_dlpack(ROWS, device=queue)
    if when == "before":
        tensor.wait()
    recording = EXT.Recording(queue)
    try:
        if when == "while":
            tensor.wait()
    finally:
        recording.end()
    if when == "after":
        tensor.wait()
    return tensor


def lent(tensor: DLPackTensor) -> Any:
    """Give a tensor to C code, which returns it at once."""
    call_deleter(ExchangeAPI(DLPackTensor).export(tensor))
    return tensor


def on_a_queue_of(m: Memory, queue: Any) -> ForeignArray:
    array = m.foreign()
    array.sycl_queue = queue
    return array


def failing_table(m: Memory, gives: bool = False) -> Any:
    """Return an array whose C exchange API fails without an error, or works."""
    table = Table(ForeignTensor(address_of(m.usm)))
    table.gives = gives
    return table.array()


class Row(NamedTuple):
    """A refusal, words of its remedy, the call that they say, and the values that it gives."""

    code: str | type[Exception]
    field: str
    remedy: str
    refused: Callable[[Memory], Any]
    applied: Callable[[Memory], Any]
    values: Any = ROWS


PRODUCER = "have the producer make a tensor of DLPack 1.0 to 1.3 (in Python: max_version=(1, 3))"
UNPACK = "have the producer unpack it to a dtype of whole bytes"
BOUNDS = "correct shape, strides (in elements) or byte_offset"
ORDER_C = 'make the array contiguous, in Python by usm_dlpack.from_dlpack(x, order="C")'
OF_THE_ROOT = "queue of the root device alone, as sycl::queue(device) or dpctl.SyclQueue(device)"
OTHER_SHAPE = "pass values of the tensor's shape and dtype"
ALLOW_IT = "allow the copy with copy=None"


def spoiled(**fields: Any) -> Callable[[Memory], ForeignArray]:
    return lambda m: m.foreign(**fields)


def imported(make: Callable[[Memory], Any], **keywords: Any) -> Callable[[Memory], DLPackTensor]:
    return lambda m: from_dlpack(make(m), **keywords)


# What the producer makes if it is right.
RIGHT = imported(lambda m: m.foreign())
BIG = 2**50

TABLE = [
    # --- The tensor
    Row("version_unsupported", "version.major", PRODUCER, imported(spoiled(major=2)), RIGHT),
    Row(
        "version_unsupported",
        "flags",
        PRODUCER,
        imported(spoiled(flags=8)),
        RIGHT,
    ),
    Row(
        "invalid_tensor",
        "ndim",
        "have the producer set ndim to the number of dimensions",
        imported(spoiled(ndim=-1)),
        RIGHT,
    ),
    Row(
        "invalid_tensor",
        "shape",
        "have the producer fill shape",
        imported(spoiled(shape=None)),
        RIGHT,
    ),
    Row(
        "invalid_tensor",
        "shape[0]",
        "have the producer correct shape",
        imported(spoiled(shape=(-3, 4))),
        RIGHT,
    ),
    Row(
        "invalid_tensor",
        "data",
        "set data where the tensor is made",
        imported(spoiled(data=None)),
        RIGHT,
    ),
    Row(
        "invalid_tensor",
        "data",
        "or an extent of shape to 0",
        imported(spoiled(data=None)),
        imported(spoiled(data=None, shape=(0, 4))),
        np.zeros((0, 4), np.float32),
    ),
    Row(
        "dtype_unsupported",
        "dtype",
        "convert the array to a dtype of DLPack first",
        imported(spoiled(code=18)),
        RIGHT,
    ),
    Row(
        "dtype_unsupported",
        "dtype",
        "pass for example numpy.float32 or 'bfloat16'",
        lambda m: m.tensor(dtype="float33"),
        lambda m: m.tensor(dtype=np.float32),
    ),
    Row(
        "dtype_unsupported",
        "dtype",
        "or 'bfloat16'",
        lambda m: m.tensor((24,), dtype="float33"),
        lambda m: m.tensor((24,), dtype="bfloat16"),
        BYTES.view(ml_dtypes.bfloat16),
    ),
    Row(
        "data_misaligned",
        "byte_offset",
        "or copy the array to aligned memory",
        lambda m: m.tensor((4,), byte_offset=2),
        lambda m: to_dlpack_tensor(
            filled(empty(16, "uint8"), m.tensor((16,), byte_offset=2, dtype="uint8")),
            dtype="float32",
        ),
        BYTES[2:18].copy().view(np.float32),
    ),
    Row(
        "out_of_range",
        "strides",
        BOUNDS,
        lambda m: m.tensor((2,), strides=(2**62,)),
        lambda m: m.tensor((2,), strides=(6,)),
        FLAT[::6],
    ),
    Row(
        "out_of_range",
        "shape",
        "make a smaller tensor",
        lambda _: empty((2**62, 4)),
        lambda _: filled(empty((3, 4), "float32")),
    ),
    # --- The view
    Row(
        "dtype_mismatch",
        "dtype",
        "convert the array to that dtype",
        lambda m: validate(m.tensor(), dtype="float64"),
        lambda m: taken(lambda x: validate(x, dtype="float64"), astype(m.tensor(), "float64")),
        ROWS.astype(np.float64),
    ),
    Row(
        "dtype_mismatch",
        "dtype",
        "have the producer give each element a byte",
        lambda m: validate(m.packed(), dtype=ml_dtypes.int4),
        lambda _: taken(
            lambda x: validate(x, dtype=ml_dtypes.int4), from_dlpack(INT4, device=HERE)
        ),
        INT4,
    ),
    Row(
        "dtype_mismatch",
        "dtype",
        "convert the array to float32, in Python by usm_dlpack.from_dlpack(usm_dlpack.from_dlpack"
        '(x).numpy().astype("float32"), device=x)',
        lambda m: EXT.rank_one(m.tensor((6,), dtype="float64")),
        lambda m: taken(EXT.rank_one, astype(m.tensor((6,), dtype="float64"), "float32")),
        BYTES.view(np.float64).astype(np.float32),
    ),
    Row(
        "dtype_mismatch",
        "dtype",
        "convert the array to bfloat16, in Python by usm_dlpack.from_dlpack(usm_dlpack.from_dlpack"
        "(x).numpy().astype(ml_dtypes.bfloat16), device=x)",
        lambda m: EXT.brain_floats(m.tensor((12,))),
        lambda m: taken(EXT.brain_floats, astype(m.tensor((12,)), ml_dtypes.bfloat16)),
        FLAT.astype(ml_dtypes.bfloat16),
    ),
    Row(
        "dtype_mismatch",
        "dtype",
        '.numpy().astype("float32"), device=x)',
        lambda m: EXT.rank_one(m.tensor((48,), dtype="float8_e5m2")),
        lambda m: taken(EXT.rank_one, astype(m.tensor((48,), dtype="float8_e5m2"), "float32")),
        BYTES.view(ml_dtypes.float8_e5m2).astype(np.float32),
    ),
    *(
        Row(code, field, OTHER_SHAPE, refuse, lambda m: filled(m.tensor(), ROWS + 1), ROWS + 1)
        for code, field, refuse in (
            ("dtype_mismatch", "dtype", lambda m: filled(m.tensor(), ROWS.astype("f8"))),
            ("shape_mismatch", "ndim", lambda m: filled(m.tensor(), FLAT)),
            ("shape_mismatch", "shape[0]", lambda m: filled(m.tensor(), ROWS.T.copy())),
        )
    ),
    Row(
        "dtype_mismatch",
        "flags",
        OTHER_SHAPE,
        lambda m: filled(from_dlpack(INT4, device=HERE), m.packed()),
        lambda _: filled(from_dlpack(INT4, device=HERE), INT4[::-1]),
        INT4[::-1],
    ),
    Row(
        "shape_mismatch",
        "ndim",
        "reshape the array",
        lambda m: validate(m.tensor(), ndim=1),
        lambda m: taken(lambda x: validate(x, ndim=1), to_dlpack_tensor(m.tensor(), shape=12)),
        FLAT,
    ),
    Row(
        "shape_mismatch",
        "ndim",
        "reshape the array",
        lambda m: EXT.rank_one(m.tensor()),
        lambda m: taken(EXT.rank_one, to_dlpack_tensor(m.tensor(), shape=12)),
        FLAT,
    ),
    Row(
        "shape_mismatch",
        "shape[0]",
        "pass an array of that shape",
        lambda m: EXT.static_extent(m.tensor((3, 4))),
        lambda m: taken(EXT.static_extent, m.tensor((4, 3))),
        FLAT.reshape(4, 3),
    ),
    Row(
        "index_type_too_small",
        "shape[0]",
        "make the array smaller",
        lambda m: EXT.small_index(from_dlpack(np.zeros(128, np.uint8), device=HERE)),
        lambda m: taken(EXT.small_index, from_dlpack(BYTES, device=HERE)),
        BYTES,
    ),
    Row(
        "layout_mismatch",
        "strides[0]",
        ORDER_C,
        lambda m: EXT.rank_two_const(m.columns()),
        lambda m: taken(EXT.rank_two_const, from_dlpack(m.columns(), order="C")),
        FLAT.reshape(4, 3).T,
    ),
    Row(
        "layout_mismatch",
        "strides[0]",
        ORDER_C,
        lambda m: EXT.strided(m.broadcast()),
        lambda m: taken(EXT.strided, from_dlpack(m.broadcast(), order="C")),
        BROADCAST,
    ),
    Row(
        "layout_mismatch",
        "strides",
        ORDER_C,
        lambda m: EXT.strided(m.tensor((4, 2), strides=(2, 3))),
        lambda m: taken(EXT.strided, from_dlpack(m.tensor((4, 2), strides=(2, 3)), order="C")),
        np.array([[0, 3], [2, 5], [4, 7], [6, 9]], np.float32),
    ),
    Row(
        "layout_mismatch",
        "strides[0]",
        "copy the array to Fortran order, in Python by usm_dlpack.from_dlpack(numpy.asfortranarray"
        "(usm_dlpack.from_dlpack(x).numpy()), device=x)",
        lambda m: EXT.left(m.tensor()),
        lambda m: taken(EXT.left, as_columns(m.tensor())),
    ),
    Row(
        "layout_mismatch",
        "strides[0]",
        "copy the array to the layout's strides (1, 4), in Python by copy_from to a tensor that "
        "usm_dlpack.to_dlpack_tensor makes with them",
        lambda m: EXT.padded(m.tensor((3, 3))),
        lambda m: taken(EXT.padded, with_strides(m.tensor((3, 3)), (1, 4))),
        SQUARE,
    ),
    Row(
        "layout_mismatch",
        "strides",
        "pass numpy.ascontiguousarray(x)",
        lambda _: from_dlpack(RECORD["x"], device=HERE),
        lambda _: from_dlpack(np.ascontiguousarray(RECORD["x"]), device=HERE),
        FLAT,
    ),
    Row(
        "layout_mismatch",
        "strides",
        "pass numpy.ascontiguousarray(values)",
        lambda m: filled(m.tensor((12,)), RECORD["x"]),
        lambda m: filled(m.tensor((12,)), np.ascontiguousarray(RECORD["x"])),
        FLAT,
    ),
    Row(
        "overlapping",
        "strides",
        'copy the array to a compact one, in Python by usm_dlpack.from_dlpack(x, order="C")',
        lambda m: validate(m.broadcast(), overlapping=False),
        lambda m: taken(
            lambda x: validate(x, overlapping=False), from_dlpack(m.broadcast(), order="C")
        ),
        BROADCAST,
    ),
    Row(
        "overlapping",
        "strides",
        "have the producer make one whose elements do not overlap",
        lambda m: validate(m.packed((0, 1)), overlapping=False),
        lambda m: to_dlpack_tensor(
            taken(lambda x: validate(x, overlapping=False), m.packed()), dtype="uint8"
        ),
        BYTES[:8],
    ),
    Row(
        "overlapping",
        "strides",
        ORDER_C,
        lambda m: EXT.writes(m.broadcast()),
        lambda m: taken(EXT.writes, from_dlpack(m.broadcast(), order="C")),
        BROADCAST,
    ),
    Row(
        "overlapping",
        "strides",
        'write to a copy, made by from_dlpack(x, order="C")',
        lambda m: filled(m.broadcast()),
        lambda m: filled(from_dlpack(m.broadcast(), order="C")),
    ),
    Row(
        "overlapping",
        "strides",
        "write to a tensor whose elements do not overlap",
        lambda m: filled(m.packed((0, 1)), m.packed()),
        lambda m: to_dlpack_tensor(filled(m.packed(), m.packed()), dtype="uint8"),
        BYTES[:8],
    ),
    Row(
        "read_only",
        "flags",
        "copy the array, in Python by usm_dlpack.from_dlpack(x, copy=True)",
        lambda m: validate(m.read_only(), readonly=False),
        lambda m: taken(
            lambda x: validate(x, readonly=False), from_dlpack(m.read_only(), copy=True)
        ),
    ),
    Row(
        "read_only",
        "flags",
        "or leave out readonly=False",
        lambda m: validate(m.read_only(), readonly=False),
        lambda m: taken(validate, m.read_only()),
    ),
    Row(
        "read_only",
        "flags",
        "copy the array, in Python by usm_dlpack.from_dlpack(x, copy=True)",
        lambda m: EXT.rank_one(m.read_only((12,))),
        lambda m: taken(EXT.rank_one, from_dlpack(m.read_only((12,)), copy=True)),
        FLAT,
    ),
    Row(
        "read_only",
        "flags",
        "if it is dpnp's, pass usm_dlpack.to_dlpack_tensor(x); else ",
        lambda m: EXT.written_scalar(m.read_only(())),
        lambda m: taken(EXT.written_scalar, to_dlpack_tensor(m.passed_on(False, ()))),
        FLAT[0],
    ),
    Row(
        "read_only",
        "flags",
        "if it is of dpnp's array a, make it by to_dlpack_tensor(a), not by from_dlpack(a)",
        lambda m: filled(m.read_only(()), np.float32(7)),
        lambda m: filled(to_dlpack_tensor(m.passed_on(False, ())), np.float32(7)),
        np.float32(7),
    ),
    Row(
        "read_only",
        "flags",
        "write to a copy, made by from_dlpack(x, copy=True)",
        lambda m: filled(m.read_only(), ROWS + 1),
        lambda m: filled(from_dlpack(m.read_only(), copy=True), ROWS + 1),
        ROWS + 1,
    ),
    Row(
        "read_only",
        "flags",
        "if an object passes on the interface of a dpctl.memory, pass the memory itself",
        lambda m: filled(m.read_only(), ROWS + 1),
        lambda m: filled(to_dlpack_tensor(m.usm, shape=(3, 4), dtype="float32"), ROWS + 1),
        ROWS + 1,
    ),
    Row(
        "read_only",
        "flags",
        "or let the object answer (address, False)",
        lambda m: filled(m.read_only(), ROWS + 1),
        lambda m: filled(to_dlpack_tensor(m.passed_on(False)), ROWS + 1),
        ROWS + 1,
    ),
    Row(
        "read_only",
        "flags",
        "write to a tensor of writable memory",
        lambda m: filled(to_dlpack_tensor(m.read_only(), shape=96, dtype="int4"), m.packed()),
        lambda m: to_dlpack_tensor(filled(m.packed(), m.packed()), dtype="uint8"),
        BYTES[:8],
    ),
    Row(
        "read_only",
        "flags",
        "pass max_version=(1, 0) in Python",
        lambda m: made_of(m.read_only().__dlpack__()),
        lambda m: made_of(m.read_only().__dlpack__(max_version=(1, 0))),
    ),
    Row(
        "read_only",
        "flags",
        "or copy the array",
        lambda m: made_of(m.read_only().__dlpack__()),
        lambda m: made_of(m.read_only().__dlpack__(copy=True)),
    ),
    # --- The memory
    Row(
        "pointer_unknown",
        "data",
        f"check that it is USM and not freed, and allocate it with a {OF_THE_ROOT}",
        lambda _: from_dlpack(ForeignArray(ForeignTensor(ROWS.ctypes.data))),
        lambda m: from_dlpack(foreign_on(m, dpctl.SyclQueue(root_device(0)))),
    ),
    Row(
        "context_not_default",
        "context",
        f"allocate with a {OF_THE_ROOT}",
        lambda m: to_dlpack_tensor(m.allocate(queue=m.foreign_queue), dtype="float32"),
        lambda m: to_dlpack_tensor(
            m.allocate(queue=dpctl.SyclQueue(m.foreign_queue.sycl_device)), dtype="float32"
        ),
        FLAT,
    ),
    Row(
        "context_not_default",
        "context",
        "or copy to such memory, in Python by usm_dlpack.empty and copy_from",
        lambda m: to_dlpack_tensor(m.allocate(queue=m.foreign_queue)),
        lambda m: filled(empty(48, "uint8"), m.allocate(queue=m.foreign_queue)),
        BYTES,
    ),
    Row(
        "context_not_default",
        "queue",
        f"pass a {OF_THE_ROOT}",
        lambda m: to_dlpack_tensor(m.usm, queue=m.foreign_queue),
        lambda m: to_dlpack_tensor(m.usm, queue=dpctl.SyclQueue(m.foreign_queue.sycl_device)),
        BYTES,
    ),
    Row(
        "context_not_default",
        "device",
        f"pass a {OF_THE_ROOT}",
        lambda m: from_dlpack(ROWS, device=m.foreign_queue),
        lambda m: from_dlpack(ROWS, device=dpctl.SyclQueue(m.foreign_queue.sycl_device)),
    ),
    Row(
        "out_of_bounds",
        "shape",
        BOUNDS,
        lambda m: m.tensor((4, 4)),
        lambda m: m.tensor((3, 4)),
    ),
    Row("out_of_bounds", "shape", BOUNDS, imported(spoiled(shape=(4, 4))), RIGHT),
    Row(
        "usm_type_not_accepted",
        "data",
        "copy the values with numpy()",
        lambda m: m.tensor().host_view(),
        lambda m: m.tensor().numpy(),
    ),
    Row(
        "usm_type_not_accepted",
        "data",
        'or to shared USM with from_dlpack(x, usm_type="shared")',
        lambda m: m.tensor().host_view(),
        lambda m: np.asarray(from_dlpack(m.tensor(), usm_type="shared").host_view()),
    ),
    Row(
        "usm_type_not_accepted",
        "data",
        'copy the values to shared USM with from_dlpack(x, usm_type="shared")',
        lambda m: m.packed().host_view(),
        lambda m: np.asarray(
            to_dlpack_tensor(from_dlpack(m.packed(), usm_type="shared"), dtype="uint8").host_view()
        ),
        BYTES[:8],
    ),
    Row(
        "usm_type_not_accepted",
        "data",
        'copy the array to host USM, in Python by usm_dlpack.from_dlpack(x, usm_type="host")',
        lambda m: validate(m.tensor(), usm_types=("host", "shared")),
        lambda m: taken(
            lambda x: validate(x, usm_types=("host", "shared")),
            from_dlpack(m.tensor(), usm_type="host"),
        ),
    ),
    Row(
        "usm_type_not_accepted",
        "data",
        'copy the array to device USM, in Python by usm_dlpack.from_dlpack(x, usm_type="device")',
        lambda m: EXT.device_only(m.tensor((12,), kind="shared")),
        lambda m: taken(
            EXT.device_only, from_dlpack(m.tensor((12,), kind="shared"), usm_type="device")
        ),
        FLAT,
    ),
    Row(
        "usm_type_not_accepted",
        "data",
        "add the kind to usm_types",
        lambda m: validate(m.tensor(), usm_types=()),
        lambda m: taken(lambda x: validate(x, usm_types=("device",)), m.tensor()),
    ),
    # --- Devices
    Row(
        "device_type_unsupported",
        "device.device_type",
        "move the array to a SYCL device first, in Python by "
        "usm_dlpack.from_dlpack(x, device=(14, 0))",
        lambda _: from_dlpack(ROWS),
        lambda _: from_dlpack(ROWS, device=(14, 0)),
    ),
    Row(
        "device_type_unsupported",
        "device.device_type",
        "use that GPU by SYCL's backend cuda, or copy the array to the host first",
        imported(spoiled(device_type=2)),
        lambda _: from_dlpack(ROWS.copy(), device=HERE),
    ),
    Row(
        "no_device",
        "device.device_id",
        "give an id of this process, or check ONEAPI_DEVICE_SELECTOR",
        lambda m: from_dlpack(m.tensor(), device=(14, 99)),
        lambda m: from_dlpack(m.tensor(), device=(14, 0)),
    ),
    Row(
        "no_device",
        "device.device_id",
        "give the id of a root device",
        imported(spoiled(device_id=-1)),
        RIGHT,
    ),
    Row(
        "no_device",
        "device.device_id",
        "pass an id of usm_dlpack.device_id",
        lambda _: root_device(2**40),
        lambda m: from_dlpack(ROWS, device=root_device(usm_dlpack.device_id(m.queue))),
    ),
    Row(
        "device_not_accepted",
        "device.device_id",
        "or to the host",
        lambda m: m.tensor().cuda_view(),
        lambda m: m.tensor().numpy(),
    ),
    Row(
        "runtime_error",
        "queue",
        "do this before the recording begins or after it ends",
        lambda m: recorded(m, "while"),
        lambda m: recorded(m, "before"),
    ),
    Row(
        "runtime_error",
        "queue",
        "do this before the recording begins or after it ends",
        lambda m: recorded(m, "while"),
        lambda m: recorded(m, "after"),
    ),
    # --- Python
    Row(
        "capsule_unusable",
        "capsule",
        "ask the producer for a new one by __dlpack__()",
        lambda m: from_dlpack(used_capsule(m)),
        lambda m: made_of(m.tensor().__dlpack__()),
    ),
    Row(
        "capsule_unusable",
        "capsule",
        "have __dlpack__() return a capsule",
        lambda m: made_of(m.tensor()),
        lambda m: made_of(m.tensor().__dlpack__()),
    ),
    *(
        Row(
            "copy_needed",
            field,
            ALLOW_IT,
            imported(make, copy=False, **keywords),
            imported(make, copy=None, **keywords),
            values,
        )
        for field, make, keywords, values in (
            ("copy", lambda _: ROWS, {"device": HERE}, ROWS),
            ("copy", lambda m: m.tensor(), {"usm_type": "host"}, ROWS),
            ("strides", lambda m: m.columns(), {"order": "C"}, FLAT.reshape(4, 3).T),
            (
                "copy",
                spoiled(flags=IS_COPIED),
                {},
                ROWS,
            ),
        )
    ),
    Row(
        "copy_needed",
        "copy",
        "free some, or export without a copy",
        lambda m: from_dlpack(m.tensor((BIG, 4), strides=(0, 1)), copy=True).shape,
        lambda m: to_dlpack_tensor(
            from_dlpack(m.tensor((BIG, 4), strides=(0, 1))), shape=4, strides=(1,)
        ),
        FLAT[:4],
    ),
    *(
        Row(
            "copy_needed",
            "x",
            f"pass x.resolve_{bit}()",
            imported(lambda m, bit=bit: Lazy(m, bit)),
            lambda m, bit=bit: from_dlpack(getattr(Lazy(m, bit), f"resolve_{bit}")()),
        )
        for bit in ("conj", "neg")
    ),
    Row(
        "copy_needed",
        "x",
        "pass x.filled(value)",
        lambda _: from_dlpack(MASKED, device=HERE),
        lambda _: from_dlpack(MASKED.filled(9), device=HERE),
        np.where(FLAT < 3, np.float32(9), FLAT),
    ),
    Row(
        "copy_needed",
        "x",
        "or numpy.asarray(x) to drop the mask",
        lambda _: from_dlpack(MASKED, device=HERE),
        lambda _: from_dlpack(np.asarray(MASKED), device=HERE),
        FLAT,
    ),
    Row(
        "copy_needed",
        "values",
        "pass values.filled(value)",
        lambda m: filled(m.tensor((12,)), MASKED),
        lambda m: filled(m.tensor((12,)), MASKED.filled(9)),
        np.where(FLAT < 3, np.float32(9), FLAT),
    ),
    Row(
        "copy_needed",
        "values",
        "or numpy.asarray(values) to drop the mask",
        lambda m: filled(m.tensor((12,)), MASKED),
        lambda m: filled(m.tensor((12,)), np.asarray(MASKED)),
        FLAT,
    ),
    Row(
        "copy_needed",
        "copy",
        "allow the copy",
        lambda m: m.tensor().__dlpack__(dl_device=(1, 0), copy=False),
        lambda m: np.from_dlpack(OnHost(m.tensor().__dlpack__(dl_device=(1, 0)))),
    ),
    Row(
        "copy_needed",
        "copy",
        "or use host or shared USM",
        lambda m: m.tensor().__dlpack__(dl_device=(1, 0), copy=False),
        lambda m: np.from_dlpack(
            OnHost(m.tensor(kind="shared").__dlpack__(dl_device=(1, 0), copy=False))
        ),
    ),
    Row(
        "request_unsupported",
        "max_version",
        "pass the newest DLPack version that you know",
        lambda m: m.tensor().__dlpack__(max_version="1.3"),
        lambda m: made_of(m.tensor().__dlpack__(max_version=(1, 3))),
    ),
    Row(
        "request_unsupported",
        "dl_device",
        "copy to the host first, by dl_device=(1, 0)",
        lambda m: m.tensor().__dlpack__(dl_device=(8, 0)),
        lambda m: np.from_dlpack(OnHost(m.tensor().__dlpack__(dl_device=(1, 0)))),
    ),
    Row(
        "request_unsupported",
        "dl_device",
        "pass the tuple that __dlpack_device__ gives",
        lambda m: m.tensor().__dlpack__(dl_device="gpu"),
        lambda m: made_of(m.tensor().__dlpack__(dl_device=m.tensor().__dlpack_device__())),
    ),
    Row(
        "request_unsupported",
        "copy",
        "pass one of these",
        lambda m: m.tensor().__dlpack__(copy="yes"),
        lambda m: made_of(m.tensor().__dlpack__(copy=True)),
    ),
    Row(
        "request_unsupported",
        "device",
        'pass (14, device_id); usm_type="host" allocates host USM there',
        lambda _: empty((3, 4), "float32", device=(1, 0)),
        lambda _: np.asarray(
            filled(empty((3, 4), "float32", device=(14, 0), usm_type="host")).host_view()
        ),
    ),
    Row(
        "request_unsupported",
        "sycl_queue",
        "use __dlpack__(), which waits",
        lambda m: lent(from_dlpack(on_a_queue_of(m, m.foreign_queue))),
        lambda m: made_of(from_dlpack(on_a_queue_of(m, m.foreign_queue)).__dlpack__()),
    ),
    Row(
        "request_unsupported",
        "sycl_queue",
        "or a queue made from the device alone",
        lambda m: lent(from_dlpack(on_a_queue_of(m, m.foreign_queue))),
        lambda m: lent(from_dlpack(on_a_queue_of(m, dpctl.SyclQueue(root_device(0))))),
    ),
    Row(
        "tensor_released",
        "data",
        "keep a reference to the tensor outside the cycle",
        lambda m: cleared(m.tensor()).numpy(),
        held_outside_its_cycle,
    ),
    *(
        Row(
            "tensor_released",
            "data",
            "use to_dlpack_tensor, from_dlpack or empty",
            lambda _: DLPackTensor.__new__(DLPackTensor).numpy(),
            make,
        )
        for make in (
            lambda m: m.tensor(),
            lambda _: from_dlpack(ROWS, device=HERE),
            lambda _: filled(empty((3, 4), "float32")),
        )
    ),
    # --- dtypes that NumPy, or a copy, does not take
    Row(
        "dtype_unsupported",
        "dtype",
        'take the bytes with to_dlpack_tensor(x, dtype="uint8").numpy()',
        lambda m: m.packed().numpy(),
        lambda m: to_dlpack_tensor(m.packed(), dtype="uint8").numpy(),
        BYTES[:8],
    ),
    Row(
        "dtype_unsupported",
        "dtype",
        'take the bytes with to_dlpack_tensor(from_dlpack(x, order="C"), dtype="uint8").numpy()',
        lambda m: m.tensor((3, 2), strides=(1, 3), dtype=(2, 16, 4)).numpy(),
        lambda m: to_dlpack_tensor(
            from_dlpack(m.tensor((3, 2), strides=(1, 3), dtype=(2, 16, 4)), order="C"),
            dtype="uint8",
        ).numpy(),
        BYTES.reshape(2, 3, 8).transpose(1, 0, 2).reshape(48),
    ),
    *(
        Row(
            "dtype_unsupported",
            "dtype",
            UNPACK,
            refuse,
            lambda _: from_dlpack(INT4, device=HERE),
            INT4,
        )
        for refuse in (
            lambda m: m.packed((1, 4)).numpy(),
            lambda m: from_dlpack(m.packed((1, 4)), order="C"),
            lambda m: from_dlpack(m.packed((1, 4)), order="C", copy=False),
            lambda m: from_dlpack(m.packed((0, 1)), usm_type="host", copy=False),
            lambda m: from_dlpack(m.packed((0, 1)), copy=True),
        )
    ),
    Row(
        "dtype_unsupported",
        "dtype",
        UNPACK,
        lambda m: filled(m.packed((1, 4)), m.packed()),
        lambda _: filled(from_dlpack(INT4, device=HERE), INT4.T),
        INT4.T,
    ),
    Row(
        "dtype_unsupported",
        "dtype",
        "convert the array with astype",
        lambda _: from_dlpack(ROWS.astype(">f4"), device=HERE),
        lambda _: from_dlpack(ROWS.astype(">f4").astype("=f4"), device=HERE),
    ),
    Row(
        "dtype_unsupported",
        "dtype",
        "pass one field, such as numpy.ascontiguousarray(x['name'])",
        lambda _: from_dlpack(RECORD, device=HERE),
        lambda _: from_dlpack(np.ascontiguousarray(RECORD["x"]), device=HERE),
        FLAT,
    ),
    Row(
        "dtype_unsupported",
        "dtype",
        "copy the values with numpy()",
        lambda m: np.asarray(m.tensor((24,), kind="host", dtype="bfloat16").host_view()),
        lambda m: m.tensor((24,), kind="host", dtype="bfloat16").numpy(),
        BYTES.view(ml_dtypes.bfloat16),
    ),
    *(
        Row(
            "dtype_unsupported",
            "dtype",
            "use __dlpack__",
            lambda m, dtype=dtype: np.asarray(m.tensor((8,), kind="host", dtype=dtype).host_view()),
            lambda m, dtype=dtype: to_dlpack_tensor(
                from_dlpack(m.tensor((8,), kind="host", dtype=dtype).host_view(), device=HERE),
                dtype="uint8",
            ),
            values,
        )
        for dtype, values in (
            ("bfloat16", BYTES[:16]),
            ("int4", BYTES[:4]),
        )
    ),
    Row(
        "dtype_unsupported",
        "flags",
        "pass max_version=(1, 0) in Python",
        lambda _: made_of(from_dlpack(INT4, device=HERE).__dlpack__()),
        lambda _: made_of(from_dlpack(INT4, device=HERE).__dlpack__(max_version=(1, 0))),
        INT4,
    ),
    # --- Arguments in Python, which have no code
    Row(TypeError, "device_id", "pass one", lambda _: root_device("0"), lambda _: on_device(0)),
    Row(
        ValueError,
        "order",
        "pass one of these",
        lambda m: from_dlpack(m.tensor(), order="F"),
        lambda m: from_dlpack(m.tensor(), order="C"),
    ),
    Row(
        TypeError,
        "shape",
        "pass a tuple of int",
        lambda m: m.tensor(("3", "4")),
        lambda m: m.tensor((3, 4)),
    ),
    Row(
        TypeError,
        "usm_types",
        "pass names",
        lambda m: validate(m.tensor(), usm_types=5),
        lambda m: taken(lambda x: validate(x, usm_types=("device",)), m.tensor()),
    ),
    Row(
        TypeError,
        "copy",
        "pass one",
        lambda m: from_dlpack(m.tensor(), copy="no"),
        lambda m: from_dlpack(m.tensor(), copy=False),
    ),
    Row(
        TypeError,
        "obj",
        "use from_dlpack(x)",
        lambda m: to_dlpack_tensor(m.tensor().__dlpack__()),
        lambda m: from_dlpack(m.tensor().__dlpack__()),
    ),
    Row(
        TypeError,
        "obj",
        "use from_dlpack(x, device=(14, 0)), which also takes host memory",
        lambda _: to_dlpack_tensor(ROWS),
        lambda _: from_dlpack(ROWS, device=(14, 0)),
    ),
    Row(
        TypeError,
        "obj",
        "for memory at an address, make such an object",
        lambda m: to_dlpack_tensor(address_of(m.usm)),
        lambda m: to_dlpack_tensor(TypedArray(m.usm, shape=(3, 4))),
    ),
    Row(
        TypeError,
        "obj",
        "pass dpctl.memory or a dpnp array",
        lambda _: to_dlpack_tensor(object()),
        lambda m: to_dlpack_tensor(m.usm),
        BYTES,
    ),
    Row(
        TypeError,
        "obj",
        "or copy with from_dlpack(numpy.asarray(x), device=(14, 0))",
        lambda _: to_dlpack_tensor(ROWS.tolist()),
        lambda _: from_dlpack(np.asarray(ROWS.tolist()), device=(14, 0)),
        ROWS.astype(np.float64),
    ),
    Row(
        TypeError,
        "syclobj",
        "pass one of dpctl's objects",
        lambda m: to_dlpack_tensor(TypedArray(m.usm, syclobj=3)),
        lambda m: to_dlpack_tensor(TypedArray(m.usm, syclobj=m.queue)),
        FLAT,
    ),
    Row(
        ValueError,
        "dtype",
        "or pass each extent as shape",
        lambda m: to_dlpack_tensor(m.tensor((10,), dtype="uint8"), dtype="float32"),
        lambda m: to_dlpack_tensor(m.tensor((10,), dtype="uint8"), dtype="float32", shape=2),
        FLAT[:2],
    ),
    Row(
        ValueError,
        "strides",
        "pass shape too",
        lambda m: to_dlpack_tensor(m.usm, dtype="float32", strides=(1,)),
        lambda m: to_dlpack_tensor(m.usm, dtype="float32", strides=(1,), shape=12),
        FLAT,
    ),
    Row(
        ValueError,
        "shape",
        "replace -1 by the extent",
        lambda m: m.tensor((-1, 4), strides=(4, 1)),
        lambda m: m.tensor((3, 4), strides=(4, 1)),
    ),
    Row(
        ValueError,
        "strides",
        "pass shape and strides (in elements)",
        lambda m: to_dlpack_tensor(m.columns(), dtype="uint8"),
        lambda m: to_dlpack_tensor(m.columns(), dtype="uint8", shape=48, strides=(1,)),
        BYTES,
    ),
    Row(
        ValueError,
        "strides",
        "pass shape and strides (in elements)",
        lambda m: to_dlpack_tensor(m.packed((1, 4)), dtype="uint8"),
        lambda m: to_dlpack_tensor(m.packed((1, 4)), dtype="uint8", shape=8, strides=(1,)),
        BYTES[:8],
    ),
    Row(
        ValueError,
        "strides",
        'or copy the object first by from_dlpack(x, order="C")',
        lambda m: to_dlpack_tensor(m.columns(), dtype="uint8"),
        lambda m: to_dlpack_tensor(from_dlpack(m.columns(), order="C"), dtype="uint8"),
        FLAT.reshape(4, 3).T.copy().reshape(12).view(np.uint8),
    ),
    Row(
        TypeError,
        "dtype",
        "pass for example numpy.float32",
        lambda m: m.tensor(dtype="no dtype"),
        lambda m: m.tensor(dtype=np.float32),
    ),
    Row(
        TypeError,
        "dtype",
        "pass a shape of several extents as a tuple",
        lambda _: empty(3, 4),
        lambda _: filled(to_dlpack_tensor(empty((3, 4)), dtype=np.float32, shape=(3, 4))),
    ),
    Row(
        AttributeError,
        "__sycl_usm_array_interface__",
        "exchange the array through DLPack",
        lambda m: m.tensor((24,), dtype="bfloat16").__sycl_usm_array_interface__,
        lambda m: from_dlpack(m.tensor((24,), dtype="bfloat16")),
        BYTES.view(ml_dtypes.bfloat16),
    ),
    Row(
        TypeError,
        "values",
        "pass for example a NumPy array or a DLPackTensor",
        lambda m: filled(m.tensor(), 3),
        lambda m: filled(m.tensor(), ROWS),
    ),
    Row(
        TypeError,
        "values",
        "pass for example a NumPy array or a DLPackTensor",
        lambda m: filled(m.tensor(), 3),
        lambda m: filled(empty((3, 4), "float32"), m.tensor()),
    ),
    Row(
        TypeError,
        "py_object",
        "look up the exchange API of the object's own type",
        lambda m: from_dlpack(
            Table(ForeignTensor(0)).array(DLPackTensor.__dlpack_c_exchange_api__)
        ),
        lambda m: from_dlpack(failing_table(m, gives=True)),
    ),
    Row(
        ValueError,
        "device",
        "pass the pair that __dlpack_device__ gives",
        lambda _: from_dlpack(ROWS, device=(14,)),
        lambda m: from_dlpack(ROWS, device=m.tensor().__dlpack_device__()),
    ),
    Row(
        ValueError,
        "device",
        "pass a SYCL device of this process",
        lambda _: from_dlpack(ROWS, device=(8, 0)),
        lambda _: from_dlpack(ROWS, device=root_device(0)),
    ),
    Row(
        TypeError,
        "device",
        "pass (14, 0)",
        lambda _: from_dlpack(ROWS, device=0),
        lambda _: from_dlpack(ROWS, device=(14, 0)),
    ),
    Row(
        TypeError,
        "device",
        "pass (14, device_id)",
        lambda _: from_dlpack(ROWS, device=object()),
        lambda m: from_dlpack(ROWS, device=(14, usm_dlpack.device_id(m.queue))),
    ),
    Row(
        TypeError,
        "queue",
        "pass a dpctl.SyclQueue",
        lambda m: to_dlpack_tensor(m.usm, queue=object()),
        lambda m: to_dlpack_tensor(m.usm, queue=m.queue),
        BYTES,
    ),
    Row(
        TypeError,
        "x",
        "use to_dlpack_tensor(x)",
        lambda m: from_dlpack(m.usm),
        lambda m: to_dlpack_tensor(m.usm),
        BYTES,
    ),
    Row(
        TypeError,
        "x",
        "copy it with from_dlpack(numpy.asarray(x), device=(14, 0))",
        lambda _: from_dlpack(ROWS.tolist()),
        lambda _: from_dlpack(np.asarray(ROWS.tolist()), device=(14, 0)),
        ROWS.astype(np.float64),
    ),
    Row(
        TypeError,
        "x",
        "pass an array, such as numpy.asarray(x)",
        lambda _: from_dlpack(ROWS.tolist(), device=HERE),
        lambda _: from_dlpack(np.asarray(ROWS.tolist()), device=HERE),
        ROWS.astype(np.float64),
    ),
    Row(
        TypeError,
        "x",
        "pass an array",
        lambda _: from_dlpack(object()),
        lambda m: from_dlpack(m.foreign()),
    ),
]


def name_of(row: Any) -> str:
    code = row.code if isinstance(row.code, str) else row.code.__name__
    return f"{code}, {row.field}: {row.remedy}"


def values_of(result: Any) -> Any:
    return result.numpy() if isinstance(result, DLPackTensor) else result


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_a_remedy_helps(row, queue, foreign_queue):
    memory = Memory(queue, foreign_queue)
    if isinstance(row.code, str):
        expected = refused(row.code, row.field, remedy=row.remedy)
    else:
        expected = wrong_argument(row.code, row.field, row.remedy)
    with expected:
        row.refused(memory)
    np.testing.assert_array_equal(values_of(row.applied(memory)), row.values, strict=True)


class Program(NamedTuple):
    """The same in processes: a program and its variables, refused, and then as the remedy says."""

    code: str
    field: str
    remedy: str
    refused: str
    applied: str
    variables: str = ""  # the name of those of the first process
    variables_after: str = ""  # of the second one


BEGIN = """
import json
import multiprocessing

import dpctl
{}
import numpy as np
import usm_dlpack
from dpctl.memory import MemoryUSMDevice

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


def on(device):
    memory = MemoryUSMDevice(48, queue=dpctl.SyclQueue(device))
    memory.copy_from_host(ROWS.reshape(12).view(np.uint8))
    return usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), dtype="float32")


def child(device_id):
    return on(usm_dlpack.root_device(device_id)).numpy()


def run():
    {}


try:
    result = run()
except usm_dlpack.ConversionError as error:
    print(json.dumps([error.code, error.field, error.remedy]))
else:
    print(json.dumps(getattr(result, "numpy", lambda: result)().tolist()))
"""
TWO = """first, second = dpctl.get_devices()
    x = on(first)
    """
WITH_FIRST = TWO + "return usm_dlpack.to_dlpack_tensor(x, queue=dpctl.SyclQueue(first))"
WITH_SECOND = TWO + "return usm_dlpack.to_dlpack_tensor(x, queue=dpctl.SyclQueue(second))"
USE = "return on(usm_dlpack.root_device(0))"
FORKED = """usm_dlpack.root_device(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(child, (0,))"""
FOREIGN = """from capsules import ForeignArray, ForeignTensor
    x = on(dpctl.get_devices()[1])
    foreign = ForeignTensor(x.data)
    foreign.tensor.device_id = {}
    return usm_dlpack.from_dlpack(ForeignArray(foreign)).numpy()"""

PROGRAMS = [
    Program(
        "device_mismatch",
        "queue",
        "pass a queue of that device",
        WITH_SECOND,
        WITH_FIRST,
        "two",
        "two",
    ),
    Program(
        "device_mismatch",
        "queue",
        "or copy the memory to the queue's device",
        WITH_SECOND,
        TWO + "return usm_dlpack.from_dlpack(x, device=dpctl.SyclQueue(second))",
        "two",
        "two",
    ),
    Program(
        "device_mismatch",
        "device.device_id",
        "have the producer name the root device of the memory",
        FOREIGN.format(0),
        FOREIGN.format(1),
        "two",
        "two",
    ),
    Program(
        "device_not_accepted",
        "device.device_id",
        "copy the array to that device first",
        TWO + "usm_dlpack.validate(x, device=(14, 1))",
        TWO + "x = usm_dlpack.from_dlpack(x, device=(14, 1))\n"
        "    usm_dlpack.validate(x, device=(14, 1))\n    return x",
        "two",
        "two",
    ),
    Program(
        "copy_needed",
        "copy",
        "allow the copy",
        TWO + "x.__dlpack__(dl_device=(14, 1), copy=False)",
        TWO + "return usm_dlpack.from_dlpack(x.__dlpack__(dl_device=(14, 1)))",
        "two",
        "two",
    ),
    Program(
        "no_device",
        "device.device_id",
        "install a driver, correct what hides it, such as ONEAPI_DEVICE_SELECTOR (python -m "
        "usm_dlpack finds it)",
        USE,
        USE,
        "none",
    ),
    Program(
        "no_device",
        "device.device_id",
        "repair its driver or hide it with ONEAPI_DEVICE_SELECTOR",
        "return usm_dlpack.root_device(1)",
        USE,
        "broken",
        "hidden",
    ),
    Program(
        "no_device",
        "device.device_id",
        "import usm_dlpack before the first device query of the process, which found no driver",
        USE,
        USE,
        "late",
    ),
    Program(
        "runtime_error",
        "device",
        "unset ONEAPI_DEVICE_SELECTOR, correct it, for example to *:gpu",
        USE,
        USE,
        "nonsense",
    ),
    Program(
        "runtime_error",
        "device",
        "unset ONEAPI_DEVICE_SELECTOR, correct it, for example to *:gpu",
        USE,
        USE,
        "nonsense",
        "cpu",
    ),
    Program(
        "process_forked",
        "process",
        'start the child anew, for example by multiprocessing.set_start_method("spawn")',
        FORKED,
        """usm_dlpack.root_device(0)
    multiprocessing.set_start_method("spawn")
    with multiprocessing.Pool(1) as pool:
        pool.apply(usm_dlpack.device_id, ((14, 0),))
    return child(0)""",
    ),
    Program(
        "process_forked",
        "process",
        "or fork before the first use",
        FORKED,
        FORKED.replace("usm_dlpack.root_device(0)\n    ", ""),
    ),
]


@pytest.fixture
def variables_of(driver, driver_copies, several_devices):
    """Return a function that gives the variables of a process by their name in `PROGRAMS`."""
    broken = {"OCL_ICD_FILENAMES": f"{driver}:{driver_copies['broken']}"}
    named: dict[str, Callable[[], dict[str, str]]] = {
        "": dict,
        "two": lambda: several_devices(2),
        "none": lambda: {"ONEAPI_DEVICE_SELECTOR": "level_zero:*"},
        "late": dict,
        "broken": lambda: broken,
        "hidden": lambda: broken | {"ONEAPI_DEVICE_SELECTOR": "opencl:0"},
        "nonsense": lambda: {"ONEAPI_DEVICE_SELECTOR": "nonsense"},
        "cpu": lambda: {"ONEAPI_DEVICE_SELECTOR": "*:cpu"},
    }
    return lambda name: named[name]()


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_remedy_helps_in_a_process(program, succeed, variables_of):
    late = "dpctl.get_devices()" if program.variables == "late" else ""
    before = succeed(BEGIN.format(late, program.refused), **variables_of(program.variables))
    code, field, remedy = json.loads(before)
    assert (code, field) == (program.code, program.field)
    assert program.remedy in remedy
    after = succeed(BEGIN.format("", program.applied), **variables_of(program.variables_after))
    assert json.loads(after) == ROWS.tolist()
