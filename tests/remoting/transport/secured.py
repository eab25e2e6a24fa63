# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections without a network: lines in memory, and far ends by `ssl` alone."""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import cache
from typing import Any

from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.settings.tls import TlsConfig, client_context, server_context
from txrocketmq.remoting.transport.outlet import Outlet, TransportOutlet

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
MAX_HELD_BYTES = 64 * 1024
"""When a line holds more, it pauses who writes to it, as Twisted's transports do."""


@cache
def server_of(version: ssl.TLSVersion = VERSIONS[-1]) -> ssl.SSLContext:
    """Of a server with a certificate of its own, which speaks this version only."""
    context = server_context(TlsConfig())
    context.minimum_version = context.maximum_version = version
    return context


@cache
def client_of(version: ssl.TLSVersion = VERSIONS[-1]) -> ssl.SSLContext:
    """Of a client that trusts everybody, and speaks this version only."""
    context = client_context()
    context.minimum_version = context.maximum_version = version
    return context


class Line:
    """A transport in memory: `take` is the network, which carries away what is held."""

    def __init__(self) -> None:
        self.held = bytearray()
        self.writer: Any = None
        """The outlet that is paused when much is held, and resumed when nothing is."""
        self._is_paused = False

    def outlet(self) -> Outlet:
        return TransportOutlet(self)

    def writeSequence(self, parts: list[bytes]) -> None:  # noqa: N802 - ITransport
        self.held += b"".join(parts)
        if len(self.held) > MAX_HELD_BYTES and self.writer is not None:
            self._is_paused = True
            self.writer.pause()

    def take(self, count: int | None = None) -> bytes:
        """Takes so many bytes, or all that are held now."""
        taken = bytes(self.held[:count])
        del self.held[: len(taken)]
        if self._is_paused and not self.held:
            self._is_paused = False
            self.writer.resume()
        return taken


class Far:
    """An end of a TLS connection made by `ssl` alone."""

    def __init__(self, context: ssl.SSLContext, *, server_side: bool) -> None:
        self._came, self._leaves = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._came, self._leaves, server_side=server_side)
        self.is_told_the_end = False
        """Whether the other end has said that nothing more will come."""
        self.error: ssl.SSLError | None = None

    def take(self, data: bytes = b"") -> bytes:
        """Returns what the bytes say."""
        self._came.write(data)
        said = b""
        try:
            self.tls.do_handshake()
            while part := self.tls.read(65_536):
                said += part
            self.is_told_the_end = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_told_the_end = True
        except ssl.SSLError as error:
            self.error = error
        return said

    def say(self, data: bytes) -> bytes:
        """Returns the bytes that say this, after all that is left to be sent before."""
        self.tls.write(data)
        return self.leaving()

    def end(self) -> bytes:
        """Returns the bytes that say that nothing more will come."""
        with suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        return self.leaving()

    def leaving(self) -> bytes:
        return self._leaves.read()


class SecuredEnd:
    """The other end of a protocol of ours, behind TLS."""

    def __init__(self, end: FarEnd, context: ssl.SSLContext, *, server_side: bool) -> None:
        self.end = end
        self.far = Far(context, server_side=server_side)
        self._decoder = FrameDecoder()
        self.heard = self.hear()
        """What was sent right after the handshake."""

    def hear(self) -> list[RemotingCommand]:
        """Passes bytes back and forth until neither end has any; returns what came here."""
        said = self.far.take()
        while True:
            leaving = self.far.leaving()
            if leaving:
                self.end.protocol.dataReceived(leaving)
            self.end.turn()
            came = self.end.wire.value()
            self.end.wire.clear()
            if not leaving and not came:
                return self._decoder.receive(said)
            said += self.far.take(came)

    def tell(self, *commands: RemotingCommand) -> list[RemotingCommand]:
        """Sends commands in one piece; returns what was sent back since the last call."""
        frames = [bytes(part) for each in commands for part in encode_frame(each)]
        self.far.tls.write(b"".join(frames))
        return self.hear()
