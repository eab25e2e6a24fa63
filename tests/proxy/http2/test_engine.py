# SPDX-License-Identifier: Apache-2.0
"""The server's half of HTTP/2, with h2's other half as its peer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st

from tests.proxy.http2.frames_of import frame
from txrocketmq.proxy.http2 import engine
from txrocketmq.proxy.http2.engine import CONNECTION_WINDOW_BYTES, Http2Connection
from txrocketmq.proxy.http2.floods import SETTINGS
from txrocketmq.proxy.http2.frames import PREFACE
from txrocketmq.proxy.http2.plain_connection import MAX_HEADER_LIST_BYTES, PlainConnection
from txrocketmq.proxy.http2.shortcuts import ServerConnection
from txrocketmq.remoting.errors import SendError

REQUEST = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/s/M"),
    (":authority", "here"),
    ("content-type", "application/grpc"),
]


@pytest.fixture(scope="module", autouse=True, params=[ServerConnection, PlainConnection])
def _connection(request: pytest.FixtureRequest) -> Iterator[None]:
    """The engine does the same with shortcuts and without."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "CONNECTION", request.param)
        yield


class Scene:
    """A connection, and the client at its other end."""

    def __init__(self, most_streams: int = 10) -> None:
        self.dirty = 0
        self.server = Http2Connection(most_streams, self._dirty)
        self.client: Any = H2Connection(H2Configuration(client_side=True))
        self.client.initiate_connection()
        self.told()
        self.heard()
        self.told()

    def _dirty(self) -> None:
        self.dirty += 1

    def told(self) -> list[Any]:
        """What the server makes of all that the client has to send."""
        events = self.server.receive(self.client.data_to_send())
        while self.server.decoder.is_behind:
            events += self.server.receive(b"")
        return events

    def heard(self) -> list[Any]:
        """What the client makes of all that the server has to send."""
        events: list[Any] = self.client.receive_data(self.server.data_to_send())
        return events


@pytest.fixture
def scene() -> Scene:
    return Scene()


def kinds(events: list[Any]) -> list[type]:
    """The types of events."""
    return [type(event) for event in events]


def test_the_client_learns_the_limits(scene: Scene) -> None:
    settings = scene.client.remote_settings
    assert settings.max_concurrent_streams == 10
    assert settings.max_header_list_size == MAX_HEADER_LIST_BYTES
    assert settings.initial_window_size == 1 << 20
    assert scene.client.outbound_flow_control_window == CONNECTION_WINDOW_BYTES


def test_a_call_and_its_answer(scene: Scene) -> None:
    scene.client.send_headers(1, REQUEST)
    scene.client.send_data(1, b"ask", end_stream=True)
    assert kinds(scene.told()) == [RequestReceived, DataReceived, StreamEnded]
    scene.server.took(1, 3)
    scene.server.headers(1, [(":status", "200")])
    assert scene.server.room(1) == 16_384
    scene.server.data(1, b"answer")
    scene.server.headers(1, [("grpc-status", "0")], ends=True)
    events = scene.heard()
    assert kinds(events)[0] is ResponseReceived
    assert b"".join(each.data for each in events if type(each) is DataReceived) == b"answer"
    assert StreamEnded in kinds(events)


def test_what_is_said_to_a_stream_that_is_gone_is_left_out(scene: Scene) -> None:
    scene.client.send_headers(1, REQUEST)
    scene.client.reset_stream(1)
    assert StreamReset in kinds(scene.told())
    scene.server.headers(1, [(":status", "200")])
    scene.server.data(1, b"x")
    scene.server.reset(1)
    scene.server.took(1, 0)
    assert scene.heard() == []


def test_a_call_may_end_before_its_request(scene: Scene) -> None:
    scene.client.send_headers(1, REQUEST)
    scene.told()
    scene.server.headers(1, [(":status", "200")], ends=True)
    scene.server.reset(1)
    assert StreamReset in kinds(scene.heard())
    scene.client.send_headers(3, REQUEST)
    assert kinds(scene.told()) == [RequestReceived]
    assert scene.server.decoder.error is None


