# SPDX-License-Identifier: Apache-2.0
"""How bytes leave: that an outlet is all that TLS needs. See test_peer.py for plain sockets."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from twisted.internet.task import Clock as TaskClock
from twisted.logger import capturedLogs, formatEvent

from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import FrameError
from txrocketmq.remoting.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.outlet import (
    PIECE_BYTES,
    GatheringOutlet,
    Outlet,
    SocketOutlet,
    TransportOutlet,
    plain_outlet,
)
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.peer_state import CLOSING, OPEN

HANDSHAKE = 0x16
"""The first byte of a TLS connection."""


def context(protocol: int) -> ssl.SSLContext:
    """TLS in which neither end shows a certificate: there is none that tests could trust."""
    made = ssl.SSLContext(protocol)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return made


SERVER, CLIENT = context(ssl.PROTOCOL_TLS_SERVER), context(ssl.PROTOCOL_TLS_CLIENT)


class TlsOutlet(TransportOutlet):
    """TLS as one outlet: that is all a server would have to add."""

    def __init__(self, transport: Any, tls: ssl.SSLContext = SERVER, **role: Any) -> None:
        super().__init__(transport)
        self._came, self._leaves = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.wrap_bio(self._came, self._leaves, **(role or {"server_side": True}))
        self._is_shaken = False

    def write(self, buffers: Sequence[Buffer]) -> None:
        self._tls.write(b"".join(buffers))
        self._pump()

    def take(self, data: bytes) -> bytes:
        self._came.write(data)
        said = []
        try:
            if not self._is_shaken:
                self._tls.do_handshake()
                self._is_shaken = True
            while part := self._tls.read(65_536):
                said.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            raise FrameError(f"no TLS that we know: {error.reason}") from None
        finally:
            self._pump()
        return b"".join(said)

    def _pump(self) -> None:
        super().write([self._leaves.read()])


def by_first_byte(transport: Any, first: bytes) -> Outlet:
    """As a server with tls.server.mode=permissive."""
    return TlsOutlet(transport) if first[0] == HANDSHAKE else plain_outlet(transport)


class TlsClient:
    """The other end, over the same wire in memory."""

    def __init__(self, end: FarEnd) -> None:
        self._end = end
        self._sent: list[bytes] = []
        self._decoder = FrameDecoder()
        self._outlet = TlsOutlet(self, CLIENT, server_side=False)
        self._outlet.take(b"")
        self.hear()

    def writeSequence(self, parts: list[bytes]) -> None:  # noqa: N802 - a transport to TlsOutlet
        self._sent += parts

    def hear(self) -> list[RemotingCommand]:
        """Passes bytes back and forth until neither end has any."""
        heard: list[RemotingCommand] = []
        while sent := b"".join(self._sent):
            self._sent.clear()
            for at in range(0, len(sent), 999):
                self._end.protocol.dataReceived(sent[at : at + 999])
            answer = self._end.wire.value()
            self._end.wire.clear()
            heard += self._decoder.receive(self._outlet.take(answer))
        return heard

    def ask(self, command: RemotingCommand) -> list[RemotingCommand]:
        self._outlet.write([bytes(part) for part in encode_frame(command)])
        return self.hear()


def serving() -> FarEnd:
    dispatcher = Dispatcher(Registry(), lambda: 0, lambda: 0)
    return FarEnd(TcpPeer(Clock(TaskClock()), dispatcher.serve, choose=by_first_byte))


def test_one_class_serves_tls_on_the_port_that_serves_plain_clients_too() -> None:
    end = serving()
    client = TlsClient(end)
    for opaque in range(3):
        (answer,) = client.ask(RemotingCommand(9_999, opaque=opaque, body=b"x" * 40_000))
        assert (answer.opaque, answer.code) == (opaque, 3)
    assert end.protocol.state is OPEN

    (answer,) = serving().tell(RemotingCommand(9_999, opaque=7))
    assert answer.opaque == 7


def test_nothing_leaves_a_tls_connection_in_the_clear() -> None:
    end = serving()
    client = TlsClient(end)
    end.protocol.write([b"secret", memoryview(b"secret")])
    assert b"secret" not in end.wire.value()
    assert end.wire.value()
    del client


def test_a_handshake_that_cannot_be_ends_the_connection_with_one_sentence() -> None:
    end = serving()
    with capturedLogs() as events:
        end.protocol.dataReceived(bytes([HANDSHAKE]) + b"\3\1\0\4junkjunk")
        end.protocol.dataReceived(b"more")
    assert end.protocol.state is CLOSING
    (said,) = map(formatEvent, events)
    assert said.startswith("closing 127.0.0.1:50000: no TLS that we know: ")


def test_a_peer_that_is_told_nothing_writes_plainly() -> None:
    end = FarEnd(TcpPeer(Clock(TaskClock()), lambda *_: None))
    assert type(end.protocol._outlet) is TransportOutlet
    assert end.protocol._outlet.take(b"x") == b"x"
    assert end.protocol._outlet.unsent_bytes() == 0


@pytest.mark.parametrize("encrypted", [False, True])
def test_only_a_plain_socket_is_written_to_directly(
    encrypted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from twisted.internet.tcp import Connection  # noqa: PLC0415 - only here

    transport: Any = Connection.__new__(Connection)
    transport.socket = object()
    monkeypatch.setattr(transport, "TLS", encrypted, raising=False)
    assert isinstance(plain_outlet(transport), SocketOutlet) is not encrypted


def test_what_is_written_in_one_turn_leaves_together() -> None:
    clock, writes = TaskClock(), Writes()
    outlet = GatheringOutlet(writes, partial(clock.callLater, 0))
    kept = bytearray(b"b")
    outlet.write([b"a", memoryview(kept)])
    kept[0:1] = b"z"  # slices of mapped files do not last
    outlet.write([b"c"])
    assert (writes.all, outlet.unsent_bytes(), len(clock.getDelayedCalls())) == ([], 3, 1)
    clock.advance(0)
    assert (writes.all, outlet.unsent_bytes()) == ([b"abc"], 0)
    outlet.write([b"d"])
    clock.advance(0)
    assert writes.all == [b"abc", b"d"]


def test_much_leaves_before_the_turn_is_over_and_in_its_order() -> None:
    clock, writes = TaskClock(), Writes()
    outlet = GatheringOutlet(writes, partial(clock.callLater, 0))
    outlet.write([b"a"])
    outlet.write([b"b" * PIECE_BYTES])
    outlet.write([b"c"])
    assert writes.all == [b"a" + b"b" * PIECE_BYTES]
    clock.advance(0)
    assert writes.all[1:] == [b"c"]


def test_what_is_gathered_leaves_when_a_connection_is_closed() -> None:
    clock, writes = TaskClock(), Writes()
    outlet = GatheringOutlet(writes, partial(clock.callLater, 0))
    outlet.write([b"last"])
    outlet.pause()
    assert outlet.resume()
    clock.advance(0)
    assert (writes.all, writes.happened) == ([b"last"], ["pause", "resume"])
    assert outlet.take(b"x") == b"x!"


class Writes:
    """An outlet that notes each write."""

    def __init__(self) -> None:
        self.all: list[bytes] = []
        self.happened: list[str] = []

    def write(self, buffers: Sequence[Buffer]) -> None:
        self.all.append(b"".join(buffers))

    def pause(self) -> None:
        self.happened.append("pause")

    def resume(self) -> bool:
        self.happened.append("resume")
        return True

    def unsent_bytes(self) -> int:
        return 0

    def take(self, data: bytes) -> bytes:
        return data + b"!"
