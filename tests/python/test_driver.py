# SPDX-License-Identifier: Apache-2.0
"""The CPU driver of a wheel is made known on import, unless the user or the system has one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import usm_dlpack
from usm_dlpack import _driver

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
    return lambda code=ASK, **variables: json.loads(succeed(code, **variables))


def test_this_environment_has_the_driver_of_the_wheel(driver: Path) -> None:
    assert driver.name == "libintelocl.so"
    assert driver.is_file()


def test_importing_the_package_makes_the_driver_known(
    ask: Callable[..., Any], driver: Path
) -> None:
    assert ask() == [str(driver), True]


@pytest.mark.parametrize("value", ["1", "", "yes", "00"])
def test_only_zero_switches_it_off(ask: Callable[..., Any], driver: Path, value: str) -> None:
    assert ask(USM_DLPACK_CPU_DRIVER=value) == [str(driver), True]


def test_zero_leaves_the_environment_alone(ask: Callable[..., Any]) -> None:
    assert ask(USM_DLPACK_CPU_DRIVER="0") == [None, "no_device"]


@pytest.mark.parametrize("selector", ["opencl:*", "opencl:cpu", "opencl:0", "*:cpu"])
def test_a_selector_of_opencl_alone_finds_the_driver(
    ask: Callable[..., Any], driver: Path, selector: str
) -> None:
    assert ask(ONEAPI_DEVICE_SELECTOR=selector) == [str(driver), True]
    named = {"OCL_ICD_FILENAMES": str(driver), "ONEAPI_DEVICE_SELECTOR": selector}
    assert ask(**named) == [str(driver), True]


def test_a_driver_that_the_user_names_is_left_alone(
    ask: Callable[..., Any], driver: Path, driver_copies: Any
) -> None:
    second = str(driver_copies["second"])
    assert ask(OCL_ICD_FILENAMES=second) == [second, True]
    assert ask(OCL_ICD_FILENAMES="/nowhere/libnone.so") == ["/nowhere/libnone.so", "no_device"]
    assert ask(OCL_ICD_FILENAMES="") == ["", "no_device"]
    assert ask(OCL_ICD_FILENAMES=str(driver), USM_DLPACK_CPU_DRIVER="0") == [str(driver), True]


def test_a_folder_of_drivers_that_the_user_names_is_left_alone(
    ask: Callable[..., Any], driver: Path, tmp_path: Path
) -> None:
    assert ask(OCL_ICD_VENDORS=f"{tmp_path}/") == [None, "no_device"]
    (tmp_path / "cpu.icd").write_text(f"{driver}\n")
    assert ask(OCL_ICD_VENDORS=f"{tmp_path}/") == [None, True]


def test_a_driver_of_the_system_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, driver: Path
) -> None:
    for name in ("OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "USM_DLPACK_CPU_DRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_driver, "_SYSTEM_DRIVERS", tmp_path)
    (tmp_path / "gpu.icd").write_text("libgpu.so\n")
    assert _driver.register_cpu_driver() is None
    (tmp_path / "gpu.icd").rename(tmp_path / "gpu.icd.disabled")
    assert _driver.register_cpu_driver() == driver


FIND = """
import json, os, runpy, sys
driver = runpy.run_path(sys.argv[1])
found = [driver["find_cpu_driver"](), driver["register_cpu_driver"]()]
print(json.dumps([path and str(path) for path in found] + [os.environ.get("OCL_ICD_FILENAMES")]))
"""


def test_without_the_wheel_nothing_is_set_and_the_users_folder_counts(tmp_path: Path) -> None:
    # The interpreter that the test environment was made of has no such wheel.
    interpreter = str(Path(sys.base_prefix, "bin", "python3"))
    command = [interpreter, "-c", FIND, str(_driver.__file__)]
    environment = {"PYTHONUSERBASE": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def find() -> Any:
        return json.loads(subprocess.check_output(command, env=environment))

    assert find() == [None, None, None]
    library = tmp_path / "lib" / "libintelocl.so"
    library.parent.mkdir()
    library.touch()
    assert find() == [str(library)] * 3
    environment["PYTHONNOUSERSITE"] = "1"
    assert find() == [None, None, None]


def test_importing_the_package_asks_the_runtime_for_no_device(
    ask: Callable[..., Any], driver: Path
) -> None:
    # Had it asked, the runtime would have answered "none" for good.
    late = f"import os, usm_dlpack\nos.environ['OCL_ICD_FILENAMES'] = {str(driver)!r}\n{ASK}"
    assert ask(late, USM_DLPACK_CPU_DRIVER="0") == [str(driver), True]


def test_a_runtime_that_was_asked_too_early_is_named_on_first_use(
    ask: Callable[..., Any], driver: Path
) -> None:
    early = f"import dpctl\nassert dpctl.get_devices() == []\n{ASK}"
    assert ask(early) == [str(driver), "no_device"]
    assert usm_dlpack.device_id(usm_dlpack.root_device(0)) == 0


LATE = """
import contextlib, io, json, dpctl
assert dpctl.get_devices() == []
import usm_dlpack, usm_dlpack.__main__
try:
    usm_dlpack.root_device(0)
except usm_dlpack.ConversionError as error:
    refusal = error
said = io.StringIO()
with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
    status = usm_dlpack.__main__.main(["devices"])
print(json.dumps([refusal.code, refusal.found, refusal.remedy, status, said.getvalue()]))
"""


def test_an_import_that_came_too_late_is_told_to_come_first(ask: Callable[..., Any]) -> None:
    first = "import usm_dlpack before the first device query of the process"
    code, found, remedy, status, said = ask(LATE)
    assert (code, found, status) == ("no_device", "none at all", 1)
    assert remedy.startswith(first)
    assert "ONEAPI_DEVICE_SELECTOR" not in remedy + said
    assert said.startswith("devices: expected at least one root device, found none; " + first)


@pytest.mark.parametrize(
    "variables", [{"USM_DLPACK_CPU_DRIVER": "0"}, {"ONEAPI_DEVICE_SELECTOR": "level_zero:*"}]
)
def test_what_an_earlier_import_would_not_mend_has_another_remedy(
    ask: Callable[..., Any], variables: dict[str, str]
) -> None:
    _, _, remedy, _, said = ask(LATE, **variables)
    assert remedy.startswith("check ONEAPI_DEVICE_SELECTOR; install a driver")
    assert "install a driver, or the wheel intel-opencl-rt" in said
