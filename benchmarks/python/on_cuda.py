# SPDX-License-Identifier: Apache-2.0
"""Measure what calls cost on an NVIDIA GPU beside CUDA's driver and PyTorch.

``python3 dev.py cuda`` builds the extension and runs this program.
"""

import argparse
import ctypes
import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Any

import dpctl
from ratios import Call, Comparison, write_ratios
from usm_dlpack import root_device, to_dlpack_tensor


def comparisons(torch: Any, extension: Any) -> list[Comparison]:
    """Return of each comparison the title, no limit, our call, and the other."""
    matrix = extension.Matrix(dpctl.SyclQueue(root_device(0)))
    driver = ctypes.CDLL("libcuda.so.1").cuPointerGetAttributes
    query = ctypes.cast(driver, ctypes.c_void_p).value
    theirs = torch.zeros((4, 4), device="cuda")
    rows: list[Comparison] = [
        ("C++: `validate(tensor)` / one query of the driver of five attributes", None,
         matrix.validate, partial(matrix.query_cuda, query)),
    ]  # fmt: skip
    for kind, properties in (("in-order", "in_order"), ("out-of-order", "default")):
        queue = dpctl.SyclQueue(root_device(0), property=properties)
        memory, other = (dpctl.memory.MemoryUSMDevice(64, queue=queue) for _ in range(2))
        view = to_dlpack_tensor(memory, shape=(4, 4), dtype="float32").cuda_view()
        copy = partial(queue.memcpy_async, memory, other, 64)
        title = f"`torch.from_dlpack` of a `cuda_view()`, {kind} queue"
        rows += [
            (f"{title}, idle / of PyTorch's own array", None,
             partial(torch.from_dlpack, view), partial(torch.from_dlpack, theirs)),
            (f"a copy, and {title} / the copy, and of PyTorch's own array", None,
             partial(call_both, copy, partial(torch.from_dlpack, view)),
             partial(call_both, copy, partial(torch.from_dlpack, theirs))),
        ]  # fmt: skip
    return rows


def call_both(first: Call, second: Call) -> None:
    """Call one after the other."""
    first()
    second()


def main() -> None:
    """Measure with the extension that was built in a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds the extension, and gets ratios.json")
    folder = parser.parse_args().folder
    sys.path.insert(0, str(folder))
    modules = map(importlib.import_module, ("torch", "benchmark_extension"))
    write_ratios(comparisons(*modules), folder)


if __name__ == "__main__":
    main()
