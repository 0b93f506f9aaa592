# SPDX-License-Identifier: Apache-2.0
"""The project's commands.

Each command needs nothing before it: on Debian, as root, it installs the packages that are missing;
everything else goes into virtual environments below ``.dev/``. Only the standard library is used.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree


def require_python(minor: int) -> None:
    """Exit if the interpreter is older; what stands above this function is Python 3.6."""
    if sys.version_info < (3, minor):
        found = ".".join(map(str, sys.version_info[:3]))
        sys.exit(f"python3: expected 3.{minor} or newer, found {found}; run it with a newer one")


require_python(10)

ROOT = Path(__file__).resolve().parent
DEV = ROOT / ".dev"

# The Debian packages for C++ tests, each with a file that shows it is installed.
GOOGLETEST = {"libgtest-dev": "/usr/src/googletest/googletest/CMakeLists.txt"}
VALGRIND = {"valgrind": "/usr/bin/valgrind"}
CLANG = {
    "clang-19": "/usr/bin/clang++-19",
    "clang-22": "/usr/bin/clang++-22",
    "libc++-22-dev": "/usr/lib/llvm-22/include/c++/v1/mdspan",
    "libc++abi-22-dev": "/usr/lib/llvm-22/lib/libc++abi.so",
}

LIBFUZZER = {
    "clang-19": "/usr/bin/clang++-19",
    "libclang-rt-19-dev": "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a",
}

DOCUMENTATION = {"doxygen": "/usr/bin/doxygen"}
BROWSER = {"chromium": "/usr/bin/chromium"}

# What builds a user's extension without isolation.
FOR_EXTENSION = ["cmake", "ninja", "nanobind>=3.1", "scikit-build-core>=1.1"]
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


def run_tests(report: Path, environment: dict[str, str], *command: str | Path) -> list[str]:
    """Run tests that report in JUnit's XML to a file; return the names of their classes.

    Refuses if one failed or was skipped, or there was none.
    """
    report.unlink(missing_ok=True)
    status = run("timeout", "900", *command, environment=environment, check=False)
    tests = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    ran = [test.get("classname", "") for test in tests if test.find("skipped") is None]
    if status != 0 or not ran or len(ran) != len(tests):
        raise RefusalError(
            f"tests: expected exit status 0 and {len(tests) or 'some'} tests that ran, "
            f"found {status} and {len(ran)}; read what they printed above"
        )
    return ran


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


def is_installed(environment: Environment) -> bool:
    """Return whether an environment has the package, newer than all its sources."""
    modules = environment.folder.glob("lib/python*/site-packages/usm_dlpack/_core*.so")
    installed = max((module.stat().st_mtime for module in modules), default=0.0)
    trees = [ROOT / name for name in ("bindings", "cmake", "docs/errors", "include", "python")]
    files = [ROOT / "pyproject.toml", ROOT / "CMakeLists.txt"]
    # Folders too: their times tell of a file that is no more.
    files += [file for tree in trees for file in tree.rglob("*") if "__pycache__" not in file.parts]
    return max(file.stat().st_mtime for file in files) < installed


def prepare_package(requirements: str, packages: dict[str, str] | None = None) -> Environment:
    """Prepare, and install the package, unless it is there as new as these sources."""
    environment = prepare("-r", requirements, *WHEELS, packages=packages)
    if is_installed(environment):
        environment.install("usm-dlpack[cpu,test]")
    else:
        environment.install_project(".[cpu,test]")
    return environment


def demo() -> int:
    """Install the package with the CPU driver, and draw the picture of the tutorial."""
    print("1 of 3: the system's packages, and a virtual environment in .dev/venv", flush=True)
    environment = prepare()
    print(
        "2 of 3: pip downloads what is not there, up to 900 MB (the SYCL runtime, the CPU driver, "
        "dpnp), unpacks 3.1 GB to .dev/venv, and compiles the module and the tutorial's extension: "
        "some minutes",
        flush=True,
    )
    environment.install(
        "usm-dlpack[cpu,demo]" if is_installed(environment) else ".[cpu,demo]", *FOR_EXTENSION
    )
    environment.install("--no-build-isolation", "./examples/extension")
    print("3 of 3: a kernel on dpnp's arrays, on a SYCL device: docs/examples/heat.py", flush=True)
    folder = ROOT / "build" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    program = ROOT / "docs" / "examples" / "heat.py"
    status = run(
        environment.python, program, environment=environment.variables, folder=folder, check=False
    )
    if status == 0:
        print(
            f"\nThe picture is {(folder / 'heat.png').relative_to(ROOT)}. Next: run "
            f"`. {environment.folder.relative_to(ROOT)}/bin/activate`, and follow "
            "docs/tutorial.md, which ends with this program; for C++, docs/how-to/cmake.md"
        )
    return status


# What `test --all` has beyond `test`.
BEYOND = (
    "sanitizers (ASan, UBSan) in C++, each header alone, and tests that build, repeat for long, or "
    "start many processes"
)


def test(all: bool, k: str | None) -> int:  # noqa: A002, as the option is called
    """Run the tests that every change must pass, in C++ and in Python."""
    environment = prepare_package("requirements/test.txt", GOOGLETEST)
    if k is not None:
        return environment.run(environment.python, "-m", "pytest", "-k", k, check=False)
    preset = "dev" if all else "quick"
    chosen = [] if all else ["-m", "not extended"]
    environment.run("cmake", "--preset", preset)
    environment.run("cmake", "--build", "--preset", preset)
    environment.run("ctest", "--preset", preset)
    environment.run(environment.python, "-m", "pytest", *chosen)
    if not all:
        print(f"\n`python3 dev.py test --all` adds {BEYOND}")
    return 0


def without_random_addresses() -> list[str]:
    """Return a prefix without which programs of ThreadSanitizer may fail to start.

    That of g++ 12 does not support 32 random bits in addresses (``vm.mmap_rnd_bits``). Where a
    container forbids the prefix, it is empty.
    """
    prefix = ["setarch", "--addr-no-randomize"]
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    except OSError:
        return []
    return prefix if allowed.returncode == 0 else []


def threads() -> int:
    """Run the C++ tests of what threads may do at once under ThreadSanitizer."""
    environment = prepare("-r", "requirements/test.txt", *WHEELS, packages=GOOGLETEST)
    workflow = ["cmake", "--workflow", "--preset", "threads"]
    return environment.run(*without_random_addresses(), *workflow, check=False)


def valgrind() -> int:
    """Run the C++ tests on devices under valgrind's memcheck."""
    packages = GOOGLETEST | VALGRIND
    environment = prepare("-r", "requirements/test.txt", *WHEELS, packages=packages)
    return environment.run("cmake", "--workflow", "--preset", "valgrind", check=False)


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


