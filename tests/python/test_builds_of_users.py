# SPDX-License-Identifier: Apache-2.0
"""Projects of users build against what they have of ours, or are told what is missing.

Each is built where nothing else of ours is found. The projects of docs/examples/cmake and of
examples/, which have the installed package, are built by tests of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import clean_environment
import pytest
import usm_dlpack

pytestmark = pytest.mark.extended

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ROOT / "tests" / "packaging"
PYTHON = f"-DPython_EXECUTABLE={sys.executable}"


def attempt(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command where nothing of ours is near, with the tools of this environment."""
    return clean_environment.run(*command, cwd="/", timeout=900, **variables)


def succeed(*command: str | Path, **variables: str) -> str:
    """Run a command as `attempt` does, require success, and return what it printed."""
    done = attempt(*command, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an interpreter whose environment has no donor of headers, and no SYCL."""
    folder = tmp_path_factory.mktemp("without_donors")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an installed prefix that carries the headers of others, moved once after that."""
    folder = tmp_path_factory.mktemp("prefix")
    choices = ("-DUSM_DLPACK_BUILD_TESTS=OFF", "-DUSM_DLPACK_INSTALL_THIRD_PARTY=ON", PYTHON)
    succeed("cmake", "-S", ROOT, "-B", folder / "build", *choices)
    succeed("cmake", "--install", folder / "build", "--prefix", folder / "installed")
    assert {path.name for path in (folder / "installed").iterdir()} == {"include", "share"}
    return (folder / "installed").rename(folder / "moved")


def test_a_project_builds_with_the_sources_in_a_folder_of_its_own(
    tmp_path: Path, driver: Path
) -> None:
    sources = f"-DUSM_DLPACK_SOURCES={ROOT}"
    succeed("cmake", "-S", PROJECTS / "by_subdirectory", "-B", tmp_path, sources, PYTHON)
    succeed("cmake", "--build", tmp_path)
    succeed(tmp_path / "consumer", OCL_ICD_FILENAMES=str(driver))
    needed = succeed("readelf", "--dynamic", "--wide", tmp_path / "consumer")
    assert "libsycl" in needed
    assert "OpenCL" not in needed


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("-U__GNUC__", "compiler: expected g++ or clang (icpx is one), found another; build with"),
        ("-fno-exceptions", "compiler flags: expected exceptions, found -fno-exceptions; remove"),
    ],
)
def test_what_the_headers_cannot_be_compiled_with_is_said_in_words(
    tmp_path: Path, flag: str, sentence: str
) -> None:
    source = tmp_path / "user.cpp"
    source.write_text("#include <usm_dlpack/core/config.hpp>\n")
    done = attempt("g++", "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'include'}", flag, source)
    assert done.returncode != 0
    assert f"#error {sentence}" in done.stderr


def test_a_project_without_mdspan_and_sycl_has_the_headers_in_one_line(
    tmp_path: Path, bare_python: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n"
        f'add_subdirectory("{ROOT}" usm_dlpack)\n'
        "get_target_property(name usm_dlpack::usm_dlpack NAME)\n",
        encoding="utf-8",
    )
    dlpack = usm_dlpack.get_cmake_dir() + "/../../usm_dlpack/third_party/dlpack"
    said = succeed(
        *("cmake", "-S", tmp_path, "-B", tmp_path / "build"),
        *(f"-DPython_EXECUTABLE={bare_python}", f"-DUSM_DLPACK_DLPACK_INCLUDE_DIR={dlpack}"),
    )
    assert "mdspan/mdspan.hpp: expected kokkos/mdspan newer than its tag 0.6.0, found " in said
    assert "sycl/sycl.hpp: expected DPC++'s headers and libsycl.so, found " in said


def test_a_machine_without_a_compiler_is_told_to_install_one(tmp_path: Path) -> None:
    done = attempt("cmake", "-S", ROOT, "-B", tmp_path, PATH=str(Path(sys.executable).parent))
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "compiler: expected a C++17 compiler, found none that works; install g++, or " in said


