# SPDX-License-Identifier: Apache-2.0
"""The row of mpi4py: rank 0 sends and receives by tensors of ours, rank 1 by NumPy's arrays.

    mpiexec -n 2 python mpi_ranks.py

Ours to theirs is a message out of our memory, theirs to ours is a message into it. Rank 0 says
before each whether mpi4py took the tensor, so that a refusal does not leave rank 1 waiting.
"""

import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "python" / "support"))

import numpy as np
from consumer_cases import CASES, PLAIN_DTYPES, Case, make_tensor, see_tensor
from mpi4py import MPI

COMM = MPI.COMM_WORLD
OURS, THEIRS = 0, 1
DATA, STATUS = 1, 2


def message(word: str, start: Callable[..., Any], case: Case) -> dict[str, str]:
    """Be rank 0 in one message, and compare what rank 1 says of it with the tensor's bytes."""
    tensor = make_tensor(case, "shared")
    try:
        request = start(tensor, THEIRS, DATA)
    except Exception as error:
        COMM.send("refused", THEIRS, STATUS)
        return {"outcome": "refused", "reason": f"{type(error).__name__}: {error}"}
    COMM.send(word, THEIRS, STATUS)
    request.Wait()
    theirs, ours = COMM.recv(source=THEIRS, tag=STATUS), see_tensor(tensor).bytes
    if theirs != ours:
        return {"outcome": "wrong", "reason": f"{theirs!r} there, and {ours!r} here"}
    return {"outcome": word}


def with_numpy(case: Case) -> None:
    """Be rank 1 in both messages of a case."""
    values = np.flip(case.seen).copy()
    for act, array in ((COMM.Recv, np.empty_like(values)), (COMM.Send, values)):
        if COMM.recv(source=OURS, tag=STATUS) != "refused":
            act(array, OURS, DATA)
            COMM.send(array.tobytes(), OURS, STATUS)


def main() -> None:
    """Exchange every case whose dtype NumPy has; rank 0 prints the row."""
    cells: dict[str, dict[str, Any]] = {"ours to theirs": {}, "theirs to ours": {}}
    for case in CASES:
        if case.dtype in PLAIN_DTYPES and COMM.Get_rank() == THEIRS:
            with_numpy(case)
        elif case.dtype in PLAIN_DTYPES:
            cells["ours to theirs"][case.name] = message("sent", COMM.Isend, case)
            cells["theirs to ours"][case.name] = message("received", COMM.Irecv, case)
    if COMM.Get_rank() == OURS:
        version = f"mpi4py {importlib.metadata.version('mpi4py')}"
        print(json.dumps({"title": "mpi4py, two ranks", "version": version, "cells": cells}))


if __name__ == "__main__":
    main()
