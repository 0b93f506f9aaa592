# SPDX-License-Identifier: Apache-2.0
"""What the C++ core costs to compile: instructions of the compiler, and bytes of code.

Neither is a time: both are the same on every machine that has the same compiler.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dev import RefusalError


def run(command: list[str | Path], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command at a low priority."""
    done = subprocess.run(
        ["nice", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )
    if done.returncode != 0:
        raise RefusalError(
            f"{Path(command[0]).name}: expected exit status 0, found {done.returncode}; "
            f"read what it printed:\n{done.stderr[-4000:]}"
        )
    return done


def call(command: list[str | Path], **variables: str) -> str:
    """Run a command at a low priority, and return what it printed."""
    return run(command, **variables).stdout


COMPILED = {
    "core": "#include <usm_dlpack/core.hpp>\n",
    "cuda": "#include <cuda/mdspan>\n",
    "sycl": "#include <sycl/sycl.hpp>\n#include <mdspan/mdspan.hpp>\n",
    "sycl and ours": "#include <sycl/sycl.hpp>\n#include <mdspan/mdspan.hpp>\n"
    "#include <usm_dlpack/usm_dlpack.hpp>\n",
}
INSTRUCTIONS = re.compile(r"I\s+refs:\s+([\d,]+)")


def instructions_of_compiling(compiler: list[str], folder: Path) -> dict[str, int]:
    """Return the instructions in which headers alone are compiled, by all of its processes."""
    counter = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--trace-children=yes"]
    counter.append("--cachegrind-out-file=/dev/null")
    quiet = ["-w", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING"]

    def count(name: str) -> int:
        source = folder / f"{name}.cpp"
        source.write_text(COMPILED[name])
        made = ["-c", str(source), "-o", str(folder / f"{name}.o")]
        counted = run([*counter, *compiler, *quiet, *made]).stderr
        return sum(int(found.replace(",", "")) for found in INSTRUCTIONS.findall(counted))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(COMPILED, pool.map(count, COMPILED), strict=True))


CONVERSIONS = """\
#include <by_hand.hpp>
#include <cell.hpp>
#include <cuda/mdspan>
#include <usm_dlpack/core/to_dlpack.hpp>
namespace md = cuda::std;
"""
EXTENTS = (2, 3, 4, 2, 3, 2, 3, 2)
INDEXES = ("int", "std::int64_t", "std::size_t")
LAYOUTS = ("right", "left", "stride")
BODIES = {
    "ours": "const auto made = usm_dlpack::to_dlpack_tensor(view, DLDevice{kDLCPU, 0}); "
    "const DLTensor tensor = made.get(); keep(tensor);",
    "CCCL": "const auto made = cuda::to_dlpack_tensor(view); "
    "const DLTensor tensor = made.get(); keep(tensor);",
    "floor": "convert_by_hand<order::%s>(view, std::make_index_sequence<%d>{});",
}
Kind = tuple[str, str, str]


def kinds() -> Iterator[Kind]:
    """Yield each layout, index type, and dynamic or static extents."""
    yield from itertools.product(LAYOUTS, INDEXES, ("dynamic", "static"))


def conversion(kind: Kind, subject: str, rank: int) -> str:
    """Return a function that converts one view."""
    layout, index, extents = kind
    sizes = ", ".join(str(size) for size in EXTENTS[:rank])
    shape = f"dextents<{index}, {rank}>" if extents == "dynamic" else f"extents<{index}, {sizes}>"
    view = "cuda::host_mdspan" if subject == "CCCL" else "md::mdspan"
    body = BODIES[subject] % (layout, rank) if subject == "floor" else BODIES[subject]
    return (
        f"void convert_{rank}(const {view}<float, md::{shape}, md::layout_{layout}>& view) "
        f"{{ {body} }}\n"
    )


def code_sizes(compiler: list[str], folder: Path) -> dict[Kind, dict[str, tuple[int, int]]]:
    """Return the bytes of code of a program's only conversion, of rank 4, and of seven more.

    The seven are of the ranks 1 to 7, beside that of rank 8: what all conversions share counts
    for the only one alone.
    """

    def size_of(name: str, text: str) -> int:
        source, made = folder / f"{name}.cpp", folder / f"{name}.o"
        source.write_text(CONVERSIONS + text)
        call([*compiler, "-w", "-c", source, "-o", made])
        listed = call(["size", "--format=sysv", made]).splitlines()
        return sum(int(line.split()[1]) for line in listed if line.startswith(".text"))

    def measure(asked: tuple[Kind, str]) -> tuple[int, int]:
        kind, subject = asked
        name = "_".join((*kind, subject)).replace("::", "_")
        functions = [conversion(kind, subject, rank) for rank in range(1, 9)]
        both = size_of(name, "".join(functions))
        return size_of(name, functions[3]), both - size_of(name, functions[7])

    asked = list(itertools.product(kinds(), BODIES))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sizes: dict[Kind, dict[str, tuple[int, int]]] = {kind: {} for kind in kinds()}
        for (kind, subject), found in zip(asked, pool.map(measure, asked), strict=True):
            sizes[kind][subject] = found
    return sizes
