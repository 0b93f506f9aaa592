# SPDX-License-Identifier: Apache-2.0
"""The Python of the pages that needs a peer; the programs of the peers that are here are run."""

import sys
from importlib.util import find_spec
from pathlib import Path

import guide
import pytest

PEERS = {"dpnp", "mpi4py", "onednn_ops", "torch", "tvm_ffi"}
HERE = {peer for peer in PEERS if find_spec(peer)}
# The tutorial runs with the package's own tests, because it needs OpenCL kernels; what it does with
# dpnp, in test_tutorial.py.
NAMES = [
    name
    for name, program in guide.PROGRAMS.items()
    if program.page.startswith(("how-to/", "onednn"))
    and program.modules & PEERS
    and program.modules & PEERS <= HERE
]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_what_its_page_shows(name: str, tmp_path: Path) -> None:
    program = guide.PROGRAMS[name]
    ranks = (Path(sys.prefix, "bin", "mpiexec"), "-n", "2") if "mpi4py" in program.modules else ()
    assert program.run(tmp_path, *ranks) == program.printed
