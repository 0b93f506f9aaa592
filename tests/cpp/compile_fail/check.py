# SPDX-License-Identifier: Apache-2.0
"""Check that C++ is refused at compile time for the right reason, and its fixed twin compiles.

A file names its cases in comment lines::

    // expect enum_element: expected a type of the DLPack table
    // expect[gcc] bool_view: ...          only with g++; [clang] only with clang

For each case the file is compiled with ``-D<case>``: that must fail, and the diagnostics must match
the regular expression (a case may have several lines; all must match). Then it is compiled with
``-D<case> -DUSM_DLPACK_FIXED``: that must succeed. Without a name (``// expect: ...``) no macro is
defined for the case.

Called by ctest as ``check.py <file> <CMAKE_CXX_COMPILER_ID> -- <compiler> <flags>...``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXPECTATION = re.compile(
    r"^// expect(?:\[(?P<compiler>gcc|clang)\])?(?: (?P<case>\w+))?: (?P<regex>.+)$"
)


def expectations(source: Path, compiler: str) -> dict[str, list[str]]:
    """Return the regular expressions of each case that concerns a compiler."""
    cases: dict[str, list[str]] = {}
    for line in source.read_text().splitlines():
        if found := EXPECTATION.match(line):
            patterns = cases.setdefault(found["case"] or "", [])
            if found["compiler"] in (None, compiler):
                patterns.append(found["regex"])
    return cases


def compile_one(command: list[str], source: Path, macros: list[str]) -> tuple[bool, str]:
    """Compile and drop the object; say whether that worked, and what the compiler printed."""
    arguments = [*command, *(f"-D{m}" for m in macros), "-c", str(source), "-o", "/dev/null"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def faults_of_case(command: list[str], source: Path, case: str, patterns: list[str]) -> list[str]:
    """Return what is wrong with one case, in sentences."""
    macros = [case] if case else []
    faults: list[str] = []
    compiles, printed = compile_one(command, source, macros)
    if compiles:
        faults.append("expected a refusal, found that it compiles")
    for pattern in patterns:
        if not compiles and not re.search(pattern, printed):
            faults.append(f"expected diagnostics that match /{pattern}/, found\n{printed}")
    compiles, printed = compile_one(command, source, [*macros, "USM_DLPACK_FIXED"])
    if not compiles:
        faults.append(f"expected the fixed twin to compile, found\n{printed}")
    return faults


def main(arguments: list[str]) -> int:
    """Check every case of one file and print each fault."""
    source, compiler_id = Path(arguments[0]), arguments[1]
    command = arguments[arguments.index("--") + 1 :]
    cases = expectations(source, "gcc" if compiler_id == "GNU" else "clang")
    faults = [
        f"{source.name}, case {case or 'unnamed'}: {fault}"
        for case, patterns in cases.items()
        for fault in faults_of_case(command, source, case, patterns)
    ]
    if not cases:
        faults = [f"{source.name}: expected a line `// expect <case>: <regex>`, found none"]
    print("\n".join(faults) or f"{source.name}: {len(cases)} cases refused, their twins compile")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
