# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack``: devices, a round trip, refusals; exit status 0 only if all is real."""

import io
import json
import re
import sys

import clean_environment
import dpctl
import pytest
from refusals import SENTENCE
from usm_dlpack._terminal import wants_colour

MAIN = ("-m", "usm_dlpack")
DEVICES = (*MAIN, "devices", "--json")


def test_the_program_shows_devices_a_round_trip_and_refusals(succeed):
    lines = succeed(arguments=MAIN).splitlines()
    steps = [line for line in lines if line.startswith("  ok  ")]
    assert len(steps) == 6
    assert steps[2] == "  ok  the consumer's pointer is the producer's: no copy"
    refusals = [line.strip() for line in lines if re.match(r"      \S+: expected ", line)]
    assert len(refusals) == len(set(refusals)) == 5
    assert all(SENTENCE.fullmatch(sentence) for sentence in refusals)
    assert lines[-1] == "All of this happened on this machine."


def test_devices_as_a_table_and_as_json(succeed):
    real = dpctl.get_devices()[0]
    kinds = ("device", "host", "shared", "system")
    usm = {kind: getattr(real, f"has_aspect_usm_{kind}_allocations") for kind in kinds}
    name = real.name.strip()
    listed = json.loads(succeed(arguments=DEVICES))
    (device,) = listed["devices"]
    assert device.pop("sub_devices")["most"] == len(real.create_sub_devices(partition=1))
    assert device == {
        "device_id": 0,
        "filter_string": "opencl:cpu:0",
        "name": name,
        "backend": "opencl",
        "device_type": "cpu",
        "platform": real.sycl_platform.name,
        "usable": True,
        "failure": None,
        "default_context": {"available": True, "device_ids": [0], "failure": None},
        "usm": usm,
    }
    assert listed["variables"] == {}
    table = succeed(arguments=(*MAIN, "devices"))
    assert f"\n  0   opencl:cpu:0   opencl   {name}\n" in table
    assert f"\n  USM              {', '.join(kind for kind in kinds if usm[kind])}\n" in table
    assert "_SELECTOR" not in table


def test_variables_that_may_hide_devices_are_shown(new_process):
    variables = {"ONEAPI_DEVICE_SELECTOR": "opencl:*", "SYCL_DEVICE_ALLOWLIST": "DeviceType:gpu"}
    done = new_process(arguments=DEVICES, **variables)
    assert (done.returncode, json.loads(done.stdout)) == (
        1,
        {"variables": variables, "devices": []},
    )
    printed = new_process(arguments=(*MAIN, "devices"), **variables).stdout
    for name, value in variables.items():
        assert f"\n{name}={value} is set: it may hide devices" in printed


def test_a_broken_device_is_listed_as_such_and_disturbs_no_round_trip(
    succeed, new_process, driver, driver_copies
):
    three = (driver, driver_copies["broken"], driver_copies["second"])
    drivers = {"OCL_ICD_FILENAMES": ":".join(map(str, three))}
    listed = json.loads(succeed(arguments=DEVICES, **drivers))["devices"]
    assert [device["usable"] for device in listed] == [True, False, True]
    broken = listed[1]
    assert broken["failure"]
    assert broken["default_context"]["available"] is False
    assert "69" in broken["default_context"]["failure"]
    assert "device 1 cannot be used" in succeed(arguments=MAIN, **drivers)
    alone = new_process(arguments=DEVICES, ONEAPI_DEVICE_SELECTOR="opencl:1", **drivers)
    assert alone.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "variables", "remedy"),
    [
        ((), {"USM_DLPACK_CPU_DRIVER": "0"}, "intel-opencl-rt"),
        (("devices", "--json"), {"USM_DLPACK_CPU_DRIVER": "0"}, "intel-opencl-rt"),
        (("devices",), {"ONEAPI_DEVICE_SELECTOR": "bogus"}, "unset ONEAPI_DEVICE_SELECTOR"),
    ],
)
def test_without_a_device_the_program_fails_and_says_what_to_do(
    new_process, arguments, variables, remedy
):
    done = new_process(arguments=(*MAIN, *arguments), **variables)
    assert done.returncode == 1
    assert SENTENCE.fullmatch(done.stderr.strip())
    assert remedy in done.stderr
    assert "All of this happened" not in done.stdout


