# SPDX-License-Identifier: Apache-2.0
"""What holds between an extension's functions over views and any library of USM arrays.

The extension is the one of the package's own tests, built here for the peer's SYCL runtime.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import usm_dlpack
from peers import Peer
from usm_here import USM_TYPES, default_queue, foreign_queue

sys.path.append(str(Path(__file__).parents[1] / "python"))

import extension_under_test

GRID = np.arange(24, dtype="f4").reshape(4, 6)
VIEWS = {
    "whole": lambda a: a,
    "block": lambda a: a[1:3, 2:5],
    "reversed": lambda a: a[::-1, 1::2],
    "transposed": lambda a: a.T,
    "empty": lambda a: a[2:2],
}


class ExtensionContract:
    """The tests; a subclass says with which peer."""

    peer: ClassVar[Peer]
    ext: ClassVar[Any] = None

    @pytest.fixture(autouse=True)
    def _load(self) -> None:
        if ExtensionContract.ext is None:
            ExtensionContract.ext = extension_under_test.load()

    @pytest.mark.parametrize("view", VIEWS)
    def test_their_views_are_views(self, view: str) -> None:
        theirs = VIEWS[view](self.peer.from_numpy(GRID))
        address, shape, strides = self.ext.relaxed(theirs)
        assert shape == tuple(theirs.shape)
        if view != "empty":
            lowest = self.peer.address(theirs) + 4 * sum(
                min(0, stride) * (extent - 1)
                for extent, stride in zip(shape, self.peer.strides(theirs), strict=True)
            )
            assert (address, strides) == (lowest, self.peer.strides(theirs))

    def test_their_array_is_written_through_a_view(self) -> None:
        for dtype in ("f4", "i4"):
            theirs = self.peer.from_numpy(np.zeros(12, dtype))
            assert self.ext.fill(theirs.sycl_queue, theirs, 5) == np.dtype(dtype).name
            assert self.peer.to_numpy(theirs).tolist() == [5] * 12

    def test_their_array_of_another_dtype_is_explained(self) -> None:
        theirs = self.peer.from_numpy(np.zeros(3, "i2"))
        with pytest.raises(usm_dlpack.ArgumentError) as caught:
            self.ext.fill(theirs.sycl_queue, theirs, 5)
        assert [reason.code for reason in caught.value.reasons] == ["dtype_mismatch"] * 2
        assert "found int16" in str(caught.value)

    @pytest.mark.parametrize("usm_type", USM_TYPES)
    def test_the_kind_of_their_array_is_proved(self, usm_type: str) -> None:
        theirs = self.peer.from_numpy(np.ones(3, "f4"), usm_type=usm_type)
        if usm_type == "device":
            assert self.ext.device_only(theirs)[0] == self.peer.address(theirs)
            return
        with pytest.raises(usm_dlpack.ConversionError) as caught:
            self.ext.device_only(theirs)
        assert caught.value.code == "usm_type_not_accepted"

    def test_their_array_of_another_context_is_refused_in_our_words(self) -> None:
        theirs = self.peer.from_numpy(np.ones(3, "f4"), sycl_queue=foreign_queue())
        with pytest.raises(usm_dlpack.UsmBindingError, match="expected the default context"):
            self.ext.rank_one(theirs)

    def test_their_read_only_array_needs_const_elements(self) -> None:
        theirs = self.peer.from_numpy(np.ones(3, "f4"))
        self.peer.set_readonly(theirs)
        with pytest.raises(usm_dlpack.ConversionError) as caught:
            self.ext.rank_one(theirs)
        assert caught.value.code == "read_only"
        assert self.ext.maybe(theirs) == 3

    def test_their_array_is_kept_and_its_queue_is_known(self) -> None:
        theirs = self.peer.from_numpy(np.array([1, 2, 3], "f4"), usm_type="shared")
        queue, address = theirs.sycl_queue, self.peer.address(theirs)
        self.ext.keep(theirs)
        del theirs
        assert self.ext.kept_queue() == queue
        assert self.ext.kept_values() == [1, 2, 3]
        back = self.peer.namespace.from_dlpack(self.ext.take_back())
        assert self.peer.address(back) == address

    def test_they_take_what_an_extension_returns(self) -> None:
        queue = default_queue()
        made = self.ext.full(queue, 3, 4, 2.5)
        queue.wait()  # they hand over no queue
        theirs = self.peer.namespace.from_dlpack(made)
        assert self.peer.address(theirs) == made.data
        assert np.all(self.peer.to_numpy(theirs) == 2.5)
