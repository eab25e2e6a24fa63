# SPDX-License-Identifier: Apache-2.0
"""Errors of the remoting layer and of the services on it.

    RemotingError                    anything this package raises on purpose
    |- FrameError                    bytes that are no frame: the connection is closed
    |- HeaderError                   a header that does not decode: answered SYSTEM_ERROR
    |- TlsError                      a connection that is encrypted, or not, against the rules
    |- ConnectError                  a peer could not be reached (local)
    |- FrameTooLong                  a command that fits in no frame (local)
    |- SendError                     the bytes could not be handed to the peer (local)
    |- RequestTimeout                no answer came in time (local)
    |- TooManyRequests               the limit of requests in flight is reached (local)
    `- ResponseError                 an answer with a code: a handler raises, a caller receives it

A handler raises `ResponseError(code, remark)`; the dispatcher makes the answer of it. A caller gets
the same class from a peer's answer whose code is not the expected one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.remoting.codes import ResponseCode


class RemotingError(Exception):
    """The base class of all errors of `txrocketmq.remoting`."""


class FrameError(RemotingError):
    """Bytes on the wire that are no frame (NettyDecoder closes the channel in this case)."""


class HeaderError(RemotingError):
    """A command header that does not decode; its text is what the original puts in the remark."""


class TlsError(RemotingError):
    """A connection that does not keep the rules of TLS, or those of a port about TLS."""


class ConnectError(RemotingError):
    """There is no connection to the peer (RemotingConnectException).

    If `again_in_ms` is above 0, no attempt was made, because earlier ones had failed: the next
    attempt is made after that time.
    """

    def __init__(self, text: str, again_in_ms: int = 0) -> None:
        super().__init__(text)
        self.again_in_ms = again_in_ms


class NotPlainJson(FrameError):
    """A header that the JSON parser does not take; the tolerant scanner may."""


class FrameTooLong(RemotingError):
    """A command would be longer than a frame may be: its reader would close the connection."""


class SendError(RemotingError):
    """The connection was lost before the answer (RemotingSendRequestException)."""


class LateAnswer:
    """An answer that may still come after the deadline of its request, and who hears of it."""

    __slots__ = ("listener", "until_ms")

    def __init__(self) -> None:
        self.until_ms = 0
        self.listener: Callable[[Any], object] | None = None

    def hear(self, until_ms: int, listener: Callable[[Any], object]) -> None:
        """Passes the answer to `listener` if it comes before a time.

        To be called by whoever hears of the timeout, in the same call.
        """
        self.until_ms = until_ms
        self.listener = listener


class RequestTimeout(RemotingError):
    """The peer did not answer before the deadline (RemotingTimeoutException).

    Without `late`, no answer can come any more.
    """

    def __init__(self, text: str, late: LateAnswer | None = None) -> None:
        super().__init__(text)
        self.late = late


class TooManyRequests(RemotingError):
    """More requests in flight than allowed (RemotingTooMuchRequestException)."""


class ResponseError(RemotingError):
    """An answer that is not a success, with its code and remark as on the wire.

    `header` may be a response header that is sent along, as with a pull's PULL_NOT_FOUND.
    """

    is_told = False
    """Whether whoever refuses has written to the log what there is to say about it."""

    def __init__(self, code: int, remark: str | None = None, header: object = None) -> None:
        super().__init__(code, remark)
        self.code = code
        self.remark = remark
        self.header = header

    def __str__(self) -> str:
        try:
            name = ResponseCode(self.code).name
        except ValueError:
            name = "UNKNOWN"
        return f"CODE: {self.code} ({name}) DESC: {self.remark}"
