# SPDX-License-Identifier: Apache-2.0
"""Run the tests on an NVIDIA GPU, by SYCL's backend cuda.

It takes one GPU, CUDA's driver, and the runtime's adapter ``libur_adapter_cuda.so.0``, which the
wheels of the runtime do not have: ``--adapter FILE`` puts one of the same release beside the
runtime. PyTorch, CuPy, JAX and Numba are used as far as this Python has them. What cannot run there
is left out by name, with reasons. Where there is no such GPU, this says so, and returns 0.

``python3 dev.py cuda`` runs this program; ``--write`` renews the part of docs/backends.md.
"""

import argparse
import ctypes
import datetime
import json
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "drivers")]

from reported import run_tests  # noqa: E402

from dev import (  # noqa: E402
    DEV,
    GOOGLETEST,
    WHEELS,
    Environment,
    RefusalError,
    absent,
    require_debian_packages,
    run,
)

HERE = Path(__file__).resolve().parent
PYTHON_TESTS = ROOT / "tests" / "python"
VENV = Environment(DEV / "cuda")
BUILD = ROOT / "build" / "cuda"
BENCHMARKS = ROOT / "benchmarks" / "python"
RATIOS = ROOT / "build" / "benchmarks" / "cuda"
REPORT = VENV.folder / "report.xml"
PAGE = ROOT / "docs" / "backends.md"
ADAPTER = "libur_adapter_cuda.so.0"
ENVIRONMENT = VENV.variables | {
    "ONEAPI_DEVICE_SELECTOR": "cuda:0",
    "DRIVER_CONFIGURATION": "cuda",
    "USM_DLPACK_TEST_DEVICES": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    # With fewer, a stream that is held back may hold back others.
    "CUDA_DEVICE_MAX_CONNECTIONS": "32",
    "PYTHONPATH": f"{HERE}:{PYTHON_TESTS / 'support'}",
}

# In C++ patterns of Suite.Name, in Python words in the names of tests.
LEFT_OUT_CPP = {
    "*Kernel*": "the runtime builds no kernels from source for CUDA",
    "*Opencl*": "about the backend OpenCL, its exact contexts or its sub-devices",
    "TwoDevices*": "about several root devices",
    "ThreeDevices*": "about several root devices",
    "BrokenDevice*": "about a device that lists and then fails",
    "LevelZero*": "about Level Zero",
    "BackendsTogether*": "about several backends",
    "Pocl*": "about PoCL",
}
LEFT_OUT_PYTHON = {
    "kernel": "needs a kernel",
    "opencl": "is about OpenCL",
    "another_device": "is about several root devices",
    "each_root_device": "is about several root devices",
    "ignores_the_device": "needs a context of its own, which CUDA does not have",
    "(ends and refusal)": "a child of fork() prints nothing: the adapter prints an error",
    "(pybind11 and needs_the_package)": "dpctl.get_devices() crashes in the adapter that was tried",
}
PYTHON_FILES = (
    *("arguments", "copy_from", "dlpack_method", "empty", "exchange_api", "extensions"),
    *("from_dlpack", "from_dlpack_host_copy", "host_view", "hostile", "lifetimes", "order"),
    *("places", "processes", "producers", "properties", "streams", "threads"),
    *("to_dlpack_tensor", "validate"),
)


class NoGpuError(Exception):
    """What is missing; the tests are not run."""


