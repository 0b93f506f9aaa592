# SPDX-License-Identifier: Apache-2.0
"""Invalid uses of processes and interpreters."""

from __future__ import annotations

import multiprocessing
import os
import sys
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


def sub_interpreter() -> None:
    try:
        import _interpreters as interpreters  # Python 3.13
    except ImportError:
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    code = """if True:
        try:
            import usm_dlpack
        except ImportError as error:
            tell(str(error))
    """
    try:
        number = interpreters.create("legacy")
    except TypeError:  # before Python 3.13
        options = {"isolated": False} if sys.version_info >= (3, 12) else {}
        number = interpreters.create(**options)
    reader, writer = os.pipe()
    tell = f"import os\ndef tell(text): os.write({writer}, text.encode())\n"
    interpreters.run_string(number, tell + code)
    os.close(writer)
    raise ImportError(os.read(reader, 10_000).decode())
