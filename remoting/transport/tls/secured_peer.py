# SPDX-License-Identifier: Apache-2.0
"""A connection that we open and encrypt."""

from __future__ import annotations

import ssl
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from txrocketmq.remoting.errors import RemotingError, SendError
from txrocketmq.remoting.transport.asking.asking_peer import AskingPeer
from txrocketmq.remoting.transport.outlet import Outlet
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.tls.tls_outlet import TlsOutlet


class SecuredPeer(AskingPeer):
    """A peer that can be used once the TLS handshake is over, when `secured` fires with it.

    `host` is the name or address for which its certificate must be, if the context checks that.

    `secured` fails with a SendError that says why if there is no handshake.
    """

    def __init__(self, context: ssl.SSLContext, host: str, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._context = context
        self._host = host if context.check_hostname else None
        self.secured: Deferred[TcpPeer] = Deferred(self._give_up)

    def connectionMade(self) -> None:
        super().connectionMade()
        self._tls.begin()

    def connectionLost(self, reason: Failure = Failure(Exception("lost"))) -> None:  # noqa: B008
        super().connectionLost(reason)
        if not self.secured.called:
            why = self._refused or f"no TLS handshake: {reason.getErrorMessage()}"
            self.secured.errback(Failure(SendError(why)))

    def _first_outlet(self, plain: Outlet) -> Outlet:
        self._tls = TlsOutlet(
            plain,
            self._context,
            server_side=False,
            established=self._is_established,
            host=self._host,
        )
        return self._tls

    def _give_up(self, secured: Deferred[TcpPeer]) -> None:
        secured.errback(Failure(SendError("no TLS handshake in time")))
        self.abort()

    def _is_established(self) -> None:
        if not self.secured.called:
            self.secured.callback(self)

    def _refuse(self, error: RemotingError, why: str = "") -> None:
        if self.secured.called:
            super()._refuse(error, why)
        else:  # whoever connects is told
            self._refused = str(error)
            self.close()
