# SPDX-License-Identifier: Apache-2.0
"""dpctl.tensor, in the last release that has it, on the SYCL runtime of 2025."""

from __future__ import annotations

import usm_dlpack
from exchange_contract import ExchangeContract
from peers import Peer


class TestDpctlTensor(ExchangeContract):
    peer = Peer("dpctl.tensor")

    def test_their_asarray_shares_our_memory(self) -> None:
        ours = usm_dlpack.to_dlpack_tensor(self.peer.namespace.arange(8))
        for copy in (None, False):
            theirs = self.peer.namespace.asarray(ours, copy=copy)
            assert self.peer.address(theirs) == ours.data
