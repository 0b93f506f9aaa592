# SPDX-License-Identifier: Apache-2.0
"""The folders of the C++ headers and the CMake package."""

from pathlib import Path

import usm_dlpack


def installed(relative: str) -> str:
    # An editable install has two folders: the source tree's and the build's.
    folders = [Path(folder, relative) for folder in usm_dlpack.__path__]
    path = next((folder for folder in folders if folder.is_dir()), None)
    if path is None:
        raise FileNotFoundError(
            f"{relative}: expected the folder in {', '.join(map(str, usm_dlpack.__path__))}, "
            "found none; install the package with pip"
        )
    return str(path)


def get_include() -> str:
    """Return the folder for ``-I`` that holds ``usm_dlpack/core.hpp`` and the other headers.

    dlpack.h and mdspan.hpp are in ``dlpack`` and ``mdspan`` of ``../share/usm_dlpack/third_party``.
    Define ``MDSPAN_IMPL_STANDARD_NAMESPACE=Kokkos`` for the namespace ``Kokkos`` of mdspan.hpp.

    Raises
    ------
    FileNotFoundError
        If the package was not installed by pip.

    Examples
    --------
    >>> import os, usm_dlpack
    >>> os.path.isfile(os.path.join(usm_dlpack.get_include(), "usm_dlpack", "core.hpp"))
    True
    """
    return installed("include")


def get_cmake_dir() -> str:
    """Return the folder of the CMake package, for ``-Dusm_dlpack_DIR``.

    Raises
    ------
    FileNotFoundError
        If the package was not installed by pip.

    Examples
    --------
    >>> import os, usm_dlpack
    >>> os.path.isfile(os.path.join(usm_dlpack.get_cmake_dir(), "usm_dlpackConfig.cmake"))
    True
    """
    return installed("share/cmake/usm_dlpack")
