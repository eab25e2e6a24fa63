# SPDX-License-Identifier: Apache-2.0
"""What a master that a controller has chosen sends its slaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.store.replication.terms import EPOCHS, Mastery, greeting, report
from tests.broker.store.replication.test_feed import FILE_BYTES
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.store.replication.term_feed import NOBODY, TermFeed
from txrocketmq.broker.store.replication.term_frames import (
    MasterDecoder,
    StatedFrame,
    Welcome,
    welcome,
)


def taken(feed: TermFeed, most: int = 1 << 20, steady_ms: int = 0) -> bytes:
    data = b"".join(feed.pieces(1 << 20, steady_ms))[:most]
    feed.sent(len(data), steady_ms)
    return data


def test_a_greeting_is_answered_with_the_epochs() -> None:
    feed = Mastery().feed()
    assert (feed.owes_welcome, feed.has_more(), feed.broker_id) == (False, False, NOBODY)
    feed.reported(greeting(7)[:9], 0)
    feed.reported(greeting(7)[9:], 0)
    assert (feed.owes_welcome, feed.has_more(), feed.broker_id) == (True, True, 7)
    assert taken(feed, 11) + taken(feed) == welcome(10_000, EPOCHS)
    assert (feed.owes_welcome, feed.pieces(1 << 20, 0)) == (False, [])


@given(st.lists(st.integers(1, 3_000), max_size=40))
def test_frames_cross_no_epoch_and_no_file(takes: list[int]) -> None:
    mastery = Mastery()
    feed = mastery.feed()
    feed.reported(greeting(7), 0)
    data = taken(feed)
    feed.reported(report(0), 0)
    for most in takes:
        data += taken(feed, most)
        mastery.brokers.agreed({1, 7})  # what is confirmed moves within a head
    data += taken(feed)
    first, *frames = MasterDecoder().items(data)
    assert isinstance(first, Welcome)
    places = [0, FILE_BYTES, 6_000, 2 * FILE_BYTES, 10_000]
    found = []
    for each in frames:
        assert isinstance(each, StatedFrame)
        found.append((each.offset, each.epoch))
        assert bytes(each.body) == mastery.log.content[each.offset :][: len(each.body)]
    assert found == [(each, EPOCHS[each >= EPOCHS[1].start]) for each in places[:-1]]


def test_heartbeats_name_the_epoch_that_comes_next() -> None:
    mastery = Mastery()
    feed = mastery.slave(7)
    frame = next(MasterDecoder().items(taken(feed, steady_ms=5_000)))
    assert isinstance(frame, StatedFrame)
    assert (frame.offset, frame.epoch, bytes(frame.body)) == (10_000, EPOCHS[1], b"")
    assert frame.confirmed == 10_000


@pytest.mark.parametrize(("last_only", "start"), [(0, 4096), (1, 8192)])
def test_an_empty_slave_says_what_it_gets(last_only: int, start: int) -> None:
    feed = Mastery(start=4096).feed()
    feed.reported(greeting(7, last_only) + report(0), 0)
    assert feed.next_offset == start


def test_who_does_not_keep_to_the_order_is_let_go() -> None:
    with pytest.raises(HaPeerError, match="without having greeted"):
        Mastery().feed().reported(report(0), 0)
    feed = Mastery().slave(7)
    with pytest.raises(HaPeerError, match="greets again"):
        feed.reported(greeting(7), 0)


def test_a_learner_is_nobody_to_wait_for() -> None:
    assert Mastery().slave(7, learner=1).broker_id == NOBODY


def test_it_is_known_when_a_slave_had_all() -> None:
    mastery = Mastery()
    feed = mastery.slave(7, steady_ms=100)
    assert feed.is_caught_up(500, 0)
    mastery.log.max_physical_offset = 11_000
    assert feed.is_caught_up(600, 100)
    assert not feed.is_caught_up(601, 100)
    taken(feed, steady_ms=700)
    mastery.log.max_physical_offset = 12_000  # written while the report is under way
    feed.reported(report(11_000), 900)
    assert feed.is_caught_up(800, 100)
    assert not feed.is_caught_up(801, 100)
    assert not mastery.feed().is_caught_up(0, 1 << 40)
