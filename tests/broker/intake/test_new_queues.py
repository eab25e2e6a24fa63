# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from tests.broker.conftest import Parts
from txrocketmq.broker.intake.new_queues import ENOUGH, NewQueues


def test_queues_that_exist_or_were_seen_are_not_counted(parts: Parts) -> None:
    parts.put("T")
    (queue_id,) = parts.store.queue_ids("T")
    queues = NewQueues(parts.store)
    for number in range(ENOUGH - 1):
        assert not queues.are_enough_with("U", number)
        assert not queues.are_enough_with("U", number)
        assert not queues.are_enough_with("T", queue_id)
    assert queues.are_enough_with("U", ENOUGH)
    assert queues.are_enough_with("T", queue_id)
