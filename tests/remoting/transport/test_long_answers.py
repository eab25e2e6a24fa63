# SPDX-License-Identifier: Apache-2.0
"""Answers that come later and may be long, such as those of walks: few are under way for a peer.

So one that asks for many at once, and reads them, is not taken for one that does not read.
"""

from __future__ import annotations

import pytest

from tests.remoting.transport.test_turns import ALONE, opaques, requests
from tests.remoting.transport.test_turns import Scene as Served
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Binding
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.transport.outlet import PIECE_BYTES
from txrocketmq.remoting.transport.peer import MOST_WORKS


class Scene(Served):
    """A server that promises its answers; work is under way for those with a low opaque."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[PendingReply] = []
        self.dispatcher._bindings = {ALONE.code: Binding(ALONE, self.promise, vip=False)}

    def promise(self, request: Request[NoHeader]) -> PendingReply:
        """Serves a request whose answer comes later."""
        self._serve(request.peer, request.command)
        self.pending.append(PendingReply(is_work=request.command.opaque < 100))
        return self.pending[-1]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_little_work_is_under_way_for_a_peer(scene: Scene) -> None:
    end, other = scene.connect(), scene.connect()
    end.tell(*requests(20))
    other.tell(*requests(1))
    assert [peer for peer, _ in scene.served] == [end.protocol] * MOST_WORKS + [other.protocol]
    assert end.wire.producerState == "paused"
    answers = []
    while under_way := [each for each in scene.pending if not each.done]:
        assert len(under_way) <= MOST_WORKS + 1
        under_way[-1].resolve(Reply())
        scene.all_turns()
        answers += end.heard()
    assert sorted(opaques(answers)) == list(range(20))


def test_what_comes_meanwhile_waits(scene: Scene) -> None:
    end = scene.connect()
    for opaque in range(MOST_WORKS):
        end.tell(RemotingCommand(ALONE.code, {}, opaque=opaque))
    end.tell(RemotingCommand(ALONE.code, {}, opaque=7))
    end.protocol.crowd()
    end.protocol.has_room()
    scene.all_turns()
    assert len(scene.served) == MOST_WORKS
    scene.pending[0].resolve(Reply())
    scene.all_turns()
    assert [opaque for _, opaque in scene.served][-1] == 7


def test_a_peer_that_does_not_read_long_answers_gets_no_more_of_them(scene: Scene) -> None:
    end = scene.connect()
    end.tell(*requests(64))
    end.wire.producer.pauseProducing()
    for each in scene.pending:
        each.resolve(Reply(body=bytes(PIECE_BYTES)))
    scene.all_turns()
    assert len(scene.served) == MOST_WORKS
    end.heard()
    end.wire.producer.resumeProducing()
    scene.all_turns()
    assert len(scene.served) == 2 * MOST_WORKS


def test_any_number_of_requests_may_wait_for_something_to_happen(scene: Scene) -> None:
    end = scene.connect()
    end.tell(*[RemotingCommand(ALONE.code, {}, opaque=100 + each) for each in range(20)])
    assert len(scene.served) == 20
