# SPDX-License-Identifier: Apache-2.0
"""Run the tests on Intel's GPU drivers without a GPU, in the environment that `rig` makes.

On one root device the C++ tests of tests/cpp/sycl run, and the Python suites that are about
behaviour; what cannot run there is left out, with reasons. In each other configuration the tests
run that are about it.

``python3 dev.py gpu`` runs this program, which compares what ran with docs/backends.md; ``--write``
renews the page. Where the drivers cannot be had, nothing is run, one sentence says so, and it
stands in ``.dev/level-zero/not-run``.
"""

import argparse
import difflib
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import rig
from rig import FOLDER, ROOT, VENV

from dev import RefusalError, run

HERE = Path(__file__).resolve().parent
PROGRAM = ROOT / "build" / "level-zero" / "tests/cpp/sycl_tests"
REPORT = FOLDER / "report"
NOT_RUN = FOLDER / "not-run"
PAGE = ROOT / "docs" / "backends.md"
# What the page says before its first list; it stays as it is.
HEAD = PAGE.read_text(encoding="utf-8").partition("## ")[0]

# The files of tests/python that are about behaviour; the rest is about texts, or builds.
SUITES = [
    f"test_{name}.py"
    for name in (
        *("devices", "dlpack_method", "errors", "exchange_api", "from_dlpack"),
        *("from_dlpack_device", "importers", "lifetimes", "nanobind", "processes", "properties"),
        *("streams", "threads", "to_dlpack_tensor", "types", "validate"),
    )
]
# What is left out on one root device, and why: words in the names of Python tests, and patterns of
# Suite.Name in C++.
LEFT_OUT_PYTHON = {
    "kernel": "needs a kernel: the simulated device executes none",
    "opencl": "is about OpenCL",
}
LEFT_OUT_CPP = {
    "*Kernel*": "the simulated GPU runs no kernels",
    "*Opencl*": "about the backend OpenCL, its exact contexts or its sub-devices",
    "*Unpooled*": "about exact sizes or freed memory, which SYCL's pool rounds and keeps: run in "
    "pool-off",
    "TwoDevices*": "about two platforms of one root device each, as copies of the OpenCL CPU "
    "driver are",
    "ThreeDevices*": "about three such platforms",
    "BrokenDevice*": "about a device that lists and then fails, as a copy of that driver does",
    "LevelZeroTiles*": "about two root devices of two tiles: run in tiles",
    "BackendsTogether*": "about OpenCL devices beside Level Zero: run in together",
}
# What runs in the other configurations: C++ tests, on a number of root devices, and files of this
# folder.
CONFIGURED_CPP = (
    ("pool-off", "*Unpooled*", "1"),
    ("tiles", "LevelZeroTiles*", "2"),
    ("together", "BackendsTogether*", "3"),
    ("dg2", "LevelZero.TheDriver*", "1"),
    ("tgllp", "LevelZero.TheDriver*", "1"),
)
CONFIGURED = {
    "test_roots.py": ("two", "flat"),
    "test_tiles.py": ("tiles",),
    "test_backends_together.py": ("together",),
    "test_selectors.py": ("tiles", "together"),
}


def build() -> None:
    """Install this package, and build the C++ tests for the libc of the environment."""
    VENV.install("-q", "-r", "requirements/test.txt", ".[cpu,test]")
    print("drivers:", rig.versions(rig.DRIVERS))
    loader = rig.LIBRARIES / "ld-linux-x86-64.so.2"
    run_path = f"{rig.LIBRARIES}:{VENV.folder / 'lib'}"
    link = f"-Wl,--dynamic-linker={loader},--disable-new-dtags,-rpath,{run_path}"
    VENV.run("cmake", "--preset", "level-zero", USM_DLPACK_LEVEL_ZERO_LINK=link)
    VENV.run("cmake", "--build", "--preset", "level-zero")


def run_tests(configuration: str, *command: str | Path, **variables: str) -> list[str]:
    """Run tests that report in JUnit's XML to `REPORT`; return the names of their classes.

    Refuses if one failed or was skipped, or there was none.
    """
    REPORT.unlink(missing_ok=True)
    environment = rig.environment_of(configuration) | variables
    status = run("timeout", "900", *command, environment=environment, check=False)
    tests = list(ElementTree.parse(REPORT).iter("testcase")) if REPORT.exists() else []
    ran = [test.get("classname", "") for test in tests if test.find("skipped") is None]
    if status != 0 or not ran or len(ran) != len(tests):
        raise RefusalError(
            f"tests: expected exit status 0 and {len(tests) or 'some'} tests that ran, "
            f"found {status} and {len(ran)}; read what they printed above"
        )
    return ran


