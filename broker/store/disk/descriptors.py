# SPDX-License-Identifier: Apache-2.0
"""Descriptors: what of the process's open files the store may use.

Up to Python 3.12 each mapping keeps a descriptor, and strangers may have queues made without end.
So when mappings have half of all descriptors, whoever can do without one for a while gives it up
first (`is_short`), and the last descriptors are left to what must be opened in any case:
configuration files, connections, directories. And some spare descriptors are held: closing one of
them makes room for a file of the store that must be opened now.

A new descriptor has the lowest number that is free, so that number tells how many are in use.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading
from contextlib import suppress
from typing import Final

NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE})
MIN_KEPT: Final = 8
MAX_KEPT: Final = 256
_SPARES: Final = 8
_ARE_NEEDED: Final = sys.version_info < (3, 13)
"""Whether a mapping needs a descriptor."""


def limit() -> int:
    """How many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def kept(most: int) -> int:
    """How many of `most` descriptors mappings leave to others."""
    return min(max(most // 16, MIN_KEPT), MAX_KEPT)


def next_number() -> int:
    """The number that the next descriptor gets. Raises OSError when there is none left."""
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(descriptor)
    return descriptor


def check_mappable(path: str) -> None:
    """Raises OSError when a further mapping would take a descriptor that is kept for others."""
    most = limit()
    if _ARE_NEEDED and most != resource.RLIM_INFINITY and next_number() >= most - kept(most):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)


class Mappings:
    """The mappings of the process that have a descriptor."""

    def __init__(self) -> None:
        self.count = 0
        """How many there are, but for those that somebody still holds a slice of."""

    def is_short(self) -> bool:
        """Whether others should be given up before one more is made."""
        most = limit()
        if not _ARE_NEEDED or most == resource.RLIM_INFINITY:
            return False
        try:
            return self.count >= most // 2 or next_number() >= most - kept(most)
        except OSError:
            return True


mappings: Final = Mappings()


class Spares:
    """Spare descriptors: closing one of them makes room for a file that must be opened.

    There is one set for the process. It is filled when a store is opened, and again whenever one
    was given away and something is closed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._descriptors: list[int] = []

    def fill(self) -> None:
        """Opens the missing descriptors, or as many as possible."""
        with self._lock, suppress(OSError):
            while len(self._descriptors) < _SPARES:
                self._descriptors.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def give(self) -> bool:
        """Closes one descriptor; returns False when none is left."""
        with self._lock:
            if not self._descriptors:
                return False
            os.close(self._descriptors.pop())
            return True


spares: Final = Spares()


def open_file(path: str, flags: int) -> int:
    """Opens the file, using up a spare descriptor if there is no other."""
    flags |= os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno not in NO_DESCRIPTORS or not spares.give():
            raise
    return os.open(path, flags, 0o644)
