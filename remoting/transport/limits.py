# SPDX-License-Identifier: Apache-2.0
"""How many files a server process may have open, and how many of these may be connections.

A broker has a descriptor for each connection and, before Python 3.13, for each mapped file; a
thousand queues are a thousand files. The usual soft limit of 1024 is a shell's default, not a
decision. Counterpart of the ulimit lines in the original's start scripts.

Connections may use the descriptors below the limit but for a reserve, a quarter of them: the store
must be able to go on to its next file however many clients there are. A new descriptor always has
the lowest number that is free, so the number that a file gets which is opened now says, whatever
else the process has open, whether connections have come to their end.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from typing import Final

WANTED_FILES = 655_350
"""As the original's os.sh sets it."""


def raise_file_limit(most: int = WANTED_FILES) -> int:
    """Sets the soft limit to as many as the hard one allows; returns what holds now.

    `most` is less where the reactor cannot watch descriptors of any number: then the limit may
    become lower than it was.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if most < WANTED_FILES or (soft != resource.RLIM_INFINITY and soft < wanted):
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return file_limit()


def file_limit() -> int:
    """How many files this process may have open: the soft limit."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


MIN_RESERVE: Final = 32
MAX_RESERVE: Final = 1_024
QUIET_SWEEPS: Final = 10
"""How many sweeps nobody must have been refused in, for refusing to be over."""


def reserved_files(limit: int) -> int:
    """How many descriptors of so many connections may not use."""
    return min(max(limit // 4, MIN_RESERVE), MAX_RESERVE)


class ConnectionLimit:
    """Decides whether a further connection is accepted, by the descriptors that are left.

    Refusing begins with the first refused connection and is over when none was refused for a while,
    so that two log lines suffice for clients that connect again and again.
    """

    def __init__(self) -> None:
        self.refused = 0
        """How many were refused since refusing began; 0 while all are taken."""
        self._quiet_sweeps = 0

    def takes(self) -> bool:
        """Whether a connection that was just accepted can stay."""
        limit = file_limit()
        if limit == resource.RLIM_INFINITY:
            return True
        if _next_descriptor(limit) < limit - reserved_files(limit):
            return True
        self.refused += 1
        self._quiet_sweeps = 0
        return False

    def sweep(self) -> int:
        """To be called every second: how many were refused, when that has just ended; else 0."""
        if not self.refused:
            return 0
        self._quiet_sweeps += 1
        if self._quiet_sweeps <= QUIET_SWEEPS:
            return 0
        refused, self.refused = self.refused, 0
        return refused


def _next_descriptor(limit: int) -> int:
    """The number that a file gets which is opened now; the limit when none can be opened."""
    try:
        descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return limit
    os.close(descriptor)
    return descriptor
