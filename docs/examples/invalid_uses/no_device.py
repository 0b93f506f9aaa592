# SPDX-License-Identifier: Apache-2.0
"""An invalid use in a process without a root device."""

import usm_dlpack


def process_without_a_device() -> None:
    usm_dlpack.root_device(0)
