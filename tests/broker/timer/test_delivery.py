# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from tests.broker.conftest import Parts
from txrocketmq.broker.timer.delivery import rolled, stamps
from txrocketmq.remoting.message.topics import TIMER_TOPIC


def waiting(parts: Parts, **properties: Any) -> memoryview:
    properties = {"REAL_TOPIC": "T", "REAL_QID": "1", "TIMER_OUT_MS": "9", **properties}
    found = parts.store.message_at(parts.put(TIMER_TOPIC, **properties).physical_offset)
    assert found is not None
    return found


def test_stamps_are_added_and_counted(parts: Parts) -> None:
    delivery = parts.timers.delivery
    parts.timers.metrics.add("T", 2)
    batch = delivery.batch()
    batch.add(1, waiting(parts), stamps(5, 6))
    batch.add(2, waiting(parts, TIMER_ENQUEUE_MS="1", TIMER_DEQUEUE_MS="2"), stamps(5, 6))
    done: set[int] = set()
    assert delivery.put(batch, done, parts.now_ms, was_enqueued=True) is None
    assert (done, delivery.delivered, parts.timers.metrics.count("T")) == ({1, 2}, 2, 0)
    for unit in parts.store.queue_units("T", 1, 0, 9):
        record = parts.store.message_at(unit.physical_offset)
        assert record is not None
        text = bytes(record)
        assert text.count(b"TIMER_ENQUEUE_MS\x015\x02") == text.count(b"TIMER_ENQUEUE_MS") == 1
        assert text.count(b"TIMER_DEQUEUE_MS\x016\x02") == 1


def test_rolls_are_counted(parts: Parts) -> None:
    for times, expected in (("", "1"), ("4", "5"), ("x", "1"), ("9" * 30, "1")):
        more = {"TIMER_ROLL_TIMES": times} if times else {}
        due = rolled(3, waiting(parts, **more), 5, 6)
        assert due is not None
        properties = due.stored.properties
        assert due.message.topic == TIMER_TOPIC
        message = due.message
        assert not isinstance(message, tuple)
        assert message.properties["TIMER_ROLL_TIMES"] == expected
        assert message.properties["REAL_TOPIC"] == properties["REAL_TOPIC"] == "T"


def test_what_is_no_record_is_not_rolled(parts: Parts) -> None:
    assert rolled(3, waiting(parts)[:20], 5, 6) is None
