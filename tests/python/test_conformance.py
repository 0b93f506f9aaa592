# SPDX-License-Identifier: Apache-2.0
"""The conformance suite, against this package, other libraries, and libraries with a fault."""

import os
import re
import shutil
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import clean_environment
import pytest
from conformance_faults import FAULTS, Library
from conformance_runs import ROOT, conform

# One root device has no other.
NOT_RUN_BY_OURS = {"refuse.other-device"}


def test_our_arrays_do_what_the_cases_ask():
    failed, not_run, printed = conform("conformance_adapters:Ours", "--together")
    assert (failed, not_run) == (set(), NOT_RUN_BY_OURS), printed


@pytest.mark.extended
@pytest.mark.parametrize("name", ["Ours", "OfNanobind", "OfPybind11"])
def test_arrays_of_both_bindings_do_what_the_cases_ask(name):
    """Each case that may crash is in a process of its own, as users run them."""
    failed, _, printed = conform(f"conformance_adapters:{name}")
    assert failed == set(), printed


def test_our_ids_are_right_among_several_root_devices(
    several_devices: Callable[[int], dict[str, str]],
):
    words = "position or sub_device or another_device or another_context"
    failed, not_run, printed = conform(
        "conformance_adapters:Ours", "-k", words, **several_devices(3)
    )
    assert (failed, not_run) == (set(), set()), printed


@pytest.mark.extended
@pytest.mark.parametrize("library", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found_by_the_cases_that_are_for_it(library: type[Library]):
    """In one process, since none of these libraries crashes."""
    name = f"conformance_faults:{library.__name__}"
    failed, _, printed = conform(name, "--together")
    assert failed == library.found_by, printed


# What docs/how-to/check_library.md says.
COMMANDS = """
pip install ./conformance
pytest --pyargs usm_dlpack_conformance --adapter my_library.dlpack_adapter --report report.md
"""
# The library that the README's adapter is for.
MY_LIBRARY = """
import dpctl.memory
import numpy
import usm_dlpack
from usm_dlpack import from_dlpack

def from_bytes(data, shape, dtype, usm_type, queue):
    memory = {
        "device": dpctl.memory.MemoryUSMDevice,
        "shared": dpctl.memory.MemoryUSMShared,
        "host": dpctl.memory.MemoryUSMHost,
    }[usm_type](max(1, len(data)))
    memory.copy_from_host(numpy.frombuffer(data or b"0", numpy.uint8))
    return usm_dlpack.to_dlpack_tensor(memory, shape=shape, dtype=dtype)
"""


@pytest.mark.extended
def test_the_commands_of_the_page_check_a_library_by_the_adapter_of_the_readme(tmp_path):
    readme = (ROOT / "conformance" / "README.md").read_text(encoding="utf-8")
    (adapter,) = re.findall(r"(?s)```python\n(.*?)```", readme)
    adapter = adapter.replace("array.to_numpy()", "array.numpy()").replace("pointer", "data")
    shutil.copytree(ROOT / "conformance", tmp_path / "conformance")
    (tmp_path / "my_library").mkdir()
    (tmp_path / "my_library" / "__init__.py").write_text(MY_LIBRARY, encoding="utf-8")
    (tmp_path / "my_library" / "dlpack_adapter.py").write_text(adapter, encoding="utf-8")
    # pip is of a new environment, and pytest of this one.
    venv.create(tmp_path / "venv", with_pip=True)
    (installed,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    folders = (tmp_path / "venv" / "bin", Path(sys.executable).parent, os.environ["PATH"])
    done = clean_environment.run(
        *("bash", "-ec", COMMANDS),
        cwd=tmp_path,
        timeout=300,
        PIP_NO_DEPS="1",
        PATH=os.pathsep.join(map(str, folders)),
        PYTHONPATH=str(installed),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = (tmp_path / "report.md").read_text(encoding="utf-8").splitlines()
    assert "| capsule.fresh | spec | A capsule is consumed once. | passed |  |" in rows
    assert any(row.endswith("| not run | it takes no queue |") for row in rows)


def test_the_suite_needs_neither_this_package_nor_dpctl():
    code = "import sys, usm_dlpack_conformance.test_consumer, usm_dlpack_conformance.plugin\n"
    code += "print(sorted({'dpctl', 'usm_dlpack'} & set(sys.modules)))"
    path = str(ROOT / "conformance")
    done = clean_environment.run(sys.executable, "-c", code, PYTHONPATH=path)
    assert (done.stdout, done.stderr) == ("[]\n", "")
