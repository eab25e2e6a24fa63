# SPDX-License-Identifier: Apache-2.0
"""A process that pipelines requests: each of its peers writes all its requests at once, and reads.

    python -m tests.beside.load PORT PEERS SECONDS < frames

Standard input has the requests of the first peer, then those of the second and so on: for each the
number of requests and the length of the frames, both as 4 bytes, and the frames. It ends when all
answers have come or after SECONDS, and prints how many came.
"""

from __future__ import annotations

import selectors
import socket
import struct
import sys
import time

READ_BYTES = 1 << 18


class Peer:
    """A connection that writes all it has to say at once, and counts the answers."""

    def __init__(self, port: int, wanted: int, frames: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.wanted = wanted
        self.left = memoryview(frames)
        self._head = b""
        self._rest = 0

    def write(self) -> None:
        """Writes as much as the socket takes."""
        try:
            self.left = self.left[self.socket.send(self.left) :]
        except BlockingIOError:
            return

    def read(self) -> bool:
        """Counts the answers of a read; returns whether the connection is still there."""
        try:
            data = self.socket.recv(READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        at = 0
        while at < len(data):
            if self._rest:
                taken = min(self._rest, len(data) - at)
                at += taken
                self._rest -= taken
                self.wanted -= not self._rest
            else:
                taken = min(4 - len(self._head), len(data) - at)
                self._head += data[at : at + taken]
                at += taken
                if len(self._head) == 4:
                    (self._rest,) = struct.unpack(">i", self._head)
                    self._head = b""
        return bool(data)


def run(port: int, peers: int, seconds: float) -> str:
    """Loads the server; returns how many answers came of how many, and how many peers were lost."""
    made = []
    for _ in range(peers):
        wanted, size_bytes = struct.unpack(">ii", sys.stdin.buffer.read(8))
        made.append(Peer(port, wanted, sys.stdin.buffer.read(size_bytes)))
    wanted, lost = sum(each.wanted for each in made), 0
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.buffer.read(1)
    looking = selectors.DefaultSelector()
    both = selectors.EVENT_READ | selectors.EVENT_WRITE
    for each in made:
        each.write()
        looking.register(each.socket, both if each.left else selectors.EVENT_READ, each)
    until_s = time.monotonic() + seconds
    while looking.get_map() and time.monotonic() < until_s:
        for key, events in looking.select(0.5):
            peer: Peer = key.data
            if events & selectors.EVENT_WRITE:
                peer.write()
                if not peer.left:
                    looking.modify(peer.socket, selectors.EVENT_READ, peer)
            if events & selectors.EVENT_READ and not peer.read():
                lost += peer.wanted > 0
                looking.unregister(peer.socket)
            elif peer.wanted <= 0:
                looking.unregister(peer.socket)
    came = wanted - sum(each.wanted for each in made)
    return f"{came} {wanted} {lost}"


if __name__ == "__main__":
    sys.stdout.write(run(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
