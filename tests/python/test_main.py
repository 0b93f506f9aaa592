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
    assert "the host computes" not in printed
    assert any("no copy" in step for step in steps)
    assert any("a kernel on the producer's side" in step for step in steps)


def test_nine_refusals_are_shown_in_whole_sentences(printed: str) -> None:
    sentences = re.findall(r"^      (\S+: expected .*)$", printed, re.MULTILINE)
    assert len(sentences) == len(set(sentences)) == 9
    assert all(SENTENCE.fullmatch(sentence) for sentence in sentences)


def test_the_last_line_says_that_it_happened(printed: str) -> None:
    assert printed.rstrip().splitlines()[-1] == "All of this happened on this machine."


def test_no_line_is_wider_than_a_terminal_needs(printed: str) -> None:
    assert all(line == line.rstrip() for line in printed.splitlines())
    assert all(line.isprintable() for line in printed.splitlines())
    # A refusal and the tensor are one line each, however long.
    whole = re.compile(r"      \S+: expected |  ok  exported: DLPackTensor\(")
    told = [line for line in printed.splitlines() if not whole.match(line)]
    assert len(printed.splitlines()) - len(told) == 10
    assert max(map(len, told)) <= 100
    assert "0x" not in printed


def test_devices_as_json(succeed: Callable[..., str]) -> None:
    listed = json.loads(succeed(arguments=(*MAIN, "devices", "--json")))
    assert listed["ONEAPI_DEVICE_SELECTOR"] is None
    (device,) = listed["devices"]
    real = dpctl.get_devices()[0]
    assert {name: device[name] for name in list(device)[:8]} == {
        "device_id": 0,
        "filter_string": real.get_filter_string(),
        "name": real.name.strip(),
        "backend": "opencl",
        "device_type": "cpu",
        "platform": real.sycl_platform.name,
        "usable": True,
        "failure": None,
    }
    assert device["default_context"] == {"available": True, "device_ids": [0], "failure": None}
    kinds = ("device", "host", "shared", "system")
    usm = {kind: getattr(real, f"has_aspect_usm_{kind}_allocations") for kind in kinds}
    assert device["usm"] == usm
    assert device["sub_devices"]["most"] == real.partition_max_sub_devices
    assert len(real.create_sub_devices(partition=1)) == device["sub_devices"]["most"]
    assert "equally" in device["sub_devices"]["by"]
    assert device["device_id_without_selector"] == 0
    assert len(device) == 12
    nothing = {"value": None, "hidden": [], "without": None, "failure": None, "others": []}
    assert listed["selector"] == nothing


def test_devices_as_a_table(succeed: Callable[..., str]) -> None:
    printed = succeed(arguments=(*MAIN, "devices"))
    lines = printed.splitlines()
    assert lines[1].split()[:2] == ["id", "filter"]
    assert lines[4] == "Device 0 is (14, 0) in DLPack"
    assert lines[-1] == "ONEAPI_DEVICE_SELECTOR is not set: every root device is listed."
    assert "\x1b" not in printed
    assert max(map(len, lines)) <= 100


def listed_with(run: Callable[..., str], **variables: str) -> Any:
    """Return what ``devices --json`` lists under some variables."""
    return json.loads(run(arguments=(*MAIN, "devices", "--json"), **variables))


def test_what_a_selector_hides_and_moves_is_said(
    succeed: Callable[..., str], driver: Path, driver_copies: Any
) -> None:
    drivers = f"{driver}:{driver_copies['second']}:{driver_copies['third']}"
    chosen = {"OCL_ICD_FILENAMES": drivers, "ONEAPI_DEVICE_SELECTOR": "opencl:0,2"}
    listed = listed_with(succeed, **chosen)
    assert [d["device_id_without_selector"] for d in listed["devices"]] == [0, 2]
    assert listed["selector"]["without"] == [0, 2]
    (hidden,) = listed["selector"]["hidden"]
    assert (hidden["device_id"], hidden["filter_string"]) == (1, "opencl:cpu:1")
    printed = succeed(arguments=(*MAIN, "devices"), **chosen)
    assert printed.count("without it, this device would be 2") == 1
    assert "hides what without it would be device 1 (opencl:cpu:1)." in printed


def test_a_selector_that_hides_nothing_is_said_to(succeed: Callable[..., str]) -> None:
    printed = succeed(arguments=(*MAIN, "devices"), ONEAPI_DEVICE_SELECTOR="!level_zero:*")
    assert "ONEAPI_DEVICE_SELECTOR=!level_zero:* changes nothing: it hides no device." in printed


