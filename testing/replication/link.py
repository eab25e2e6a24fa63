# SPDX-License-Identifier: Apache-2.0
"""A link between a slave and its master that a test can cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

_READ_BYTES = 256 * 1024


class Link:
    """Listens on a free port of the loopback interface, and passes on what comes to another."""

    def __init__(self, port: int) -> None:
        self._to_port = port
        self._is_cut = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        """Where the slave connects, "host:port"."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Ends the connections that there are, and those that will be made."""
        with self._lock:
            self._is_cut = True
            ended, self._open = self._open, set()
        _end(ended)

    def join(self) -> None:
        """Lets connections be again."""
        self._is_cut = False

    def close(self) -> None:
        """Ends everything."""
        self.cut()
        _end({self._listener})

    def _accept(self) -> None:
        while True:
            try:
                slave, _ = self._listener.accept()
            except OSError:
                return
            try:
                master = socket.create_connection(("127.0.0.1", self._to_port), 5)
                master.settimeout(None)
            except OSError:
                slave.close()
                continue
            with self._lock:
                is_cut = self._is_cut
                if not is_cut:
                    self._open |= {slave, master}
            if is_cut:
                _end({slave, master})
                continue
            for source, target in ((slave, master), (master, slave)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for data in _pieces(source):
                target.sendall(data)
        with self._lock:
            self._open -= {source, target}
        _end({source, target})


def _pieces(source: socket.socket) -> Iterator[bytes]:
    while data := source.recv(_READ_BYTES):
        yield data


def _end(sockets: set[socket.socket]) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
