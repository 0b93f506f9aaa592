# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack`` on a device for which dpctl builds no kernels from source."""

from __future__ import annotations

from simulated import output_of


def test_the_demonstration_copies_where_no_kernel_can_be_built() -> None:
    printed = output_of(
        """
        import runpy, sys
        sys.argv = ["usm_dlpack"]
        runpy.run_module("usm_dlpack", run_name="__main__", alter_sys=True)
        """
    )
    assert "dpctl builds no kernels from source for level_zero" in printed
    assert "ok  a copy from the host filled device USM" in printed
    assert printed.endswith("All of this happened on this machine.\n")
