# SPDX-License-Identifier: Apache-2.0
"""Runs one piece of work in eight threads that begin together."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import time_limit

THREADS = 8


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Run ``work(number)`` in all threads, begun together; return what each returned or raised."""
    begin = threading.Barrier(THREADS)

    def run(number: int) -> Any:
        begin.wait()
        return work(number)

    time_limit.begin()
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(run, number) for number in range(THREADS)]
        return [future.exception() or future.result() for future in futures]
