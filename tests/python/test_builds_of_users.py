# SPDX-License-Identifier: Apache-2.0
"""Projects of users build against what they have of ours, or are told what is missing.

Each is built where nothing else of ours is found. The projects of docs/how-to/cmake.md and of
examples/, which have the installed package, are built by tests of their own.
"""

import json
import shutil
import sys
import venv
from pathlib import Path

import clean_environment
import pytest
import usm_dlpack

pytestmark = pytest.mark.extended

ROOT = Path(__file__).resolve().parents[2]
PYTHON = f"-DPython_EXECUTABLE={sys.executable}"
LIBRARY_ALONE = ("-DUSM_DLPACK_BUILD_TESTS=OFF", "-DUSM_DLPACK_INSTALL_THIRD_PARTY=ON")


def succeed(*command: str | Path, cwd: Path | str = "/", **variables: str) -> str:
    """Run a command where nothing of ours is near, with the tools of this environment."""
    done = clean_environment.run(*command, cwd=cwd, timeout=900, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fail(*command: str | Path, **variables: str) -> str:
    """Run a command as `succeed` does, require a failure, and return what it said."""
    done = clean_environment.run(*command, cwd="/", timeout=900, **variables)
    assert done.returncode != 0
    return " ".join(done.stderr.split())


def configure_project(folder: Path, text: str, *options: str) -> tuple[str | Path, ...]:
    """Return a command that configures a project of a user, whose CMakeLists.txt is a text."""
    head = "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n"
    (folder / "CMakeLists.txt").write_text(head + text, encoding="utf-8")
    return ("cmake", "-S", folder, "-B", folder / "build", *options)


PACKAGE = f"-Dusm_dlpack_DIR={usm_dlpack.get_cmake_dir()}"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an interpreter whose environment has no donor of headers, and no SYCL."""
    folder = tmp_path_factory.mktemp("without_donors")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def test_a_project_builds_with_the_sources_in_a_folder_of_its_own(tmp_path, driver):
    project, build = tmp_path / "project", tmp_path / "build"
    shutil.copytree(ROOT / "tests/packaging/by_subdirectory", project)
    (project / "usm_dlpack").symlink_to(ROOT)
    succeed("cmake", "-S", project, "-B", build, PYTHON)
    succeed("cmake", "--build", build)
    succeed(build / "consumer", OCL_ICD_FILENAMES=str(driver))
    needed = succeed("readelf", "--dynamic", "--wide", build / "consumer")
    assert "libsycl" in needed
    assert "OpenCL" not in needed


def compiled(folder: Path, source: str, *flags: str) -> tuple[str, ...]:
    """Return a command that compiles a source with the headers, and with those of a folder."""
    (folder / "user.cpp").write_text(source)
    includes = (f"-I{ROOT / 'include'}", f"-I{folder}")
    return ("g++", "-std=c++17", "-fsyntax-only", *includes, *flags, str(folder / "user.cpp"))


DLPACK = "dlpack/dlpack.h"
CORE, SYCL = "#include <usm_dlpack/core.hpp>\n", "#include <usm_dlpack/sycl/config.hpp>\n"


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("-U__GNUC__", "compiler: expected g++ or clang (icpx is one), found another; build with"),
        ("-fno-exceptions", "compiler flags: expected exceptions, found -fno-exceptions; remove"),
        ("-std=c++14", "compiler flags: expected C++17 or newer, found an older standard; add"),
    ],
)
def test_what_the_headers_cannot_be_compiled_with_is_said_in_words(tmp_path, flag, sentence):
    assert f"#error {sentence}" in fail(*compiled(tmp_path, CORE, flag))


@pytest.mark.parametrize(
    ("header", "text", "source", "sentence"),
    [
        ("none", "", CORE, "dlpack/dlpack.h: expected version 1.0 or newer, found no such header;"),
        ("none", "", SYCL, "sycl/sycl.hpp: expected the headers of DPC++, found none; with CMake"),
        (DLPACK, "#define DLPACK_VERSION 60\n", CORE, "or newer, found one older than 1.0;"),
        (DLPACK, "#define DLPACK_MAJOR_VERSION 2\n", CORE, "expected major version 1, found"),
        (
            DLPACK,
            "#define DLPACK_DLPACK_H_\n",
            f"#include <{DLPACK}>\n{CORE}",
            "dlpack.h: expected version 1.0 or newer, found an older one that is included before;",
        ),
        (
            "sycl/sycl.hpp",
            "#define SYCL_LANGUAGE_VERSION 202012L\n",
            f"#include <sycl/sycl.hpp>\n{SYCL}",
            "which has default contexts, found another SYCL;",
        ),
    ],
)
def test_headers_of_others_that_do_not_fit_are_refused(tmp_path, header, text, source, sentence):
    (tmp_path / header).parent.mkdir(exist_ok=True)
    (tmp_path / header).write_text(text)
    assert sentence in fail(*compiled(tmp_path, source))


@pytest.mark.parametrize("name", ["dlpack.h", "ATen/dlpack.h"])
def test_a_dlpack_header_of_another_name_is_taken_if_it_is_included_first(tmp_path, name):
    carried = Path(usm_dlpack.get_include(), "../share/usm_dlpack/third_party/dlpack/dlpack")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    shutil.copy(carried / "dlpack.h", tmp_path / name)
    succeed(*compiled(tmp_path, f"#include <{name}>\n{CORE}"))


def test_a_project_without_mdspan_and_sycl_has_the_headers_in_one_line(tmp_path, bare_python):
    text = f'add_subdirectory("{ROOT}" usm_dlpack)\n'
    dlpack = usm_dlpack.get_cmake_dir() + "/../../usm_dlpack/third_party/dlpack"
    include = f"-DUSM_DLPACK_DLPACK_INCLUDE_DIR={dlpack}"
    python = f"-DPython_EXECUTABLE={bare_python}"
    said = succeed(*configure_project(tmp_path, text, python, include))
    assert "mdspan/mdspan.hpp: expected kokkos/mdspan newer than its tag 0.6.0, found " in said
    assert "sycl/sycl.hpp: expected DPC++'s headers and libsycl.so, found " in said


def test_a_project_with_the_sources_takes_headers_that_the_package_carries(tmp_path, bare_python):
    (tmp_path / "packages").mkdir()
    package = Path(usm_dlpack.get_cmake_dir()).parents[2]
    (tmp_path / "packages/usm_dlpack").symlink_to(package)
    succeed(
        *("cmake", "-S", ROOT, "-B", tmp_path / "build", "-DUSM_DLPACK_BUILD_TESTS=OFF"),
        *(f"-DPython_EXECUTABLE={bare_python}", "-DUSM_DLPACK_INSTALL_THIRD_PARTY=ON"),
        PYTHONPATH=str(tmp_path / "packages"),
    )
    for header in ("dlpack/dlpack/dlpack.h", "mdspan/mdspan/mdspan.hpp"):
        assert (tmp_path / "build/third_party" / header).is_file()


def test_a_python_that_has_no_headers_or_is_not_there_is_said_so(tmp_path, bare_python):
    configure = ("cmake", "-S", ROOT, "-B", tmp_path)
    said = fail(*configure, f"-DPython_EXECUTABLE={bare_python}")
    assert "dlpack/dlpack.h: expected dlpack.h 1.0 or newer, before 2.0, found no such head" in said
    said = fail(*configure, f"-DPython_EXECUTABLE={tmp_path}/pyhton")
    assert (
        f"expected an interpreter, found {tmp_path}/pyhton, which does not exist; correct" in said
    )


@pytest.mark.parametrize(
    ("components", "call", "sentence"),
    [
        ("mdspn", "", "COMPONENTS: expected mdspan or sycl, found mdspn; correct it"),
        ("sycl", "usm_dlpack_find_libsycl_from()", "expected targets, found none; pass the target"),
        ("sycl", "usm_dlpack_find_libsycl_from(me)", "expected a target, found me, which is none;"),
    ],
)
def test_what_a_project_asks_of_the_package_is_checked(tmp_path, components, call, sentence):
    text = f"find_package(usm_dlpack REQUIRED COMPONENTS {components})\n{call}\n"
    assert sentence in fail(*configure_project(tmp_path, text, PYTHON, PACKAGE))


def test_a_machine_without_a_compiler_is_told_to_install_one(tmp_path):
    tools = str(Path(sys.executable).parent)
    said = fail("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, PATH=tools)
    assert "compiler: expected a C++17 compiler, found none that works; install g++, or " in said


def test_sycl_beside_the_package_is_found_whatever_the_python(tmp_path, bare_python):
    text = "find_package(usm_dlpack REQUIRED COMPONENTS sycl)\n"
    python = f"-DPython_EXECUTABLE={bare_python}"
    said = succeed(*configure_project(tmp_path, text, python, PACKAGE))
    assert f"SYCL: {sys.prefix}/include {sys.prefix}/lib/libsycl.so" in said


@pytest.mark.parametrize("missing", ["include/sycl/sycl.hpp", "lib/libsycl.so"])
def test_sycl_that_the_user_points_to_is_not_passed_over(tmp_path, missing):
    for file in ("include/sycl/sycl.hpp", "lib/libsycl.so"):
        (tmp_path / file).parent.mkdir(parents=True)
        if file != missing:
            (tmp_path / file).touch()
    places = (  # for an environment that has a SYCL
        f"-DUSM_DLPACK_SYCL_INCLUDE_DIR={tmp_path}/include",
        f"-DUSM_DLPACK_SYCL_LIBRARY={tmp_path}/lib/libsycl.so",
    )
    text = "find_package(usm_dlpack REQUIRED COMPONENTS sycl)\n"
    configure = configure_project(tmp_path, text, PYTHON, PACKAGE, *places)
    found = f'found headers "{tmp_path}/include" and library "{tmp_path}/lib/libsycl.so"; '
    assert found in fail(*configure)
    (tmp_path / missing).touch()
    assert f"SYCL: {tmp_path}/include {tmp_path}/lib/libsycl.so" in succeed(*configure)


@pytest.mark.parametrize("compiler", ["IntelLLVM", "GNU"])
def test_icpx_uses_its_own_sycl_and_other_compilers_that_of_the_wheel(tmp_path, compiler):
    text = f"""
cmake_minimum_required(VERSION 3.25)
project(order LANGUAGES NONE)
set(CMAKE_CXX_COMPILER_ID {compiler})
include("{ROOT}/cmake/find_sycl.cmake")
get_target_property(flags usm_dlpack::sycl_runtime INTERFACE_COMPILE_OPTIONS)
get_target_property(libraries usm_dlpack::sycl_runtime INTERFACE_LINK_LIBRARIES)
message(STATUS "flags=${{flags}} libraries=${{libraries}}")
"""
    (tmp_path / "CMakeLists.txt").write_text(text, encoding="utf-8")
    expected = f"flags=flags-NOTFOUND libraries={sys.prefix}/lib/libsycl.so"
    if compiler == "IntelLLVM":
        expected = "flags=-fsycl libraries=libraries-NOTFOUND"
    assert expected in succeed("cmake", "-S", tmp_path, "-B", tmp_path / "build", PYTHON)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    succeed(sys.executable, "-c", build, folder, cwd=ROOT)
    (archive,) = folder.glob("usm_dlpack-*.tar.gz")
    succeed("tar", "-x", "-f", archive, "-C", folder)
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


def test_the_sdist_has_what_a_build_needs_and_nothing_of_a_clone(sdist):
    carried = {file for file in (sdist / "third_party").rglob("*") if file.is_file()}
    assert {str(file.relative_to(sdist / "third_party")) for file in carried} == {
        "dlpack/LICENSE",
        "dlpack/dlpack/dlpack.h",
        "mdspan/LICENSE",
        "mdspan/LLVM-exception.txt",
        "mdspan/mdspan/mdspan.hpp",
    }
    names = {path.name for path in sdist.iterdir()}
    assert names >= {"CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "cmake", "docs"}
    absent = ("benchmarks", "build", "dist", "examples", "tests")
    assert not [name for name in names if name.startswith(".") or name in absent]


def test_the_sdist_needs_no_donor_of_headers(sdist, tmp_path, bare_python):
    asked = (
        "import json; from scikit_build_core.build import get_requires_for_build_wheel as ask; "
        "print(json.dumps(ask()))"
    )
    for folder, expected in ((sdist, False), (ROOT, not (ROOT / "PKG-INFO").exists())):
        answer = succeed(sys.executable, "-c", asked, cwd=folder)
        required = " ".join(json.loads(answer.splitlines()[-1]))
        assert ("apache-tvm-ffi" in required, "fenics-basix" in required) == (expected, expected)
    python = f"-DPython_EXECUTABLE={bare_python}"
    said = succeed("cmake", "-S", sdist, "-B", tmp_path, python, *LIBRARY_ALONE)
    for name in ("dlpack", "mdspan"):
        assert f"{sdist}/third_party/{name}\n" in said


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            DLPACK,
            "#define DLPACK_MAJOR_VERSION 2\n#define DLPACK_MINOR_VERSION 1\n",
            "INCLUDE_DIR: expected dlpack.h 1.0 or newer, before 2.0, found version 2.1 in ",
        ),
        (DLPACK, "#define DLPACK_VERSION 60\n", "before 2.0, found a version older than 1.0 in "),
        (
            "mdspan/mdspan.hpp",
            "namespace std::experimental {}\n",
            "its tag 0.6.0, found one whose namespace cannot be chosen in ",
        ),
        (
            "mdspan/mdspan.hpp",
            '// MDSPAN_IMPL_STANDARD_NAMESPACE\n#include "../bits/mdspan.hpp"\n',
            ': expected one header that stands alone, found `#include "../bits/mdspan.hpp"`; set ',
        ),
    ],
)
def test_a_header_that_cannot_be_carried_is_refused(tmp_path, name, text, sentence):
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(text)
    choice = f"-DUSM_DLPACK_{name.partition('/')[0].upper()}_INCLUDE_DIR={tmp_path}"
    command = ("cmake", "-S", ROOT, "-B", tmp_path / "build", PYTHON, choice, *LIBRARY_ALONE)
    assert sentence in fail(*command)
