# SPDX-License-Identifier: Apache-2.0
"""Two major versions of libsycl in one process: `python -m usm_dlpack` says so.

run.py runs this in dpnp's environment, where the package needs libsycl.so.9, once the environment
of dpctl.tensor is there, whose dpctl needs libsycl.so.8.
"""

import json
import sys
from pathlib import Path

import clean_environment
import dpctl
from refusals import SENTENCE

OTHER = Path(sys.prefix).with_name("interoperability-dpctl-tensor")
RUNTIMES = [Path(OTHER, "lib/libsycl.so.8"), Path(sys.prefix, "lib/libsycl.so.9")]


def test_they_are_the_only_problem_and_devices_are_not_listed(tmp_path: Path) -> None:
    ours = Path(dpctl.__file__).parent.relative_to(sys.prefix)
    (tmp_path / "dpctl").symlink_to(OTHER / ours)
    command = (sys.executable, "-m", "usm_dlpack", "--json")
    done = clean_environment.run(*command, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    (problem,) = found["problems"]
    assert SENTENCE.fullmatch(problem)
    versions = ", ".join(map(str, RUNTIMES))
    assert problem.startswith(f"libsycl: expected one major version, found {versions}; ")
    assert found["devices"] == []
