# SPDX-License-Identifier: Apache-2.0
"""The libraries of docs/consumers.md, and how each makes an array of a case and takes one of ours.

Each is imported only where it is asked for: no environment has all of them. A method that a library
has no counterpart of raises `NotOfferedError`, and its cell stays empty.
"""

from __future__ import annotations

import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import usm_dlpack
from consumer_cases import (
    DTYPES,
    OTHER_DTYPES,
    PLAIN_DTYPES,
    Case,
    NotOfferedError,
    OnHost,
    Seen,
    dlpack_dtype,
    flags_of,
    gather,
    make_tensor,
    name_of_dtype,
    queue_of,
    see_tensor,
)
from peers import load_peer
from usm_here import described

READ_ONLY = 1
# How Dr.Jit ends the names of its types.
DRJIT_NAMES = {
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


class Consumer(ABC):
    """One library.

    Attributes
    ----------
    title
        What the page calls it.
    distribution
        The package whose release the page names.
    on_host
        Whether its arrays are in host memory.
    dtypes
        The element types that it has.
    usm_type
        The kind of USM that a case is of that names none.
    """

    title: str
    distribution: str
    on_host = False
    dtypes: tuple[str, ...] = PLAIN_DTYPES
    usm_type = "device"

    @property
    def version(self) -> str:
        """The release, without what says how it was built."""
        version = importlib.metadata.version(self.distribution).partition("+")[0]
        return f"{self.distribution} {version}"

    @abstractmethod
    def make(self, case: Case) -> Any:
        """Return an array of theirs as a case says."""

    @abstractmethod
    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        """Return what they make of a tensor of ours."""

    @abstractmethod
    def see(self, array: Any) -> Seen:
        """Return what they say of an array of theirs."""

    def take_on_host(self, array: OnHost) -> Any:
        """Return what they make of memory of the host."""
        raise NotOfferedError

    def ask_for_host(self, tensor: usm_dlpack.DLPackTensor, copy: bool | None) -> Any:
        """Return what a keyword of theirs for the host makes of a tensor of ours."""
        raise NotOfferedError

    def see_on_host(self, array: Any) -> Seen:
        """Return what they say of an array in memory of the host."""
        return self.see(array)

    def give(self, array: Any, case: Case) -> usm_dlpack.DLPackTensor:
        """Return what we make of an array of theirs."""
        if not self.on_host:
            return usm_dlpack.from_dlpack(array)
        kind = case.usm_type or "device"
        return usm_dlpack.from_dlpack(array, device=(14, case.device_id), usm_type=kind)


class UsmArrays(Consumer):
    """dpctl.tensor and what became of it."""

    def __init__(self, title: str, name: str, distribution: str) -> None:
        self.title = title
        self.distribution = distribution
        self.peer = load_peer(name)

    def make(self, case: Case) -> Any:
        place = {"usm_type": case.usm_type or "device", "sycl_queue": queue_of(case.device_id)}
        array = self.peer.from_numpy(case.values, **place)
        if case.view is not None:
            array = case.view(self.peer.namespace, array)
        if case.readonly:
            self.peer.set_readonly(array)
        return array

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.peer.namespace.from_dlpack(tensor)

    def take_on_host(self, array: OnHost) -> Any:
        return self.peer.namespace.from_dlpack(array)

    def ask_for_host(self, tensor: usm_dlpack.DLPackTensor, copy: bool | None) -> Any:
        return self.peer.namespace.from_dlpack(tensor, device=(1, 0), copy=copy)

    def see_on_host(self, array: Any) -> Seen:
        return NumPy().see(array) if isinstance(array, np.ndarray) else self.see(array)

    def see(self, array: Any) -> Seen:
        return Seen(
            tuple(array.shape),
            array.dtype.name,
            self.peer.to_numpy(array).tobytes(),
            self.peer.address(array),
            not array.flags.writable,
        )


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

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.backend.to_table(tensor, None)

    def see(self, array: Any) -> Seen:
        interface = array.__sycl_usm_array_interface__
        address, readonly = interface["data"]
        found = see_tensor(usm_dlpack.from_dlpack(array))
        return Seen(tuple(array.shape), array.dtype.name, found.bytes, address, readonly)

    def take_on_host(self, array: OnHost) -> Any:
        return self.backend.to_table(array, None)

    def see_on_host(self, array: Any) -> Seen:
        tensor = described(array.__dlpack__())
        values = self.backend.from_table(array)
        address = tensor.data + tensor.byte_offset
        return Seen(tuple(array.shape), array.dtype.name, values.tobytes(), address, False)


class NumPy(Consumer):
    title = "NumPy"
    distribution = "numpy"
    on_host = True
    usm_type = "shared"

    def make(self, case: Case) -> Any:
        if case.dtype in OTHER_DTYPES:
            raise NotOfferedError
        array = case.seen.view()
        array.flags.writeable = not case.readonly and case.name != "broadcast"
        return array

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return np.from_dlpack(tensor, device="cpu")

    def take_on_host(self, array: OnHost) -> Any:
        return np.from_dlpack(array)

    def ask_for_host(self, tensor: usm_dlpack.DLPackTensor, copy: bool | None) -> Any:
        return np.from_dlpack(tensor, device="cpu", copy=copy)

    def see(self, array: Any) -> Seen:
        return Seen(
            array.shape,
            array.dtype.name,
            array.tobytes(),
            array.ctypes.data,
            not array.flags.writeable,
        )


class PyTorch(Consumer):
    title = "PyTorch CPU"
    distribution = "torch"
    on_host = True
    usm_type = "shared"
    dtypes = (
        *PLAIN_DTYPES,
        *("bfloat16", "complex32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
        *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
    )

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.names = {getattr(torch, name): name for name in self.dtypes}

    def make(self, case: Case) -> Any:
        if case.name in ("reversed", "read-only"):
            raise NotOfferedError
        array = self.torch.from_numpy(case.values.copy())
        if case.dtype in OTHER_DTYPES:
            array = array.view(getattr(self.torch, case.dtype))
        return array if case.view is None else case.view(self.torch, array)

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        if not hasattr(tensor, "__dlpack__"):  # a capsule
            return self.torch.from_dlpack(tensor)
        return self.torch.from_dlpack(tensor, device="cpu")

    def take_on_host(self, array: OnHost) -> Any:
        return self.torch.from_dlpack(array)

    def ask_for_host(self, tensor: usm_dlpack.DLPackTensor, copy: bool | None) -> Any:
        return self.torch.from_dlpack(tensor, device="cpu", copy=copy)

    def see(self, array: Any) -> Seen:
        raw = array.contiguous().reshape(-1).view(self.torch.uint8).numpy()
        return Seen(
            tuple(array.shape), self.names[array.dtype], raw.tobytes(), array.data_ptr(), False
        )


class Jax(Consumer):
    title = "JAX CPU"
    distribution = "jax"
    on_host = True
    usm_type = "shared"
    dtypes = (
        *(*PLAIN_DTYPES, "bfloat16", "float4_e2m1fn"),
        *(name for name in OTHER_DTYPES if name.startswith("float8")),
    )

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax

    def make(self, case: Case) -> Any:
        if case.view is not None or case.readonly:
            raise NotOfferedError
        values = case.values
        if case.dtype in OTHER_DTYPES:
            import ml_dtypes

            if case.dtype == "float4_e2m1fn":  # in ml_dtypes one to a byte
                values = np.stack([values & 15, values >> 4], axis=-1).reshape(-1)
            values = values.view(getattr(ml_dtypes, case.dtype))
        return self.jax.numpy.asarray(values).block_until_ready()

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.jax.dlpack.from_dlpack(tensor)

    def take_on_host(self, array: OnHost) -> Any:
        return self.jax.dlpack.from_dlpack(array)

    def ask_for_host(self, tensor: usm_dlpack.DLPackTensor, copy: bool | None) -> Any:
        cpu = self.jax.devices("cpu")[0]
        return self.jax.dlpack.from_dlpack(tensor, device=cpu, copy=copy)

    def see(self, array: Any) -> Seen:
        values = np.asarray(array)
        content = values.tobytes()
        if values.dtype.name == "float4_e2m1fn":
            pairs = values.view("u1").reshape(-1, 2)
            content = (pairs[:, 0] | pairs[:, 1] << 4).tobytes()
        # Its arrays are never written.
        return Seen(array.shape, values.dtype.name, content, array.unsafe_buffer_pointer(), True)


class ArrayApiStrict(Consumer):
    title = "array-api-strict"
    distribution = "array-api-strict"
    on_host = True
    usm_type = "shared"
    dtypes = tuple(name for name in PLAIN_DTYPES if name != "float16")

    def __init__(self) -> None:
        import array_api_strict

        self.namespace = array_api_strict
        self.numpy = NumPy()

    def make(self, case: Case) -> Any:
        if case.readonly:
            raise NotOfferedError
        array = self.namespace.asarray(case.values.copy())
        return array if case.view is None else case.view(self.namespace, array)

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.ask_for_host(tensor, None)

    def take_on_host(self, array: OnHost) -> Any:
        return self.namespace.from_dlpack(array)

    def ask_for_host(self, tensor: usm_dlpack.DLPackTensor, copy: bool | None) -> Any:
        device = self.namespace.Device("CPU_DEVICE")
        return self.namespace.from_dlpack(tensor, device=device, copy=copy)

    def see(self, array: Any) -> Seen:
        return self.numpy.see(np.from_dlpack(array))


class PyArrow(Consumer):
    title = "pyarrow"
    distribution = "pyarrow"
    on_host = True
    usm_type = "shared"
    dtypes = tuple(n for n in PLAIN_DTYPES if n != "bool" and not n.startswith("complex"))

    def __init__(self) -> None:
        import pyarrow

        self.namespace = pyarrow.Tensor
        self.numpy = NumPy()

    def make(self, case: Case) -> Any:
        if case.name in ("reversed", "read-only"):
            raise NotOfferedError
        return self.namespace.from_numpy(case.seen)

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.ask_for_host(tensor, None)

    def take_on_host(self, array: OnHost) -> Any:
        return self.namespace.from_dlpack(array)

    def ask_for_host(self, tensor: usm_dlpack.DLPackTensor, copy: bool | None) -> Any:
        return self.namespace.from_dlpack(tensor, device=(1, 0), copy=copy)

    def see(self, array: Any) -> Seen:
        return self.numpy.see(array.to_numpy())


class Awkward(Consumer):
    """Its arrays have no ``__dlpack__``."""

    title = "awkward"
    distribution = "awkward"
    on_host = True
    usm_type = "shared"

    def __init__(self) -> None:
        import awkward

        self.namespace = awkward
        self.numpy = NumPy()

    def make(self, case: Case) -> Any:
        raise NotOfferedError

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.namespace.from_dlpack(tensor)

    def take_on_host(self, array: OnHost) -> Any:
        return self.namespace.from_dlpack(array)

    def see(self, array: Any) -> Seen:
        return self.numpy.see(array.layout.data)


class DrJit(Consumer):
    """The tensors of its scalar backend, which compiles nothing."""

    title = "Dr.Jit"
    distribution = "drjit"
    on_host = True
    usm_type = "shared"
    dtypes = tuple(DRJIT_NAMES)

    def __init__(self) -> None:
        import drjit.scalar

        self.namespace = drjit.scalar
        self.numpy = NumPy()

    def tensor_of(self, array: Any, dtype: np.dtype) -> Any:
        return getattr(self.namespace, f"TensorX{DRJIT_NAMES[dtype.name]}")(array)

    def make(self, case: Case) -> Any:
        if case.view is not None or case.readonly:
            raise NotOfferedError
        return self.tensor_of(case.values, case.values.dtype)

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.tensor_of(tensor, tensor.dtype)

    def take_on_host(self, array: OnHost) -> Any:
        return self.tensor_of(array, array.tensor.dtype)

    def see(self, array: Any) -> Seen:
        return self.numpy.see(array.numpy())


class TensorFlow(Consumer):
    """It takes capsules alone, and its tensors are never written."""

    title = "TensorFlow CPU"
    distribution = "tensorflow-cpu"
    on_host = True
    usm_type = "shared"

    def __init__(self) -> None:
        import tensorflow

        self.namespace = tensorflow
        self.from_dlpack = tensorflow.experimental.dlpack.from_dlpack

    def make(self, case: Case) -> Any:
        if case.view is not None or case.readonly:
            raise NotOfferedError
        return self.namespace.constant(case.values)

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.from_dlpack(tensor.__dlpack__(dl_device=(1, 0)))

    def take_on_host(self, array: OnHost) -> Any:
        return self.from_dlpack(array.__dlpack__())

    def see(self, array: Any) -> Seen:
        values = np.asarray(array)
        return Seen(
            tuple(array.shape), array.dtype.name, values.tobytes(), values.ctypes.data, True
        )


class Warp(Consumer):
    title = "Warp"
    distribution = "warp-lang"
    on_host = True
    usm_type = "shared"
    dtypes = PyArrow.dtypes

    def __init__(self) -> None:
        import warp

        warp.config.quiet = True
        self.namespace = warp

    def make(self, case: Case) -> Any:
        if case.shape == () or case.readonly:
            raise NotOfferedError
        return self.namespace.array(case.seen, device="cpu", copy=False)

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.namespace.from_dlpack(tensor)

    def take_on_host(self, array: OnHost) -> Any:
        return self.namespace.from_dlpack(array)

    def see(self, array: Any) -> Seen:
        values = array.numpy()
        return Seen(array.shape, values.dtype.name, values.tobytes(), array.ptr or 0, False)


class Indirect(Consumer):
    """A library that does not take ours as they are, by another way."""

    on_host = True
    usm_type = "shared"

    def __init__(
        self, consumer: Consumer, way: str, prepare: Callable[[Any], Any], dtypes: tuple[str, ...]
    ) -> None:
        self.consumer = consumer
        self.prepare = prepare
        self.title = f"{consumer.title}, {way}"
        self.distribution = consumer.distribution
        self.dtypes = tuple(name for name in consumer.dtypes if name in dtypes)

    def make(self, case: Case) -> Any:
        raise NotOfferedError

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.consumer.take(self.prepare(tensor))

    def see(self, array: Any) -> Seen:
        return self.consumer.see(array)


def through_numpy(consumer: Consumer) -> Consumer:
    """Return a library that takes arrays of NumPy that see our memory."""

    def prepare(tensor: usm_dlpack.DLPackTensor) -> Any:
        return np.from_dlpack(tensor, device="cpu")

    return Indirect(consumer, "through NumPy", prepare, PLAIN_DTYPES)


def through_a_capsule(consumer: Consumer) -> Consumer:
    """Return a library that takes our capsules for the host."""

    def prepare(tensor: usm_dlpack.DLPackTensor) -> Any:
        return tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0))

    return Indirect(consumer, "through a capsule", prepare, DTYPES)


