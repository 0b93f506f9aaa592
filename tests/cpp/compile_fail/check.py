# SPDX-License-Identifier: Apache-2.0
"""Check that C++ is refused at compile time for the right reason, and its fixed twin compiles.

A file names its cases in comment lines, and each case is a namespace of that name::

    // expect enum_element: expected a type of the DLPack table
    // expect[gcc] bool_view: ...          only with g++; [clang] only with clang

The file is compiled once, which must fail: the diagnostics that lead into the namespace of a case
must match its regular expressions. It is compiled again with ``-DUSM_DLPACK_FIXED``, which must
succeed.

Called by ctest as ``check.py <file> <CMAKE_CXX_COMPILER_ID> -- <compiler> <flags>...``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXPECTATION = re.compile(
    r"^// expect(?:\[(?P<compiler>gcc|clang)\])? (?P<case>\w+): (?P<regex>.+)$", re.MULTILINE
)
NAMESPACE = re.compile(r"^namespace (\w+) \{$.*?^\}  // namespace \1$", re.MULTILINE | re.DOTALL)


def case_of_each_line(text: str) -> dict[int, str]:
    """Return the namespace in which each line stands."""
    return {
        line: found[1]
        for found in NAMESPACE.finditer(text)
        for line in range(
            text.count("\n", 0, found.start()) + 1, text.count("\n", 0, found.end()) + 2
        )
    }


def diagnostics_of_cases(printed: str, source: Path, compiler: str) -> dict[str, str]:
    """Return the diagnostics that lead into each case: that name its lines, or what is in it.

    g++ says what a template was required for before an error of it, clang in notes after it.
    """
    cases = case_of_each_line(source.read_text())
    names = "|".join(set(cases.values()))
    place = re.compile(rf"{re.escape(source.name)}:(\d+):|\b({names})::")
    split = r"^(?=.*\berror: )" if compiler == "clang" else r"^"
    texts: dict[str, str] = {}
    case = ""
    for block in re.split(split, printed, flags=re.MULTILINE):
        found = (name or cases.get(int(line)) for line, name in place.findall(block))
        case = next(filter(None, found), case)
        texts[case] = texts.get(case, "") + block
    return texts


def compile_one(command: list[str], source: Path, *macros: str) -> tuple[bool, str]:
    """Compile without an object; say whether that worked, and what the compiler printed."""
    arguments = [*command, *macros, "-fsyntax-only", str(source)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def faults_of(source: Path, compiler: str, command: list[str]) -> list[str]:
    """Return what is wrong with the cases of one file, in sentences."""
    expected = list(EXPECTATION.finditer(source.read_text()))
    if not expected:
        return ["expected a line `// expect <case>: <regex>`, found none"]
    named = {found["case"] for found in expected}
    spaces = set(case_of_each_line(source.read_text()).values())
    if named != spaces:
        return [f"expected a namespace for each of {sorted(named)}, found {sorted(spaces)}"]
    printed = diagnostics_of_cases(compile_one(command, source)[1], source, compiler)
    faults = [
        f"{found['case']}: expected diagnostics that match /{found['regex']}/, "
        f"found\n{printed.get(found['case'])}"
        for found in expected
        if found["compiler"] in (None, compiler)
        and not re.search(found["regex"], printed.get(found["case"], ""))
    ]
    compiles, said = compile_one(command, source, "-DUSM_DLPACK_FIXED")
    return faults if compiles else [*faults, f"expected the fixed twin to compile, found\n{said}"]


def main(arguments: list[str]) -> int:
    """Check one file and print each fault."""
    source, compiler = Path(arguments[0]), "gcc" if arguments[1] == "GNU" else "clang"
    faults = faults_of(source, compiler, arguments[arguments.index("--") + 1 :])
    print("\n".join(f"{source.name}: {fault}" for fault in faults) or f"{source.name}: refused")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
