# SPDX-License-Identifier: Apache-2.0
"""The libraries of docs/consumers.md, and how each makes an array of a case and takes one of ours.

Each is imported only where it is asked for: no environment has all of them.
"""

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import usm_dlpack
from capsules import READ_ONLY, content_of
from consumer_cases import (
    CASES,
    DTYPES,
    OTHER_DTYPES,
    PLAIN_DTYPES,
    Case,
    Seen,
    bytes_of,
    make_tensor,
)
from usm_dlpack import _core

Tensor = usm_dlpack.DLPackTensor
# The cases of a library whose arrays are compact, and never read-only.
COMPACT_ONLY = ("strided", "reversed", "broadcast", "read-only")
NUMBERS = tuple(n for n in PLAIN_DTYPES if n != "bool" and not n.startswith("complex"))
FLOAT8 = tuple(name for name in OTHER_DTYPES if name.startswith("float8"))


class Exporter:
    """A tensor of ours with DLPack's methods alone; keywords are given in place of those asked."""

    def __init__(self, tensor: Tensor, **keywords: Any) -> None:
        self.tensor = tensor
        self.keywords = keywords

    def __dlpack__(self, **asked: Any) -> Any:
        return self.tensor.__dlpack__(**(self.keywords or asked))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.keywords.get("dl_device", self.tensor.__dlpack_device__())


class Consumer:
    """One library, which the page calls by `title` and the release of `distribution`."""

    title: str
    distribution: str
    # The module or class that has its ``from_dlpack``.
    namespace: Any
    dtypes: tuple[str, ...] = PLAIN_DTYPES
    # The cases that it makes no array of.
    lacks: tuple[str, ...] = ()
    # The kind of USM that a case is of that names none.
    usm_type = "device"
    # Whether it only takes tensors of ours.
    only_takes = False
    # What its ``from_dlpack`` calls the host, if it has such a keyword.
    host: Any = None

    @property
    def version(self) -> str:
        """The release, without what says how it was built."""
        version = importlib.metadata.version(self.distribution).partition("+")[0]
        return f"{self.distribution} {version}"

    def from_dlpack(self, x: Any, **keywords: Any) -> Any:
        return self.namespace.from_dlpack(x, **keywords)

    def make(self, case: Case) -> Any:
        """Return an array of theirs as a case says; one that only describes USM, over ours."""
        return self.take(make_tensor(case, "device"))

    def take(self, tensor: Tensor) -> Any:
        return self.from_dlpack(tensor)

    def see(self, array: Any) -> Seen:
        raise NotImplementedError

    def see_on_host(self, array: Any) -> Seen:
        return self.see(array)

    def give(self, array: Any, case: Case) -> Tensor:
        """Return what we make of an array of theirs."""
        return usm_dlpack.from_dlpack(array)


def see_numpy(array: np.ndarray) -> Seen:
    readonly = not array.flags.writeable
    return Seen(array.shape, array.dtype.name, array.tobytes(), array.ctypes.data, readonly)


def address_of(array: Any) -> int:
    """Return the address of an array of dpctl.tensor, or of dpnp, whose arrays hold one."""
    return int(getattr(array, "get_array", lambda: array)()._pointer)


class UsmArrays(Consumer):
    """dpctl.tensor and what became of it."""

    host = (1, 0)

    def __init__(self, title: str, distribution: str) -> None:
        self.title = title
        self.distribution = distribution
        self.namespace = importlib.import_module(title)

    def make(self, case: Case) -> Any:
        device = usm_dlpack.root_device(case.device_id)
        kind = case.usm_type or "device"
        array = self.namespace.asarray(case.values, usm_type=kind, device=device)
        if case.view is not None:
            array = case.view(self.namespace, array)
        if case.readonly:
            array.flags["W"] = False
        return array

    def see(self, array: Any) -> Seen:
        if isinstance(array, np.ndarray):
            return see_numpy(array)
        values, readonly = self.namespace.asnumpy(array), not array.flags.writable
        return Seen(array.shape, array.dtype.name, values.tobytes(), address_of(array), readonly)


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

    def from_dlpack(self, x: Any, **keywords: Any) -> Any:
        return self.backend.to_table(x, None)

    def see(self, array: Any) -> Seen:
        address, readonly = array.__sycl_usm_array_interface__["data"]
        content = bytes_of(usm_dlpack.from_dlpack(array))
        return Seen(tuple(array.shape), array.dtype.name, content, address, readonly)

    def see_on_host(self, array: Any) -> Seen:
        values = self.backend.from_table(array)  # a table tells no address
        return Seen(tuple(array.shape), array.dtype.name, values.tobytes(), 0, False)


