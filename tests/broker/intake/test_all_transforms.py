# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.intake.inner_message import Way
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag

ACTED_ON = {
    names.DELAY, names.TRAN_MSG, names.POP_CK, names.MSG_REGION, names.TRACE_ON, names.CLUSTER,
    names.INNER_NUM, names.PRIORITY, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS,
    names.TIMER_DELIVER_MS,
}  # fmt: skip


def test_what_a_broker_acts_on(parts: Parts) -> None:
    transforms = parts.intake.transforms
    assert transforms.properties(Way.SEND) == ACTED_ON
    assert transforms.properties(Way.ENTRY) == frozenset()
    assert transforms.properties(Way.DELIVERY) == frozenset()
    assert transforms.properties(Way.SEND_BACK) == {
        names.DELAY, names.INNER_NUM, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS,
        names.TIMER_DELIVER_MS,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("topic", "sys_flag", "is_touched"),
    [
        ("T", 0, False),
        ("T", MessageSysFlag.COMPRESSED, False),
        ("T", MessageSysFlag.INNER_BATCH, True),
        ("%RETRY%g", 0, True),
        ("%DLQ%g", 0, False),
    ],
)
def test_topics_and_flags_that_touch_every_message(
    parts: Parts, topic: str, sys_flag: int, is_touched: bool
) -> None:
    assert parts.intake.transforms.touches_topic(Way.SEND, topic, sys_flag) is is_touched


def test_attributes_of_topics_are_looked_up(parts: Parts) -> None:
    parts.topic("T")
    assert not parts.intake.transforms.touches_topic(Way.ENTRY, "T", 0)
    assert not parts.intake.transforms.touches_topic(Way.ENTRY, "unknown", 0)
