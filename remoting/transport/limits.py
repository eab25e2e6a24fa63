# SPDX-License-Identifier: Apache-2.0
"""How many files a server process may have open.

A broker has a descriptor for each connection and, before Python 3.13, for each mapped file; a
thousand queues are a thousand files. The usual soft limit of 1024 is a shell's default, not a
decision. Counterpart of the ulimit lines in the original's start scripts.
"""

from __future__ import annotations

import resource
from contextlib import suppress

WANTED_FILES = 655_350
"""As the original's os.sh sets it."""


def raise_file_limit() -> int:
    """Raises the soft limit as far as the hard one allows; returns what holds now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
