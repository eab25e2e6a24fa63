# SPDX-License-Identifier: Apache-2.0
"""Messages that are fetched from other brokers; when they are: test_revive_others.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.fakes import Asked, FakeConnections
from txrocketmq.broker.cluster.outer_api import ask_another
from txrocketmq.broker.pop.records import MergeKey, check_point
from txrocketmq.broker.pop.waiting import Fetched
from txrocketmq.broker.replication.popped_elsewhere import PoppedElsewhere
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.message import MessageExt, decode_messages, encode_message
from txrocketmq.remoting.protocol.body.route import BrokerData, TopicRouteData
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader

MASTER, SLAVE, SECOND = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"
POINT = check_point(MergeKey("T", "g", 3, 5, 1_700_000_000_000, "other"), 60_000, (0, 2, 4))
OFFSETS = [5, 7, 9]


class Scene:
    """Whose name server and other brokers the test plays."""

    def __init__(self) -> None:
        self.routes: list[tuple[str, PendingReply]] = []
        connections: Any = FakeConnections()
        self.connections = connections
        self.elsewhere = PoppedElsewhere(self._ask_route)
        self.elsewhere.begin(partial(ask_another, self.connections))
        self.has: list[Fetched | None] = []

    def _ask_route(self, topic: str) -> PendingReply:
        self.routes.append((topic, PendingReply()))
        return self.routes[-1][1]

    def asked(self, outcome: Reply[Any] | Exception, offsets: list[int] = OFFSETS) -> list[Asked]:
        """Fetches, and has the name server answer; returns what a broker is asked."""
        self.elsewhere.fetch(POINT, offsets, self.has.append)
        self.routes[-1][1].resolve(outcome)
        found: list[Asked] = self.connections.take()
        return found

    def fetched(self, outcome: Reply[Any] | Exception) -> Fetched | None:
        """Fetches, and has the broker answer."""
        (asked,) = self.asked(route({0: MASTER}))
        asked.pending.resolve(outcome)
        return self.has.pop()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def route(addresses: dict[int, str], name: str = "other") -> Reply[Any]:
    others = BrokerData(broker_name="a", cluster="c", broker_addrs={0: "10.0.0.9:1"})
    found = BrokerData(broker_name=name, cluster="c", broker_addrs=addresses)
    return Reply(body=TopicRouteData(queue_datas=[], broker_datas=[others, found]).encode())


def pulled(*offsets: int, code: int = ResponseCode.SUCCESS, next_offset: int = 0) -> Reply[Any]:
    header = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=next_offset, min_offset=0, max_offset=100
    )
    messages = [
        MessageExt(topic="T", queue_id=3, queue_offset=each, body=b"%d" % each) for each in offsets
    ]
    return Reply(header, code=code, body=b"".join(map(encode_message, messages)))


def test_a_broker_is_asked_for_all_of_them(scene: Scene) -> None:
    (asked,) = scene.asked(route({0: MASTER, 1: SLAVE}))
    assert scene.routes[0][0] == "T"
    assert (asked.address, asked.call.code) == (MASTER, RequestCode.PULL_MESSAGE)
    header: Any = asked.header
    assert (header.topic, header.queue_id, header.queue_offset) == ("T", 3, 5)
    assert (header.max_msg_nums, header.consumer_group) == (5, "TOOLS_CONSUMER")
    assert header.bname == "other"
    assert not header.sys_flag & 2, "it does not wait for messages"
    for offsets, count in (([7], 1), ([7, 1_000_000], 32)):
        (asked,) = scene.asked(route({0: MASTER}), offsets)
        header = asked.header
        assert (header.queue_offset, header.max_msg_nums) == (7, count)


def test_without_a_master_a_slave_is_asked(scene: Scene) -> None:
    (asked,) = scene.asked(route({2: SECOND, 1: SLAVE}))
    assert asked.address == SLAVE


@pytest.mark.parametrize(
    "answer",
    [
        route({}),
        route({0: "nowhere"}),
        route({0: MASTER}, name="third"),
        Reply(code=ResponseCode.TOPIC_NOT_EXIST),
        Reply(body=b"["),
        ConnectError("no"),
    ],
)
def test_where_nobody_is_known_nobody_is_asked(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    assert scene.asked(answer) == []
    assert scene.has == [None]


def test_before_it_can_ask_there_is_nothing(scene: Scene) -> None:
    scene.elsewhere = PoppedElsewhere(scene._ask_route)
    assert scene.asked(route({0: MASTER})) == []
    assert scene.has == [None]


def test_what_was_popped_is_found_among_what_comes(scene: Scene) -> None:
    found = scene.fetched(pulled(5, 6, 7))
    assert found is not None
    assert found.end == 8, "the last one is asked for next"
    bodies = {at: decode_messages(each)[0].body for at, each in found.records.items()}
    assert bodies == {5: b"5", 7: b"7"}


def test_what_is_gone_is_passed_over(scene: Scene) -> None:
    found = scene.fetched(pulled(8))
    assert found is not None
    assert (dict(found.records), found.end) == ({}, 9)
    for code in (ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_RETRY_IMMEDIATELY):
        assert scene.fetched(pulled(code=code, next_offset=9)) == Fetched({}, 9)


@pytest.mark.parametrize(
    "answer",
    [
        pulled(code=ResponseCode.PULL_NOT_FOUND, next_offset=5),
        pulled(code=ResponseCode.PULL_OFFSET_MOVED, next_offset=5),
        pulled(code=ResponseCode.PULL_OFFSET_MOVED, next_offset=0),
        Reply(code=ResponseCode.PULL_OFFSET_MOVED),
        Reply(code=ResponseCode.SYSTEM_ERROR),
        pulled(),
        pulled(4),
        Reply(body=b"\0\0\0\x08damaged!"),
        Reply(body=bytes(100)),
        ConnectError("no"),
    ],
)
def test_whoever_has_not_got_so_far_is_asked_later(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    assert scene.fetched(answer) is None
