# SPDX-License-Identifier: Apache-2.0
"""Makes what a release uploads, in dist/: the sdist, and from it a wheel for each Python.

``python3 dev.py wheels`` runs this program. pip builds each wheel as it builds for users, with the
oldest supported SYCL runtime; the wheel takes libsycl from the environment that it is installed in.
Then each is installed in an environment that has nothing else, and exchanges an array; the last one
as docs/how-to/install.md says, with an extension that requires it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from every_python import (  # noqa: E402
    check_wheel,
    find_interpreter,
    install_as_users_do,
    make_sdist,
    require_interpreters,
)

from dev import Environment, RefusalError, make_environment  # noqa: E402

DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheels"
# The tag of the wheel that each version takes; that of the stable ABI is for all later ones too.
TAGS = {
    "3.10": "cp310-cp310-manylinux",
    "3.11": "cp311-cp311-manylinux",
    "3.12": "cp312-abi3-manylinux",
}
# They are of the SYCL runtime, which the wheel's requirement dpctl brings.
OF_RUNTIME = ("libsycl.so.*", "libur_loader.so.*", "libOpenCL.so.*")
EXCHANGE = """
import numpy as np
import usm_dlpack

x = usm_dlpack.from_dlpack(np.arange(6.0), device=(14, 0))  # a copy in USM
y = usm_dlpack.from_dlpack(x)
assert (x.device, x.usm_type, y.data) == ((14, 0), "device", x.data)
assert (np.from_dlpack(y, device="cpu") == np.arange(6.0)).all()
print(f"usm_dlpack {usm_dlpack.__version__}: {x!r} was exchanged")
"""


def make_wheel(tools: Environment, version: str, sdist: Path) -> None:
    """Build the wheel of one version, install it alone, and exchange an array."""
    interpreter = find_interpreter(version)
    assert interpreter is not None, "require_interpreters has seen it"
    environment = make_environment(f"wheel-{version}", interpreter)
    built, tagged = WORK / version / "built", WORK / version / "tagged"
    pip = (environment.python, "-m", "pip")
    environment.run(*pip, "wheel", "--no-deps", "--wheel-dir", built, sdist)
    excluded = [word for library in OF_RUNTIME for word in ("--exclude", library)]
    wheels = built.glob("usm_dlpack-*.whl")
    tools.run("auditwheel", "repair", *excluded, "--wheel-dir", tagged, *wheels)
    wheel = check_wheel(tagged, TAGS[version])
    shutil.copy(wheel, DIST)
    if version == "3.12":
        install_as_users_do(environment, DIST)
    else:
        environment.run(*pip, "install", "-q", f"{wheel}[cpu]")
    environment.run(environment.python, "-c", EXCHANGE)
    environment.run(environment.python, "-m", "usm_dlpack", "errors", "out_of_bounds")
    shutil.rmtree(environment.folder)  # it takes two gigabytes


def main() -> int:
    """Make all, one after the other; return the exit status."""
    try:
        require_interpreters(tuple(TAGS))
        for folder in (DIST, WORK):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        tools = make_environment("release")
        tools.install("-q", "-r", "requirements/wheels.txt")
        sdist = make_sdist(DIST)
        for version in TAGS:
            make_wheel(tools, version, sdist)
        tools.run("twine", "check", "--strict", *DIST.iterdir())
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    print("\n" + "\n".join(str(file) for file in sorted(DIST.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