def run_gtest(configuration: str, devices: str, chosen: str) -> set[str]:
    options = (f"--gtest_filter={chosen}", "--gtest_brief=1", f"--gtest_output=xml:{REPORT}")
    return {*run_tests(configuration, PROGRAM, *options, USM_DLPACK_TEST_DEVICES=devices)}


def run_pytest(configuration: str, *arguments: str | Path) -> None:
    pytest = (VENV.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={REPORT}")
    ours = {
        "PYTHONPATH": f"{HERE}:{ROOT / 'tests' / 'python'}",
        "LEVEL_ZERO_CONFIGURATION": configuration,
    }
    run_tests(configuration, *pytest, *arguments, **ours)


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def run_cpp() -> str:
    ran = run_gtest("one", "1", f"-{':'.join(LEFT_OUT_CPP)}")
    return f"## C++ suites, on one root device of Level Zero\n\n{listed(sorted(ran))}.\n"


def run_python() -> str:
    folder = ROOT / "tests" / "python"
    words = " and ".join(f"not {word}" for word in LEFT_OUT_PYTHON)
    run_pytest("one", "-k", words, *(folder / file for file in SUITES))
    return (
        "## Python files, on one root device of Level Zero\n\n"
        f"{listed(SUITES)}. The others are about texts, or build.\n"
    )


def run_configured() -> str:
    rows = [
        "| name | configuration | C++ tests, or a file of `tests/level_zero/` |",
        "|---|---|---|",
    ]

    def add_row(name: str, tests: str) -> None:
        rows.append(f"| {name} | {rig.CONFIGURATIONS[name][0]} | `{tests}` |")

    for configuration, pattern, devices in CONFIGURED_CPP:
        run_gtest(configuration, devices, pattern)
        add_row(configuration, pattern)
    for file, configurations in CONFIGURED.items():
        for configuration in configurations:
            run_pytest(configuration, HERE / file)
            add_row(configuration, file)
    return "\n".join(["## Other configurations of Level Zero\n", *rows, ""])


def refuse_stale() -> None:
    """Refuse a pattern or a word that leaves out no test."""
    environment = rig.environment_of("one") | {"PYTHONPATH": str(ROOT / "tests" / "python")}
    files = [ROOT / "tests" / "python" / file for file in SUITES]
    pytest = (VENV.python, "-m", "pytest", "-q", "--collect-only", *files)
    commands: dict[str, tuple[str | Path, ...]] = {
        **{f: (PROGRAM, "--gtest_list_tests", f"--gtest_filter={f}") for f in LEFT_OUT_CPP},
        **{word: (*pytest, "-k", word) for word in LEFT_OUT_PYTHON},
    }
    for name, command in commands.items():
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if "\n  " not in done.stdout and "::" not in done.stdout:
            raise RefusalError(f"left out: expected tests, found none for {name}; remove it")


def left_out() -> str:
    rows = [
        *("| | tests whose names match | because |", "|---|---|---|"),
        *(f"| C++ | `{pattern}` | {reason} |" for pattern, reason in LEFT_OUT_CPP.items()),
        *(f"| Python | `*{word}*` | {reason} |" for word, reason in LEFT_OUT_PYTHON.items()),
    ]
    return "\n".join(["## What is left out on one root device\n", *rows, ""])


def compare_page(text: str) -> None:
    before = PAGE.read_text(encoding="utf-8").splitlines()
    after = text.splitlines()
    if before != after:
        print(*difflib.unified_diff(before, after, "the page", "what ran", lineterm=""), sep="\n")
        raise RefusalError(
            "docs/backends.md: expected what ran, found something else; "
            "run `python3 tests/level_zero/run.py --write`"
        )


def main() -> int:
    """Run all steps; return 0 if all passed or the drivers cannot be had, otherwise 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/backends.md")
    write = parser.parse_args().write
    FOLDER.mkdir(parents=True, exist_ok=True)
    NOT_RUN.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        rig.make()
    except (RefusalError, OSError) as reason:
        NOT_RUN.write_text(f"Level Zero: {reason}\n")
        print(f"\n##### Level Zero: NOT RUN: {reason}")
        return 0
    try:
        build()
        refuse_stale()
        page = HEAD + "\n".join([run_cpp(), run_python(), run_configured(), left_out()])
        if write:
            PAGE.write_text(page, encoding="utf-8")
        else:
            compare_page(page)
    except RefusalError as refusal:
        print(f"\nFAILED: {refusal}")
        return 1
    print(f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
