# SPDX-License-Identifier: Apache-2.0
"""Builds the extensions of extension_project against the installed package, as its author would."""

import functools
import hashlib
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import time_limit
import usm_dlpack

PROJECT = Path(__file__).with_name("extension_project")
NAME = "extension_under_test_module"
# The targets that are built, for the processes that this one starts.
BUILT = "EXTENSIONS_UNDER_TEST"


def build(target: str = "all") -> Path:
    """Build one extension or all, or what has changed of them, and return their folder."""
    place = hashlib.sha256(bytes(Path(sys.prefix))).hexdigest()[:16]
    folder = PROJECT.parents[3] / "build" / "extension_under_test" / place
    built = os.environ.get(BUILT, "").split()
    if target in built:
        return folder
    tools = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in (
        [
            *("cmake", "-S", PROJECT, "-B", folder, "-DCMAKE_BUILD_TYPE=None"),
            f"-Dusm_dlpack_DIR={usm_dlpack.get_cmake_dir()}",
            f"-DPython_EXECUTABLE={sys.executable}",
        ],
        ["cmake", "--build", folder, "--target", target],
    ):
        with time_limit.paused():
            done = subprocess.run(command, env=tools, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    os.environ[BUILT] = " ".join([*built, target])
    return folder


@functools.cache
def load(name: str = NAME) -> Any:
    sys.path.insert(0, str(build(name)))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)
