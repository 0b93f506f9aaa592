# SPDX-License-Identifier: Apache-2.0
"""Whether Python runs this package as a program, and what is said where it cannot be imported."""

from __future__ import annotations

import sys

#: Why the package could not be imported.
failure: ImportError | None = None


def is_this_package() -> bool:
    """Return whether this is ``python -m usm_dlpack``, which is importing the package.

    While ``-m`` looks for its module, ``sys.argv[0]`` is "-m" and the rest are the arguments.
    """
    given = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return sys.argv[:1] == ["-m"] and given[-1:] in (["usm_dlpack"], ["-musm_dlpack"])


def is_doctor() -> bool:
    """Return whether it is that to look at an environment, where an import may end the process."""
    return is_this_package() and sys.argv[1:2] == ["doctor"]


def sentence(cause: ImportError) -> str:
    """Return what is said of a package that cannot be imported: it names the doctor.

    A refusal of our own, as in a sub-interpreter, is no defect of the environment: it stays.
    """
    if str(cause).startswith("usm_dlpack: "):
        return str(cause)
    return (
        f"usm_dlpack: expected its compiled module and what it needs, found {cause}; "
        "run `python -m usm_dlpack doctor`, which says what mends it"
    )


def refusal(cause: ImportError) -> ImportError:
    """Return the error of a package that cannot be imported."""
    return ImportError(sentence(cause), name=cause.name, path=cause.path)
