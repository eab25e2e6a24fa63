# SPDX-License-Identifier: Apache-2.0
"""What the ports of a server make of a connection, by its first byte: TLS or not, or neither.

A TLS handshake begins with 0x16, a frame with the high byte of its length, which is 0 or 1. What
encrypts is imported and made when the first client wants it. The files of certificate and key are
read again when they have changed, for connections that are accepted from then on. Counterpart of
NettyRemotingServer.TlsModeHandler and of FileWatchService.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger

from txrocketmq.remoting.errors import TlsError
from txrocketmq.remoting.settings.config_file import ConfigError
from txrocketmq.remoting.settings.tls import DISABLED, ENFORCING, TlsConfig, server_context
from txrocketmq.remoting.transport.outlet import Outlet

if TYPE_CHECKING:
    import ssl

_HANDSHAKE: Final = b"\x16"

log = Logger()


class Encryption:
    """The rules of one server's ports; `choose` applies them to a connection."""

    def __init__(self, config: TlsConfig) -> None:
        self._config = config
        self._context: ssl.SSLContext | None = None
        self._seen: tuple[object, ...] = ()
        """When the files were changed of which the context was made, or was to be made."""

    def prepare(self) -> None:
        """Makes what encrypts, unless it may never be needed. Raises ConfigError."""
        config = self._config
        if config.server_mode == ENFORCING or (
            config.server_mode != DISABLED and not config.test_mode
        ):
            self._seen = self._changed()
            self._context = server_context(config)

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

        return TlsOutlet(plain, self._current(), server_side=True)

    def _current(self) -> ssl.SSLContext:
        """Returns the context, made anew if files have changed; raises TlsError without one."""
        changed = self._changed()
        if self._context is not None and changed == self._seen:
            return self._context
        self._seen = changed
        try:
            self._context = server_context(self._config)
        except ConfigError as error:
            if self._context is None:
                raise TlsError(f"it speaks TLS, but {error}") from None
            log.error(  # noqa: TRY400 - a file that is wrong is no defect of ours
                "the certificates have changed and cannot be used, those before stay: {why}",
                why=error,
            )
        return self._context

    def _changed(self) -> tuple[object, ...]:
        config = self._config
        if config.test_mode:
            return ()
        paths = config.server_cert_path, config.server_key_path, config.server_trust_cert_path
        return tuple(_state(path) for path in paths if path)


def _state(path: str) -> object:
    try:
        state = Path(path).stat()
    except OSError as error:
        return error.errno
    return state.st_mtime_ns, state.st_ino, state.st_size
