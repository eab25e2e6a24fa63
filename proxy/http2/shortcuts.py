# SPDX-License-Identifier: Apache-2.0
"""h2's connection with shortcuts for what each call has: its headers, and the usual answer.

h2 serves every kind of client and server, and describes each frame for a log that nobody keeps. A
gRPC call that ends well has always the same headers and trailers. What is said here about a call is
the same that h2 would say; the tests compare both. Inner names of h2 and hpack are used here, so
trial.py looks at the start whether they fit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final

from h2.errors import ErrorCodes
from h2.exceptions import StreamClosedError, StreamIDTooLowError
from h2.stream import StreamClosedBy, StreamState
from hpack import Decoder
from hpack.exceptions import HPACKDecodingError, OversizedHeaderListError
from hyperframe.frame import RstStreamFrame

from txrocketmq.proxy.http2.floods import DATA, HEADERS
from txrocketmq.proxy.http2.plain_connection import MAX_HEADER_LIST_BYTES, PlainConnection

_LOOK_STREAMS: Final = 64
"""After how many new streams, and as many as there are, those that have ended are forgotten."""
_ENTRY_BYTES: Final = 32
_INDEXED, _LONGER_INDEX, _ADDED, _TABLE_SIZE = 0x80, 0xFF, 0x40, 0x20
_HEAD: Final = struct.Struct(">HBBBL")
_END_STREAM, _END_HEADERS = 0x1, 0x4
# Literals that are not added to the table of the peer, so that they are always the same.
_RESPONSE: Final = b"\x88\x0f\x10\x10application/grpc"
_TRAILERS: Final = b"\x00\x0bgrpc-status\x010"


def _head(length: int, kind: int, flags: int, stream: int) -> bytes:
    return _HEAD.pack(length >> 8, length & 0xFF, kind, flags, stream)


class HeaderDecoder(Decoder):
    """hpack's decoder, which is quicker with headers that the client has sent before."""

    def decode(self, data: bytes, raw: bool = False) -> Iterable[Any]:  # noqa: FBT001, FBT002 - hpack's
        """Returns names and values. Raises HPACKError."""
        if not raw:
            return super().decode(data, raw)
        headers: list[Any] = []
        at = size = 0
        end = len(data)
        by_index = self.header_table.get_by_index
        while at < end:
            first = data[at]
            if _INDEXED < first < _LONGER_INDEX:
                header, used = by_index(first - _INDEXED), 1
            elif first & _INDEXED:
                header, used = self._decode_indexed(data[at:])
            elif first & _ADDED:
                header, used = self._decode_literal_index(data[at:])
            elif first & _TABLE_SIZE:
                if headers:
                    raise HPACKDecodingError("the size of the table changes amid headers")
                at += self._update_encoding_context(data[at:])
                continue
            else:
                header, used = self._decode_literal_no_index(data[at:])
            at += used
            headers.append(header)
            size += _ENTRY_BYTES + len(header[0]) + len(header[1])
            if size > self.max_header_list_size:
                raise OversizedHeaderListError(f"more than {self.max_header_list_size} bytes")
        self._assert_valid_table_size()
        return headers


class ServerConnection(PlainConnection):
    """A connection that says the usual in few steps."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.decoder = HeaderDecoder(MAX_HEADER_LIST_BYTES)
        self._opens_until_look = 0

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

    def answer(self, number: int, data: bytes) -> bool:
        """Answers a whole request with a message, and ends its stream with OK.

        Returns False, and does nothing, if there is no room for it, or the call is not as usual.
        """
        stream = self.streams.get(number)
        size = len(data)
        if (
            stream is None
            or size > self.max_outbound_frame_size
            or size > self.outbound_flow_control_window
            or size > stream.outbound_flow_control_window
            or self.encoder.header_table.resized  # the peer has to be told first
        ):
            return False
        machine = stream.state_machine
        if machine.state is not StreamState.HALF_CLOSED_REMOTE or machine.headers_sent:
            return False
        self._data_to_send += b"".join(
            (
                _head(len(_RESPONSE), HEADERS, _END_HEADERS, number),
                _RESPONSE,
                _head(size, DATA, 0, number),
                data,
                _head(len(_TRAILERS), HEADERS, _END_HEADERS | _END_STREAM, number),
                _TRAILERS,
            )
        )
        self.outbound_flow_control_window -= size
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