class OnHost(Consumer):
    """A library whose arrays are in memory of the host."""

    usm_type = "shared"

    def __init__(
        self,
        title: str,
        functions: str,
        from_numpy: Callable[[Any, np.ndarray], Any] = lambda xp, values: xp.from_numpy(values),
        to_numpy: Callable[[Any], np.ndarray] = np.from_dlpack,
        **attributes: Any,
    ) -> None:
        """Say where its functions are, and how NumPy's arrays become theirs and theirs NumPy's."""
        self.title = self.distribution = title
        self.namespace = pkgutil.resolve_name(functions)
        self.from_numpy = from_numpy
        self.to_numpy = to_numpy
        vars(self).update(attributes)

    def make(self, case: Case) -> Any:
        values = case.seen.view()
        if case.readonly:
            values.flags.writeable = False
        return self.from_numpy(self.namespace, values)

    def take(self, tensor: Tensor) -> Any:
        keywords = {} if self.host is None else {"device": self.host}
        return self.from_dlpack(tensor, **keywords)

    def see(self, array: Any) -> Seen:
        return see_numpy(self.to_numpy(array))

    def give(self, array: Any, case: Case) -> Tensor:
        kind = case.usm_type or "device"
        return usm_dlpack.from_dlpack(array, device=(14, case.device_id), usm_type=kind)


class PyTorch(OnHost):
    """Its views of other dtypes are made here, and its bytes read as uint8."""

    lacks = ("reversed", "read-only")
    dtypes = (
        *(*PLAIN_DTYPES, "bfloat16", "complex32", "float8_e4m3fn", "float8_e4m3fnuz"),
        *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fnx2"),
    )

    def __init__(self) -> None:
        super().__init__("PyTorch CPU", "torch", distribution="torch", host="cpu")

    def make(self, case: Case) -> Any:
        array = self.namespace.from_numpy(case.seen)
        if case.dtype in OTHER_DTYPES:
            return array.view(getattr(self.namespace, case.dtype.replace("fnx2", "fn_x2")))
        return array

    def see(self, array: Any) -> Seen:
        raw = array.contiguous().reshape(-1).view(self.namespace.uint8).numpy().tobytes()
        dtype = str(array.dtype).removeprefix("torch.").replace("fn_x2", "fnx2")
        return Seen(tuple(array.shape), dtype, raw, array.data_ptr(), False)


class Jax(OnHost):
    """It takes its own device or none, and ml_dtypes have the other dtypes for it."""

    lacks = COMPACT_ONLY
    dtypes = (*PLAIN_DTYPES, "bfloat16", *FLOAT8, "float4_e2m1fn")

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        host = self.jax.devices("cpu")[0]
        super().__init__("JAX CPU", "jax.dlpack", distribution="jax", host=host)

    def make(self, case: Case) -> Any:
        values = case.seen
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


class DrJit(OnHost):
    """The tensors of its scalar backend, which compiles nothing, and has a class for each dtype."""

    lacks = COMPACT_ONLY
    dtypes = (
        *("bool", "int8", "int32", "int64", "uint8", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
    # How the names of its classes end.
    endings = ("b", "i8", "i", "i64", "u8", "u", "u64", "f16", "f", "f64")

    def __init__(self) -> None:
        super().__init__("Dr.Jit", "drjit.scalar", self.tensor_of, distribution="drjit")
        self.to_numpy = lambda array: array.numpy()

    def tensor_of(self, namespace: Any, values: Any) -> Any:
        dtype = getattr(values, "tensor", values).dtype
        ending = self.endings[self.dtypes.index(dtype.name)]
        return getattr(namespace, f"TensorX{ending}")(values)

    def from_dlpack(self, x: Any, **keywords: Any) -> Any:
        return self.tensor_of(self.namespace, x)


class TensorFlow(OnHost):
    """It takes capsules alone, and its tensors are never written."""

    def from_dlpack(self, x: Any, **keywords: Any) -> Any:
        return self.namespace.experimental.dlpack.from_dlpack(x.__dlpack__(dl_device=(1, 0)))


class DescribesUsm(Consumer):
    """A library that describes USM and does not allocate it: what it hands out is in ours."""

    dtypes = DTYPES

    def __init__(self, title: str, distribution: str, module: str) -> None:
        self.title = title
        self.distribution = distribution
        self.namespace = importlib.import_module(module)

    def see(self, array: Any) -> Seen:
        content = content_of(array.__dlpack__(max_version=(1, 3)))
        tensor = content.dl_tensor
        return Seen(
            tuple(tensor.shape[: tensor.ndim]),
            _core.dtype_name(tensor.code, tensor.bits, tensor.lanes),
            bytes_of(usm_dlpack.from_dlpack(array)),
            tensor.data + tensor.byte_offset,
            bool(getattr(content, "flags", 0) & READ_ONLY),
        )

    def see_on_host(self, array: Any) -> Seen:
        return see_numpy(np.from_dlpack(array))


def by_way_of(consumer: Consumer, way: str, prepare: Callable[[Any], Any]) -> Consumer:
    """Return a library that does not take ours as they are, and takes what is made of them."""
    consumer.title += f", {way}"
    if prepare is array_of:
        consumer.dtypes = tuple(name for name in consumer.dtypes if name in PLAIN_DTYPES)
    consumer.only_takes = True
    consumer.take = lambda tensor: consumer.from_dlpack(prepare(tensor))
    return consumer


def array_of(tensor: Tensor) -> np.ndarray:
    """Return an array of NumPy, which sees our memory."""
    return np.from_dlpack(tensor, device="cpu")


def capsule_of(tensor: Tensor) -> Any:
    return tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0))


