# SPDX-License-Identifier: Apache-2.0
"""Invalid uses in a process that has no root device: ONEAPI_DEVICE_SELECTOR names another backend.

Each function is one use, and raises what its page in docs/errors says.
"""

from __future__ import annotations

import usm_dlpack


def process_without_a_device() -> None:
    """Ask for a root device where there is none."""
    # [begin process_without_a_device]
    usm_dlpack.root_device(0)
    # [end process_without_a_device]
