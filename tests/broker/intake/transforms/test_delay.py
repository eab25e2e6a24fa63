# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.transforms.delay import Delay
from txrocketmq.broker.intake.transforms.timer import Timer
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.delay_levels import DelayLevels
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC

DELAY = Delay(DelayLevels("1s 5s"))
TIMER = Timer(StoreConfig(), lambda _: None)


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


NO_NUMBERS = ["x", "3x", "4Pinpoint", " 3", "3 ", "1.0", "1_0", "0x1", "+", "-", "²", "9" * 11]


@pytest.mark.parametrize("level", NO_NUMBERS)
@pytest.mark.parametrize("way", [Way.SEND, Way.BATCH, Way.SEND_BACK, Way.COMMIT, Way.REPLY])
def test_what_is_no_number_is_refused(level: str, way: Way) -> None:
    for transform in (DELAY, TIMER):
        with pytest.raises(ResponseError, match="DELAY must be a delay level") as refused:
            transform.apply(message(way=way, DELAY=level, TIMER_DELAY_MS="1000"), 100)
        assert refused.value.code == ResponseCode.SYSTEM_ERROR


@given(st.text("+-0123456789 ._x\u0663\uff13²", min_size=1, max_size=14))
def test_every_level_is_read_as_by_java_or_refused(level: str) -> None:
    expected = parse_int(level)
    delayed = message(DELAY=level)
    try:
        DELAY.apply(delayed, 100)
    except ResponseError:
        assert expected is None
    else:
        assert expected is not None
        queue_id = min(expected, 2) - 1
        assert delayed.topic == ("T" if queue_id < 0 else SCHEDULE_TOPIC)
        assert queue_id < 0 or delayed.queue_id == queue_id


def parse_int(text: str) -> int | None:
    """Integer.parseInt, step by step."""
    digits = text[1:] if text[:1] in ("+", "-") and len(text) > 1 else text
    value = 0
    for char in digits:
        digit = unicodedata.decimal(char, None)
        if digit is None:
            return None
        value = value * 10 + int(digit)
    value = -value if text.startswith("-") else value
    return value if -(2**31) <= value < 2**31 else None


@pytest.mark.parametrize("level", ["0", "-1"])
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
