# SPDX-License-Identifier: Apache-2.0
"""The installed package: version, types, examples that run, and nothing more than it needs."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.metadata
import importlib.resources
import inspect
import json
import pkgutil
import re
import zlib
from pathlib import Path
from types import ModuleType

import pytest
import usm_dlpack
from usm_dlpack import _core

DISTRIBUTION = importlib.metadata.distribution("usm-dlpack")
# How pip was told to install it (PEP 610).
ORIGIN = json.loads(DISTRIBUTION.read_text("direct_url.json") or "{}")
EDITABLE = ORIGIN.get("dir_info", {}).get("editable", False)


def installed(name: str) -> Path:
    """Return a file or folder of the package, which has two folders in an editable install."""
    (found,) = (path for path in (Path(p, name) for p in usm_dlpack.__path__) if path.exists())
    return found


STUB = ast.parse(installed("_core.pyi").read_text(encoding="utf-8"))
MODULES = sorted(module.name for module in pkgutil.iter_modules(usm_dlpack.__path__))


def public(names: object) -> set[str]:
    """Return the names of an object or stub that are its own interface."""
    kept = {"__dlpack__", "__dlpack_device__", "__sycl_usm_array_interface__"}
    assert isinstance(names, (list, set))
    return {str(name) for name in names if not str(name).startswith("_") or name in kept}


def test_the_tests_look_at_the_installed_package(project_root: Path) -> None:
    parents = Path(usm_dlpack._core.__file__).parents
    assert project_root not in parents or project_root / ".dev" in parents
    sources = project_root / "python" / "usm_dlpack"
    assert (sources == Path(usm_dlpack._paths.__file__).parent) == EDITABLE


def test_the_version_is_that_of_the_headers(project_root: Path) -> None:
    text = (project_root / "include/usm_dlpack/core/config.hpp").read_text(encoding="utf-8")
    numbers = [
        re.findall(rf"#define USM_DLPACK_VERSION_{part} (\d+)", text)
        for part in ("MAJOR", "MINOR", "PATCH")
    ]
    assert all(len(number) == 1 for number in numbers)
    assert importlib.metadata.version("usm-dlpack") == ".".join(number[0] for number in numbers)


def test_types_are_installed() -> None:
    assert installed("py.typed").is_file()
    assert installed("_core.pyi").is_file()


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
    packages = set() if EDITABLE else {"_cli", "_explain"}
    folders = {file.parts[1] for file in own if len(file.parts) > 2}
    assert folders == {"include", "share", "third_party"} | packages
    built = {".pyi", ".so"}
    from_sources = set() if EDITABLE else {".py", ".typed"}
    assert {file.suffix for file in own if len(file.parts) == 2} == built | from_sources
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
    # It asks the entry point first, and then the folder of all packages.
    root = Path(str(importlib.resources.files(entry.load())))
    packages = Path(str(DISTRIBUTION.locate_file("usm_dlpack")))
    assert (root == packages) != EDITABLE
    assert packages / "share/cmake/usm_dlpack" == Path(usm_dlpack.get_cmake_dir())


def test_what_is_of_others_comes_with_its_licence() -> None:
    folder = installed("third_party")
    assert folder == Path(usm_dlpack.get_include()).parent / "third_party"
    assert (folder / "dlpack/dlpack/dlpack.h").is_file()
    assert (folder / "mdspan/mdspan/mdspan.hpp").is_file()
    licences = sorted(str(file.relative_to(folder)) for file in folder.glob("*/L*"))
    assert licences == [
        "dlpack/LICENSE",
        "mdspan/LICENSE",
        "mdspan/LLVM-exception.txt",
        "nanobind/LICENSE",
        "robin_map/LICENSE",
    ]
    robin_map = (folder / "robin_map/LICENSE").read_text(encoding="utf-8")
    assert robin_map.startswith("MIT License\n\nCopyright (c) ")
    assert robin_map.endswith("\nSOFTWARE.\n")
    assert "Wenzel Jakob" in (folder / "nanobind/LICENSE").read_text(encoding="utf-8")


def test_the_licence_is_carried() -> None:
    assert importlib.metadata.metadata("usm-dlpack")["License-Expression"] == (
        "Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND BSD-3-Clause AND MIT"
    )
    files = importlib.metadata.files("usm-dlpack")
    assert files is not None
    own = [file for file in files if file.parts[0] != "usm_dlpack"]
    names = [file.name for file in own if file.name.startswith("L")]
    assert names == ["LICENSE", "LLVM-exception.txt"]
