# SPDX-License-Identifier: Apache-2.0
"""Each notice is one line that names the place, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.logger import formatEvent, globalLogPublisher

from txrocketmq.broker.store.formats.damage import Damage
from txrocketmq.broker.store.get.jumps import GROUP, KINDS, POPPED, Jump
from txrocketmq.broker.work.mishap import Mishap
from txrocketmq.broker.work.notices import (
    half_message_unreadable,
    half_messages_given_up,
    jumped,
    level_stands_still,
    no_record,
    not_brought_back,
    not_readable,
    revive_record_unreadable,
    wrong_body,
)


@pytest.fixture
def said() -> Iterator[Callable[[], str]]:
    events: list[dict[str, Any]] = []
    observer: Any = events.append
    globalLogPublisher.addObserver(observer)
    yield lambda: "\n".join(formatEvent(event) for event in events)
    globalLogPublisher.removeObserver(observer)


def test_a_record_that_is_none(said: Callable[[], str]) -> None:
    no_record(Damage(4096, 100, "/store/commitlog/0", 4096, "T/0", 7), 2)
    assert "4096 of the log (/store/commitlog/0, byte 4096)" in said()
    assert "queue T/0 at offset 7" in said()
    assert "2 more places" in said()


def test_a_wrong_body(said: Callable[[], str]) -> None:
    wrong_body(Damage(4096, 100, "/store/commitlog/0", 96, "T/0", 7), 2)
    assert "T/0 at offset 7, at 4096 of the log (/store/commitlog/0, byte 96, 100 bytes)" in said()
    assert "does not have the CRC that it was stored with" in said()
    assert "2 more messages are not listed" in said()


def test_a_damaged_index(said: Callable[[], str]) -> None:
    no_record(Damage(-1, -1, "/store/index/1", 88, "", -1), 0)
    assert "/store/index/1 at byte 88" in said()


def test_levels(said: Callable[[], str]) -> None:
    level_stands_still(Mishap(1, 2, 0, "Orders", "SERVICE_NOT_AVAILABLE"))
    not_readable(Mishap(12, 3, 99))
    assert "delay level 3 is on hold" in said()
    assert "12 messages of delay level 4, from offset 99 on" in said()


def test_half_messages(said: Callable[[], str]) -> None:
    half_messages_given_up(Mishap(3, topic="Orders", key="U1"))
    half_message_unreadable(Mishap(1, 0, 12))
    assert "3 half messages are given up, the first of topic Orders with the key U1" in said()
    assert "in the topic TRANS_CHECK_MAX_TIME_TOPIC" in said()
    assert "the half message at offset 12 of queue 0 cannot be read" in said()


def test_pops(said: Callable[[], str]) -> None:
    not_brought_back(Mishap(2, topic="Orders", why="SERVICE_NOT_AVAILABLE"))
    revive_record_unreadable(Mishap(1, 3, 17))
    assert "2 popped messages of Orders cannot be brought back now" in said()
    assert "the record at offset 17 of queue 3 of the revive topic is not valid" in said()


def test_jumps(said: Callable[[], str]) -> None:
    jumped(Jump(GROUP, "Orders", 3, 5, 12, 7, "Billing"), 4)
    assert "the group Billing continues at offset 12 of queue 3 of Orders, not at 5" in said()
    assert "lost 7 messages in between" in said()
    assert "4 more such readers" in said()
    assert "no progress was saved" not in said()
    jumped(Jump(GROUP, "Orders", 3, 0, 12, 12, "Billing", is_known=False), 0)
    assert "it does not get them, unless that was done before: no progress was saved" in said()
    jumped(Jump(POPPED, "Orders", 3, 5, 12, 2, "Billing"), 0)
    assert "2 messages that the group Billing has popped and not acknowledged do not" in said()
    assert "from offset 5 to 11" in said()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_reader_has_a_sentence(said: Callable[[], str], kind: str) -> None:
    jumped(Jump(kind, "Orders", 3, 5, 12, 7), 0)
    assert "Orders" in said()
    assert "7 messages " in said()
