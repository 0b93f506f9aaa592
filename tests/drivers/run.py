# SPDX-License-Identifier: Apache-2.0
"""Run the tests on Intel's GPU drivers and on PoCL, in the environment that `rig` makes.

On one root device the C++ tests of tests/cpp/sycl run, and Python suites: on Level Zero those that
are about behaviour, on PoCL those about ids, bounds and copies. What cannot run there is left out,
with reasons. In each other configuration the tests run that are about it.

``python3 dev.py gpu`` runs this program, which compares what ran with docs/backends.md; ``--write``
renews the page. Where drivers cannot be had, their tests are not run, one sentence says so, and it
stands in ``.dev/drivers/not-run``.
"""

import argparse
import difflib
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import rig
from reported import run_tests
from rig import FOLDER, ROOT, VENV

from dev import WHEELS, RefusalError

HERE = Path(__file__).resolve().parent
PYTHON_TESTS = ROOT / "tests" / "python"
PROGRAM = ROOT / "build" / "drivers" / "tests/cpp/sycl_tests"
REPORT = FOLDER / "report"
NOT_RUN = FOLDER / "not-run"
PAGE = ROOT / "docs" / "backends.md"
# What the page says first, which stays as it is, and then of each source.
HEAD, *PARTS = re.split(r"(?m)^(?=## C\+\+ suites)", PAGE.read_text(encoding="utf-8"))


class Plan(NamedTuple):
    """What runs on the drivers of a source."""

    source: rig.Source
    # On one root device: a configuration, names of files in tests/python, and what is left out and
    # why: patterns of Suite.Name in C++, and words in the names of Python tests.
    one: str
    python: tuple[str, ...]
    left_out_cpp: dict[str, str]
    left_out_python: dict[str, str]
    # In the other configurations: C++ tests, on a number of root devices, and files of this folder.
    configured_cpp: tuple[tuple[str, str, str], ...]
    configured: dict[str, tuple[str, ...]]

    @property
    def files(self) -> list[str]:
        return [f"test_{name}.py" for name in self.python]


ABOUT_OTHERS = {
    "TwoDevices*": "about two platforms of one root device each, as copies of the OpenCL CPU "
    "driver are",
    "ThreeDevices*": "about three such platforms",
    "BrokenDevice*": "about a device that lists and then fails, as a copy of that driver does",
    "LevelZeroTiles*": "about two root devices of two tiles: run in tiles",
    "BackendsTogether*": "about OpenCL devices beside Level Zero: run in together",
    "PoclRoots*": "about three root devices on one OpenCL platform: run in pocl",
    "Cuda*": "about CUDA: run on a GPU, by `dev.py cuda`",
}
PLANS = (
    Plan(
        rig.LEVEL_ZERO,
        "one",
        # The files that are about behaviour; the rest is about texts, or builds.
        (
            *("arguments", "copy_from", "devices", "dlpack_method", "empty", "exchange_api"),
            *("extensions", "from_dlpack", "hostile", "lifetimes", "order", "places", "processes"),
            *("properties", "streams", "threads", "to_dlpack_tensor", "validate"),
        ),
        {
            "*Kernel*": "the simulated GPU runs no kernels",
            "*Opencl*": "about the backend OpenCL, its exact contexts or its sub-devices",
            "*Unpooled*": "about exact sizes or freed memory, which SYCL's pool rounds and keeps: "
            "run in pool-off",
            **ABOUT_OTHERS,
        },
        {
            "kernel": "needs a kernel: the simulated device executes none",
            "opencl": "is about OpenCL",
            "type_checkers": "is about signatures, on any device",
            "compile": "is about g++, likewise",
        },
        (
            ("pool-off", "*Unpooled*", "1"),
            ("tiles", "LevelZeroTiles*", "2"),
            ("together", "BackendsTogether*", "3"),
            ("dg2", "LevelZero.TheDriver*", "1"),
            ("tgllp", "LevelZero.TheDriver*", "1"),
        ),
        {
            "test_mapped_memory.py": ("one",),
            "test_roots.py": ("two", "flat"),
            "test_tiles.py": ("tiles",),
            "test_backends_together.py": ("together",),
            "test_selectors.py": ("tiles", "together"),
        },
    ),
    Plan(
        rig.POCL,
        "pocl-one",
        (
            *("arguments", "copy_from", "devices", "dlpack_method", "from_dlpack"),
            *("from_dlpack_host_copy", "properties", "to_dlpack_tensor", "validate"),
        ),
        {
            "*Kernel*": "SYCL's kernels are SPIR-V, which this PoCL does not read",
            "OpenclInterop*": "PoCL makes no sub-devices, and crashes with a wrong handle",
            "Allocation.*": "about sub-devices",
            "Concurrency.*FreeArrays*": "PoCL crashes where threads allocate and free at once",
            "UsmAllocation.*SubDevice*": "about sub-devices",
            "UsmExport.*AnotherContext*": "about sub-devices",
            "UsmArray.*CannotSay*": "about SYCL's graphs, which need command buffers of OpenCL",
            "OrderedSection.*Records*": "about SYCL's graphs, likewise",
            "LevelZero.*": "about Level Zero",
            **ABOUT_OTHERS,
        },
        {
            "sub-device": "PoCL makes no sub-devices",
            "waits": "holds a queue back, and PoCL's blocking free waits for all work",
            "pending": "the same",
        },
        (("pocl", "PoclRoots*", "3"),),
        {
            "test_roots.py": ("pocl",),
            "test_pocl.py": ("pocl", "pocl-beside"),
            "test_selectors.py": ("pocl-beside",),
        },
    ),
)


