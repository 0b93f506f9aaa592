# SPDX-License-Identifier: Apache-2.0
"""The commands of the examples, run on a copy with the installed package alone."""

import re
import shutil
import sys
from pathlib import Path

import clean_environment
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def block(page: str, language: str) -> tuple[str, str]:
    """Return the first code block of a language on a page, and what follows it."""
    text = (EXAMPLES / page).read_text(encoding="utf-8")
    _, code, rest = re.split(rf"```{language}\n(.*?)```\n", text, maxsplit=1, flags=re.DOTALL)
    return code, rest


@pytest.mark.extended
def test_the_commands_build_and_test_the_examples(tmp_path):
    ignored = shutil.ignore_patterns("build", "__pycache__")
    folder = shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=ignored)
    installed = str(tmp_path / "installed")
    variables = {
        "PYTHONPATH": installed,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # pip finds in this environment what it is asked for, and installs nothing else in it.
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        # Optimising takes longer than the tests; kernels are compiled once for all processes.
        "SKBUILD_CMAKE_BUILD_TYPE": "Debug",
        "SYCL_CACHE_PERSISTENT": "1",
        "SYCL_CACHE_DIR": str(tmp_path / "cache"),
    }

    def run(*command, cwd=folder, **more):
        done = clean_environment.run(*command, cwd=cwd, timeout=1800, **variables, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    printed = ""
    for name in ("extension", "pybind11", "c_abi"):
        for command in block(f"{name}/README.md", "sh")[0].splitlines():
            target = {"PIP_TARGET": installed} if command.endswith(" .") else {}
            printed += run("sh", "-c", command, cwd=folder / name, **target)
    assert len(re.findall(r"\d+ passed in ", printed)) == 2
    assert "100% tests passed" in printed

    code, rest = block("extension/README.md", "python")
    sentence = run(sys.executable, "-W", "error", "-c", code)
    assert rest.startswith(f"\n    {sentence}\n")
