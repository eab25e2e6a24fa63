# SPDX-License-Identifier: Apache-2.0
"""Visitors of an HTTP port who are too many, too slow, or send too much."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.static import Data

from txrocketmq.remoting.host.visitors import MOST_VISITORS, PATIENCE_S, Visitors

ASKED = b"GET /page HTTP/1.1\r\nHost: h\r\n\r\n"


class Guest:
    """A connection from a host."""

    def __init__(self, scene: Scene, host: str) -> None:
        self.wire = StringTransport(peerAddress=IPv4Address("TCP", host, 50_000))
        self.protocol = scene.visitors.buildProtocol(None)
        self.protocol.makeConnection(self.wire)

    @property
    def has_to_go(self) -> bool:
        return bool(self.wire.disconnected)

    def say(self, data: bytes) -> bytes:
        """Sends bytes; returns what was answered since the last time."""
        self.protocol.dataReceived(data)
        answer = bytes(self.wire.value())
        self.wire.clear()
        return answer

    def leave(self) -> None:
        self.protocol.connectionLost(Failure(Exception("left")))


class Scene:
    def __init__(self) -> None:
        self.reactor: Any = MemoryReactorClock()
        root: Any = Resource()
        root.putChild(b"page", Data(b"text", "text/plain"))
        self.visitors = Visitors(root, self.reactor)

    def come(self, host: str) -> Guest:
        return Guest(self, host)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_many_of_one_host_do_not_keep_another_away(scene: Scene) -> None:
    other = scene.come("10.0.0.2")
    crowd = [scene.come("10.0.0.1") for _ in range(500)]
    assert not other.has_to_go
    stay = MOST_VISITORS - 1
    assert [each.has_to_go for each in crowd] == [True] * (500 - stay) + [False] * stay
    assert other.say(ASKED).endswith(b"text")
    third = scene.come("10.0.0.3")
    assert third.say(ASKED).endswith(b"text")
    assert not other.has_to_go


def test_who_was_served_longest_ago_goes_first(scene: Scene) -> None:
    crowd = [scene.come("10.0.0.1") for _ in range(MOST_VISITORS)]
    crowd[0].say(ASKED)
    scene.come("10.0.0.1")
    assert [each.has_to_go for each in crowd[:3]] == [False, True, False]


def test_those_who_have_left_do_not_count(scene: Scene) -> None:
    for _ in range(3 * MOST_VISITORS):
        scene.come("10.0.0.1").leave()
    crowd = [scene.come("10.0.0.1") for _ in range(MOST_VISITORS)]
    assert not any(each.has_to_go for each in crowd)
    assert len(scene.reactor.getDelayedCalls()) == MOST_VISITORS


def test_a_request_that_comes_byte_by_byte_has_a_limited_time(scene: Scene) -> None:
    slow = scene.come("10.0.0.1")
    for each in (b"GET /page HTTP/1.1\r\n" + b"A" * PATIENCE_S)[: PATIENCE_S - 1]:
        scene.reactor.advance(1)
        assert slow.say(bytes((each,))) == b""
    assert not slow.has_to_go
    scene.reactor.advance(1)
    assert slow.has_to_go


def test_a_visitor_may_come_again_in_time(scene: Scene) -> None:
    scraper = scene.come("10.0.0.1")
    for _ in range(3):
        scene.reactor.advance(PATIENCE_S - 1)
        assert scraper.say(ASKED).endswith(b"text")
    scene.reactor.advance(PATIENCE_S)
    assert scraper.has_to_go


@pytest.mark.parametrize(
    "header", [b"Content-Length: 1000000000000", b"Transfer-Encoding: chunked"]
)
def test_bodies_are_refused_before_they_come(scene: Scene, header: bytes) -> None:
    guest = scene.come("10.0.0.1")
    assert guest.say(b"POST /page HTTP/1.1\r\nHost: h\r\n" + header + b"\r\n\r\n") == b""
    (request,) = guest.protocol.requests
    assert b"400 Bad Request" in guest.say(b"9\r\n" + b"x" * 9)
    assert request.content.getvalue() == b""
    assert guest.wire.disconnecting


def test_headers_are_short(scene: Scene) -> None:
    guest = scene.come("10.0.0.1")
    headers = b"".join(b"A%d: %s\r\n" % (n, b"x" * 999) for n in range(99))
    said = guest.say(b"GET /page HTTP/1.1\r\n" + headers)
    assert said.startswith(b"HTTP/1.1 400")
    assert guest.wire.disconnecting


def test_requests_behind_one_another_are_answered(scene: Scene) -> None:
    assert scene.come("10.0.0.1").say(ASKED * 3).count(b"\r\n\r\ntext") == 3
