# SPDX-License-Identifier: Apache-2.0
"""The CPU driver of a wheel is made known on import, unless the user or the system has one."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from usm_dlpack import _cpu_driver

ASK = """
import json, os
import usm_dlpack
named = os.environ.get("OCL_ICD_FILENAMES")
try:
    usm_dlpack.root_device(0)
    device = True
except usm_dlpack.ConversionError as error:
    device = error.code
print(json.dumps([named, device]))
"""


@pytest.fixture
def ask(succeed: Callable[..., str]) -> Callable[..., Any]:
    """Return a function that gives a new process's variable, and whether it has a device."""
    return lambda **variables: json.loads(succeed(ASK, **variables))


@pytest.mark.parametrize(
    ("variables", "named", "device"),
    [
        ({}, "{driver}", True),
        ({"USM_DLPACK_CPU_DRIVER": "00"}, "{driver}", True),
        ({"USM_DLPACK_CPU_DRIVER": "0"}, None, "no_device"),
        ({"OCL_ICD_FILENAMES": "{second}"}, "{second}", True),
        ({"OCL_ICD_FILENAMES": ""}, "", "no_device"),
        ({"OCL_ICD_VENDORS": "{folder}/"}, None, True),
        ({"ONEAPI_DEVICE_SELECTOR": "*:cpu"}, "{driver}", True),
    ],
    ids=str,
)
def test_the_driver_is_made_known_unless_a_variable_of_the_user_is_set(
    ask, driver, driver_copies, tmp_path, variables, named, device
):
    (tmp_path / "cpu.icd").write_text(f"{driver}\n")
    places = {"driver": driver, "second": driver_copies["second"], "folder": tmp_path}
    variables = {name: value.format(**places) for name, value in variables.items()}
    assert ask(**variables) == [named and named.format(**places), device]


def test_a_driver_of_the_system_is_left_alone(monkeypatch, tmp_path, driver):
    for name in ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_cpu_driver, "_SYSTEM_DRIVERS", tmp_path)
    (tmp_path / "gpu.icd").write_text("libgpu.so\n")
    assert _cpu_driver.register_cpu_driver() is None
    (tmp_path / "gpu.icd").rename(tmp_path / "gpu.icd.disabled")
    assert _cpu_driver.register_cpu_driver() == driver


FIND = """
import json, os, runpy, sys
driver = runpy.run_path(sys.argv[1])
found = [driver["find_cpu_driver"](), driver["register_cpu_driver"]()]
print(json.dumps([path and str(path) for path in found] + [os.environ.get("OCL_ICD_FILENAMES")]))
"""


def test_without_the_wheel_nothing_is_set_and_the_users_folder_counts(tmp_path):
    # The interpreter that the test environment was made of has no such wheel.
    interpreter = str(Path(sys.base_prefix, "bin", "python3"))
    command = [interpreter, "-c", FIND, str(_cpu_driver.__file__)]
    environment = {"PYTHONUSERBASE": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def find():
        return json.loads(subprocess.check_output(command, env=environment))

    assert find() == [None, None, None]
    library = tmp_path / "lib" / "libintelocl.so"
    library.parent.mkdir()
    library.touch()
    assert find() == [str(library)] * 3
    environment["PYTHONNOUSERSITE"] = "1"
    assert find() == [None, None, None]


LATE = """
import dpctl
assert dpctl.get_devices() == []
import usm_dlpack
try:
    usm_dlpack.root_device(0)
except usm_dlpack.ConversionError as error:
    print(error.code, error.remedy)
"""


@pytest.mark.parametrize(
    "variables", [{"USM_DLPACK_CPU_DRIVER": "0"}, {"ONEAPI_DEVICE_SELECTOR": "level_zero:*"}]
)
def test_an_import_that_came_too_late_is_told_to_come_first_only_if_that_would_help(
    succeed, variables
):
    told = succeed(LATE, **variables)
    assert told.startswith("no_device install a driver")
    assert "ONEAPI_DEVICE_SELECTOR" in told
