# SPDX-License-Identifier: Apache-2.0
"""Invalid uses in a process whose ONEAPI_DEVICE_SELECTOR is no selector."""

import usm_dlpack


def selector_that_cannot_be_read() -> None:
    usm_dlpack.root_device(0)
