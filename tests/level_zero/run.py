# SPDX-License-Identifier: Apache-2.0
"""Run the tests on Intel's GPU drivers without a GPU, in the environment that `rig` makes.

On one root device the C++ tests of tests/cpp/sycl run, and the Python suites that are about
behaviour; what cannot run there is left out by left_out.toml, with reasons. In each other
configuration the tests of this folder run that are about it.

``python3 dev.py gpu`` runs this program, which compares the suites, the configurations and what is
left out with docs/backends.md; ``--write`` renews the page with its counts. Where the drivers
cannot be had, nothing is run, one sentence says so, and it stands in ``.dev/level-zero/not-run``.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from xml.etree import ElementTree

import backends_page
import rig
import tomllib
from rig import FOLDER, ROOT, VENV

from dev import RefusalError, run

HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "level-zero"
PROGRAM = BUILD / "tests/cpp/sycl_tests"
RESULTS = FOLDER / "results"
NOT_RUN = FOLDER / "not-run"
PATTERNS = tomllib.loads((HERE / "left_out.toml").read_text(encoding="utf-8"))

# The files of tests/python that are about behaviour; the rest is about texts, or builds.
SUITES = (
    "test_devices.py",
    "test_dlpack_method.py",
    "test_errors.py",
    "test_exchange_api.py",
    "test_from_dlpack.py",
    "test_from_dlpack_device.py",
    "test_lifetimes.py",
    "test_nanobind.py",
    "test_processes.py",
    "test_properties.py",
    "test_streams.py",
    "test_threads.py",
    "test_to_dlpack_tensor.py",
    "test_types.py",
    "test_validate.py",
)
# The tests of this folder, and the configurations that they are about.
CONFIGURED = {
    "test_pool_off.py": ("pool-off",),
    "test_two_roots.py": ("two",),
    "test_tiles.py": ("tiles",),
    "test_tiles_as_roots.py": ("flat",),
    "test_backends_together.py": ("together",),
    "test_products.py": ("dg2", "tgllp"),
    "test_selectors.py": ("tiles", "together"),
    "test_demonstration.py": ("one", "tiles"),
}
# C++ tests that left_out.toml names: where they run, and on how many root devices.
CONFIGURED_CPP = {
    "*Unpooled*": ("pool-off", "1"),
    "LevelZeroTiles*": ("tiles", "2"),
    "BackendsTogether*": ("together", "3"),
}
# Those that run nowhere else: tests/cpp/CMakeLists.txt leaves them out on OpenCL.
LEVEL_ZERO_ALONE = ("LevelZero*", "BackendsTogether*")


def make_environment() -> None:
    """Make the environment with this package in it, and ask the driver for its device."""
    rig.make()
    VENV.install("-q", "-r", "requirements/test.txt", ".[cpu,test]")
    named = rig.versions(rig.DRIVERS) | rig.versions_of_wheels()
    (FOLDER / "versions").write_text(", ".join(f"{n} {v}" for n, v in named.items()))
    print(f"drivers and runtime: {(FOLDER / 'versions').read_text()}")
    rig.require_device()


def build() -> None:
    """Build the C++ tests, without sanitizers, for the libc of the environment."""
    loader = rig.LIBRARIES / "ld-linux-x86-64.so.2"
    run_path = f"{rig.LIBRARIES}:{VENV.folder / 'lib'}"
    link = f"-Wl,--dynamic-linker={loader},--disable-new-dtags,-rpath,{run_path}"
    VENV.run("cmake", "--preset", "level-zero", USM_DLPACK_LEVEL_ZERO_LINK=link)
    VENV.run("cmake", "--build", "--preset", "level-zero")


def listed_tests() -> list[str]:
    """Return the names of all C++ tests, "Suite.Name"."""
    command = [str(PROGRAM), "--gtest_list_tests"]
    printed = subprocess.check_output(command, env=rig.environment_of("one"), text=True)
    suite, names = "", []
    for line in printed.splitlines()[1:]:
        name = line.split("#")[0].rstrip()
        if name.startswith(" "):
            names.append(suite + name.strip())
        else:
            suite = name
    return names


def run_gtest(configuration: str, devices: str, chosen: str, name: str) -> Counter[str]:
    """Run the C++ tests of a filter in a configuration; return how many of each suite passed.

    Raises
    ------
    RefusalError
        If one failed or was skipped, or there was none.
    """
    report = RESULTS / f"{name}.json"
    report.unlink(missing_ok=True)
    status = run(
        *("timeout", "300", PROGRAM, f"--gtest_filter={chosen}"),
        *("--gtest_brief=1", f"--gtest_output=json:{report}"),
        environment=rig.environment_of(configuration) | {"USM_DLPACK_TEST_DEVICES": devices},
        check=False,
    )
    suites = json.loads(report.read_text())["testsuites"] if report.exists() else []
    tests = [test for suite in suites for test in suite["testsuite"]]
    ran = Counter(test["classname"] for test in tests if test["result"] == "COMPLETED")
    if status != 0 or not ran or ran.total() != len(tests):
        raise RefusalError(
            f"sycl_tests: expected exit status 0 and {len(tests) or 'some'} tests that ran, "
            f"found {status} and {ran.total()}; read what it printed above"
        )
    return ran


def run_cpp() -> None:
    """Run the C++ tests on one root device, but those that left_out.toml names."""
    names = listed_tests()
    patterns = [entry["pattern"] for entry in PATTERNS["cpp"]]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise RefusalError(
                f"left_out.toml: expected patterns that match a test, found {pattern!r}; "
                "delete the entry, or correct it"
            )
    ran = run_gtest("one", "1", f"-{':'.join(patterns)}", "cpp")
    elsewhere = Counter(
        name.split(".")[0]
        for name in names
        if not any(fnmatchcase(name, pattern) for pattern in LEVEL_ZERO_ALONE)
    )
    suites = dict.fromkeys(name.split(".")[0] for name in names)
    write_counts("cpp", {suite: [elsewhere[suite], ran[suite]] for suite in suites})


def write_counts(name: str, counts: dict[str, list[int]]) -> None:
    """Keep counts for the page."""
    (RESULTS / f"{name}.counts").write_text(json.dumps(counts))


def run_pytest(configuration: str, files: list[Path], name: str) -> Counter[str]:
    """Run test files in a configuration; return how many tests of each passed.

    Raises
    ------
    RefusalError
        If one failed or was skipped, or there was none.
    """
    report = RESULTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    plugin = ["-p", "left_out", "--all-of-left-out"] if name == "python" else []
    ours = {
        "PYTHONPATH": f"{HERE}:{ROOT / 'tests' / 'python'}",
        "LEVEL_ZERO_CONFIGURATION": configuration,
    }
    status = run(
        *("timeout", "900", str(VENV.python), "-m", "pytest", "-q", *plugin),
        *("-p", "no:cacheprovider", f"--junitxml={report}", *map(str, files)),
        environment=rig.environment_of(configuration) | ours,
        check=False,
    )
    cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    # The classname is the file's path with dots, and what stands in it: tests.python.test_x.Class.
    passed = Counter(
        next(part for part in case.attrib["classname"].split(".") if part.startswith("test_"))
        + ".py"
        for case in cases
        if case.find("skipped") is None
    )
    if status != 0 or passed.total() != len(cases):
        raise RefusalError(
            f"pytest: expected exit status 0 and {len(cases) or 'some'} tests that ran, found "
            f"{status} and {passed.total()}; read what it printed above"
        )
    return passed


def run_python() -> None:
    """Run the Python suites on one root device."""
    folder = ROOT / "tests" / "python"
    passed = run_pytest("one", [folder / file for file in SUITES], "python")
    command = [str(VENV.python), "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    environment = rig.environment_of("one")
    collected = subprocess.check_output(command, cwd=ROOT, env=environment, text=True)
    all_of_them = Counter(re.findall(r"^tests/python/(test_\w+\.py)::", collected, re.MULTILINE))
    write_counts("python", {file: [n, passed[file]] for file, n in sorted(all_of_them.items())})


def run_configured() -> None:
    """Run the tests of this folder, each in the configurations that it is about."""
    counts = {}
    for pattern, (configuration, devices) in CONFIGURED_CPP.items():
        ran = run_gtest(configuration, devices, pattern, f"{configuration}-cpp")
        counts[f"{configuration} {pattern}"] = [ran.total()]
    for file, configurations in CONFIGURED.items():
        for configuration in configurations:
            passed = run_pytest(configuration, [HERE / file], f"{configuration}-{file}")
            counts[f"{configuration} {file}"] = [passed.total()]
    write_counts("configured", counts)


def compare_page(write: bool) -> None:
    """Compare docs/backends.md with what ran, or renew it."""
    counts = {
        name: json.loads((RESULTS / f"{name}.counts").read_text())
        for name in ("cpp", "python", "configured")
    }
    versions = (FOLDER / "versions").read_text()
    page = backends_page.page(versions, counts, PATTERNS, rig.CONFIGURATIONS)
    if write:
        backends_page.PAGE.write_text(page, encoding="utf-8")
    elif differs := backends_page.difference(page):
        print(differs)
        raise RefusalError(
            "docs/backends.md: expected the suites that ran, found others; "
            "run `python3 tests/level_zero/run.py --write`"
        )


def processor_seconds() -> float:
    """Return what the processes that have ended have taken of the processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Run all steps, and print what took how long.

    Returns
    -------
    :
        0 if all passed or the drivers cannot be had, otherwise 1.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/backends.md")
    write = parser.parse_args().write
    RESULTS.mkdir(parents=True, exist_ok=True)
    NOT_RUN.unlink(missing_ok=True)
    steps: dict[str, Callable[[], None]] = {
        "environment": make_environment,
        "build": build,
        "C++ tests": run_cpp,
        "Python tests": run_python,
        "other configurations": run_configured,
        "page": lambda: compare_page(write),
    }
    summary, failed = [], False
    for step, act in steps.items():
        if failed and step in ("build", "C++ tests", "page"):
            break
        print(f"\n=== {step}", flush=True)
        start, processor = time.monotonic(), processor_seconds()
        outcome = ""
        try:
            act()
        except rig.NotRunError as reason:
            NOT_RUN.write_text(f"Level Zero: {reason}\n")
            print(f"\n##### Level Zero: NOT RUN: {reason}")
            return 0
        except RefusalError as refusal:
            outcome, failed = f"  FAILED: {refusal}", True
        taken = time.monotonic() - start
        used = processor_seconds() - processor
        summary.append(f"{taken:5.0f} s  {used:5.0f} s of a processor  {step}{outcome}")
    print("", *summary, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
