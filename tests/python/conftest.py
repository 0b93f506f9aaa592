# SPDX-License-Identifier: Apache-2.0
"""What every Python test shares: a real device, its memory, kernels, and new processes."""

import hashlib
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SUPPORT = Path(__file__).with_name("support")
sys.path.insert(0, str(SUPPORT))
pytest.register_assert_rewrite("capsules", "refusals", "memory_sources", "pending_work")

import clean_environment  # noqa: E402
import dpctl  # noqa: E402
import extension_under_test  # noqa: E402
import time_limit  # noqa: E402
import usm_dlpack  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from memory_sources import allocate, new_queue  # noqa: E402
from pending_work import PendingFill  # noqa: E402
from time_limit import of_one_test, pytest_configure  # noqa: E402, F401
from usm_dlpack import _cpu_driver  # noqa: E402

# The machine may be busy: how long an example takes says nothing. The seed is fixed, so that a
# failure is one for everybody.
settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def project_root() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def queue() -> Any:
    """Return a queue made from root device 0 alone; without a device the test fails."""
    return dpctl.SyclQueue(usm_dlpack.root_device(0))


@pytest.fixture(scope="session")
def foreign_queue(queue: Any) -> Any:
    """Return a queue of the same device in a context that is not the default one."""
    device = queue.sycl_device
    return dpctl.SyclQueue(dpctl.SyclContext([device]), device)


@pytest.fixture
def memory(queue: Any) -> Any:
    """Return 48 bytes of device USM."""
    return allocate("device", 48, queue)


@pytest.fixture
def tensor(memory: Any, queue: Any) -> usm_dlpack.DLPackTensor:
    """Return (3, 4) float32 in device USM, which knows a queue."""
    return usm_dlpack.to_dlpack_tensor(memory, shape=(3, 4), dtype="f4", queue=queue)


@pytest.fixture
def unpooled(queue: Any) -> Any:
    """Return 48 bytes of shared USM, which no pool cuts: each backend knows where it ends."""
    return allocate("shared", 48, queue)


@pytest.fixture(params=["device", "shared", "host"])
def usm_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[True, False], ids=["in order", "out of order"])
def producer(request: pytest.FixtureRequest) -> Any:
    return new_queue(in_order=request.param)


@pytest.fixture(params=[True, False], ids=["to in order", "to out of order behind a kernel"])
def consumer(request: pytest.FixtureRequest) -> Any:
    """Return a consumer's queue, of each kind in turn.

    The hand-over to an out-of-order queue waits for host tasks, and where there are no kernels all
    pending work is behind one.
    """
    return new_queue(in_order=request.param)


@pytest.fixture
def start() -> Iterator[Callable[..., PendingFill]]:
    """Return a function that starts work behind a gate, which is open at the end of the test."""
    started: list[PendingFill] = []

    def begin(queue: Any, usm: str = "device", *, into: Any = None) -> PendingFill:
        started.append(PendingFill(queue, usm, into=into))
        return started[-1]

    yield begin
    for pending in started:
        pending.end()
        pending.queue.wait()


Process = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def new_process(tmp_path_factory: pytest.TempPathFactory) -> Process:
    """Return a function that runs Python code, or arguments, in a process of its own.

    Keywords are environment variables; only those decide which devices the process has. Code may
    import the modules beside this one, and has a time limit.
    """
    folder = tmp_path_factory.mktemp("process")

    def run(
        code: str | None = None, *, arguments: tuple[str, ...] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        if code is not None and "extension_under_test" in code:
            extension_under_test.build(extension_under_test.NAME)
        if code is not None:
            code = "import time_limit\ntime_limit.begin()\n" + textwrap.dedent(code)
            arguments = ("-c", code, *arguments)
            variables = {"PYTHONPATH": str(SUPPORT)} | variables
        command = (sys.executable, "-W", "error", *arguments)
        with time_limit.paused():
            return clean_environment.run(*command, cwd=folder, **variables)

    return run


@pytest.fixture(scope="session")
def succeed(new_process: Process) -> Callable[..., str]:
    """Return a function as ``new_process`` that requires a silent success; it gives the output."""

    def run(code: str | None = None, **keywords: Any) -> str:
        done = new_process(code, **keywords)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture(scope="session")
def driver() -> Path:
    """Return the CPU driver that the wheel intel-opencl-rt installed."""
    found = _cpu_driver.find_cpu_driver()
    assert found is not None
    return found


@pytest.fixture(scope="session")
def driver_copies(driver: Path, project_root: Path, request: pytest.FixtureRequest) -> Any:
    """Return the copies ``second``, ``third`` and ``broken``, kept in pytest's cache folder."""
    program = runpy.run_path(str(project_root / "tests" / "devices" / "driver_copies.py"))
    assert request.config.cache is not None
    place = hashlib.sha256(str(driver.resolve()).encode()).hexdigest()[:8]
    return program["make_copies"](driver, request.config.cache.mkdir(f"drivers-{place}"))


@pytest.fixture(scope="session")
def several_devices(request: pytest.FixtureRequest) -> Callable[[int], dict[str, str]]:
    """Return a function that gives the variables of a process with two or three root devices.

    Their platforms are as many; devices that are simulated, or PoCL's, have one platform, and one
    default context.
    """

    def variables(count: int) -> dict[str, str]:
        if clean_environment.IS_SIMULATED:
            return {"CreateMultipleRootDevices": str(count)}
        if clean_environment.IS_POCL:
            return {"POCL_DEVICES": " ".join(["cpu"] * count)}
        copies = request.getfixturevalue("driver_copies")
        drivers = [request.getfixturevalue("driver"), copies["second"], copies["third"]]
        return {"OCL_ICD_FILENAMES": ":".join(map(str, drivers[:count]))}

    return variables
