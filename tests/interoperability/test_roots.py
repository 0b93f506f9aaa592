# SPDX-License-Identifier: Apache-2.0
"""dpctl.tensor and dpnp on three root devices of one platform and context: PoCL's.

run.py runs this on the driver. If a peer passes `take.position`, correct docs/comparison.md.
"""

import sys
from pathlib import Path

import pytest
from conformance_adapters import EXCHANGES
from conformance_runs import conform
from consumers_page import LIBRARIES

ENVIRONMENT = Path(sys.prefix).name.removeprefix("interoperability-")
FAILED = {name: {"take.position", "refuse.other-device"} for name in LIBRARIES[ENVIRONMENT]}
for name in EXCHANGES[ENVIRONMENT]:
    # Ours refuses the id of another device, but their arrays of ours say it.
    FAILED[name] = set() if name.startswith("OursOf") else {"take.position", "device.position"}


@pytest.mark.parametrize("name", [*LIBRARIES[ENVIRONMENT], *EXCHANGES[ENVIRONMENT]])
def test_a_peer_takes_every_array_for_one_of_the_first_device(name: str) -> None:
    words = "position or another_device"
    failed, not_run, printed = conform(f"conformance_adapters:{name}", "-W", "ignore", "-k", words)
    assert (failed, not_run) == (FAILED[name], set()), printed