def test_devices_that_a_selector_discards_among_equals_are_not_guessed(
    succeed: Callable[..., str], driver: Path, driver_copies: Any
) -> None:
    listed = listed_with(
        succeed,
        OCL_ICD_FILENAMES=f"{driver}:{driver_copies['second']}",
        ONEAPI_DEVICE_SELECTOR="opencl:1;!level_zero:*",
    )
    assert len(listed["devices"]) == 1
    assert listed["devices"][0]["device_id_without_selector"] is None
    assert "cannot be told from each other" in listed["selector"]["failure"]


def test_a_selector_that_hides_all_is_said_to(new_process: Callable[..., Any]) -> None:
    arguments = (*MAIN, "devices")
    done = new_process(arguments=arguments, ONEAPI_DEVICE_SELECTOR="level_zero:*")
    assert done.returncode == 1
    assert "hides what without it would be device 0 (opencl:cpu:0)." in done.stdout


def test_other_variables_are_spoken_of_only_if_they_have_an_effect(
    new_process: Callable[..., Any],
) -> None:
    arguments = (*MAIN, "devices", "--json")
    done = new_process(
        arguments=arguments,
        SYCL_DEVICE_FILTER="gpu",  # which this runtime no longer reads
        SYCL_DEVICE_ALLOWLIST="DeviceType:gpu",
    )
    assert done.returncode == 1
    (other,) = json.loads(done.stdout)["selector"]["others"]
    assert other == {"name": "SYCL_DEVICE_ALLOWLIST", "value": "DeviceType:gpu", "hides": 1}
    printed = new_process(arguments=arguments[:-1], SYCL_DEVICE_ALLOWLIST="DeviceType:gpu").stdout
    assert "SYCL_DEVICE_ALLOWLIST=DeviceType:gpu hides 1 of the root devices." in printed
    assert "ONEAPI_DEVICE_SELECTOR is not set: it hides no device." in printed
    assert "every root device is listed" not in printed


def test_a_mask_of_tiles_is_not_spoken_of_without_a_device_of_level_zero(
    succeed: Callable[..., str],
) -> None:
    listed = listed_with(succeed, ZE_AFFINITY_MASK="0.1")
    assert listed["selector"]["others"] == []


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
    assert broken["default_context"]["available"] is False
    assert "69" in broken["default_context"]["failure"]
    printed = new_process(arguments=(*MAIN, "devices"), OCL_ICD_FILENAMES=drivers).stdout
    assert "default context  cannot be made" in printed
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


_ARRAYS = """
import dpctl
from dpctl import memory

device = dpctl.SyclDevice()
good = memory.MemoryUSMDevice(48)
foreign = memory.MemoryUSMDevice(
    48, queue=dpctl.SyclQueue(dpctl.SyclContext([device]), device)
)
"""


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    """Return a user's file with arrays in it."""
    file = tmp_path / "arrays.py"
    file.write_text(_ARRAYS)
    return file


