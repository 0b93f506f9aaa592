# SPDX-License-Identifier: Apache-2.0
"""What holds between this package and any library of USM arrays, in both directions.

`ExchangeContract` is a set of tests; a test file makes a class of it for each kind of array.
"Ours" are tensors of this package, "theirs" are arrays of the peer. USM kinds, element types, views
and devices are those of docs/consumers.md, which `consumer_matrix.py` tries; keywords, capsules and
refusals are those of the peers' own tests, which `peers_own_tests.py` runs.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import dpctl
import dpctl.memory
import numpy as np
import pytest
import usm_dlpack
from peers import Peer
from usm_here import MemoryOwner, allocate, triple, write

GRID = np.arange(24, dtype="i4").reshape(4, 6)

# Each takes a namespace (NumPy or the peer's) and an array of 4 x 6.
VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "rows_reversed_odd_columns": lambda xp, a: a[::-1, 1::2],
    "transposed": lambda xp, a: a.T,
    "repeated_row": lambda xp, a: xp.broadcast_to(a[1], (3, 6)),
    "last_element": lambda xp, a: a[3:, 5:],
}


class ExchangeContract:
    """The tests; a subclass says with which peer."""

    peer: ClassVar[Peer]

    def test_both_write_to_one_memory(self) -> None:
        memory = allocate(GRID)
        ours = usm_dlpack.to_dlpack_tensor(memory, shape=(4, 6), dtype="i4")
        theirs = self.peer.namespace.from_dlpack(ours)
        assert isinstance(theirs, self.peer.ndarray)
        assert theirs.sycl_device == ours.sycl_device
        assert theirs.sycl_context == ours.sycl_context
        theirs += 100
        theirs.sycl_queue.wait()
        assert (ours.numpy() == GRID + 100).all()
        back = usm_dlpack.from_dlpack(theirs)
        assert (back.device, back.readonly) == (theirs.__dlpack_device__(), False)
        assert usm_dlpack.validate(theirs).bounds == "allocation"
        triple(dpctl.memory.as_usm_memory(back), 24)
        assert (self.peer.to_numpy(theirs) == 3 * (GRID + 100)).all()

    @pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
    def test_their_view_is_ours_by_its_array_interface(self, view: Any) -> None:
        theirs = view(self.peer.namespace, self.peer.from_numpy(GRID))
        ours = usm_dlpack.to_dlpack_tensor(theirs)
        assert ours.data == self.peer.address(theirs)
        assert ours.strides == self.peer.strides(theirs)
        assert (ours.numpy() == view(np, GRID)).all()
        assert self.peer.address(self.peer.namespace.from_dlpack(ours)) == ours.data

    def test_their_empty_slice_behind_the_last_element_is_taken(self) -> None:
        theirs = self.peer.from_numpy(GRID)[4:]
        for take in (usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor):
            assert take(theirs).shape == (0, 6)

    def test_our_memory_lives_as_long_as_their_view(self) -> None:
        owner = MemoryOwner(allocate(GRID))
        gone = weakref.ref(owner)
        ours = usm_dlpack.to_dlpack_tensor(owner, shape=(4, 6), dtype="i4")
        theirs = self.peer.namespace.from_dlpack(ours)[1:]
        del owner, ours
        gc.collect()
        assert (self.peer.to_numpy(theirs) == GRID[1:]).all()
        assert gone() is not None
        del theirs
        gc.collect()
        assert gone() is None

    @pytest.mark.parametrize("take", [usm_dlpack.from_dlpack, usm_dlpack.to_dlpack_tensor])
    def test_their_memory_lives_as_long_as_our_tensor(self, take: Any) -> None:
        class Memory(dpctl.memory.MemoryUSMDevice):
            """Memory that can be referred to weakly."""

        memory = Memory(GRID.nbytes)
        write(memory, GRID)
        gone = weakref.ref(memory)
        ours = take(self.peer.ndarray(GRID.shape, dtype="i4", buffer=memory))
        del memory
        gc.collect()
        assert (ours.numpy() == GRID).all()
        assert gone() is not None
        del ours
        gc.collect()
        assert gone() is None

    def test_their_array_of_a_foreign_context_or_a_sub_device_comes_through_the_host(self) -> None:
        root = usm_dlpack.root_device(0)
        part, *_ = root.create_sub_devices(partition=1)
        of_own_context = dpctl.SyclQueue(dpctl.SyclContext([root]), root)
        for queue in (of_own_context, dpctl.SyclQueue(part)):
            theirs = self.peer.from_numpy(GRID, sycl_queue=queue)
            for view in (theirs, theirs[::-1, 1::2], theirs[2:2]):
                made = usm_dlpack.from_dlpack(view, device=(14, 0), order="C")
                assert np.array_equal(made.numpy(), self.peer.to_numpy(view))
            queue.wait()

    @pytest.mark.parametrize("order", ["{0}, usm_dlpack", "usm_dlpack, {0}"])
    def test_both_find_one_runtime_and_device_whichever_is_imported_first(self, order: str) -> None:
        code = (
            f"import {order.format(self.peer.name)}, pathlib, re\n"
            f"print(usm_dlpack.validate({self.peer.name}.ones(3)).device_id)\n"
            "mapped = pathlib.Path('/proc/self/maps').read_text()\n"
            "print(len(set(re.findall(r'\\S*/libsycl\\.so\\S*', mapped))))\n"
        )
        quiet = "-Wignore:dpctl.tensor is deprecated:DeprecationWarning"
        # This package has set the variable in this process.
        variables = {k: v for k, v in os.environ.items() if k != "OCL_ICD_FILENAMES"}
        command = [sys.executable, quiet, "-c", code]
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "0\n1\n", "")
