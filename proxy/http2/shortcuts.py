# SPDX-License-Identifier: Apache-2.0
"""h2's connection with shortcuts for what each call has: its headers, and the usual answer.

h2 serves every kind of client and server, and describes each frame for a log that nobody keeps.
Here, a request that has arrived whole is one event (WholeRequest). Official clients send a unary
request as HEADERS and DATA in one write; those on grpcio put a WINDOW_UPDATE between. Such a stream
needs none of h2's objects: it is half closed, and its usual answer closes it. If anything else
comes for it or is said to it, the stream of h2 is made that there would be (`_Streams`), so
everything unusual goes h2's way. Two more frames of clients are answered or counted at once: a
PING, and a WINDOW_UPDATE of the connection.

A gRPC call that ends well has always the same headers and trailers. What is said here about a call
is the same that h2 would say; the tests compare both. Inner names of h2 and hpack are used here, so
trial.py looks at the start whether they fit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from h2.connection import ConnectionState
from h2.errors import ErrorCodes
from h2.events import PingReceived, PriorityUpdated, WindowUpdated
from h2.exceptions import (
    DenialOfServiceError,
    ProtocolError,
    StreamClosedError,
    StreamIDTooLowError,
)
from h2.stream import H2Stream, StreamClosedBy, StreamInputs, StreamState
from hpack.exceptions import HPACKError, OversizedHeaderListError
from hyperframe.frame import RstStreamFrame

from txrocketmq.proxy.http2.floods import DATA, HEADERS, PING, WINDOW_UPDATE
from txrocketmq.proxy.http2.frames import HEAD_BYTES, Head, heads_of
from txrocketmq.proxy.http2.header_decoder import HeaderDecoder
from txrocketmq.proxy.http2.light_frames import (
    END_HEADERS,
    END_STREAM,
    GOES_ON,
    PRIORITY,
    PRIORITY_BYTES,
    STREAM,
    LightData,
    LightHeaders,
    LightWindowUpdate,
    is_of_others,
    usual,
    widening,
)
from txrocketmq.proxy.http2.plain_connection import (
    MAX_HEADER_LIST_BYTES,
    REMEMBERED_STREAMS,
    PlainConnection,
    WholeRequest,
)

_LOOK_STREAMS: Final = 64
"""After how many new streams, and as many as there are, those that have ended are forgotten."""
_LARGEST_WINDOW: Final = 0x7FFF_FFFF
_PING_BYTES: Final = 8
_SENDING: Final = (StreamState.HALF_CLOSED_REMOTE, StreamState.OPEN)
"""The states of streams whose answers are not over."""
# Literals that are not added to the table of the peer, so that they are always the same.
_RESPONSE: Final = b"\x88\x0f\x10\x10application/grpc"
_TRAILERS: Final = b"\x00\x0bgrpc-status\x010"
_RESPONSE_HEAD: Final = bytes((0, 0, len(_RESPONSE), HEADERS, END_HEADERS))
_DATA_HEAD: Final = bytes((DATA, 0))
_TRAILERS_HEAD: Final = bytes((0, 0, len(_TRAILERS), HEADERS, END_HEADERS | END_STREAM))
_PONG_HEAD: Final = bytes((0, 0, _PING_BYTES, PING, 1, 0, 0, 0, 0))
_ROOM_HEAD: Final = bytes((0, 0, 4, WINDOW_UPDATE, 0, 0, 0, 0, 0))
_PINGED: Final = PingReceived(ping_data=bytes(_PING_BYTES))
_ROOM: Final = WindowUpdated(stream_id=0, delta=1)
_PRIORITIZED: Final = PriorityUpdated()
"""Events that are told of without what was in their frames, at which nobody looks."""
_ODD: Final = (b"content-length", b":status")
"""Headers of which h2 has more to say."""


class _Streams(dict[int, Any]):
    """h2's streams by their numbers; that of a whole request is made when it is needed."""

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__()
        self._connection = connection

    def __missing__(self, number: int) -> Any:
        stream = self[number] = self._connection.stream_of_whole(number)
        return stream


