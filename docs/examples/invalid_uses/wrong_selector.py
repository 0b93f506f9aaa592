# SPDX-License-Identifier: Apache-2.0
"""Invalid uses in a process whose ONEAPI_DEVICE_SELECTOR is no selector.

Each function is one use, and raises what its page in docs/errors says.
"""

from __future__ import annotations

import usm_dlpack


def selector_that_cannot_be_read() -> None:
    """Ask for a root device where the runtime cannot list any."""
    # [begin selector_that_cannot_be_read]
    usm_dlpack.root_device(0)
    # [end selector_that_cannot_be_read]
