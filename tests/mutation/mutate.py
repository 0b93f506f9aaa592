# SPDX-License-Identifier: Apache-2.0
"""Print the faults in the headers that no C++ test catches.

Operators, conditions and constants of ``include/usm_dlpack/`` are changed one at a time in a copy
of the headers, and the tests are compiled with that copy and run, those first that are named after
the header, up to the first that notices. A survivor either changes no behaviour, or a test is
missing: somebody reads what is printed. ``python3 dev.py mutation`` runs this program.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include"
TESTS = ROOT / "tests" / "cpp"
BUILD = ROOT / "build" / "mutation"

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


@dataclass(frozen=True)
class Fault:
    """A change of a few characters in a header."""

    header: Path
    begin: int
    end: int
    new: str

    def text(self) -> str:
        """Return the header with the fault in it."""
        whole = self.header.read_text()
        return whole[: self.begin] + self.new + whole[self.end :]

    def __str__(self) -> str:
        """Say what is changed, and where."""
        whole = self.header.read_text()
        line = whole.count("\n", 0, self.begin) + 1
        shown = whole.splitlines()[line - 1].strip()
        old = whole[self.begin : self.end].strip()
        name = self.header.relative_to(HEADERS / "usm_dlpack")
        return f"{name}:{line}: `{old}` -> `{self.new.strip()}` in `{shown}`"


def faults_of(header: Path) -> Iterator[Fault]:
    """Generate the faults of one header; comments, sentences and directives are left alone."""
    code = NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), header.read_text())
    for pattern, new in CHANGES:
        for found in re.finditer(pattern, code):
            yield Fault(header, found.start(), found.end(), found.expand(new))


def output(*words: str) -> str:
    """Return what a command prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def fails(words: list[str], **variables: str) -> bool:
    """Whether a command fails, or takes more than a minute of processor time."""
    limited = ["bash", "-c", 'ulimit -c 0 -t 60; exec "$@"', "bash", *words]
    environment = os.environ | variables
    done = subprocess.run(limited, cwd=BUILD, env=environment, capture_output=True, check=False)
    return done.returncode != 0


def environment_of(test: dict[str, Any]) -> dict[str, str]:
    """Return the variables that a test of ctest is run with."""
    lists = (one["value"] for one in test["properties"] if one["name"] == "ENVIRONMENT")
    return dict(entry.split("=", 1) for entries in lists for entry in entries)


def with_copy(words: list[str], copy: Path) -> list[str]:
    """Return a command that includes a copy of the headers in place of ours."""
    return [f"-I{copy}" if word == f"-I{HEADERS}" else word for word in words]


class Suite:
    """How the tests are compiled, linked and run, as their build says."""

    def __init__(self, *, with_sycl: bool) -> None:
        """Build the tests without a fault."""
        programs = ["core_tests", *(["sycl_tests"] if with_sycl else [])]
        choices = ["-G", "Ninja", "-B", str(BUILD), "-DCMAKE_UNITY_BUILD=OFF"]
        subprocess.run(["cmake", "--preset", "quick", *choices], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", str(BUILD), "--target", *programs], check=True)
        self.compile = {
            Path(one["file"]): [w for w in shlex.split(one["command"]) if not w.startswith("-W")]
            for one in json.loads((BUILD / "compile_commands.json").read_text())
            if Path(one["file"]).is_relative_to(TESTS)
        }
        listed = output("ctest", "--test-dir", str(BUILD), "--show-only=json-v1")
        self.tests = {test["name"]: test for test in json.loads(listed)["tests"]}
        self.link = {name: self.link_words(name) for name in programs}
        self.counter = [str(path) for path in BUILD.rglob("allocation_counter.cpp.o")]
        if with_sycl:
            output("ctest", "--test-dir", str(BUILD), "-R", "driver_copies")

    @staticmethod
    def link_words(program: str) -> list[str]:
        """Return the command that links a program, without its objects."""
        last = output("ninja", "-C", str(BUILD), "-t", "commands", program).splitlines()[-1]
        return [w for w in shlex.split(last) if w not in (":", "&&") and not w.endswith(".o")]

    def catches(self, file: Path, copy: Path) -> bool:
        """Whether a test file, compiled with a copy of the headers, fails or does not compile."""
        words = self.compile[file]
        words = with_copy(words[: words.index("-o")], copy)
        unit, program = str(copy / "unit.o"), str(copy / "unit")
        if fails([*words, "-c", str(file), "-o", unit]):
            return True
        if file.parent.name == "static":
            return False
        target = "sycl_tests" if file.parent.name == "sycl" else "core_tests"
        link = list(self.link[target])
        link[link.index("-o") + 1] = program
        objects = [unit, *(self.counter if target == "core_tests" else [])]
        if fails([link[0], *objects, *link[1:]]):
            raise RuntimeError(f"{file.name}: expected that it links alone, found that it does not")
        return any(
            fails([program, *test["command"][1:]], **environment_of(test))
            for name, test in self.tests.items()
            if name.split(".")[0] == target
        )

    def verdict(self, fault: Fault) -> str:
        """Return which test notices a fault, "no program" or "survived"."""
        stem = fault.header.stem
        folders = ("core", "kokkos", "static") if fault.header.parent.name == "core" else ("sycl",)
        files = [
            file
            for file in self.compile
            if file.parent.name in folders and file.stem != "allocation_counter"
        ]
        files.sort(key=lambda f: (f.stem.removeprefix("test_") != stem, f.parent.name, f.name))
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            copy = Path(folder) / "include"
            shutil.copytree(HEADERS, copy)
            changed = copy / fault.header.relative_to(HEADERS)
            changed.write_text(fault.text())
            model = self.compile[files[0]]
            alone = [w for w in with_copy(model[: model.index("-o")], copy) if w != "-c"]
            if fails([*alone, "-fsyntax-only", "-xc++", str(changed)]):
                return "no program"
            for file in files:
                if self.catches(file, copy):
                    return f"caught by {file.relative_to(TESTS)}"
            for name, test in self.tests.items():
                if name.startswith("compile_fail.") and fails(with_copy(test["command"], copy)):
                    return f"caught by {name}"
        return "survived"


def main() -> None:
    """Try what the command line asks for."""
    parser = argparse.ArgumentParser(prog="dev.py mutation", description=__doc__)
    parser.add_argument("--header", action="append", default=[], help="core/view.hpp; repeatable")
    parser.add_argument("--every", type=int, default=1, help="try one fault in so many")
    parser.add_argument("--list", action="store_true", help="print the faults, and try none")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at once (default: 2)")
    options = parser.parse_args()
    names = options.header or [
        path.relative_to(HEADERS / "usm_dlpack").as_posix()
        for folder in ("core", "sycl", "opencl")
        for path in sorted((HEADERS / "usm_dlpack" / folder).glob("*.hpp"))
    ]
    headers = [HEADERS / "usm_dlpack" / name for name in names]
    faults = [fault for header in headers for fault in faults_of(header)][:: options.every]
    if options.list:
        print("\n".join(map(str, faults)))
        return
    suite = Suite(with_sycl=any(header.parent.name != "core" for header in headers))
    counts = {"no program": 0, "survived": 0, "caught": 0}
    with ThreadPoolExecutor(options.jobs) as pool:
        for fault, verdict in zip(faults, pool.map(suite.verdict, faults), strict=True):
            counts[verdict if verdict in counts else "caught"] += 1
            print(f"{verdict}: {fault}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
