# SPDX-License-Identifier: Apache-2.0
"""Which faults the C++ suite catches: the builds and the runs.

The headers with all faults compiled in are built once. Each test case is run once with no fault
on, which records the faults that it comes to; then each fault is tried with the cases that come to
it, up to the first that fails. A fault that cannot be compiled in, or that survives so, is tried
in a copy of its header alone: with the static tests, the refusals at compile time and the unit
tests, each compiled with that copy in front.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from faults import Fault, faults_of
from schema import Schema, Structure, apply, with_functions
from tokens import Source

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
HEADERS = ROOT / "include" / "usm_dlpack"
#: UBSan and the library's assertions, as in the preset `dev`; without ASan, the SYCL runtime
#: starts in a quarter of the time.
FLAGS = "-O0 -D_GLIBCXX_ASSERTIONS -fsanitize=undefined -fno-sanitize-recover=all"


class RefusalError(Exception):
    """The check cannot go on; its text is ``<field>: expected ..., found ...; <remedy>``."""


@dataclass(frozen=True)
class Verdict:
    """What became of a fault."""

    outcome: str  # "caught", "survived" or "no program"
    by: str = ""

    @property
    def caught(self) -> bool:
        """Whether the suite notices the fault."""
        return self.outcome == "caught"


@dataclass
class Case:
    """A test case of GoogleTest in one process of the suite."""

    name: str
    seconds: float = 0.0
    reached: frozenset[int] = frozenset()


@dataclass
class Program:
    """One test of ctest: a program, its environment, and the cases that it runs."""

    name: str
    executable: str
    filter: str
    environment: dict[str, str]
    cases: list[Case] = field(default_factory=list)

    @property
    def limit(self) -> int:
        """Seconds of processor time, several times what all cases need, that end endless loops."""
        return 4 if self.name == "core_tests" else 40

    def run(
        self, cases: Sequence[str], seconds: int, executable: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run some cases up to the first that fails, with a limit on processor time and memory."""
        limits = f'ulimit -c 0 -t {seconds} -v 50000000 -d 6000000; exec "$@"'
        chosen = ":".join(cases) or self.filter
        program = executable or self.executable
        words = ["bash", "-c", limits, "bash", program, f"--gtest_filter={chosen}"]
        environment = os.environ | self.environment | variables
        try:
            return subprocess.run(
                [*words, "--gtest_fail_fast"],
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=60 + 10 * seconds,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 1, "", "timeout")


