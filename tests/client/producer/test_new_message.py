# SPDX-License-Identifier: Apache-2.0
"""Messages in one call."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.producer.new_message import new_message


def test_what_it_holds() -> None:
    message = new_message(
        "T", "gr\u00fcn", tags="t", keys=["a", "b"], properties={"own": "1"}, flag=3, delay_level=2,
        priority=4, wait_for_store=False,
    )  # fmt: skip
    assert (message.topic, message.body, message.flag) == ("T", b"gr\xc3\xbcn", 3)
    assert message.properties == {
        "own": "1", "TAGS": "t", "KEYS": "a b", "DELAY": "2", "_SYS_MSG_PRIORITY_": "4",
        "WAIT": "false",
    }  # fmt: skip
    assert new_message("T", b"x", keys="one").properties == {"KEYS": "one"}


def test_times_of_delivery() -> None:
    assert new_message("T", b"x", delay_ms=5).properties == {"TIMER_DELAY_MS": "5"}
    assert new_message("T", b"x", deliver_at_ms=5).properties == {"TIMER_DELIVER_MS": "5"}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"properties": {"TAGS": "x"}}, "used by system"),
        ({"tags": "a\x01b"}, "x01"),
        ({"keys": ["a\x02"]}, "x02"),
        ({"delay_level": 1, "delay_ms": 1}, "not several"),
        ({"delay_ms": -1}, "negative"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(MessageIllegal, match=why):
        new_message("T", b"x", **settings)