def test_explain_takes_a_file_and_its_status_is_the_answer(
    new_process: Callable[..., Any], arrays: Path
) -> None:
    done = new_process(arguments=(*MAIN, "explain", f"{arrays}:good"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Export of an object of type MemoryUSMDevice\n")
    assert done.stdout.count("\n  ok  ") == 10
    done = new_process(arguments=(*MAIN, "explain", f"{arrays}:foreign"))
    assert (done.returncode, done.stderr) == (1, "")
    assert "\n  stop  6. it is the default context of its platform\n" in done.stdout
    assert "stopped   context: expected the default context" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_explain_takes_a_module_and_an_expression_with_colons(
    succeed: Callable[..., str],
) -> None:
    expression = "[MemoryUSMDevice(n) for n in (8, 16)][1:][0]"
    told = json.loads(succeed(arguments=(*MAIN, "explain", f"dpctl.memory:{expression}", "--json")))
    assert told["passed"] is True
    (walk,) = told["walks"]
    assert walk["direction"] == "export"
    assert walk["steps"][0]["facts"]["shape"] == [16]


def test_explain_walks_the_direction_that_is_asked_for(succeed: Callable[..., str]) -> None:
    target = "usm_dlpack:to_dlpack_tensor(__import__('dpctl.memory').memory.MemoryUSMHost(8))"
    printed = succeed(arguments=(*MAIN, "explain", target, "--direction", "import"))
    assert "Import of" in printed
    assert "Export of" not in printed


@pytest.mark.parametrize(
    ("target", "part"),
    [
        ("no_colon", "expected MODULE:EXPR"),
        ("no_such_module:x", "ModuleNotFoundError"),
        ("./no_such_file.py:x", "FileNotFoundError"),
        ("math:nothing", "NameError"),
        ("math:1 +", "SyntaxError"),
        ("math:1 / 0", "ZeroDivisionError"),
    ],
)
def test_what_explain_cannot_find_is_one_sentence(
    new_process: Callable[..., Any], target: str, part: str
) -> None:
    done = new_process(arguments=(*MAIN, "explain", target))
    assert (done.returncode, done.stdout) == (2, "")
    assert SENTENCE.fullmatch(done.stderr.strip()), done.stderr
    assert part in done.stderr


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ("no_such_module:x", "; correct the name, or run where it is found"),
        ("math.no_such_module:x", "; correct the name, or run where it is found"),
        ("./no_such_file.py:x", "; correct the name, or run where it is found"),
        ("./raises.txt:x", "; correct the name, or run where it is found"),
        ("./{folder}/raises.py:x", "; correct what it raises"),
        ("./{folder}/opens.py:x", "; correct what it raises"),
        ("./{folder}/imports.py:x", "; correct what it raises"),
        ("math:nothing", "; correct the expression"),
        ("math:1 +", "; correct the expression"),
        ("math:1 / 0", "; correct what it raises"),
    ],
)
def test_what_explain_cannot_find_is_told_from_what_raises(
    new_process: Callable[..., Any], tmp_path: Path, target: str, remedy: str
) -> None:
    (tmp_path / "raises.py").write_text("raise ValueError('no')\n")
    (tmp_path / "opens.py").write_text("open('no_such_file')\n")
    (tmp_path / "imports.py").write_text("import no_such_module\n")
    target = target.replace("./{folder}", str(tmp_path))
    done = new_process(arguments=(*MAIN, "explain", target))
    assert done.returncode == 2
    assert done.stderr.endswith(f"{remedy}\n")


@pytest.mark.parametrize("target", ["{arrays}:good", "dpctl.memory:MemoryUSMDevice(48)"])
def test_what_raises_because_there_is_no_device_is_said_to(
    new_process: Callable[..., Any], arrays: Path, target: str
) -> None:
    arguments = (*MAIN, "explain", target.format(arrays=arrays))
    done = new_process(arguments=arguments, ONEAPI_DEVICE_SELECTOR="level_zero:*")
    assert (done.returncode, done.stdout) == (2, "")
    assert SENTENCE.fullmatch(done.stderr.strip())
    assert "`python -m usm_dlpack doctor`, because this process has no root device" in done.stderr
    assert "correct the" not in done.stderr


def test_what_the_users_code_prints_is_not_read_as_the_explanation(
    new_process: Callable[..., Any], arrays: Path
) -> None:
    class_of_x = """
import ctypes, subprocess, sys

class Loud:
    @property
    def __sycl_usm_array_interface__(self):
        print("walked")
        return good.__sycl_usm_array_interface__

subprocess.run([sys.executable, "-c", "print('of a subprocess')"], check=True)
ctypes.CDLL(None).puts(b"of C")
print("loaded", flush=True)
x = Loud()
"""
    arrays.write_text(_ARRAYS + class_of_x)
    arguments = (*MAIN, "explain", f"{arrays}:print('evaluated') or x")
    done = new_process(arguments=(*arguments, "--json"))
    assert done.returncode == 0
    assert json.loads(done.stdout)["passed"] is True
    said = done.stderr.splitlines()
    said.remove("of C")  # written when C's buffer goes
    assert said[:3] == ["of a subprocess", "loaded", "evaluated"]
    assert set(said[3:]) == {"walked"}
    assert new_process(arguments=arguments).stdout.startswith("Export of an object of type Loud\n")


def test_an_explained_file_is_loaded_as_python_loads_a_program(
    succeed: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "neighbour.py").write_text("from dpctl.memory import MemoryUSMDevice\n")
    file = tmp_path / "explained_file.py"
    file.write_text(
        "import sys\n"
        "import neighbour\n"
        f"assert sys.argv == [{str(file)!r}], sys.argv\n"
        "assert vars(sys.modules[__name__]) is globals()\n"
        "good = neighbour.MemoryUSMDevice(48)\n"
    )
    told = json.loads(succeed(arguments=(*MAIN, "explain", f"{file}:good", "--json")))
    assert told["passed"] is True
    assert told["walks"][0]["steps"][0]["facts"]["syclobj"] == "SyclQueue"


