# SPDX-License-Identifier: Apache-2.0
"""The libraries of docs/consumers.md, and how each makes an array of a case and takes one of ours.

Each is imported only where it is asked for: no environment has all of them. A method that a library
has no counterpart of raises `NotOfferedError`, and its cell stays empty.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import usm_dlpack
from capsules import READ_ONLY, content_of
from consumer_cases import (
    DTYPES,
    OTHER_DTYPES,
    PLAIN_DTYPES,
    Case,
    NotOfferedError,
    OnHost,
    Seen,
    dlpack_dtype,
    gather,
    make_tensor,
    name_of_dtype,
    see_tensor,
)
from peers import Peer
from usm_here import queue_of

Tensor = usm_dlpack.DLPackTensor
FLOAT8 = tuple(name for name in OTHER_DTYPES if name.startswith("float8"))


class Consumer:
    """One library, which the page calls by `title` and the release of `distribution`."""

    title: str
    distribution: str
    dtypes: tuple[str, ...] = PLAIN_DTYPES
    # The cases that it makes no array of.
    lacks: tuple[str, ...] = ()
    # The kind of USM that a case is of that names none.
    usm_type = "device"

    @property
    def version(self) -> str:
        """The release, without what says how it was built."""
        version = importlib.metadata.version(self.distribution).partition("+")[0]
        return f"{self.distribution} {version}"

    def make(self, case: Case) -> Any:
        """Return an array of theirs as a case says."""
        raise NotOfferedError

    def take(self, tensor: Tensor) -> Any:
        """Return what they make of a tensor of ours, or of memory of the host."""
        raise NotImplementedError

    def see(self, array: Any) -> Seen:
        """Return what they say of an array of theirs."""
        raise NotImplementedError

    def take_on_host(self, array: OnHost) -> Any:
        """Return what they make of memory of the host."""
        return self.take(array)  # type: ignore[arg-type]

    def ask_for_host(self, tensor: Tensor, copy: bool | None) -> Any:
        """Return what a keyword of theirs for the host makes of a tensor of ours."""
        raise NotOfferedError

    def see_on_host(self, array: Any) -> Seen:
        """Return what they say of an array in memory of the host."""
        return self.see(array)

    def give(self, array: Any, case: Case) -> Tensor:
        """Return what we make of an array of theirs."""
        return usm_dlpack.from_dlpack(array)


class UsmArrays(Consumer):
    """dpctl.tensor and what became of it."""

    def __init__(self, title: str, distribution: str) -> None:
        self.title = title
        self.distribution = distribution
        self.peer = Peer(title)

    def make(self, case: Case) -> Any:
        place = {"usm_type": case.usm_type or "device", "sycl_queue": queue_of(case.device_id)}
        array = self.peer.from_numpy(case.values, **place)
        if case.view is not None:
            array = case.view(self.peer.namespace, array)
        if case.readonly:
            self.peer.set_readonly(array)
        return array

    def take(self, tensor: Tensor) -> Any:
        return self.peer.namespace.from_dlpack(tensor)

    def ask_for_host(self, tensor: Tensor, copy: bool | None) -> Any:
        return self.peer.namespace.from_dlpack(tensor, device=(1, 0), copy=copy)

    def see(self, array: Any) -> Seen:
        if isinstance(array, np.ndarray):
            return see_numpy(array)
        values, readonly = self.peer.to_numpy(array), not array.flags.writable
        address = self.peer.address(array)
        return Seen(tuple(array.shape), array.dtype.name, values.tobytes(), address, readonly)


class OneDal(Consumer):
    """scikit-learn-intelex, whose tables are rows and columns of USM or of the host."""

    title = "oneDAL"
    distribution = "scikit-learn-intelex"
    dtypes = ("int32", "int64", "float32", "float64")

    def __init__(self) -> None:
        import onedal

        self.backend = onedal._default_backend
        if not self.backend.is_dpc:
            raise SystemExit("onedal: expected its SYCL library, found the host's alone")

    def make(self, case: Case) -> Any:
        return self.take(make_tensor(case, "device"))

    def take(self, tensor: Tensor) -> Any:
        return self.backend.to_table(tensor, None)

    def see(self, array: Any) -> Seen:
        address, readonly = array.__sycl_usm_array_interface__["data"]
        found = see_tensor(usm_dlpack.from_dlpack(array))
        return Seen(tuple(array.shape), array.dtype.name, found.bytes, address, readonly)

    def see_on_host(self, array: Any) -> Seen:
        tensor = content_of(array.__dlpack__()).dl_tensor
        values = self.backend.from_table(array)
        address = tensor.data + tensor.byte_offset
        return Seen(tuple(array.shape), array.dtype.name, values.tobytes(), address, False)


def see_numpy(array: np.ndarray) -> Seen:
    """Return what NumPy says of an array."""
    readonly = not array.flags.writeable
    return Seen(array.shape, array.dtype.name, array.tobytes(), array.ctypes.data, readonly)


class OnHostConsumer(Consumer):
    """A library whose arrays are in memory of the host."""

    usm_type = "shared"
    # The module or class that has its functions.
    functions: str
    # What its ``from_dlpack`` calls the host, if it has such a keyword.
    host: Any = None

    def __init__(self) -> None:
        self.namespace: Any = pkgutil.resolve_name(self.functions)

    def from_dlpack(self, x: Any, **keywords: Any) -> Any:
        """Call their function."""
        return self.namespace.from_dlpack(x, **keywords)

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        """Return an array of theirs with these values."""
        raise NotOfferedError

    def to_numpy(self, array: Any) -> np.ndarray:
        """Return an array of NumPy that sees theirs."""
        return np.from_dlpack(array)

    def make(self, case: Case) -> Any:
        if case.name in self.lacks:
            raise NotOfferedError
        return self.from_numpy(case.seen, case)

    def take(self, tensor: Tensor) -> Any:
        return self.from_dlpack(tensor) if self.host is None else self.ask_for_host(tensor, None)

    def ask_for_host(self, tensor: Tensor, copy: bool | None) -> Any:
        if self.host is None:
            raise NotOfferedError
        return self.from_dlpack(tensor, device=self.host, copy=copy)

    def take_on_host(self, array: OnHost) -> Any:
        return self.from_dlpack(array)

    def see(self, array: Any) -> Seen:
        return see_numpy(self.to_numpy(array))

    def give(self, array: Any, case: Case) -> Tensor:
        kind = case.usm_type or "device"
        return usm_dlpack.from_dlpack(array, device=(14, case.device_id), usm_type=kind)


class NumPy(OnHostConsumer):
    title = "NumPy"
    distribution = functions = "numpy"
    host = "cpu"

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        array = values.view()
        array.flags.writeable = not case.readonly and case.name != "broadcast"
        return array

    def to_numpy(self, array: Any) -> np.ndarray:
        return array


class PyTorch(OnHostConsumer):
    title = "PyTorch CPU"
    distribution = functions = "torch"
    host = "cpu"
    lacks = ("reversed", "read-only")
    dtypes = (
        *(*PLAIN_DTYPES, "bfloat16", "complex32", "float8_e4m3fn", "float8_e4m3fnuz"),
        *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
    )

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        array = self.namespace.from_numpy(values)
        if case.dtype in OTHER_DTYPES:
            return array.view(getattr(self.namespace, case.dtype))
        return array

    def take(self, tensor: Tensor) -> Any:
        is_capsule = not hasattr(tensor, "__dlpack__")
        return self.from_dlpack(tensor) if is_capsule else self.from_dlpack(tensor, device="cpu")

    def see(self, array: Any) -> Seen:
        raw = array.contiguous().reshape(-1).view(self.namespace.uint8).numpy().tobytes()
        dtype = str(array.dtype).removeprefix("torch.")
        return Seen(tuple(array.shape), dtype, raw, array.data_ptr(), False)


class Jax(OnHostConsumer):
    title = "JAX CPU"
    distribution = "jax"
    functions = "jax.dlpack"
    lacks = ("strided", "reversed", "broadcast", "read-only")
    dtypes = (*PLAIN_DTYPES, "bfloat16", *FLOAT8, "float4_e2m1fn")

    def __init__(self) -> None:
        super().__init__()
        self.jax = pkgutil.resolve_name("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.host = self.jax.devices("cpu")[0]

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        if case.dtype in OTHER_DTYPES:
            import ml_dtypes

            if case.dtype == "float4_e2m1fn":  # in ml_dtypes one to a byte
                values = np.stack([values & 15, values >> 4], axis=-1).reshape(-1)
            values = values.view(getattr(ml_dtypes, case.dtype))
        return self.jax.numpy.asarray(values).block_until_ready()

    def take(self, tensor: Tensor) -> Any:
        return self.from_dlpack(tensor)

    def see(self, array: Any) -> Seen:
        values = np.asarray(array)
        content = values.tobytes()
        if values.dtype.name == "float4_e2m1fn":
            pairs = values.view("u1").reshape(-1, 2)
            content = (pairs[:, 0] | pairs[:, 1] << 4).tobytes()
        # Its arrays are never written.
        return Seen(array.shape, values.dtype.name, content, array.unsafe_buffer_pointer(), True)


class ArrayApiStrict(OnHostConsumer):
    title = "array-api-strict"
    distribution = "array-api-strict"
    functions = "array_api_strict"
    lacks = ("read-only",)
    dtypes = tuple(name for name in PLAIN_DTYPES if name != "float16")

    def __init__(self) -> None:
        super().__init__()
        self.host = self.namespace.Device("CPU_DEVICE")

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        return self.namespace.asarray(values)


class PyArrow(OnHostConsumer):
    title = "pyarrow"
    distribution = "pyarrow"
    functions = "pyarrow:Tensor"
    host = (1, 0)
    lacks = ("reversed", "read-only")
    dtypes = tuple(n for n in PLAIN_DTYPES if n != "bool" and not n.startswith("complex"))

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        return self.namespace.from_numpy(values)

    def to_numpy(self, array: Any) -> np.ndarray:
        return array.to_numpy()


class Awkward(OnHostConsumer):
    """Its arrays have no ``__dlpack__``."""

    title = "awkward"
    distribution = functions = "awkward"

    def to_numpy(self, array: Any) -> np.ndarray:
        return array.layout.data


class DrJit(OnHostConsumer):
    """The tensors of its scalar backend, which compiles nothing."""

    title = "Dr.Jit"
    distribution = "drjit"
    functions = "drjit.scalar"
    lacks = Jax.lacks
    # How Dr.Jit ends the names of its types.
    names: ClassVar[dict[str, str]] = {
        "bool": "b",
        "int8": "i8",
        "int32": "i",
        "int64": "i64",
        "uint8": "u8",
        "uint32": "u",
        "uint64": "u64",
        "float16": "f16",
        "float32": "f",
        "float64": "f64",
    }
    dtypes = tuple(names)

    def from_dlpack(self, x: Any, **keywords: Any) -> Any:
        return self.tensor_of(x, (x.tensor if isinstance(x, OnHost) else x).dtype)

    def tensor_of(self, x: Any, dtype: np.dtype) -> Any:
        """Return a tensor of theirs."""
        return getattr(self.namespace, f"TensorX{self.names[dtype.name]}")(x)

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        return self.tensor_of(values, values.dtype)

    def to_numpy(self, array: Any) -> np.ndarray:
        return array.numpy()


class TensorFlow(OnHostConsumer):
    """It takes capsules alone, and its tensors are never written."""

    title = "TensorFlow CPU"
    distribution = "tensorflow-cpu"
    functions = "tensorflow"
    lacks = Jax.lacks

    def from_dlpack(self, x: Any, **keywords: Any) -> Any:
        where = {} if isinstance(x, OnHost) else {"dl_device": (1, 0)}
        return self.namespace.experimental.dlpack.from_dlpack(x.__dlpack__(**where))

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        return self.namespace.constant(values)

    def to_numpy(self, array: Any) -> np.ndarray:
        return np.asarray(array)


class Warp(OnHostConsumer):
    title = "Warp"
    distribution = "warp-lang"
    functions = "warp"
    lacks = ("0-d", "read-only")
    dtypes = PyArrow.dtypes

    def __init__(self) -> None:
        super().__init__()
        self.namespace.config.quiet = True

    def from_numpy(self, values: np.ndarray, case: Case) -> Any:
        return self.namespace.array(values, device="cpu", copy=False)

    def to_numpy(self, array: Any) -> np.ndarray:
        return array.numpy()


class Indirect(OnHostConsumer):
    """A library that does not take ours as they are, by another way."""

    def __init__(
        self, consumer: Consumer, way: str, prepare: Callable[[Any], Any], dtypes: tuple[str, ...]
    ) -> None:
        self.consumer = consumer
        self.prepare = prepare
        self.title = f"{consumer.title}, {way}"
        self.distribution = consumer.distribution
        self.dtypes = tuple(name for name in consumer.dtypes if name in dtypes)

    def take(self, tensor: Tensor) -> Any:
        return self.consumer.take(self.prepare(tensor))

    def take_on_host(self, array: OnHost) -> Any:
        raise NotOfferedError

    def see(self, array: Any) -> Seen:
        return self.consumer.see(array)


def through_numpy(consumer: Consumer) -> Consumer:
    """Return a library that takes arrays of NumPy that see our memory."""
    return Indirect(consumer, "through NumPy", NumPy().take, PLAIN_DTYPES)


def through_a_capsule(consumer: Consumer) -> Consumer:
    """Return a library that takes our capsules for the host."""
    place = {"dl_device": (1, 0), "max_version": (1, 0)}
    return Indirect(consumer, "through a capsule", lambda x: x.__dlpack__(**place), DTYPES)


class DlpackAlone:
    """A tensor of ours without its array interface, which some libraries look for first."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


