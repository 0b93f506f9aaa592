# SPDX-License-Identifier: Apache-2.0
"""Runs the invalid uses of docs/examples/invalid_uses, and gives what each one said.

``sentences.txt`` there holds the same, for the pages to show; a test compares the two.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "examples" / "invalid_uses"
RECORD = FOLDER / "sentences.txt"

# The Python files that need no environment of their own.
PLAIN = ("memory.py", "exchange.py", "arguments.py", "process.py")


@dataclass(frozen=True)
class Use:
    """What one use raised: where it stands, the rule it broke if that has a code, the sentence."""

    source: str
    name: str
    code: str
    sentence: str


def read_record() -> list[Use]:
    """Return the uses of ``sentences.txt``: two lines each, and an empty one."""
    uses = []
    for entry in RECORD.read_text(encoding="utf-8").split("\n\n")[1:]:
        head, sentence = entry.strip().split("\n")
        source, name, code = (part.strip() for part in head.split("|"))
        uses.append(Use(source, name, code, sentence))
    return uses


def write_record(uses: list[Use]) -> str:
    """Return the text of ``sentences.txt``."""
    head = "What the invalid uses of this folder say; tests/python/test_invalid_uses.py compares."
    entries = (f"{use.source} | {use.name} | {use.code}\n{use.sentence}\n" for use in uses)
    return "\n".join([f"{head}\n", *entries])


def names_of(source: str) -> list[str]:
    """Return the marked regions of a file, in their order."""
    text = (FOLDER / source).read_text(encoding="utf-8")
    return re.findall(r"\[begin (\w+)\]$", text, re.MULTILINE)


# --- Python


def say(source: str) -> None:
    """Print what each function of a Python file raised, as JSON: what a new process is for."""
    specification = importlib.util.spec_from_file_location("uses", FOLDER / source)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    said = []
    for name in names_of(source):
        use = getattr(module, name, None)
        if use is None:  # a region that several uses share
            continue
        assert isinstance(use, FunctionType)
        try:
            use()
        except Exception as error:
            lines = traceback.extract_tb(error.__traceback__)
            assert any(line.name == name for line in lines)
            said.append((name, type(error).__name__, getattr(error, "code", ""), str(error)))
        else:
            said.append((name, "", "", "nothing was raised"))
    print(json.dumps(said))


# --- C++

TOOLS = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C"}


def run(*command: str | Path, **choices: Any) -> subprocess.CompletedProcess[str]:
    """Run a command with the tools of this environment, and keep what it prints."""
    choices = {"env": os.environ | TOOLS} | choices
    words = [str(word) for word in command]
    return subprocess.run(
        words, capture_output=True, text=True, timeout=900, check=False, **choices
    )


def build_programs() -> Path:
    """Build the programs against the installed package, and return their folder."""
    import usm_dlpack

    place = hashlib.sha256(bytes(Path(sys.prefix))).hexdigest()[:16]
    folder = ROOT / "build" / "invalid_uses" / place
    package = f"-Dusm_dlpack_DIR={usm_dlpack.get_cmake_dir()}"
    python = f"-DPython_EXECUTABLE={sys.executable}"
    for command in (["-S", FOLDER, "-B", folder, package, python], ["--build", folder]):
        done = run("cmake", *command)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run_program(program: Path, *arguments: str, environment: dict[str, str]) -> list[Use]:
    """Return what the uses of a program said."""
    done = run(program, *arguments, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return [Use(f"{program.name}.cpp", name, code, sentence) for name, code, sentence in lines]


def include_flags(name: str) -> list[str]:
    """Return the flags of what a use that the compiler refuses includes."""
    import usm_dlpack

    third_party = Path(usm_dlpack.get_include()).parent / "third_party"
    flags = ["-I", usm_dlpack.get_include()]
    flags += ["-isystem", str(third_party / "dlpack"), "-isystem", str(third_party / "mdspan")]
    flags += ["-DMDSPAN_IMPL_STANDARD_NAMESPACE=Kokkos"]
    flags += ["-DMDSPAN_IMPL_PROPOSED_NAMESPACE=Experimental"]
    if name in WITHOUT_SYCL:
        return [*flags, "-Dwithout_sycl"]
    flags += ["-isystem", str(Path(sys.prefix) / "include")]
    flags += ["-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING"]
    if name in WITH_SYCL:
        return [*flags, "-Dwith_sycl"]
    import nanobind

    return [*flags, "-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_path("include")]


WITHOUT_SYCL = frozenset(
    {
        "vector_as_view",
        "handle_that_is_no_pointer",
        "accessor_that_scales",
        "element_without_a_dtype",
        "dtype_of_another_size",
        "padded_elements_without_flags",
        "layout_without_strides",
    }
)
WITH_SYCL = frozenset(
    {
        "host_code_that_indexes_device_usm",
        "accessor_of_no_kind",
        "array_of_const_elements",
        "queue_checked_with_a_number",
    }
)


def compile_use(name: str) -> Use:
    """Return the sentence with which g++ refuses a use of compile_time.cpp."""
    flags = ("-std=c++17", "-fsyntax-only", f"-D{name}", *include_flags(name))
    done = run("g++", *flags, FOLDER / "compile_time.cpp")
    assert done.returncode != 0, f"{name} compiles"
    return Use("compile_time.cpp", name, "", sentence_of_compiler(done.stderr))


def sentence_of_compiler(printed: str) -> str:
    """Return the first house sentence of a diagnostic: said whole, or quoted from the header."""
    whole = re.search(r"static assertion failed: (\w[^:\n]*: expected .*)", printed)
    if whole is not None:
        return whole[1]
    quoted = re.search(r"throw (\".*?), 0;", printed, re.DOTALL)
    assert quoted is not None, printed
    return "".join(re.findall(r'"([^"]*)"', quoted[1]))


# --- Commands


def run_command(name: str, folder: Path) -> Use:
    """Return what a use of commands.sh says on its last line, to standard error."""
    done = run("sh", FOLDER / "commands.sh", name, cwd=folder, env=TOOLS)
    assert done.returncode in (1, 2, 3), done.stderr
    return Use("commands.sh", name, "", done.stderr.strip().splitlines()[-1])


# --- The build


def build_wrongly(name: str, folder: Path) -> Use:
    """Return the sentence with which CMake or the compiler refuses a use of building.sh.

    The folder stands in it as ``<folder>``, CMake's Python as ``<found>``.
    """
    import usm_dlpack

    variables = os.environ | TOOLS
    variables |= {"INCLUDE": usm_dlpack.get_include(), "PACKAGE": usm_dlpack.get_cmake_dir()}
    variables |= {"SOURCE": str(ROOT)}
    done = run("sh", FOLDER / "building.sh", name, cwd=folder, env=variables)
    assert done.returncode != 0, f"{name} builds"
    printed = " ".join(done.stderr.replace(str(folder), "<folder>").split())
    printed = re.sub(r"(CMake's Python,) [^ ]+,", r"\1 <found>,", printed)
    found = re.search(
        r"(?:#error |\(message\): )([\w/.<>]+: expected .*?)"
        r"(?: Call Stack| \d+ \||(?= -- Configuring)|$)",
        printed,
    )
    assert found is not None, done.stderr
    return Use("building.sh", name, "", found[1])


if __name__ == "__main__":
    say(sys.argv[1])
