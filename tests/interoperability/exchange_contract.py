# SPDX-License-Identifier: Apache-2.0
"""What holds between this package and any library of USM arrays, in both directions.

`ExchangeContract` is a set of tests; a test file makes a class of it for each kind of array.
"Ours" are tensors of this package, "theirs" are arrays of the peer. USM kinds, element types, views
and devices are those of docs/consumers.md, which `consumer_matrix.py` tries.
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
from capsules import OldArray, content_of, name_of
from peers import Peer
from usm_here import (
    MemoryOwner,
    allocate,
    foreign_queue,
    make_tensor,
    make_view,
    queue_of,
    triple,
    write,
)

GRID = np.arange(24, dtype="i4").reshape(4, 6)
TAKERS = (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor)

# Each takes a namespace (NumPy or the peer's) and an array of 4 x 6.
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "block": lambda xp, a: a[1:3, 2:5],
    "rows_reversed_odd_columns": lambda xp, a: a[::-1, 1::2],
    "transposed": lambda xp, a: a.T,
    "repeated_row": lambda xp, a: xp.broadcast_to(a[1], (3, 6)),
    "last_element": lambda xp, a: a[3:, 5:],
}


class ExchangeContract:
    """The tests; a subclass says with which peer."""

    peer: ClassVar[Peer]

    def from_ours(self, tensor: Any, **keywords: Any) -> Any:
        return self.peer.namespace.from_dlpack(tensor, **keywords)

    # Ours to theirs

    def test_ours_is_taken_and_written(self) -> None:
        ours = make_tensor(GRID)
        theirs = self.from_ours(ours)
        assert isinstance(theirs, self.peer.ndarray)
        assert self.peer.address(theirs) == ours.data
        assert self.peer.strides(theirs) == ours.strides
        assert theirs.usm_type == "device"
        assert theirs.sycl_device == ours.sycl_device
        assert theirs.sycl_context == ours.sycl_context
        assert theirs.flags.writable
        write(dpctl.memory.as_usm_memory(ours), GRID + 100)
        assert (self.peer.to_numpy(theirs) == GRID + 100).all()
        theirs[...] = self.peer.from_numpy(GRID * 2)
        theirs.sycl_queue.wait()
        assert (ours.numpy() == GRID * 2).all()

    @pytest.mark.parametrize("dtype", ["bfloat16", (2, 32, 4)])
    def test_our_dtype_that_they_lack_is_refused_and_released(self, dtype: Any) -> None:
        owner = MemoryOwner(allocate(GRID))
        gone = weakref.ref(owner)
        ours = usm_dlpack.to_dlpack_tensor(owner, dtype=dtype)
        with pytest.raises(BufferError, match="Can not import DLPack tensor"):
            self.from_ours(ours)
        del ours, owner
        gc.collect()
        assert gone() is None

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

    def test_read_only_memory_stays_read_only_through_both(self) -> None:
        array = self.peer.from_numpy(GRID)
        self.peer.set_readonly(array)
        for take in TAKERS:
            ours = take(array)
            assert ours.readonly
            theirs = self.from_ours(ours)
            assert not theirs.flags.writable
        with pytest.raises(usm_dlpack.ConversionError) as refused:
            usm_dlpack.validate(array, readonly=False)
        assert refused.value.code == "read_only"

    def test_their_keywords_are_answered(self) -> None:
        ours = make_tensor(GRID)
        for keywords in (
            {"copy": False},
            {"device": ours.device},
            {"device": ours.sycl_device},
            {"device": queue_of(0)},
        ):
            assert self.peer.address(self.from_ours(ours, **keywords)) == ours.data
        copied = self.from_ours(ours, copy=True)
        assert self.peer.address(copied) != ours.data
        assert (self.peer.to_numpy(copied) == GRID).all()

    # Theirs to ours

    def test_theirs_is_taken_and_written(self) -> None:
        theirs = self.peer.from_numpy(GRID)
        ours = usm_dlpack.from_dlpack(theirs)
        assert ours.sycl_context == theirs.sycl_context
        assert ours.device == theirs.__dlpack_device__()
        assert not ours.readonly
        assert usm_dlpack.validate(theirs).bounds == "allocation"
        theirs += 100
        theirs.sycl_queue.wait()
        assert (ours.numpy() == GRID + 100).all()
        triple(dpctl.memory.as_usm_memory(ours), 24)
        assert (self.peer.to_numpy(theirs) == 3 * (GRID + 100)).all()

    @pytest.mark.parametrize("max_version", [None, (1, 3)])
    def test_their_bare_capsule_is_validated_and_then_taken_once(
        self, max_version: tuple[int, int] | None
    ) -> None:
        theirs = self.peer.from_numpy(GRID)[::-1, 1::2]
        capsule = theirs.__dlpack__(max_version=max_version)
        assert content_of(capsule).dl_tensor.byte_offset == 19 * 4
        name = name_of(capsule)
        assert usm_dlpack.validate(capsule).data == self.peer.address(theirs)
        assert name_of(capsule) == name
        ours = usm_dlpack.from_dlpack(OldArray(capsule))
        assert name_of(capsule) == b"used_" + (name or b"")
        assert ours.data == self.peer.address(theirs)
        assert (ours.numpy() == GRID[::-1, 1::2]).all()
        with pytest.raises(usm_dlpack.ConversionError) as refused:
            usm_dlpack.validate(capsule)
        assert refused.value.code == "capsule_unusable"

    @pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
    def test_their_view_is_ours_by_its_array_interface(self, view: Any) -> None:
        theirs = view(self.peer.namespace, self.peer.from_numpy(GRID))
        ours = usm_dlpack.to_dlpack_tensor(theirs)
        assert ours.data == self.peer.address(theirs)
        assert ours.strides == self.peer.strides(theirs)
        assert (ours.numpy() == view(np, GRID)).all()
        assert self.peer.address(self.from_ours(ours)) == ours.data

    def test_their_empty_slice_behind_the_last_element_is_taken(self) -> None:
        theirs = self.peer.from_numpy(GRID)[4:]
        for take in TAKERS:
            assert take(theirs).shape == (0, 6)

    def test_our_keywords_are_answered_by_them(self) -> None:
        theirs = self.peer.from_numpy(GRID)
        address = self.peer.address(theirs)
        assert usm_dlpack.from_dlpack(theirs, copy=False).data == address
        assert usm_dlpack.from_dlpack(theirs, device=theirs.__dlpack_device__()).data == address
        copied = usm_dlpack.from_dlpack(theirs, copy=True)
        assert copied.data != address
        assert (copied.numpy() == GRID).all()

    # Lifetimes

    @pytest.mark.parametrize("first", ["ours", "theirs"])
    def test_our_memory_lives_until_the_last_of_both_goes(self, first: str) -> None:
        owner = MemoryOwner(allocate(GRID))
        gone = weakref.ref(owner)
        alive = {"ours": usm_dlpack.to_dlpack_tensor(owner, shape=(4, 6), dtype="i4")}
        alive["theirs"] = self.from_ours(alive["ours"])[1:]
        del owner
        self.let_go(alive, first, gone)

    @pytest.mark.parametrize("first", ["ours", "theirs"])
    @pytest.mark.parametrize("take", TAKERS)
    def test_their_memory_lives_until_the_last_of_both_goes(self, take: Any, first: str) -> None:
        class Memory(dpctl.memory.MemoryUSMDevice):
            """Memory that can be referred to weakly."""

        memory = Memory(GRID.nbytes)
        write(memory, GRID)
        gone = weakref.ref(memory)
        theirs = self.peer.ndarray(GRID.shape, dtype="i4", buffer=memory)
        alive = {"ours": take(theirs), "theirs": theirs[1:]}
        del memory, theirs
        self.let_go(alive, first, gone)

    def let_go(self, alive: dict[str, Any], first: str, gone: Any) -> None:
        del alive[first]
        gc.collect()
        assert gone() is not None
        ((last, array),) = alive.items()
        seen = array.numpy() if last == "ours" else self.peer.to_numpy(array)
        assert (seen == (GRID if last == "ours" else GRID[1:])).all()
        alive.clear()
        del array
        gc.collect()
        assert gone() is None

    @pytest.mark.parametrize("max_version", [None, (1, 3)])
    def test_capsules_that_nobody_takes_release_the_memory(
        self, max_version: tuple[int, int] | None
    ) -> None:
        owner = MemoryOwner(allocate(GRID))
        gone = weakref.ref(owner)
        last: Any = usm_dlpack.to_dlpack_tensor(owner)
        for _ in range(100):
            last = usm_dlpack.from_dlpack(self.from_ours(last))
        capsule = last.__dlpack__(max_version=max_version)
        del last, owner
        gc.collect()
        assert gone() is not None
        del capsule
        gc.collect()
        assert gone() is None

    # What cannot be exchanged

    def test_their_array_of_a_foreign_context_is_refused_by_both(self) -> None:
        theirs = self.peer.from_numpy(GRID, sycl_queue=foreign_queue())
        error = self.peer.capsules.DLPackCreationError
        with pytest.raises(error, match="bound to a default platform SYCL context"):
            usm_dlpack.from_dlpack(theirs)
        with pytest.raises(usm_dlpack.UsmBindingError) as refused:
            usm_dlpack.to_dlpack_tensor(theirs)
        assert refused.value.code == "context_not_default"

    def test_their_array_of_a_foreign_context_or_a_sub_device_comes_through_the_host(self) -> None:
        part, *_ = usm_dlpack.root_device(0).create_sub_devices(partition=1)
        for queue in (foreign_queue(), dpctl.SyclQueue(part)):
            theirs = self.peer.from_numpy(GRID, sycl_queue=queue)
            for view in (theirs, theirs[::-1, 1::2], theirs[2:2]):
                made = usm_dlpack.from_dlpack(view, device=(14, 0), order="C")
                assert np.array_equal(made.numpy(), self.peer.to_numpy(view))
            queue.wait()

    # __sycl_usm_array_interface__ of ours

    def test_dpctl_memory_takes_our_interface_without_a_copy(self) -> None:
        ours = make_tensor(GRID)
        memory = dpctl.memory.as_usm_memory(ours)
        assert (memory._pointer, memory.nbytes) == (ours.data, ours.nbytes)
        theirs = self.peer.ndarray(ours.shape, dtype=ours.dtype, buffer=memory)
        assert (self.peer.to_numpy(theirs) == GRID).all()

    @pytest.mark.parametrize("name", ["block", "transposed"])
    def test_their_asarray_takes_our_interface(self, name: str) -> None:
        expected = VIEWS[name](np, GRID)
        theirs = self.peer.namespace.asarray(make_view(GRID, expected))
        assert theirs.dtype == expected.dtype
        assert (self.peer.to_numpy(theirs) == expected).all()

    # Processes

    def test_there_is_one_sycl_runtime(self) -> None:
        make_tensor(GRID)
        mapped = Path("/proc/self/maps").read_text().splitlines()
        files = {Path(line.split()[-1]).name for line in mapped if "/libsycl.so" in line}
        assert len(files) == 1

    @pytest.mark.parametrize("order", ["{0}, usm_dlpack", "usm_dlpack, {0}"])
    def test_the_device_is_found_whichever_is_imported_first(self, order: str) -> None:
        code = (
            f"import {order.format(self.peer.name)}\n"
            f"print(usm_dlpack.validate({self.peer.name}.ones(3)).device_id)"
        )
        quiet = "-Wignore:dpctl.tensor is deprecated:DeprecationWarning"
        # This package has set the variable in this process.
        variables = {k: v for k, v in os.environ.items() if k != "OCL_ICD_FILENAMES"}
        command = [sys.executable, quiet, "-c", code]
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
