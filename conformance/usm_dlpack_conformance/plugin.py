# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest: options, cases that run alone, and the report."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .adapter import Adapter


class Case(NamedTuple):
    """What a test checks; an argument of its mark."""

    identifier: str
    source: str
    reason: str


PACKAGE = __name__.rpartition(".")[0]
SECONDS = 120  # that a case in a process of its own may take
NOT_RUN = 77  # exit status of such a process


def load_adapter(name: str) -> Adapter:
    """Return an adapter: of ``module``, its class ``Adapter``; or of ``module:Class``."""
    sys.path.insert(0, str(Path.cwd()))
    module, _, member = name.partition(":")
    adapter = getattr(importlib.import_module(module), member or "Adapter")()
    if not isinstance(adapter, Adapter):
        raise pytest.UsageError(
            f"--adapter: expected a class below {PACKAGE}.Adapter, found {type(adapter).__name__}"
        )
    return adapter


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    group = parser.getgroup(PACKAGE)
    told = "the library that the cases are for: a module with a class Adapter, or module:Class"
    group.addoption("--adapter", metavar="MODULE", help=told)
    group.addoption("--report", metavar="FILE", help="write the results as a table in Markdown")
    told = "run all cases in this process, also those that may crash it"
    group.addoption("--together", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marks of the cases mean."""
    for line in (
        "spec: demanded by DLPack or the array API",
        "convention: agreed, in no standard",
        "alone: run in a process of its own, since a library may crash or hang",
    ):
        config.addinivalue_line("markers", line)


@pytest.fixture(scope="session")
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Return the adapter of the library."""
    name = request.config.getoption("--adapter")
    if name is None:
        raise pytest.UsageError("--adapter: expected a module, found none; see --help")
    return load_adapter(name)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a case in a process of its own if it asks for one, and fail or skip as it did there."""
    if not pyfuncitem.get_closest_marker("alone") or pyfuncitem.config.getoption("--together"):
        return None
    module = pyfuncitem.function.__module__.rpartition(".")[2]
    called = f"{module}:{pyfuncitem.originalname}"
    callspec = getattr(pyfuncitem, "callspec", None)
    arguments = repr({} if callspec is None else callspec.params)
    adapter = pyfuncitem.config.getoption("--adapter")
    variables = os.environ | {"PYTHONFAULTHANDLER": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    variables.pop("PYTHONOPTIMIZE", None)  # which removes what the cases assert
    try:
        done = subprocess.run(
            [sys.executable, "-m", PACKAGE, adapter, called, arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=variables,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"it did not end in {SECONDS} s", pytrace=False)
    if done.returncode == NOT_RUN:
        pytest.skip((done.stdout.strip().splitlines() or [""])[-1])
    if done.returncode < 0:
        pytest.fail(f"it crashed: signal {-done.returncode}\n{done.stderr}", pytrace=False)
    if done.returncode != 0:
        error = done.stderr.strip().splitlines()[-1:]
        pytest.fail("\n".join([*error, done.stdout, done.stderr]), pytrace=False)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note what a case is in its report."""
    report: Any = yield
    marks = (item.get_closest_marker(name) for name in ("spec", "convention"))
    report.mark = next((mark for mark in marks if mark and isinstance(mark.args[0], Case)), None)
    return report


def _why(report: Any) -> str:
    if report.skipped:
        return str(report.longrepr[2]).partition(": ")[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    return next((line for line in text.strip().splitlines()), "")


RESULTS = {"passed": "passed", "failed": "FAILED", "error": "FAILED", "skipped": "not run"}


class Row(NamedTuple):
    """What became of a case."""

    case: Case
    mark: str
    result: str
    why: str


def _rows(reporter: Any) -> list[Row]:
    return sorted(
        Row(*report.mark.args, report.mark.name, result, _why(report))
        for outcome, result in RESULTS.items()
        for report in reporter.stats.get(outcome, [])
        if getattr(report, "mark", None) and (report.when == "call" or report.failed)
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what failed and what was not run, with its reason, and write the report."""
    rows = _rows(terminalreporter)
    if not rows:
        return
    terminalreporter.section(f"{PACKAGE}: {config.getoption('--adapter')}")
    for case, mark, result, why in rows:
        if result != "passed":
            terminalreporter.write_line(f"{result:8}{case.identifier} ({mark}): {why}")
        if result == "FAILED":
            terminalreporter.write_line(f"        {case.source}: {case.reason}")
    results = [row.result for row in rows]
    counts = (f"{results.count(name)} {name}" for name in dict.fromkeys(RESULTS.values()))
    terminalreporter.write_line(", ".join(counts))
    if config.getoption("--report"):
        lines = ["| case | mark | because | result | why |", "| --- | --- | --- | --- | --- |"]
        for case, mark, result, why in rows:
            cells = (case.identifier, mark, case.reason, result, why)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        Path(config.getoption("--report")).write_text("\n".join(lines) + "\n", encoding="utf-8")
