# SPDX-License-Identifier: Apache-2.0
"""Invalid uses of processes and interpreters.

Each function is one use, and raises what its page in docs/errors says.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from concurrent.futures import ProcessPoolExecutor

import usm_dlpack

# Newer Pythons warn of fork() where there are threads, which is this fault's other half.
warnings.filterwarnings("ignore", "This process", DeprecationWarning)


def child_of_fork() -> None:
    """Use the runtime of the parent in a child made by fork()."""
    # [begin child_of_fork]
    usm_dlpack.root_device(0)  # starts the SYCL runtime in the parent
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, fork) as pool:
        pool.submit(usm_dlpack.root_device, 0).result()
    # [end child_of_fork]


def sub_interpreter() -> None:
    """Import the package in a sub-interpreter."""
    try:
        import _interpreters as interpreters  # Python 3.13
    except ImportError:
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    # [begin sub_interpreter]
    code = """if True:
        try:
            import usm_dlpack
        except ImportError as error:
            tell(str(error))
    """
    # [end sub_interpreter]
    try:
        number = interpreters.create("legacy")
    except TypeError:
        number = interpreters.create(isolated=False) if _takes_isolated() else interpreters.create()
    reader, writer = os.pipe()
    tell = f"import os\ndef tell(text): os.write({writer}, text.encode())\n"
    interpreters.run_string(number, tell + code)
    os.close(writer)
    raise ImportError(os.read(reader, 10_000).decode())


def _takes_isolated() -> bool:
    import sys

    return sys.version_info[:2] == (3, 12)