class ServerConnection(PlainConnection):
    """A connection that says the usual in few steps."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._decoder = self.decoder = HeaderDecoder(MAX_HEADER_LIST_BYTES)
        self.streams = _Streams(self)
        self._whole: dict[int, int] = {}
        """By how much the peer has widened the windows of whole requests, by their numbers."""
        self._answered: deque[int] = deque(maxlen=REMEMBERED_STREAMS)
        """Those of them that have been answered."""
        self._window = self.remote_settings.initial_window_size
        self._opens_until_look = 0
        served: dict[Any, Any] = self._frame_dispatch_table
        served[LightHeaders] = self._receive_headers_frame
        served[LightData] = self._receive_data_frame
        served[LightWindowUpdate] = self._receive_window_update_frame

    # ------------------------------------------------------------------ what arrives

    def receive_data(self, data: Any) -> list[Any]:
        """Does what h2 does, and tells of whole requests."""
        heads, end = heads_of(data, self.max_inbound_frame_size)
        if end == len(data):
            return self.receive_frames(data, heads)
        if self._is_amid():
            return super().receive_data(data)
        return self.receive_frames(data[:end], heads) + super().receive_data(data[end:])

    def receive_frames(self, data: bytes, heads: Sequence[Head]) -> list[Any]:
        """Takes whole frames, which have these heads; returns events."""
        if self._is_amid():
            return super().receive_data(data)
        events: list[Any] = []
        index, count = 0, len(heads)
        most_bytes = self.local_settings.initial_window_size
        while index < count:
            kind, flags, number, begin, end = head = heads[index]
            index += 1
            if kind == HEADERS and index < count and flags & ~PRIORITY == END_HEADERS:
                used = self._take_whole(data, heads, index, events, most_bytes)
                if used >= 0:
                    index += used
                    continue
            elif kind == WINDOW_UPDATE and self._widens(data, number, begin, end):
                if not number:  # nothing waits of a whole request
                    events.append(_ROOM)
                continue
            elif kind == PING and not (flags & 1 or number) and end - begin == _PING_BYTES:
                self._data_to_send += _PONG_HEAD + data[begin:end]
                events.append(_PINGED)
                continue
            frame = usual(data, head)
            if frame is not None:
                its = self._taken(frame)
                events += its
                if its and flags & PRIORITY and kind == HEADERS:
                    events.append(_PRIORITIZED)
                continue
            events += super().receive_data(data[begin - HEAD_BYTES : end])
            if self._is_amid():  # its headers go on in the next frame
                return events + super().receive_data(data[end:])
        return events

    def _taken(self, frame: Any) -> list[Any]:
        """Takes a frame; tells the peer if it breaks the rules, and raises ProtocolError."""
        try:
            return self._receive_frame(frame)
        except ProtocolError as error:
            self._terminate_connection(error.error_code)
            raise

    def _is_amid(self) -> bool:
        """Whether h2 has the beginning of something."""
        buffer: Any = self.incoming_buffer
        return bool(buffer._preamble_len or buffer._data or buffer._headers_buffer)  # noqa: SLF001

    def _take_whole(
        self,
        data: bytes,
        heads: Sequence[Head],
        index: int,
        events: list[Any],
        most_bytes: int,
    ) -> int:
        """Takes a request whose HEADERS are before a place, if it is there whole.

        It may have so many bytes. Returns how many more frames it has; -1 if nothing was done.
        """
        _, flags, number, begin, end = heads[index - 1]
        kind, flags_of_data, number_of_data, first, last = heads[index]
        used, added = 1, 0
        if kind == WINDOW_UPDATE and number_of_data == number and index + 1 < len(heads):
            added = widening(data, first, last)
            kind, flags_of_data, number_of_data, first, last = heads[index + 1]
            used = 2
            if not 0 < added <= _LARGEST_WINDOW - self._window:
                return -1
        size = last - first
        windows: Any = self._inbound_flow_control_window_manager
        if (
            kind != DATA
            or flags_of_data != END_STREAM
            or number_of_data != number
            or number <= self.highest_inbound_stream_id
            or not number & 1
            or size > windows.current_window_size
            or size > most_bytes
            or self.state_machine.state is not ConnectionState.SERVER_OPEN
        ):
            return -1
        if flags & PRIORITY:
            if not is_of_others(data, heads[index - 1]):
                return -1
            begin += PRIORITY_BYTES
        headers = self._by_name(data[begin:end])
        if _ODD[0] in headers or _ODD[1] in headers:
            events += self._taken(LightHeaders(number, list(headers.items()), GOES_ON))
            return 0
        windows.current_window_size -= size
        windows._bytes_processed += size  # noqa: SLF001
        if (
            windows._bytes_processed >= windows.max_window_size // 2  # noqa: SLF001
            or not windows.current_window_size
        ):
            added_here = windows._maybe_update_window()  # noqa: SLF001
            if added_here:
                self._data_to_send += _ROOM_HEAD + added_here.to_bytes(4, "big")
        self.highest_inbound_stream_id = number
        self._whole[number] = added
        events.append(WholeRequest(number, headers, data[first:last]))
        return used

    def _by_name(self, block: bytes) -> dict[bytes, bytes]:
        """Returns headers by their names. Tells the peer of errors, and raises ProtocolError."""
        wrong: ProtocolError
        try:
            return self._decoder.by_name(block)
        except OversizedHeaderListError as error:
            wrong = DenialOfServiceError(f"the header block is too long: {error}")
        except HPACKError as error:
            wrong = ProtocolError(f"the header block cannot be decoded: {error}")
        self._terminate_connection(wrong.error_code)
        raise wrong

    def stream_of_whole(self, number: int) -> Any:
        """Returns h2's stream of a whole request, of which there is more to be said.

        Raises KeyError if there is none.
        """
        window = self._window + self._whole.pop(number)
        stream = H2Stream(number, self.config, self.local_settings.initial_window_size, window)
        stream.max_outbound_frame_size = self.max_outbound_frame_size
        stream.state_machine.process_input(StreamInputs.RECV_HEADERS)
        stream.state_machine.process_input(StreamInputs.RECV_END_STREAM)
        return stream

    def _flow_control_change_from_settings(self, old_value: int | None, new_value: int) -> None:
        for number in [number for number, added in self._whole.items() if added]:
            self.streams[number]  # which h2 then looks at
        self._window = new_value
        super()._flow_control_change_from_settings(old_value, new_value)

    def _stream_closed_by(self, stream_id: int) -> StreamClosedBy | None:
        closed_by: StreamClosedBy | None = super()._stream_closed_by(stream_id)
        if closed_by is None and stream_id in self._answered:
            return StreamClosedBy.SEND_END_STREAM
        return closed_by

    def _widens(self, data: bytes, number: int, begin: int, end: int) -> bool:
        """Widens a window, if it is that of the connection or of a whole request, and may be."""
        added = int.from_bytes(data[begin:end], "big") & STREAM
        if end - begin != 4 or not added:
            return False
        if not number:
            window = self.outbound_flow_control_window + added
            if window > _LARGEST_WINDOW:
                return False
            self.outbound_flow_control_window = window
            return True
        if number not in self._whole:
            return False
        window = self._whole[number] + added
        if window > _LARGEST_WINDOW - self._window:
            return False
        self._whole[number] = window
        return True

    @property
    def open_inbound_streams(self) -> int:
        """Returns 0 to a new stream.

        h2 looks at all streams here, at each new one, and forgets those that are closed. That is
        done from time to time only, so that a stream costs the same however many there are.
        """
        if self._opens_until_look:
            self._opens_until_look -= 1
        else:
            self._open_streams(1)
            self._opens_until_look = len(self.streams) + _LOOK_STREAMS
        return 0

    # ------------------------------------------------------------------ answers

    def send_headers(self, stream_id: int, *arguments: Any, **named: Any) -> None:
        """Does what h2 does, which counts streams if it does not find one."""
        if stream_id in self._whole:
            self.streams[stream_id] = self.stream_of_whole(stream_id)
        super().send_headers(stream_id, *arguments, **named)

    def send_data(self, stream_id: int, data: Any, *arguments: Any, **named: Any) -> None:
        """Does what h2 does, in few steps for data that ends nothing."""
        if arguments or named or not self.send_at_once(stream_id, data):
            super().send_data(stream_id, data, *arguments, **named)

    def send_at_once(self, number: int, data: bytes) -> bool:
        """Sends data that ends nothing, with no object of a frame.

        Returns False, and does nothing, if there is no room for it now, or h2 has more to say.
        """
        stream, size = self.streams.get(number), len(data)
        if (
            stream is None
            or stream.state_machine.state not in _SENDING
            or self.state_machine.state is not ConnectionState.SERVER_OPEN
            or size > self.max_outbound_frame_size
            or size > self.outbound_flow_control_window
            or size > stream.outbound_flow_control_window
        ):
            return False
        its = number.to_bytes(4, "big")
        self._data_to_send += b"".join((size.to_bytes(3, "big"), _DATA_HEAD, its, data))
        self.outbound_flow_control_window -= size
        stream.outbound_flow_control_window -= size
        return True

    def answer(self, number: int, data: bytes) -> bool:
        """Answers a whole request with a message, and ends its stream with OK.

        Returns False, and does nothing, if there is no room for it, or the call is not as usual.
        """
        size = len(data)
        if (
            size > self.max_outbound_frame_size
            or size > self.outbound_flow_control_window
            or self.encoder.header_table.resized  # the peer has to be told first
        ):
            return False
        added = self._whole.get(number)
        if added is None:
            if not self._ends_stream(number, size):
                return False
        elif size <= self._window + added:
            del self._whole[number]
            self._answered.append(number)
        else:
            return False
        its = number.to_bytes(4, "big")
        self._data_to_send += b"".join(
            (
                _RESPONSE_HEAD, its, _RESPONSE,
                size.to_bytes(3, "big"), _DATA_HEAD, its, data,
                _TRAILERS_HEAD, its, _TRAILERS,
            )
        )  # fmt: skip
        self.outbound_flow_control_window -= size
        return True

    def _ends_stream(self, number: int, size: int) -> bool:
        """Ends a stream of h2 with so many bytes of data, if that is all that it waits for."""
        stream = self.streams.get(number)
        if stream is None or size > stream.outbound_flow_control_window:
            return False
        machine = stream.state_machine
        if machine.state is not StreamState.HALF_CLOSED_REMOTE or machine.headers_sent:
            return False
        stream.outbound_flow_control_window -= size
        machine.headers_sent = machine.trailers_sent = True
        machine.state = StreamState.CLOSED
        machine.stream_closed_by = StreamClosedBy.SEND_END_STREAM
        return True

    def _receive_frame(self, frame: Any) -> list[Any]:
        """Does what h2 does, without describing each frame."""
        try:
            frames, events = self._frame_dispatch_table[type(frame)](frame)
        except (StreamClosedError, StreamIDTooLowError) as error:
            number = error.stream_id
            if not self._stream_is_closed_by_reset(number):
                if self._stream_is_closed_by_end(number):
                    raise StreamClosedError(number) from error
                raise
            reset = RstStreamFrame(number)
            reset.error_code = ErrorCodes.STREAM_CLOSED
            frames, events = [reset], getattr(error, "_events", [])
        self._prepare_for_sending(frames)
        return events  # type: ignore[no-any-return]
