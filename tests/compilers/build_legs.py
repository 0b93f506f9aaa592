# SPDX-License-Identifier: Apache-2.0
"""Build and run the C++ core with every supported compiler, language version and mdspan.

One combination is a leg: ``--leg NAME`` builds it alone. ``python3 dev.py compilers`` runs this
program.
"""

import argparse
import shutil
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dev import (  # noqa: E402
    DEV,
    GOOGLETEST,
    WHEELS,
    Environment,
    RefusalError,
    prepare,
)

CLANG = {
    "clang-19": "/usr/bin/clang++-19",
    "clang-22": "/usr/bin/clang++-22",
    "libc++-22-dev": "/usr/lib/llvm-22/include/c++/v1/mdspan",
    "libc++abi-22-dev": "/usr/lib/llvm-22/lib/libc++abi.so",
}


class Leg(NamedTuple):
    """One combination of compiler, language version and headers that the C++ core is built with."""

    compiler: str
    standard: int
    dlpack: str = "1.3"
    mdspan: str = "kokkos"
    sycl: bool = False
    flags: str = ""

    @property
    def name(self) -> str:
        """What identifies the leg in folders and headings."""
        parts = [self.compiler, f"c++{self.standard}", f"dlpack{self.dlpack}", self.mdspan]
        return "-".join([*parts, "sycl"] if self.sycl else parts)

    @property
    def folder(self) -> Path:
        """Where it is built."""
        return ROOT / "build" / "compilers" / self.name


# Of compiler, language version and DLPack each pair, and with --every each triple.
TRIPLES = [Leg(c, s, d) for c in ("g++", "clang++-19") for s in (17, 20) for d in ("1.0", "1.3")]
PAIRS = [TRIPLES[number] for number in (0, 3, 5, 6)]
OTHERS = [
    Leg("clang++-19", 20, sycl=True),
    Leg("clang++-22", 23, mdspan="std", flags="-stdlib=libc++"),
    Leg("g++", 17, mdspan="cuda"),
]


def dlpack_1_0(environment: Environment) -> Path:
    """Return a folder that holds the dlpack.h of DLPack 1.0, which dpctl 0.21.1 carries."""
    folder = DEV / "dlpack-1.0"
    header = folder / "dlpack" / "dlpack.h"
    if not header.exists():
        target = ["--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"]
        wheels = DEV / "wheels"
        download = ["-m", "pip", "download", "--no-deps", "--only-binary=:all:", *target]
        environment.run(environment.python, *download, "--dest", wheels, "dpctl==0.21.1")
        header.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(next(wheels.glob("dpctl-0.21.1-*.whl"))) as wheel:
            header.write_bytes(wheel.read("dpctl/tensor/include/dlpack/dlpack.h"))
    return folder


def build_leg(environment: Environment, leg: Leg) -> bool:
    """Configure, build and run one leg; say whether all of it worked."""
    choices = {
        "CMAKE_CXX_COMPILER": leg.compiler,
        "CMAKE_CXX_STANDARD": str(leg.standard),
        "USM_DLPACK_TEST_MDSPAN": leg.mdspan,
        "USM_DLPACK_BUILD_SYCL_TESTS": "ON" if leg.sycl else "OFF",
    }
    if leg.dlpack == "1.0":
        choices["USM_DLPACK_DLPACK_INCLUDE_DIR"] = str(dlpack_1_0(environment))
    defines = [f"-D{name}={value}" for name, value in choices.items()]
    steps: list[list[str | Path]] = [
        ["cmake", "--preset", "strict", "-B", leg.folder, *defines],
        ["cmake", "--build", leg.folder],
        ["ctest", "--test-dir", leg.folder, "--output-on-failure", "--no-tests=error", "-j2"],
    ]
    return all(
        environment.run(*step, check=False, USM_DLPACK_EXTRA_FLAGS=leg.flags) == 0 for step in steps
    )


def build_legs(legs: list[Leg]) -> list[str]:
    """Build and run legs one after the other; return the names of those that failed."""
    requirements = ("-r", "requirements/test.txt", "-r", "requirements/compilers.txt")
    environment = prepare(*requirements, *WHEELS, packages=GOOGLETEST | CLANG)
    failed = []
    for leg in legs:
        print(f"\n=== {leg.name}", flush=True)
        if build_leg(environment, leg):
            shutil.rmtree(leg.folder)  # all together take gigabytes
        else:
            failed.append(leg.name)
    return failed


def main() -> int:
    """Build the legs that were asked for; return 0 if all of them worked, otherwise 1."""
    parser = argparse.ArgumentParser(prog="dev.py compilers", description=__doc__)
    told = "each combination with DLPack, not each pair"
    parser.add_argument("--every", action="store_true", help=told)
    parser.add_argument("--leg", help="this combination alone, by its name")
    options = parser.parse_args()
    legs = {leg.name: leg for leg in [*(TRIPLES if options.every else PAIRS), *OTHERS]}
    if options.leg is not None and options.leg not in legs:
        names = ", ".join(legs)
        print(f"--leg: expected one of {names}, found {options.leg}; correct the name")
        return 1
    try:
        failed = build_legs([legs[options.leg]] if options.leg else [*legs.values()])
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    print(f"\nfailed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
