# SPDX-License-Identifier: Apache-2.0
"""The row of mpi4py: rank 0 sends and receives by tensors of ours, rank 1 by NumPy's arrays.

    mpiexec -n 2 python mpi_ranks.py

Ours to theirs is a message out of our memory, theirs to ours is a message into it. Rank 0 says
before each whether mpi4py took the tensor, so that a refusal does not leave rank 1 waiting.
"""

from __future__ import annotations

import importlib.metadata
import json
from typing import Any

import numpy as np
from consumer_cases import CASES, PLAIN_DTYPES, Case, make_tensor, see_tensor
from mpi4py import MPI

COMM = MPI.COMM_WORLD
OURS, THEIRS = 0, 1
DATA, STATUS = 1, 2


def take(word: str, start: Any, tensor: Any) -> tuple[Any, dict[str, str]]:
    """Start a message with a tensor; return the request, or why mpi4py refused the tensor."""
    try:
        request, outcome = start(tensor), {"outcome": word}
    except Exception as error:
        request = None
        outcome = {"outcome": "refused", "reason": f"{type(error).__name__}: {error}"}
    COMM.send(outcome, THEIRS, STATUS)
    return request, outcome


def verdict(word: str, expected: bytes, found: bytes) -> dict[str, str]:
    """Return what became of a message that mpi4py took."""
    if found != expected:
        return {"outcome": "wrong", "reason": f"{found!r} instead of {expected!r}"}
    return {"outcome": word}


def with_tensors(case: Case) -> tuple[dict[str, str], dict[str, str]]:
    """Be rank 0 in both messages of a case."""
    ours = make_tensor(case, "shared")
    request, sent = take("sent", lambda x: COMM.Isend(x, THEIRS, DATA), ours)
    if request is not None:
        request.Wait()
        sent = verdict("sent", see_tensor(ours).bytes, COMM.recv(source=THEIRS, tag=STATUS))
    target = make_tensor(case, "shared")
    request, received = take("received", lambda x: COMM.Irecv(x, THEIRS, DATA), target)
    if request is not None:
        request.Wait()
        received = verdict(
            "received", COMM.recv(source=THEIRS, tag=STATUS), see_tensor(target).bytes
        )
    return sent, received


def with_numpy(case: Case) -> None:
    """Be rank 1 in both messages of a case."""
    if COMM.recv(source=OURS, tag=STATUS)["outcome"] != "refused":
        received = np.empty(case.shape, case.seen.dtype)
        COMM.Recv(received, OURS, DATA)
        COMM.send(received.tobytes(), OURS, STATUS)
    if COMM.recv(source=OURS, tag=STATUS)["outcome"] != "refused":
        values = np.flip(case.seen).copy()
        COMM.Send(values, OURS, DATA)
        COMM.send(values.tobytes(), OURS, STATUS)


def main() -> None:
    """Exchange every case whose dtype NumPy has; rank 0 prints the row."""
    sent: dict[str, Any] = {}
    received: dict[str, Any] = {}
    for case in CASES:
        if case.dtype not in PLAIN_DTYPES:
            sent[case.name] = received[case.name] = {"outcome": ""}
        elif COMM.Get_rank() == OURS:
            sent[case.name], received[case.name] = with_tensors(case)
        else:
            with_numpy(case)
    if COMM.Get_rank() == OURS:
        cells = {"ours to theirs": sent, "theirs to ours": received}
        version = f"mpi4py {importlib.metadata.version('mpi4py')}"
        print(json.dumps({"title": "mpi4py, two ranks", "version": version, "cells": cells}))


if __name__ == "__main__":
    main()