def configure(folder: Path, python: Path, prefix: Path, *choices: str) -> tuple[int, str]:
    """Configure the program of docs/how-to/cmake.md with an installed prefix."""
    done = attempt(
        *("cmake", "-S", ROOT / "docs/examples/cmake/program", "-B", folder),
        *(f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPython_EXECUTABLE={python}", *choices),
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_headers_that_an_installed_prefix_carries_are_found_where_it_was_moved_to(
    tmp_path: Path, bare_python: Path, prefix: Path
) -> None:
    status, said = configure(tmp_path, bare_python, prefix)
    assert status != 0
    assert "sycl/sycl.hpp: expected DPC++'s headers and libsycl.so, found headers" in said
    for name in ("dlpack", "mdspan"):
        assert f"{prefix}/share/usm_dlpack/third_party/{name} " in said


@pytest.mark.parametrize("missing", ["include/sycl/sycl.hpp", "lib/libsycl.so"])
def test_sycl_that_the_user_points_to_is_not_passed_over(
    tmp_path: Path, prefix: Path, missing: str
) -> None:
    for file in ("include/sycl/sycl.hpp", "lib/libsycl.so"):
        (tmp_path / file).parent.mkdir(parents=True)
        if file != missing:
            (tmp_path / file).touch()
    choices = (
        f"-DUSM_DLPACK_SYCL_INCLUDE_DIR={tmp_path}/include",
        f"-DUSM_DLPACK_SYCL_LIBRARY={tmp_path}/lib/libsycl.so",
    )
    # This interpreter's environment has a SYCL.
    status, said = configure(tmp_path / "build", Path(sys.executable), prefix, *choices)
    assert status != 0
    found = f'found headers "{tmp_path}/include" and library "{tmp_path}/lib/libsycl.so"; '
    assert found in said
    (tmp_path / missing).touch()
    status, said = configure(tmp_path / "build", Path(sys.executable), prefix, *choices)
    assert status == 0, said
    assert f"SYCL: {tmp_path}/include {tmp_path}/lib/libsycl.so" in said


@pytest.mark.parametrize("compiler", ["IntelLLVM", "GNU"])
def test_icpx_uses_its_own_sycl_and_other_compilers_that_of_the_wheel(
    tmp_path: Path, compiler: str
) -> None:
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
    """Return the unpacked sdist of this tree."""
    folder = tmp_path_factory.mktemp("sdist")
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    done = clean_environment.run(sys.executable, "-c", build, folder, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = folder.glob("usm_dlpack-*.tar.gz")
    succeed("tar", "-x", "-f", archive, "-C", folder)
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


def test_the_sdist_has_what_a_build_needs_and_nothing_of_a_clone(sdist: Path) -> None:
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


def test_the_sdist_needs_no_donor_of_headers(
    sdist: Path, tmp_path: Path, bare_python: Path
) -> None:
    asked = (
        "import json; from scikit_build_core.build import get_requires_for_build_wheel as ask; "
        "print(json.dumps(ask()))"
    )
    for folder, expected in ((sdist, False), (ROOT, not (ROOT / "PKG-INFO").exists())):
        answer = subprocess.check_output([sys.executable, "-c", asked], cwd=folder, text=True)
        required = " ".join(json.loads(answer.splitlines()[-1]))
        assert ("apache-tvm-ffi" in required, "fenics-basix" in required) == (expected, expected)
    choices = ("-DUSM_DLPACK_BUILD_TESTS=OFF", "-DUSM_DLPACK_INSTALL_THIRD_PARTY=ON")
    python = f"-DPython_EXECUTABLE={bare_python}"
    said = succeed("cmake", "-S", sdist, "-B", tmp_path, python, *choices)
    for name in ("dlpack", "mdspan"):
        assert f"{sdist}/third_party/{name}\n" in said


def test_a_header_that_needs_others_is_not_carried_alone(tmp_path: Path) -> None:
    header = tmp_path / "include" / "mdspan" / "mdspan.hpp"
    header.parent.mkdir(parents=True)
    include = '#include "../experimental/__p0009_bits/mdspan.hpp"'
    header.write_text(f"// MDSPAN_IMPL_STANDARD_NAMESPACE\n{include}\n", encoding="utf-8")
    done = attempt(
        *("cmake", "-S", ROOT, "-B", tmp_path / "build", PYTHON, "-DUSM_DLPACK_BUILD_TESTS=OFF"),
        "-DUSM_DLPACK_INSTALL_THIRD_PARTY=ON",
        f"-DUSM_DLPACK_MDSPAN_INCLUDE_DIR={tmp_path}/include",
    )
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert f"{header}: expected one header that stands alone, found `{include}`; set " in said


# --- headers of others that are missing or unfit


def test_a_header_that_is_found_nowhere_stops_with_the_cures(
    tmp_path: Path, bare_python: Path
) -> None:
    done = attempt("cmake", "-S", ROOT, "-B", tmp_path, f"-DPython_EXECUTABLE={bare_python}")
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "dlpack/dlpack.h: expected dlpack.h 1.0 or newer, before 2.0, found no such " in said
    assert 'run `python -m pip install "apache-tvm-ffi>=0.1.9"`' in said
    assert "-DUSM_DLPACK_DLPACK_INCLUDE_DIR=<folder>" in said


def syntax_errors(source: Path, *flags: str) -> str:
    """Return what g++ says of a source that it refuses."""
    source.write_text("#include <usm_dlpack/core/config.hpp>\n")
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'include'}", *flags, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#define DLPACK_VERSION 60\n", "older than 1.0"),
        ("#define DLPACK_MAJOR_VERSION 2\n#define DLPACK_MINOR_VERSION 1\n", "another"),
    ],
)
def test_a_header_of_another_version_is_refused_by_cmake_and_by_the_compiler(
    tmp_path: Path, text: str, found: str
) -> None:
    header = tmp_path / "dlpack" / "dlpack.h"
    header.parent.mkdir()
    header.write_text(text)
    choice = f"-DUSM_DLPACK_DLPACK_INCLUDE_DIR={tmp_path}"
    done = attempt("cmake", "-S", ROOT, "-B", tmp_path / "build", PYTHON, choice)
    assert done.returncode != 0
    expected = "expected dlpack.h 1.0 or newer, before 2.0, found "
    assert f"USM_DLPACK_DLPACK_INCLUDE_DIR: {expected}" in " ".join(done.stderr.split())
    refused = syntax_errors(tmp_path / "user.cpp", f"-I{tmp_path}")
    assert "#error dlpack/dlpack.h: expected " in refused
    assert found in refused