def write_if_changed(path: Path, text: str) -> None:
    """Write a file, unless it holds the text already: what is built of it stays valid then."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def headers_of_the_suite() -> list[Path]:
    """Return the headers that C++ tests can include: those for extensions need an interpreter."""
    texts = {path: path.read_text() for path in sorted(HEADERS.glob("*.hpp"))}
    left_out = {path for path, text in texts.items() if "#include <nanobind/" in text}
    while more := {
        path
        for path, text in texts.items()
        if path not in left_out
        and any(f"#include <usm_dlpack/{other.name}>" in text for other in left_out)
    }:
        left_out |= more
    return [path for path in texts if path not in left_out]


class Suite:
    """The faults of all headers, and the suite built with them."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.folder = folder
        self.jobs = jobs
        self.project = folder / "project"
        self.build = folder / "build"
        self.sources = {p.name: Source.read(p) for p in headers_of_the_suite()}
        self.structures = {name: Structure(s) for name, s in self.sources.items()}
        self.faults: dict[int, Fault] = {}
        for name, source in self.sources.items():
            for fault in with_functions(self.structures[name], faults_of(source)):
                self.faults[len(self.faults) + 1] = fault
        self.switched: set[int] = set()
        self.alone: set[int] = set()
        self.targets = ["core_tests"]
        self.programs: list[Program] = []
        self.links: dict[str, list[str]] = {}
        #: Cases that fail without a fault, and so cannot tell one.
        self.failing: list[str] = []

    # The build with all faults

    def prepare(self, chosen: set[int]) -> None:
        """Build the suite with every fault that can be compiled in, and see what each case does.

        Where the faults that are chosen need no SYCL, the tests that do are left alone.
        """
        headers = {self.faults[number].header for number in chosen}
        if any(self._has_sycl(header) for header in headers):
            self.targets = ["core_tests", "sycl_tests"]
        self._copy_project()
        self._remember_alone()
        self._write_headers()
        self._configure()
        self.commands = {
            Path(c["file"]): shlex.split(c["command"])
            for c in json.loads((self.build / "compile_commands.json").read_text())
        }
        self._until_it_compiles(self._check_syntax)
        self._until_it_compiles(self._build)
        self._find_programs()

    def _copy_project(self) -> None:
        """Copy what the C++ tests are built from, files that are the same left alone."""
        wanted = set()
        pieces = ["CMakeLists.txt", "cmake", "tests/cpp", "tests/devices"]
        for piece in (ROOT / p for p in pieces):
            for file in [piece] if piece.is_file() else sorted(piece.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    copy = self.project / file.relative_to(ROOT)
                    wanted.add(copy)
                    write_if_changed(copy, file.read_text())
        for file in self.project.rglob("*"):
            if file.is_file() and file not in wanted and "include" not in file.parts:
                file.unlink()
        switch = self.project / "include" / "usm_dlpack_mutation" / "switch.hpp"
        write_if_changed(switch, (HERE / "switch.hpp").read_text())

    def _write_headers(self) -> None:
        self.switched = set()
        for name, source in self.sources.items():
            chosen = {
                number: fault
                for number, fault in self.faults.items()
                if fault.header == name and number not in self.alone
            }
            schema = Schema(source, self.structures[name], chosen)
            self.switched |= schema.switched
            # With all faults in it, code that must be inlined takes gigabytes to compile.
            text = re.sub(r"(gnu::)(always_inline|flatten)", r"\1unused", schema.text())
            write_if_changed(self.project / "include" / "usm_dlpack" / name, text)

    def _configure(self) -> None:
        defines = {
            "CMAKE_CXX_COMPILER": "g++",
            "CMAKE_CXX_STANDARD": "17",
            "CMAKE_CXX_FLAGS": FLAGS,
            "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        }
        choices = [f"-D{name}={value}" for name, value in defines.items()]
        words = ["cmake", "-G", "Ninja", "-S", str(self.project), "-B", str(self.build), *choices]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RefusalError(
                f"cmake: expected exit status 0, found {done.returncode}; read\n{done.stderr}"
            )

    def _check_syntax(self) -> str:
        """Compile the umbrella headers, which shows most of what cannot be compiled in."""
        printed = ""
        for header, folder in (("core", "static"), ("usm", "sycl")):
            file = self.folder / f"{header}.cpp"
            write_if_changed(file, f"#include <usm_dlpack/{header}.hpp>\n")
            command = self._command(self._files(folder)[0])
            done = subprocess.run(
                [*command, "-fsyntax-only", str(file)], capture_output=True, text=True, check=False
            )
            printed += done.stderr if done.returncode != 0 else ""
        return printed

    def _build(self) -> str:
        words = ["cmake", "--build", str(self.build), "--target", *self.targets]
        done = subprocess.run(
            [*words, "--", f"-j{self.jobs}", "-k0"], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr if done.returncode != 0 else ""

    def _until_it_compiles(self, attempt: Callable[[], str]) -> None:
        """Take out the faults that do not compile, until the rest does."""
        while printed := attempt():
            bad = self._blamed(printed)
            if not bad - self.alone:
                raise RefusalError(
                    "faults: expected headers that compile with them, found others; "
                    f"read\n{printed[-4000:]}"
                )
            self.alone |= bad
            self._write_headers()
            keys = [list(self.faults[number].key) for number in sorted(self.alone)]
            (self.folder / "alone.json").write_text(json.dumps(keys, indent=1))

    def _remember_alone(self) -> None:
        """Start with what the last run took out."""
        file = self.folder / "alone.json"
        if file.exists():
            keys = {tuple(key) for key in json.loads(file.read_text())}
            self.alone = {n for n, fault in self.faults.items() if fault.key in keys}

    def _blamed(self, printed: str) -> set[int]:
        """Return the faults on the lines that errors, or else the instantiations of them, name."""
        lines = {
            name: (self.project / "include" / "usm_dlpack" / name).read_text().splitlines()
            for name in self.sources
        }
        blamed: set[int] = set()
        chain: set[int] = set()
        for line in printed.splitlines():
            found = re.search(r"include/usm_dlpack/(\w+\.hpp):(\d+)", line)
            numbers: set[int] = set()
            if found:
                text = lines[found[1]][int(found[2]) - 1]
                numbers = {int(n) for n in re.findall(r"usm_dlpack_mutation::on\((\d+)\)", text)}
            if "error:" in line:
                blamed |= numbers or chain
                chain = set()
            elif "required from" in line or "required by" in line:
                chain |= numbers
        return blamed

    # What each case comes to

    def _find_programs(self) -> None:
        self.links = {target: self._link_words(target) for target in self.targets}
        words = ["ctest", "--test-dir", str(self.build)]
        subprocess.run([*words, "-R", "^driver_copies$"], capture_output=True, check=True)
        done = subprocess.run(
            [*words, "--show-only=json-v1"], capture_output=True, text=True, check=True
        )
        self.tests = {t["name"]: t for t in json.loads(done.stdout)["tests"]}
        for name, test in sorted(self.tests.items()):  # core_tests first
            if name.split(".")[0] in self.targets:
                self.programs.append(self._program(name, test["command"], test["properties"]))
        work = [(program, case) for program in self.programs for case in program.cases]
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(lambda pair: self._reach(*pair), work))

    def _program(
        self, name: str, command: list[str], properties: list[dict[str, object]]
    ) -> Program:
        variables: dict[str, str] = {}
        for entry in properties:
            if entry["name"] == "ENVIRONMENT" and isinstance(entry["value"], list):
                variables = dict(str(item).split("=", 1) for item in entry["value"])
        if "USM_DLPACK_TEST_INCLUDES" in variables:  # kernels are built with the right headers
            includes = variables["USM_DLPACK_TEST_INCLUDES"]
            variables["USM_DLPACK_TEST_INCLUDES"] = includes.replace(f"{self.project}/", f"{ROOT}/")
        chosen = command[1].partition("=")[2] if len(command) > 1 else "*"
        program = Program(name, command[0], chosen, variables)
        listed = subprocess.run(
            [command[0], f"--gtest_filter={chosen}", "--gtest_list_tests"],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        suite = ""
        for line in listed.splitlines():
            if line.startswith("  "):
                program.cases.append(Case(suite + line.split("#")[0].strip()))
            elif line.endswith(".") or ".  #" in line:
                suite = line.split("#")[0].strip()
        return program

    def _reach(self, program: Program, case: Case) -> None:
        """Record which faults a case comes to with none on, unless its program is known."""
        record = self.folder / "reached" / program.name / f"{case.name.replace('/', '_')}.json"
        stamp = Path(program.executable).stat().st_mtime_ns
        known = json.loads(record.read_text()) if record.exists() else {}
        if known.get("stamp") != stamp:
            known = {"stamp": stamp} | self._run_alone(program, case, record.with_suffix(""))
            if not known["passed"]:
                self.failing.append(f"{program.name}: {case.name}")
                return
            record.write_text(json.dumps(known))
        case.seconds = known["seconds"]
        case.reached = frozenset(known["reached"])

    def _run_alone(self, program: Program, case: Case, folder: Path) -> dict[str, object]:
        """Run a case in a process of its own, so that what happens once in one is seen."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        start = time.monotonic()
        done = program.run([case.name], 600, USM_DLPACK_FAULTS_REACHED=f"{folder}/")
        seconds = time.monotonic() - start
        numbers = sorted({int(n) for file in folder.iterdir() for n in file.read_text().split()})
        shutil.rmtree(folder)
        return {"passed": done.returncode == 0, "seconds": seconds, "reached": numbers}

    # Trials

    def try_switched(self, number: int) -> Verdict:
        """Switch a fault on, and run the cases that come to it."""
        reached = False
        # What needs no SYCL has to be caught without a device, under any mdspan and compiler.
        with_sycl = self._has_sycl(self.faults[number].header)
        for program in self.programs if with_sycl else self.programs[:1]:
            cases = [c for c in program.cases if number in c.reached]
            reached = reached or bool(cases)
            # The quick ones first: most faults are seen by many cases.
            middle = sorted(c.seconds for c in cases)[len(cases) // 2] if cases else 0.0
            quick = [c for c in cases if c.seconds <= 2 * middle]
            slow = [c for c in cases if c.seconds > 2 * middle]
            for group in (quick, slow):
                if group and (by := self._failed(program, group, number)):
                    return Verdict("caught", by)
        return Verdict("survived", "" if reached else "never reached")

    def _failed(self, program: Program, cases: list[Case], number: int) -> str:
        names = [c.name for c in cases]
        done = program.run(names, program.limit, USM_DLPACK_FAULT=str(number))
        return "" if done.returncode == 0 else first_failure(program, done)

    def try_alone(self, number: int, *, units: bool) -> Verdict:
        """Try a fault in a copy of its header, with the static tests, and with the unit tests."""
        fault = self.faults[number]
        overlay = self.folder / "alone" / str(number)
        header = overlay / "usm_dlpack" / fault.header
        text = apply(self.sources[fault.header].text, fault)
        if fault.kind == "throw":
            text = text.replace("[[noreturn, ", "[[")
        write_if_changed(header, text)
        try:
            return self._try_copy(fault, overlay, units)
        finally:
            shutil.rmtree(overlay, ignore_errors=True)

    def _try_copy(self, fault: Fault, overlay: Path, units: bool) -> Verdict:
        with_sycl = self._has_sycl(fault.header)
        alone = overlay / "alone.cpp"
        write_if_changed(alone, f"#include <usm_dlpack/{fault.header}>\n")
        model = self._files("sycl" if with_sycl else "static")[0]
        if self._errors([*self._command(model, overlay), "-fsyntax-only", str(alone)]):
            return Verdict("no program", "does not compile")
        stems = self._tested_as(fault.header)
        for file in by_likeness([] if with_sycl else self._files("static"), stems):
            words = [*self._command(file, overlay), "-fsyntax-only", str(file)]
            if errors := self._errors(words):
                return Verdict("caught", self._refused_by(file, errors))
        folders = ["sycl"] if with_sycl else ["core", "kokkos"]
        files = by_likeness([f for folder in folders for f in self._files(folder)], stems)
        first = [f for f in files if like(f, stems)] if units else []
        rest = [f for f in files if f not in first] if units else []
        refusals = [t for t in self.tests if t.startswith("compile_fail.") and not with_sycl]
        by = (
            next(filter(None, (self._unit_fails(file, overlay) for file in first)), "")
            or next((t for t in refusals if rest and self._refusal_fails(t, overlay)), "")
            or next(filter(None, (self._unit_fails(file, overlay) for file in rest)), "")
        )
        return Verdict("caught", by) if by else Verdict("survived")

    def _refusal_fails(self, name: str, overlay: Path) -> bool:
        """Whether what is to be refused at compile time is not, or for another reason."""
        words = self._with_copy(self.tests[name]["command"], overlay)
        return subprocess.run(words, capture_output=True, check=False).returncode != 0

    def _refused_by(self, file: Path, errors: str) -> str:
        """Which test, and whether it asserts something or just does not compile."""
        name = file.relative_to(self.project / "tests" / "cpp")
        if "static assertion failed" in errors or "constant" in errors:
            return f"static_assert in {name}"
        return f"the compiler in {name}"

    def _unit_fails(self, file: Path, overlay: Path) -> str:
        """Build a program of one test file, run it, and say what failed."""
        target = "sycl_tests" if file.parent.name == "sycl" else "core_tests"
        unit, program = overlay / "unit.o", overlay / "unit"
        words = [*self._command(file, overlay), "-c", str(file), "-o", str(unit)]
        if errors := self._errors(words):
            return self._refused_by(file, errors)
        objects = [unit]
        if target == "core_tests" and file.stem != "allocation_counter":
            objects += self.build.rglob("allocation_counter.cpp.o")
        subprocess.run(self._link(target, objects, program), check=True, cwd=self.build)
        for test in (p for p in self.programs if p.name.split(".")[0] == target):
            done = test.run([], test.limit, executable=str(program))
            if done.returncode != 0:
                return first_failure(test, done)
        return ""

    def _link_words(self, target: str) -> list[str]:
        """Return how a program is linked; ninja is asked once, as it writes when it reads."""
        printed = subprocess.run(
            ["ninja", "-C", str(self.build), "-t", "commands", target],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        return [w for w in shlex.split(printed) if w not in (":", "&&") and not w.endswith(".o")]

    def _link(self, target: str, objects: Iterable[Path], program: Path) -> list[str]:
        words = list(self.links[target])
        words[words.index("-o") + 1] = str(program)
        return [words[0], *map(str, objects), *words[1:]]

    def _has_sycl(self, header: str) -> bool:
        """Whether a header includes SYCL, or one of ours that does."""
        text = self.sources[header].text
        included = re.findall(r"#include <usm_dlpack/(\w+\.hpp)>", text)
        return "<sycl/" in text or any(self._has_sycl(name) for name in included)

    def _tested_as(self, header: str) -> set[str]:
        """Return the headers whose tests are a header's: its own, or else of what includes it."""
        stem = Path(header).stem
        if any(like(file, {stem}) for file in self.commands):
            return {stem}
        line = f"#include <usm_dlpack/{header}>"
        return {Path(name).stem for name, source in self.sources.items() if line in source.text}

    def _files(self, folder: str) -> list[Path]:
        """Return the test files of a folder that are compiled."""
        parent = self.project / "tests" / "cpp" / folder
        return sorted(file for file in self.commands if file.parent == parent)

    def _command(self, file: Path, overlay: Path | None = None) -> list[str]:
        """Return the compiler and flags of a test file, with a copy of a header in front."""
        words = self.commands[file]
        kept = words[: words.index("-o")]
        return self._with_copy(kept, overlay) if overlay else kept

    def _with_copy(self, words: Iterable[str], overlay: Path) -> list[str]:
        """Return the words of a command, with the right headers behind the copy of one."""
        made: list[str] = []
        for word in words:
            if word == f"-I{self.project}/include":
                made += [f"-I{overlay}", f"-I{ROOT}/include"]
            else:
                made.append(word)
        return made

    def _errors(self, words: list[str]) -> str:
        """Return what a compiler prints where it refuses; nothing where it does not."""
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=self.build)
        return (done.stderr or "refused") if done.returncode != 0 else ""


def like(file: Path, stems: set[str]) -> bool:
    """Whether a test file is named after one of some headers."""
    return file.stem.removeprefix("test_") in stems


def by_likeness(files: list[Path], stems: set[str]) -> list[Path]:
    """Test files, those first that are named after one of some headers."""
    return sorted(files, key=lambda f: (not like(f, stems), f.name))


def first_failure(program: Program, done: subprocess.CompletedProcess[str]) -> str:
    """Return the case that failed, or in which the program ended."""
    if found := re.search(r"^\[  FAILED  \] ([\w./]+)", done.stdout, re.MULTILINE):
        return f"{program.name}: {found[1]}"
    started = re.findall(r"^\[ RUN      \] ([\w./]+)", done.stdout, re.MULTILINE)
    end = "does not end" if done.returncode in (1, -9, -24, 137, 152) else "crashes"
    return f"{program.name}: {started[-1] if started else 'its start'} {end}"
