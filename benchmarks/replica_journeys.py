# SPDX-License-Identifier: Apache-2.0
"""The journeys of replication whose operations are counted: what a send costs a pair of brokers.

The master is a SYNC_MASTER. Its journey goes from the bytes of a send to the bytes of the answer,
with the frame that leaves for the slave and the report that comes back; that of the slave from the
bytes of frames to the report, and on to where consumers can read the messages. Connections have no
network, and time does not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from twisted.internet.address import IPv4Address

from benchmarks.asked_broker import AskedBroker
from benchmarks.operations import Call
from benchmarks.sends import Bench, Sink
from txrocketmq.broker.store.replication.frames import REPORT_CODEC
from txrocketmq.remoting.codes import ResponseCode

_ADDRESS: Final = "127.0.0.1:10912"
_HA_PORT: Final = 10912


class Socket:
    """The socket of a connection for replication, which takes everything."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def sendmsg(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Keeps what is sent."""
        self.sent += map(bytes, pieces)
        return sum(map(len, pieces))

    def send(self, data: bytes) -> int:
        """Keeps what is sent."""
        self.sent.append(data)
        return len(data)

    def taken(self) -> bytes:
        """Returns what was sent since this was called last."""
        found, self.sent[:] = b"".join(self.sent), []
        return found


class ReplicaSink(Sink):
    """A connection between master and slave."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.socket = Socket()

    def setTcpKeepAlive(self, enabled: bool) -> None:  # noqa: N802, FBT001 - ITCPTransport
        """Does nothing, since nobody goes away."""


class MasterJourneys(AskedBroker):
    """A SYNC_MASTER with a slave, which is in the hands of the journey."""

    codes = frozenset({ResponseCode.SUCCESS, ResponseCode.SLAVE_NOT_AVAILABLE})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, store_settings={"broker_role": "SYNC_MASTER"})
        self.link = ReplicaSink()
        (port,) = (each for each in self.reactor.tcpServers if each[0] == _HA_PORT)
        self._slave = port[1].buildProtocol(IPv4Address("TCP", "127.0.0.1", 1))
        self._slave.makeConnection(self.link)
        self.report(0)
        self.first = self.link.socket.taken()
        self.report(self.end)
        index: Any = self.broker.parts.store._index  # noqa: SLF001 - as in broker_journeys.py
        index.write_pending = lambda *_: None

    @property
    def reactor(self) -> Any:
        """The reactor without a network."""
        return self.broker.clock.reactor

    @property
    def end(self) -> int:
        """Where the log ends."""
        end: int = self.broker.parts.store.max_physical_offset
        return end

    def report(self, offset: int) -> None:
        """Takes a report of the slave."""
        self._slave.dataReceived(REPORT_CODEC.pack(offset))
        self.reactor.advance(0)

    def received(self, data: bytes) -> None:
        """Serves a read, to the end of what is to be done at once."""
        self.peer.dataReceived(data)
        self.reactor.advance(0)

    def sends(self, make: Callable[[int], bytes], count: int) -> Iterator[Call]:
        """Sends, all in one read, whose answers leave when the slave has reported them."""
        data = b"".join(map(make, self.next(count)))
        kept = self.sink.kept = bytearray()
        yield partial(self.received, data)
        if kept or not self.link.socket.taken():
            raise SystemExit("benchmarks.journeys: the sends do not wait for the slave")
        yield partial(self.report, self.end)
        if not kept:
            raise SystemExit("benchmarks.journeys: the sends are not answered")
        self.sink.kept = None


class SlaveJourneys:
    """A slave, and the master from which it gets its log."""

    def __init__(self, folder: Path) -> None:
        self._master = MasterJourneys(folder / "master")
        config = {"broker_role": "SLAVE", "ha_master_address": _ADDRESS}
        self._slave = Bench(folder / "slave", store_settings=config, broker_id=1)
        parts: Any = self._slave.broker.parts
        parts.slave.rejoin = None  # it would ask the master before it connects
        self._reactor = self._slave.broker.clock.reactor
        self._link = ReplicaSink()
        parts.slave.tick(0, 0)
        self._connection = self._reactor.tcpClients[-1][2].buildProtocol(None)
        self._connection.makeConnection(self._link)
        self._taken(self._master.first)
        index: Any = parts.store._index  # noqa: SLF001 - as in broker_journeys.py
        index.write_pending = lambda *_: None

    def _taken(self, data: bytes) -> None:
        self._connection.dataReceived(data)
        while self._reactor.getDelayedCalls() and self._reactor.getDelayedCalls()[0].getTime() <= (
            self._reactor.seconds()
        ):
            self._reactor.advance(0)

    def follows(self, make: Callable[[int], bytes], count: int) -> Iterator[Call]:
        """Frames with so many messages, up to where consumers can read them."""
        master = self._master
        master.received(b"".join(map(make, master.next(count))))
        data = master.link.socket.taken()
        self._link.socket.taken()
        yield partial(self._taken, data)
        if self._link.socket.taken() != REPORT_CODEC.pack(master.end):
            raise SystemExit("benchmarks.journeys: the slave does not follow")
        if self._slave.broker.parts.store.dispatch_behind_bytes:
            raise SystemExit("benchmarks.journeys: the slave does not dispatch")
        master.report(master.end)
