# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body import heartbeat
from txrocketmq.remoting.protocol.body.base import BodyError
from txrocketmq.remoting.protocol.body.heartbeat import (
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
)


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(heartbeat)


def test_heartbeat_of_the_cpp_client() -> None:
    """It sends enums as numbers, versions of subscriptions as texts, and no empty lists."""
    beat = HeartbeatData.decode(
        b'{"clientID":"1.2.3.4@1","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,'
        b'"groupName":"g","messageModel":1,"subscriptionDataSet":[{"subString":"*",'
        b'"subVersion":"1700000000000","topic":"t"}]}],"producerDataSet":[{"groupName":"p"}]}\n'
    )
    (consumer,) = beat.consumer_data_set
    assert consumer.consume_type == "CONSUME_PASSIVELY"
    assert consumer.message_model == "CLUSTERING"
    assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    (subscription,) = consumer.subscription_data_set
    assert (subscription.topic, subscription.sub_version) == ("t", 1700000000000)
    assert [producer.group_name for producer in beat.producer_data_set] == ["p"]


def test_unknown_names_of_enums_are_absent() -> None:
    beat = HeartbeatData.decode(
        b'{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":"NEW",'
        b'"messageModel":7}]}'
    )
    (consumer,) = beat.consumer_data_set
    assert (consumer.consume_type, consumer.message_model) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{}", "HeartbeatData.clientID: is missing"),
        (
            b'{"clientID":"c","consumerDataSet":[{}]}',
            "HeartbeatData.consumerDataSet[0].groupName: is missing",
        ),
        (
            b'{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":{}}]}',
            (
                "HeartbeatData.consumerDataSet[0].consumeType: one of CONSUME_ACTIVELY,"
                " CONSUME_PASSIVELY, CONSUME_POP is expected, not {}"
            ),
        ),
        (
            b'{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[[]]}]}',
            (
                "HeartbeatData.consumerDataSet[0].subscriptionDataSet[0]:"
                " the subscription is not a JSON object: []"
            ),
        ),
        (b'{"clientID":[]}', "HeartbeatData.clientID: a text is expected, not []"),
        (b"[]", "HeartbeatData: an object is expected, not []"),
    ],
)
def test_errors_tell_the_way_to_them(text: bytes, message: str) -> None:
    with pytest.raises(BodyError) as caught:
        HeartbeatData.decode(text)
    assert str(caught.value) == message


def test_locks_are_sets_of_queues() -> None:
    queues = frozenset({MessageQueue("t", "b", 1), MessageQueue("t", "b", 0)})
    body = LockBatchRequestBody(consumer_group="g", client_id="c", mq_set=queues)
    assert LockBatchRequestBody.decode(body.encode()) == body
    assert LockBatchResponseBody(lock_ok_mq_set=queues).encode() == (
        b'{"lockOKMQSet":[{"brokerName":"b","queueId":0,"topic":"t"},'
        b'{"brokerName":"b","queueId":1,"topic":"t"}]}'
    )
