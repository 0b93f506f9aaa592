# SPDX-License-Identifier: Apache-2.0
"""Run one case in this process: ``python -m usm_dlpack_conformance ADAPTER FILE:FUNCTION``."""

import importlib
import sys

from .adapter import NotSupportedError
from .plugin import NOT_RUN, PACKAGE, load_adapter


def main() -> int:
    """Return 0 if the case passed; its exception is raised."""
    adapter, case = sys.argv[1:]
    module, _, function = case.partition(":")
    try:
        getattr(importlib.import_module(f"{PACKAGE}.{module}"), function)(load_adapter(adapter))
    except NotSupportedError as reason:
        print(reason)
        return NOT_RUN
    return 0


sys.exit(main())
