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

from .adapter import Adapter, NotSupportedError


class Case(NamedTuple):
    """What a test function checks."""

    identifier: str
    source: str
    reason: str
    alone: bool


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
    for line in ("spec: demanded by DLPack or the array API", "convention: agreed, in no standard"):
        config.addinivalue_line("markers", line)


@pytest.fixture(scope="session")
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Return the adapter of the library."""
    name = request.config.getoption("--adapter")
    if name is None:
        raise pytest.UsageError("--adapter: expected a module, found none; see --help")
    return load_adapter(name)


def _run_alone(case: str, config: pytest.Config) -> None:
    command = [sys.executable, "-m", PACKAGE, config.getoption("--adapter"), case]
    variables = os.environ | {"PYTHONFAULTHANDLER": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    variables.pop("PYTHONOPTIMIZE", None)  # which removes what the cases assert
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env=variables, check=False
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


def _case_of(item: pytest.Item) -> Case | None:
    case = getattr(getattr(item, "function", None), "case", None)
    return case if isinstance(case, Case) else None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Run a case, in a process of its own if it asks for one."""
    case = _case_of(pyfuncitem)
    if case is not None and case.alone and not pyfuncitem.config.getoption("--together"):
        module = pyfuncitem.function.__module__.rpartition(".")[2]
        name = f"{module}:{pyfuncitem.originalname}"

        def run_alone(adapter: Adapter) -> None:
            _run_alone(name, pyfuncitem.config)

        run_alone.case = case  # type: ignore[attr-defined]
        pyfuncitem.obj = run_alone
    try:
        return (yield)
    except NotSupportedError as reason:
        if case is None:
            raise
        pytest.skip(str(reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note what a case is in its report."""
    report: Any = yield
    case = _case_of(item)
    report.case = None if case is None else tuple(case[:3])
    report.mark = "spec" if item.get_closest_marker("spec") else "convention"
    return report


def _why(report: Any) -> str:
    if report.skipped:
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    return next((line for line in text.strip().splitlines()), "")


def _rows(reporter: Any) -> list[tuple[str, ...]]:
    """Return of each case: id, mark, result, why, source and reason."""
    rows = []
    titles = {"passed": "passed", "failed": "FAILED", "error": "FAILED", "skipped": "not run"}
    for result, title in titles.items():
        for report in reporter.stats.get(result, []):
            case = getattr(report, "case", None)
            if case is not None and (report.when == "call" or report.failed):
                identifier, source, reason = case
                rows.append((identifier, report.mark, title, _why(report), source, reason))
    return sorted(rows)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what failed and what was not run, with its reason, and write the report."""
    rows = _rows(terminalreporter)
    if not rows:
        return
    terminalreporter.section(f"{PACKAGE}: {config.getoption('--adapter')}")
    for identifier, mark, result, why, source, reason in rows:
        if result != "passed":
            terminalreporter.write_line(f"{result:8}{identifier} ({mark}): {why}")
        if result == "FAILED":
            terminalreporter.write_line(f"        {source}: {reason}")
    counts = (f"{sum(row[2] == name for row in rows)} {name}" for name in RESULTS)
    terminalreporter.write_line(", ".join(counts))
    if config.getoption("--report"):
        chosen = ((row[0], row[1], row[5], row[2], row[3]) for row in rows)
        cells = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in chosen)
        lines = ["| case | mark | because | result | why |", "| --- | --- | --- | --- | --- |"]
        text = "\n".join([*lines, *(f"| {row} |" for row in cells), ""])
        Path(config.getoption("--report")).write_text(text, encoding="utf-8")


RESULTS = ("passed", "FAILED", "not run")
