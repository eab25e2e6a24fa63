# SPDX-License-Identifier: Apache-2.0
"""What the ports of a server make of a connection, by its first byte: TLS or not, or neither.

A TLS handshake begins with 0x16, a frame with the high byte of its length, which is 0 or 1. What
encrypts is imported and made when the first client needs it. The files of certificate and key are
read again when they have changed, for connections that are accepted from then on
(renewed_context.py). Counterpart of NettyRemotingServer.TlsModeHandler.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from txrocketmq.remoting.errors import TlsError
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import DISABLED, ENFORCING, TlsConfig, server_context
from txrocketmq.remoting.transport.outlet import Outlet
from txrocketmq.remoting.transport.tls.renewed_context import RenewedContext

_HANDSHAKE: Final = b"\x16"


class Encryption:
    """The rules of one server's ports; `choose` applies them to a connection."""

    def __init__(self, config: TlsConfig) -> None:
        self._config = config
        paths = () if config.test_mode else config.server_paths
        self._contexts = RenewedContext(partial(server_context, config), paths)

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
        if mode == DISABLED:
            raise TlsError("it speaks TLS, which tls.server.mode=disabled forbids")
        from txrocketmq.remoting.transport.tls.tls_outlet import TlsOutlet  # noqa: PLC0415

        try:
            context = self._contexts.current()
        except ConfigError as error:
            raise TlsError(f"it speaks TLS, but {error}") from None
        return TlsOutlet(plain, context, server_side=True)
