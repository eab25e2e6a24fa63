# SPDX-License-Identifier: Apache-2.0
"""What administrators are told: settings under Java's names, queues, stacks."""

from __future__ import annotations

import threading

from tests.client.consumer.fake_broker import QUEUE
from tests.client.fakes import NAME_SERVER, Scene
from txrocketmq.client.consumer.config import (
    ConsumeFrom,
    LitePullConsumerConfig,
    MessageModel,
    PushConsumerConfig,
)
from txrocketmq.client.consumer.listening.running_info import (
    lite_properties,
    properties_of,
    push_properties,
    queues_of,
    stacks,
)
from txrocketmq.client.consumer.queue.offset_store import BrokerOffsets
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue


def test_settings_have_the_names_and_units_of_java() -> None:
    push = push_properties(
        PushConsumerConfig(consume_from=ConsumeFrom.TIMESTAMP, consume_timestamp_ms=0)
    )
    assert (push["consumeTimeout"], push["pullThresholdSizeForQueue"]) == (15, 100)
    assert (push["pullThresholdSizeForTopic"], push["consumeThreadMax"]) == (-1, 20)
    assert (len(push["consumeTimestamp"]), push["messageModel"]) == (14, "CLUSTERING")
    lite = lite_properties(LitePullConsumerConfig(message_model=MessageModel.BROADCASTING))
    assert (lite["pullThresholdForAll"], lite["messageModel"]) == (10_000, "BROADCASTING")


def test_all_of_them_are_texts(scene: Scene) -> None:
    told = properties_of(scene.client, "g", 77, {"autoCommit": True, "pullBatchSize": 32})
    assert (told["autoCommit"], told["pullBatchSize"]) == ("true", "32")
    assert (told["PROP_CONSUMER_START_TIMESTAMP"], told["PROP_NAMESERVER_ADDR"]) == (
        "77",
        NAME_SERVER,
    )
    assert (told["clientIP"], told["consumerGroup"]) == ("10.0.0.9", "g")


def test_queues_come_with_their_offsets(scene: Scene) -> None:
    offsets = BrokerOffsets(scene.client, "g")
    at_hand = ProcessQueue(QUEUE, 0)
    assert queues_of(scene.client, offsets, [at_hand])[QUEUE].commit_offset == -1
    offsets.note(QUEUE, 5)
    assert queues_of(scene.client, offsets, [at_hand])[QUEUE].commit_offset == 5


def test_stacks_name_threads_and_where_they_are() -> None:
    text = stacks()
    assert threading.current_thread().name in text
    assert "test_stacks_name_threads_and_where_they_are" in text
    assert "STATE: RUNNABLE" in text
