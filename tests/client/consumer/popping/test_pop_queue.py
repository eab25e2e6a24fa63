# SPDX-License-Identifier: Apache-2.0
"""Queues that are popped: what waits to be acknowledged, and until when."""

from __future__ import annotations

from tests.client.consumer.fake_broker import QUEUE
from txrocketmq.client.consumer.popping.pop_queue import PoppedBatch, PopProcessQueue
from txrocketmq.client.consumer.queue.process_queue import PULL_MAX_IDLE_MS


def test_messages_wait_until_they_end() -> None:
    queue = PopProcessQueue(QUEUE, 1_000)
    batch = PoppedBatch(queue, 3, until_ms=6_000)
    assert (batch.queue, queue.waiting) == (QUEUE, 3)
    batch.end(2)
    told = queue.describe(ahead_ms=500)
    assert (told.wait_ack_count, told.droped, told.last_pop_timestamp) == (1, False, 1_500)


def test_a_batch_is_over_at_its_time_or_when_the_queue_is_dropped() -> None:
    queue = PopProcessQueue(QUEUE, 0)
    batch = PoppedBatch(queue, 1, until_ms=5_000)
    assert [batch.is_over(ms) for ms in (4_999, 5_000)] == [False, True]
    assert [batch.begin([], ms) for ms in (4_999, 5_000)] == [True, False]
    assert batch.last_consume_ms == 4_999
    queue.dropped = True
    assert batch.is_over(0)


def test_a_queue_that_was_not_popped_for_long_has_lost_its_loop() -> None:
    queue = PopProcessQueue(QUEUE, 10)
    assert not queue.is_pop_expired(10 + PULL_MAX_IDLE_MS)
    assert queue.is_pop_expired(11 + PULL_MAX_IDLE_MS)
