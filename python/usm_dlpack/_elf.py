# SPDX-License-Identifier: Apache-2.0
"""Which libraries a compiled module asks the loader for, read from the file itself.

A module that cannot be loaded cannot say it, and a machine may have no ``readelf``. Source: System
V ABI, "Object Files" and "Dynamic Linking".
"""

from __future__ import annotations

import struct
from pathlib import Path

_DYNAMIC, _LOAD = 2, 1  # p_type
_NEEDED, _STRTAB = 1, 5  # d_tag


def needed_libraries(file: Path) -> list[str]:
    """Return the names of the libraries that a 64-bit little-endian ELF file needs.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    data = file.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{file.name}: expected a 64-bit ELF file, found another; reinstall it")
    try:
        return _read(data)
    except (struct.error, ValueError) as error:
        raise ValueError(
            f"{file.name}: expected a whole ELF file, found a damaged one; reinstall it"
        ) from error


def _read(data: bytes) -> list[str]:
    (headers,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = []
    for number in range(count):
        kind, _, offset, address, _, length = struct.unpack_from(
            "<IIQQQQ", data, headers + number * size
        )
        segments.append((kind, offset, address, length))
    entries = [
        struct.unpack_from("<qQ", data, place)
        for kind, offset, _, length in segments
        if kind == _DYNAMIC
        for place in range(offset, offset + length, 16)
    ]
    names = next((value for tag, value in entries if tag == _STRTAB), 0)
    start = next(
        offset + names - address
        for kind, offset, address, length in segments
        if kind == _LOAD and address <= names < address + length
    )
    found = []
    for tag, value in entries:
        if tag == _NEEDED:
            end = data.index(b"\0", start + value)
            found.append(data[start + value : end].decode())
    return found
