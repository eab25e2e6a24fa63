# SPDX-License-Identifier: Apache-2.0
"""Slaves of a broker in a test: connections without sockets, and logs without files."""

from __future__ import annotations

from tests.broker.conftest import Parts
from txrocketmq.broker.replication.master import Replica
from txrocketmq.broker.store.replication.frames import REPORT_CODEC, TransferDecoder


class FakeSlave:
    """A slave of these parts, which takes as much as `room` says."""

    def __init__(self, parts: Parts, host: str = "10.0.0.1", port: int = 5) -> None:
        self.room = 1 << 30
        self.wakes = 0
        self.is_closed = False
        self.frames: list[tuple[int, bytes]] = []
        self._decoder = TransferDecoder()
        found = parts.master.begin(host, port, self)
        assert found is not None
        self.slave: Replica = found

    def report(self, offset: int) -> None:
        self.slave.received(REPORT_CODEC.pack(offset))

    def wake(self) -> None:
        self.wakes += 1
        while pieces := self.slave.pieces():
            data = b"".join(pieces)[: self.room]
            self.frames += [(at, bytes(each)) for at, each in self._decoder.frames(data)]
            if not self.slave.sent(len(data)) or len(data) == self.room:
                return

    def close(self) -> None:
        self.is_closed = True
        self.slave.ended("closed")

    @property
    def log(self) -> bytes:
        """All that it has been sent."""
        return b"".join(data for _, data in self.frames)
