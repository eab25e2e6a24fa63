# SPDX-License-Identifier: Apache-2.0
"""Messages that are sent to other masters; when they are: test_schedule.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.broker.conftest import STORE_HOST
from tests.fakes import FakeConnections
from txrocketmq.broker.cluster.outer_api import ask_another
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.replication import escape as module
from txrocketmq.broker.replication.escape import ROUTE_MS, Escape
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutMessage
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol.body.route import BrokerData, QueueData, TopicRouteData

OWN, OTHER, THIRD = "10.0.0.2:10911", "10.0.0.3:10911", "10.0.0.4:10911"


class Scene:
    """An escape of the broker "own", whose name server and other masters the test plays."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.asked: list[tuple[str, PendingReply]] = []
        connections: Any = FakeConnections()
        self.connections = connections
        config = BrokerConfig(broker_name="own", broker_id=1)
        self.escape = Escape(config, self._ask_route, lambda: self.now_ms)
        self.escape.begin(partial(ask_another, connections))
        self.has: list[list[bool]] = []

    def _ask_route(self, topic: str) -> PendingReply:
        self.asked.append((topic, PendingReply()))
        return self.asked[-1][1]

    def put(self, *messages: PutMessage) -> None:
        self.escape.put(messages, self.has.append)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def message(topic: str = "T", **properties: str) -> PutMessage:
    host = STORE_HOST
    made = InnerMessage(topic, 3, b"body", 17, host, host, properties, reconsume_times=2)
    return made.to_put()


def route(**perms: int) -> Reply[Any]:
    addresses = {
        "own": {0: OWN},
        "other": {0: OTHER},
        "third": {0: THIRD},
        "headless": {1: OTHER},
        "nowhere": {0: "x"},
    }
    return Reply(
        body=TopicRouteData(
            queue_datas=[
                QueueData(broker_name=name, write_queue_nums=4, perm=perm)
                for name, perm in perms.items()
            ],
            broker_datas=[
                BrokerData(broker_name=name, cluster="c", broker_addrs=addresses[name])
                for name in perms
            ],
        ).encode()
    )


def test_a_message_is_sent_as_a_producer_would(scene: Scene) -> None:
    sent = message(DELAY="3", REAL_TOPIC="T", REAL_QID="3", KEYS="k", PGROUP="p", WAIT="true")
    scene.put(sent._replace(sys_flag=sent.sys_flag | MULTI_DISPATCH))
    ((topic, pending),) = scene.asked
    assert topic == "T"
    pending.resolve(route(own=6, other=6))
    (asked,) = scene.connections.take()
    assert (asked.address, asked.call.code) == (OTHER, RequestCode.SEND_MESSAGE)
    header = asked.header
    assert (header.topic, header.producer_group, header.born_timestamp) == ("T", "p", 17)
    assert header.reconsume_times == 2
    assert header.sys_flag == sent.sys_flag
    assert decode_properties(header.properties) == {"KEYS": "k", "PGROUP": "p", "WAIT": "false"}, (
        "it is not to be delayed once more, and nobody waits for its slaves"
    )
    assert asked.body == b"body"
    assert scene.has == []
    asked.pending.resolve(Reply(code=ResponseCode.SLAVE_NOT_AVAILABLE))
    assert scene.has == [[True]], "it is stored"


def test_messages_go_to_all_other_masters_in_turn(scene: Scene) -> None:
    scene.put(*[message() for _ in range(4)])
    for _, pending in scene.asked:
        pending.resolve(route(own=6, other=6, third=6))
    sent = scene.connections.take()
    assert [each.address for each in sent].count(OTHER) == 2
    assert {each.address for each in sent} == {OTHER, THIRD}
    assert len({each.header.queue_id for each in sent}) > 1
    assert sent[0].header.producer_group == "InnerProducerGroup_own_1"
    for each, outcome in zip(
        sent,
        [Reply(), ConnectError("no"), Reply(code=ResponseCode.SYSTEM_BUSY), Reply()],
        strict=True,
    ):
        each.pending.resolve(outcome)
    assert scene.has == [[True, False, False, True]]


@pytest.mark.parametrize(
    "answer",
    [
        route(own=6),
        route(own=6, other=4),
        route(own=6, headless=6),
        route(nowhere=6),
        Reply(code=ResponseCode.TOPIC_NOT_EXIST),
        Reply(body=b"["),
        ConnectError("no"),
    ],
)
def test_where_no_other_master_takes_a_topic_it_waits(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    scene.put(message())
    scene.asked[0][1].resolve(answer)
    assert scene.has == [[False]]
    scene.put(message())
    assert len(scene.asked) == 2, "such a route is not remembered"


def test_routes_are_remembered_for_a_while(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOPICS", 2)
    scene.put(message())
    scene.asked[0][1].resolve(route(other=6))
    scene.now_ms = ROUTE_MS - 1
    scene.put(message())
    assert len(scene.asked) == 1
    scene.now_ms = ROUTE_MS
    scene.put(message())
    assert len(scene.asked) == 2
    for topic in ("T", "U", "V"):
        scene.put(message(topic))
        scene.asked[-1][1].resolve(route(other=6))
    assert len(scene.escape._routes) <= 2


def test_a_half_message_stays_one_and_keeps_its_delay(scene: Scene) -> None:
    sent = message(DELAY="3", REAL_TOPIC="T", REAL_QID="3", TRAN_MSG="true", PGROUP="p")
    scene.put(sent._replace(sys_flag=sent.sys_flag | MessageSysFlag.TRANSACTION_PREPARED_TYPE))
    scene.asked[0][1].resolve(route(other=6))
    (asked,) = scene.connections.take()
    assert asked.header.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE
    assert decode_properties(asked.header.properties) == {
        "DELAY": "3", "TRAN_MSG": "true", "PGROUP": "p", "WAIT": "false",
    }  # fmt: skip
