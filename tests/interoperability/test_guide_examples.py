# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/how-to/ that need a peer; those of the peers that are here are run."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import guide
import pytest

# The module that an example needs, by the example.
NEEDED = {
    "with_dpnp": "dpnp",
    "with_mpi": "mpi4py",
    "with_onednn": "onednn_ops",
    "with_pytorch": "torch",
    "with_tvm_ffi": "tvm_ffi",
}


@pytest.mark.parametrize("name", [name for name, module in NEEDED.items() if find_spec(module)])
def test_an_example_prints_what_its_page_shows(name: str, tmp_path: Path) -> None:
    ranks = (Path(sys.prefix, "bin", "mpiexec"), "-n", "2") if name == "with_mpi" else ()
    assert guide.run(name, tmp_path, launcher=ranks) == guide.expected(name)
