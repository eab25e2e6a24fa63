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
from h2.exceptions import ProtocolError, StreamClosedError, StreamIDTooLowError
from h2.stream import StreamClosedBy, StreamState
from hpack import Decoder
from hpack.exceptions import HPACKDecodingError, OversizedHeaderListError
from hpack.hpack import decode_integer
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable
from hyperframe.frame import RstStreamFrame

from txrocketmq.proxy.http2.floods import DATA, HEADERS, WINDOW_UPDATE
from txrocketmq.proxy.http2.frames import HEAD_BYTES
from txrocketmq.proxy.http2.plain_connection import MAX_HEADER_LIST_BYTES, PlainConnection

_LOOK_STREAMS: Final = 64
"""After how many new streams, and as many as there are, those that have ended are forgotten."""
_ENTRY_BYTES: Final = 32
_INDEXED, _ADDED, _TABLE_SIZE = 0x80, 0x40, 0x20
_STATIC: Final = (None, *HeaderTable.STATIC_TABLE)
_FIRST_ADDED: Final = len(_STATIC)
_HEAD: Final = struct.Struct(">HBBBL")
_END_STREAM, _END_HEADERS = 0x1, 0x4
_STREAM: Final = 0x7FFF_FFFF
_ENDS: Final = frozenset({"END_STREAM"})
_GOES_ON: Final[frozenset[str]] = frozenset()
# Literals that are not added to the table of the peer, so that they are always the same.
_RESPONSE: Final = b"\x88\x0f\x10\x10application/grpc"
_TRAILERS: Final = b"\x00\x0bgrpc-status\x010"


def _head(length: int, kind: int, flags: int, stream: int) -> bytes:
    return _HEAD.pack(length >> 8, length & 0xFF, kind, flags, stream)


class HeaderDecoder(Decoder):
    """hpack's decoder, which takes the usual forms of headers in few steps."""

    def decode(self, data: bytes, raw: bool = False) -> Iterable[Any]:  # noqa: FBT001, FBT002 - hpack's
        """Returns names and values. Raises HPACKError."""
        if not raw:
            return super().decode(data, raw)
        try:
            return self._decoded(data)
        except IndexError:
            raise HPACKDecodingError("the headers are cut off") from None

    def _decoded(self, data: bytes) -> list[tuple[bytes, bytes]]:
        headers: list[tuple[bytes, bytes]] = []
        at = size = 0
        end = len(data)
        table = self.header_table
        added, by_index, most = table.dynamic_entries, table.get_by_index, self.max_header_list_size
        while at < end:
            first = data[at]
            at += 1
            if first & _INDEXED:
                index = first & 0x7F
                if index == 0x7F:
                    index, at = _integer(data, at, 7)
                if index < _FIRST_ADDED:
                    name, value = header = _STATIC[index] or by_index(index)
                elif index - _FIRST_ADDED < len(added):
                    name, value = header = added[index - _FIRST_ADDED]
                else:
                    name, value = header = by_index(index)  # which says that there is none
            elif first & _ADDED or not first & _TABLE_SIZE:
                header, at = self._literal(data, at, first)
                name, value = header
            elif headers:
                raise HPACKDecodingError("the size of the table changes amid headers")
            else:
                at += self._update_encoding_context(data[at - 1 :]) - 1
                continue
            headers.append(header)
            size += _ENTRY_BYTES + len(name) + len(value)
            if size > most:
                raise OversizedHeaderListError(f"more than {most} bytes")
        self._assert_valid_table_size()
        return headers

    def _literal(self, data: bytes, at: int, first: int) -> tuple[tuple[bytes, bytes], int]:
        """Returns a header that is written out, and where it ends; its name may be a number."""
        mask, bits = (0x3F, 6) if first & _ADDED else (0x0F, 4)
        index = first & mask
        if index == mask:
            index, at = _integer(data, at, bits)
        if index:
            name = self.header_table.get_by_index(index)[0]
        else:
            name, at = _text(data, at)
        value, at = _text(data, at)
        if first & _ADDED:
            self.header_table.add(name, value)
        return (name, value), at


