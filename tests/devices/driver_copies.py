# SPDX-License-Identifier: Apache-2.0
"""Make copies of the OpenCL CPU driver, which a process loads as more platforms and root devices.

The loader takes each *file* once, so a link is not another platform: the library is copied (about
100 MB), and its siblings are linked beside it. In the folder ``broken`` the siblings are missing:
that driver, loaded after a whole one, lists a device on which no context can be made
(``UR_RESULT_ERROR_DEVICE_NOT_AVAILABLE``). Alone, or before a whole one, it lists no device.

Used by ctest and by the Python tests; ``OCL_ICD_FILENAMES`` then names the libraries, with ``:``
between them.
"""

import os
import shutil
import sys
from pathlib import Path


def copy_driver(driver: Path, folder: Path, *, siblings: bool) -> Path:
    """Copy one driver library into a folder, unless it is there; return the copy."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / driver.name
    if not copy.exists() or copy.stat().st_size != driver.stat().st_size:
        partial = folder / f"partial.{os.getpid()}"
        shutil.copyfile(driver, partial)
        partial.replace(copy)
    for sibling in driver.parent.iterdir() if siblings else ():
        link = folder / sibling.name
        if sibling.name != driver.name and not os.path.lexists(link):
            link.symlink_to(sibling)
    return copy


def make_copies(driver: Path, root: Path) -> dict[str, Path]:
    """Make the copies ``second``, ``third`` and ``broken``, and an empty folder ``none``."""
    (root / "none").mkdir(parents=True, exist_ok=True)
    return {
        name: copy_driver(driver, root / name, siblings=name != "broken")
        for name in ("second", "third", "broken")
    }


if __name__ == "__main__":
    make_copies(Path(sys.argv[1]), Path(sys.argv[2]))
