# SPDX-License-Identifier: Apache-2.0
"""GO_AWAY: a server that stops is left for a new connection, and the request is repeated once.

`Connections` of `client.py` does it, as NettyRemotingClient of 5.4.0 does.
"""

from __future__ import annotations

import pytest

from tests.remoting.transport.scene import HERE, Scene, answer
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.errors import ConnectError, RequestTimeout, SendError
from txrocketmq.remoting.transport.client import GOING_MS
from txrocketmq.remoting.transport.peer import SILENT_MS


@pytest.fixture
def scene() -> Scene:
    return Scene()


def go_away(asked: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(
        ResponseCode.GO_AWAY, flag=RESPONSE_FLAG, opaque=asked.opaque, remark="please go away"
    )


def test_what_is_told_to_go_away_is_asked_again_on_a_new_connection(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    old = scene.accept()
    one, two = old.heard()
    old.tell(go_away(one), go_away(two))
    assert scene.outcomes == []
    assert scene.attempts == 2, "both wait for the same new connection"
    scene.ask()
    new = scene.accept()
    again = new.heard()
    assert {(each.code, each.body) for each in again} == {(RequestCode.GET_MAX_OFFSET, b"body")}
    assert again[0].ext_fields == one.ext_fields
    new.tell(*(answer(each, number) for number, each in enumerate(again)))
    assert sorted(each.header.offset for each in scene.outcomes) == [0, 1, 2]
    assert not scene.connections._repeated


def test_a_late_go_away_leaves_the_new_connection_alone(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    old = scene.accept()
    one, two = old.heard()
    old.tell(go_away(one))
    new = scene.accept()
    old.tell(go_away(two))
    assert scene.attempts == 2
    assert len(new.heard()) == 2


def test_what_the_old_connection_still_owes_is_waited_for(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    scene.ask(timeout_ms=1_000)
    old = scene.accept()
    one, slow, _ = old.heard()
    old.tell(go_away(one))
    scene.accept()
    scene.pass_ms(1_200)
    assert [type(each) for each in scene.outcomes] == [RequestTimeout]
    assert not old.wire.disconnecting
    old.tell(answer(slow, 7))
    assert scene.outcomes[1].header.offset == 7
    scene.pass_ms(200)
    assert old.wire.disconnecting
    old.leave()
    assert not scene.connections._leaving
    scene.ask()
    assert scene.attempts == 2, "the end of the old one is not that of the new one"


def test_an_old_connection_that_says_nothing_more_is_given_up(scene: Scene) -> None:
    scene.ask()
    scene.ask(timeout_ms=SILENT_MS + 1_000)
    old = scene.accept()
    old.tell(go_away(old.heard()[0]))
    scene.accept()
    scene.pass_ms(SILENT_MS + 1_200)
    assert old.wire.disconnected


def test_a_second_go_away_is_an_error_and_the_server_is_left_alone(scene: Scene) -> None:
    scene.ask()
    old = scene.accept()
    old.tell(go_away(old.heard()[0]))
    new = scene.accept()
    (again,) = new.heard()
    scene.ask()
    (other,) = new.heard()
    new.tell(go_away(again), go_away(other))
    scene.ask()
    stops, later, left_alone = scene.outcomes
    assert isinstance(stops, SendError)
    assert str(stops) == f"{HERE} stops: it said GO_AWAY on a new connection too"
    for each in (later, left_alone):
        assert isinstance(each, ConnectError)
        assert str(each) == f"connect to {HERE} waits: it stops"
        assert each.again_in_ms == GOING_MS
    assert scene.attempts == 2
    scene.pass_ms(GOING_MS + 100)
    assert new.wire.disconnecting
    scene.ask()
    assert scene.attempts == 3


def test_the_new_connection_is_used_within_the_time_of_the_request(scene: Scene) -> None:
    scene.ask(timeout_ms=1_000)
    old = scene.accept()
    (asked,) = old.heard()
    scene.pass_ms(500)
    old.tell(go_away(asked))
    scene.pass_ms(600)
    new = scene.accept()
    assert [type(each) for each in scene.outcomes] == [RequestTimeout]
    assert new.heard() == []


def test_nobody_takes_the_new_connection(scene: Scene) -> None:
    scene.ask()
    old = scene.accept()
    old.tell(go_away(old.heard()[0]))
    scene.refuse()
    assert [type(each) for each in scene.outcomes] == [ConnectError]


def test_closed_connections_end_those_that_leave_too(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    old = scene.accept()
    old.tell(go_away(old.heard()[0]))
    scene.connections.close()
    assert old.wire.disconnecting
