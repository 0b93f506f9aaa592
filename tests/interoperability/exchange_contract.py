# SPDX-License-Identifier: Apache-2.0
"""What holds between this package and any library of USM arrays, in both directions.

`ExchangeContract` is a set of tests; a test file makes a class of it for each kind of array.
"Ours" are tensors of this package, "theirs" are arrays of the peer.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import dpctl
import dpctl.memory
import numpy as np
import pytest
import usm_dlpack
from peers import Peer
from usm_here import (
    USM_TYPES,
    HeldCapsule,
    MemoryOwner,
    OldProducer,
    allocate,
    default_queue,
    described,
    foreign_queue,
    launch,
    make_tensor,
    make_view,
    name_of,
    read,
    write,
)

HERE = Path(__file__).parent
DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
GRID = np.arange(24, dtype="i4").reshape(4, 6)

# Each takes a namespace (NumPy or the peer's) and an array of 4 x 6.
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "column": lambda xp, a: a[:, 2],
    "last_row": lambda xp, a: a[3],
    "block": lambda xp, a: a[1:3, 2:5],
    "every_other": lambda xp, a: a[1::2, ::3],
    "rows_reversed_odd_columns": lambda xp, a: a[::-1, 1::2],
    "all_reversed": lambda xp, a: a[::-1, ::-1],
    "columns_reversed_in_steps": lambda xp, a: a[1:, 4::-2],
    "last_element": lambda xp, a: a[3:, 5:],
    "transposed": lambda xp, a: a.T,
    "transposed_block": lambda xp, a: a[2:, 1:].T,
    "new_dimension": lambda xp, a: a[:, None, ::3],
    "repeated_row": lambda xp, a: xp.broadcast_to(a[1], (3, 6)),
}
# __dlpack__(max_version=...): a legacy capsule for the first two.
MAX_VERSIONS = (None, (0, 8), (1, 0), (1, 3))


def capsule_name(max_version: tuple[int, int] | None) -> str:
    """Return the name of the capsule that ``__dlpack__`` then makes."""
    versioned = max_version is not None and max_version[0] >= 1
    return "dltensor_versioned" if versioned else "dltensor"


def run_python(*arguments: str | Path, **variables: str) -> str:
    """Run Python in a process of its own, and return what it printed."""
    # This package has set the variable in this process.
    inherited = {k: v for k, v in os.environ.items() if k != "OCL_ICD_FILENAMES"}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


class ExchangeContract:
    """The tests; a subclass says with which peer, and where that one does otherwise."""

    peer: ClassVar[Peer]
    # The name to import in a new process.
    peer_name: ClassVar[str]

    def make_theirs(self, values: np.ndarray, usm_type: str = "device") -> Any:
        return self.peer.from_numpy(values, usm_type=usm_type)

    def from_ours(self, tensor: Any, **keywords: Any) -> Any:
        return self.peer.namespace.from_dlpack(tensor, **keywords)

    # Ours to theirs

    @pytest.mark.parametrize("usm_type", USM_TYPES)
    def test_ours_is_taken_without_a_copy(self, usm_type: str) -> None:
        ours = make_tensor(GRID, usm_type)
        theirs = self.from_ours(ours)
        assert isinstance(theirs, self.peer.ndarray)
        assert self.peer.address(theirs) == ours.data
        assert theirs.shape == ours.shape
        assert self.peer.strides(theirs) == ours.strides
        assert theirs.dtype == ours.dtype
        assert theirs.usm_type == usm_type
        assert theirs.sycl_device == ours.sycl_device
        assert theirs.sycl_context == ours.sycl_context
        assert theirs.flags.writable
        assert (self.peer.to_numpy(theirs) == GRID).all()

    @pytest.mark.parametrize("usm_type", USM_TYPES)
    def test_after_an_export_each_side_sees_what_the_other_writes(self, usm_type: str) -> None:
        ours = make_tensor(GRID, usm_type)
        theirs = self.from_ours(ours)
        write(ours, GRID + 100)
        assert (self.peer.to_numpy(theirs) == GRID + 100).all()
        theirs[...] = self.make_theirs(GRID * 2)
        theirs.sycl_queue.wait()
        assert (read(ours) == GRID * 2).all()

    @pytest.mark.parametrize("max_version", MAX_VERSIONS)
    def test_our_bare_capsule_is_taken_once(self, max_version: tuple[int, int] | None) -> None:
        ours = make_tensor(GRID)
        capsule = ours.__dlpack__(max_version=max_version)
        assert name_of(capsule) == capsule_name(max_version)
        theirs = self.peer.capsules.from_dlpack_capsule(capsule)
        assert name_of(capsule) == "used_" + capsule_name(max_version)
        assert theirs._pointer == ours.data
        assert (self.peer.to_numpy(theirs) == GRID).all()
        with pytest.raises(ValueError, match="consumed multiple times"):
            self.peer.capsules.from_dlpack_capsule(capsule)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_our_dtype_arrives(self, dtype: str) -> None:
        values = np.arange(-3, 9).astype(dtype)
        theirs = self.from_ours(make_tensor(values))
        assert theirs.dtype == values.dtype
        assert (self.peer.to_numpy(theirs) == values).all()

    @pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", (2, 32, 4)])
    def test_our_dtype_that_they_lack_is_refused_and_released(self, dtype: Any) -> None:
        owner = MemoryOwner(allocate(GRID))
        gone = weakref.ref(owner)
        ours = usm_dlpack.to_dlpack_tensor(owner, dtype=dtype)
        with pytest.raises(BufferError, match="Can not import DLPack tensor"):
            self.from_ours(ours)
        del ours, owner
        gc.collect()
        assert gone() is None

    @pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
    def test_our_view_keeps_its_elements(self, view: Callable[[Any, Any], Any]) -> None:
        expected = view(np, GRID)
        ours = make_view(GRID, expected)
        for max_version in MAX_VERSIONS:
            capsule = ours.__dlpack__(max_version=max_version)
            theirs = self.peer.capsules.from_dlpack_capsule(capsule)
            assert theirs._pointer == ours.data
            assert theirs.shape == expected.shape
            assert theirs.strides == ours.strides
            assert (self.peer.to_numpy(theirs) == expected).all()

    def test_our_view_written_by_them_leaves_the_rest_alone(self) -> None:
        memory = allocate(GRID)
        ours = usm_dlpack.to_dlpack_tensor(
            memory, shape=(4, 3), dtype="i4", strides=(-6, 2), byte_offset=19 * 4
        )
        theirs = self.from_ours(ours)
        theirs[...] = -1
        theirs.sycl_queue.wait()
        expected = GRID.copy()
        expected[::-1, 1::2] = -1
        assert (memory.copy_to_host().view("i4") == expected.reshape(-1)).all()

    @pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)])
    def test_our_empty_tensor_keeps_shape_and_pointer(self, shape: tuple[int, ...]) -> None:
        ours = usm_dlpack.to_dlpack_tensor(allocate(GRID), shape=shape, dtype="f4")
        theirs = self.from_ours(ours)
        assert theirs.shape == shape
        assert theirs.dtype == np.float32
        assert self.peer.address(theirs) == ours.data != 0

    def test_size_0_without_memory_is_refused_by_them(self) -> None:
        # A defect of theirs: DLPack says that data should be null for size 0. So ours keeps a
        # live pointer wherever there is one.
        owner = MemoryOwner(allocate(GRID))
        interface = owner.__sycl_usm_array_interface__
        owner.__sycl_usm_array_interface__ = interface | {"data": (0, False), "shape": (0,)}
        ours = usm_dlpack.to_dlpack_tensor(owner)
        assert ours.data == 0
        with pytest.raises(TypeError, match="__cinit__"):
            self.from_ours(ours)

    def test_our_0d_tensor_is_taken(self) -> None:
        theirs = self.from_ours(make_tensor(np.array(2.5, "f4")))
        assert theirs.shape == ()
        assert self.peer.to_numpy(theirs) == 2.5

    def test_our_readonly_tensor_stays_readonly(self) -> None:
        array = self.make_theirs(GRID)
        self.peer.set_readonly(array)
        ours = usm_dlpack.to_dlpack_tensor(array)
        assert ours.readonly
        theirs = self.from_ours(ours)
        assert not theirs.flags.writable
        with pytest.raises(ValueError, match="read-only"):
            theirs[...] = 0
        with pytest.raises(usm_dlpack.ConversionError, match="legacy") as refused:
            self.from_ours(OldProducer(ours))
        assert refused.value.code == "read_only"

    def test_our_old_wrapper_is_taken_by_legacy_capsule(self) -> None:
        ours = make_tensor(GRID)
        theirs = self.from_ours(OldProducer(ours))
        assert self.peer.address(theirs) == ours.data

    def test_their_keywords_are_answered(self) -> None:
        ours = make_tensor(GRID)
        for keywords in (
            {"copy": False},
            {"device": ours.device},
            {"device": ours.sycl_device},
            {"device": default_queue()},
        ):
            assert self.peer.address(self.from_ours(ours, **keywords)) == ours.data
        copied = self.from_ours(ours, copy=True)
        assert self.peer.address(copied) != ours.data
        assert copied.usm_type == "device"
        assert (self.peer.to_numpy(copied) == GRID).all()
        on_host = self.from_ours(ours, device=(1, 0))
        assert isinstance(on_host, np.ndarray)
        assert (on_host == GRID).all()

    # Theirs to ours

    @pytest.mark.parametrize("usm_type", USM_TYPES)
    def test_theirs_is_taken_without_a_copy(self, usm_type: str) -> None:
        theirs = self.make_theirs(GRID, usm_type)
        ours = usm_dlpack.from_dlpack(theirs)
        assert ours.data == self.peer.address(theirs)
        assert ours.shape == theirs.shape
        assert ours.strides == self.peer.strides(theirs)
        assert ours.dtype == theirs.dtype
        assert ours.usm_type == usm_type
        assert ours.sycl_device == theirs.sycl_device
        assert ours.sycl_context == theirs.sycl_context
        assert ours.device == theirs.__dlpack_device__()
        assert not ours.readonly
        assert (read(ours) == GRID).all()

    @pytest.mark.parametrize("usm_type", USM_TYPES)
    def test_after_an_import_each_side_sees_what_the_other_writes(self, usm_type: str) -> None:
        theirs = self.make_theirs(GRID, usm_type)
        ours = usm_dlpack.from_dlpack(theirs)
        theirs += 100
        theirs.sycl_queue.wait()
        assert (read(ours) == GRID + 100).all()
        write(ours, GRID * 2)
        assert (self.peer.to_numpy(theirs) == GRID * 2).all()

    @pytest.mark.parametrize("max_version", MAX_VERSIONS)
    def test_their_bare_capsule_is_validated_and_then_taken_once(
        self, max_version: tuple[int, int] | None
    ) -> None:
        theirs = self.make_theirs(GRID)
        capsule = theirs.__dlpack__(max_version=max_version)
        assert name_of(capsule) == capsule_name(max_version)
        assert usm_dlpack.validate(capsule).data == self.peer.address(theirs)
        assert name_of(capsule) == capsule_name(max_version)
        producer = HeldCapsule(capsule)
        ours = usm_dlpack.from_dlpack(producer)
        assert name_of(capsule) == "used_" + capsule_name(max_version)
        assert ours.data == self.peer.address(theirs)
        with pytest.raises(usm_dlpack.ConversionError) as refused:
            usm_dlpack.validate(capsule)
        assert refused.value.code == "capsule_unusable"

    def test_they_are_asked_for_a_versioned_capsule(self) -> None:
        theirs = self.make_theirs(GRID)
        self.peer.set_readonly(theirs)
        assert usm_dlpack.from_dlpack(theirs).readonly  # a legacy capsule cannot say so

    def test_their_old_wrapper_is_taken_by_legacy_capsule(self) -> None:
        theirs = self.make_theirs(GRID)
        assert usm_dlpack.from_dlpack(OldProducer(theirs)).data == self.peer.address(theirs)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_their_dtype_arrives(self, dtype: str) -> None:
        values = np.arange(-3, 9).astype(dtype)
        theirs = self.make_theirs(values)
        for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor):
            ours = take(theirs)
            assert ours.dtype == values.dtype
            assert (read(ours) == values).all()

    @pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
    def test_their_view_keeps_its_elements(self, view: Callable[[Any, Any], Any]) -> None:
        theirs = view(self.peer.namespace, self.make_theirs(GRID))
        expected = view(np, GRID)
        for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor):
            ours = take(theirs)
            assert ours.data == self.peer.address(theirs)
            assert ours.shape == expected.shape
            assert ours.strides == self.peer.strides(theirs)
            assert (read(ours) == expected).all()
            back = self.from_ours(ours)
            assert self.peer.address(back) == ours.data
            assert (self.peer.to_numpy(back) == expected).all()
        proof = usm_dlpack.validate(theirs)
        assert proof.data == self.peer.address(theirs)
        assert proof.bounds == "allocation"

    @pytest.mark.parametrize("max_version", MAX_VERSIONS)
    def test_their_byte_offset_is_added(self, max_version: tuple[int, int] | None) -> None:
        theirs = self.make_theirs(GRID)[::-1, 1::2]
        capsule = theirs.__dlpack__(max_version=max_version)
        tensor = described(capsule)
        assert tensor.byte_offset == 19 * 4
        proof = usm_dlpack.validate(capsule)
        assert proof.data == tensor.data + 19 * 4 == self.peer.address(theirs)
        assert (read(usm_dlpack.from_dlpack(HeldCapsule(capsule))) == GRID[::-1, 1::2]).all()

    def test_their_interface_counts_offset_and_strides_in_elements(self) -> None:
        theirs = self.make_theirs(GRID)[::-1, 1::2]
        interface = theirs.__sycl_usm_array_interface__
        assert interface["offset"] == 19
        assert interface["strides"] == (-6, 2)
        ours = usm_dlpack.to_dlpack_tensor(theirs)
        assert ours.data == interface["data"][0] + 19 * 4
        assert ours.strides == (-6, 2)
        assert (read(ours) == GRID[::-1, 1::2]).all()

    @pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)])
    def test_their_empty_array_is_taken(self, shape: tuple[int, ...]) -> None:
        theirs = self.peer.namespace.empty(shape, dtype="f4")
        for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor):
            ours = take(theirs)
            assert ours.shape == shape
            assert ours.dtype == np.float32
            assert self.from_ours(ours).shape == shape
        assert usm_dlpack.validate(theirs).bounds == "none"

    def test_their_empty_slice_behind_the_last_element_is_taken(self) -> None:
        theirs = self.make_theirs(GRID)[4:]
        for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor):
            assert take(theirs).shape == (0, 6)

    def test_their_0d_array_is_taken(self) -> None:
        theirs = self.make_theirs(np.array(2.5, "f4"))
        for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor):
            ours = take(theirs)
            assert ours.shape == ()
            assert ours.data == self.peer.address(theirs)
            assert read(ours) == 2.5

    def test_their_readonly_array_stays_readonly(self) -> None:
        theirs = self.make_theirs(GRID)
        self.peer.set_readonly(theirs)
        for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor, usm_dlpack.validate):
            assert take(theirs).readonly
        with pytest.raises(usm_dlpack.ConversionError) as refused:
            usm_dlpack.validate(theirs, readonly=False)
        assert refused.value.code == "read_only"

    def test_their_legacy_capsule_drops_readonly(self) -> None:
        # A defect of theirs: the legacy struct cannot say read-only, and ours is then refused.
        theirs = self.make_theirs(GRID)
        self.peer.set_readonly(theirs)
        assert not usm_dlpack.validate(theirs.__dlpack__()).readonly

    def test_our_keywords_are_answered_by_them(self) -> None:
        theirs = self.make_theirs(GRID)
        address = self.peer.address(theirs)
        assert usm_dlpack.from_dlpack(theirs, copy=False).data == address
        assert usm_dlpack.from_dlpack(theirs, device=theirs.__dlpack_device__()).data == address
        copied = usm_dlpack.from_dlpack(theirs, copy=True)
        assert copied.data != address
        assert (read(copied) == GRID).all()

    @pytest.mark.parametrize("usm_type", USM_TYPES)
    def test_their_array_is_proved(self, usm_type: str) -> None:
        theirs = self.make_theirs(GRID, usm_type)
        proof = usm_dlpack.validate(theirs)
        assert proof.data == self.peer.address(theirs)
        assert proof.usm_type == usm_type
        assert (14, proof.device_id) == theirs.__dlpack_device__()
        assert proof.sycl_device == theirs.sycl_device
        assert proof.bounds == "allocation"
        assert proof.size >= proof.nbytes == GRID.nbytes
        others = [name for name in USM_TYPES if name != usm_type]
        with pytest.raises(usm_dlpack.ConversionError) as refused:
            usm_dlpack.validate(theirs, usm_types=others)
        assert refused.value.code == "usm_type_not_accepted"

    # Kernels

    def test_our_kernels_and_theirs_work_on_one_memory(self) -> None:
        memory = allocate(np.zeros(64, "i4"))
        ours = usm_dlpack.to_dlpack_tensor(memory, dtype="i4")
        launch("count", memory, 64)
        theirs = self.from_ours(ours)
        assert (self.peer.to_numpy(theirs) == np.arange(64)).all()
        theirs += 1
        theirs.sycl_queue.wait()
        launch("triple", memory, 64)
        assert (self.peer.to_numpy(theirs) == 3 * (np.arange(64) + 1)).all()

    def test_their_kernels_and_ours_work_on_one_memory(self) -> None:
        theirs = self.peer.namespace.arange(64, dtype="i4") + 1
        theirs.sycl_queue.wait()
        ours = usm_dlpack.from_dlpack(theirs)
        assert (read(ours) == np.arange(64) + 1).all()
        launch("triple", dpctl.memory.as_usm_memory(ours), 64)
        assert (self.peer.to_numpy(theirs) == 3 * (np.arange(64) + 1)).all()

    # Lifetimes

    @pytest.mark.parametrize("first", ["ours", "theirs"])
    def test_our_memory_lives_until_the_last_of_both_goes(self, first: str) -> None:
        owner = MemoryOwner(allocate(GRID))
        gone = weakref.ref(owner)
        ours = usm_dlpack.to_dlpack_tensor(owner, shape=(4, 6), dtype="i4")
        theirs = self.from_ours(ours)
        del owner
        if first == "ours":
            del ours
            gc.collect()
            part = theirs[1:]
            del theirs
            gc.collect()
            assert (self.peer.to_numpy(part) == GRID[1:]).all()
            assert gone() is not None
            del part
        else:
            del theirs
            gc.collect()
            assert (read(ours) == GRID).all()
            assert gone() is not None
            del ours
        gc.collect()
        assert gone() is None

    @pytest.mark.parametrize("first", ["ours", "theirs"])
    @pytest.mark.parametrize("take", [usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor])
    def test_their_memory_lives_until_the_last_of_both_goes(
        self, take: Callable[[Any], Any], first: str
    ) -> None:
        class Memory(dpctl.memory.MemoryUSMDevice):
            """Memory that can be referred to weakly."""

        memory = Memory(GRID.nbytes)
        memory.copy_from_host(GRID.reshape(-1).view("u1"))
        gone = weakref.ref(memory)
        theirs = self.peer.ndarray(GRID.shape, dtype="i4", buffer=memory)
        ours = take(theirs)
        del memory
        if first == "theirs":
            del theirs
            gc.collect()
            assert (read(ours) == GRID).all()
            assert gone() is not None
            del ours
        else:
            del ours
            gc.collect()
            assert (self.peer.to_numpy(theirs) == GRID).all()
            assert gone() is not None
            del theirs
        gc.collect()
        assert gone() is None

    @pytest.mark.parametrize("max_version", [None, (1, 3)])
    def test_capsules_that_nobody_takes_release_the_memory(
        self, max_version: tuple[int, int] | None
    ) -> None:
        owner = MemoryOwner(allocate(GRID))
        gone = weakref.ref(owner)
        theirs = self.from_ours(usm_dlpack.to_dlpack_tensor(owner))
        capsule = usm_dlpack.from_dlpack(theirs).__dlpack__(max_version=max_version)
        del theirs, owner
        gc.collect()
        assert gone() is not None
        del capsule
        gc.collect()
        assert gone() is None

    def test_many_exchanges_leave_nothing_behind(self) -> None:
        owner = MemoryOwner(allocate(GRID))
        gone = weakref.ref(owner)
        last: Any = usm_dlpack.to_dlpack_tensor(owner, dtype="i4")
        for _ in range(100):
            last = usm_dlpack.from_dlpack(self.from_ours(last))
        assert (read(last) == GRID.reshape(-1)).all()
        del owner
        assert gone() is not None
        del last
        gc.collect()
        assert gone() is None

    # What cannot be exchanged

    def test_their_array_of_a_foreign_context_is_refused_by_both(self) -> None:
        theirs = self.peer.from_numpy(GRID, sycl_queue=foreign_queue())
        error = self.peer.capsules.DLPackCreationError
        assert not issubclass(error, BufferError)  # a defect of theirs: DLPack wants one
        for take in (usm_dlpack.from_dlpack, usm_dlpack.validate):
            with pytest.raises(error, match="bound to a default platform SYCL context"):
                take(theirs)
        with pytest.raises(usm_dlpack.UsmBindingError) as refused:
            usm_dlpack.to_dlpack_tensor(theirs)
        assert refused.value.code == "context_not_default"

    def test_their_device_is_told_even_where_the_export_is_refused(self) -> None:
        # A defect of theirs: a consumer that asks first hears of no obstacle.
        theirs = self.peer.from_numpy(GRID, sycl_queue=foreign_queue())
        assert theirs.__dlpack_device__() == (14, 0)

    def test_our_memory_of_a_foreign_context_never_reaches_them(self) -> None:
        memory = allocate(GRID, queue=foreign_queue())
        with pytest.raises(usm_dlpack.UsmBindingError) as refused:
            usm_dlpack.to_dlpack_tensor(memory)
        assert refused.value.code == "context_not_default"

    # __sycl_usm_array_interface__ of ours

    @pytest.mark.parametrize("usm_type", USM_TYPES)
    def test_dpctl_memory_takes_our_interface_without_a_copy(self, usm_type: str) -> None:
        ours = make_tensor(GRID, usm_type)
        memory = dpctl.memory.as_usm_memory(ours)
        assert memory._pointer == ours.data
        assert memory.nbytes == ours.nbytes
        assert memory.get_usm_type() == usm_type
        theirs = self.peer.ndarray(ours.shape, dtype=ours.dtype, buffer=memory)
        assert self.peer.address(theirs) == ours.data
        assert (self.peer.to_numpy(theirs) == GRID).all()

    @pytest.mark.parametrize("name", ["column", "block", "every_other", "transposed"])
    def test_their_asarray_takes_our_interface(self, name: str) -> None:
        expected = VIEWS[name](np, GRID)
        theirs = self.peer.namespace.asarray(make_view(GRID, expected))
        assert theirs.dtype == expected.dtype
        assert (self.peer.to_numpy(theirs) == expected).all()

    def test_their_asarray_refuses_our_negative_strides(self) -> None:
        # A defect of theirs: it takes the lowest address for that of the first element. DLPack
        # carries such arrays.
        with pytest.raises(ValueError, match="can not accommodate"):
            self.peer.namespace.asarray(make_view(GRID, GRID[::-1]))

    def test_our_interface_comes_back_to_us(self) -> None:
        ours = make_view(GRID, GRID[::-1, 1::2])
        again = usm_dlpack.to_dlpack_tensor(ours)
        assert (again.data, again.shape, again.strides) == (ours.data, ours.shape, ours.strides)

    # Processes

    def test_there_is_one_sycl_runtime(self) -> None:
        make_tensor(GRID)
        mapped = Path("/proc/self/maps").read_text().splitlines()
        files = {Path(line.split()[-1]).name for line in mapped if "/libsycl.so" in line}
        assert len(files) == 1

    @pytest.mark.parametrize("order", ["{0}, usm_dlpack", "usm_dlpack, {0}"])
    def test_the_device_is_found_whichever_is_imported_first(self, order: str) -> None:
        imports = f"import {order.format(self.peer_name)}"
        use = f"print(usm_dlpack.validate({self.peer_name}.ones(3)).device_id)"
        quiet = "-Wignore:dpctl.tensor is deprecated:DeprecationWarning"
        assert run_python(quiet, "-c", f"{imports}\n{use}") == "0\n"

    def test_two_root_devices_keep_their_arrays_apart(self) -> None:
        printed = run_python(HERE / "two_root_devices.py", self.peer_name)
        assert printed == "2 root devices\n"
