# SPDX-License-Identifier: Apache-2.0
"""The installed package: version, types, examples that run, and nothing more than it needs."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import pytest
import usm_dlpack
from usm_dlpack import _core

INSTALLED = Path(str(usm_dlpack.__file__)).parent
STUB = ast.parse((INSTALLED / "_core.pyi").read_text(encoding="utf-8"))
MODULES = sorted(module.name for module in pkgutil.iter_modules([str(INSTALLED)]))


def public(names: object) -> set[str]:
    """Return the names of an object or stub that are its own interface."""
    kept = {"__dlpack__", "__dlpack_device__", "__sycl_usm_array_interface__"}
    assert isinstance(names, (list, set))
    return {str(name) for name in names if not str(name).startswith("_") or name in kept}


def test_the_tests_look_at_the_installed_package(project_root: Path) -> None:
    assert project_root not in INSTALLED.parents or ".dev" in INSTALLED.parts


def test_the_version_is_that_of_the_headers(project_root: Path) -> None:
    text = (project_root / "include/usm_dlpack/config.hpp").read_text(encoding="utf-8")
    numbers = [
        re.findall(rf"#define USM_DLPACK_VERSION_{part} (\d+)", text)
        for part in ("MAJOR", "MINOR", "PATCH")
    ]
    assert all(len(number) == 1 for number in numbers)
    assert importlib.metadata.version("usm-dlpack") == ".".join(number[0] for number in numbers)


def test_types_are_installed() -> None:
    assert (INSTALLED / "py.typed").is_file()
    assert (INSTALLED / "_core.pyi").is_file()


def test_the_public_names_are_there_and_documented() -> None:
    assert sorted(usm_dlpack.__all__) == usm_dlpack.__all__
    for name in usm_dlpack.__all__:
        assert inspect.getdoc(getattr(usm_dlpack, name))
    assert set(usm_dlpack.__all__) == public(dir(usm_dlpack)) - {"annotations"}


@pytest.mark.parametrize("kind", [_core.DLPackTensor, _core.UsmAllocation])
def test_the_stub_has_every_attribute_of_a_class(kind: type) -> None:
    stubs = [node for node in STUB.body if isinstance(node, ast.ClassDef)]
    (found,) = (node for node in stubs if node.name == kind.__name__)
    methods = [node for node in found.body if isinstance(node, ast.FunctionDef)]
    assert public({node.name for node in methods}) == public(dir(kind))
    for node in methods:
        assert node.returns is not None
        if node.name in public(dir(kind)):
            assert inspect.getdoc(getattr(kind, node.name))


def test_the_stub_has_every_function() -> None:
    functions = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef)}
    functions |= {ast.unparse(n.target) for n in STUB.body if isinstance(n, ast.AnnAssign)}
    assert functions == {name for name in public(dir(_core)) if name[0].islower()}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    if name == "__main__":
        return
    module = importlib.import_module(f"usm_dlpack.{name}")
    assert isinstance(module, ModuleType)
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0 or name != "_exchange"


def test_every_public_function_has_an_example_and_one_that_fails() -> None:
    finder = doctest.DocTestFinder()
    functions = ("to_dlpack_tensor", "from_dlpack", "validate", "device_id", "root_device")
    for name in functions:
        (found,) = finder.find(getattr(usm_dlpack, name), name)
        assert found.examples
        failing = any(example.exc_msg for example in found.examples)
        assert failing or name == "device_id"


def test_what_is_installed_is_python_headers_and_one_extension() -> None:
    files = importlib.metadata.files("usm-dlpack")
    assert files is not None
    own = [file for file in files if file.parts[0] == "usm_dlpack" and file.suffix != ".pyc"]
    assert {file.parts[1] for file in own if len(file.parts) > 2} == {
        "include",
        "share",
        "third_party",
    }
    assert {file.suffix for file in own if len(file.parts) == 2} == {".py", ".pyi", ".so", ".typed"}
    assert len([file for file in files if file.suffix == ".so"]) == 1


def test_the_wheel_is_less_than_a_megabyte() -> None:
    files = importlib.metadata.files("usm-dlpack")
    assert files is not None
    packed = sum(
        len(zlib.compress(Path(str(file.locate())).read_bytes()))
        for file in files
        if file.suffix != ".pyc"
    )
    assert packed < 1_000_000


def test_all_headers_are_installed(project_root: Path) -> None:
    headers = {file.name for file in (project_root / "include/usm_dlpack").iterdir()}
    installed = Path(usm_dlpack.get_include(), "usm_dlpack")
    assert {file.name for file in installed.iterdir()} == headers


def test_a_build_by_scikit_build_core_finds_the_cmake_package() -> None:
    (entry,) = importlib.metadata.entry_points(group="cmake.root", name="usm_dlpack")
    (root,) = importlib.import_module(entry.value).__path__
    assert Path(root, "share/cmake/usm_dlpack") == Path(usm_dlpack.get_cmake_dir())


def test_headers_of_others_come_with_their_licences() -> None:
    folder = INSTALLED / "third_party"
    assert (folder / "dlpack/dlpack/dlpack.h").is_file()
    assert (folder / "mdspan/mdspan/mdspan.hpp").is_file()
    assert sorted(file.name for file in folder.glob("*/L*")) == [
        "LICENSE",
        "LICENSE",
        "LLVM-exception.txt",
    ]


def test_a_project_of_a_user_builds_from_the_installed_package_alone(
    tmp_path: Path, driver: Path
) -> None:
    tools = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    build = tmp_path / "build"
    for command in (
        [
            *("cmake", "-S", Path(__file__).parent / "consumer_project", "-B", build),
            f"-Dusm_dlpack_DIR={usm_dlpack.get_cmake_dir()}",
            f"-DPython_EXECUTABLE={sys.executable}",
        ],
        ["cmake", "--build", build],
        [build / "consumer"],
    ):
        environment = tools | {"OCL_ICD_FILENAMES": str(driver)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, done.stdout + done.stderr
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    assert str(Path(usm_dlpack.get_cmake_dir())) in cache


def test_the_licence_is_carried() -> None:
    assert importlib.metadata.metadata("usm-dlpack")["License-Expression"] == "Apache-2.0"
    files = importlib.metadata.files("usm-dlpack")
    assert files is not None
    own = [file for file in files if file.parts[0] != "usm_dlpack"]
    assert [file.name for file in own if file.name.startswith("LICENSE")] == ["LICENSE"]