def run_program(program: str, *arguments: str) -> int:
    """Run a program of the project that makes its environments itself."""
    require_debian_packages(missing_for_python())
    return run(sys.executable, ROOT / program, *arguments, check=False)


def interoperability(*options: str) -> int:
    """Exchange arrays with the libraries that need environments of their own."""
    return run_program("tests/interoperability/run.py", *options)


def gpu(*options: str) -> int:
    """Run the tests on Intel's GPU drivers, simulated, and on PoCL: no GPU is needed."""
    require_python(11)  # for tomllib
    require_debian_packages(absent(GOOGLETEST))
    return run_program("tests/drivers/run.py", *options)


def cuda(*options: str) -> int:
    """Run the tests on an NVIDIA GPU, by SYCL's backend cuda, if there is one."""
    return run_program("tests/cuda/run.py", *options)


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


def compilers(every: bool, leg: str | None) -> int:
    """Build and run the C++ core with every supported compiler, language version and mdspan."""
    legs = {one.name: one for one in [*(TRIPLES if every else PAIRS), *OTHERS]}
    if leg is not None and leg not in legs:
        raise RefusalError(
            f"--leg: expected one of {', '.join(legs)}, found {leg}; correct the name"
        )
    requirements = ("-r", "requirements/test.txt", "-r", "requirements/compilers.txt")
    environment = prepare(*requirements, *WHEELS, packages=GOOGLETEST | CLANG)
    failed = []
    for one in legs.values() if leg is None else [legs[leg]]:
        print(f"\n=== {one.name}", flush=True)
        if build_leg(environment, one):
            shutil.rmtree(one.folder)  # all together take gigabytes
        else:
            failed.append(one.name)
    print(f"\nfailed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def fuzz(seconds: int, seed: int) -> int:
    """Run the libFuzzer target from its seeds; what it finds stays below build/fuzz/."""
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


def cycles(*options: str) -> int:
    """Export and import arrays by every way: each deleter runs once, and memory stays flat."""
    environment = prepare_package("requirements/test.txt")
    return environment.run(environment.python, "tests/cycles/run.py", *options, check=False)


def wheels() -> int:
    """Make the wheels of a release and the sdist in dist/, and install each by itself."""
    return run_program("tests/packaging/every_python.py")


def pythons(*options: str) -> int:
    """Do what `wheels` does on other Pythons, and run tests on the oldest and the newest."""
    return run_program("tests/packaging/every_python.py", "--tests", *options)


def benchmark(*options: str) -> int:
    """Compare Python calls with other libraries; `--write` renews docs/speed.md."""
    return run_program("benchmarks/python/beside_peers.py", *options)


def speed(*options: str) -> int:
    """Compare the C++ core with CCCL, in instructions; `--write` renews docs/speed.md."""
    return run_program("benchmarks/core/beside_cccl.py", *options)


def mutation(*options: str) -> int:
    """Print the faults in the headers that no C++ test catches."""
    environment = prepare("-r", "requirements/test.txt", *WHEELS, packages=GOOGLETEST)
    return environment.run(environment.python, "tests/mutation/mutate.py", *options, check=False)


def docs(browser: bool) -> int:
    """Build the documentation site in build/docs/html; warnings are errors."""
    require_python(11)  # for Sphinx
    packages = DOCUMENTATION | (BROWSER if browser else {})
    environment = prepare_package("requirements/docs.txt", packages)
    shutil.rmtree(ROOT / "build" / "docs", ignore_errors=True)  # pages that are no more
    options = ["-nWqE", "--keep-going"]
    status = environment.run("sphinx-build", *options, "docs", "build/docs/html", check=False)
    if status != 0 or not browser:
        return status
    look = make_environment("browser")
    look.install("-q", "-r", "requirements/browser.txt")
    return look.run(look.python, "tests/pages/in_browser.py", check=False)


# A command that passes its options to a program of the project, and all others.
PASSING = (pythons, gpu, cuda, interoperability, cycles, mutation, benchmark, speed)
COMMANDS = (demo, test, lint, docs, compilers, wheels, threads, valgrind, fuzz, *PASSING)
EXTENDED = """\
Extended, for a release and when you change what they guard; continuous integration runs all others:
cuda, valgrind, cycles, mutation, benchmark, speed, all legs of compilers, docs --browser,
interoperability --extended, pythons --extended (Python 3.14).

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
    added = {}
    for function in COMMANDS:
        told, passing = function.__doc__, function in PASSING
        one = commands.add_parser(
            function.__name__, help=told, description=told, add_help=not passing
        )
        one.set_defaults(command=function)
        added[function.__name__] = one.add_argument
    added["test"]("--all", action="store_true", help=f"with {BEYOND}")
    added["test"]("-k", metavar="WORDS", help="only Python tests whose names match, as in pytest")
    told = "each combination with DLPack, not each pair"
    added["compilers"]("--every", action="store_true", help=told)
    added["compilers"]("--leg", help="this combination alone, by its name")
    added["docs"]("--browser", action="store_true", help="look at all pages in Chromium too")
    added["fuzz"]("--seconds", type=int, default=600, help="how long it runs (default: 600)")
    added["fuzz"]("--seed", type=int, default=0, help="0 is another one each time (default: 0)")
    known, rest = parser.parse_known_args()
    options = vars(known)
    command = options.pop("command")
    if rest and command not in PASSING:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return command(*rest, **options)  # type: ignore[no-any-return]
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
