# SPDX-License-Identifier: Apache-2.0
"""The shortcuts say and hear what h2 and hpack do."""

from __future__ import annotations

from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    PriorityUpdated,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    TrailersReceived,
    WindowUpdated,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes
from hyperframe.exceptions import HyperframeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import work_of
from tests.examples import examples
from tests.proxy.http2.frames_of import frame
from txrocketmq.proxy.http2.floods import SETTINGS
from txrocketmq.proxy.http2.frames import PREFACE, heads_of
from txrocketmq.proxy.http2.plain_connection import PlainConnection, WholeRequest
from txrocketmq.proxy.http2.shortcuts import ServerConnection

REQUEST = [(":method", "POST"), (":scheme", "http"), (":path", "/s/M"), (":authority", "here")]


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


# ---------------------------------------------------------------------------- whole requests

BLOCK = b"\x83\x86\x44\x04/s/M"  # POST, http and the path
_ROOM = st.sampled_from((0, 1, 5, 1 << 20, (1 << 31) - 1))


def call(
    number: int, data: bytes = b"ask", block: bytes = BLOCK, *, room: int = 0, priority: int = -1
) -> bytes:
    """A request as clients send it, with a WINDOW_UPDATE between or a priority, as some do."""
    first = b"" if priority < 0 else priority.to_bytes(4, "big") + b"\x0f"
    return b"".join(
        (
            frame(1, first + block, 0x04 if priority < 0 else 0x24, number),
            frame(8, room.to_bytes(4, "big"), 0, number) if room else b"",
            frame(0, data, 0x01, number),
        )
    )


class H2Way(PlainConnection):
    """A connection that keeps streams that have ended as long as the one with shortcuts."""

    open_inbound_streams = ServerConnection.open_inbound_streams
    _opens_until_look = 1_000


class Side:
    """A connection of a server, whose application takes all that comes at once."""

    def __init__(self, kind: Any) -> None:
        config = H2Configuration(
            client_side=False, header_encoding=None, validate_inbound_headers=False
        )
        self.connection: Any = kind(config)
        self.connection.initiate_connection()
        self.connection._opens_until_look = 1_000
        self.is_over = False
        self.said(PREFACE + frame(SETTINGS) + call(1))

    def said(self, data: bytes) -> list[Any]:
        """What the application hears of these bytes, without what it does not look at."""
        if self.is_over:
            return []
        try:
            events = self.connection.receive_data(data)
        except (H2Error, HyperframeError) as error:
            self.is_over = True
            return [getattr(error, "error_code", None)]
        heard: list[Any] = []
        for event in events:
            if isinstance(event, WholeRequest):
                heard += [(event.number, event.headers), (event.number, event.data), event.number]
            elif isinstance(event, RequestReceived):
                heard.append((event.stream_id, dict(event.headers)))
            elif isinstance(event, DataReceived):
                heard.append((event.stream_id, event.data))
                self.connection.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id
                )
            elif isinstance(event, StreamEnded):
                heard.append(event.stream_id)
            elif not isinstance(event, (PriorityUpdated, WindowUpdated)):
                heard.append(type(event))
        return heard

    def does(self, what: str, number: int) -> Any:
        """Does something to a stream as the application; returns what h2 says to it."""
        connection = self.connection
        try:
            if what == "answer" and not getattr(connection, "answer", lambda *_: False)(
                number, b"answer"
            ):
                connection.send_headers(number, [(":status", "200")])
                connection.send_data(number, b"answer")
                connection.send_headers(number, [("grpc-status", "0")], end_stream=True)
            elif what == "refuse":
                connection.send_headers(number, [(":status", "200")], end_stream=True)
            elif what == "begin":
                connection.send_headers(number, [(":status", "200")])
                return connection.local_flow_control_window(number)
            elif what in ("data", "end"):
                connection.send_data(number, b"some", end_stream=what == "end")
            elif what == "more":
                connection.send_data(number, b"some")
            elif what == "reset":
                connection.reset_stream(number)
        except (H2Error, KeyError):
            return "refused"
        return None

    def sent(self) -> list[Any]:
        """The frames that were sent, of headers without what is in them, which HPACK decides."""
        data, frames = self.connection.data_to_send(), []
        heads, end = heads_of(data, 1 << 24)
        assert end == len(data)
        for kind, flags, number, begin, last in heads:
            frames.append((kind, flags, number, b"" if kind == 1 else data[begin:last]))
        return sorted(frames)