def test_without_the_foreign_consumer_the_program_fails_and_says_so(new_process, tmp_path):
    (tmp_path / "tvm_ffi.py").write_text("raise ImportError\n")  # as if it were not installed
    done = new_process(arguments=MAIN, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert SENTENCE.fullmatch(done.stderr.strip())
    assert "apache-tvm-ffi" in done.stderr


_ARRAYS = """
import dpctl
from dpctl.memory import MemoryUSMDevice

device = dpctl.SyclDevice()
good = MemoryUSMDevice(48)
foreign = MemoryUSMDevice(48, queue=dpctl.SyclQueue(dpctl.SyclContext([device]), device))
"""


def test_explain_loads_a_file_with_its_neighbours_and_its_status_is_the_answer(
    new_process, tmp_path
):
    (tmp_path / "neighbour.py").write_text(_ARRAYS)
    file = tmp_path / "explained_file.py"
    file.write_text("from neighbour import foreign, good\n")
    done = new_process(arguments=(*MAIN, "explain", f"{file}:good"))
    assert (done.returncode, done.stderr) == (0, "")
    title = "Export of an object of type MemoryUSMDevice"
    assert done.stdout == f"{title}: ok\n"
    done = new_process(arguments=(*MAIN, "explain", f"{file}:foreign"))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(f"{title}\n  refused  context\n           UsmBinding")
    assert done.stdout.count("\n") == 4
    done = new_process(arguments=(*MAIN, "explain", "--all", f"{file}:good"))
    assert done.stdout.count("\n  ok ") == 5


def test_explain_takes_a_module_and_an_expression_with_colons_in_one_direction(succeed):
    tensor = "__import__('usm_dlpack').to_dlpack_tensor(MemoryUSMDevice(n))"
    target = f"dpctl.memory:[{tensor} for n in (8, 16)][1:][0]"
    options = ("--direction", "import", "--json")
    told = json.loads(succeed(arguments=(*MAIN, "explain", target, *options)))
    assert told["passed"] is True
    assert {step["direction"] for step in told["steps"]} == {"import"}


@pytest.mark.parametrize(
    ("code", "part", "remedy"),
    [
        (None, "target: expected a file, found none at", "correct the path"),
        ("x = = 1", "SyntaxError: invalid syntax (mine.py, line 1)", "correct it"),
        ("y = 1", "found x(), which raises NameError", "correct it"),
        (
            'if __name__ == "__main__": x = int',
            "found x(), which raises NameError",
            "correct it, or run `python -m usm_dlpack doctor` if a device is missing, or move it "
            'out of the block `if __name__ == "__main__":`, which does not run here',
        ),
        ("def x(): return lambda: 1", "found a function", "call it: "),
    ],
)
def test_a_target_without_a_value_is_refused(new_process, tmp_path, code, part, remedy):
    if code is not None:
        (tmp_path / "mine.py").write_text(code)
    done = new_process(arguments=(*MAIN, "explain", f"{tmp_path}/mine.py:x()"))
    assert (done.returncode, done.stdout) == (2, "")
    assert SENTENCE.fullmatch(done.stderr.strip()), done.stderr
    assert part in done.stderr
    assert f"; {remedy}" in done.stderr
    assert done.stderr.count("; ") == 1


@pytest.mark.parametrize(
    ("code", "line", "error", "remedy"),
    [
        ("\nraise ValueError('no')", 2, "ValueError: no", "correct it"),
        ("import no_such_module", 1, "ModuleNotFoundError: No module named", "correct it"),
        ("\n\nraise SystemExit(0)", 3, "SystemExit; ", "correct it"),
        ("def x():\n    return 1 / 0", 2, "ZeroDivisionError: division by zero", "correct it"),
        (
            "from usm_dlpack import *\nroot_device(99)",
            2,
            "ConversionError: device.device_id: expected ",
            "give an id of this process, or check ONEAPI_DEVICE_SELECTOR, or put what follows the "
            'array under `if __name__ == "__main__":`\n'
            "device_id_out_of_range: python -m usm_dlpack errors device_id_out_of_range\n",
        ),
    ],
)
@pytest.mark.parametrize("target", ["mine.py", "mine"])
def test_an_error_of_the_users_code_is_shown_with_its_line(
    new_process, tmp_path, target, code, line, error, remedy
):
    file = tmp_path / "mine.py"
    file.write_text(code)
    named = str(file) if target == "mine.py" else target
    done = new_process(arguments=(*MAIN, "explain", f"{named}:x()"), PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{named}, line {line}: {error}")
    assert f"; {remedy}" in done.stderr


def test_a_file_sees_its_own_name_as_the_only_argument(succeed, tmp_path):
    file = tmp_path / "arguments.txt"
    file.write_text("import sys\nfrom usm_dlpack import empty\nx = empty(len(sys.argv))\n")
    told = json.loads(
        succeed(arguments=(*MAIN, "explain", f"{file}:x", "--json", "--direction", "export"))
    )
    assert told["steps"][1]["facts"]["shape"] == [1]


def test_what_the_users_code_prints_is_not_read_as_the_explanation(new_process, tmp_path):
    loud = tmp_path / "loud.py"
    loud.write_text(f"""{_ARRAYS}
class Loud:
    @property
    def __sycl_usm_array_interface__(self):
        print("explained")
        return good.__sycl_usm_array_interface__

print("loaded")
x = Loud()
""")
    done = new_process(arguments=(*MAIN, "explain", f"{loud}:print('evaluated') or x", "--json"))
    assert done.returncode == 0
    assert json.loads(done.stdout)["passed"] is True
    assert done.stderr.splitlines()[:2] == ["loaded", "evaluated"]
    assert set(done.stderr.splitlines()[2:]) == {"explained"}


def test_a_file_gets_colours_only_if_it_is_told_to(succeed):
    assert "\x1b" not in succeed(arguments=(*MAIN, "devices"))
    assert "\x1b[1m" in succeed(arguments=(*MAIN, "devices", "--color", "always"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "choice", "on_terminal", "elsewhere"),
    [
        ({}, "auto", True, False),
        ({"TERM": "dumb"}, "auto", False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "auto", False, False),
        ({"NO_COLOR": "", "FORCE_COLOR": "1"}, "auto", True, True),
        ({"NO_COLOR": "1"}, "always", True, True),
        ({"FORCE_COLOR": "1"}, "never", False, False),
    ],
)
def test_colours_follow_the_option_then_the_variables(
    monkeypatch, variables, choice, on_terminal, elsewhere
):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(Terminal(), choice) is on_terminal
    assert wants_colour(io.StringIO(), choice) is elsewhere
    assert wants_colour(None, choice) is elsewhere


def test_help_says_the_exit_statuses(succeed):
    for command in ((), ("explain",)):
        assert "exit status:" in succeed(arguments=(*MAIN, *command, "--help"))


@pytest.mark.parametrize("arguments", [("devices",), ("explain", "no.such:module")], ids=" ".join)
def test_a_stream_that_is_closed_gets_nothing_and_changes_no_status(arguments):
    command = [sys.executable, *MAIN, *arguments]

    def run(closed):
        done = clean_environment.run("sh", "-c", f'exec "$@" {closed}', "sh", *command)
        return [done.returncode, done.stdout, done.stderr]

    status, said, error = run("")
    assert run(">&-") == [status, "", error]
    assert run("2>&-") == [status, said, ""]
    assert run(">&- 2>&-") == [status, "", ""]


def test_output_that_cannot_be_written_is_said_with_a_status_of_its_own():
    done = clean_environment.run("sh", "-c", f'"{sys.executable}" -m usm_dlpack devices >/dev/full')
    assert done.returncode == 3
    assert SENTENCE.fullmatch(done.stderr.strip())
    assert "found [Errno 28] No space left on device; make space" in done.stderr


def test_a_reader_that_has_enough_ends_the_program_quietly():
    command = f'{{ "{sys.executable}" -m usm_dlpack devices; echo $? >&2; }} | true'
    assert clean_environment.run("sh", "-c", command).stderr == "3\n"
