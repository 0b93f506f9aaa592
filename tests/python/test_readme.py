# SPDX-License-Identifier: Apache-2.0
"""The README: its Python runs and is refused as it shows, and its C++ is a test."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from usm_dlpack import ConversionError

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_last_line_of_the_python_example_is_refused_in_the_sentence_shown() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    *accepted, refused = example.splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(accepted), names)
    assert names["back"].data == names["tensor"].data
    with pytest.raises(ConversionError) as caught:
        exec(refused, names)
    assert f"\n    {caught.value}\n" in README


def test_a_user_without_root_is_told_what_to_install() -> None:
    code = """
import os, dev
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    dev.require_debian_packages(["g++", "python3-venv"])
except dev.RefusalError as refusal:
    print(refusal)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == (
        "",
        "system packages: expected g++ (a C++17 compiler), python3-venv, found none of them; "
        "run `apt-get install g++ python3-venv` as root, or what your system has instead\n",
    )
