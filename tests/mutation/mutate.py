# SPDX-License-Identifier: Apache-2.0
"""Print the faults in the headers that no C++ test catches.

Operators, conditions and constants of ``include/usm_dlpack/`` are changed one at a time in a copy
of the project, where the tests are built and run: first those in files of the header's name, then
all. A survivor either changes no behaviour, or a test is missing: somebody reads what is printed.
``python3 dev.py mutation`` runs this program.
"""

import argparse
import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutation"
HEADERS = Path("include", "usm_dlpack")

#: Operators, and what takes their place; the layout of the code puts spaces around them.
OPERATORS = (
    *("<= <", ">= >", "< <=", "> >=", "== !=", "!= ==", "&& ||", "|| &&"),
    *("+ -", "- +", "* +", "/ *", "% /", "+= -=", "-= +="),
)
#: What is changed, and into what.
CHANGES = [
    *((rf" {re.escape(old)} ", f" {new} ") for old, new in map(str.split, OPERATORS)),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"(?<=[ (\[])0(?=[ ;,)\]])", "1"),
    (r"(?<=[ (\[])1(?=[ ;,)\]])", "0"),
    (r"\bif (?:constexpr )?\(", r"\g<0>false && "),
    (r"\bif (?:constexpr )?\(", r"\g<0>true || "),
]
NO_CODE = re.compile(r'//[^\n]*|^\s*#[^\n]*|"(?:\\.|[^"\\])*"|template <[^{;]*?>\n', re.MULTILINE)


class Fault(NamedTuple):
    """A change of a few characters in a header: what it is, and the header with it."""

    shown: str
    text: str


def faults_of(header: str) -> Iterator[Fault]:
    """Generate the faults of one header; comments, sentences and directives are left alone."""
    whole = (ROOT / HEADERS / header).read_text()
    code = NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), whole)
    for pattern, replacement in CHANGES:
        for found in re.finditer(pattern, code):
            new = found.expand(replacement)
            line = whole.count("\n", 0, found.start())
            place = f"{header}:{line + 1}: `{found[0].strip()}` -> `{new.strip()}`"
            yield Fault(
                f"{place} in `{whole.splitlines()[line].strip()}`",
                whole[: found.start()] + new + whole[found.end() :],
            )


def succeeds(*words: str) -> bool:
    """Whether a command succeeds without a process that takes five minutes of processor time."""
    limited = ["bash", "-c", 'ulimit -c 0 -t 300; exec "$@"', "bash", *words]
    return subprocess.run(limited, cwd=COPY, capture_output=True, check=False).returncode == 0


class Tests:
    """The tests of the core, or those with SYCL, in files of some names."""

    def __init__(self, label: str, files: str = ".") -> None:
        self.label = label
        self.build = str(COPY / "build" / re.sub(r"\W+", "-", f"{label} {files}"))
        self.targets = ["static_tests", "core_tests"] if label == "core" else ["sycl_tests"]
        choice = f"-DUSM_DLPACK_TEST_FILES={files}"
        configure = ["cmake", "--preset", "strict", "-B", self.build, choice]
        subprocess.run(configure, cwd=COPY, check=True, stdout=subprocess.DEVNULL)

    def notice(self) -> bool:
        """Whether one does not compile, or fails."""
        build = ["cmake", "--build", self.build, "--target", *self.targets]
        test = ["ctest", "--test-dir", self.build, "-L", self.label, "--stop-on-failure"]
        return not (succeeds(*build) and succeeds(*test))


def label_of(header: str) -> str:
    return "core" if header.startswith("core/") else "sycl"


def try_faults(header: str, faults: list[Fault], every: Tests) -> Iterator[bool]:
    near = Tests(every.label, rf"/(test_)?({Path(header).stem}|allocation_counter)\.cpp$")
    steps = [every] if near.notice() else [near, every]  # no file may have the header's name
    path = COPY / HEADERS / header
    original = path.read_text()
    for fault in faults:
        path.write_text(fault.text)
        yield any(step.notice() for step in steps)
    path.write_text(original)


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev.py mutation", description=__doc__)
    parser.add_argument("--header", action="append", default=[], help="core/view.hpp; repeatable")
    parser.add_argument("--every", type=int, default=1, help="try one fault in so many")
    options = parser.parse_args()
    headers = options.header or [
        path.relative_to(ROOT / HEADERS).as_posix()
        for folder in ("core", "sycl", "opencl")
        for path in sorted((ROOT / HEADERS / folder).rglob("*.hpp"))
    ]
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT, COPY, ignore=shutil.ignore_patterns(".git", ".dev", "build"))
    every = {label: Tests(label) for label in {label_of(header) for header in headers}}
    if any(tests.notice() for tests in every.values()):
        raise SystemExit("tests: expected that all pass without a fault, found one that does not")
    faults = [(header, fault) for header in headers for fault in faults_of(header)]
    for header, some in itertools.groupby(faults[:: options.every], key=lambda pair: pair[0]):
        chosen = [fault for _, fault in some]
        noticed_ones = try_faults(header, chosen, every[label_of(header)])
        for fault, noticed in zip(chosen, noticed_ones, strict=True):
            print(f"{'caught' if noticed else 'survived'}: {fault.shown}", flush=True)


if __name__ == "__main__":
    main()
