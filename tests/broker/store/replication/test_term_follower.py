# SPDX-License-Identifier: Apache-2.0
"""What a slave makes of what the master of a term sends; and both sides together."""

from __future__ import annotations

import pytest

from tests.broker.store.replication.terms import EPOCHS, Mastery, greeting, report
from tests.broker.store.replication.test_follower import OpenStore
from tests.disk import MemoryFiles
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.replication.epochs import Epoch, EpochTable
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.broker.store.replication.term_follower import TermFollower
from txrocketmq.broker.store.replication.term_frames import (
    STATED_HEAD_CODEC,
    TRANSFER,
    welcome,
)


def frame(offset: int, epoch: Epoch, body: bytes = b"", confirmed: int = 0) -> bytes:
    return STATED_HEAD_CODEC.pack(TRANSFER, len(body), offset, *epoch, confirmed) + body


class Seat:
    def __init__(self, store: MessageStore) -> None:
        self.store = store
        self.epochs = EpochTable(MemoryFiles(), "/epochs")
        self.one = TermFollower(store, store.config, 0, self.epochs, 7)


@pytest.fixture
def seat(open_store: OpenStore) -> Seat:
    return Seat(open_store(MemoryFiles()))


def test_it_greets_until_it_is_welcome(seat: Seat) -> None:
    one = seat.one
    assert one.report(0) == greeting(7)
    assert (one.due(4_999), one.due(5_000)) == (b"", greeting(7))
    assert one.received(welcome(614, EPOCHS[:1]), 6_000) == report(0)
    assert (one.due(10_999), one.due(11_000)) == (b"", report(0))


def test_it_appends_and_reports(seat: Seat) -> None:
    one = seat.one
    one.received(welcome(60, EPOCHS), 0)
    assert seat.epochs.entries == EPOCHS[:1]
    data = frame(0, EPOCHS[0], b"a" * 40, 99) + frame(40, Epoch(3, 40), b"b" * 20, 30)
    assert one.received(data[:60], 0) == b""
    assert one.received(data[60:], 0) == report(60)
    assert seat.store.max_physical_offset == 60
    assert seat.epochs.entries == [EPOCHS[0], Epoch(3, 40)]
    assert one.confirmed == 30
    assert one.received(frame(60, Epoch(3, 40), confirmed=99), 0) == b""
    assert one.confirmed == 60


def test_the_masters_epochs_take_the_place_of_its_own(seat: Seat) -> None:
    seat.store.append_raw(0, bytes(100))
    seat.epochs.begin(Epoch(2, 50))
    seat.one.received(welcome(9_000, EPOCHS), 0)
    assert seat.epochs.entries == EPOCHS[:1]


def test_a_master_with_less_is_not_followed(seat: Seat) -> None:
    seat.store.append_raw(0, bytes(100))
    seat.epochs.begin(EPOCHS[0])
    with pytest.raises(HaPeerError, match="ends at 80, before this slave's at 100.*up to 80"):
        seat.one.received(welcome(80, EPOCHS[:1]), 0)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (frame(0, EPOCHS[0], b"a"), "before it has answered"),
        (welcome(9, []) * 2, "answers a greeting again"),
        (welcome(9, []) + frame(0, EPOCHS[0], b"a") + frame(5, EPOCHS[0], b"a"), "ends at 1"),
        (welcome(9, []) + frame(0, EPOCHS[0], bytes(20_000)), "mappedFileSizeCommitLog"),
    ],
)
def test_a_master_that_cannot_be_right_is_left(seat: Seat, data: bytes, why: str) -> None:
    with pytest.raises(HaPeerError, match=why):
        seat.one.received(data, 0)


@pytest.mark.parametrize("cut", [1, 7, 100, 1 << 20])
def test_master_and_slave_understand_each_other(seat: Seat, cut: int) -> None:
    mastery, one = Mastery(), seat.one
    feed, told = mastery.feed(), one.report(0)
    while told or feed.has_more():
        feed.reported(told, 0)
        data = b"".join(feed.pieces(3_000, 0))
        feed.sent(len(data), 0)
        told = b"".join(one.received(data[at : at + cut], 0) for at in range(0, len(data), cut))
    assert feed.acknowledged == seat.store.max_physical_offset == 10_000
    assert seat.epochs.entries == EPOCHS
    assert feed.broker_id == 7
