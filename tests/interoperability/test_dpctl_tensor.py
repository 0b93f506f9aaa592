# SPDX-License-Identifier: Apache-2.0
"""dpctl.tensor 0.21.1, the last release that has it, on the SYCL runtime of 2025."""

from __future__ import annotations

import importlib.metadata

import usm_dlpack
from exchange_contract import ExchangeContract
from extension_contract import ExtensionContract
from peers import load_peer


class TestDpctlTensor(ExchangeContract):
    peer = load_peer("dpctl.tensor")
    peer_name = "dpctl.tensor"

    def test_this_is_the_release_that_this_file_describes(self) -> None:
        assert importlib.metadata.version("dpctl") == "0.21.1"
        assert self.peer.capsules.get_build_dlpack_version() == (1, 0)

    def test_their_0d_array_is_writable(self) -> None:
        assert not usm_dlpack.from_dlpack(self.peer.namespace.asarray(2.5)).readonly

    def test_their_asarray_shares_our_memory(self) -> None:
        ours = usm_dlpack.to_dlpack_tensor(self.peer.namespace.arange(8))
        for copy in (None, False):
            theirs = self.peer.namespace.asarray(ours, copy=copy)
            assert self.peer.address(theirs) == ours.data
        assert self.peer.address(self.peer.namespace.asarray(ours, copy=True)) != ours.data


class TestExtensionWithDpctlTensor(ExtensionContract):
    peer = load_peer("dpctl.tensor")
