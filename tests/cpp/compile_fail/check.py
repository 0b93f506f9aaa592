# SPDX-License-Identifier: Apache-2.0
"""Check that C++ is refused at compile time for the right reason, and its fixed twin compiles.

A file names in comment lines what the compiler must say::

    // expect: element_type: expected a type with a DLPack dtype
    // expect[gcc]: use of deleted function ...    only with g++; [clang] only with clang

It is compiled once, which must fail with diagnostics that match each of these regular expressions,
and again with ``-DUSM_DLPACK_FIXED``, which must succeed.

Called by ctest as ``check.py <file> <CMAKE_CXX_COMPILER_ID> -- <compiler> <flags>...``.
"""

import re
import subprocess
import sys
from pathlib import Path

EXPECTATION = re.compile(r"^// expect(?:\[(gcc|clang)\])?: (.+)$", re.MULTILINE)


def compile_one(command: list[str], source: Path, *macros: str) -> tuple[bool, str]:
    """Compile without an object; say whether that worked, and what the compiler printed."""
    arguments = [*command, *macros, "-fsyntax-only", str(source)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def faults_of(source: Path, compiler: str, command: list[str]) -> list[str]:
    expected = EXPECTATION.findall(source.read_text())
    if not expected:
        return ["expected a line `// expect: <regex>`, found none"]
    _, printed = compile_one(command, source)
    faults = [
        f"expected diagnostics that match /{regex}/, found\n{printed}"
        for only, regex in expected
        if only in ("", compiler) and not re.search(regex, printed)
    ]
    compiles, said = compile_one(command, source, "-DUSM_DLPACK_FIXED")
    return faults if compiles else [*faults, f"expected the fixed twin to compile, found\n{said}"]


def main(arguments: list[str]) -> int:
    source, compiler = Path(arguments[0]), "gcc" if arguments[1] == "GNU" else "clang"
    faults = faults_of(source, compiler, arguments[arguments.index("--") + 1 :])
    print("\n".join(f"{source.name}: {fault}" for fault in faults) or f"{source.name}: refused")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
