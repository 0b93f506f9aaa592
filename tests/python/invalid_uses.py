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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
from recorded_uses import FOLDER, Use, uses_in  # noqa: E402

# The Python files that need no environment of their own.
PLAIN = ("memory.py", "exchange.py", "arguments.py", "process.py")


# --- Python


def say(source: str) -> None:
    """Print what each function of a Python file raised, as JSON: what a new process is for."""
    specification = importlib.util.spec_from_file_location("uses", FOLDER / source)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(FOLDER))  # of on_device.py
    specification.loader.exec_module(module)
    said = []
    for name, _ in uses_in(source):
        try:
            getattr(module, name)()
        except Exception as error:
            lines = traceback.extract_tb(error.__traceback__)
            assert any(line.name == name for line in lines)
            said.append((name, type(error).__name__, getattr(error, "code", ""), str(error)))
        else:
            said.append((name, "", "", "nothing was raised"))
    print(json.dumps(said))


# --- C++


def build_programs() -> Path:
    """Build the programs against the installed package, and return their folder."""
    import usm_dlpack

    place = hashlib.sha256(bytes(Path(sys.prefix))).hexdigest()[:16]
    folder = ROOT / "build" / "invalid_uses" / place
    tools = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in (
        [
            *("cmake", "-S", str(FOLDER), "-B", str(folder)),
            f"-Dusm_dlpack_DIR={usm_dlpack.get_cmake_dir()}",
            f"-DPython_EXECUTABLE={sys.executable}",
        ],
        ["cmake", "--build", str(folder)],
    ):
        done = subprocess.run(command, env=tools, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run_program(program: Path, *arguments: str, environment: dict[str, str]) -> list[Use]:
    """Return what the uses of a program said."""
    done = subprocess.run(
        [program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return [Use(f"{program.name}.cpp", name, code, sentence) for name, code, sentence in lines]


def include_flags() -> list[str]:
    """Return the flags of what a use that the compiler refuses includes."""
    import nanobind
    import usm_dlpack

    third_party = Path(usm_dlpack.get_include(), "../share/usm_dlpack/third_party")
    flags = ["-I", usm_dlpack.get_include()]
    flags += ["-isystem", str(third_party / "dlpack"), "-isystem", str(third_party / "mdspan")]
    flags += ["-DMDSPAN_IMPL_STANDARD_NAMESPACE=Kokkos"]
    flags += ["-DMDSPAN_IMPL_PROPOSED_NAMESPACE=Experimental"]
    flags += ["-isystem", str(Path(sys.prefix) / "include")]
    flags += ["-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING"]
    return [*flags, "-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_path("include")]


def compile_use(name: str) -> Use:
    """Return the sentence with which g++ refuses a use of compile_time.cpp."""
    source = FOLDER / "compile_time.cpp"
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-D{name}", *include_flags(), str(source)]
    variables = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode != 0, f"{name} compiles"
    return Use("compile_time.cpp", name, "", sentence_of_compiler(done.stderr))


def sentence_of_compiler(printed: str) -> str:
    """Return the first house sentence of a diagnostic."""
    found = re.search(r"static assertion failed: (\w[^:\n]*: expected .*)", printed)
    found = found or re.search(r'throw_if\(.*?"(\w[^"]*: expected [^"]*)"', printed)
    assert found is not None, printed
    return found[1]


# --- Commands


def run_command(name: str, folder: Path, environment: dict[str, str]) -> Use:
    """Return what a use of commands.sh says on its last line, to standard error."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", FOLDER / "commands.sh", name],
        cwd=folder,
        env=environment | {"PATH": tools},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (1, 2, 3), done.stderr
    return Use("commands.sh", name, "", done.stderr.strip().splitlines()[-1])


# --- The build


def build_wrongly(name: str, folder: Path) -> Use:
    """Return the sentence with which CMake or the compiler refuses a use of building.sh.

    The folder stands in it as ``<folder>``, CMake's Python as ``<found>``.
    """
    import usm_dlpack

    variables = os.environ | {
        "LC_ALL": "C",
        "INCLUDE": usm_dlpack.get_include(),
        "PACKAGE": usm_dlpack.get_cmake_dir(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SOURCE": str(ROOT),
    }
    done = subprocess.run(
        ["sh", FOLDER / "building.sh", name],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
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
