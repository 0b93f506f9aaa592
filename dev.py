# SPDX-License-Identifier: Apache-2.0
"""The project's commands.

Each command needs nothing before it: on Debian, as root, it installs the packages that are missing;
everything else goes into virtual environments below ``.dev/``. Only the standard library is used.
"""

import argparse
import functools
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple


def require_python(minor: int) -> None:
    """Exit if the interpreter is older; what stands above this function is Python 3.6."""
    if sys.version_info < (3, minor):
        found = ".".join(map(str, sys.version_info[:3]))
        sys.exit(f"python3: expected 3.{minor} or newer, found {found}; run it with a newer one")


require_python(10)

ROOT = Path(__file__).resolve().parent
DEV = ROOT / ".dev"

# The Debian packages for C++ tests, each with a file that shows it is installed.
VALGRIND = {"valgrind": "/usr/bin/valgrind"}
GOOGLETEST = {"libgtest-dev": "/usr/src/googletest/googletest/CMakeLists.txt"}
# What the C++ tests on devices need, where the Python package is not installed with them.
WHEELS = ["intel-sycl-rt>=2026.0,<2027", "intel-opencl-rt", "apache-tvm-ffi>=0.1.9"]


class RefusalError(Exception):
    """A command cannot go on; its text is ``<field>: expected ..., found ...; <remedy>``."""


def run(
    *command: str | Path,
    environment: dict[str, str] | None = None,
    folder: Path = ROOT,
    check: bool = True,
) -> int:
    """Print a command, run it, by default at the project's root, and return its exit status."""
    words = [str(word) for word in command]
    print(f"$ {shlex.join(words)}", flush=True)
    done = subprocess.run(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=False)
    if check and done.returncode != 0:
        raise RefusalError(
            f"{Path(words[0]).name}: expected exit status 0, found {done.returncode}; "
            "read what it printed above"
        )
    return done.returncode


def missing_for_python() -> list[str]:
    """Return the Debian packages without which this Python cannot build extensions in a venv."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    missing = []
    # Debian ships `venv` without `ensurepip`, which only the -venv package brings.
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        missing.append(f"{version}-venv")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append(f"{version}-dev")
    if shutil.which("g++") is None:
        missing.append("g++")
    return missing


def require_debian_packages(missing: list[str]) -> None:
    """Install Debian packages as root; anyone else is told which ones to install."""
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        named = ", ".join(missing).replace("g++", "g++ (a C++17 compiler)")
        raise RefusalError(
            f"system packages: expected {named}, found none of them; "
            f"run `apt-get install {' '.join(missing)}` as root, or what your system has instead"
        )
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", environment=environment)
    # Another installation may be running, for example the unattended one of a new machine.
    install = ["apt-get", "install", "-y", "-o", "DPkg::Lock::Timeout=300"]
    run(*install, "--no-install-recommends", *missing, environment=environment)


def absent(packages: dict[str, str]) -> list[str]:
    """Return the packages whose file is not there."""
    return [package for package, file in packages.items() if not Path(file).exists()]


class Environment(NamedTuple):
    """A virtual environment below ``.dev/``."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        """The process environment in which its tools are found first."""
        inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONHOME", "PYTHONPATH")}
        return inherited | {
            "VIRTUAL_ENV": str(self.folder),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "CMAKE_GENERATOR": "Ninja",
        }

    def run(self, *command: str | Path, check: bool = True, **variables: str) -> int:
        """Run a command with the environment's tools first, and some more variables."""
        return run(*command, environment=self.variables | variables, check=check)

    def install(self, *requirements: str | Path) -> None:
        """Install with pip what is not there yet."""
        self.run(self.python, "-m", "pip", "install", *requirements)

    def install_project(self, *requirements: str) -> None:
        """Install this project, built for the SYCL runtime that is installed.

        The build folder is inside, so that only what has changed is compiled.
        """
        build = f"--config-settings=build-dir={self.folder / 'build'}"
        self.install("--no-build-isolation", build, *requirements)


