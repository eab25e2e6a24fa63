# SPDX-License-Identifier: Apache-2.0
"""A connection that we have opened, over which we ask: its answers are always taken.

A server that does not read what it is sent may wait for its answers to be read, since it reads on
when they have left. If both sides stopped reading, each would wait for the other. Answers are no
more than what was asked for, so they are read also while the server does not read. Counterpart of
Netty's channels, which always read.
"""

from __future__ import annotations

from typing import Any

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.peer_state import PAUSED


class AskingPeer(TcpPeer):
    """A server as a peer."""

    def dataReceived(self, data: bytes) -> None:
        if self.state is PAUSED:
            self._hear(data)
        else:
            super().dataReceived(data)

    def pauseProducing(self) -> None:
        """Has what is written wait; reads on."""
        super().pauseProducing()
        if self.state is PAUSED:
            transport: Any = self.transport
            transport.resumeProducing()

    def _hear(self, data: bytes) -> None:
        """Takes answers, and serves the few requests of a server."""
        self._reads += 1
        try:
            commands = self._connection.receive(self._outlet.take(data))
        except RemotingError as error:
            self._refuse(error)
            return
        while commands or (self.decoder.is_behind and self.state.is_connected):
            if commands:
                self._serve(self, commands, lambda: True)
            commands = self._connection.receive(b"")
        if self.decoder.error is not None:
            self._refuse(self.decoder.error)