_NUMBERS = st.sampled_from((1, 3, 5, 7, 2))
_SAID = st.one_of(
    st.builds(
        call,
        _NUMBERS,
        st.sampled_from((b"ask", b"", bytes(16_000))),
        st.sampled_from(
            (BLOCK, BLOCK + b"\x5c\x013", BLOCK + b"\x5c\x019", BLOCK + b"\x08\x03100", b"\xc9")
        ),
        room=_ROOM,
        priority=st.sampled_from((-1, -1, 0, 3)),
    ),
    st.builds(frame, st.just(0), st.just(b"late"), st.sampled_from((0, 1)), _NUMBERS),
    st.builds(frame, st.just(1), st.just(BLOCK), st.sampled_from((0, 4, 5)), _NUMBERS),
    st.builds(frame, st.just(3), st.just(bytes(4)), st.just(0), _NUMBERS),
    st.builds(
        lambda number, room: frame(8, room.to_bytes(4, "big"), 0, number),
        st.sampled_from((0, 1, 3, 5)),
        _ROOM,
    ),
    st.sampled_from(
        (
            frame(6, b"12345678"),
            frame(6, b"12345678", 1),
            frame(6, b"1234567"),
            frame(SETTINGS, b"\0\x04" + (10).to_bytes(4, "big")),
            frame(SETTINGS, b"\0\x04" + ((1 << 31) - 1).to_bytes(4, "big")),
            frame(SETTINGS, b"\0\x05" + (20_000).to_bytes(4, "big")),
            frame(2, bytes(5), 0, 3),
            frame(11, b"?"),
        )
    ),
)
_DONE = st.tuples(
    st.sampled_from(("answer", "refuse", "begin", "more", "more", "data", "end", "reset")), _NUMBERS
)


@given(st.lists(st.one_of(st.lists(_SAID, min_size=1, max_size=4), _DONE), max_size=8))
@settings(max_examples=examples(100))
def test_whole_requests_among_anything_are_served_as_h2_does(steps: list[Any]) -> None:
    ours, theirs = Side(ServerConnection), Side(H2Way)
    assert ours.sent() == theirs.sent()
    for step in steps:
        if isinstance(step, list):
            data = b"".join(step)
            assert ours.said(data) == theirs.said(data)
        elif not ours.is_over:
            assert ours.does(*step) == theirs.does(*step)
        assert ours.sent() == theirs.sent()
    for name in ("outbound_flow_control_window", "inbound_flow_control_window"):
        assert getattr(ours.connection, name) == getattr(theirs.connection, name)


def test_a_request_in_one_piece_is_one_event() -> None:
    side = Side(ServerConnection)
    (event,) = side.connection.receive_data(call(3, b"ask"))
    assert event == (3, {b":method": b"POST", b":scheme": b"http", b":path": b"/s/M"}, b"ask")
    assert list(side.connection.streams) == [1]  # the first of all goes h2's way
    assert side.connection.answer(3, b"answer")
    events = side.connection.receive_data(
        call(5, b"a", room=5) + frame(8, b"\0\0\0\x05") + call(7, b"b", priority=0)
    )
    assert [each.data for each in events if isinstance(each, WholeRequest)] == [b"a", b"b"]


def test_the_window_is_widened_as_requests_are_taken() -> None:
    side = Side(ServerConnection)
    for number in range(3, 403, 2):
        side.said(call(number, bytes(1_000)))
        assert side.connection.answer(number, b"")
    assert side.connection.inbound_flow_control_window > 30_000


def test_requests_that_were_answered_are_forgotten() -> None:
    side = Side(ServerConnection)
    for number in range(3, 4_003, 2):
        side.said(call(number))
        assert side.connection.answer(number, b"")
    connection = side.connection
    assert list(connection.streams) == [1]
    assert not connection._whole
    assert len(connection._answered) == 512


def test_a_whole_request_and_its_answer_take_few_steps() -> None:
    side = Side(ServerConnection)
    block = BLOCK.replace(b"\x44", b"\x04")  # which adds nothing to the table
    calls = [(number, call(number, block=block, room=5)) for number in range(3, 203, 2)]
    its = iter([(number, data, heads_of(data, 16_384)[0]) for number, data in calls])

    def some() -> None:
        for _ in range(16):
            number, data, heads = next(its)
            side.connection.receive_frames(data, heads)
            side.connection.answer(number, b"answer")

    some()
    assert work_of([some], 16).operations < 600