def run_on_terminal(arguments: list[str], **variables: str) -> tuple[str, str]:
    """Run the program with stdout and stderr on terminals; return what was written to each."""
    import pty

    variables = {"TERM": "xterm", **variables}
    names = ("NO_COLOR", "FORCE_COLOR", "TERM")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    ends = [pty.openpty() for _ in range(2)]
    process = subprocess.Popen(
        [sys.executable, "-m", "usm_dlpack", *arguments],
        env=kept | variables,
        stdout=ends[0][1],
        stderr=ends[1][1],
    )
    for _, slave in ends:
        os.close(slave)
    written = [b"", b""]
    for place, (master, _) in enumerate(ends):
        while True:
            try:
                read = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            written[place] += read
        os.close(master)
    process.wait()
    return written[0].decode(), written[1].decode()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("devices",),
        ("devices", "--json"),
        ("doctor",),
        ("explain", "dpctl:get_devices()[0]"),
        ("explain", "no.such:module"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_is_closed_gets_nothing_and_changes_no_status(
    arguments: tuple[str, ...], closed: str
) -> None:
    command = [sys.executable, "-m", "usm_dlpack", *arguments]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == plain.returncode
    assert done.stdout == ("" if closed.startswith(">&-") else plain.stdout)
    assert done.stderr == ("" if "2>&-" in closed else plain.stderr)


COLOUR = "\x1b[1m"


def test_colours_are_for_terminals_that_want_them(
    new_process: Callable[..., Any], arrays: Path
) -> None:
    arguments = ["explain", f"{arrays}:foreign"]
    coloured, _ = run_on_terminal(arguments)
    assert COLOUR in coloured
    assert "\x1b[31m" in coloured
    assert COLOUR not in run_on_terminal(arguments, NO_COLOR="1")[0]
    assert COLOUR not in run_on_terminal(arguments, TERM="dumb")[0]
    assert COLOUR not in run_on_terminal([*arguments, "--color", "never"])[0]
    assert COLOUR in run_on_terminal([*arguments, "--color", "always"], NO_COLOR="1")[0]
    piped = new_process(arguments=(*MAIN, *arguments))
    assert "\x1b" not in piped.stdout + piped.stderr
    forced = new_process(arguments=(*MAIN, *arguments), FORCE_COLOR="1")
    assert COLOUR in forced.stdout


def test_progress_is_shown_on_a_terminal_and_erased(arrays: Path) -> None:
    _, progress = run_on_terminal(["devices"], ONEAPI_DEVICE_SELECTOR="opencl:cpu")
    assert "listing devices without ONEAPI_DEVICE_SELECTOR" in progress
    assert progress.endswith("\r\x1b[2K")
    _, progress = run_on_terminal([])
    assert progress == "\r\x1b[2Kbuilding kernels …\r\x1b[2K"
    _, progress = run_on_terminal(["doctor"])
    assert "importing usm_dlpack" in progress
    assert progress.endswith("\r\x1b[2K")
    _, silent = run_on_terminal(["devices"], ONEAPI_DEVICE_SELECTOR="opencl:cpu", TERM="dumb")
    assert silent == ""


@pytest.mark.parametrize("command", [(), ("devices",), ("explain",), ("doctor",)])
def test_help_says_the_exit_statuses(succeed: Callable[..., str], command: tuple[str, ...]) -> None:
    printed = succeed(arguments=(*MAIN, *command, "--help"))
    assert "exit status:" in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_a_reader_that_has_enough_ends_the_program_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    arguments = [sys.executable, "-m", "usm_dlpack", "devices"]
    done = subprocess.run(arguments, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    "arguments", [("devices",), ("doctor",), ("devices", "--json"), ("explain", "math:pi")]
)
def test_a_stdout_that_is_full_is_said_in_one_sentence(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "usm_dlpack", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert SENTENCE.fullmatch(done.stderr.strip())
    assert "\n" not in done.stderr.strip()
    assert done.stderr.startswith("stdout: expected a file with space for what is said, found ")


def test_a_stdout_and_a_stderr_that_are_full_leave_the_status() -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "usm_dlpack", "devices"]
        done = subprocess.run(command, stdout=full, stderr=full, check=False)
    assert done.returncode == 3
