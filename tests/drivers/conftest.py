# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share; run.py says in which configuration each of them runs."""

from typing import Any

import dpctl
import pytest
import usm_dlpack  # noqa: F401  (makes the OpenCL CPU driver known, before the first query)


@pytest.fixture(scope="session")
def devices() -> list[Any]:
    """Return the root devices of the process, in the order of their ids."""
    return list(dpctl.get_devices())


@pytest.fixture(params=["device", "shared", "host"])
def usm_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)