def make_environment(name: str, interpreter: str | Path = sys.executable) -> Environment:
    """Make a virtual environment, or take the one that is there if it is of the same version."""
    environment = Environment(DEV / name)
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    wanted = subprocess.check_output([interpreter, "-c", ask], text=True).strip()
    try:
        present = subprocess.run(
            [environment.python, "-c", ask], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        present = ""
    if present != wanted:
        run(interpreter, "-m", "venv", "--clear", environment.folder)
    return environment


def prepare(*requirements: str, packages: dict[str, str] | None = None) -> Environment:
    """Install what is missing: Debian packages, ``.dev/venv``, and requirements in it."""
    require_debian_packages(missing_for_python() + absent(packages or {}))
    environment = make_environment("venv")
    if requirements:
        environment.install(*requirements)
    return environment


def installed_module(environment: Environment) -> Path | None:
    """Return the package's compiled module in an environment."""
    found = environment.folder.glob("lib/python*/site-packages/usm_dlpack/_core*.so")
    return next(found, None)


def is_newer(file: Path | None, others: list[Path]) -> bool:
    """Return whether a file is there, and has changed after all others."""
    if file is None or not file.exists():
        return False
    return file.stat().st_mtime >= max(other.stat().st_mtime for other in others)


def is_built(environment: Environment) -> bool:
    """Return whether an environment has the package, newer than all that its build reads.

    Its Python files are not built: `copy_python_files`.
    """
    trees = [ROOT / name for name in ("bindings", "cmake", "docs/errors", "include")]
    # Folders too: their times tell of a file that is no more.
    sources = [file for tree in trees for file in (tree, *tree.rglob("*"))]
    sources += [ROOT / "pyproject.toml", ROOT / "CMakeLists.txt"]
    return is_newer(installed_module(environment), sources)


def copy_python_files(environment: Environment) -> None:
    """Copy the package's Python files to an environment that has the package."""
    module = installed_module(environment)
    assert module is not None
    sources, package = ROOT / "python" / "usm_dlpack", module.parent
    for file in package.rglob("*.py"):
        if not (sources / file.relative_to(package)).exists():
            file.unlink()
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(sources, package, ignore=ignored, dirs_exist_ok=True)


def prepare_package(requirements: str, packages: dict[str, str] | None = None) -> Environment:
    """Prepare, and install the package, unless it is there as these sources are.

    Where the same was installed last, and nothing since, pip is not run at all.
    """
    environment = prepare(packages=packages)
    last = environment.folder / "installed_last.txt"
    folders = [*environment.folder.glob("lib/python*/site-packages")]  # pip renews their times
    changing = [*folders, *(ROOT / "requirements").iterdir()]
    if not is_built(environment):
        environment.install("-r", requirements, *WHEELS)
        environment.install_project(".[cpu,test]")
        last.write_text(requirements)
    elif not (is_newer(last, changing) and last.read_text() == requirements):
        environment.install("-r", requirements, *WHEELS, "usm-dlpack[cpu,test]")
        last.write_text(requirements)
    copy_python_files(environment)
    return environment


def lint() -> int:
    """Check layout, style and types, with the tools that requirements/lint.txt pins."""
    require_debian_packages([p for p in missing_for_python() if p.endswith("-venv")])
    environment = make_environment("lint")
    environment.install("-r", "requirements/lint.txt")
    folders = ("benchmarks", "bindings", "docs", "examples", "include", "tests")
    files = (file.relative_to(ROOT) for name in folders for file in (ROOT / name).rglob("*.[ch]pp"))
    sources = sorted(file for file in files if "build" not in file.parts)
    statuses = [
        environment.run("clang-format", "--dry-run", "-Werror", *sources, check=False),
        environment.run("ruff", "check", check=False),
        environment.run("ruff", "format", "--check", check=False),
        environment.run("mypy", check=False),
    ]
    return max(statuses)


def run_program(program: str, *options: str) -> int:
    """Run a program of the project, which makes its environments itself."""
    if "-h" not in options and "--help" not in options:  # which need nothing
        require_debian_packages(missing_for_python())
    return run(sys.executable, *program.split(), *options, check=False)


def gpu(*options: str) -> int:
    """Run the tests on Intel's GPU drivers, simulated, and on PoCL: no GPU is needed."""
    require_debian_packages(absent(GOOGLETEST))
    return run_program("tests/drivers/run.py", *options)


def mutation(*options: str) -> int:
    """Print the faults in the headers that no C++ test catches."""
    environment = prepare("-r", "requirements/test.txt", *WHEELS, packages=GOOGLETEST)
    return environment.run(environment.python, "tests/mutation/mutate.py", *options, check=False)


# The commands that are functions above, and those of them that pass their options to a program.
FUNCTIONS = (lint, gpu, mutation)
PASSING = (gpu, mutation)
# The commands that are programs and list their own options: the program, and what it does.
PROGRAMS = {
    "demo": (
        "examples/demo.py",
        "Install the package with the CPU driver, and draw the picture of the tutorial.",
    ),
    "test": (
        "tests/every_change.py",
        "Run the tests that every change must pass, in C++ and in Python.",
    ),
    "docs": (
        "docs/build.py",
        "Build the documentation site in build/docs/html; warnings are errors.",
    ),
    "compilers": (
        "tests/compilers/build_legs.py",
        "Build and run the C++ core with every supported compiler, language version and mdspan.",
    ),
    "all": (
        ".ci/all.py",
        "Run every test that needs no GPU, one stage after the other; print a table of them.",
    ),
    "wheels": (
        "tests/packaging/every_python.py",
        "Make the wheels of a release and the sdist in dist/, and install each by itself.",
    ),
    "pythons": (
        "tests/packaging/every_python.py --tests",
        "Do what `wheels` does on other Pythons, and run tests on the oldest and the newest.",
    ),
    "threads": (
        "tests/cpp/run_under.py threads",
        "Run the C++ tests of what threads may do at once under ThreadSanitizer.",
    ),
    "valgrind": (
        "tests/cpp/run_under.py valgrind",
        "Run the C++ tests on devices under valgrind's memcheck.",
    ),
    "fuzz": (
        "tests/fuzz/run_fuzzer.py",
        "Run the libFuzzer target from its seeds; what it finds stays below build/fuzz/.",
    ),
    "interoperability": (
        "tests/interoperability/run.py",
        "Exchange arrays with the libraries that need environments of their own.",
    ),
    "cuda": (
        "tests/cuda/run.py",
        "Run the tests on an NVIDIA GPU, by SYCL's backend cuda, if there is one.",
    ),
    "benchmark": (
        "benchmarks/python/beside_peers.py",
        "Compare Python calls with other libraries; `--write` renews docs/speed.md.",
    ),
    "speed": (
        "benchmarks/core/beside_cccl.py",
        "Compare the C++ core with CCCL, in instructions; `--write` renews docs/speed.md.",
    ),
}
EXTENDED = """\
Continuous integration runs lint, demo, test, gpu, docs, and one leg of compilers. Run `all` before
a release: it also runs test --all, interoperability, pythons, threads, all legs of compilers, fuzz,
mutation and valgrind. When you change what one of them guards, run that one.

Neither runs cuda, benchmark, speed, docs --browser, compilers --every or pythons --extended (Python
3.14).

`python3 dev.py COMMAND --help` lists the options of one."""


def main() -> int:
    """Run the command that was asked for."""
    parser = argparse.ArgumentParser(
        prog="dev.py",
        description=__doc__,
        epilog=EXTENDED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for function in FUNCTIONS:
        told, passing = function.__doc__, function in PASSING
        one = commands.add_parser(
            function.__name__, help=told, description=told, add_help=not passing
        )
        one.set_defaults(command=function, passing=passing)
    for name, (program, told) in PROGRAMS.items():
        one = commands.add_parser(name, help=told, add_help=False)
        one.set_defaults(command=functools.partial(run_program, program), passing=True)
    known, rest = parser.parse_known_args()
    if rest and not known.passing:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return known.command(*rest)  # type: ignore[no-any-return]
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
