# SPDX-License-Identifier: Apache-2.0
"""Gives an interpreter of Debian testing to a Debian that does not have this version of Python.

Its packages are unpacked into a folder, not installed, and apt keeps its lists there too. The
interpreter is told where its own C library is, which is newer than the system's.
"""

import subprocess
from pathlib import Path

from dev import run

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def unpack_interpreter(version: str, folder: Path, patchelf: Path) -> Path | None:
    """Return an interpreter of Debian testing that can make environments and build extensions.

    None if the mirror that apt uses has no such version, or there is no apt of Debian.
    """
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    try:
        of_debian = [*targets, "Origin: Debian", "Label: Debian", "Created-By: Packages"]
        mirror, *_ = subprocess.check_output(of_debian, text=True).split()
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "testing.list").write_text(f"deb [signed-by={KEYRING}] {mirror} testing main\n")
    places = {
        "Dir::Etc::SourceList": folder / "testing.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::State": folder / "state",
        "Dir::State::Status": "/dev/null",
        "Dir::Cache": folder / "cache",
        "Debug::NoLocking": "true",
        "APT::Sandbox::User": "root",
    }
    options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
    run("apt-get", *options, "-qq", "update")
    packages = [f"python{version}-venv", f"python{version}-dev"]
    if run("apt-cache", *options, "show", "--quiet", *packages, check=False) != 0:
        return None
    get = ["-qq", "--yes", "--no-install-recommends", "--download-only", "install"]
    run("apt-get", *options, *get, *packages)
    root = folder / "root"
    for package in sorted((folder / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    interpreter = root / "usr" / "bin" / f"python{version}"
    libraries = root / "usr" / "lib" / "x86_64-linux-gnu"
    loader = libraries / "ld-linux-x86-64.so.2"
    run(patchelf, "--set-interpreter", loader, interpreter)
    run(patchelf, "--force-rpath", "--set-rpath", libraries, interpreter)
    # Python.h includes a header by a path that begins in the folder above.
    headers = root / "usr" / "include"
    (headers / f"python{version}" / libraries.name).symlink_to(headers / libraries.name)
    # Where `venv` finds pip.
    wheels = "/usr/share/python-wheels"
    for config in (root / "usr" / "lib" / f"python{version}").glob("_sysconfigdata_*.py"):
        if not config.is_symlink():
            config.write_text(config.read_text().replace(wheels, f"{root}{wheels}"))
    return interpreter
