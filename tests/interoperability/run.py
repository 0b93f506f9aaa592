# SPDX-License-Identifier: Apache-2.0
"""Exchange arrays with other libraries, in virtual environments of their own.

dpctl.tensor and dpnp need different major releases of the SYCL runtime, of which a process and an
extension have one; the libraries in "consumers" take the newest. So each environment gets its own
build of this package. There the conformance suite runs with each library, our tests, the DLPack
tests that the peers' wheels carry, and the examples of docs/how-to/; with dpnp also the examples of
an extension and of oneDNN, and the plot of the tutorial. At the end, the suite runs on several root
devices of PoCL, and one of dpctl.tensor's runtime beside dpnp's.

``python3 dev.py interoperability`` runs this program, two environments at once, and compares
docs/consumers.md with the results; ``--write`` renews the page. Further arguments are for pytest:
``-m extended`` runs the tests that take long. ``python3 tests/interoperability/run.py dpnp -k
strides`` runs one environment, and does not look at the page.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "drivers")]

import consumers_page  # noqa: E402
import rig  # noqa: E402

from dev import DEV, Environment, RefusalError, make_environment  # noqa: E402

HERE = Path(__file__).resolve().parent
# The tests of each environment, besides those of all.
TESTS = {
    "dpnp": ("order", "random_program", "tutorial", "usm_arrays"),
    "consumers": ("pytorch",),
    "dpctl-tensor": ("order", "usm_arrays"),
}
# The modules of DLPack tests in the peers' wheels.
OWN_TESTS = {
    "dpctl-tensor": ["dpctl.tests.test_usm_ndarray_dlpack"],
    "dpnp": [
        "dpnp.tests.tensor.test_usm_ndarray_dlpack",
        "dpnp.tests.test_dlpack",
        "dpnp.tests.third_party.cupy.core_tests.test_dlpack",
    ],
}
NO_TESTS = 5  # pytest's exit status


def run_pytest(
    environment: Environment, *command: str | Path, arguments: list[str], **variables: str
) -> None:
    """Run a command of pytest with more arguments, which may leave no test of its own."""
    status = environment.run(*command, *arguments, check=False, **variables)
    if status not in ((0, NO_TESTS) if arguments else (0,)):
        raise RefusalError(
            f"pytest: expected exit status 0, found {status}; read what it printed above"
        )


def run_own_tests(environment: Environment, peer: str, arguments: list[str]) -> None:
    """Run the DLPack tests that the peer's wheel carries, with ours on either side."""
    for side in ("producer", "consumer"):
        run_pytest(
            environment,
            *(environment.python, "-W", "ignore", "-m", "pytest", "-q", "-p", "peers_own_tests"),
            # Their tests are configured by nothing of ours.
            *("-c", os.devnull, "--rootdir", environment.folder, "-p", "no:cacheprovider"),
            *(f"--ours={side}", f"--counts={environment.folder / f'own_tests_{side}.json'}"),
            *("--pyargs", *OWN_TESTS[peer]),
            arguments=arguments,
            PYTHONPATH=f"{HERE}{os.pathsep}{ROOT / 'tests' / 'python' / 'support'}",
        )


def run_examples(environment: Environment, arguments: list[str]) -> None:
    """Build and test copies of the examples for the environment's runtime.

    Of the extension, whose other tests tests/python/test_examples.py runs, those with dpnp's
    arrays; of oneDNN all, by the commands of its README.
    """
    examples = environment.folder / "examples"
    shutil.rmtree(examples, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "build", ".pytest_cache")
    shutil.copytree(ROOT / "examples", examples, ignore=ignored)
    install = (environment.python, "-m", "pip", "install", "-q", "--no-build-isolation")
    environment.run(*install, "--no-deps", examples / "extension")
    environment.run(environment.python, "-m", "pytest", "-q", "-k", "dpnp", examples / "extension")
    readme = (examples / "onednn" / "README.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
    for command in commands.splitlines():
        folder = shlex.quote(str(examples / "onednn"))
        line = ["sh", "-c", f'cd {folder} && {command} "$@"', "sh"]
        if command.endswith("-m pytest"):
            run_pytest(environment, *line, arguments=arguments)
        else:
            environment.run(*line)


def exchange_with(peer: str, arguments: list[str]) -> None:
    """Make the environment of one peer, and run its tests there."""
    start = time.monotonic()
    environment = make_environment(f"interoperability-{peer}")
    requirements = f"requirements/interoperability-{peer}.txt"
    # What is imported is compiled then; the rest of these libraries never is.
    environment.install("-q", "--no-compile", "-r", requirements)
    environment.install_project("--no-deps", ".")
    if peer == "dpnp":  # the kernel compiler needs the runtime of its major release
        run_examples(environment, arguments)
    names = ("conformance_of_peers", "guide_examples", *TESTS[peer])
    files = [HERE / f"test_{name}.py" for name in names]
    pytest = (environment.python, "-m", "pytest", "--durations=5", "-m", "not extended")
    run_pytest(environment, *pytest, *files, arguments=arguments)
    if peer in OWN_TESTS:
        run_own_tests(environment, peer, arguments)
    print(f"\n{peer}: {time.monotonic() - start:.0f} s")


def run_on_pocl(arguments: list[str]) -> None:
    """Run dpctl.tensor and dpnp on root devices of one platform: by PoCL and the libc it needs."""
    try:
        reason = rig.make().get(rig.POCL.name)
    except (RefusalError, OSError) as error:
        reason = str(error)
    if reason is not None:
        print(f"\n##### PoCL: NOT RUN: {reason}")
        return
    for peer in OWN_TESTS:
        environment = make_environment(f"interoperability-{peer}")
        python = environment.folder / "bin" / "python-on-pocl"
        shutil.copy(rig.VENV.python, python)  # it finds the packages of the folder that it is in
        pytest = (python, "-m", "pytest", "-q", HERE / "test_roots.py")
        variables = rig.CONFIGURATIONS["pocl"][1] | {"DRIVER_CONFIGURATION": "pocl"}
        run_pytest(environment, *pytest, arguments=arguments, **variables)


def exchange_apart(peer: str, arguments: list[str]) -> str:
    """Run one environment in a process of its own; print what it printed, return the last line."""
    done = subprocess.run(
        [sys.executable, __file__, peer, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(done.stdout, flush=True)
    return f"{peer}: FAILED" if done.returncode else done.stdout.splitlines()[-1]


def exchange_with_all(write: bool, arguments: list[str]) -> int:
    """Run all environments, and compare the page with their results, or renew it."""
    # Two, because pip and most tests have one thread.
    with ThreadPoolExecutor(2) as pool:
        summary = list(pool.map(lambda peer: exchange_apart(peer, arguments), TESTS))
    print("\n".join(summary), flush=True)
    if any(line.endswith("FAILED") for line in summary):
        return 1
    run_on_pocl(arguments)
    of_dpnp = make_environment("interoperability-dpnp")
    pytest = (of_dpnp.python, "-m", "pytest", "-q", HERE / "test_two_runtimes.py")
    run_pytest(of_dpnp, *pytest, arguments=arguments)
    return consumers_page.compare(DEV, write)


def main() -> int:
    """Exchange arrays with the peers that were asked for; return 0 if all tests passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", nargs="?", choices=list(TESTS), help="one of them; else all")
    parser.add_argument("--write", action="store_true", help="renew docs/consumers.md")
    chosen, arguments = parser.parse_known_args()
    try:
        if chosen.peer is None:
            return exchange_with_all(chosen.write, arguments)
        exchange_with(chosen.peer, arguments)
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
