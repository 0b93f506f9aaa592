# SPDX-License-Identifier: Apache-2.0
"""The Python of docs/how-to/ that needs a peer; the programs of the peers that are here are run."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import guide
import pytest

PEERS = [peer for peer in ("dpnp", "mpi4py", "torch", "tvm_ffi") if find_spec(peer)]
HERE = re.compile(rf"^(?:import|from) (?:{'|'.join(PEERS)})\b", re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, program in guide.PROGRAMS.items()
        if name.startswith("how-to/") and HERE.search(program.code)
    ],
)
def test_a_program_prints_what_its_page_shows(name: str, tmp_path: Path) -> None:
    program = guide.PROGRAMS[name]
    launcher = (Path(sys.prefix, "bin", "mpiexec"), "-n", "2") if "mpi4py" in program.code else ()
    assert program.run(tmp_path, *launcher) == program.printed
