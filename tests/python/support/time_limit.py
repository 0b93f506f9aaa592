# SPDX-License-Identifier: Apache-2.0
"""The limit of a test: a process above two minutes shows where its threads stand, and ends.

By an alarm, which a child of fork() may set too; a timer of faulthandler would hang its end.
"""

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def show_on(stream: int) -> None:
    """Choose the file descriptor that gets the tracebacks."""
    faulthandler.register(signal.SIGALRM, file=stream, chain=True)


def begin() -> None:
    signal.alarm(120)


@contextmanager
def paused() -> Iterator[None]:
    """Give a compiler, or a process that has its own limit, the time that it takes."""
    left = signal.alarm(0)
    yield
    signal.alarm(left)


show_on(2)


def pytest_configure() -> None:
    """For a conftest: show tracebacks although pytest captures what a test writes."""
    show_on(os.dup(2))


@pytest.fixture(autouse=True)
def of_one_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """For a conftest: limit each test, but for the extended ones."""
    if "extended" not in request.keywords:
        begin()
    yield
    signal.alarm(0)
