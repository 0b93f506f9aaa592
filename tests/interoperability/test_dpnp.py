# SPDX-License-Identifier: Apache-2.0
"""dpnp: its public arrays, and those of dpnp.tensor, which took over dpctl.tensor."""

from __future__ import annotations

import pytest
import usm_dlpack
from exchange_contract import ExchangeContract
from peers import Peer


class DpnpContract(ExchangeContract):
    """What is the same for both kinds of array."""

    def test_their_0d_array_is_exported_readonly_although_it_is_writable(self) -> None:
        # A defect of theirs, which docs/how-to/dpctl.md names; the array interface tells the truth.
        theirs = self.peer.namespace.asarray(2.5)
        assert theirs.flags.writable
        assert usm_dlpack.from_dlpack(theirs).readonly
        assert not usm_dlpack.to_dlpack_tensor(theirs).readonly


class TestDpnp(DpnpContract):
    peer = Peer("dpnp")

    def test_their_asarray_copies_what_is_not_theirs(self) -> None:
        ours = usm_dlpack.to_dlpack_tensor(self.peer.namespace.arange(8))
        assert self.peer.address(self.peer.namespace.asarray(ours)) != ours.data
        with pytest.raises(ValueError, match="copy=False"):
            self.peer.namespace.asarray(ours, copy=False)


class TestDpnpTensor(DpnpContract):
    peer = Peer("dpnp.tensor")

    def test_their_asarray_shares_our_memory(self) -> None:
        ours = usm_dlpack.to_dlpack_tensor(self.peer.namespace.arange(8))
        for copy in (None, False):
            theirs = self.peer.namespace.asarray(ours, copy=copy)
            assert self.peer.address(theirs) == ours.data
