# SPDX-License-Identifier: Apache-2.0
"""The installed package: version, types, examples that run, and nothing more than it needs."""

import ast
import doctest
import importlib
import importlib.metadata
import importlib.resources
import inspect
import json
import re
import runpy
from pathlib import Path

import pytest
import usm_dlpack
from usm_dlpack import _core, _paths, _public

DISTRIBUTION = importlib.metadata.distribution("usm-dlpack")
# How pip was told to install it (PEP 610).
ORIGIN = json.loads(DISTRIBUTION.read_text("direct_url.json") or "{}")
EDITABLE = ORIGIN.get("dir_info", {}).get("editable", False)
FILES = DISTRIBUTION.files or []


def installed(name: str) -> Path:
    """Return a file or folder of the package, which has two folders in an editable install."""
    (found,) = (path for path in (Path(p, name) for p in usm_dlpack.__path__) if path.exists())
    return found


STUB = ast.parse(installed("_core.pyi").read_text(encoding="utf-8"))


def public(names: object) -> set[str]:
    """Return the names of an object or stub that are its own interface."""
    kept = {"__dlpack__", "__dlpack_device__", "__sycl_usm_array_interface__"}
    assert isinstance(names, (list, set))
    return {str(name) for name in names if not str(name).startswith("_") or name in kept}


def test_the_tests_look_at_the_installed_package(project_root):
    parents = Path(_core.__file__).parents
    assert project_root not in parents or project_root / ".dev" in parents
    sources = project_root / "python" / "usm_dlpack"
    assert (sources == Path(_paths.__file__).parent) == EDITABLE


def test_the_version_is_that_of_the_headers(project_root):
    text = (project_root / "include/usm_dlpack/core/config.hpp").read_text(encoding="utf-8")
    numbers = re.findall(r"#define USM_DLPACK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text)
    assert usm_dlpack.__version__ == DISTRIBUTION.version == ".".join(numbers)


def test_the_public_names_are_there_and_documented():
    assert sorted(usm_dlpack.__all__) == usm_dlpack.__all__
    for name in usm_dlpack.__all__:
        assert inspect.getdoc(getattr(usm_dlpack, name))
    assert set(usm_dlpack.__all__) == public(dir(usm_dlpack)) - {"annotations"}


@pytest.mark.parametrize("kind", [_core.DLPackTensor, _core.UsmAllocation])
def test_the_stub_has_every_attribute_of_a_class(kind):
    stubs = [node for node in STUB.body if isinstance(node, ast.ClassDef)]
    (found,) = (node for node in stubs if node.name == kind.__name__)
    methods = [node for node in found.body if isinstance(node, ast.FunctionDef)]
    assert public({node.name for node in methods}) == public(dir(kind))
    for node in methods:
        assert node.returns is not None
        if node.name in public(dir(kind)):
            assert inspect.getdoc(getattr(kind, node.name))


def test_the_stub_has_every_function():
    functions = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef)}
    functions |= {ast.unparse(n.target) for n in STUB.body if isinstance(n, ast.AnnAssign)}
    assert functions == {name for name in public(dir(_core)) if name[0].islower()}


@pytest.mark.parametrize("module", [_core, _public, _paths])
def test_the_examples_of_a_module_run(module, monkeypatch):
    # doctest before Python 3.13 compares an exception's last line, which is its note.
    monkeypatch.setattr(usm_dlpack.ConversionError, "add_note", lambda *_: None, raising=False)
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0 or module is _core


def test_what_is_installed_is_python_headers_and_one_extension(project_root):
    own = [file for file in FILES if file.parts[0] == "usm_dlpack" and file.suffix != ".pyc"]
    folders = {file.parts[1] for file in own if len(file.parts) > 2}
    assert folders == {"errors", "include", "share"}
    from_sources = set() if EDITABLE else {".py", ".typed"}
    assert {f.suffix for f in own if len(f.parts) == 2} == {".pyi", ".so"} | from_sources
    assert len([file for file in FILES if file.suffix == ".so"]) == 1
    sources = project_root / "include"
    headers = {str(file.relative_to(sources)) for file in sources.rglob("*.hpp")}
    there = Path(usm_dlpack.get_include())
    assert {str(file.relative_to(there)) for file in there.rglob("*.hpp")} == headers


def test_a_build_by_scikit_build_core_finds_the_cmake_package():
    (entry,) = importlib.metadata.entry_points(group="cmake.root", name="usm_dlpack")
    # It asks the entry point first, and then the folder of all packages.
    root = Path(str(importlib.resources.files(entry.load())))
    packages = Path(str(DISTRIBUTION.locate_file("usm_dlpack")))
    assert (root == packages) != EDITABLE
    assert packages / "share/cmake/usm_dlpack" == Path(usm_dlpack.get_cmake_dir())


def test_what_is_of_others_comes_with_its_licence():
    folder = installed("share/usm_dlpack/third_party")
    assert (folder / "dlpack/dlpack/dlpack.h").is_file()
    assert (folder / "mdspan/mdspan/mdspan.hpp").is_file()
    licences = {str(file.relative_to(folder)): file.read_text() for file in folder.glob("*/L*")}
    assert licences.keys() == {
        "dlpack/LICENSE",
        "mdspan/LICENSE",
        "mdspan/LLVM-exception.txt",
        "nanobind/LICENSE",
        "robin_map/LICENSE",
    }
    assert all("opyright" in licences[name] for name in licences if name.endswith("/LICENSE"))
    assert DISTRIBUTION.metadata["License-Expression"] == (
        "Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND BSD-3-Clause AND MIT"
    )
    own = [file.name for file in FILES if file.parts[0] != "usm_dlpack"]
    assert [name for name in own if name.startswith("L")] == ["LICENSE", "LLVM-exception.txt"]


def test_an_edited_python_file_is_copied_to_an_environment_that_has_the_package(
    tmp_path, project_root
):
    """What `dev.py test` does in place of an installation, if nothing compiled has changed."""
    program = runpy.run_path(str(project_root / "dev.py"))
    package = tmp_path / "lib" / "python3" / "site-packages" / "usm_dlpack"
    package.mkdir(parents=True)
    for name in ("_core.so", "no_more.py", "_paths.py", "_core.pyi"):
        (package / name).write_text("old")
    program["copy_python_files"](program["Environment"](tmp_path))
    source = project_root / "python" / "usm_dlpack"
    expected = {file.name for file in source.iterdir() if file.name != "__pycache__"}
    assert {file.name for file in package.iterdir()} == expected | {"_core.so", "_core.pyi"}
    assert (package / "_paths.py").read_text() == (source / "_paths.py").read_text()
