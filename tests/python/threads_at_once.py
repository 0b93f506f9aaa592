# SPDX-License-Identifier: Apache-2.0
"""Runs one piece of work in eight threads that begin together."""

import threading
from collections.abc import Callable
from typing import Any

THREADS = 8


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Run ``work(number)`` in all threads, begun together; return what each returned or raised."""
    begin = threading.Barrier(THREADS)
    results: list[Any] = [None] * THREADS

    def run(number: int) -> None:
        begin.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    return results
