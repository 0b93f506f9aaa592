# SPDX-License-Identifier: Apache-2.0
"""Installs the package for every supported version of Python, in every way, and tests it there.

``python3 dev.py pythons`` runs this program: it makes the sdist, and for each version an
environment in which the package is built with nothing but the build requirements, no isolation and
no index. ``python3 tests/packaging/every_python.py 3.13`` tries one version again, with the sdist
and the wheel of the last run; both are in ``build/pythons/``, with a log for each version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dev import (  # noqa: E402
    WHEELS,
    Environment,
    RefusalError,
    make_environment,
    require_debian_packages,
    run,
)

HERE = Path(__file__).resolve().parent
WORK = ROOT / "build" / "pythons"
# In this order they are begun, two at a time. The last takes the wheel that the first builds: one
# of the stable ABI is for all later versions.
VERSIONS = ("3.12", "3.10", "3.11", "3.13")
# Real exchanges, and what may differ from one version, or way of installing, to another; all tests
# run on one version by `dev.py test`.
EXCHANGES = ("packaging", "from_dlpack", "to_dlpack_tensor", "exchange_api", "lifetimes", "errors")
IN_EDITABLE_INSTALL = ("packaging", "exchange_api")
WHEEL_LIMIT = 1_000_000


def find_interpreter(version: str) -> Path | None:
    """Return an interpreter that can build extensions: this one's version, pyenv's, or on PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    newest_first = sorted(
        pyenv.glob(f"{version}.*"),
        key=lambda folder: [int(number) for number in re.findall(r"\d+", folder.name)],
        reverse=True,
    )
    folders = [
        Path(sys.executable).parent,
        *(folder / "bin" for folder in newest_first),
        *map(Path, os.get_exec_path()),
    ]
    # A shim of pyenv exits with an error where its version is not the one that is chosen.
    check = (
        "import ensurepip, os, sys, sysconfig; "
        f"assert '%d.%d' % sys.version_info[:2] == '{version}'; "
        "assert os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))"
    )
    for candidate in (folder / f"python{version}" for folder in folders):
        if candidate.exists():
            done = subprocess.run([candidate, "-c", check], capture_output=True, check=False)
            if done.returncode == 0:
                return candidate
    return None


def require_interpreters(versions: tuple[str, ...]) -> None:
    """Install from the system's packages the versions of Python that are missing, or refuse."""
    for version in versions:
        packages = [f"python{version}", f"python{version}-dev", f"python{version}-venv"]
        if find_interpreter(version) is None and shutil.which("apt-cache") is not None:
            known = run("apt-cache", "show", "--quiet", packages[1], check=False) == 0
            require_debian_packages(packages if known else [])
    missing = sorted(version for version in versions if find_interpreter(version) is None)
    if missing:
        raise RefusalError(
            f"interpreters: expected Python {', '.join(sorted(versions))} with headers and "
            f"ensurepip, found no {', '.join(missing)} on PATH or of pyenv; "
            f"run `pyenv install {' '.join(missing)}`"
        )


def make_sdist(folder: Path) -> Path:
    """Make the sdist of this tree, which carries the headers that wheels of others carry."""
    environment = make_environment("venv")
    environment.install("-q", "-r", "requirements/test.txt")
    make = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    environment.run(environment.python, "-c", make, folder)
    (sdist,) = folder.glob("usm_dlpack-*.tar.gz")
    return sdist


def pip(environment: Environment, *words: str | Path) -> None:
    """Let pip build with what is in the environment alone: no isolation, no index."""
    alone = ("--no-build-isolation", "--no-index", "--no-deps", "--force-reinstall")
    command = [*words, *(alone if words[0] == "install" else alone[:-1])]
    environment.run(environment.python, "-m", "pip", *command)