def count_gpus() -> int:
    """Return the number of GPUs, without SYCL."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise NoGpuError("expected libcuda.so.1, NVIDIA's driver, found none") from None
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or not count:
        raise NoGpuError("expected a GPU that libcuda.so.1 lists, found none")
    return count.value


def build(adapter: Path | None) -> None:
    """Install this package, and build the C++ tests."""
    require_debian_packages(absent(GOOGLETEST))
    if not VENV.python.exists():
        run(sys.executable, "-m", "venv", "--system-site-packages", VENV.folder)
        # The system's packages are not those of the virtual environment that runs this.
        (inner,) = VENV.folder.glob("lib/python*/site-packages")
        (inner / "outer.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    VENV.install("-q", "-r", "requirements/test.txt", *WHEELS)
    if adapter is not None:
        shutil.copy(adapter, VENV.folder / "lib" / ADAPTER)
    if not (VENV.folder / "lib" / ADAPTER).exists():
        raise NoGpuError(f"expected the runtime's {ADAPTER}, found none; pass --adapter FILE")
    VENV.install_project("-q", ".[test]")
    VENV.run("cmake", "--preset", "drivers", "-B", BUILD)
    VENV.run("cmake", "--build", BUILD, "--target", "sycl_tests")


def facts() -> dict[str, str]:
    """Return the names of the GPU, its driver, the runtime and the libraries."""
    program = (
        "import dpctl, usm_dlpack, importlib.metadata as m, libraries as l; "
        "d = dpctl.get_devices(); print(*(d[0].name, d[0].driver_version) if d else ('', ''), "
        "m.version('intel-sycl-rt'), ', '.join(f'{c.name} {c().version}' for c in l.HERE), "
        "', '.join(l.MISSING), sep='|')"
    )
    done = subprocess.run(
        [VENV.python, "-c", program],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RefusalError("libraries: expected that they can be imported, found the error above")
    names = ("GPU", "driver", "runtime", "libraries", "missing")
    found = dict(zip(names, done.stdout.strip().split("|"), strict=True))
    if not found["GPU"]:
        raise NoGpuError("expected a device of SYCL's backend cuda, found none")
    return found


def run_gtest() -> list[str]:
    chosen = f"--gtest_filter=*-{':'.join(LEFT_OUT_CPP)}"
    options = (chosen, "--gtest_brief=1", f"--gtest_output=xml:{REPORT}")
    return run_tests(REPORT, ENVIRONMENT, BUILD / "tests/cpp/sycl_tests", *options)


def run_pytest(*arguments: str | Path, **variables: str) -> list[str]:
    pytest = (VENV.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={REPORT}")
    return run_tests(REPORT, ENVIRONMENT | variables, *pytest, *arguments)


def measure_ratios() -> list[str]:
    """Measure beside CUDA's driver and PyTorch; return a line of Markdown for each comparison."""
    VENV.run("cmake", "-S", BENCHMARKS, "-B", RATIOS, f"-DPython_EXECUTABLE={VENV.python}")
    VENV.run("cmake", "--build", RATIOS)
    run(VENV.python, BENCHMARKS / "on_cuda.py", RATIOS, environment=ENVIRONMENT)
    rows = json.loads((RATIOS / "ratios.json").read_text(encoding="utf-8"))
    return [f"- {title}: {ratio:.2g}." for title, _, ratio, _ in rows]


def page_of(
    found: dict[str, str],
    cpp: list[str],
    python: list[str],
    bridge: list[str],
    ratios: list[str],
    gpus: int,
) -> str:
    suites = ", ".join(f"`{name}`" for name in sorted(set(cpp)))
    files = ", ".join(f"`test_{name}.py`" for name in PYTHON_FILES)
    some = "some of them on two GPUs" if gpus > 1 else "not those that need two GPUs"
    return "\n".join(
        [
            "## On a GPU, by SYCL's backend cuda\n",
            f"{datetime.date.today():%d %B %Y}, by `python3 dev.py cuda`, which continuous "
            f"integration does not run: {found['GPU']}, driver {found['driver']}, runtime "
            f"{found['runtime']}, {found['libraries']}.\n",
            f"- {len(cpp)} C++ tests, of {suites}.",
            f"- {len(python)} Python tests, of {files}.",
            f"- {len(bridge)} tests of `tests/cuda/`, with the libraries, {some}.\n",
            "The other Python files are about texts, builds, other drivers, and several devices.\n",
            "What small calls cost, as a ratio, ours / theirs:\n",
            *ratios,
            "",
            "",
        ]
    )


def write_page(part: str) -> None:
    """Replace the part of the page, which stands before those of other drivers."""
    text = PAGE.read_text(encoding="utf-8")
    start = r"(?ms)^## On a GPU.*?(?=^## )"
    assert re.search(start, text)
    PAGE.write_text(re.sub(start, lambda _: part, text, count=1), encoding="utf-8")


def main() -> int:
    """Run all steps; return 0 if all passed, or there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adapter", type=Path, help=f"the {ADAPTER} to use")
    parser.add_argument("--write", action="store_true", help="renew docs/backends.md")
    options = parser.parse_args()
    try:
        gpus = count_gpus()
        build(options.adapter)
        found = facts()
        print(f"\n##### {found}")
        cpp = run_gtest()
        words = " and ".join(f"not {word}" for word in LEFT_OUT_PYTHON)
        files = [PYTHON_TESTS / f"test_{name}.py" for name in PYTHON_FILES]
        python = run_pytest("-m", "not extended", *(("-k", words) if words else ()), *files)
        bridge = run_pytest(HERE / "test_bridge.py")
        if gpus > 1:
            bridge += run_pytest(HERE / "test_two_gpus.py", ONEAPI_DEVICE_SELECTOR="cuda:*")
        ratios = [] if "torch" in found["missing"] else measure_ratios()
    except NoGpuError as reason:
        print(f"\n##### CUDA: NOT RUN: {reason}")
        return 0
    except RefusalError as refusal:
        print(f"\nFAILED: {refusal}")
        return 1
    if found["missing"]:
        print(f"\n##### NOT RUN with {found['missing']}: not installed for {sys.executable}")
    if gpus == 1:
        print("\n##### NOT RUN: tests/cuda/test_two_gpus.py, because there is one GPU")
    if options.write:
        write_page(page_of(found, cpp, python, bridge, ratios, gpus))
    return 0


if __name__ == "__main__":
    sys.exit(main())
