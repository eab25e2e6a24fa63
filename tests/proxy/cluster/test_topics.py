# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.client.fakes import result_of, started
from tests.proxy.scene import BROKER_A, BROKER_B, ProxyScene, a_route, refusal
from txrocketmq.client.base.errors import MQBrokerError, NoRoute
from txrocketmq.proxy.cluster.topics import Topics
from txrocketmq.proxy.schema.enums import MessageType
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RequestTimeout
from txrocketmq.remoting.protocol import topic

NORMAL, FIFO = MessageType.NORMAL, MessageType.FIFO


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        (None, {NORMAL}),
        ("FIFO", {FIFO}),
        ("PRIORITY", {MessageType.PRIORITY}),
        ("MIXED", {NORMAL, FIFO, MessageType.DELAY, MessageType.TRANSACTION}),
    ],
)
def test_types_are_those_of_a_broker(
    scene: ProxyScene, kind: str | None, types: set[MessageType]
) -> None:
    if kind is not None:
        scene.types["T"] = kind
    topics = Topics(scene.messaging.cluster)
    assert topics.known_types("T") is None
    assert set(result_of(topics.types("T"))) == types
    assert set(topics.known_types("T") or ()) == types


def test_the_last_known_type_is_kept(scene: ProxyScene) -> None:
    topics = Topics(scene.messaging.cluster)
    scene.types["T"] = "FIFO"
    result_of(topics.types("T"))
    scene.on(topic.GET_TOPIC_CONFIG, RequestTimeout("late"))
    scene.advance(60_000, 10_000)
    assert result_of(topics.types("T")) == (FIFO,)


def test_a_type_that_was_never_known_is_any(scene: ProxyScene) -> None:
    scene.on(topic.GET_TOPIC_CONFIG, RequestTimeout("late"))
    types = result_of(Topics(scene.messaging.cluster).types("T"))
    assert {NORMAL, FIFO, MessageType.PRIORITY} < set(types)


def test_unknown_topics_are_not_made_unless_that_is_set(scene: ProxyScene) -> None:
    scene.routes["TBW102"] = a_route({"broker-a": 8})
    with pytest.raises(NoRoute):
        result_of(Topics(scene.messaging.cluster).route("new"))
    assert scene.asked(topic.UPDATE_AND_CREATE_TOPIC) == []


def test_a_topic_is_made_by_brokers_that_make_them_for_others() -> None:
    scene = ProxyScene(auto_create_topic_enable=True)
    topics = Topics(scene.messaging.cluster)
    with pytest.raises(NoRoute, match="TBW102"):
        result_of(topics.route("new"))
    scene.routes["TBW102"] = a_route({"broker-a": 8})

    def made(address: str, header: Any, body: bytes) -> Reply[Any]:
        scene.time.callLater(0.15, scene.routes.__setitem__, "new", a_route({"broker-a": 4}))
        return Reply()

    scene.on(topic.UPDATE_AND_CREATE_TOPIC, made)
    route = started(topics.route("new"))
    scene.advance(500)
    assert len(result_of(route).writable) == 4
    (header,) = scene.asked(topic.UPDATE_AND_CREATE_TOPIC)
    assert (header.topic, header.read_queue_nums, header.perm) == ("new", 4, 6)


def test_a_topic_that_no_broker_makes_is_told() -> None:
    scene = ProxyScene(auto_create_topic_enable=True)
    scene.routes["TBW102"] = a_route({"broker-a": 8})
    scene.on(topic.UPDATE_AND_CREATE_TOPIC, refusal(ResponseCode.NO_PERMISSION, "not you"))
    with pytest.raises(MQBrokerError, match="not you"):
        result_of(Topics(scene.messaging.cluster).route("new"))


def test_a_broker_that_does_not_make_it_leaves_it_to_the_others() -> None:
    scene = ProxyScene(auto_create_topic_enable=True)
    scene.routes["TBW102"] = a_route({"broker-a": 8, "broker-b": 8})
    scene.connections.on(BROKER_A, topic.UPDATE_AND_CREATE_TOPIC, RequestTimeout("late"))

    def made(address: str, header: Any, body: bytes) -> Reply[Any]:
        scene.routes["new"] = a_route({"broker-b": 4})
        return Reply()

    scene.connections.on(BROKER_B, topic.UPDATE_AND_CREATE_TOPIC, made)
    assert len(result_of(Topics(scene.messaging.cluster).route("new")).writable) == 4
    scene.connections.on(BROKER_B, topic.UPDATE_AND_CREATE_TOPIC, RequestTimeout("late"))
    with pytest.raises(RequestTimeout):
        result_of(Topics(scene.messaging.cluster).route("other"))
