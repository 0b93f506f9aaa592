# SPDX-License-Identifier: Apache-2.0
"""What dpctl.tensor and dpnp fail of the conformance suite, on the CPU device."""

from importlib.util import find_spec

import pytest
from conformance_runs import conform

FAILED_BY_BOTH = {
    *(f"refuse.{name}" for name in ("bounds", "negative-extent", "negative-rank", "overflow")),
    *("capsule.read-only-legacy", "refuse.null-shape", "release.null-deleter", "stream.minus-one"),
    "take.empty-null",
}
ADAPTERS = {"UsmNdarray": FAILED_BY_BOTH}
if find_spec("dpnp"):
    of_dpnp = FAILED_BY_BOTH | {"take.null-strides"}
    ADAPTERS = {"DpnpTensor": of_dpnp, "Dpnp": of_dpnp}


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_peer_fails_what_is_known(name: str) -> None:
    failed, _, printed = conform(f"conformance_adapters:{name}", "-W", "ignore")
    assert failed == ADAPTERS[name], printed
