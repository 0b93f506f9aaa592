# SPDX-License-Identifier: Apache-2.0
"""Kernels over USM arrays of any library."""

from importlib.resources import files
from pathlib import Path

import usm_dlpack

from grid_kernels import _extension
from grid_kernels._extension import laplacian, matmul, total

__all__ = ["laplacian", "matmul", "total"]


def _name_kernel_source() -> None:
    """Tell the extension where its kernels and the headers of usm_dlpack are now.

    Asked at run time, because an environment may be moved after the build.
    """
    kernels = Path(str(files("grid_kernels"))) / "kernels"
    include = Path(usm_dlpack.get_include())
    carried = include.parent / "share" / "usm_dlpack" / "third_party"
    folders = [str(folder) for folder in (kernels, include, carried / "dlpack", carried / "mdspan")]
    _extension.set_kernel_source(str(kernels / "kernels.cpp"), folders)


_name_kernel_source()