def through_dlpack(consumer: Consumer) -> Consumer:
    """Return a library that takes our tensors by DLPack, and not by their array interface."""
    return Indirect(consumer, "through DLPack", DlpackAlone, consumer.dtypes)


class DescribesUsm(Consumer):
    """A library that describes USM and does not allocate it: what it hands out is in ours."""

    dtypes = DTYPES

    def see(self, array: Any) -> Seen:
        capsule = array.__dlpack__(max_version=(1, 3))
        content = content_of(capsule)
        tensor = content.dl_tensor
        return Seen(
            tuple(tensor.shape[: tensor.ndim]),
            name_of_dtype(tensor.code, tensor.bits, tensor.lanes),
            see_tensor(usm_dlpack.from_dlpack(array)).bytes,
            tensor.data + tensor.byte_offset,
            bool(getattr(content, "flags", 0) & READ_ONLY),
        )


class TvmFfi(DescribesUsm):
    title = "apache-tvm-ffi"
    distribution = "apache-tvm-ffi"

    def make(self, case: Case) -> Any:
        return self.take(make_tensor(case, "device"))

    def take(self, tensor: Tensor) -> Any:
        return importlib.import_module("tvm_ffi").from_dlpack(tensor)

    def see_on_host(self, array: Any) -> Seen:
        return see_numpy(np.from_dlpack(array))


