# SPDX-License-Identifier: Apache-2.0
"""Run the libFuzzer target from its seeds; what it finds stays below build/fuzz/.

``python3 dev.py fuzz`` runs this program.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dev import WHEELS, RefusalError, prepare  # noqa: E402

LIBFUZZER = {
    "clang-19": "/usr/bin/clang++-19",
    "libclang-rt-19-dev": "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a",
}


def fuzz(seconds: int, seed: int) -> int:
    """Build the target and run it for some seconds; return its exit status."""
    environment = prepare("-r", "requirements/test.txt", *WHEELS, packages=LIBFUZZER)
    build = ROOT / "build" / "fuzz"
    defines = {
        "CMAKE_CXX_COMPILER": "clang++-19",
        "CMAKE_CXX_STANDARD": "17",
        "USM_DLPACK_BUILD_FUZZERS": "ON",
        "USM_DLPACK_BUILD_TESTS": "OFF",
    }
    choices = [f"-D{name}={value}" for name, value in defines.items()]
    environment.run("cmake", "--preset", "strict", "-B", build, *choices)
    environment.run("cmake", "--build", build)
    found = build / "found"
    found.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-seed={seed}", "-max_len=160", "-timeout=10"]
    limits.append("-rss_limit_mb=2048")
    reports = ["-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={build}/"]
    seeds = ROOT / "tests" / "fuzz" / "corpus" / "fuzz_tensors"
    program = build / "tests" / "fuzz" / "fuzz_tensors"
    return environment.run(program, *limits, *reports, found, seeds, check=False)


def main() -> int:
    """Run the target as long as was asked for; return 0 if it found nothing."""
    parser = argparse.ArgumentParser(prog="dev.py fuzz", description=__doc__)
    told = "how long it runs (default: 600)"
    parser.add_argument("--seconds", type=int, default=600, help=told)
    told = "0 is another one each time (default: 0)"
    parser.add_argument("--seed", type=int, default=0, help=told)
    options = parser.parse_args()
    try:
        return fuzz(options.seconds, options.seed)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