def build() -> None:
    """Install this package, and build the C++ tests for the libc of the environment."""
    VENV.install("-q", "-r", "requirements/test.txt", *WHEELS)
    VENV.install_project("-q", ".[cpu,test]")
    loader = rig.LIBRARIES / "ld-linux-x86-64.so.2"
    run_path = f"{rig.LIBRARIES}:{VENV.folder / 'lib'}"
    link = f"-Wl,--dynamic-linker={loader},--disable-new-dtags,-rpath,{run_path}"
    VENV.run("cmake", "--preset", "drivers", USM_DLPACK_DRIVERS_LINK=link)
    VENV.run("cmake", "--build", "--preset", "drivers")


def run_gtest(configuration: str, devices: str, chosen: str) -> set[str]:
    options = (f"--gtest_filter={chosen}", "--gtest_brief=1", f"--gtest_output=xml:{REPORT}")
    environment = rig.environment_of(configuration) | {"USM_DLPACK_TEST_DEVICES": devices}
    return {*run_tests(REPORT, environment, PROGRAM, *options)}


def run_pytest(configuration: str, *arguments: str | Path) -> None:
    pytest = (VENV.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={REPORT}")
    ours = {
        "PYTHONPATH": f"{HERE}:{PYTHON_TESTS / 'support'}",
        "DRIVER_CONFIGURATION": configuration,
    }
    run_tests(REPORT, rig.environment_of(configuration) | ours, *pytest, *arguments)


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def run_cpp(plan: Plan) -> str:
    ran = run_gtest(plan.one, "1", f"-{':'.join(plan.left_out_cpp)}")
    heading = f"## C++ suites, on one root device of {plan.source.name}"
    return f"{heading}\n\n{listed(sorted(ran))}.\n"


def run_python(plan: Plan) -> str:
    words = " and ".join(f"not {word}" for word in plan.left_out_python)
    files = (PYTHON_TESTS / file for file in plan.files)
    run_pytest(plan.one, "-m", "not extended", "-k", words, *files)
    heading = f"## Python files, on one root device of {plan.source.name}"
    return f"{heading}\n\n{listed(plan.files)}.\n"


def run_configured(plan: Plan) -> str:
    rows = [
        "| name | configuration | C++ tests, or a file of `tests/drivers/` |",
        "|---|---|---|",
    ]

    def add_row(name: str, tests: str) -> None:
        rows.append(f"| {name} | {rig.CONFIGURATIONS[name][0]} | `{tests}` |")

    for configuration, pattern, devices in plan.configured_cpp:
        run_gtest(configuration, devices, pattern)
        add_row(configuration, pattern)
    for file, configurations in plan.configured.items():
        for configuration in configurations:
            run_pytest(configuration, HERE / file)
            add_row(configuration, file)
    return "\n".join([f"## Other configurations of {plan.source.name}\n", *rows, ""])


def refuse_stale(plan: Plan) -> None:
    """Refuse a pattern or a word that leaves out no test."""
    environment = rig.environment_of(plan.one) | {"PYTHONPATH": str(PYTHON_TESTS / "support")}
    files = [PYTHON_TESTS / file for file in plan.files]
    pytest = (VENV.python, "-m", "pytest", "-q", "--collect-only", *files)
    commands: dict[str, tuple[str | Path, ...]] = {
        **{f: (PROGRAM, "--gtest_list_tests", f"--gtest_filter={f}") for f in plan.left_out_cpp},
        **{word: (*pytest, "-k", word) for word in plan.left_out_python},
    }
    for name, command in commands.items():
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if "\n  " not in done.stdout and "::" not in done.stdout:
            raise RefusalError(f"left out: expected tests, found none for {name}; remove it")


def run_plan(plan: Plan) -> str:
    """Run everything on the drivers of a source; return what the page says of it."""
    start = time.monotonic()
    print(f"\n##### {plan.source.name}: {plan.source.versions()}")
    refuse_stale(plan)
    part = "\n".join([run_cpp(plan), run_python(plan), run_configured(plan)])
    print(f"##### {plan.source.name}: {time.monotonic() - start:.0f} s")
    return part


def compare_page(text: str) -> None:
    before = PAGE.read_text(encoding="utf-8").splitlines()
    after = text.splitlines()
    if before != after:
        print(*difflib.unified_diff(before, after, "the page", "what ran", lineterm=""), sep="\n")
        raise RefusalError(
            "docs/backends.md: expected what ran, found something else; "
            "run `python3 tests/drivers/run.py --write`"
        )


def main() -> int:
    """Run all steps; return 0 if all passed that can be run here, otherwise 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/backends.md")
    write = parser.parse_args().write
    FOLDER.mkdir(parents=True, exist_ok=True)
    NOT_RUN.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        reasons = rig.make()
    except (RefusalError, OSError) as reason:
        reasons = {plan.source.name: str(reason) for plan in PLANS}
    if reasons:
        NOT_RUN.write_text("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
    try:
        parts = dict(zip((plan.source.name for plan in PLANS), PARTS, strict=False))
        here = [plan for plan in PLANS if plan.source.name not in reasons]
        if here:
            build()
        parts |= {plan.source.name: run_plan(plan) for plan in here}
        page = HEAD + "\n".join(part.strip() + "\n" for part in parts.values())
        if write:
            PAGE.write_text(page, encoding="utf-8")
        else:
            compare_page(page)
    except RefusalError as refusal:
        print(f"\nFAILED: {refusal}")
        return 1
    for name, reason in reasons.items():
        print(f"\n##### {name}: NOT RUN: {reason}")
    print(f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