class Nanobind(DescribesUsm):
    """An extension module with ``nb::ndarray<nb::device::oneapi>``."""

    title = "nanobind's nb::ndarray"
    distribution = "nanobind"

    def __init__(self) -> None:
        self.extension: Any = importlib.import_module("nanobind_consumer")

    def make(self, case: Case) -> Any:
        tensor = make_tensor(case, "device")
        hand_out = self.extension.hand_out_readonly if case.readonly else self.extension.hand_out
        place = (tensor.data, tensor.shape, tensor.strides)
        return hand_out(*place, dlpack_dtype(case.dtype), tensor.device[1], tensor)

    def take(self, tensor: Tensor) -> Any:
        try:
            return tensor, self.extension.describe(tensor), False
        except TypeError:  # an ndarray that may be written does not take read-only memory
            return tensor, self.extension.describe_readonly(tensor), True

    def see(self, array: Any) -> Seen:
        if not isinstance(array, tuple):
            return super().see(array)
        # What the extension says of ours, whose bytes it cannot read on the host.
        tensor, (address, shape, strides, dtype, device_id), readonly = array
        if (tensor.strides, tensor.device) != (tuple(strides), (14, device_id)):
            raise ValueError(f"strides {strides} on device {device_id}")
        bytes_ = see_tensor(tensor).bytes
        return Seen(tuple(shape), name_of_dtype(*dtype), bytes_, address, readonly)

    def take_on_host(self, array: OnHost) -> Any:
        return self.extension.keep_on_host(array)

    def see_on_host(self, array: Any) -> Seen:
        address, shape, strides, (code, bits, lanes), _ = array.describe()
        found = gather(address, shape, strides, bits * lanes)
        return Seen(tuple(shape), name_of_dtype(code, bits, lanes), found, address, True)


CONSUMERS: dict[str, tuple[Callable[[], Consumer], ...]] = {
    "dpctl-tensor": (
        lambda: UsmArrays("dpctl.tensor", "dpctl"),
        *(OneDal, lambda: through_dlpack(OneDal())),
    ),
    "dpnp": (lambda: UsmArrays("dpnp", "dpnp"), lambda: UsmArrays("dpnp.tensor", "dpnp")),
    "consumers": (
        *(TvmFfi, Nanobind, NumPy),
        *(PyTorch, lambda: through_a_capsule(PyTorch())),
        *(Jax, lambda: through_numpy(Jax())),
        *(ArrayApiStrict, lambda: through_numpy(ArrayApiStrict())),
        *(PyArrow, Awkward, DrJit),
    ),
    "extended": (TensorFlow, Warp),
}