def _integer(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Returns a number that goes on at a place, behind a byte whose last bits are all set."""
    number, used = decode_integer(data[at - 1 :], bits)
    return number, at - 1 + used


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    """Returns a text and where it ends."""
    first = data[at]
    at += 1
    length = first & 0x7F
    if length == 0x7F:
        length, at = _integer(data, at, 7)
    end = at + length
    if end > len(data):
        raise HPACKDecodingError("the headers are cut off")
    text = data[at:end]
    return (bytes(decode_huffman(text)) if first & _INDEXED else text), end


class _Headers:
    """What h2 looks at of a frame of headers."""

    __slots__ = ("data", "flags", "stream_id")

    def __init__(self, stream_id: int, data: bytes, flags: frozenset[str]) -> None:
        self.stream_id = stream_id
        self.data = data
        self.flags = flags


class _Data(_Headers):
    """What h2 looks at of a frame of data without padding."""

    __slots__ = ("flow_controlled_length",)

    def __init__(self, stream_id: int, data: bytes, flags: frozenset[str]) -> None:
        super().__init__(stream_id, data, flags)
        self.flow_controlled_length = len(data)


class _WindowUpdate:
    """What h2 looks at of a frame that makes room."""

    __slots__ = ("stream_id", "window_increment")

    def __init__(self, stream_id: int, window_increment: int) -> None:
        self.stream_id = stream_id
        self.window_increment = window_increment


class ServerConnection(PlainConnection):
    """A connection that says the usual in few steps."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.decoder = HeaderDecoder(MAX_HEADER_LIST_BYTES)
        self._opens_until_look = 0
        served: dict[Any, Any] = self._frame_dispatch_table
        served[_Headers] = self._receive_headers_frame
        served[_Data] = self._receive_data_frame
        served[_WindowUpdate] = self._receive_window_update_frame

    def receive_data(self, data: Any) -> list[Any]:
        """Does what h2 does, with less of an object for each of the frames that calls consist of.

        Frames of other kinds, or with other flags, are left to h2, and so is what is not whole.
        """
        buffer: Any = self.incoming_buffer
        if buffer._preamble_len or buffer._data or buffer._headers_buffer:  # noqa: SLF001
            return super().receive_data(data)
        events: list[Any] = []
        at, size = 0, len(data)
        while at < size:
            frame, end = self._usual(data, at, size)
            if frame is None:
                events += super().receive_data(data[at:end])
                if buffer._data or buffer._headers_buffer:  # noqa: SLF001 - not whole, or goes on
                    return events + super().receive_data(data[end:])
            else:
                try:
                    events += self._receive_frame(frame)
                except ProtocolError as error:
                    self._terminate_connection(error.error_code)
                    raise
            at = end
        return events

    def _usual(self, data: bytes, at: int, size: int) -> tuple[Any, int]:
        """Returns a frame of the usual kinds, or None for any other, and where it ends."""
        if at + HEAD_BYTES > size:
            return None, size
        high, low, kind, flags, number = _HEAD.unpack_from(data, at)
        at += HEAD_BYTES
        length = high << 8 | low
        end = at + length
        number &= _STREAM
        if end > size or length > self.max_inbound_frame_size:
            return None, min(end, size)
        if kind == WINDOW_UPDATE and length == 4:
            added = int.from_bytes(data[at:end], "big") & _STREAM
            return (_WindowUpdate(number, added) if added else None), end
        if not number:
            return None, end
        if kind == DATA and not flags & ~_END_STREAM:
            return _Data(number, data[at:end], _ENDS if flags else _GOES_ON), end
        if kind == HEADERS and flags & ~_END_STREAM == _END_HEADERS:
            ends = _ENDS if flags & _END_STREAM else _GOES_ON
            return _Headers(number, data[at:end], ends), end
        return None, end

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
