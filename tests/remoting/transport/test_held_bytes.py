# SPDX-License-Identifier: Apache-2.0
"""The limit of what is held for all peers: who is not read from, who is refused, and the sum."""

from __future__ import annotations

import socket
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock as TaskClock
from twisted.logger import capturedLogs, formatEvent

from tests.remoting.transport.wires import FarEnd
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.call import WAITING_BYTES
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.process.log_limit import Seldom
from txrocketmq.remoting.transport import held_bytes
from txrocketmq.remoting.transport.held_bytes import (
    LEAST_BYTES,
    MAX_HELD_BYTES,
    MUCH_BYTES,
    PARKED_BYTES,
    TOO_LONG_MS,
    HeldBytes,
)
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.strangers import Shared
from txrocketmq.remoting.transport.turns import ENDLESS

MIB = 1 << 20
MOST = 16 * MIB
HARD = MOST + MOST // 4


class Room:
    """A limit and its holders, whose time is the test's."""

    def __init__(self, count: int = 8) -> None:
        self.now_ms = 0
        self.held = HeldBytes(lambda: MOST, Seldom(5), lambda: self.now_ms)
        self.holders = [Holder(self.held, number) for number in range(count)]

    def crowded(self) -> list[int]:
        return [each.number for each in self.holders if not each.is_read_from]

    def gone(self) -> list[int]:
        return [each.number for each in self.holders if each.is_gone]


class Holder:
    def __init__(self, held: HeldBytes, number: int) -> None:
        self._held = held
        self.number = number
        self.remote_address = f"10.0.0.{number}:1"
        self.transport: Any = None
        self.decoder = FrameDecoder()
        self.held_bytes = 0
        self.is_read_from = True
        self.is_gone = False

    def hold(self, size_bytes: int) -> None:
        if not self.is_gone:
            before, self.held_bytes = self.held_bytes, size_bytes
            if before != size_bytes:
                self._held.changed(self, before, size_bytes)

    def crowd(self) -> None:
        assert self.is_read_from
        self.is_read_from = False

    def has_room(self) -> None:
        self.is_read_from = True

    def abort(self) -> None:
        assert not self.is_gone
        self.hold(0)
        self.is_gone = True


@pytest.fixture
def room() -> Room:
    return Room()


