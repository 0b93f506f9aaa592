# SPDX-License-Identifier: Apache-2.0
"""Invalid uses in a process of whose two root devices the second has a broken driver.

Each function is one use, and raises what its page in docs/errors says.
"""

from __future__ import annotations

import usm_dlpack


def device_whose_driver_is_broken() -> None:
    """Ask for a root device that the runtime lists and cannot use."""
    # [begin device_whose_driver_is_broken]
    usm_dlpack.root_device(1)
    # [end device_whose_driver_is_broken]
