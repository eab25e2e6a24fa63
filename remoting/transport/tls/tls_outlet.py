# SPDX-License-Identifier: Apache-2.0
"""An outlet that encrypts what is written and decrypts what arrives.

It stands before another outlet and does its work in memory, by Python's own `ssl`. It encrypts no
more at once than the outlet behind it takes, so a long answer stops nobody else. Counterpart of
Netty's SslHandler.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.errors import TlsError
from txrocketmq.remoting.transport.outlet import PIECE_BYTES, Backlog, Outlet

_RECORD_BYTES: Final = 16 * 1024
"""The most that one record of TLS holds, which is what one read returns."""
_FED_BYTES: Final = 32 * 1024
"""How many bytes are encrypted or decrypted at once. OpenSSL's buffers grow to what they have held
and never shrink, so what a connection holds for good depends on this."""
_OWN_BYTES: Final = 24 * 1024
"""About how much memory OpenSSL takes for a connection, without these two buffers."""


def _nobody() -> None:
    """Is called when a handshake is over that nobody waits for."""


class TlsOutlet:
    """One end of a TLS connection, over the outlet `inner`.

    What is written before the handshake is over waits for that; then `established` is called. A
    client has to call `begin` first; `host` is who the server has to be, if the context checks it.
    """

    def __init__(
        self,
        inner: Outlet,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        established: Callable[[], None] = _nobody,
        host: str | None = None,
    ) -> None:
        self._inner = inner
        self._came, self._leaves = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._came, self._leaves, server_side=server_side, server_hostname=host
        )
        self._established = established
        self._is_established = self._is_paused = self._has_ended = False
        self._is_deaf = False
        """Whether nothing that arrives counts any more: the peer has ended, or broken the rules."""
        self._kept = Backlog()
        self._most_came = self._most_left = 0
        """How many bytes the two buffers of OpenSSL have held at most."""

    @property
    def state_bytes(self) -> int:
        """How much memory OpenSSL takes for the connection; it grows buffers by thirds."""
        return _OWN_BYTES + (self._most_came + self._most_left) * 4 // 3

    def begin(self) -> None:
        """Sends the first message of a handshake."""
        self.take(b"")

    def write(self, buffers: Sequence[Buffer]) -> bool:
        """Encrypts the buffers and hands them over until `inner` is paused; keeps the rest."""
        if self._has_ended:
            return True
        is_free = self._is_established and not self._is_paused
        if is_free and sum(map(len, buffers)) <= PIECE_BYTES:
            return self._encrypt(buffers)
        self._kept.add(buffers)
        self._hand_over()
        return False

    def pause(self) -> None:
        """Keeps what is written from now on."""
        self._is_paused = True
        self._inner.pause()

    def resume(self) -> bool:
        """Hands over what was kept, until there is a pause again."""
        if self._inner.resume():
            self._is_paused = False
            self._hand_over()
        return not self._is_paused

    def end(self) -> None:
        """Tells the peer that nothing more will come, so that it need not suspect an attack."""
        if self._is_established and not self._has_ended:
            with suppress(ssl.SSLError):  # the peer has not said the same yet
                self._tls.unwrap()
            self._flush()
        self._has_ended = True
        self._established = _nobody  # it holds the peer, which holds this
        self._inner.end()

    def unsent_bytes(self) -> int:
        """Returns the bytes that wait, encrypted or not."""
        return self._inner.unsent_bytes() + self._kept.size_bytes

    def take(self, data: bytes) -> bytes:
        """Returns what the bytes say, once the handshake is over. Raises TlsError."""
        data = self._inner.take(data)
        if self._is_deaf:
            return b""
        said: list[bytes] = []
        was_established = self._is_established
        try:
            self._feed(data[:_FED_BYTES], said)
            for at in range(_FED_BYTES, len(data), _FED_BYTES):
                self._feed(data[at : at + _FED_BYTES], said)
        except ssl.SSLZeroReturnError:  # what a read returns if we have ended, too
            self._is_deaf = True
        except ssl.SSLError as error:
            self._has_ended = self._is_deaf = True
            what = "TLS" if self._is_established else "no TLS handshake"
            raise TlsError(f"{what}: {_reason(error)}") from None
        finally:
            self._flush()
        if self._is_established and not was_established:
            self._hand_over()
            established, self._established = self._established, _nobody
            established()
        return said[0] if len(said) == 1 else b"".join(said)

    def _feed(self, data: bytes, said: list[bytes]) -> None:
        """Decrypts some bytes that arrived, and adds what they say."""
        came, tls = self._came, self._tls
        came.write(data)
        self._most_came = max(self._most_came, came.pending)
        try:
            if not self._is_established:
                tls.do_handshake()
                self._is_established = True
            while part := tls.read(_RECORD_BYTES):
                said.append(part)
        except ssl.SSLWantReadError:
            return
        self._is_deaf = True
        raise ssl.SSLZeroReturnError

    def _hand_over(self) -> None:
        while self._kept and not self._is_paused and self._is_established and not self._has_ended:
            self._encrypt(self._kept.piece())

    def _encrypt(self, buffers: Sequence[Buffer]) -> bool:
        left = memoryview(b"".join(buffers))
        pieces = []
        while left:
            left = left[self._tls.write(left[:_FED_BYTES]) :]
            pieces.append(self._leaving())
        return not pieces or self._inner.write(pieces)

    def _flush(self) -> bool:
        return not self._leaves.pending or self._inner.write([self._leaving()])

    def _leaving(self) -> bytes:
        """Takes what is to leave out of OpenSSL's buffer."""
        self._most_left = max(self._most_left, self._leaves.pending)
        return self._leaves.read()


def _reason(error: ssl.SSLError) -> str:
    """Returns OpenSSL's name for what is wrong in words, such as "certificate verify failed"."""
    reason = (error.reason or str(error)).replace("_", " ").lower()
    more = getattr(error, "verify_message", "")
    return f"{reason} ({more})" if more else reason