def test_one_that_leaves_while_it_is_not_read_from_is_noticed(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By reading on, which ends it: memory goes back when they go."""
    for holder in room.holders[:5]:
        holder.hold(4 * MIB)
    assert room.crowded() == [0]
    leave(room.holders[0], monkeypatch)
    room.held.tick()
    assert room.crowded() == []
    assert room.held.crowded == 0
    assert room.gone() == []


@pytest.mark.parametrize("is_whole", [False, True])
def test_one_that_leaves_in_the_middle_of_a_frame_goes_at_once(
    room: Room, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    """Unless the rest of the frame is in the buffer of the socket, and is only to be read."""
    for holder in room.holders[:5]:
        holder.hold(4 * MIB)
    first = room.holders[0]
    first.decoder.receive((4 * MIB - 4).to_bytes(4, "big") + bytes(1 * MIB - 4))
    assert first.decoder.missing_bytes == 3 * MIB
    leave(first, monkeypatch, 3 * MIB if is_whole else 2 * MIB)
    room.held.tick()
    assert room.gone() == ([] if is_whole else [0])
    assert room.crowded() == []


def leave(holder: Holder, monkeypatch: pytest.MonkeyPatch, unread_bytes: int = 0) -> None:
    """Ends the connection of a holder, with so many bytes in the buffer of its socket."""
    holder.transport = Mock()
    monkeypatch.setattr(held_bytes, "has_gone", lambda transport: transport is not None)
    monkeypatch.setattr(held_bytes, "unread_bytes", lambda _: unread_bytes)


def test_an_end_of_a_connection_is_seen_without_reading() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"half a frame")
        assert not held_bytes.is_ended(here)
        there.close()
        assert held_bytes.is_ended(here)
        assert held_bytes.unread_bytes(here) == len(b"half a frame")
        assert here.recv(100) == b"half a frame"
    assert not held_bytes.has_gone(None)


def test_the_limit_is_a_setting() -> None:
    assert BrokerConfig().max_bytes_held_for_peers == MAX_HELD_BYTES
    assert NamesrvConfig().max_bytes_held_for_peers == MAX_HELD_BYTES


def test_below_the_limit_nobody_notices_anything(room: Room) -> None:
    for each in room.holders:
        each.hold(2 * MIB)
    assert (room.held.total, room.crowded(), room.held.crowded) == (MOST, [], 0)


def test_beyond_the_limit_the_largest_is_not_read_from(room: Room) -> None:
    one, two, three, *_ = room.holders
    one.hold(3 * MIB)
    two.hold(9 * MIB)
    with capturedLogs() as events:
        three.hold(5 * MIB)
    assert (room.crowded(), room.gone()) == ([1], [])
    (line,) = map(formatEvent, events)
    assert line == (
        "17825792 bytes are held for peers, more than maxBytesHeldForPeers=16777216: 10.0.0.1:1,"
        " with 9437184 of them, is not read from until there is room"
    )
    three.hold(6 * MIB)
    assert room.crowded() == [1, 2]
    one.hold(0)
    assert (room.crowded(), room.held.crowded) == ([], 0)


def test_who_holds_little_is_read_from_whatever_others_hold(room: Room) -> None:
    large, *small = room.holders
    large.hold(MOST)
    for each in small:
        each.hold(LEAST_BYTES - 1)
    assert room.crowded() == [0] or room.gone() == [0]
    assert not any(each.is_gone or not each.is_read_from for each in small)


def test_far_beyond_the_limit_the_largest_is_closed_at_once(room: Room) -> None:
    one, two, *_ = room.holders
    one.hold(13 * MIB)
    with capturedLogs() as events:
        two.hold(HARD - 13 * MIB + 1)
    assert room.gone() == [0]
    assert room.held.refused == 1
    assert "closing 10.0.0.0:1: 13631488 bytes are held for it, and 20971521 for all peers" in (
        formatEvent(events[-1]) or ""
    )
    assert room.held.total == two.held_bytes


def test_what_lasts_too_long_is_closed(room: Room) -> None:
    """Unfinished frames that are not read on would otherwise stay unfinished."""
    for each in room.holders[:5]:
        each.hold(7 * MIB // 2)
    assert len(room.crowded()) == 1
    room.now_ms = TOO_LONG_MS - 1
    room.held.tick()
    assert room.gone() == []
    room.now_ms = TOO_LONG_MS
    room.held.tick()
    assert len(room.gone()) == 1
    assert room.held.total <= MOST
    assert [
        each.number for each in room.holders if not each.is_read_from and not each.is_gone
    ] == []


def test_the_time_beyond_the_limit_begins_anew(room: Room) -> None:
    for round_ms in (0, 10 * TOO_LONG_MS):
        room.now_ms = round_ms
        for each in room.holders[:5]:
            each.hold(7 * MIB // 2)
        room.now_ms = round_ms + TOO_LONG_MS - 1
        room.held.tick()
        for each in room.holders:
            each.hold(0)
    room.held.tick()
    assert room.gone() == []


def test_one_whose_bytes_have_gone_is_read_from_again(room: Room) -> None:
    one, two, three, *_ = room.holders
    one.hold(8 * MIB)
    two.hold(7 * MIB)
    three.hold(3 * MIB)
    assert room.crowded() == [0]
    one.hold(LEAST_BYTES - 1)
    assert room.crowded() == []


def test_a_limit_that_is_raised_lets_all_read_on(room: Room) -> None:
    for each in room.holders[:5]:
        each.hold(7 * MIB // 2)
    room.held._most_bytes = lambda: 10 * MOST
    room.held.tick()
    assert room.crowded() == []


def test_many_are_told_of_seldom() -> None:
    room = Room(1_000)
    with capturedLogs() as events:
        for each in room.holders:
            each.hold(2 * MIB)
    assert len(events) <= 10
    assert room.held.total <= HARD
    assert len(room.gone()) > 900


def test_memory_is_worth_giving_back_once_after_each_peak(room: Room) -> None:
    room.held._most_bytes = lambda: 1 << 40
    one, two, *_ = room.holders
    one.hold(MUCH_BYTES)
    one.hold(0)
    assert not room.held.has_fallen()
    one.hold(4 * MUCH_BYTES)
    two.hold(MUCH_BYTES)
    assert not room.held.has_fallen()
    one.hold(0)
    assert room.held.has_fallen()
    assert not room.held.has_fallen()


@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.integers(0, 7),
                st.one_of(st.integers(0, 20 * MIB), st.sampled_from([0, 1, LEAST_BYTES])),
            ),
            st.tuples(st.just(-1), st.integers(0, 2 * TOO_LONG_MS)),
        )
    )
)
def test_the_sum_is_exact_and_limited_whatever_happens(steps: list[tuple[int, int]]) -> None:
    room = Room()
    for which, value in steps:
        if which < 0:
            room.now_ms += value
            room.held.tick()
        else:
            room.holders[which].hold(value)
        held = room.held
        assert held.total == sum(each.held_bytes for each in room.holders) <= HARD
        assert held.crowded == len(
            [each for each in room.holders if not each.is_read_from and not each.is_gone]
        )
        if held.total <= MOST:
            assert held.crowded == 0
        for each in room.holders:
            if not each.is_read_from:
                assert each.held_bytes >= LEAST_BYTES
    for each in room.holders:
        each.hold(0)
    assert room.held.total == room.held.crowded == 0
    assert all(each.is_read_from or each.is_gone for each in room.holders)
    assert not any(room.held._reading._rows)
    assert not any(room.held._crowded._rows)


TOGETHER = PARKED_BYTES // WAITING_BYTES


def test_requests_that_wait_for_messages_are_counted_and_are_no_work_for_each_read() -> None:
    clock, seldom = Clock(TaskClock()), Seldom(5)
    held = HeldBytes(lambda: 1 << 30, seldom, clock.steady_ms)
    peer = TcpPeer(clock, lambda *_: 0, shared=Shared(ENDLESS, held, seldom))
    end = FarEnd(peer)
    for count in range(1, 5 * TOGETHER):
        peer.begin_wait()
        assert held.total == peer.held_bytes == count // TOGETHER * PARKED_BYTES
    end.protocol.dataReceived(b"\0\0")
    assert held.total == 4 * PARKED_BYTES + 2, "and the beginning of a frame"
    for left in range(5 * TOGETHER - 2, 2 * TOGETHER, -1):
        peer.end_wait()
        assert peer.held_bytes // PARKED_BYTES == left // TOGETHER
    end.leave()
    assert held.total == 0
    peer.end_wait()
    assert held.total == 0