def numpy() -> Consumer:
    same = (lambda _, values: values, lambda array: array)
    return OnHost("NumPy", "numpy", *same, distribution="numpy", host="cpu")


def array_api_strict() -> Consumer:
    """Return array-api-strict, whose devices are objects."""
    consumer = OnHost("array-api-strict", "array_api_strict", lambda xp, values: xp.asarray(values))
    consumer.host = consumer.namespace.Device("CPU_DEVICE")
    consumer.lacks = ("read-only",)
    consumer.dtypes = tuple(name for name in PLAIN_DTYPES if name != "float16")
    return consumer


def pyarrow() -> Consumer:
    """Return pyarrow, which has no negative strides."""
    consumer = OnHost("pyarrow", "pyarrow:Tensor", host=(1, 0), dtypes=NUMBERS)
    consumer.to_numpy = lambda array: array.to_numpy()
    consumer.lacks = ("reversed", "read-only")
    return consumer


def awkward() -> Consumer:
    """Return awkward, whose arrays have no ``__dlpack__``."""
    consumer = OnHost("awkward", "awkward", lacks=tuple(case.name for case in CASES))
    consumer.to_numpy = lambda array: array.layout.data
    return consumer


def tensorflow() -> Consumer:
    ways = (lambda tf, values: tf.constant(values), np.asarray)
    wheel = "tensorflow-cpu"
    return TensorFlow("TensorFlow CPU", "tensorflow", *ways, distribution=wheel, lacks=COMPACT_ONLY)


def warp() -> Consumer:
    consumer = OnHost("Warp", "warp", distribution="warp-lang", dtypes=NUMBERS)
    consumer.from_numpy = lambda wp, values: wp.array(values, device="cpu", copy=False)
    consumer.to_numpy = lambda array: array.numpy()
    consumer.lacks = ("0-d", "read-only")
    return consumer


CONSUMERS: dict[str, tuple[Callable[[], Consumer], ...]] = {
    "dpctl-tensor": (
        lambda: UsmArrays("dpctl.tensor", "dpctl"),
        # It looks for the array interface first, which an Exporter has not.
        *(OneDal, lambda: by_way_of(OneDal(), "through DLPack", Exporter)),
    ),
    "dpnp": (lambda: UsmArrays("dpnp", "dpnp"), lambda: UsmArrays("dpnp.tensor", "dpnp")),
    "consumers": (
        lambda: DescribesUsm("apache-tvm-ffi", "apache-tvm-ffi", "tvm_ffi"),
        # An extension module of ours, with functions of ``nb::ndarray<nb::device::oneapi>``.
        lambda: DescribesUsm("nanobind's nb::ndarray", "nanobind", "nanobind_consumer"),
        numpy,
        *(PyTorch, lambda: by_way_of(PyTorch(), "through a capsule", capsule_of)),
        *(Jax, lambda: by_way_of(Jax(), "through NumPy", array_of)),
        *(array_api_strict, lambda: by_way_of(array_api_strict(), "through NumPy", array_of)),
        *(pyarrow, awkward, DrJit),
    ),
    "extended": (tensorflow, warp),
}
