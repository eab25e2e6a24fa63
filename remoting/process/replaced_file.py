# SPDX-License-Identifier: Apache-2.0
"""Writing files that are replaced as a whole, with the previous one kept as .bak.

Counterpart of MixAll.string2File, which writes into the file itself.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def check_replaceable(path: Path) -> None:
    """Raises OSError if something else than a file is there.

    Who is allowed to may rename a file over a device: a program that was to write to /dev/null
    would leave the whole machine without it.
    """
    if path.exists() and not path.is_file():
        code = errno.EISDIR if path.is_dir() else errno.EINVAL
        raise OSError(code, "this is no file that could be replaced", str(path))


def write_replacing(path: Path, data: bytes, *, is_private: bool = False) -> None:
    """Replaces a file whole, on disk when this returns; the previous one stays as .bak.

    At each moment the file or its .bak is whole, even if the file itself was damaged before. A file
    that `is_private` can be read by its owner only, from the first byte on. Raises OSError; the
    file is then as it was, unless it is only the .bak that could not be replaced.
    """
    check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    backup = path.with_name(path.name + ".bak")
    former = path.with_name(path.name + ".bak.tmp")
    try:
        if is_private:  # what a crash has left may have been anybody's
            temporary.unlink(missing_ok=True)
        with open(temporary, "wb", opener=_private if is_private else None) as file:
            _like(path, file.fileno())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        is_kept = _copied(path, former, is_private=is_private)
        if is_kept and backup.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(backup))
        temporary.replace(path)
        if is_kept:
            former.replace(backup)
    finally:
        for each in (temporary, former):
            with suppress(OSError):
                each.unlink(missing_ok=True)  # half a file only takes up room
    _sync_folder(path.parent)


def _like(path: Path, descriptor: int) -> None:
    """Gives an open file the mode and, where that is allowed, the owner of the one at the path."""
    try:
        before, now = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _private(name: str, flags: int) -> int:
    """Opens a file that it makes for its owner only."""
    return os.open(name, flags, 0o600)


def _copied(path: Path, target: Path, *, is_private: bool) -> bool:
    """Links or copies a file to a second name; returns False if there is no file."""
    if not path.exists():
        return False
    target.unlink(missing_ok=True)
    try:
        os.link(path, target)
    except OSError:
        with open(target, "wb", opener=_private if is_private else None) as file:
            file.write(path.read_bytes())
    return True


def _sync_folder(path: Path) -> None:
    """Makes new names in a folder durable, where the file system can do that."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(folder)
    finally:
        os.close(folder)
