# SPDX-License-Identifier: Apache-2.0
"""What the ports of a server make of a connection, by its first byte: TLS or not, or neither.

A TLS handshake begins with 0x16, a frame with the high byte of its length, which is 0 or 1. What
encrypts is imported and made when the first client needs it. The files of certificate and key are
read again when they have changed, for connections that are accepted from then on
(renewed_context.py). Counterpart of NettyRemotingServer.TlsModeHandler.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from txrocketmq.remoting.errors import TlsError
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import DISABLED, ENFORCING, TlsConfig, server_context
from txrocketmq.remoting.transport.outlet import Outlet
from txrocketmq.remoting.transport.strangers import HTTP_ADVICE
from txrocketmq.remoting.transport.tls.renewed_context import RenewedContext

if TYPE_CHECKING:
    import ssl

_HANDSHAKE: Final = b"\x16"
_OFFERS_H2: Final = re.compile(rb"\0\x10\0.\0.[^\0]{0,64}?\x02h2", re.DOTALL)
"""How a client says in its first message that it speaks HTTP/2: the extension ALPN."""


class Encryption:
    """The rules of one server's ports; `choose` applies them to a connection."""

    def __init__(self, config: TlsConfig, alpn: Sequence[str] = ()) -> None:
        self._config = config
        self._alpn = list(alpn)
        paths = () if config.test_mode else config.server_paths
        self._contexts = RenewedContext(self._context, paths)

    def prepare(self) -> None:
        """Makes what encrypts, unless it may never be needed. Raises ConfigError."""
        config = self._config
        if config.server_mode == ENFORCING or (
            config.server_mode != DISABLED and not config.test_mode
        ):
            self._contexts.prepare()

    def choose(self, plain: Outlet, first: bytes) -> Outlet:
        """Returns the outlet of a connection, as `outlet.Choose` says. Raises TlsError."""
        mode = self._config.server_mode
        if first[:1] != _HANDSHAKE:
            if mode == ENFORCING:
                raise TlsError(
                    "it does not encrypt, which tls.server.mode=enforcing demands; clients do with"
                    " useTLS or -Dtls.enable=true"
                )
            return plain
        if not self._alpn and _OFFERS_H2.search(first):
            raise TlsError(f"it speaks HTTP/2 in TLS to the remoting port; {HTTP_ADVICE}")
        if mode == DISABLED:
            raise TlsError("it speaks TLS, which tls.server.mode=disabled forbids")
        from txrocketmq.remoting.transport.tls.tls_outlet import TlsOutlet  # noqa: PLC0415

        try:
            context = self._contexts.current()
        except ConfigError as error:
            raise TlsError(f"it speaks TLS, but {error}") from None
        return TlsOutlet(plain, context, server_side=True)

    def _context(self) -> ssl.SSLContext:
        context = server_context(self._config)
        if self._alpn:
            context.set_alpn_protocols(self._alpn)
        return context
