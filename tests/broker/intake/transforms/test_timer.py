# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_message import TIMER_PROPERTIES, InnerMessage, Way
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.intake.transforms.timer import Timer
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.message.topics import TIMER_TOPIC

NOW_MS = 1_700_000_000_300
DAYS_3_MS = 3 * 24 * 3600 * 1000


def message(way: Way = Way.SEND, /, **properties: str) -> InnerMessage:
    return InnerMessage("T", 1, b"body", 1, bytes(8), bytes(8), properties, way=way)


def applied(
    made: InnerMessage, *, rejected: PutStatus | None = None, **settings: object
) -> InnerMessage:
    config = StoreConfig(**settings)  # type: ignore[arg-type]
    Timer(config, lambda _: rejected).apply(made, NOW_MS)
    return made


@pytest.mark.parametrize("name", TIMER_PROPERTIES)
def test_messages_are_refused_without_the_wheel(name: str) -> None:
    with pytest.raises(NotTaken, match="WHEEL_TIMER_NOT_ENABLE"):
        applied(message(**{name: "1"}), timer_wheel_enable=False)


@pytest.mark.parametrize(
    ("properties", "out_ms"),
    [
        ({"TIMER_DELAY_SEC": "5"}, 1_700_000_005_000),
        ({"TIMER_DELAY_MS": "5000"}, 1_700_000_005_000),
        ({"TIMER_DELAY_MS": "700"}, 1_700_000_000_000),  # a multiple: one unit earlier
        ({"TIMER_DELAY_MS": "701"}, 1_700_000_001_000),
        ({"TIMER_DELAY_MS": "1"}, 1_700_000_000_000),
        ({"TIMER_DELIVER_MS": "1700000009999"}, 1_700_000_009_000),
        ({"TIMER_DELIVER_MS": "+01700000009999"}, 1_700_000_009_000),
        ({"TIMER_DELAY_SEC": "5", "TIMER_DELAY_MS": "x", "TIMER_DELIVER_MS": "y"},
         1_700_000_005_000),
        ({"TIMER_DELAY_MS": "2000", "TIMER_DELIVER_MS": "y"}, 1_700_000_002_000),
        ({"TIMER_DELAY_MS": str(DAYS_3_MS)}, 1_700_000_000_000 + DAYS_3_MS),
    ],
)  # fmt: skip
def test_when_it_is_due(properties: dict[str, str], out_ms: int) -> None:
    made = applied(message(**properties))
    assert (made.topic, made.queue_id, made.is_parked) == (TIMER_TOPIC, 0, True)
    assert made.properties == {
        **properties, "TIMER_OUT_MS": str(out_ms), "REAL_TOPIC": "T", "REAL_QID": "1",
    }  # fmt: skip


def test_when_it_is_due_to_the_tenth() -> None:
    made = applied(message(TIMER_DELAY_MS="550"), timer_precision_ms=100)
    assert made.properties["TIMER_OUT_MS"] == "1700000000800"


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELAY_SEC": "0"},
        {"TIMER_DELAY_SEC": "-5"},
        {"TIMER_DELAY_MS": "-9223372036854775808"},
        {"TIMER_DELIVER_MS": "0"},
        {"TIMER_DELIVER_MS": str(NOW_MS)},
        {"TIMER_DELAY_SEC": "5", "TIMER_OUT_MS": "1"},
        {"TIMER_DELAY_SEC": "5", "DELAY": "1"},
    ],
)
def test_what_is_an_ordinary_message(properties: dict[str, str]) -> None:
    made = applied(message(**properties))
    assert (made.topic, made.properties) == ("T", properties)


def test_what_waits_already_is_left_alone() -> None:
    made = message(TIMER_DELAY_SEC="5")
    made.topic = TIMER_TOPIC
    assert not applied(made).is_parked
    made = message(TIMER_DELAY_SEC="5")
    made.park("HALF", 0)
    assert applied(made).topic == "HALF"


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELAY_SEC": ""},
        {"TIMER_DELAY_SEC": "soon"},
        {"TIMER_DELAY_SEC": "1.5"},
        {"TIMER_DELAY_SEC": "\u00b2"},
        {"TIMER_DELAY_SEC": "9223372036854775808"},
        {"TIMER_DELAY_SEC": "9" * 5000},
        {"TIMER_DELAY_SEC": "9223372036854775807"},
        {"TIMER_DELAY_SEC": "259201"},
        {"TIMER_DELAY_MS": str(DAYS_3_MS + 1)},
        {"TIMER_DELIVER_MS": "4102444800000"},
        {"TIMER_DELIVER_MS": "--1"},
        {"TIMER_DELIVER_MS": "1", "TIMER_DEL_UNIQKEY": "k"},
    ],
)
def test_what_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(NotTaken, match="WHEEL_TIMER_MSG_ILLEGAL"):
        applied(message(**properties))


def test_how_far_ahead_is_a_setting() -> None:
    applied(message(TIMER_DELAY_SEC="10"), timer_max_delay_sec=10)
    with pytest.raises(NotTaken, match="WHEEL_TIMER_MSG_ILLEGAL"):
        applied(message(TIMER_DELAY_SEC="11"), timer_max_delay_sec=10)


def test_too_many_at_one_time() -> None:
    with pytest.raises(NotTaken, match="WHEEL_TIMER_FLOW_CONTROL"):
        applied(message(TIMER_DELAY_SEC="5"), rejected=PutStatus.WHEEL_TIMER_FLOW_CONTROL)
    applied(message(TIMER_DELAY_SEC="-5"), rejected=PutStatus.WHEEL_TIMER_FLOW_CONTROL)


def test_a_batch_is_refused() -> None:
    with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
        applied(message(Way.BATCH, TIMER_DELAY_SEC="5"))
