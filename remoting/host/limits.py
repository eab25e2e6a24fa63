# SPDX-License-Identifier: Apache-2.0
"""How many files a server process may have open, and how many of these may be connections.

A broker has a descriptor for each connection and, before Python 3.13, for each mapped file; a
thousand queues are a thousand files. The usual soft limit of 1024 is a shell's default, not a
decision. Counterpart of the ulimit lines in the original's start scripts.

A quarter of the descriptors is reserved, within bounds, and connections may use the others: the
store must be able to go on to its next file however many clients there are. A new descriptor always
has the lowest number that is free. So the number that a newly opened file gets tells whether the
connections have used up their part, whatever else the process has open.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from typing import Final

WANTED_FILES = 655_350
"""The number of open files that a server asks for; the original's os.sh sets the same."""


def raise_file_limit(most: int = WANTED_FILES) -> int:
    """Raises the soft limit of open files to the hard one, but at most to `most`.

    Returns the limit that holds now. `most` is smaller where the reactor cannot watch descriptors
    with higher numbers: then the limit is also lowered to it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if most < WANTED_FILES or (soft != resource.RLIM_INFINITY and soft < wanted):
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return file_limit()


def file_limit() -> int:
    """Returns how many files this process may have open: the soft limit."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


MIN_RESERVE: Final = 32
MAX_RESERVE: Final = 1_024
QUIET_SWEEPS: Final = 10
"""How many sweeps without a refused connection must follow one another before it is reported, with
the next one, that connections are accepted again."""


def reserved_files(limit: int) -> int:
    """Returns how many of `limit` descriptors connections may not use."""
    return min(max(limit // 4, MIN_RESERVE), MAX_RESERVE)


class ConnectionLimit:
    """Decides whether a further connection is accepted, by the descriptors that are left.

    Refusing begins with the first refused connection and ends when none was refused for a while, so
    that two log lines suffice for clients that connect again and again.
    """

    def __init__(self) -> None:
        self.refused = 0
        """How many connections were refused since refusing began; 0 while all are accepted."""
        self._quiet_sweeps = 0

    def takes(self) -> bool:
        """Returns whether a just accepted connection can stay, and counts it if it cannot."""
        limit = file_limit()
        if limit == resource.RLIM_INFINITY:
            return True
        if _next_descriptor(limit) < limit - reserved_files(limit):
            return True
        self.refused += 1
        self._quiet_sweeps = 0
        return False

    def sweep(self) -> int:
        """Returns how many connections were refused if refusing has just ended, else 0.

        It has to be called every second.
        """
        if not self.refused:
            return 0
        self._quiet_sweeps += 1
        if self._quiet_sweeps <= QUIET_SWEEPS:
            return 0
        refused, self.refused = self.refused, 0
        return refused


def _next_descriptor(limit: int) -> int:
    """Returns the descriptor that the next opened file gets, or `limit` if none can be opened."""
    try:
        descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return limit
    os.close(descriptor)
    return descriptor
