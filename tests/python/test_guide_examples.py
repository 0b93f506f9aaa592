# SPDX-License-Identifier: Apache-2.0
"""What the pages of docs/ show is run: Python, commands in a shell, and the C++ of errors.

Python that needs a peer runs where it is: tests/interoperability/test_guide_examples.py. The
projects of the page on CMake are built of its text. Other C++, CMake and shell scripts stand in
files that other tests build or run.
"""

import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import clean_environment
import dpctl
import guide
import numpy as np
import pytest
import usm_dlpack
from dpctl.memory import as_usm_memory
from memory_sources import new_queue
from pending_work import answer_behind

# Modules of programs that are run elsewhere: where the peer is, or by the test that builds it.
NOT_HERE = {"dpnp", "mpi4py", "torch", "guide_extension"}


@pytest.fixture
def variables_of(several_devices):
    """Return a function that gives the environment which a page speaks of."""

    def variables(page: str) -> dict[str, str]:
        code = page.partition("#")[2].strip("`")
        if code == "device_without_id":
            return several_devices(2) | {"ONEAPI_DEVICE_SELECTOR": "opencl:1"}
        if page == "how-to/devices" or code == "device_mismatch":
            return several_devices(2)
        return {"ONEAPI_DEVICE_SELECTOR": "nonsense"} if code == "runtime_error" else {}

    return variables


def test_the_queue_of_pytorch_is_taken_as_its_page_says(tensor):
    """A stream of PyTorch XPU has the address of its queue. No PyTorch for a GPU is needed."""
    queue = new_queue()
    stream = SimpleNamespace(sycl_queue=queue.addressof_ref())
    torch = SimpleNamespace(xpu=SimpleNamespace(current_stream=lambda: stream))
    (code,) = [text for _, text in guide.blocks_of("how-to/libraries") if "current_stream" in text]
    names = {"torch": torch, "usm_dlpack": usm_dlpack}
    exec(code, names)
    assert names["import_for_pytorch"](tensor).sycl_queue == queue


def test_a_stream_of_pytorch_is_made_of_a_queue_as_its_page_says():
    """PyTorch gets the address of the queue. No PyTorch for a GPU is needed."""
    queue = new_queue()
    torch = SimpleNamespace(xpu=SimpleNamespace(get_stream_from_external=lambda address: address))
    (program,) = [p for p in guide.programs_of("how-to/moving_over") if "torch" in p.modules]
    names = {"torch": torch}
    exec(program.code.replace("import torch\n", ""), names)
    assert names["stream_of"](queue) == queue.addressof_ref()


def texts(page: str, wanted: str = "console") -> list[str]:
    return [text for language, text in guide.blocks_of(page) if language == wanted]


@pytest.mark.parametrize(
    "name",
    [name for name, program in guide.PROGRAMS.items() if not program.modules & NOT_HERE],
)
def test_a_program_prints_what_its_page_shows(name, variables_of, tmp_path):
    """In a process of its own if the page speaks of another environment."""
    program = guide.PROGRAMS[name]
    variables = variables_of(program.page)
    printed = program.run(tmp_path, **variables) if variables else program.run_here()
    assert printed == program.printed


