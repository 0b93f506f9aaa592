# SPDX-License-Identifier: Apache-2.0
"""Runs tests that report what ran, for the programs that compare it with docs/backends.md."""

from pathlib import Path
from xml.etree import ElementTree

from dev import RefusalError, run


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
