# SPDX-License-Identifier: Apache-2.0
"""Two major versions of libsycl in one process: the commands say so.

run.py runs this in dpnp's environment, where the package needs libsycl.so.9, once the environment
of dpctl.tensor is there, whose dpctl needs libsycl.so.8.
"""

import json
import sys
from pathlib import Path
from typing import Any

import clean_environment
import dpctl
import pytest
from refusals import SENTENCE

OTHER = Path(sys.prefix).with_name("interoperability-dpctl-tensor")
RUNTIMES = [Path(OTHER, "lib/libsycl.so.8"), Path(sys.prefix, "lib/libsycl.so.9")]


@pytest.fixture
def mixed(tmp_path: Path) -> Any:
    """Return a function that runs a command of the package with the other environment's dpctl."""
    ours = Path(dpctl.__file__).parent.relative_to(sys.prefix)
    (tmp_path / "dpctl").symlink_to(OTHER / ours)
    python = (sys.executable, "-m", "usm_dlpack")
    return lambda *words: clean_environment.run(*python, *words, PYTHONPATH=str(tmp_path))


def check_sentence(sentence: str) -> None:
    assert SENTENCE.fullmatch(sentence)
    assert sentence.startswith("libsycl: expected libsycl.so.9 alone, which usm_dlpack needs, ")
    assert f"found {', '.join(map(str, RUNTIMES))}" in sentence


@pytest.mark.parametrize("words", [(), ("devices",)], ids=str)
def test_devices_are_not_listed(mixed: Any, words: Any) -> None:
    done = mixed(*words)
    assert (done.returncode, done.stdout) == (1, "")
    check_sentence(done.stderr.strip())


def test_the_doctor_finds_them_alone(mixed: Any) -> None:
    done = mixed("doctor", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    (trouble,) = [finding for finding in found["findings"] if finding["level"] != "ok"]
    assert trouble["level"] == "problem"
    check_sentence(trouble["sentence"])
    assert found["devices"] == []


def test_explain_says_so_and_explains(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import ctypes\n"
        f"ctypes.CDLL({str(RUNTIMES[0])!r})\n"
        "import numpy, usm_dlpack\n"
        "x = usm_dlpack.from_dlpack(numpy.arange(3.0), device=(14, 0))\n"
    )
    command = (sys.executable, "-m", "usm_dlpack", "explain")
    done = clean_environment.run(*command, f"{script}:x")
    assert done.returncode == 0
    assert done.stdout.startswith("Export of an object of type DLPackTensor: ok\n")
    check_sentence(done.stderr.strip())
