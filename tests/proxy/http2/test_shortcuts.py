# SPDX-License-Identifier: Apache-2.0
"""The shortcuts say and hear what h2 and hpack do."""

from __future__ import annotations

from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, TrailersReceived
from h2.exceptions import H2Error
from h2.settings import SettingCodes
from hpack import Decoder, Encoder
from hpack.exceptions import HPACKError
from hyperframe.exceptions import HyperframeError
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.http2.frames_of import frame
from txrocketmq.proxy.http2.floods import SETTINGS
from txrocketmq.proxy.http2.frames import PREFACE
from txrocketmq.proxy.http2.header_decoder import HeaderDecoder
from txrocketmq.proxy.http2.shortcuts import ServerConnection

REQUEST = [(":method", "POST"), (":scheme", "http"), (":path", "/s/M"), (":authority", "here")]
_NAMES = st.sampled_from((":path", "content-type", "grpc-timeout", "x-mq-client-id", "cookie"))
_HEADERS = st.lists(st.tuples(_NAMES, st.text(max_size=20), st.booleans()), max_size=8)


def decoded(decoder: Decoder, data: bytes) -> Any:
    """Headers, or the type of the error."""
    try:
        return [(bytes(name), bytes(value)) for name, value in decoder.decode(data, raw=True)]
    except (HPACKError, IndexError) as error:
        return type(error)


@given(st.lists(st.tuples(_HEADERS, st.sampled_from((None, 0, 100, 4_096))), max_size=6))
def test_headers_are_decoded_as_hpack_does(blocks: list[tuple[Any, int | None]]) -> None:
    encoder, ours, theirs = Encoder(), HeaderDecoder(300), Decoder(300)
    for headers, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        data = encoder.encode(headers)
        assert decoded(ours, data) == decoded(theirs, data)


@given(st.lists(st.binary(max_size=30), max_size=4))
def test_any_block_is_decoded_as_hpack_does(blocks: list[bytes]) -> None:
    ours, theirs = HeaderDecoder(300), Decoder(300)
    for data in blocks:
        assert decoded(ours, data) == decoded(theirs, data)
    assert ours.header_table.dynamic_entries == theirs.header_table.dynamic_entries


class Pair:
    """Both ends of a connection."""

    def __init__(self, window_bytes: int = 1_000) -> None:
        self.server: Any = ServerConnection(H2Configuration(client_side=False))
        self.client: Any = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.client.local_settings.initial_window_size = window_bytes
        self.client.local_settings.acknowledge()
        self.server.initiate_connection()
        self.client.initiate_connection()
        self.heard()

    def call(self, *, ends: bool = True) -> int:
        """Begins a call, and returns its number."""
        number: int = self.client.get_next_available_stream_id()
        self.client.send_headers(number, REQUEST, end_stream=ends)
        self.server.receive_data(self.client.data_to_send())
        return number

    def heard(self) -> list[Any]:
        """What the client has been told."""
        self.server.receive_data(self.client.data_to_send())
        events: list[Any] = self.client.receive_data(self.server.data_to_send())
        return events


def test_an_answer_is_what_h2_would_say() -> None:
    pair = Pair()
    for _ in range(3):
        number = pair.call()
        assert pair.server.answer(number, b"answer")
        events = pair.heard()
        kinds = (ResponseReceived, DataReceived, TrailersReceived, StreamEnded)
        assert tuple(map(type, events)) == kinds
        assert dict(events[0].headers) == {":status": "200", "content-type": "application/grpc"}
        assert events[1].data == b"answer"
        assert dict(events[2].headers) == {"grpc-status": "0"}
        assert pair.server.streams[number].closed
        assert not pair.server.answer(number, b"again")
        other = pair.call()  # by h2 itself, whose tables are as they were
        pair.server.send_headers(other, [(":status", "200"), ("x", "y")])
        pair.server.send_data(other, b"data")
        pair.server.send_headers(other, [("grpc-status", "0")], end_stream=True)
        assert dict(pair.heard()[0].headers) == {":status": "200", "x": "y"}


