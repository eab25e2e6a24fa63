# SPDX-License-Identifier: Apache-2.0
"""Where a group begins in a queue that it never consumed."""

from __future__ import annotations

import pytest

from tests.client.consumer.fake_broker import QUEUE, Broker
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.client.consumer.config import ConsumeFrom, PushConsumerConfig
from txrocketmq.client.consumer.queue.first_offset import HALF_AN_HOUR_MS, first_offset
from txrocketmq.client.consumer.queue.offset_store import BrokerOffsets
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import offset

RETRY = MessageQueue("%RETRY%g", "broker-a", 0)


def begins(scene: Scene, config: PushConsumerConfig, queue: MessageQueue = QUEUE) -> int:
    scene.routes["%RETRY%g"] = a_route({"broker-a": 1})
    return result_of(first_offset(scene.client, BrokerOffsets(scene.client, "g"), config, queue))


def test_a_group_goes_on_where_it_is(scene: Scene, broker: Broker) -> None:
    for start in ConsumeFrom:
        assert begins(scene, PushConsumerConfig(consume_from=start)) == 5


@pytest.mark.parametrize(
    ("start", "queue", "first"),
    [
        (ConsumeFrom.LAST_OFFSET, QUEUE, 90),
        (ConsumeFrom.LAST_OFFSET, RETRY, 0),
        (ConsumeFrom.FIRST_OFFSET, QUEUE, 0),
        (ConsumeFrom.FIRST_OFFSET, RETRY, 0),
        (ConsumeFrom.TIMESTAMP, QUEUE, 1_234),
        (ConsumeFrom.TIMESTAMP, RETRY, 90),
    ],
)
def test_one_that_never_was_here_begins_as_configured(
    scene: Scene, broker: Broker, start: ConsumeFrom, queue: MessageQueue, first: int
) -> None:
    broker.offset = None
    config = PushConsumerConfig(consume_from=start, consume_timestamp_ms=1_234)
    assert begins(scene, config, queue) == first


def test_without_a_time_it_is_half_an_hour_ago(scene: Scene, broker: Broker) -> None:
    broker.offset = None
    scene.time.advance((HALF_AN_HOUR_MS + 77) / 1000)
    assert begins(scene, PushConsumerConfig(consume_from=ConsumeFrom.TIMESTAMP)) == 77


def test_when_the_broker_fails_nothing_is_assumed(scene: Scene, broker: Broker) -> None:
    scene.connections.on(
        BROKER_A, offset.QUERY_CONSUMER_OFFSET, refusal(ResponseCode.SYSTEM_ERROR, "busy")
    )
    with pytest.raises(MQBrokerError, match="busy"):
        begins(scene, PushConsumerConfig())
