# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/how-to/ for the libraries that share one environment."""

from __future__ import annotations

import sys
from pathlib import Path

import guide
import pytest
import torch


@pytest.mark.parametrize("name", ["with_tvm_ffi", "with_pytorch"])
def test_an_example_prints_what_its_page_shows(name: str, tmp_path: Path) -> None:
    assert guide.run(name, tmp_path) == guide.expected(name)


def test_the_page_of_pytorch_is_right_that_this_build_has_no_xpu() -> None:
    assert not torch.xpu.is_available()


def test_the_example_of_mpi_runs_in_two_ranks(tmp_path: Path) -> None:
    launcher = (Path(sys.prefix, "bin", "mpiexec"), "-n", "2")
    assert guide.run("with_mpi", tmp_path, launcher=launcher) == guide.expected("with_mpi")
