# SPDX-License-Identifier: Apache-2.0
"""The program: root devices and their DLPack ids, a real round trip, and refusals in words.

``python -m usm_dlpack`` shows all three and exits with 0 only if all of it really happened;
``python -m usm_dlpack devices`` shows the devices, with ``--json`` for machines.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m usm_dlpack", description=__doc__)
    parser.set_defaults(command="all", json=False)
    commands = parser.add_subparsers(dest="command", metavar="command")
    devices = commands.add_parser("devices", help="the root devices and their DLPack ids")
    devices.add_argument("--json", action="store_true", help="for machines")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    options = _parse(arguments)
    from usm_dlpack import _devices

    if options.command == "devices":
        return _devices.show(as_json=options.json)
    if _devices.show(as_json=False) != 0:
        return 1
    from usm_dlpack import _demonstration

    return _demonstration.show()


if __name__ == "__main__":
    sys.exit(main())
