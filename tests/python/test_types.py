# SPDX-License-Identifier: Apache-2.0
"""Type checkers know all that is public, from the package as it is installed."""

import ast
from pathlib import Path

import guide
import pytest
import typed_consumer
import usm_dlpack
from type_checkers import checked_by
from usm_dlpack._core import CudaView, HostView

CONSUMER = Path(typed_consumer.__file__)
WRONG = """
import usm_dlpack
tensor = usm_dlpack.from_dlpack(3)
tensor.shape.append(3)
number: int = tensor.usm_type
usm_dlpack.from_dlpack(tensor, copy="yes")
usm_dlpack.validate(tensor, shape=(3,))
tensor.data = 5
usm_dlpack.to_dlpack_tensor(3)
usm_dlpack.from_dlpack(tensor, order="F")
usm_dlpack.DLPackTensor()
usm_dlpack.empty((3, 4), order="F")
class Mine(usm_dlpack.DLPackTensor): ...
class Proof(usm_dlpack.UsmAllocation): ...
usm_dlpack.from_dlpack(tensor, device=0)
tensor[0]
usm_dlpack.empty(3, usm_type="gpu")
tensor.copy_from(3)
"""
WITH_DPCTL = """
import dpctl
import dpctl.memory
import numpy
import usm_dlpack
memory = dpctl.memory.MemoryUSMDevice(96, queue=dpctl.SyclQueue())
queue: dpctl.SyclQueue = usm_dlpack.to_dlpack_tensor(memory).sycl_queue
values = numpy.asarray(usm_dlpack.from_dlpack(memory).host_view())
"""


@pytest.mark.parametrize("checker", ["pyright", pytest.param("mypy", marks=pytest.mark.extended)])
def test_right_uses_are_typed_and_wrong_ones_found(checker, tmp_path):
    sources = {
        "consumer.py": CONSUMER.read_text(),
        "wrong.py": WRONG,
        "stub.pyi": Path(usm_dlpack.__file__).with_name("_core.pyi").read_text(),
    }
    sources["pyrightconfig.json"] = '{"typeCheckingMode": "strict"}'
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    done = checked_by(checker, tmp_path)
    for line in range(3, 19):
        assert f"wrong.py:{line}:" in done.stdout, done.stdout + done.stderr
    assert "consumer.py" not in done.stdout, done.stdout
    # The stub names only what there is.
    assert "PyCapsule" not in done.stdout, done.stdout
    assert "is not defined" not in done.stdout, done.stdout


@pytest.mark.extended
def test_a_program_with_dpctl_is_typed_with_the_settings_of_its_page(tmp_path):
    (settings,) = [text for language, text in guide.blocks_of("how-to/dpctl") if language == "toml"]
    (tmp_path / "with_dpctl.py").write_text(WITH_DPCTL)
    (tmp_path / "pyproject.toml").write_text(settings)
    done = checked_by("mypy", tmp_path, "--config-file=pyproject.toml")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "owner",
    [*(getattr(usm_dlpack, name) for name in usm_dlpack.__all__), CudaView, HostView],
    ids=lambda owner: getattr(owner, "__name__", str(owner)),
)
def test_help_quotes_no_annotation(owner):
    members = vars(owner).values() if isinstance(owner, type) else [owner]
    for member in members:
        written = getattr(getattr(member, "fget", member), "__annotations__", {})
        assert not [text for text in written.values() if isinstance(text, str)], member


def test_the_consumer_uses_every_public_name_and_runs(memory):
    imported = {
        alias.name
        for node in ast.walk(ast.parse(CONSUMER.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "usm_dlpack"
        for alias in node.names
    }
    assert imported == set(usm_dlpack.__all__)
    typed_consumer.run(memory)
