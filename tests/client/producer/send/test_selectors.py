# SPDX-License-Identifier: Apache-2.0
"""Queues by key and by chance."""

from __future__ import annotations

from txrocketmq.client.producer.send.selectors import by_hash, by_random
from txrocketmq.remoting.message.message import Message, MessageQueue

QUEUES = [MessageQueue("T", "b", n) for n in range(4)]


def test_a_key_has_its_queue_as_in_java() -> None:
    message = Message("T", b"x")
    # SelectMessageQueueByHash: |hashCode % 4|; "orderId".hashCode() is -1207110391
    assert by_hash(QUEUES, message, "orderId").queue_id == 3
    assert by_hash(QUEUES, message, "hello").queue_id == 2
    assert by_hash(QUEUES, message, -5).queue_id == 1


def test_by_chance_each_queue_is_taken() -> None:
    taken = {by_random(QUEUES, Message("T", b"x"), None) for _ in range(400)}
    assert taken == set(QUEUES)
