# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack``: devices, a round trip, refusals; exit status 0 only if all is real."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl
import pytest
from refusals import SENTENCE

MAIN = ("-m", "usm_dlpack")


@pytest.fixture(scope="module")
def printed(succeed: Callable[..., str]) -> str:
    """Return what the program prints where there is a device."""
    return succeed(arguments=MAIN)


def test_the_program_names_the_device(printed: str) -> None:
    device = dpctl.get_devices()[0]
    row = re.search(r"^\s+0\s+(\S+)\s+(\S+)\s+(.*)$", printed, re.MULTILINE)
    assert row is not None
    assert row.group(1) == device.get_filter_string()
    assert row.group(2) == "opencl"
    assert row.group(3) == device.name.strip()


def test_the_round_trip_says_each_step(printed: str) -> None:
    steps = re.findall(r"^  ok  (.*)$", printed, re.MULTILINE)
    assert len(steps) >= 6
    assert "a kernel filled device USM" in steps
    assert any("no copy" in step for step in steps)
    assert any("a kernel on the producer's side" in step for step in steps)


def test_at_least_six_refusals_are_shown_in_whole_sentences(printed: str) -> None:
    sentences = re.findall(r"^      (\S+: expected .*)$", printed, re.MULTILINE)
    assert len(set(sentences)) >= 6
    assert all(SENTENCE.fullmatch(sentence) for sentence in sentences)


def test_the_last_line_says_that_it_happened(printed: str) -> None:
    assert printed.rstrip().splitlines()[-1] == "All of this happened on this machine."


def test_no_line_is_wider_than_a_terminal_needs(printed: str) -> None:
    assert all(line == line.rstrip() for line in printed.splitlines())
    assert printed.isprintable() or "\n" in printed
    assert "0x" not in printed


def test_devices_as_json(succeed: Callable[..., str]) -> None:
    listed = json.loads(succeed(arguments=(*MAIN, "devices", "--json")))
    assert listed["ONEAPI_DEVICE_SELECTOR"] is None
    (device,) = listed["devices"]
    real = dpctl.get_devices()[0]
    assert device == {
        "device_id": 0,
        "filter_string": real.get_filter_string(),
        "name": real.name.strip(),
        "backend": "opencl",
        "device_type": "cpu",
        "platform": real.sycl_platform.name,
        "usable": True,
        "failure": None,
    }


def test_devices_as_a_table(succeed: Callable[..., str]) -> None:
    lines = succeed(arguments=(*MAIN, "devices")).splitlines()
    assert lines[1].split()[:2] == ["id", "filter"]
    assert len(lines) == 3


def test_several_devices_are_listed_with_their_ids(
    succeed: Callable[..., str], driver: Path, driver_copies: Any
) -> None:
    drivers = f"{driver}:{driver_copies['second']}:{driver_copies['third']}"
    arguments = (*MAIN, "devices", "--json")
    listed = json.loads(
        succeed(arguments=arguments, OCL_ICD_FILENAMES=drivers, ONEAPI_DEVICE_SELECTOR="opencl:1,2")
    )
    assert listed["ONEAPI_DEVICE_SELECTOR"] == "opencl:1,2"
    assert [device["device_id"] for device in listed["devices"]] == [0, 1]
    assert all(device["usable"] for device in listed["devices"])


def test_a_broken_device_is_listed_as_such_and_the_round_trip_takes_another(
    new_process: Callable[..., Any], driver: Path, driver_copies: Any
) -> None:
    drivers = f"{driver}:{driver_copies['broken']}"
    arguments = (*MAIN, "devices", "--json")
    done = new_process(arguments=arguments, OCL_ICD_FILENAMES=drivers)
    assert done.returncode == 0
    whole, broken = json.loads(done.stdout)["devices"]
    assert (whole["usable"], broken["usable"]) == (True, False)
    assert broken["device_id"] == 1
    assert broken["failure"]
    done = new_process(arguments=MAIN, OCL_ICD_FILENAMES=drivers)
    assert done.returncode == 0
    assert "device 1 cannot be used" in done.stdout


@pytest.mark.parametrize("arguments", [(), ("devices",), ("devices", "--json")])
def test_without_a_device_the_program_fails_and_says_what_to_do(
    new_process: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    done = new_process(arguments=(*MAIN, *arguments), USM_DLPACK_CPU_DRIVER="0")
    assert done.returncode == 1
    sentence = done.stderr.strip()
    assert SENTENCE.fullmatch(sentence)
    assert sentence.startswith("devices: expected at least one root device, found none")
    assert "intel-opencl-rt" in sentence
    assert "All of this happened" not in done.stdout
    if "--json" in arguments:
        assert json.loads(done.stdout)["devices"] == []


def test_without_the_foreign_consumer_the_program_fails_and_says_so(
    new_process: Callable[..., Any],
) -> None:
    done = new_process(
        """
        import sys
        sys.modules["tvm_ffi"] = None  # as if it were not installed
        from usm_dlpack.__main__ import main
        sys.exit(main([]))
        """
    )
    assert done.returncode == 1
    assert SENTENCE.fullmatch(done.stderr.strip())
    assert "apache-tvm-ffi" in done.stderr


def test_an_unknown_command_is_a_usage_error(new_process: Callable[..., Any]) -> None:
    done = new_process(arguments=(*MAIN, "no-such"))
    assert done.returncode == 2
    assert "usage: python -m usm_dlpack" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["devices"], ["devices", "--json"]])
def test_a_selector_that_the_runtime_cannot_read_is_one_sentence(arguments: list[str]) -> None:
    environment = os.environ | {"ONEAPI_DEVICE_SELECTOR": "bogus"}
    done = subprocess.run(
        [sys.executable, "-m", "usm_dlpack", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "\n" not in done.stderr.strip()
    assert "correct ONEAPI_DEVICE_SELECTOR" in done.stderr
