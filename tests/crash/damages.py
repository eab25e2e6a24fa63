# SPDX-License-Identifier: Apache-2.0
"""Damages that can happen to a file, by name; each is a function of the path.

It returns the position of the first byte that it affects.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = 4096
_FOREIGN: Final = b"This file belongs to somebody else.\n"


def gone(path: Path) -> int:
    path.unlink()
    return 0


def empty(path: Path) -> int:
    path.write_bytes(b"")
    return 0


def halved(path: Path) -> int:
    half = path.stat().st_size // 2
    os.truncate(path, half)
    return half


def zeroed(path: Path) -> int:
    path.write_bytes(bytes(path.stat().st_size))
    return 0


def page_zeroed(path: Path) -> int:
    """Fills a page in the middle, or a quarter of a smaller file, with zeros."""
    data = bytearray(path.read_bytes())
    length = min(_PAGE_BYTES, max(len(data) // 4, 1))
    start = len(data) // 2 // length * length
    data[start : start + length] = bytes(len(data[start : start + length]))
    path.write_bytes(data)
    return start


def bit_flipped(path: Path) -> int:
    """Flips a bit of a byte in the middle that is not zero, since most zeros mean nothing."""
    data = bytearray(path.read_bytes())
    written = [at for at, byte in enumerate(data) if byte]
    if not written:
        return len(data)
    at = written[len(written) // 2]
    data[at] ^= 0x10
    path.write_bytes(data)
    return at


def foreign(path: Path) -> int:
    """Replaces the content by another one of the same length."""
    size = path.stat().st_size
    path.write_bytes((_FOREIGN * (size // len(_FOREIGN) + 1))[:size])
    return 0


def dangling_link(path: Path) -> int:
    path.unlink()
    path.symlink_to("/nowhere/at/all")
    return 0


def directory(path: Path) -> int:
    path.unlink()
    path.mkdir()
    return 0


Damage = Callable[[Path], int]
DAMAGES: Final[dict[str, Damage]] = {
    each.__name__: each
    for each in (
        gone, empty, halved, zeroed, page_zeroed, bit_flipped, foreign, dangling_link, directory,
    )
}  # fmt: skip


def folder_gone(path: Path) -> None:
    shutil.rmtree(path)


FOREIGN_NAMES: Final = (".DS_Store", ".nfs000000000012", "notes.txt")


def repair(path: Path, original: Path) -> None:
    """Puts a file or folder back as it was."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if original.is_dir():
        shutil.copytree(original, path)
    elif original.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(original, path)
