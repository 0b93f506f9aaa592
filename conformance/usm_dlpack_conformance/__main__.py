# SPDX-License-Identifier: Apache-2.0
"""Run one case: ``python -m usm_dlpack_conformance ADAPTER FILE:FUNCTION ARGUMENTS``."""

import ast
import importlib
import sys

from .adapter import NotSupportedError
from .plugin import NOT_RUN, PACKAGE, load_adapter


def main() -> int:
    """Return 0 if the case passed; its exception is raised."""
    adapter, case, arguments = sys.argv[1:]
    module, _, name = case.partition(":")
    function = getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
    try:
        function(adapter=load_adapter(adapter), **ast.literal_eval(arguments))
    except NotSupportedError as reason:
        print(reason)
        return NOT_RUN
    return 0


sys.exit(main())