def shell(commands: str, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run commands as a reader does whose environment is active, and require an exit status."""
    active = {"VIRTUAL_ENV": sys.prefix, "PIP_NO_INDEX": "1"}
    done = clean_environment.run("sh", "-ec", commands, cwd=folder, timeout=900, **active)
    assert done.returncode == status, done.stdout + done.stderr
    return done


ERRORS = {page: guide.blocks_of(page) for page in guide.PAGES if page.startswith("errors/")}
REFUSED_CPP = {
    page: dict(blocks)["text"] for page, blocks in ERRORS.items() if "cpp" in dict(blocks)
}
REFUSING = """
int main(int, char** arguments) {
  try {
    uses.at(arguments[1])();
  } catch (const usm_dlpack::conversion_error& error) {
    std::cout << error.what() << '\\n';
  }
}
"""


@pytest.fixture(scope="module")
def refusing_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that does what an error's page shows in its last block of C++."""
    headers = ("mdspan/mdspan.hpp", "usm_dlpack/opencl.hpp", "usm_dlpack/usm_dlpack.hpp")
    source = "".join(f"#include <{name}>\n" for name in (*headers, "iostream", "map", "string"))
    uses = ""
    for page in REFUSED_CPP:
        *declared, use = (code for language, code in ERRORS[page] if language == "cpp")
        source += "".join(declared)
        uses += f'{{"{page}", [] {{\n{use}}}}},\n'
    source += f"const std::map<std::string, void (*)()> uses = {{\n{uses}}};\n{REFUSING}"
    folder = tmp_path_factory.mktemp("refusing")
    (folder / "program.cpp").write_text(source, encoding="utf-8")
    shell(COMPILE.rstrip() + " $VIRTUAL_ENV/lib/libOpenCL.so.1", folder)
    return folder / "program"


@pytest.mark.extended
@pytest.mark.parametrize("page", REFUSED_CPP)
def test_the_cpp_of_a_page_is_refused_with_the_sentence_that_it_shows(
    page, refusing_program, variables_of, driver
):
    opencl = {"OCL_ICD_FILENAMES": str(driver), "LD_LIBRARY_PATH": str(driver.parent)}
    done = clean_environment.run(refusing_program, page, **(opencl | variables_of(page)))
    assert (done.returncode, done.stdout, done.stderr) == (0, REFUSED_CPP[page], "")


def lines_of(text: str) -> str:
    """Return text with a line break around each line, and nothing else around it."""
    return "\n".join(["", *(line.strip() for line in text.strip().splitlines()), ""])


def test_other_code_stands_in_a_file_that_is_built_or_run():
    folders = [guide.ROOT / name for name in ("docs/examples", "examples", "tests")]
    files = [file for name in folders for file in name.rglob("*") if "build" not in file.parts]
    sources = "".join(
        lines_of(file.read_text(errors="replace")) for file in files if file.is_file()
    )
    for page in guide.PAGES:
        for language, block in guide.blocks_of(page):
            built = page in REFUSED_CPP or block in BUILT
            if language in ("cpp", "cmake", "sh") and not built:
                assert lines_of(block) in sources, (page, block)


def test_the_reference_has_each_public_name():
    named = re.findall(
        r"::\s+(\w+)$", (guide.DOCS / "reference/python.rst").read_text(), re.MULTILINE
    )
    assert set(usm_dlpack.__all__) <= set(named)


BUILD_PROGRAM, RUN, BUILD_EXTENSION, INSTALL, USE, COMPILE, SANITIZE = texts("how-to/cmake")
PROGRAM_LISTS, EXTENSION_LISTS, _ = texts("how-to/cmake", "cmake")
(PROGRAM,) = texts("how-to/cmake", "cpp")
EXTENSION, *_ = texts("how-to/nanobind", "cpp")
(PRINTED,) = texts("how-to/cmake", "text")
BUILT = (PROGRAM, PROGRAM_LISTS, EXTENSION, EXTENSION_LISTS)


def project_of(folder: Path, lists: str, source: str, text: str) -> Path:
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(lists, encoding="utf-8")
    (folder / source).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.extended
def test_the_program_of_the_page_on_cmake_builds_with_the_package_a_prefix_and_without_cmake(
    tmp_path, project_root
):
    clone, prefix = tmp_path / "clone", tmp_path / "prefix"
    clone.mkdir()
    for name in ("CMakeLists.txt", "LICENSE", "cmake", "include"):
        (clone / name).symlink_to(project_root / name)
    project = project_of(tmp_path / "program", PROGRAM_LISTS, "program.cpp", PROGRAM)
    shell(BUILD_PROGRAM, project)
    assert shell(RUN, project).stdout == PRINTED
    shutil.rmtree(project / "build")
    shell(f"PREFIX={prefix}\n{INSTALL}", clone)
    assert {path.name for path in prefix.iterdir()} == {"include", "share"}
    prefix = prefix.rename(tmp_path / "moved")
    said = shell(f"PREFIX={prefix}\n{USE}", project).stdout
    for name in ("dlpack", "mdspan"):
        assert f"{prefix}/share/usm_dlpack/third_party/{name}\n" in said
    assert shell(RUN, project).stdout == PRINTED
    for sanitize, flag in ((SANITIZE, "-fsanitize=address"), ("", "")):
        shell(COMPILE.replace("g++", f"g++ {flag}"), project)
        assert shell(sanitize + RUN.replace("build/", "./"), project).stdout == PRINTED


@pytest.mark.extended
def test_an_extension_is_compiled_without_cmake_as_the_page_says(tmp_path, project_root):
    shutil.copy(project_root / "examples/pybind11/extension.cpp", tmp_path / "program.cpp")
    flags = "-shared -fPIC -fvisibility=hidden $(python -m pybind11 --includes)"
    assert shell(COMPILE.replace("g++", f"g++ {flags}"), tmp_path).stderr == ""


@pytest.fixture(scope="module")
def moving_over(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the extension of the page on moving code over, built as the page on CMake says."""
    folder = tmp_path_factory.mktemp("moving_over")
    for name in ("moving_over.cpp", "torch_stand_in.hpp"):
        shutil.copy(guide.DOCS / "examples" / name, folder)
    flags = "-shared -fPIC -fvisibility=hidden $(python -m pybind11 --includes)"
    command = COMPILE.replace("g++", f"g++ {flags}").replace("program.cpp", "moving_over.cpp")
    shell(command.replace("-o program", "-o moving_over.so"), folder)
    spec = spec_from_file_location("moving_over", folder / "moving_over.so")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.extended
def test_code_that_is_moved_over_does_the_same_as_before(moving_over, tensor):
    tensor.copy_from(np.ones(tensor.shape, tensor.dtype))
    row = usm_dlpack.to_dlpack_tensor(tensor, shape=tensor.size)
    moving_over.before.scale(row, 2)
    moving_over.after.scale(row, 2)
    moving_over.after.scale_of_pytorch(row, 2)
    assert np.array_equal(row.numpy(), np.full(row.shape, 8, row.dtype))
    before = moving_over.before.Field(row.sycl_queue, 5)
    after = moving_over.after.Field(row.sycl_queue, 5)
    grid = moving_over.after.Grid(row.sycl_queue, 5)
    assert before.values.shape == after.values.shape == grid.values.shape == (5,)
    assert usm_dlpack.from_dlpack(before.__dlpack__()).shape == (5,)
    there = usm_dlpack.from_dlpack(after)
    assert (there.data, there.sycl_queue) == (after.values.data, row.sycl_queue)
    assert after.__dlpack_device__() == there.device
    assert usm_dlpack.to_dlpack_tensor(after).data == there.data
    after.values.copy_from(np.ones(5, np.float32))
    after.scale(2)
    assert np.array_equal(there.numpy(), np.full(5, 2, np.float32))


@pytest.mark.extended
def test_a_class_that_was_moved_over_waits_for_the_pending_work_of_a_consumer(moving_over, start):
    field = moving_over.after.Field(new_queue(), 12)
    there = usm_dlpack.from_dlpack(field, device=new_queue())
    pending = start(there.sycl_queue, into=as_usm_memory(there))
    values = answer_behind(pending, lambda: usm_dlpack.from_dlpack(field).numpy())
    assert values.view("i4").tolist() == pending.values


@pytest.mark.extended
def test_kernels_of_opencl_c_and_spirv_are_launched_as_the_page_says(tmp_path, driver):
    shutil.copy(guide.DOCS / "examples/opencl_kernel.cpp", tmp_path / "program.cpp")
    (link,) = texts("how-to/opencl")
    shell(COMPILE.rstrip() + link.replace("g++ ...", ""), tmp_path)
    spirv = Path(dpctl.__file__).parent / "tests/input_files/multi_kernel.spv"
    variables = {"OCL_ICD_FILENAMES": str(driver)}
    done = clean_environment.run(tmp_path / "program", spirv, **variables)
    assert (done.stdout, done.stderr) == ("0 2 4\n42 42\n", "")


@pytest.mark.extended
def test_the_first_extension_is_built_by_the_page_on_cmake(tmp_path):
    project = project_of(tmp_path / "mine", EXTENSION_LISTS, "guide_extension.cpp", EXTENSION)
    shell(BUILD_EXTENSION, project)
    (extension,) = (project / "build").glob("guide_extension.*.so")
    # As installed at the top of site-packages: its run path leads to the environment's libsycl.
    path = subprocess.check_output(["readelf", "--dynamic", extension], text=True)
    assert "libsycl" in path
    program = guide.PROGRAMS["how-to/nanobind 1"]
    assert program.run(tmp_path, PYTHONPATH=str(extension.parent)) == program.printed


def test_the_commands_of_the_page_on_devices_do_what_it_says(tmp_path):
    show, select, forbid, show_two = texts("how-to/devices")
    (told,) = [text for text in texts("how-to/devices", "text") if "problems:" in text]
    selected = shell(select, tmp_path).stdout
    assert f"(14, 0)  {usm_dlpack.root_device(0).name.strip()}\n" in shell(show, tmp_path).stdout
    assert " opencl:cpu:0, " in selected
    assert "\n  ONEAPI_DEVICE_SELECTOR  opencl:cpu\n" in selected
    assert shell(forbid, tmp_path, 1).stdout.endswith(f"\n{told}")
    assert " opencl:cpu:1, " in shell(show_two, tmp_path).stdout


def test_the_last_program_of_the_tutorial_is_the_file_that_the_demo_runs():
    file = guide.DOCS / "examples/heat.py"
    assert file.read_text(encoding="utf-8").endswith(
        f'"""\n\n{guide.programs_of("tutorial")[-1].code}'
    )
