# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.timer.timer_message import TimerMessage, born_ms, waiting_of


def test_when_it_was_sent(parts: Parts) -> None:
    assert born_ms(record(parts)) == parts.now_ms - 5


def record(parts: Parts, **properties: Any) -> memoryview:
    found = parts.store.message_at(parts.put("T", **properties).physical_offset)
    assert found is not None
    return found


def test_what_a_record_says(parts: Parts) -> None:
    found = waiting_of(
        record(parts, TIMER_OUT_MS="12", REAL_TOPIC="R", UNIQ_KEY="K", TIMER_DEL_UNIQKEY="D")
    )
    assert found == TimerMessage(12, "R", "K", "D")
    assert found.delete_key(with_topic=False) == "K"
    assert found.delete_key(with_topic=True) == "R+K"
    assert waiting_of(record(parts)) == TimerMessage(0, "", "", "")


@pytest.mark.parametrize("text", ["x", "-1", "1.0", "\u0663", "9" * 19])
def test_what_is_no_time(parts: Parts, text: str) -> None:
    assert waiting_of(record(parts, TIMER_OUT_MS=text)).out_ms == 0
