# SPDX-License-Identifier: Apache-2.0
"""What a case says of itself, and what the cases share."""

import ctypes
import gc
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .adapter import Adapter, NotSupportedError
from .plugin import Case

# The documents that cases refer to.
DLPACK = "dlpack.h"
PYTHON = "DLPack, Python specification"
ARRAY_API = "array API standard, __dlpack__"
GUIDE = "dpctl, DLPack exchange of USM allocated arrays"
ORDER = "usm_dlpack, order of work"


def spec(identifier: str, source: str, reason: str) -> pytest.MarkDecorator:
    """Mark a case that DLPack or the array API standard demands."""
    return pytest.mark.spec(Case(identifier, source, reason))


def convention(identifier: str, source: str, reason: str) -> pytest.MarkDecorator:
    """Mark a case that is agreed among libraries for SYCL, and in no standard."""
    return pytest.mark.convention(Case(identifier, source, reason))


def each(names: str, *rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Make a case of each row: its mark, and the arguments of these names."""
    parameters = (
        pytest.param(*row[1:], marks=row[0], id=row[0].args[0].identifier) for row in rows
    )
    return pytest.mark.parametrize(names, list(parameters))


SHAPE = (3, 4)
VALUES = np.arange(12, dtype="f4").reshape(SHAPE)
# Shape, strides in elements, and the elements that such an array shows of 24 numbers.
_GRID = np.arange(24, dtype="f4").reshape(4, 6)
LAYOUTS = {
    "strided": ((4, 3), (6, 2), _GRID[:, ::2]),
    "reversed": ((4, 6), (-6, -1), _GRID[::-1, ::-1]),
    "transposed": ((6, 4), (1, 6), _GRID.T),
    "broadcast": ((5, 6), (0, 1), np.broadcast_to(_GRID[0], (5, 6))),
}


def span(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Return the offset of the first element from the lowest one, and the elements spanned."""
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return -sum(min(step, 0) for step in reach), 1 + sum(map(abs, reach))


def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of C order."""
    return tuple(math.prod(shape[r + 1 :]) for r in range(len(shape)))


def make(adapter: Adapter, values: Any = VALUES, **keywords: Any) -> Any:
    """Return an array of the library with the values, compact."""
    keywords.setdefault("kind", adapter.kinds[0])
    return adapter.make(values.tobytes(), values.shape, values.dtype.name, **keywords)


def make_layout(adapter: Adapter, name: str) -> Any:
    """Return an array of one of `LAYOUTS`."""
    shape, strides, _ = LAYOUTS[name]
    _, elements = span(shape, strides)
    data = _GRID.tobytes()[: 4 * elements]
    return adapter.make(data, shape, "float32", strides, adapter.kinds[0])


def readable_kind(adapter: Adapter) -> str:
    """Return a kind of USM that the host reads."""
    for kind in ("shared", "host"):
        if kind in adapter.kinds:
            return kind
    raise NotSupportedError("it makes no USM that the host reads")


def growth(use: Callable[[], object], count: int) -> int:
    """Return by how many bytes the resident memory of this process grows in repeated calls."""
    for _ in range(count // 4 + 1):
        use()
    gc.collect()
    before = _resident_bytes()
    for _ in range(count):
        use()
    gc.collect()
    return _resident_bytes() - before


def _resident_bytes() -> int:
    """Return what the process holds, without what glibc keeps of freed memory."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def run_in_threads(calls: Sequence[Callable[[], object]]) -> None:
    """Run each call in a thread of its own, and raise the first failure."""
    failed: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@contextmanager
def refused(*errors: type[BaseException]) -> Iterator[None]:
    """Require that a call raises an Exception, by default of any class."""
    with pytest.raises(errors or Exception) as caught:
        yield
    if isinstance(caught.value, (NotSupportedError, AssertionError)):
        raise caught.value