def test_an_answer_has_room_or_is_not_sent() -> None:
    pair = Pair(window_bytes=10)
    number = pair.call()
    assert not pair.server.answer(number, bytes(11))
    assert pair.server.data_to_send() == b""
    before = pair.server.outbound_flow_control_window
    assert pair.server.answer(number, bytes(10))
    assert pair.server.outbound_flow_control_window == before - 10
    pair.server.outbound_flow_control_window = 5
    assert not pair.server.answer(pair.call(), bytes(6))
    long = Pair(window_bytes=100_000)
    assert not long.server.answer(long.call(), bytes(16_385))


def test_only_whole_requests_are_answered_so() -> None:
    pair = Pair()
    number = pair.call(ends=False)
    assert not pair.server.answer(number, b"early")
    assert not pair.server.answer(99, b"nobody")
    begun = pair.call()
    pair.server.send_headers(begun, [(":status", "200")])
    assert not pair.server.answer(begun, b"late")


def test_a_new_size_of_the_table_is_told_first() -> None:
    pair = Pair()
    pair.client.update_settings({SettingCodes.HEADER_TABLE_SIZE: 100})
    pair.heard()
    number = pair.call()
    assert not pair.server.answer(number, b"answer")
    pair.server.send_headers(number, [(":status", "200")], end_stream=True)
    pair.heard()
    assert pair.server.answer(pair.call(), b"answer")
    assert ResponseReceived in map(type, pair.heard())


def test_streams_that_have_ended_are_forgotten_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = Pair()
    looked = []
    look = pair.server._open_streams

    def counted(remainder: int) -> int:
        looked.append(len(pair.server.streams))
        return int(look(remainder))

    monkeypatch.setattr(pair.server, "_open_streams", counted)
    most = 0
    for _ in range(1_000):
        assert pair.server.answer(pair.call(), b"")
        pair.heard()
        most = max(most, len(pair.server.streams))
    assert most <= 130
    assert sum(looked) <= 2_000


_FRAMES = st.lists(
    st.one_of(
        st.builds(
            frame,
            st.sampled_from((0, 1, 2, 3, 6, 8, 11)),
            st.sampled_from((b"", b"\x82\x84", bytes(4), bytes(3) + b"\x05", bytes(5), bytes(8))),
            st.sampled_from((0, 1, 4, 5, 0x24)),
            st.sampled_from((0, 1, 3, 5)),
        ),
        st.sampled_from(
            [frame(1, b"\x82\x84", 4, 1), frame(3, bytes(4), 0, 1), frame(0, b"x", 0, 1)]
        ),
    ),
    max_size=12,
)


@given(_FRAMES)
def test_any_frames_are_heard_as_by_h2(frames: list[bytes]) -> None:
    def heard(connection: Any) -> Any:
        connection.initiate_connection()
        connection.receive_data(PREFACE + frame(SETTINGS))
        connection.data_to_send()  # the settings are others
        said: list[Any] = []
        try:
            for each in frames:
                said.append(list(map(type, connection.receive_data(each))))
                said.append(connection.data_to_send())
        except (H2Error, HyperframeError):
            said += ["error", connection.data_to_send()]
        return said

    config = H2Configuration(client_side=False, validate_inbound_headers=False)
    assert heard(ServerConnection(config)) == heard(H2Connection(config))


@given(_FRAMES, st.lists(st.integers(0, 60), max_size=4))
def test_frames_are_heard_in_any_pieces(frames: list[bytes], cuts: list[int]) -> None:
    def heard(connection: Any) -> Any:
        connection.initiate_connection()
        data = PREFACE + frame(SETTINGS) + b"".join(frames)
        said: list[Any] = []
        try:
            for cut in cuts:
                piece, data = data[:cut], data[cut:]
                said += map(type, connection.receive_data(piece))
            said += map(type, connection.receive_data(data))
        except (H2Error, HyperframeError) as error:
            said.append(type(error))
        return said

    config = H2Configuration(client_side=False, validate_inbound_headers=False)
    assert heard(ServerConnection(config)) == heard(H2Connection(config))
