# SPDX-License-Identifier: Apache-2.0
"""Check that static extents fold to constants, in the assembly that the compiler writes.

Each function ``folded_*`` of static_extents.cpp must have no multiplication and no jump, and the
consumer as its only call, and nothing of a refusal may be left beside them. Their twin
``not_folded`` must have a multiplication, and refusals, which shows that the test sees them.

Called by ctest as ``check.py <file> -- <compiler> <flags>...``.
"""

from __future__ import annotations

import re
import subprocess
import sys

FUNCTION = re.compile(
    r"^(folded_\w+|not_folded):[^\n]*\n(.*?)^\s*\.size\s+\1,", re.MULTILINE | re.DOTALL
)
MULTIPLICATION = re.compile(r"^\s+(i?mul\w*|madd|v?pmul\w*)\s", re.MULTILINE)
# A jump to the consumer is a call in tail position.
JUMP = re.compile(r"^\s+(j\w+|b\.\w+|cbn?z)\s+(?!\*)", re.MULTILINE)
CALL = re.compile(r"^\s+(call\w*|bl|jmp)\s+(?=\S*[^\s*])(?!\*)", re.MULTILINE)


# The type of what a refusal throws, as a label: its name also stands in the debug information.
REFUSAL = re.compile(r"^_ZTIN10usm_dlpack16conversion_errorE:", re.MULTILINE)


def faults(folded_alone: str, assembly: str) -> list[str]:
    """Return what is wrong with the functions, in sentences."""
    functions = {found[1]: found[2] for found in FUNCTION.finditer(assembly)}
    folded = {name: body for name, body in functions.items() if name != "not_folded"}
    if len(folded) != 4 or "not_folded" not in functions:
        return [f"expected four folded functions and their twin, found {sorted(functions)}"]
    found = [
        f"{name}: expected no {what}, found `{line[0].strip()}`"
        for name, body in folded.items()
        for what, pattern in (
            ("multiplication", MULTIPLICATION),
            ("jump", JUMP),
            ("call but the consumer's", CALL),
        )
        if (line := pattern.search(body))
    ]
    if not MULTIPLICATION.search(functions["not_folded"]):
        found.append("not_folded: expected a multiplication, found none; the test sees nothing")
    if REFUSAL.search(folded_alone):
        found.append("the folded functions alone: expected no code of refusals, found some")
    if not REFUSAL.search(assembly):
        found.append("not_folded: expected code of refusals, found none; the test sees nothing")
    return found


def main() -> int:
    """Compile to assembly, and read it."""
    source, separator, *command = sys.argv[1:]
    if separator != "--":
        raise SystemExit(__doc__)
    assemblies = []
    for macros in ([], ["-DUSM_DLPACK_TEST_TWIN"]):
        compile_source = [*command, *macros, "-O2", "-S", source, "-o", "-"]
        done = subprocess.run(compile_source, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stderr, file=sys.stderr)
            return 1
        assemblies.append(done.stdout)
    wrong = faults(*assemblies)
    print("\n".join(wrong) or "static extents fold to constants")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
