# SPDX-License-Identifier: Apache-2.0
"""Invalid uses in a process of whose two root devices the second has a broken driver."""

import usm_dlpack


def device_whose_driver_is_broken() -> None:
    usm_dlpack.root_device(1)
