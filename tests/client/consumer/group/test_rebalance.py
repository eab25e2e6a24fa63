# SPDX-License-Identifier: Apache-2.0
"""Rebalancing: when a member looks, which queues are its own, that none is nobody's or two's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.consumer.fake_broker import QUEUE, Broker
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.consumer.group.rebalance import AGAIN_MS, Rebalance
from txrocketmq.client.consumer.group.shares import ByStrategy, Everything, Own
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.allocation import STRATEGIES, Strategy, averagely
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat

INTERVAL_MS = 20_000


class Member:
    """Remembers what it was to take over; `takes` is whether it does."""

    def __init__(self, scene: Scene, strategy: Strategy | None = averagely) -> None:
        self.topics = ["T"]
        self.takes = True
        self.changes: list[tuple[str, list[MessageQueue]]] = []
        share = ByStrategy(scene.client, "g", strategy) if strategy else Everything()
        self.rebalance = Rebalance(scene.client, share, lambda: self.topics, self._change)

    async def _change(self, topic: str, queues: Sequence[MessageQueue], own: Own) -> bool:
        self.changes.append((topic, sorted(own.pulled)))
        return self.takes


@pytest.fixture
def member(scene: Scene, broker: Broker) -> Member:
    """Of a group that has begun to look."""
    found = Member(scene)
    result_of(found.rebalance.start(INTERVAL_MS))
    return found


def test_it_looks_at_the_start_and_every_twenty_seconds(scene: Scene, member: Member) -> None:
    assert member.changes == [("T", [QUEUE])]
    scene.time.advance(INTERVAL_MS / 1000)
    assert len(member.changes) == 2
    member.rebalance.stop()
    scene.time.advance(INTERVAL_MS / 1000)
    member.rebalance.look()
    assert len(member.changes) == 2


def test_it_looks_when_the_route_changes(scene: Scene, member: Member) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    result_of(scene.client.refresh("T"))
    assert [len(own) for _, own in member.changes] == [1, 2]


def test_it_looks_again_soon_when_queues_are_left(scene: Scene, member: Member) -> None:
    member.takes = False
    member.rebalance.look()
    scene.time.advance(AGAIN_MS / 1000)
    assert len(member.changes) == 3
    member.takes = True
    scene.time.advance(AGAIN_MS / 1000)
    scene.time.advance(AGAIN_MS / 1000)
    assert len(member.changes) == 4


def test_one_look_at_a_time_and_one_more_for_all_that_was_asked_meanwhile(
    scene: Scene, member: Member
) -> None:
    answer = PendingReply()
    scene.connections.on(BROKER_A, heartbeat.GET_CONSUMER_LIST_BY_GROUP, answer)
    for _ in range(3):
        member.rebalance.look()
    asked = len(scene.connections.questions(heartbeat.GET_CONSUMER_LIST_BY_GROUP))
    assert asked == 2
    answer.resolve(refusal(ResponseCode.SYSTEM_ERROR))
    assert len(scene.connections.questions(heartbeat.GET_CONSUMER_LIST_BY_GROUP)) == 3
    assert len(member.changes) == 1  # what cannot be found out changes nothing


def test_a_topic_that_is_subscribed_to_later_is_looked_at(scene: Scene, member: Member) -> None:
    scene.routes["U"] = a_route({"broker-a": 1})
    member.topics.append("U")
    member.rebalance.look()
    assert [topic for topic, _ in member.changes] == ["T", "T", "U"]


def test_in_broadcasting_all_queues_are_everybodys(scene: Scene, broker: Broker) -> None:
    scene.routes["T"] = a_route({"broker-a": 3})
    member = Member(scene, None)
    result_of(member.rebalance.start(INTERVAL_MS))
    assert [len(own) for _, own in member.changes] == [3]
    assert scene.connections.questions(heartbeat.GET_CONSUMER_LIST_BY_GROUP) == []
    member.rebalance.stop()


@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 20)), max_size=30, unique=True),
    st.lists(st.text("xyz0123", min_size=1, max_size=6), min_size=1, max_size=9, unique=True),
)
def test_each_queue_is_of_exactly_one_member(
    name: str, queues: list[tuple[str, int]], members: list[str]
) -> None:
    everything = sorted(MessageQueue("T", broker, number) for broker, number in queues)
    shares = [STRATEGIES[name](each, everything, sorted(members)) for each in sorted(members)]
    assert sorted(queue for share in shares for queue in share) == everything
    assert STRATEGIES[name]("nobody", everything, sorted(members)) == []