def check_wheel(folder: Path, tag: str) -> Path:
    """Return the wheel of a folder; refuse one that is large, or has another tag."""
    (wheel,) = folder.glob("usm_dlpack-*.whl")
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size} bytes", flush=True)
    if f"-{tag}" not in wheel.name or size >= WHEEL_LIMIT:
        raise RefusalError(
            f"wheel: expected the tag {tag} and less than {WHEEL_LIMIT} bytes, "
            f"found {wheel.name} of {size} bytes; see [tool.scikit-build] in pyproject.toml"
        )
    return wheel


def install_as_users_do(environment: Environment, wheels: Path) -> None:
    """Install our wheel and an extension that requires it, as docs/how-to/install.md says."""
    script, project = ROOT / "docs" / "examples" / "install.sh", HERE / "extension"
    environment.run("bash", script, WHEELS=str(wheels), PROJECT=str(project))
    environment.run(environment.python, HERE / "use_extension.py")


def test(environment: Environment, *subjects: str) -> None:
    """Run the round trip as a program, and tests."""
    # What the package and its tests need to run; the package itself is there.
    environment.install("-q", "usm-dlpack[cpu,test]")
    environment.run(environment.python, "-m", "usm_dlpack")
    files = [f"tests/python/test_{subject}.py" for subject in subjects]
    cache = f"cache_dir={WORK / environment.folder.name}-cache"
    environment.run(environment.python, "-m", "pytest", "-q", "-o", cache, *files)


def try_version(version: str) -> None:
    """Install the package for one version in the ways that are its part, and test each."""
    interpreter = find_interpreter(version)
    assert interpreter is not None, "require_interpreters has seen it"
    environment = make_environment(f"python-{version}", interpreter)
    environment.install("-q", "-r", "requirements/test.txt", *WHEELS)
    folder = WORK / version
    objects = f"--config-settings=build-dir={folder / 'build'}"
    if version == "3.10":
        pip(environment, "install", *WORK.glob("usm_dlpack-*.tar.gz"))
        test(environment, *EXCHANGES)
    elif version == "3.11":
        pip(environment, "install", objects, ROOT)
        test(environment, *EXCHANGES)
    elif version == "3.12":
        pip(environment, "wheel", "--wheel-dir", folder, *WORK.glob("usm_dlpack-*.tar.gz"))
        wheel = check_wheel(folder, "cp312-abi3-")
        pip(environment, "install", wheel)
        test(environment, *EXCHANGES)
        install_as_users_do(environment, wheel.parent)
    else:
        pip(environment, "install", *(WORK / "3.12").glob("usm_dlpack-*.whl"))
        test(environment, "types", *EXCHANGES)
    # After a plain install from the tree, what it compiled is taken again.
    pip(environment, "install", objects, "--editable", ROOT)
    test(environment, *IN_EDITABLE_INSTALL)
    # Each takes two gigabytes.
    shutil.rmtree(environment.folder)


def try_apart(version: str) -> tuple[str, bool, float]:
    """Try one version in a process of its own, which writes a log; return whether all passed."""
    start = time.monotonic()
    with (WORK / f"{version}.log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, __file__, version], stdout=log, stderr=log, check=False
        )
    return version, done.returncode == 0, time.monotonic() - start


def try_all() -> int:
    """Try every version; return the exit status."""
    require_interpreters(VERSIONS)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    make_sdist(WORK)
    results = []
    # Two, because half of the work has one thread.
    with ThreadPoolExecutor(2) as pool:
        for version, passed, seconds in pool.map(try_apart, VERSIONS):
            print(f"\n=== Python {version}\n{(WORK / f'{version}.log').read_text()}", flush=True)
            results.append((version, passed, seconds))
    print()
    for version, passed, seconds in results:
        print(f"{'passed' if passed else 'FAILED'}  {seconds:5.0f} s  Python {version}")
    return 0 if all(passed for _, passed, _ in results) else 1


def main() -> int:
    """Try every version, or the one that is named."""
    try:
        if len(sys.argv) == 1:
            return try_all()
        try_version(sys.argv[1])
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
