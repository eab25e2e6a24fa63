# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.delay import Delay
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.store.delay_levels import DelayLevels
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC

DELAY = Delay(DelayLevels("1s 5s"))


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


@pytest.mark.parametrize(
    ("level", "queue_id", "deliver_ms"), [("1", 0, 1_100), ("2", 1, 5_100), ("9", 1, 5_100)]
)
def test_a_level_leads_over_the_schedule_topic(level: str, queue_id: int, deliver_ms: int) -> None:
    delayed = message(DELAY=level)
    DELAY.apply(delayed, 100)
    assert (delayed.topic, delayed.queue_id) == (SCHEDULE_TOPIC, queue_id)
    assert delayed.deliver_ms == deliver_ms
    assert (delayed.properties["REAL_TOPIC"], delayed.properties["REAL_QID"]) == ("T", "1")


@pytest.mark.parametrize("level", ["0", "-1", "x"])
def test_what_is_no_level_does_not_delay(level: str) -> None:
    plain = message(DELAY=level)
    DELAY.apply(plain, 100)
    assert (plain.topic, plain.deliver_ms) == ("T", None)


def test_a_batch_cannot_be_delayed() -> None:
    with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
        DELAY.apply(message(way=Way.BATCH, DELAY="1"), 100)
    DELAY.apply(message(way=Way.BATCH, DELAY="0"), 100)


def test_a_half_message_is_not_delayed_yet() -> None:
    half = message(DELAY="1")
    half.park("RMQ_SYS_TRANS_HALF_TOPIC", 0)
    DELAY.apply(half, 100)
    assert (half.topic, half.deliver_ms) == ("RMQ_SYS_TRANS_HALF_TOPIC", None)