class DlpackAlone:
    """A tensor of ours without its array interface, which some libraries look for first."""

    def __init__(self, tensor: usm_dlpack.DLPackTensor) -> None:
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
        tensor = described(capsule)
        code, bits, low, high = tensor.dtype
        return Seen(
            tuple(tensor.shape[: tensor.ndim]),
            name_of_dtype(code, bits, low + high * 256),
            see_tensor(usm_dlpack.from_dlpack(array)).bytes,
            tensor.data + tensor.byte_offset,
            bool(flags_of(capsule) & READ_ONLY),
        )


class TvmFfi(DescribesUsm):
    title = "apache-tvm-ffi"
    distribution = "apache-tvm-ffi"

    def __init__(self) -> None:
        import tvm_ffi

        self.namespace = tvm_ffi

    def make(self, case: Case) -> Any:
        return self.take(make_tensor(case, "device"))

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
        return self.namespace.from_dlpack(tensor)

    def take_on_host(self, array: OnHost) -> Any:
        return self.namespace.from_dlpack(array)

    def see_on_host(self, array: Any) -> Seen:
        return NumPy().see(np.from_dlpack(array))


class Nanobind(DescribesUsm):
    """An extension module with ``nb::ndarray<nb::device::oneapi>``."""

    title = "nanobind's nb::ndarray"
    distribution = "nanobind"

    def __init__(self) -> None:
        import nanobind_consumer

        self.extension = nanobind_consumer

    def make(self, case: Case) -> Any:
        tensor = make_tensor(case, "device")
        hand_out = self.extension.hand_out_readonly if case.readonly else self.extension.hand_out
        place = (tensor.data, tensor.shape, tensor.strides)
        dtype = dlpack_dtype(case.dtype)
        return hand_out(*place, dtype, tensor.device[1], tensor)

    def take(self, tensor: usm_dlpack.DLPackTensor) -> Any:
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
        name = name_of_dtype(*dtype)
        return Seen(tuple(shape), name, see_tensor(tensor).bytes, address, readonly)

    def take_on_host(self, array: OnHost) -> Any:
        return self.extension.keep_on_host(array)

    def see_on_host(self, array: Any) -> Seen:
        address, shape, strides, dtype, _ = array.describe()
        code, bits, lanes = dtype
        found = gather(address, shape, strides, bits * lanes)
        return Seen(tuple(shape), name_of_dtype(code, bits, lanes), found, address, True)


CONSUMERS: dict[str, tuple[Callable[[], Consumer], ...]] = {
    "dpctl-tensor": (
        lambda: UsmArrays("dpctl.tensor", "dpctl.tensor", "dpctl"),
        OneDal,
        lambda: through_dlpack(OneDal()),
    ),
    "dpnp": (
        lambda: UsmArrays("dpnp", "dpnp", "dpnp"),
        lambda: UsmArrays("dpnp.tensor", "dpnp.tensor", "dpnp"),
    ),
    "consumers": (
        *(TvmFfi, Nanobind, NumPy),
        *(PyTorch, lambda: through_a_capsule(PyTorch())),
        *(Jax, lambda: through_numpy(Jax())),
        *(ArrayApiStrict, lambda: through_numpy(ArrayApiStrict())),
        *(PyArrow, Awkward, DrJit),
    ),
    "extended": (TensorFlow, Warp),
}
