# SPDX-License-Identifier: Apache-2.0
"""Runs a server, and measures how much of the processor the longest turn of its reactor took.

    python -m tests.beside.measured FILE MODULE ARGUMENTS

The first 8 bytes of FILE are that number of seconds, which others may read and set to 0 at any
time. A turn is what happens between two waits for something to happen on the sockets. Only servers
under test run this way.
"""

from __future__ import annotations

import mmap
import runpy
import struct
import sys
import time
from pathlib import Path
from typing import Any, Final

LONGEST: Final = struct.Struct("=d")


def shared(path: Path) -> mmap.mmap:
    """Maps the file with the number, which is made if there is none."""
    if not path.exists():
        path.write_bytes(bytes(LONGEST.size))
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), LONGEST.size)


class Poller:
    """What the reactor waits with; whatever runs between two waits is a turn."""

    def __init__(self, poller: Any, longest: mmap.mmap) -> None:
        self._poller = poller
        self._longest = longest
        self._began_s = time.thread_time()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._poller, name)

    def poll(self, *arguments: Any) -> Any:
        """Ends a turn, waits, and begins the next one."""
        turn_s = time.thread_time() - self._began_s
        if turn_s > LONGEST.unpack_from(self._longest)[0]:
            LONGEST.pack_into(self._longest, 0, turn_s)
        try:
            return self._poller.poll(*arguments)
        finally:
            self._began_s = time.thread_time()


def main() -> None:
    """Runs the module with the rest of the arguments."""
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

    path, module, *arguments = sys.argv[1:]
    its: Any = reactor
    its._poller = Poller(its._poller, shared(Path(path)))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