def test_open_calls_go_on_after_goaway_of_either_side(scene: Scene) -> None:
    scene.client.send_headers(1, REQUEST, end_stream=True)
    scene.told()
    scene.server.go_away()
    assert kinds(scene.heard()) == [ConnectionTerminated]
    scene.client.state_machine.state = ConnectionState.CLIENT_OPEN  # as clients of gRPC take it
    scene.server.headers(1, [(":status", "200")], ends=True)
    assert ResponseReceived in kinds(scene.heard())
    other = Scene()
    other.client.send_headers(1, REQUEST, end_stream=True)
    assert ConnectionTerminated not in kinds(other.told())
    assert ConnectionTerminated in kinds(
        other.server.receive(frame(7, bytes(8)) + frame(6, bytes(8)))
    )
    other.server.receive(b"")
    other.server.headers(1, [(":status", "200")], ends=True)
    assert ResponseReceived in kinds(other.heard())


def test_too_many_headers_end_the_connection(scene: Scene) -> None:
    many = [(f"x-{n}", "y" * 100) for n in range(200)]
    scene.client.send_headers(1, REQUEST + many)
    scene.told()
    assert "rules of HTTP/2" in str(scene.server.decoder.error)
    assert scene.heard()[-1].error_code == ErrorCodes.ENHANCE_YOUR_CALM


def test_headers_that_are_small_on_the_wire_only(scene: Scene) -> None:
    """One header of 3,000 bytes that is repeated by a byte each time."""
    scene.client.send_headers(1, REQUEST + [("x-bomb", "y" * 3_000)] * 100)
    data = scene.client.data_to_send()
    assert len(data) < 4_000
    scene.server.receive(data)
    assert scene.server.decoder.error is not None


def test_a_flood_ends_the_connection_calmly(scene: Scene) -> None:
    scene.server.receive(frame(SETTINGS) * 200)
    while scene.server.decoder.error is None:
        scene.server.receive(b"")
    data = scene.server.data_to_send()
    assert data.endswith(frame(7, (0).to_bytes(4, "big") + (0xB).to_bytes(4, "big")))


def test_more_streams_than_the_client_was_told_of_end_nothing(scene: Scene) -> None:
    scene.client.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 100
    scene.client.remote_settings.acknowledge()
    for number in range(1, 25, 2):
        scene.client.send_headers(number, REQUEST)
    assert kinds(scene.told()) == [RequestReceived] * 12
    assert scene.server.decoder.error is None


def test_a_stranger_is_sent_nothing() -> None:
    server = Http2Connection(10, lambda: None)
    assert server.receive(b"GET / HTTP/1.1\r\n") == []
    assert server.decoder.error is not None
    assert server.data_to_send() == b""


def test_pings_and_ends(scene: Scene) -> None:
    scene.server.ping()
    scene.heard()
    assert kinds(scene.told())[0].__name__ == "PingAckReceived"
    assert (scene.server.in_flight, scene.server.is_late(1)) == (0, False)
    scene.server.expire(1)
    scene.server.receive(b"\0\0")
    scene.server.lost(SendError("gone"))
    assert scene.server.decoder.held_bytes == 0


@given(st.binary(max_size=300))
def test_any_bytes_are_events_or_an_error(data: bytes) -> None:
    server = Http2Connection(10, lambda: None)
    server.receive(PREFACE + frame(SETTINGS) + data)
    while server.decoder.is_behind:
        server.receive(b"")


@given(
    st.lists(
        st.builds(
            frame,
            st.integers(0, 11),
            st.binary(max_size=40),
            st.integers(0, 255),
            st.sampled_from((0, 1, 2, 3, 5, 2**31 - 1)),
        ),
        max_size=30,
    )
)
def test_any_frames_are_events_or_an_error(frames: list[bytes]) -> None:
    server = Http2Connection(10, lambda: None)
    server.receive(PREFACE + frame(SETTINGS) + b"".join(frames))
    while server.decoder.is_behind:
        server.receive(b"")
