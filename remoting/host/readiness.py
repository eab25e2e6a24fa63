# SPDX-License-Identifier: Apache-2.0
"""Announces that a server is ready or stops: by a file, and by systemd's protocol.

With `Type=notify` systemd gives the path of a socket in NOTIFY_SOCKET and waits for READY=1, so
that units that come after this one find it serving.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from txrocketmq.remoting.process.replaced_file import check_replaceable

SOCKET: Final = "NOTIFY_SOCKET"
READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(state: str) -> None:
    """Tells systemd `state`, if it started this process; never fails and never waits."""
    path = os.environ.get(SOCKET, "")
    if path[:1] not in ("/", "@"):
        return
    address = f"\0{path[1:]}" if path[0] == "@" else path
    flags = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    with suppress(OSError), socket.socket(socket.AF_UNIX, flags) as notified:
        notified.sendto(state.encode(), address)


class ReadyFile:
    """A file that exists while the server is ready, with its addresses in one line."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._is_written = False

    def write(self, addresses: str) -> None:
        """Writes the addresses into the file, whole or not at all. Raises OSError."""
        if self._path is None:
            return
        check_replaceable(self._path)
        unfinished = self._path.with_name(self._path.name + ".tmp")
        unfinished.write_text(f"{addresses}\n")
        unfinished.replace(self._path)
        self._is_written = True

    def remove(self) -> None:
        """Removes the file if `write` has written it."""
        if self._path is not None and self._is_written:
            with suppress(OSError):
                self._path.unlink()
