# SPDX-License-Identifier: Apache-2.0
"""An invalid use of processes."""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor

import usm_dlpack

# Newer Pythons warn of fork() where there are threads, which is this fault's other half.
warnings.filterwarnings("ignore", "This process", DeprecationWarning)


def child_of_fork() -> None:
    usm_dlpack.root_device(0)  # starts the SYCL runtime in the parent
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, fork) as pool:
        pool.submit(usm_dlpack.root_device, 0).result()
