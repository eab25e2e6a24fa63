# SPDX-License-Identifier: Apache-2.0
"""One connection of HTTP/2, without I/O: bytes to events, and answers to bytes. h2 does the work.

What a peer uses of a connection of frames (frame/connection.py) is here under the same names. Only
the server's half is needed, and of that what gRPC uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from h2.config import H2Configuration
from h2.connection import ConnectionState
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings
from hpack.exceptions import HPACKError
from hyperframe.exceptions import HyperframeError

from txrocketmq.proxy.http2.floods import Floods
from txrocketmq.proxy.http2.frames import MAX_FRAME_BYTES, Frames
from txrocketmq.proxy.http2.plain_connection import MAX_HEADER_LIST_BYTES
from txrocketmq.proxy.http2.trial import connection_class
from txrocketmq.remoting.errors import FrameError, RemotingError

Header = tuple[str, str]
STREAM_WINDOW_BYTES: Final = 1024 * 1024
CONNECTION_WINDOW_BYTES: Final = 4 * 1024 * 1024
"""How many bytes may be on their way to one call, and to all of a connection."""
_FIRST_WINDOW_BYTES: Final = 65_535
_MOST_SENT_BYTES: Final = 64 * 1024
"""How long the frames are that are sent, if the peer allows longer ones."""
_PING: Final = b"txrocket"
CONNECTION: Final = connection_class()
"""The class of h2's connections."""


class Http2Connection:
    """The server's half of a connection, whose peer is told to open `most_streams` at a time.

    Whoever takes its events refuses those that are too many.
    `dirty` is called when there is something to be sent; `data_to_send` returns it.
    """

    def __init__(self, most_streams: int, dirty: Callable[[], object]) -> None:
        self.floods = Floods()
        self.decoder = Frames(self.floods)
        self.in_flight = 0
        """How many requests of ours wait for an answer: a peer of gRPC is asked nothing."""
        self._dirty = dirty
        self._h2: Any = CONNECTION(
            H2Configuration(
                client_side=False,
                header_encoding=None,
                # Headers are looked up by name, and nothing passes them on, so odd ones do no harm.
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._h2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: most_streams,
                SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
                SettingCodes.MAX_FRAME_SIZE: MAX_FRAME_BYTES,
                SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST_BYTES,
                SettingCodes.ENABLE_CONNECT_PROTOCOL: 0,
            },
        )
        self._has_begun = self._has_said_goodbye = False
        self.waiting_bytes = 0
        """How many bytes of data are to be sent; headers and the heads of frames do not count."""

    # ------------------------------------------------- as frame.connection.Connection

    def hear(self, data: bytes) -> None:
        """Takes bytes that arrived while the connection closes; nothing is done about them."""
        self.receive(data)

    def receive(self, data: bytes) -> list[Any]:
        """Takes bytes that arrived; returns events, of which there may be more (decoder.is_behind).

        What breaks the rules sets `decoder.error`; what there was to be said about it can be sent.
        """
        events = self.decoder.given_back()
        if events:
            self.decoder.keep(data)
            return events
        frames = self.decoder.portion(data)
        if frames and not self._has_begun:
            self._begin()
        is_wrong = self.decoder.error is not None
        if frames:
            events = self._decoded(frames)
        if is_wrong:
            self.go_away(ErrorCodes.ENHANCE_YOUR_CALM)
        return events

    def expire(self, steady_ms: int) -> None:
        """Does nothing: there are no requests of ours."""

    def is_late(self, steady_ms: int) -> bool:
        """Returns False: there are no requests of ours."""
        return False

    def lost(self, reason: RemotingError) -> None:
        """Forgets what is held."""
        self.decoder.drop()

    # -------------------------------------------------------------------- answers

    def headers(self, stream: int, headers: Sequence[Header], *, ends: bool = False) -> None:
        """Sends headers or trailers of a stream. Does nothing if the stream is gone."""
        self._try(self._h2.send_headers, stream, headers, end_stream=ends)

    def room(self, stream: int) -> int:
        """Returns how many bytes the peer takes now of a stream, in one frame."""
        try:
            window: int = self._h2.local_flow_control_window(stream)
        except H2Error:
            return 0
        longest: int = self._h2.max_outbound_frame_size
        return max(min(window, longest, _MOST_SENT_BYTES), 0)

    @property
    def is_full(self) -> bool:
        """Whether the peer takes no more data of any stream now."""
        window: int = self._h2.outbound_flow_control_window
        return window <= 0

    def data(self, stream: int, data: bytes) -> None:
        """Sends data of a stream, no longer than there is room."""
        self.waiting_bytes += len(data)
        self._try(self._h2.send_data, stream, data)

    def data_at_once(self, stream: int, data: bytes) -> bool:
        """Sends data of a stream in one frame.

        Returns False, and does nothing, if there is no room for it now, or `data` has to do it.
        """
        size_bytes = len(data)
        if size_bytes > _MOST_SENT_BYTES or not self._h2.send_at_once(stream, data):
            return False
        self.waiting_bytes += size_bytes
        self._dirty()
        return True

    def answer(self, stream: int, data: bytes) -> bool:
        """Answers a whole request with a message, and ends its stream with OK.

        Returns False, and does nothing, if there is no room for it now.
        """
        if not self._h2.answer(stream, data):
            return False
        self.waiting_bytes += len(data)
        self._dirty()
        return True

    def reset(self, stream: int, code: int = ErrorCodes.NO_ERROR) -> None:
        """Ends a stream; nothing that comes for it counts any more."""
        self._try(self._h2.reset_stream, stream, code)

    def took(self, stream: int, size_bytes: int) -> None:
        """Lets the peer send as many more bytes as were taken of a stream."""
        if size_bytes:
            self._try(self._h2.acknowledge_received_data, size_bytes, stream)

    def ping(self) -> None:
        """Asks the peer whether it is there."""
        self._try(self._h2.ping, _PING)

    def go_away(self, code: int = ErrorCodes.NO_ERROR) -> None:
        """Tells the peer that no new streams are taken. Those that are open go on."""
        if not self._has_begun or (self._has_said_goodbye and not code):
            return
        self._has_said_goodbye = True
        self._try(self._h2.close_connection, code)
        self._stay_open()

    def data_to_send(self) -> bytes:
        """Returns what is to be sent now."""
        self.waiting_bytes = 0
        data: bytes = self._h2.data_to_send()
        return data

    def _begin(self) -> None:
        self._has_begun = True
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW_BYTES - _FIRST_WINDOW_BYTES)
        self._dirty()

    def _decoded(self, frames: bytes) -> list[Any]:
        try:
            events: list[Any] = self._h2.receive_frames(frames, self.decoder.heads)
        except (H2Error, HPACKError, HyperframeError, ValueError, LookupError) as error:
            self.decoder.fail(FrameError(f"it breaks the rules of HTTP/2: {_why(error)}"))
            events = []
        else:
            if events and isinstance(events[-1], ConnectionTerminated):
                self._stay_open()
        self._dirty()
        return events

    def _stay_open(self) -> None:
        """Has h2 go on after a GOAWAY, for which it takes a connection as closed. HTTP/2 lets open
        streams end in order.
        """
        self._h2.state_machine.state = ConnectionState.SERVER_OPEN

    def _try(self, do: Callable[..., object], *arguments: Any, **named: Any) -> None:
        try:
            do(*arguments, **named)
        except (H2Error, KeyError):  # the peer has ended the stream, or the connection
            return
        self._dirty()


def _why(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__
