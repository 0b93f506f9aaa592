# SPDX-License-Identifier: Apache-2.0
"""The commands of ``python -m usm_dlpack``: whether one runs, and the error of a failed import."""

import sys

#: The error of the import.
failure: ImportError | None = None


def is_this_package() -> bool:
    """Return whether this is ``python -m usm_dlpack``, which is importing the package.

    While ``-m`` looks for its module, ``sys.argv[0]`` is "-m" and the rest are the arguments.
    """
    given = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return sys.argv[:1] == ["-m"] and given[-1:] in (["usm_dlpack"], ["-musm_dlpack"])


def sentence(cause: ImportError) -> str:
    """Return the error sentence of a failed import, which names the doctor."""
    return (
        f"usm_dlpack: expected its compiled module and what it needs, found {cause}; "
        "run `python -m usm_dlpack doctor`, which looks for the cause"
    )
